//! Objects of an installation.

use std::fmt;

use orkestra_object::value::{Key, Node};
use orkestra_plan::ObjectKey;

/// A document that cannot be applied.
#[derive(Debug, thiserror::Error)]
#[error("{source_file} renders a document without {missing}")]
pub struct ObjectError {
    /// The template.
    pub source_file: String,
    /// The missing field.
    pub missing: &'static str,
}

/// An object to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestObject {
    /// API group, empty for the core group.
    pub group: Key,
    /// Version.
    pub version: Key,
    /// Kind.
    pub kind: Key,
    /// Namespace and name.
    pub key: ObjectKey,
    /// The object.
    pub body: Node,
}

impl ManifestObject {
    /// Reads a document that a template rendered.
    ///
    /// # Errors
    /// It lacks `apiVersion`, `kind` or `metadata.name`.
    pub fn read(source_file: &str, body: Node) -> Result<Self, ObjectError> {
        let missing = |missing| ObjectError {
            source_file: source_file.to_owned(),
            missing,
        };
        let text = |node: &Node, field| node.get(field).and_then(Node::as_str).map(str::to_owned);
        let api_version = text(&body, "apiVersion").ok_or_else(|| missing("apiVersion"))?;
        let kind = text(&body, "kind").ok_or_else(|| missing("kind"))?;
        let metadata = body.get("metadata").ok_or_else(|| missing("metadata"))?;
        let name = text(metadata, "name").ok_or_else(|| missing("metadata.name"))?;
        let namespace = text(metadata, "namespace").map(Key::from);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        Ok(Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            key: ObjectKey {
                namespace,
                name: name.into(),
            },
            body,
        })
    }

    /// True if it is of that kind of that group.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group.as_str() == group && self.kind.as_str() == kind
    }

    /// True if it is a CRD.
    pub fn is_definition(&self) -> bool {
        self.is("apiextensions.k8s.io", "CustomResourceDefinition")
    }

    /// True if an uninstallation leaves it unless asked: CRDs and namespaces hold what others wrote.
    pub fn is_kept(&self) -> bool {
        self.is_definition() || self.is("", "Namespace")
    }

    /// Returns an annotation of the object.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.body.annotation(name)
    }
}

/// Returns the text at a path of fields.
pub(crate) fn text<'a>(object: &'a Node, path: &[&str]) -> Option<&'a str> {
    path.iter()
        .try_fold(object, |node, field| node.get(field))?
        .as_str()
}

/// Returns the status of a condition.
pub(crate) fn condition<'a>(object: &'a Node, type_: &str) -> Option<&'a str> {
    let conditions = object.get("status")?.get("conditions")?.as_list()?;
    let condition = conditions
        .iter()
        .find(|one| text(one, &["type"]) == Some(type_))?;
    text(condition, &["status"])
}

/// `Deployment orkestra-system/orkestra`.
impl fmt::Display for ManifestObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}
