//! Reads the metadata of artifacts in registries, before any layer.

use super::{CONFIG, Kind, Lifecycle, MOST_FILE, MOST_TOTAL, Summary, TITLE, check_name};
use crate::{Client, Content, Descriptor, Error, Fetched, Manifest, Reference};

/// The maximum length of a configuration, in bytes.
const MOST_CONFIG: usize = 1 << 20;
/// The maximum number of rules and of declared kinds kept from a configuration.
const MOST_LISTED: usize = 4096;

/// An artifact of a registry, without its layers.
#[derive(Clone, Debug)]
pub struct RemoteArtifact {
    /// The manifest as it was received.
    pub fetched: Fetched,
    /// The parsed manifest.
    pub manifest: Manifest,
    /// The kind.
    pub kind: Kind,
    /// The names of the files, and their descriptors.
    pub files: Vec<(String, Descriptor)>,
    /// The summary; `None` if the tool that pushed the artifact did not add one.
    pub summary: Option<Summary>,
    /// The deprecation, if any.
    pub lifecycle: Option<Lifecycle>,
}

impl RemoteArtifact {
    /// Returns the size of all files together, in bytes.
    pub fn size(&self) -> u64 {
        self.files
            .iter()
            .map(|(_, layer)| layer.size)
            .fold(0, u64::saturating_add)
    }
}

impl Client {
    /// Reads the manifest and configuration of an artifact, and checks the declared properties of its layers.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it is not an artifact of Orkestra or exceeds a limit; also the errors of [`Client::fetch`].
    pub async fn open(&self, reference: &Reference) -> Result<RemoteArtifact, Error> {
        let fetched = self.fetch(reference).await?;
        let wrong = |why: String| Error::Malformed {
            what: reference.to_string(),
            why,
        };
        let Content::Manifest(manifest) = fetched.content.clone() else {
            return Err(wrong(
                "it is an index of several manifests, expected one Katalog or Motif".to_owned(),
            ));
        };
        let files = files(&manifest).map_err(wrong)?;
        let kind = kind(&manifest, &files).map_err(wrong)?;
        let config = &manifest.config;
        let summary = if config.media_type == CONFIG {
            let bytes = self
                .fetch_blob(&reference.repository, config, MOST_CONFIG)
                .await?;
            let summary: Summary = serde_json::from_slice(&bytes)
                .map_err(|error| wrong(format!("its configuration is not valid: {error}")))?;
            if summary.kind != kind {
                return Err(wrong(format!(
                    "its configuration is that of a {}, but its type is that of a {}",
                    summary.kind.name(),
                    kind.name()
                )));
            }
            if summary.declares.len() > MOST_LISTED || summary.permissions.len() > MOST_LISTED {
                return Err(wrong("its configuration lists too many items".to_owned()));
            }
            Some(summary)
        } else {
            None
        };
        Ok(RemoteArtifact {
            kind,
            files,
            summary,
            lifecycle: Lifecycle::of(&manifest.annotations),
            manifest,
            fetched,
        })
    }
}

/// Returns the layers by the names of their files.
pub(crate) fn files(manifest: &Manifest) -> Result<Vec<(String, Descriptor)>, String> {
    let mut files: Vec<(String, Descriptor)> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut total = 0_u64;
    for layer in &manifest.layers {
        let Some(name) = layer.annotation(TITLE) else {
            return Err(format!(
                "the layer {} has no file name ({TITLE})",
                layer.digest
            ));
        };
        check_name(name)?;
        if layer.annotation("io.deis.oras.content.unpack") == Some("true") {
            return Err(format!(
                "`{name}` is a packed folder: push its files one by one"
            ));
        }
        if !seen.insert(name.to_lowercase()) {
            return Err(format!("`{name}` is in it twice"));
        }
        if layer.size > MOST_FILE {
            return Err(format!(
                "`{name}` has {} bytes, more than {MOST_FILE}",
                layer.size
            ));
        }
        total = total.saturating_add(layer.size);
        files.push((name.to_owned(), layer.clone()));
    }
    if total > MOST_TOTAL {
        return Err(format!(
            "its files have {total} bytes together, more than {MOST_TOTAL}"
        ));
    }
    Ok(files)
}

/// Returns the kind of an artifact from its type, which must agree with its files.
pub(crate) fn kind(manifest: &Manifest, files: &[(String, Descriptor)]) -> Result<Kind, String> {
    // Without an artifact type, the type of the configuration applies. Source: OCI image specification, "Guidelines for
    // Artifact Usage".
    let type_ = manifest
        .artifact_type
        .as_ref()
        .unwrap_or(&manifest.config.media_type);
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| kind.artifact_type() == type_);
    let Some(kind) = kind else {
        let found = crate::manifest::short(type_);
        return Err(format!(
            "its type is `{found}`, expected {} or {}",
            Kind::Katalog.artifact_type(),
            Kind::Motif.artifact_type()
        ));
    };
    let file = kind.file();
    if !files.iter().any(|(name, _)| name == file) {
        return Err(format!("it is a {} without a {file}", kind.name()));
    }
    Ok(kind)
}
