//! Artifacts: a Katalog or a Motif with the files next to it, one layer per file.
//!
//! ```text
//!  folder ── pack ──► files ── build ──► layers, Summary (the configuration), manifest ──► a registry ── unpack ──► folder
//! ```
//!
//! The configuration contains the data that `ork inspect` shows, so that no layer has to be read. It is the publisher's
//! statement; `ork pull` compares it with the files.

mod lifecycle;
mod open;
mod pack;
mod unpack;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Descriptor, Manifest, manifest::media};

pub use lifecycle::{Lifecycle, Stage};
pub use open::RemoteArtifact;
pub use pack::{File, MOST_FILE, MOST_TOTAL, PackError, check_name, pack};
pub use unpack::{UnpackError, write};

/// The annotation of a layer with the name of its file.
pub const TITLE: &str = "org.opencontainers.image.title";
/// The media type of the configuration.
pub const CONFIG: &str = "application/vnd.orkestra.config.v1+json";

/// The kind of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A Katalog, in `katalog.yaml`.
    Katalog,
    /// A Motif, in `motif.yaml`.
    Motif,
}

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Katalog, Self::Motif];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Katalog => "Katalog",
            Self::Motif => "Motif",
        }
    }

    /// Returns the artifact type. The name says `tar+gzip`, but the layers are plain files.
    pub fn artifact_type(self) -> &'static str {
        match self {
            Self::Katalog => "application/vnd.orkestra.pattern.v1+tar+gzip",
            Self::Motif => "application/vnd.orkestra.motif.v1+tar+gzip",
        }
    }

    /// Returns the required file of the artifact.
    pub fn file(self) -> &'static str {
        match self {
            Self::Katalog => "katalog.yaml",
            Self::Motif => "motif.yaml",
        }
    }
}

/// The contents of an artifact, as declared in its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The kind.
    pub kind: Kind,
    /// The name of the document.
    pub name: String,
    /// Its version, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its licence, as an SPDX expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Search terms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The version of `ork` that checked it.
    pub orkestra: String,
    /// The custom resources that its operators reconcile.
    #[serde(default)]
    pub declares: Vec<Declared>,
    /// The permissions that its operators need.
    #[serde(default, alias = "rights")]
    pub permissions: Vec<Rule>,
}

/// An operator of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Declared {
    /// Its name in the Katalog.
    pub operator: String,
    /// Group and version of the custom resource.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
}

/// A permission, as in a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The only namespace where it is needed; `None` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// API groups.
    pub api_groups: Vec<String>,
    /// Plural names.
    pub resources: Vec<String>,
    /// Verbs.
    pub verbs: Vec<String>,
    /// The names of the objects; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

/// An artifact that is ready to be pushed.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The manifest.
    pub manifest: Manifest,
    /// The bytes of the manifest.
    pub bytes: Bytes,
    /// Configuration and layers, with their names in messages.
    pub blobs: Vec<(String, Bytes)>,
}

/// Builds an artifact. Equal files and summaries result in equal bytes.
pub fn build(files: &[File], summary: &Summary, lifecycle: Option<&Lifecycle>) -> Artifact {
    let config = Bytes::from(serde_json::to_vec(summary).unwrap_or_default());
    let mut blobs = vec![("configuration".to_owned(), config.clone())];
    let mut layers = Vec::new();
    for file in files {
        let mut layer = Descriptor::of(media_type(&file.name), &file.content);
        layer.annotations = Some(BTreeMap::from([(TITLE.to_owned(), file.name.clone())]));
        layers.push(layer);
        blobs.push((file.name.clone(), file.content.clone()));
    }
    let manifest = Manifest {
        schema_version: 2,
        media_type: media::MANIFEST.to_owned(),
        artifact_type: Some(summary.kind.artifact_type().to_owned()),
        config: Descriptor::of(CONFIG, &config),
        layers,
        subject: None,
        annotations: annotations(summary, lifecycle),
    };
    let bytes = Bytes::from(serde_json::to_vec(&manifest).unwrap_or_default());
    Artifact {
        manifest,
        bytes,
        blobs,
    }
}

