//! `custom`: manifests of any kind.

use std::collections::BTreeMap;

use super::config;
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{children::Custom, names, scalar::Text},
    diagnostics::Code,
};
use orkestra_object::value::{Key, Node};
use orkestra_plan::{
    Coerce, GroupKind, ObjectTree, ResourceType, Whole,
    definitions::{CrdShape, Schemas},
    kinds,
};

/// Keys of a child entry that the language has but that are not implemented yet: not part of the object.
const LATER: [&str; 6] = ["anyOf", "forEach", "metadata", "or", "sleep", "status"];

/// Returns the kind that `apiVersion` and `kind` at `at` name, as far as it is known; `None` after an error, which is
/// reported.
pub(crate) fn resource(
    at: &At<'_>,
    api_version: &Text,
    kind: &Text,
    schemas: &Schemas,
) -> Option<ResourceType> {
    let text = literal(&at.field("apiVersion"), api_version)?;
    let kind = literal(&at.field("kind"), kind)?;
    let (group, version) = group_and_version(&at.field("apiVersion"), text)?;
    let mut resource = kinds::resource(group, version, kind);
    let group_kind = resource.group_kind();
    if kinds::is_transient(&group_kind) {
        at.field("kind").error(
            Code::ReservedKind,
            format!("{group_kind} is a request to the API server, not an object that is stored"),
        );
        return None;
    }
    if let Some(shape) = schemas.kind(&group_kind) {
        resource.plural = Some(Key::from(&*shape.plural));
        resource.namespaced = Some(shape.namespaced);
        check_version(&at.field("apiVersion"), shape, version);
    } else if let Some(plural) = schemas.declared_plural(&group_kind) {
        resource.plural = Some(plural.clone());
    } else if resource.plural.is_none() && &*group_kind.group != names::GROUP {
        if kinds::is_built_in_group(group) {
            let message = format!("Kubernetes has no kind {group_kind}");
            match kinds::meant(&group_kind) {
                Some(meant) => at.field("kind").error_hint(
                    Code::UnknownKind,
                    message,
                    format!("did you mean {meant}?"),
                ),
                None => at.field("kind").error(Code::UnknownKind, message),
            }
            return None;
        }
        let plural = kinds::guess_plural(kind);
        at.field("kind").warn(
            Code::GuessedPlural,
            format!("{group_kind} is not known here: its permissions are derived for the plural `{plural}`"),
        );
    }
    Some(resource)
}

/// Returns the kind of children at `at`; without `apiVersion` a built-in one. `None` after an error, which is reported.
pub(crate) fn managed(
    at: &At<'_>,
    api_version: Option<&Text>,
    kind: &Text,
    schemas: &Schemas,
) -> Option<ResourceType> {
    if let Some(api_version) = api_version {
        return child(at, api_version, kind, schemas);
    }
    let text = literal(&at.field("kind"), kind)?;
    let Some(known) = kinds::named(text).filter(|known| *known.kind == *text) else {
        let hint = match kinds::named(text) {
            Some(meant) => format!("did you mean `{}`?", meant.kind),
            None => "write its `apiVersion`, too".to_owned(),
        };
        let message = format!("Kubernetes has no kind `{text}`");
        at.field("kind")
            .error_hint(Code::UnknownKind, message, hint);
        return None;
    };
    child(at, &Text::from(known.api_version()), kind, schemas)
}

/// Returns the kind of children at `at`, as far as it is known; `None` after an error, which is reported.
fn child(at: &At<'_>, api_version: &Text, kind: &Text, schemas: &Schemas) -> Option<ResourceType> {
    let resource = resource(at, api_version, kind, schemas)?;
    let group_kind = resource.group_kind();
    if &*group_kind.group == names::GROUP {
        at.field("kind").error(
            Code::ReservedKind,
            format!("{group_kind} is Orkestra's own: an operator cannot create operators"),
        );
        return None;
    }
    Some(resource)
}

