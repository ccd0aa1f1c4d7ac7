//! The stored form of a resolved composition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::artifact::SourceRecord;
use super::assemble::{Assembled, Head, whole};
use super::composition::MemberKatalog;
use super::includes::Included;
use super::locks::RequiredLock;
use super::resolved::ResolvedComposition;
use orkestra_language::api::Scope;
use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use orkestra_language::document::Source;
use orkestra_language::tree::Layer;

/// A composition in its stored form.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    head: Value,
    sources: Vec<SourceRecord>,
    parts: Vec<StoredPart>,
    #[serde(default)]
    includes: Included,
}

/// One Katalog in its stored form.
#[derive(Serialize, Deserialize)]
struct StoredPart {
    name: String,
    file: String,
    katalog: String,
    document: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    over: Vec<StoredLayer>,
}

/// Overrides in their stored form.
#[derive(Serialize, Deserialize)]
struct StoredLayer {
    file: String,
    document: Value,
}

impl ResolvedComposition {
    /// Returns everything that is needed to run the composition. Positions in files are not included.
    pub fn to_json(&self) -> Value {
        let part = |scope: &Scope| StoredPart {
            name: scope.origin.name.to_string(),
            file: scope.origin.file.to_string(),
            katalog: scope.katalog.to_string(),
            document: scope.origin.tree.to_json(),
            over: (scope.origin.over.iter())
                .map(|layer| StoredLayer {
                    file: layer.file.to_string(),
                    document: layer.tree.to_json(),
                })
                .collect(),
        };
        let document = &self.document;
        let stored = Stored {
            name: document.name.clone(),
            namespace: document.namespace.clone(),
            labels: document.labels.clone(),
            annotations: document.annotations.clone(),
            file: document.file.clone(),
            head: self.head.to_json(),
            sources: self.sources.clone(),
            parts: document.spec.scopes.0.iter().map(part).collect(),
            includes: self.includes.clone(),
        };
        // Only maps with keys that are text, which always serialize.
        serde_json::to_value(stored).unwrap_or_default()
    }

    /// Reads what [`ResolvedComposition::to_json`] returned, with warnings.
    ///
    /// # Errors
    /// A value of another form, or documents that are no longer valid.
    pub fn from_json(value: &Value) -> Result<(Self, Vec<Diagnostic>), Diagnostics> {
        let other = |why: String| {
            let message = format!("this is not a stored composition: {why}");
            Diagnostics::from(Diagnostic::error(
                Code::WrongShape,
                FieldPath::root(),
                message,
            ))
        };
        let stored = Stored::deserialize(value).map_err(|why| other(why.to_string()))?;
        let tree = |value: &Value| Source::from_object(value).map(|source| source.tree);
        let mut parts = Vec::with_capacity(stored.parts.len());
        for part in stored.parts {
            let layer = |layer: StoredLayer| {
                Ok(Layer {
                    tree: tree(&layer.document)?,
                    file: layer.file.into(),
                })
            };
            parts.push(MemberKatalog {
                tree: tree(&part.document)?,
                over: part
                    .over
                    .into_iter()
                    .map(layer)
                    .collect::<Result<_, Diagnostics>>()?,
                name: part.name,
                file: part.file,
                katalog: part.katalog,
                source: None,
                within: Vec::new(),
                spec: None,
            });
        }
        let head = Head {
            name: stored.name,
            namespace: stored.namespace,
            labels: stored.labels,
            annotations: stored.annotations,
            file: stored.file,
            tree: tree(&stored.head)?,
        };
        let mut found = Diagnostics::default();
        let Assembled { document, sources } = whole(&head, parts, stored.sources, &mut found)?;
        let resolved = Self {
            sources,
            document,
            includes: stored.includes,
            head: head.tree,
            required_lock: RequiredLock::default(),
        };
        Ok((resolved, found.into_result()?))
    }
}
