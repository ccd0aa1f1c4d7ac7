//! Drafts Katalogs from existing input: a `CustomResourceDefinition`, manifests, a chart, a definition of kro.
//!
//! ```text
//!  text ── input ──► objects ── crd, manifests, kro, helm ──► Draft ── text ──► katalog.yaml, crd.yaml, a sample
//!                                                              └── left: parts that were not converted, with reasons
//! ```
//!
//! A draft is a starting point: it compiles, and its sample is valid. Input is untrusted: its size is limited during
//! parsing, and any input results in a draft or an [`Error`].

mod crd;
mod definition;
mod fields;
mod helm;
mod input;
mod kro;
mod manifests;
mod naming;
mod sample;
#[cfg(test)]
mod tests;
mod yaml;

use serde_json::{Value, json};

pub use crd::from_crd;
pub use helm::from_helm;
pub use input::{Error, Input};
pub use kro::from_kro;
pub use manifests::from_manifests;
pub use naming::camel_case;

use orkestra_language::api::names;
use orkestra_plan::guess_plural;

/// A draft of a Katalog, its CRD, and a custom resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Name of the Katalog and of its entry.
    pub name: String,
    /// The kind that it operates.
    pub kind: CustomKind,
    /// The `CustomResourceDefinition`.
    pub crd: Value,
    /// The entry's `operatorBox`.
    pub operator_box: Value,
    /// Further fields of the entry.
    pub entry: Value,
    /// The custom resource.
    pub sample: Value,
    /// One line for each part that was not converted or needs a check, with the reason.
    pub left: Vec<String>,
}

/// A kind of custom resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CustomKind {
    /// API group.
    pub group: String,
    /// The version in the Katalog.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// Plural, in lower case.
    pub plural: String,
    /// Singular, in lower case.
    pub singular: String,
}

impl CustomKind {
    /// Generates a kind; the default is the name in CamelCase.
    fn made_up(name: &str, kind: Option<&str>, group: &str) -> Self {
        let kind = kind.map_or_else(|| camel_case(name), str::to_owned);
        let singular = kind.to_lowercase();
        Self {
            group: group.to_owned(),
            version: definition::VERSION.to_owned(),
            plural: guess_plural(&singular),
            kind,
            singular,
        }
    }
}

impl Draft {
    /// Returns the Katalog as an object.
    pub fn katalog(&self) -> Value {
        let CustomKind {
            group,
            version,
            kind,
            plural,
            singular: _,
        } = &self.kind;
        let mut entry = json!({
            "crdFile": "crd.yaml",
            "apiTypes": { "group": group, "version": version, "kind": kind, "plural": plural },
            "operatorBox": self.operator_box,
        });
        if let (Some(fields), Some(more)) = (entry.as_object_mut(), self.entry.as_object()) {
            fields.extend(more.clone());
        }
        let mut crds = serde_json::Map::new();
        crds.insert(self.name.clone(), entry);
        json!({
            "apiVersion": names::API_VERSION,
            "kind": "Katalog",
            "metadata": { "name": self.name },
            "spec": { "crds": crds },
        })
    }

    /// Returns `katalog.yaml`: a line for editors, the points to check by hand, and the Katalog.
    ///
    /// # Errors
    /// [`Error::Write`], a bug in Orkestra.
    pub fn katalog_text(&self) -> Result<String, Error> {
        let mut text = String::from("# yaml-language-server: $schema=katalog.schema.json\n");
        text.push_str(&yaml::comment(&format!(
            "The operator of the kind {}: the children of each custom resource.",
            self.kind.kind
        )));
        if !self.left.is_empty() {
            text.push_str("#\n# To check by hand:\n");
        }
        for left in &self.left {
            text.push_str(&yaml::comment(&format!("- {left}")));
        }
        text.push_str(&yaml::write(&self.katalog())?);
        Ok(text)
    }

    /// Returns `crd.yaml`.
    ///
    /// # Errors
    /// [`Error::Write`], a bug in Orkestra.
    pub fn crd_text(&self) -> Result<String, Error> {
        yaml::write(&self.crd)
    }

    /// Returns the custom resource as YAML.
    ///
    /// # Errors
    /// [`Error::Write`], a bug in Orkestra.
    pub fn sample_text(&self) -> Result<String, Error> {
        yaml::write(&self.sample)
    }
}

/// Escapes a text for the template language, so that `{{` begins no action.
fn literal(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

/// True if a field can be read with dots: `.spec.name`.
fn is_plain(key: &str) -> bool {
    let mut chars = key.chars();
    chars
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Removes the metadata of a child that its author does not control, and the namespace if it is the custom resource's.
fn keep_child_metadata(metadata: &mut serde_json::Map<String, Value>) {
    metadata
        .retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&key.as_str()));
    if metadata
        .get("namespace")
        .is_some_and(|one| one == "{{ .metadata.namespace }}")
    {
        metadata.remove("namespace");
    }
}

/// Returns the value at a path of plain keys.
fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// Returns the text at a path of plain keys.
fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}
