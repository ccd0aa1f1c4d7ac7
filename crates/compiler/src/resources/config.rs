//! `configMaps` and `secrets`.

use std::collections::BTreeMap;

use super::{Child, CopySource, Metadata, Shorthand};
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{
        children::{ConfigMap, Copies, Secret},
        or_template::OrTemplate,
        scalar::Text,
    },
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree};

/// Longest key of a `ConfigMap` or Secret, in bytes.
const KEY_BYTES: usize = 253;

/// The type of a certificate Secret. Source: Kubernetes, "Types of Secret".
const TLS_TYPE: &str = "kubernetes.io/tls";

impl Shorthand for ConfigMap {
    fn copies(&self) -> Option<(CopySource<'_>, &Copies)> {
        let source = CopySource {
            field: "fromConfigMap",
            kind: self.resource().group_kind(),
            parts: &["data", "binaryData"],
            name: self.from_config_map.as_ref(),
        };
        Some((source, &self.copies))
    }

    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let at = &child.at;
        let mut root = Fields::default();
        root.put("data", data(&at.field("data"), &self.data, Coerce::Text));
        root
    }
}

impl Shorthand for Secret {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        secret(&child.at, self)
    }
}

/// Returns the root fields of a Secret. Its texts go to `data`, not to `stringData`: the API server keeps our ownership of
/// `stringData` whatever happens to `data`.
pub(crate) fn secret(at: &At<'_>, entry: &Secret) -> Fields {
    let mut root = Fields::default();
    match (&entry.tls, &entry.type_) {
        // Its data is generated.
        (Some(_), _) => return certificate(),
        (None, Some(text)) => root.put("type", at.text_field("type", Some(text))),
        (None, None) if entry.from_secret.is_some() => {}
        (None, None) => root.put_text("type", "Opaque"),
    }
    root.put("data", data(&at.field("data"), &entry.data, Coerce::Base64));
    root
}

/// Returns the root fields of a certificate Secret.
pub(crate) fn certificate() -> Fields {
    let mut root = Fields::default();
    root.put_text("type", TLS_TYPE);
    root
}

/// Returns texts by key; `None` if there are none.
pub(crate) fn data(
    at: &At<'_>,
    texts: &OrTemplate<BTreeMap<String, Text>>,
    coerce: Coerce,
) -> Option<ObjectTree> {
    for key in texts.keys() {
        check_key(&at.key(key), key);
    }
    at.map_of_texts(texts, coerce)
}

/// Source: Kubernetes API reference, `ConfigMap.data`.
fn check_key(at: &At<'_>, key: &str) {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.contains("{{") {
        return; // Reported as a template.
    }
    if key.is_empty()
        || key.len() > KEY_BYTES
        || !key.chars().all(legal)
        || matches!(key, "." | "..")
    {
        let message = format!(
            "`{key}` is not a valid key: expected up to {KEY_BYTES} letters, digits, `-`, `_` and `.`"
        );
        let instead = key.replace(|c| !legal(c), "-");
        if instead == key {
            at.error(Code::BadKey, message);
        } else {
            at.error_hint(Code::BadKey, message, format!("write `{instead}`"));
        }
    }
}
