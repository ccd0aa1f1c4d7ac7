//! Finds and writes signatures in registries.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{BUNDLE, Candidate, Format, SIGNATURE, SIMPLE, bundle, simple};
use crate::{
    Client, Content, Descriptor, Digest, Error, Manifest, Reference, Repository, empty_config,
    manifest::media,
};

/// The maximum number of signatures read per artifact.
const MOST_CANDIDATES: usize = 100;
/// The maximum length of a bundle or document, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// The signatures of an artifact in a registry.
#[derive(Clone, Debug, Default)]
pub struct FoundSignatures {
    /// The signatures, including those that could not be read.
    pub candidates: Vec<Candidate>,
    /// The number of further signatures, which were not read.
    pub left_out: usize,
}

impl Client {
    /// Finds the signatures of an artifact, in both formats. One that cannot be read is included as unreadable.
    ///
    /// # Errors
    /// Errors of the registry. An unreachable registry says nothing about signatures.
    pub async fn signatures(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<FoundSignatures, Error> {
        let mut found = FoundSignatures::default();
        let listed = self.referrers(repository, digest).await?;
        let is_bundle = |referrer: &Descriptor| {
            let type_ = referrer.artifact_type.as_deref().unwrap_or_default();
            // Some registries list the type of the configuration instead of the type of the manifest.
            type_.starts_with(bundle::ANY_VERSION) || type_ == media::EMPTY || type_.is_empty()
        };
        for referrer in listed.iter().filter(|referrer| is_bundle(referrer)) {
            if found.candidates.len() >= MOST_CANDIDATES {
                found.left_out += 1;
                continue;
            }
            let read = self.bundle(repository, referrer).await;
            found.add(Format::Bundle, read)?;
        }
        self.add_simple(repository, digest, &mut found).await?;
        Ok(found)
    }

    /// Returns the bundle in a referrer; `None` for other content.
    async fn bundle(
        &self,
        repository: &Repository,
        referrer: &Descriptor,
    ) -> Result<Option<Candidate>, Error> {
        let place = at(repository, referrer.digest);
        let Content::Manifest(manifest) = self.fetch(&place).await?.content else {
            return Ok(None);
        };
        let is_bundle = |layer: &&Descriptor| layer.media_type.starts_with(bundle::ANY_VERSION);
        let Some(layer) = manifest.layers.iter().find(is_bundle) else {
            return Ok(None);
        };
        let bytes = self.fetch_blob(repository, layer, MOST_BYTES).await?;
        Ok(Some(Candidate::Bundle(bytes)))
    }

    /// Adds the signatures under the tag `sha256-….sig`.
    async fn add_simple(
        &self,
        repository: &Repository,
        digest: &Digest,
        found: &mut FoundSignatures,
    ) -> Result<(), Error> {
        let fetched = match self.fetch(&simple_tag(repository, digest)).await {
            Err(error) if error.is_not_found() => return Ok(()),
            fetched => fetched,
        };
        let manifest = match fetched.map(|fetched| fetched.content) {
            Ok(Content::Manifest(manifest)) => manifest,
            Ok(Content::Index(_)) => return Ok(()),
            Err(error) => return found.add(Format::Simple, Err(error)),
        };
        for layer in manifest
            .layers
            .iter()
            .filter(|layer| layer.media_type == SIMPLE)
        {
            if found.candidates.len() >= MOST_CANDIDATES {
                found.left_out += 1;
                continue;
            }
            let Some(signature) = layer.annotation(SIGNATURE) else {
                continue;
            };
            let payload = self.fetch_blob(repository, layer, MOST_BYTES).await;
            let candidate = payload.map(|payload| {
                Some(Candidate::Simple {
                    payload,
                    signature: signature.to_owned(),
                    annotations: simple::annotations(layer),
                })
            });
            found.add(Format::Simple, candidate)?;
        }
        Ok(())
    }

    /// Adds a bundle to an artifact.
    ///
    /// # Errors
    /// Errors of the registry.
    pub async fn attach_bundle(
        &self,
        repository: &Repository,
        subject: &Descriptor,
        bundle: Vec<u8>,
    ) -> Result<Descriptor, Error> {
        let bundle = Bytes::from(bundle);
        let (config, content) = empty_config();
        self.push_blob(repository, &content, |_| ()).await?;
        self.push_blob(repository, &bundle, |_| ()).await?;
        let annotations = [
            ("dev.sigstore.bundle.content", "dsse-envelope"),
            ("dev.sigstore.bundle.predicateType", bundle::PREDICATE),
        ];
        let manifest = Manifest {
            schema_version: 2,
            media_type: media::MANIFEST.to_owned(),
            artifact_type: Some(BUNDLE.to_owned()),
            config,
            layers: vec![Descriptor::of(BUNDLE, &bundle)],
            subject: Some(subject.clone()),
            annotations: annotations
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        };
        self.attach(repository, &manifest, &subject.digest).await
    }

    /// Adds a "simple signing" document to an artifact and keeps the existing ones.
    ///
    /// # Errors
    /// Errors of the registry; [`Error::Contended`] if others keep changing the same tag.
    pub async fn attach_simple(
        &self,
        repository: &Repository,
        digest: &Digest,
        (payload, signature): (Vec<u8>, String),
    ) -> Result<(), Error> {
        let place = simple_tag(repository, digest);
        let payload = Bytes::from(payload);
        self.push_blob(repository, &payload, |_| ()).await?;
        let mut layer = Descriptor::of(SIMPLE, &payload);
        layer.annotations = Some(BTreeMap::from([(SIGNATURE.to_owned(), signature)]));
        for attempt in 0..crate::referrers::ATTEMPTS {
            let mut layers = match self.fetch(&place).await {
                Ok(fetched) => match fetched.content {
                    Content::Manifest(manifest) => manifest.layers,
                    Content::Index(_) => Vec::new(),
                },
                Err(error) if error.is_not_found() => Vec::new(),
                Err(error) => return Err(error),
            };
            if layers.contains(&layer) {
                return Ok(());
            }
            layers.push(layer.clone());
            self.put_simple(&place, layers).await?;
            crate::referrers::pause(attempt).await;
        }
        Err(Error::Contended(
            place.to_string(),
            crate::referrers::ATTEMPTS,
        ))
    }

    async fn put_simple(&self, place: &Reference, layers: Vec<Descriptor>) -> Result<(), Error> {
        let diff_ids: Vec<String> = layers
            .iter()
            .map(|layer| layer.digest.to_string())
            .collect();
        // cosign reads it as an image: a configuration with the digests of its layers.
        let config = serde_json::json!({
            "architecture": "", "os": "", "created": "0001-01-01T00:00:00Z", "config": {},
            "history": layers.iter().map(|_| serde_json::json!({"created": "0001-01-01T00:00:00Z"})).collect::<Vec<_>>(),
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let config = Bytes::from(config.to_string());
        self.push_blob(&place.repository, &config, |_| ()).await?;
        let manifest = Manifest {
            schema_version: 2,
            media_type: media::MANIFEST.to_owned(),
            artifact_type: None,
            config: Descriptor::of("application/vnd.oci.image.config.v1+json", &config),
            layers,
            subject: None,
            annotations: BTreeMap::new(),
        };
        let bytes = Bytes::from(serde_json::to_vec(&manifest).unwrap_or_default());
        self.put_manifest(place, media::MANIFEST, bytes)
            .await
            .map(drop)
    }
}

impl FoundSignatures {
    /// Adds a signature. An unreadable one is added as such; an unreachable registry is an error.
    fn add(&mut self, format: Format, read: Result<Option<Candidate>, Error>) -> Result<(), Error> {
        match read {
            Ok(candidate) => self.candidates.extend(candidate),
            Err(error) if error.is_unreachable() => return Err(error),
            Err(error) => self.candidates.push(Candidate::Unreadable {
                format,
                why: error.to_string(),
            }),
        }
        Ok(())
    }
}

fn at(repository: &Repository, digest: Digest) -> Reference {
    Reference {
        repository: repository.clone(),
        tag: None,
        digest: Some(digest),
    }
}

fn simple_tag(repository: &Repository, digest: &Digest) -> Reference {
    Reference {
        repository: repository.clone(),
        tag: Some(format!("{}.sig", digest.fallback_tag()).into()),
        digest: None,
    }
}
