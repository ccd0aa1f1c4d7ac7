//! Manifests and indexes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Digest, Error};

/// The maximum size of a manifest or an index, in bytes. Source: OCI distribution specification, "Pushing Manifests"
/// (registries accept at least that much).
pub const MOST_MANIFEST: usize = 4 << 20;
/// The maximum number of layers of an artifact.
pub const MOST_LAYERS: usize = 512;
/// The maximum number of manifests read from an index.
pub const MOST_LISTED: usize = 1024;

/// Media types of the image specification.
pub mod media {
    /// An image manifest.
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// An image index.
    pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// Docker's image manifest, which has the same fields.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// Docker's list of manifests, which has the same fields.
    pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// `{}`, for a manifest without a configuration.
    pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
}

/// The type, digest and size of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The media type of the content.
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
    /// The type of a referrer, in lists of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Further information.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "annotations"
    )]
    pub annotations: Option<BTreeMap<String, String>>,
}

impl Descriptor {
    /// Describes content.
    pub fn of(media_type: &str, content: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(content),
            size: content.len() as u64,
            artifact_type: None,
            annotations: None,
        }
    }

    /// Returns an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

/// An image manifest: a configuration and layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// The media type of the manifest; empty if not declared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// The type of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The configuration.
    pub config: Descriptor,
    /// The layers.
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    /// The manifest that this one refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Further information.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "annotations"
    )]
    pub annotations: BTreeMap<String, String>,
}

/// An index: a list of manifests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// The media type of the index; empty if not declared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// The type of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The manifests.
    #[serde(default)]
    pub manifests: Vec<Descriptor>,
    /// Further information.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "annotations"
    )]
    pub annotations: BTreeMap<String, String>,
}

/// Deserializes annotations; Go's clients write `null` for none.
fn annotations<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// The target of a reference.
#[expect(clippy::large_enum_variant, reason = "one at a time is held")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A manifest.
    Manifest(Manifest),
    /// An index.
    Index(Index),
}

/// A manifest or an index as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The bytes, which match the digest.
    pub bytes: bytes::Bytes,
    /// The media type from the registry, which agrees with the one in the content.
    pub media_type: String,
    /// The digest of the bytes.
    pub digest: Digest,
    /// The parsed content.
    pub content: Content,
}

impl Fetched {
    /// Returns its descriptor.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::of(&self.media_type, &self.bytes)
    }
}

/// Parses a manifest or an index whose digest was checked. `media_type` is the type from the registry.
///
/// # Errors
/// [`Error::Malformed`] if it is not JSON of that form, declares another type, or is too large.
pub fn parse(media_type: &str, bytes: &[u8]) -> Result<Content, Error> {
    let media_type = essence(media_type);
    let wrong = |why: String| Error::Malformed {
        what: "manifest".to_owned(),
        why,
    };
    if bytes.len() > MOST_MANIFEST {
        return Err(wrong(format!("it has more than {MOST_MANIFEST} bytes")));
    }
    let content = match media_type {
        media::MANIFEST | media::DOCKER_MANIFEST => {
            let read = serde_json::from_slice::<Manifest>(bytes);
            Content::Manifest(read.map_err(|error| wrong(error.to_string()))?)
        }
        media::INDEX | media::DOCKER_LIST => {
            let read = serde_json::from_slice::<Index>(bytes);
            Content::Index(read.map_err(|error| wrong(error.to_string()))?)
        }
        other => {
            return Err(wrong(format!(
                "its media type `{}` is not supported",
                short(other)
            )));
        }
    };
    check_header(&content, media_type).map_err(wrong)?;
    // A text can be both at once, and a header that no digest covers would determine which one a client sees.
    // Source: CVE-2021-41190.
    let ManifestShape {
        layers,
        manifests,
        config,
    } = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    if manifests.is_some() && (layers.is_some() || config.is_some()) {
        return Err(wrong(
            "it has the fields of a manifest and those of an index".to_owned(),
        ));
    }
    Ok(content)
}