/// Returns the kind of the object, as far as it is known; `None` after an error, which is reported.
pub(crate) fn kind(at: &At<'_>, entry: &Custom, schemas: &Schemas) -> Option<ResourceType> {
    let mut resource = child(at, &entry.api_version, &entry.kind, schemas)?;
    let group_kind = resource.group_kind();
    match (entry.namespaced, resource.namespaced) {
        (Some(declared), Some(known)) if declared != known => {
            at.field("namespaced").error(
                Code::KindMismatch,
                format!(
                    "{group_kind} is {}",
                    if known {
                        "namespaced"
                    } else {
                        "cluster-scoped"
                    }
                ),
            );
        }
        (Some(declared), None) => resource.namespaced = Some(declared),
        _ => {}
    }
    Some(resource)
}

/// Returns group and version; `None` if the text is invalid, which is reported.
fn group_and_version<'a>(at: &At<'_>, text: &'a str) -> Option<(&'a str, &'a str)> {
    match text.split_once('/') {
        // The core group has only one version.
        None if text == "v1" => return Some(("", text)),
        Some((group, version))
            if !group.is_empty() && !version.is_empty() && !version.contains('/') =>
        {
            return Some((group, version));
        }
        _ => {}
    }
    let message = format!(
        "`{text}` is not a valid API version: expected `group/version`, or `v1` for the core group"
    );
    if kinds::is_built_in_group(text) {
        at.error_hint(Code::BadApiVersion, message, format!("write `{text}/v1`"));
    } else {
        at.error(Code::BadApiVersion, message);
    }
    None
}

fn literal<'a>(at: &At<'_>, text: &'a Text) -> Option<&'a str> {
    let text = text.as_str().trim();
    if text.contains("{{") {
        at.error_hint(
            Code::NotATemplate,
            "this cannot be a template",
            "permissions and watches depend on it before any custom resource exists: write a literal value",
        );
        return None;
    }
    if text.is_empty() {
        at.error(Code::Empty, "the value is empty");
        return None;
    }
    Some(text)
}

fn check_version(at: &At<'_>, shape: &CrdShape, version: &str) {
    if !shape.serves(version) {
        at.error(
            Code::KindMismatch,
            format!(
                "{} is not served as `{version}` but as {}",
                shape.group_kind(),
                shape.served().join(", ")
            ),
        );
    }
}

/// Returns the root fields of the object, without those that every child has.
pub(crate) fn expand(at: &At<'_>, entry: &Custom, kind: &GroupKind) -> Fields {
    let mut root = Fields::default();
    let is_secret = kind.group.is_empty() && &*kind.kind == "Secret";
    let at = at.inside(&entry.api_version);
    for (key, value) in &entry.body {
        let at = at.field(key);
        if LATER.contains(&&**key) {
            at.error(
                Code::NotSupportedYet,
                format!("`{key}` is not supported here yet"),
            );
        } else if is_secret && key == "stringData" {
            root.put("data", secret_data(&at, value, entry.body.get("data")));
        } else if !(is_secret && key == "data" && entry.body.contains_key("stringData")) {
            root.put(key, at.manifest(value));
        }
    }
    root
}

/// Converts `stringData` to `data`: the API server keeps our ownership of `stringData` whatever happens to `data`.
fn secret_data(at: &At<'_>, texts: &Node, encoded: Option<&Node>) -> Option<ObjectTree> {
    if let (Node::Str(text), None) = (texts, encoded) {
        let leaf = at.whole_leaf(&Text::from(&**text), Whole::Secret);
        return leaf.map(ObjectTree::Leaf);
    }
    let (Some(texts), None) = (texts.as_map(), encoded) else {
        at.error(
            Code::Exclusive,
            "`stringData` is a map of texts and excludes `data`",
        );
        return None;
    };
    let texts = texts.iter().filter_map(|(key, value)| {
        let text = value.as_str();
        if text.is_none() {
            at.field(key).error(Code::WrongValue, "this is not text");
        }
        Some((key.to_string(), Text::from(text?)))
    });
    let texts: BTreeMap<String, Text> = texts.collect();
    config::data(at, &texts.into(), Coerce::Base64)
}
