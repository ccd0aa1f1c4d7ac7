//! The result of a merge, and how it is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::artifact::{Artifact, Verified};
use super::assemble::{Assembled, Head, MemberKatalog, whole};
use super::includes::Included;
use crate::api::{KatalogSpec, Scope, SourceStatus};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use crate::document::{KatalogDocument, Source};
use crate::tree::{Layer, Tree};
use crate::{
    definitions::Schemas,
    scope::{Library, Reference},
};

/// A composition with everything that is needed to run it: its sources are not read again.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The sources, in the order in which they were merged.
    pub sources: Vec<SourceRecord>,
    /// The merged Katalog, with the name and the labels of the composition. Its `spec` has a scope for each source, which are
    /// not part of its serialized form: store [`Resolved::to_json`], never the `spec` alone.
    pub document: KatalogDocument,
    pub(super) includes: Included,
    /// The composition as a Katalog without entries.
    pub(super) head: Tree,
}

/// One source of a resolved composition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceRecord {
    /// The identity of its request.
    pub source: String,
    /// Its URL, see [`Artifact::url`].
    pub url: String,
    /// Its revision.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Its digest.
    pub digest: String,
    /// The result of verifying its signatures.
    #[serde(default)]
    pub verified: Verified,
    /// The names of its operators, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
}

impl SourceRecord {
    /// Returns the record of a source without its operators.
    pub fn of(source: &str, artifact: &Artifact) -> Self {
        Self {
            source: source.to_owned(),
            url: artifact.url.clone(),
            revision: artifact.revision.clone(),
            digest: artifact.digest.clone(),
            verified: artifact.verified.clone(),
            operators: Vec::new(),
        }
    }

    /// Returns it as a status reports it.
    pub fn row(&self) -> SourceStatus {
        let (verified, message) = match &self.verified {
            Verified::By(who) => (Some(who.clone()), String::new()),
            Verified::Warned(why) => (None, why.clone()),
            Verified::NotRequired => (None, String::new()),
        };
        SourceStatus {
            source: self.source.clone(),
            url: self.url.clone(),
            revision: self.revision.clone(),
            digest: self.digest.clone(),
            verified,
            message,
        }
    }
}

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

impl Resolved {
    /// Returns the merged `spec`, for `compile::katalog`.
    pub fn spec(&self) -> &KatalogSpec {
        &self.document.spec
    }

    /// Returns the source of an operator; `None` for one that the composition declares itself.
    pub fn source_of(&self, operator: &str) -> Option<&SourceRecord> {
        let has = |name: &String| name == operator;
        self.sources
            .iter()
            .find(|source| source.operators.iter().any(has))
    }

    /// Answers the references of its Katalogs that lead to files of their artifacts. Returns the others, which the caller
    /// answers: files on disk, and Motifs of the cluster by name.
    pub fn fill(&self, library: &mut Library, missing: Vec<Reference>) -> Vec<Reference> {
        self.includes.fill(library, missing)
    }

    /// Adds the custom resource definitions that are files of artifacts.
    pub fn add_schemas(&self, schemas: &mut Schemas) {
        self.includes.schemas(&self.document.spec, schemas);
    }

    /// Returns the document that a field of an entry comes from, as in messages.
    pub fn file_of(&self, path: &FieldPath) -> Option<&str> {
        match path.segments().get(2) {
            Some(crate::tree::Segment::Field(name)) => {
                let scope = self.document.spec.scopes.of(name)?;
                Some(scope.origin.owner(path).0)
            }
            _ => self.document.file.as_deref(),
        }
    }

    /// Returns a file that the field at `path` names: its name and content, or why there is none. `None` if it is not in an
    /// artifact, but beside [`Resolved::file_of`] on disk.
    pub fn manifest(&self, path: &FieldPath, text: &str) -> Option<Result<(String, &str), String>> {
        self.includes.manifest(self.file_of(path)?, text)
    }

    /// Returns the document of a place in a plan: its name in messages, the path in it, and its tree.
    pub fn place(&self, at: &str) -> Option<(&str, FieldPath, &Tree)> {
        self.document.spec.scopes.0.iter().find_map(|scope| {
            let path = at.strip_prefix(&*scope.origin.name)?.strip_prefix(": ")?;
            let path = FieldPath::parse(path);
            let (file, tree) = scope.origin.owner(&path);
            Some((file, path, tree))
        })
    }

    /// Sets file and position of the problems of entries.
    pub fn locate(&self, problems: &mut Diagnostics) {
        for problem in &mut problems.0 {
            super::assemble::locate(problem, &self.document.spec.scopes);
        }
    }

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

    /// Reads what [`Resolved::to_json`] returned, with warnings.
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
        };
        Ok((resolved, found.into_result()?))
    }
}
