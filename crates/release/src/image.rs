//! Builds the image, without a daemon.
//!
//! Source: OCI image specification 1.1, "Image Layout", "Image Configuration", "Image Layer Filesystem Changeset".

use std::{collections::BTreeMap, fs, io, path::Path};

use bytes::Bytes;
use orkestra_registry::{Descriptor, Digest, Manifest, media};
use serde_json::{Value, json};

use crate::{
    Moment,
    archive::{Entry, gzip, tar},
};

/// The path of the binary in the image.
pub const PROGRAM: &str = "usr/bin/ork";
/// The path of the CA roots in the image.
pub const ROOTS: &str = "etc/ssl/certs/ca-certificates.crt";
/// The user of the image.
pub const USER: &str = "65532:65532";
/// The annotation of a layout's index with the tag of an image.
const REF_NAME: &str = "org.opencontainers.image.ref.name";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What an image is made of.
#[derive(Clone, Debug)]
pub struct Source {
    /// The binary, static.
    pub binary: Vec<u8>,
    /// CA roots in PEM.
    pub roots: Vec<u8>,
    /// The licence, for `/usr/share/doc`.
    pub license: Vec<u8>,
    /// The architecture, in Go's words: `amd64`, `arm64`.
    pub architecture: String,
    /// The version.
    pub version: String,
    /// The commit.
    pub commit: String,
    /// The time of its files.
    pub moment: Moment,
}

/// An image: its manifest, and the blobs that it lists.
#[derive(Clone, Debug)]
pub struct Image {
    /// The manifest.
    pub manifest: Bytes,
    /// The configuration, then the layers.
    pub blobs: Vec<(Descriptor, Bytes)>,
    /// The platform of the manifest.
    platform: Value,
}

/// Returns the files of the image beside its binary: CA roots, the names of its users, the licence.
fn base(source: &Source) -> Vec<Entry> {
    let folders = [
        "etc/",
        "etc/ssl/",
        "etc/ssl/certs/",
        "usr/",
        "usr/bin/",
        "usr/share/",
        "usr/share/doc/",
        "usr/share/doc/ork/",
    ];
    let mut entries: Vec<Entry> = folders.map(Entry::folder).into();
    entries.push(Entry::file(ROOTS, source.roots.clone()));
    entries.push(Entry::file(
        "etc/passwd",
        "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
    ));
    entries.push(Entry::file("etc/group", "root:x:0:\nnonroot:x:65532:\n"));
    entries.push(Entry::file(
        "usr/share/doc/ork/LICENSE",
        source.license.clone(),
    ));
    entries
}

/// Returns the labels of the image; the same as those of `Containerfile`.
pub fn labels(version: &str, commit: &str) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("org.opencontainers.image.title", "orkestra".to_owned()),
        (
            "org.opencontainers.image.description",
            "Runs Kubernetes operators that are declared instead of programmed".to_owned(),
        ),
        ("org.opencontainers.image.licenses", "Apache-2.0".to_owned()),
        ("org.opencontainers.image.version", version.to_owned()),
        ("org.opencontainers.image.revision", commit.to_owned()),
    ])
}

impl Image {
    /// Returns the commit that its label names.
    pub fn commit(&self) -> Option<String> {
        let (_, config) = self.blobs.first()?;
        let config: Value = serde_json::from_slice(config).ok()?;
        let label = &config["config"]["Labels"]["org.opencontainers.image.revision"];
        label.as_str().map(str::to_owned)
    }

