//! The result of a merge.

use serde::{Deserialize, Serialize};

use super::artifact::{Artifact, Verified};
use crate::api::KatalogSpec;
use crate::document::KatalogDocument;

/// A composition with everything in it that is needed to run it: without its sources.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The sources, in the order in which they were merged.
    pub sources: Vec<SourceRecord>,
    /// The merged Katalog: the name and the labels of the composition, and a `spec` whose entries have the scopes of their
    /// sources. `plan::compile` takes its `spec`.
    pub document: KatalogDocument,
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
    pub(super) fn of(source: &str, artifact: &Artifact) -> Self {
        Self {
            source: source.to_owned(),
            url: artifact.url.clone(),
            revision: artifact.revision.clone(),
            digest: artifact.digest.clone(),
            verified: artifact.verified.clone(),
            operators: Vec::new(),
        }
    }
}

impl Resolved {
    /// Returns the merged `spec`, for `plan::compile`.
    pub fn spec(&self) -> &KatalogSpec {
        &self.document.spec
    }
}
