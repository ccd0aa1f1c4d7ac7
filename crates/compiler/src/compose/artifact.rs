//! Fetched sources, and what is recorded of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use orkestra_language::api::SourceStatus;

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
    /// The names of the operators that its documents can affect, sorted: its own, and those of the sources that its documents
    /// name, which they may override.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affected: Vec<String>,
}

/// Artifacts by the identity of their request.
pub type Artifacts = BTreeMap<String, Arc<Artifact>>;

impl Artifact {
    /// Returns the documents of a `ConfigMap`: those of one key, or of every key that ends in `.yaml`.
    ///
    /// # Errors
    /// Why there are none.
    pub fn of_config_map(
        name: &str,
        key: Option<&str>,
        data: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let is_wanted = |name: &str| match key {
            Some(key) => name == key,
            None => name.strip_suffix(".yaml").is_some(),
        };
        let wanted = data.iter().filter(|(name, _)| is_wanted(name));
        let documents: Vec<Fetched> = wanted
            .map(|(name, text)| Fetched {
                name: name.clone(),
                text: text.clone(),
            })
            .collect();
        if documents.is_empty() {
            let what = match key {
                Some(key) => format!("no key `{key}`"),
                None => "no key that ends in `.yaml`".to_owned(),
            };
            return Err(format!("ConfigMap `{name}` has {what}"));
        }
        Ok(Self {
            url: format!("configmap/{name}"),
            digest: Self::digest_of(&documents),
            documents,
            ..Self::default()
        })
    }

    /// Returns the name of one of its files in messages: `oci://host/path@sha256:…/katalog.yaml`.
    pub fn file(&self, name: &str) -> String {
        match name {
            "" => self.url.clone(),
            name => format!("{}/{name}", self.root()),
        }
    }

    /// Returns what the names of its files in messages begin with.
    pub(crate) fn root(&self) -> String {
        let url = &self.url;
        let is_single = self.documents.iter().all(|file| file.name.is_empty());
        match url.split_once("://") {
            Some(("oci", _)) => match super::OciReference::parse(url) {
                Ok(reference) => format!("oci://{}@{}", reference.repository(), self.digest),
                Err(_) => format!("{url}@{}", self.digest),
            },
            Some(_) if !self.revision.is_empty() && !is_single => {
                format!("{url}@{}", self.revision)
            }
            _ => url.clone(),
        }
    }

    /// Returns a digest over documents, for sources that have none of their own.
    pub fn digest_of(documents: &[Fetched]) -> String {
        let mut digest = Sha256::new();
        for Fetched { name, text } in documents {
            for part in [name, text] {
                // With its length, so that no text can pose as the end of another.
                digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
                digest.update(part);
            }
        }
        let mut text = "sha256:".to_owned();
        for byte in digest.finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Returns the content of a file.
    pub fn text(&self, name: &str) -> Option<&str> {
        let file = self.documents.iter().find(|file| file.name == name)?;
        Some(&file.text)
    }
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
            affected: Vec::new(),
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