/// Checks version, media type and number of parts.
///
/// # Errors
/// The reason, as the end of a sentence.
fn check_header(content: &Content, media_type: &str) -> Result<(), String> {
    let (version, claimed, listed, most) = match content {
        Content::Manifest(manifest) => {
            let Manifest {
                schema_version,
                media_type,
                layers,
                ..
            } = manifest;
            (*schema_version, media_type, layers.len(), MOST_LAYERS)
        }
        Content::Index(index) => {
            let Index {
                schema_version,
                media_type,
                manifests,
                ..
            } = index;
            (*schema_version, media_type, manifests.len(), MOST_LISTED)
        }
    };
    if version != 2 {
        return Err(format!("its schemaVersion is {version}, expected 2"));
    }
    if !claimed.is_empty() && claimed != media_type {
        let claimed = short(claimed);
        return Err(format!(
            "the registry serves it as {media_type}, but its mediaType is {claimed}"
        ));
    }
    if listed > most {
        return Err(format!("it lists {listed} parts, more than {most}"));
    }
    Ok(())
}

/// The fields that distinguish manifests from indexes.
#[derive(Deserialize)]
struct ManifestShape {
    layers: Option<serde::de::IgnoredAny>,
    manifests: Option<serde::de::IgnoredAny>,
    config: Option<serde::de::IgnoredAny>,
}

/// Returns a media type without its parameters.
pub(crate) fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Truncates untrusted text to 120 characters, without those that control a terminal or the direction of text.
///
/// Source: Unicode Standard Annex #9, section 2 (explicit and implicit directional formatting characters).
pub(crate) fn short(text: &str) -> String {
    let is_direction = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let printable = |c: char| {
        if c.is_control() || is_direction(c) {
            ' '
        } else {
            c
        }
    };
    text.chars().take(120).map(printable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(media_type: &str, text: &str) -> String {
        parse(media_type, text.as_bytes()).unwrap_err().to_string()
    }

    fn manifest(layers: usize) -> String {
        let blob = serde_json::to_value(Descriptor::of(media::EMPTY, b"{}")).unwrap();
        let layers = vec![blob.clone(); layers];
        serde_json::json!({"schemaVersion": 2, "mediaType": media::MANIFEST, "config": blob, "layers": layers}).to_string()
    }

    #[test]
    fn a_manifest_is_what_it_says_and_what_the_registry_says() {
        assert!(matches!(
            parse(media::MANIFEST, manifest(2).as_bytes()),
            Ok(Content::Manifest(_))
        ));
        let lie = refused(media::INDEX, &manifest(1));
        assert!(lie.contains("mediaType is"), "{lie}");
        assert!(refused("text/html", "<html>").contains("`text/html` is not supported"));
        let both = r#"{"schemaVersion":2,"manifests":[],"layers":[]}"#;
        assert!(
            refused(media::INDEX, both).contains("fields of a manifest"),
            "{both}"
        );
        assert!(refused(media::INDEX, r#"{"schemaVersion":1}"#).contains("schemaVersion is 1"));
    }

    #[test]
    fn bounds_hold_before_anything_is_fetched() {
        assert!(refused(media::MANIFEST, &manifest(MOST_LAYERS + 1)).contains("more than"));
        let deep = format!("{}{}", r#"{"schemaVersion":2,"x":"#, "[".repeat(100_000));
        assert!(refused(media::INDEX, &deep).contains("not valid"));
        let deep = deep.replace("\"x\"", "\"annotations\"");
        assert!(refused(media::INDEX, &deep).contains("not valid"));
        assert!(refused(media::INDEX, &" ".repeat(MOST_MANIFEST + 1)).contains("bytes"));
        assert!(
            refused(media::INDEX, r#"{"schemaVersion":2,"schemaVersion":2}"#).contains("duplicate")
        );
    }
}
