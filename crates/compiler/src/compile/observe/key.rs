//! Finds the custom resource of an object or an Event.

use crate::scope::At;
use orkestra_language::{
    api::{names, observe::KeyFrom},
    diagnostics::Code,
};
use orkestra_object::value::Key;
use orkestra_plan::{Coerce, observe::KeyPlan};

/// The input of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyInput {
    Object,
    Event,
}

/// Compiles the key at `at`.
pub(crate) fn plan(at: &At<'_>, declared: Option<&KeyFrom>, of: KeyInput) -> Option<KeyPlan> {
    let Some(declared) = declared else {
        return Some(match of {
            KeyInput::Object => KeyPlan::Owner,
            KeyInput::Event => KeyPlan::About,
        });
    };
    let KeyFrom {
        label,
        name,
        namespace,
    } = declared;
    let label = label.as_deref().map(str::trim);
    let label = label.filter(|label| !label.is_empty());
    let name = name.as_ref().filter(|name| !name.trim().is_empty());
    if name.is_none() && namespace.is_some() {
        let hint = "also set `name` to identify the custom resource";
        at.field("namespace").error_hint(
            Code::Exclusive,
            "`namespace` can be set only together with `name`",
            hint,
        );
    }
    match (label, name) {
        (None, None) => {
            let message = "neither `label` nor `name` identifies the custom resource";
            let hint = "remove `keyFrom` to follow owner references, or name a label: `label: example.org/owner`";
            at.error_hint(Code::Missing, message, hint);
            None
        }
        (Some(_), Some(_)) => {
            let hint = "leave out one of the two";
            at.error_hint(
                Code::Exclusive,
                "`label` and `name` are mutually exclusive",
                hint,
            );
            None
        }
        (Some(label), None) => {
            if let Err(why) = names::check_label_key(label) {
                at.field("label")
                    .bad_name(label, why, names::check_label_key);
                return None;
            }
            Some(KeyPlan::Label(Key::from(label)))
        }
        (None, Some(name)) => by_name(at, name, namespace.as_deref()),
    }
}

/// Compiles a key that is rendered.
fn by_name(at: &At<'_>, name: &str, namespace: Option<&str>) -> Option<KeyPlan> {
    let leaf = |field: &str, text: &str| at.field(field).leaf(text, Coerce::OptionalText);
    // Both are checked, even if the first has errors.
    let name = leaf("name", name);
    let namespace = namespace.map(|text| leaf("namespace", text));
    Some(KeyPlan::Name {
        name: name?,
        namespace: match namespace {
            Some(leaf) => Some(leaf?),
            None => None,
        },
    })
}
