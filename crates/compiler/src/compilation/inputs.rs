//! What a compilation asks for, and the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::compose::{Artifact, Locked, SourceRequest};
use orkestra_language::diagnostics::Diagnostic;
use orkestra_language::document::MotifDocument;
use orkestra_object::value;
use orkestra_plan::GroupKind;
use orkestra_plan::definitions::Schemas;

/// Motifs of the cluster by name; none if there is no such Motif.
pub type UsedMotifs = BTreeMap<String, Option<Arc<Value>>>;

/// An input that a compilation needs.
#[derive(Debug, Clone, PartialEq)]
pub enum InputRequest {
    /// A source of the composition; if it is locked, in that revision.
    Source(Box<SourceRequest>, Option<Locked>),
    /// The Motif of this name: of the namespace, or among the files that are given.
    Motif(String),
    /// The Motif of a registry, by its reference.
    Artifact(String),
    /// The text of a file.
    File(PathBuf),
    /// The custom resource definitions of these kinds.
    Schemas(BTreeSet<GroupKind>),
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub enum InputAnswer {
    /// The source of this identity.
    Source(String, SourceAnswer),
    /// The Motif of this name.
    Motif(String, MotifAnswer),
    /// The Motif of a registry, or why there is none.
    Artifact(String, Result<Arc<Artifact>, String>),
    /// The text of a file, or why it cannot be read.
    File(PathBuf, Result<String, UnreadFile>),
    /// The definitions of these kinds, as far as they exist.
    Schemas(BTreeSet<GroupKind>, Schemas),
}

/// What is known about a source.
#[derive(Debug, Clone)]
pub enum SourceAnswer {
    /// It was fetched.
    Fetched(Arc<Artifact>),
    /// It cannot be fetched, and nothing waits for it.
    Failed(Box<Diagnostic>),
    /// It is not there yet, with the reason if the last attempt failed.
    Awaited(Option<String>),
}

/// A Motif by its name.
#[derive(Debug, Clone)]
pub enum MotifAnswer {
    /// An object of the cluster.
    Object(Arc<Value>),
    /// A document among the files.
    Document(Arc<MotifDocument>),
    /// Why there is none.
    Absent(String),
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct UnreadFile {
    /// Whether there is no such file.
    pub is_missing: bool,
    /// The reason.
    pub why: String,
}

/// The known inputs.
#[derive(Debug, Default)]
pub(crate) struct KnownInputs {
    sources: BTreeMap<String, SourceAnswer>,
    pub(crate) motifs: BTreeMap<String, MotifAnswer>,
    pub(crate) artifacts: BTreeMap<String, Result<Arc<Artifact>, String>>,
    pub(crate) files: BTreeMap<PathBuf, Result<String, UnreadFile>>,
    /// The definitions, and the kinds that they were requested for.
    pub(crate) schemas: Option<(BTreeSet<GroupKind>, Schemas)>,
}

impl KnownInputs {
    pub(crate) fn put(&mut self, answer: InputAnswer) {
        match answer {
            InputAnswer::Source(id, source) => drop(self.sources.insert(id, source)),
            InputAnswer::Motif(name, motif) => drop(self.motifs.insert(name, motif)),
            InputAnswer::Artifact(text, motif) => drop(self.artifacts.insert(text, motif)),
            InputAnswer::File(path, text) => drop(self.files.insert(path, text)),
            InputAnswer::Schemas(kinds, schemas) => self.schemas = Some((kinds, schemas)),
        }
    }

    pub(crate) fn source(&self, id: &str) -> Option<&SourceAnswer> {
        self.sources.get(id)
    }

    /// Returns the Motifs of the cluster.
    pub(crate) fn objects(&self) -> UsedMotifs {
        let objects = self.motifs.iter().map(|(name, motif)| {
            let object = match motif {
                MotifAnswer::Object(object) => Some(Arc::clone(object)),
                MotifAnswer::Document(_) | MotifAnswer::Absent(_) => None,
            };
            (name.clone(), object)
        });
        objects.collect()
    }

    /// Returns the definitions, if they were requested for all of these kinds.
    pub(crate) fn schemas_of(&self, kinds: &BTreeSet<GroupKind>) -> Option<&Schemas> {
        let (known, schemas) = self.schemas.as_ref()?;
        kinds.is_subset(known).then_some(schemas)
    }

    /// Returns a hash of everything but schemas.
    pub(crate) fn hash(&self) -> String {
        let mut parts = Vec::new();
        let mut add = |id: &str, content: &str| {
            parts.push(value::hash_text(id));
            parts.push(value::hash_text(content));
        };
        for (id, source) in &self.sources {
            match source {
                SourceAnswer::Fetched(artifact) => {
                    add(id, &format!("{} {}", artifact.revision, artifact.digest));
                }
                SourceAnswer::Failed(problem) => add(id, &problem.to_string()),
                SourceAnswer::Awaited(why) => add(id, why.as_deref().unwrap_or_default()),
            }
        }
        for (name, motif) in &self.motifs {
            match motif {
                MotifAnswer::Object(object) => add(name, &object.to_string()),
                MotifAnswer::Document(motif) => add(name, &motif.tree.to_json().to_string()),
                MotifAnswer::Absent(why) => add(name, why),
            }
        }
        for (reference, motif) in &self.artifacts {
            add(
                reference,
                motif.as_ref().map_or_else(|why| why, |found| &found.digest),
            );
        }
        for (path, text) in &self.files {
            let text = text.as_ref().unwrap_or_else(|unread| &unread.why);
            add(&path.display().to_string(), text);
        }
        value::hash_text(&parts.concat())
    }
}
