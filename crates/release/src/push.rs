//! Pushes an image, its attached documents and its signature.

use std::collections::BTreeMap;

use bytes::Bytes;
use orkestra_registry::{
    Client, Descriptor, Digest, Error, Manifest, Reference, empty_config, media,
    signature::{KeyError, PrivateKey, sign_bundle},
};

use crate::image::Image;

/// Why a push failed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The registry refused a request, or did not answer.
    #[error(transparent)]
    Registry(#[from] Error),
    /// The key cannot sign.
    #[error("cannot sign")]
    Key(#[from] KeyError),
}

/// A document about an image, to be attached to it.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its media type, also the type of the referrer.
    pub media_type: &'static str,
    /// Its content.
    pub content: Bytes,
}

/// Pushes an image, attaches documents and signs it, if there is a key. The manifest is written last of the image's parts, so that
/// the tag never names an incomplete image.
///
/// # Errors
/// The registry's; [`PushError::Key`].
pub async fn push(
    client: &Client,
    reference: &Reference,
    image: &Image,
    documents: &[Document],
    key: Option<&PrivateKey>,
) -> Result<Digest, PushError> {
    let repository = &reference.repository;
    for (_, blob) in &image.blobs {
        client.push_blob(repository, blob, |_| ()).await?;
    }
    client
        .put_manifest(reference, media::MANIFEST, image.manifest.clone())
        .await?;
    let subject = image.descriptor();
    for document in documents {
        let (config, empty) = empty_config();
        client.push_blob(repository, &empty, |_| ()).await?;
        client
            .push_blob(repository, &document.content, |_| ())
            .await?;
        let manifest = Manifest {
            schema_version: 2,
            media_type: media::MANIFEST.to_owned(),
            artifact_type: Some(document.media_type.to_owned()),
            config,
            layers: vec![Descriptor::of(document.media_type, &document.content)],
            subject: Some(subject.clone()),
            annotations: BTreeMap::new(),
        };
        client
            .attach(repository, &manifest, &subject.digest)
            .await?;
    }
    if let Some(key) = key {
        let bundle = sign_bundle(subject.digest, key)?;
        client.attach_bundle(repository, &subject, bundle).await?;
    }
    Ok(subject.digest)
}
