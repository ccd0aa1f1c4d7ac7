//! Fetched sources.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The documents of one source at one revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Where it was fetched from, as shown in messages: without credentials, and without the value of a variable. For a file on
    /// disk, its path as messages show it.
    pub url: String,
    /// The revision: a tag, `branch@commit`, the version of a chart; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The digest of the content: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The documents, in order.
    pub documents: Vec<Fetched>,
    /// The result of verifying signatures.
    #[serde(default)]
    pub verified: Verified,
}

/// One file of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// Its path in the artifact, such as `katalog.yaml` or `motifs/reeds.yaml`; the key of a `ConfigMap`; the name of a Katalog
    /// of the cluster. Empty if the artifact is one file, whose `url` says everything.
    pub name: String,
    /// The content.
    pub text: String,
}

/// The result of verifying the signatures of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verified {
    /// No signature was required.
    #[default]
    NotRequired,
    /// Signed by this key or identity.
    By(String),
    /// Required by a policy that only warns, and missing or wrong: the reason.
    Warned(String),
}

/// Artifacts by the identity of their request.
pub type Artifacts = BTreeMap<String, Arc<Artifact>>;

impl Artifact {
    /// Returns the name of one of its files in messages: `oci://host/path@sha256:…/katalog.yaml`.
    pub fn file(&self, name: &str) -> String {
        let url = &self.url;
        if name.is_empty() {
            return url.clone();
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return format!("{url}/{name}");
        };
        match scheme {
            "oci" => match super::OciReference::parse(url) {
                Ok(reference) => format!("oci://{}@{}/{name}", reference.repository(), self.digest),
                Err(_) => format!("{url}@{}/{name}", self.digest),
            },
            _ if self.revision.is_empty() => format!("{url}/{name}"),
            _ => format!("{scheme}://{rest}@{}/{name}", self.revision),
        }
    }

    /// Returns the content of a file.
    pub fn text(&self, name: &str) -> Option<&str> {
        let file = self.documents.iter().find(|file| file.name == name)?;
        Some(&file.text)
    }
}

/// True for `sha256:` and 64 hexadecimal digits in lower case.
pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}
