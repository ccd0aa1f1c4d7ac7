//! `env` and `envFrom` of a container.

use crate::scope::{At, Fields};
use orkestra_language::{
    api::children::{Env, EnvFrom, EnvFromSource, EnvSource, EnvValue, EnvVar, KeyRef, NameRef},
    diagnostics::Code,
};
use orkestra_object::value::Node;
use orkestra_plan::{Coerce, ObjectTree};

/// Returns the list of variables; the map form is sorted by name, so that its order causes no rollout.
#[expect(clippy::unnecessary_wraps, reason = "the form that `At::whole` takes")]
pub(crate) fn env(at: &At<'_>, env: &Env) -> Option<ObjectTree> {
    Some(match env {
        Env::Map(variables) => ObjectTree::list(
            variables
                .iter()
                .map(|(name, value)| {
                    check_name(&at.key(name), name);
                    named(&at.field(name), name, value)
                })
                .collect(),
        ),
        Env::List(variables) => {
            let mut items = Vec::with_capacity(variables.len());
            for (index, variable) in variables.iter().enumerate() {
                let at = at.index(index);
                items.push(native(&at, variable));
            }
            ObjectTree::list(items)
        }
    })
}

fn named(at: &At<'_>, name: &str, value: &EnvValue) -> ObjectTree {
    let mut fields = Fields::default();
    fields.put_text("name", name);
    match value {
        EnvValue::Text(text) => fields.put("value", at.value(text, Coerce::Text)),
        EnvValue::Source(source) => put_source(at, &mut fields, source),
    }
    fields.into_tree()
}

fn put_source(at: &At<'_>, fields: &mut Fields, source: &EnvSource) {
    let EnvSource {
        value,
        secret_key_ref,
        config_map_key_ref,
    } = source;
    let given = usize::from(value.is_some())
        + usize::from(secret_key_ref.is_some())
        + usize::from(config_map_key_ref.is_some());
    if given != 1 {
        at.error(Code::Exclusive, format!(
            "exactly one of `value`, `secretKeyRef` and `configMapKeyRef` is needed, not {given}"
        ));
    }
    if let Some(text) = value {
        fields.put("value", at.field("value").value(text, Coerce::Text));
    }
    for (name, reference) in [
        ("secretKeyRef", secret_key_ref),
        ("configMapKeyRef", config_map_key_ref),
    ] {
        if let Some(reference) = reference {
            let mut from = Fields::default();
            from.put(name, key_ref(&at.field(name), reference));
            fields.put("valueFrom", from.into_tree());
        }
    }
}

fn key_ref(at: &At<'_>, reference: &KeyRef) -> ObjectTree {
    let mut fields = Fields::default();
    fields.put("name", at.required("name", &reference.name));
    fields.put("key", at.required("key", &reference.key));
    fields.put(
        "optional",
        reference
            .optional
            .map(|optional| ObjectTree::Fixed(Node::Bool(optional))),
    );
    fields.into_tree()
}

fn native(at: &At<'_>, variable: &EnvVar) -> ObjectTree {
    if !variable.name.contains("{{") {
        check_name(&at.field("name"), &variable.name);
    }
    if variable.value.is_some() && variable.value_from.is_some() {
        at.error(
            Code::Exclusive,
            "`value` and `valueFrom` are mutually exclusive",
        );
    }
    let mut fields = Fields::default();
    fields.put("name", at.text_field("name", Some(&variable.name)));
    fields.put(
        "value",
        variable
            .value
            .as_ref()
            .and_then(|text| at.field("value").value(text, Coerce::Text)),
    );
    fields.put(
        "valueFrom",
        variable
            .value_from
            .as_ref()
            .and_then(|from| at.field("valueFrom").manifest(from)),
    );
    fields.into_tree()
}

/// Source: Kubernetes API reference, `EnvVar.name`: printable ASCII except `=`.
fn check_name(at: &At<'_>, name: &str) {
    if name.is_empty()
        || !name
            .bytes()
            .all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
    {
        at.error(
            Code::BadKey,
            format!("`{name}` is not a valid name of an environment variable"),
        );
    }
}

/// Returns the list of sources.
#[expect(clippy::unnecessary_wraps, reason = "the form that `At::whole` takes")]
pub(crate) fn env_from(at: &At<'_>, from: &EnvFrom) -> Option<ObjectTree> {
    let is_list = matches!(from, EnvFrom::List(_));
    let source = |(index, source): (usize, &EnvFromSource)| {
        env_source(&if is_list { at.index(index) } else { at.clone() }, source)
    };
    let sources = from.sources();
    let sources = sources.iter().enumerate().map(source);
    Some(ObjectTree::list(sources.collect()))
}

fn env_source(at: &At<'_>, source: &EnvFromSource) -> ObjectTree {
    let EnvFromSource {
        config_map_ref,
        secret_ref,
        prefix,
    } = source;
    if config_map_ref.is_some() == secret_ref.is_some() {
        at.error(
            Code::Exclusive,
            "exactly one of `configMapRef` and `secretRef` is needed",
        );
    }
    let mut fields = Fields::default();
    for (name, reference) in [("configMapRef", config_map_ref), ("secretRef", secret_ref)] {
        fields.put(
            name,
            reference
                .as_ref()
                .map(|reference| name_ref(&at.field(name), reference)),
        );
    }
    fields.put("prefix", at.text_field("prefix", prefix.as_ref()));
    fields.into_tree()
}

/// Returns a reference by name, in manifest format.
pub(crate) fn name_ref(at: &At<'_>, reference: &NameRef) -> ObjectTree {
    let name = match reference {
        NameRef::Object(object) => at.required("name", &object.name),
        NameRef::Name(name) => at.required_here(name),
    };
    let mut fields = Fields::default();
    fields.put("name", name);
    fields.put(
        "optional",
        reference
            .optional()
            .map(|optional| ObjectTree::Fixed(Node::Bool(optional))),
    );
    fields.into_tree()
}