    /// Builds the image: a layer with what seldom changes, and one with the binary.
    ///
    /// # Errors
    /// None that the sources can cause.
    pub fn build(source: &Source) -> io::Result<Self> {
        let binary = [Entry::program(PROGRAM, source.binary.clone())];
        let layers = [
            tar(&base(source), source.moment)?,
            tar(&binary, source.moment)?,
        ];
        let diff_ids: Vec<String> = layers
            .iter()
            .map(|layer| Digest::of(layer).to_string())
            .collect();
        let created = source.moment.text();
        let step = |what: &str| json!({ "created": created, "created_by": what });
        let labels = labels(&source.version, &source.commit);
        let platform = json!({ "architecture": source.architecture, "os": "linux" });
        let config = json!({
            "architecture": source.architecture,
            "os": "linux",
            "created": created,
            "config": {
                "User": USER,
                "Entrypoint": [format!("/{PROGRAM}")],
                "Env": ["PATH=/usr/bin"],
                "WorkingDir": "/",
                "Labels": labels,
            },
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
            "history": [step("CA roots, users, licence"), step("ork")],
        });
        let config = Bytes::from(serde_json::to_vec(&config)?);
        let mut blobs = vec![(Descriptor::of(CONFIG, &config), config)];
        for layer in layers {
            let packed = Bytes::from(gzip(&layer)?);
            blobs.push((Descriptor::of(LAYER, &packed), packed));
        }
        let annotations = labels
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        let manifest = Manifest {
            schema_version: 2,
            media_type: media::MANIFEST.to_owned(),
            artifact_type: None,
            config: blobs[0].0.clone(),
            layers: blobs[1..]
                .iter()
                .map(|(descriptor, _)| descriptor.clone())
                .collect(),
            subject: None,
            annotations: annotations.collect(),
        };
        Ok(Self {
            manifest: Bytes::from(serde_json::to_vec(&manifest)?),
            blobs,
            platform,
        })
    }

    /// The digest of the manifest.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }

    /// The manifest as a subject of referrers.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::of(media::MANIFEST, &self.manifest)
    }

    /// The size of all blobs, in bytes.
    pub fn size(&self) -> u64 {
        self.blobs
            .iter()
            .map(|(descriptor, _)| descriptor.size)
            .sum()
    }

    /// Returns the files of an image layout, with the image under a tag.
    ///
    /// # Errors
    /// None that the image can cause.
    pub fn layout(&self, tag: &str) -> io::Result<Vec<Entry>> {
        let mut manifest = serde_json::to_value(self.descriptor())?;
        manifest["platform"] = self.platform.clone();
        manifest["annotations"] = json!({ REF_NAME: tag });
        let index =
            json!({ "schemaVersion": 2, "mediaType": media::INDEX, "manifests": [manifest] });
        let mut entries = vec![
            Entry::folder("blobs/"),
            Entry::folder("blobs/sha256/"),
            Entry::file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
            Entry::file("index.json", serde_json::to_vec(&index)?),
            Entry::file(blob_path(&self.digest()), self.manifest.to_vec()),
        ];
        entries.extend(
            self.blobs.iter().map(|(descriptor, blob)| {
                Entry::file(blob_path(&descriptor.digest), blob.to_vec())
            }),
        );
        Ok(entries)
    }

    /// Reads the image of a layout folder, and checks the digests of its blobs.
    ///
    /// # Errors
    /// A file is missing, malformed, or has other content than its digest says.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let index: Value = serde_json::from_slice(&fs::read(folder.join("index.json"))?)?;
        let listed = &index["manifests"][0];
        let digest = listed["digest"]
            .as_str()
            .and_then(|digest| digest.parse().ok());
        let digest: Digest = digest.ok_or_else(|| malformed("index.json lists no manifest"))?;
        let manifest = read_blob(folder, &digest)?;
        let parsed: Manifest = serde_json::from_slice(&manifest)?;
        let mut blobs = Vec::new();
        for descriptor in std::iter::once(parsed.config).chain(parsed.layers) {
            let blob = read_blob(folder, &descriptor.digest)?;
            blobs.push((descriptor, blob));
        }
        Ok(Self {
            manifest,
            blobs,
            platform: listed["platform"].clone(),
        })
    }
}

fn blob_path(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn read_blob(folder: &Path, digest: &Digest) -> io::Result<Bytes> {
    let blob = fs::read(folder.join(blob_path(digest)))?;
    if Digest::of(&blob) != *digest {
        return Err(malformed(&format!("the blob {digest} has other content")));
    }
    Ok(blob.into())
}

fn malformed(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Writes entries below a folder, which is made.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path, entries: &[Entry]) -> io::Result<()> {
    for entry in entries {
        let path = folder.join(&entry.path);
        if entry.path.ends_with('/') {
            fs::create_dir_all(path)?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, &entry.content)?;
    }
    Ok(())
}