fn annotations(summary: &Summary, lifecycle: Option<&Lifecycle>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([(
        "org.opencontainers.image.title".to_owned(),
        summary.name.clone(),
    )]);
    let optional = [
        ("org.opencontainers.image.version", &summary.version),
        ("org.opencontainers.image.description", &summary.description),
        ("org.opencontainers.image.authors", &summary.author),
        ("org.opencontainers.image.licenses", &summary.license),
    ];
    for (key, value) in optional {
        all.extend(value.clone().map(|value| (key.to_owned(), value)));
    }
    if let Some(lifecycle) = lifecycle {
        all.extend(lifecycle.annotations());
    }
    all
}

/// Returns the media type of a file's layer, by its name.
fn media_type(name: &str) -> &'static str {
    match name {
        "katalog.yaml" => "application/vnd.orkestra.katalog.v1+yaml",
        "motif.yaml" => "application/vnd.orkestra.motif.v1+yaml",
        "crd.yaml" => "application/vnd.kubernetes.crd.v1+yaml",
        "cr.yaml" => "application/vnd.kubernetes.cr.v1+yaml",
        name if std::path::Path::new(name)
            .extension()
            .is_some_and(|end| end == "md") =>
        {
            "text/markdown"
        }
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::{
        open::{files, kind},
        *,
    };

    fn summary() -> Summary {
        Summary {
            kind: Kind::Katalog,
            name: "shop".to_owned(),
            version: Some("1.2.0".to_owned()),
            description: None,
            author: None,
            license: None,
            tags: Vec::new(),
            orkestra: "0".to_owned(),
            declares: Vec::new(),
            permissions: Vec::new(),
        }
    }

    fn file(name: &str) -> File {
        File {
            name: name.to_owned(),
            content: Bytes::from(name.to_owned()),
        }
    }

    #[test]
    fn equal_files_give_equal_bytes_and_each_file_is_a_layer() {
        let packed = [
            file("katalog.yaml"),
            file("README.md"),
            file("manifests/a.yaml"),
        ];
        let artifact = build(&packed, &summary(), None);
        assert_eq!(artifact.bytes, build(&packed, &summary(), None).bytes);
        let types: Vec<&str> = artifact
            .manifest
            .layers
            .iter()
            .map(|layer| &*layer.media_type)
            .collect();
        assert_eq!(
            types,
            [
                "application/vnd.orkestra.katalog.v1+yaml",
                "text/markdown",
                "application/octet-stream"
            ]
        );
        let read = files(&artifact.manifest).unwrap();
        assert_eq!(read[2].0, "manifests/a.yaml");
        assert_eq!(kind(&artifact.manifest, &read), Ok(Kind::Katalog));
    }

    #[test]
    fn layers_that_lie_are_refused() {
        let refused = |names: &[&str], change: fn(&mut Manifest)| {
            let packed: Vec<File> = names.iter().map(|name| file(name)).collect();
            let mut manifest = build(&packed, &summary(), None).manifest;
            change(&mut manifest);
            let read = files(&manifest);
            read.and_then(|read| kind(&manifest, &read)).unwrap_err()
        };
        let cases = [
            (refused(&["katalog.yaml", "../x"], |_| ()), "`../x`"),
            (refused(&["katalog.yaml", "Katalog.YAML"], |_| ()), "twice"),
            (refused(&["crd.yaml"], |_| ()), "without a katalog.yaml"),
            (
                refused(&["katalog.yaml"], |manifest| manifest.artifact_type = None),
                "its type is",
            ),
            (
                refused(&["katalog.yaml"], |manifest| {
                    manifest.layers[0].annotations = None;
                }),
                "no file name",
            ),
            (
                refused(&["katalog.yaml"], |manifest| {
                    manifest.layers[0].size = 10 << 30;
                }),
                "more than",
            ),
            (
                refused(&["katalog.yaml"], |manifest| {
                    let layers = (0..200).map(|number| {
                        let mut layer = manifest.layers[0].clone();
                        layer.size = MOST_FILE;
                        layer.annotations =
                            Some(BTreeMap::from([(TITLE.to_owned(), format!("f{number}"))]));
                        layer
                    });
                    manifest.layers = layers.collect();
                }),
                "together",
            ),
        ];
        for (why, expected) in cases {
            assert!(why.contains(expected), "{why}");
        }
    }
}
