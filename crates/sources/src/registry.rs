//! Artifacts of OCI registries: Katalogs, Komposers, Motifs, and charts.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use orkestra_registry::{
    Client, Content, Descriptor, Digest, ManifestState, Reference, artifact::RemoteArtifact,
};

use crate::{
    Document, Error, Fetched, Limits,
    artifact::{is_yaml, text},
};

/// The most files of one artifact that are read at the same time.
const SIDE_BY_SIDE: usize = 4;
/// The media type of a packed chart.
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// The media type of the configuration of a chart.
const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

/// Returns the digest that a reference has now, with one small request, or none if it names a digest itself.
pub(crate) async fn digest(
    client: &Client,
    reference: &Reference,
    known: Option<&Digest>,
) -> Result<Digest, Error> {
    if let Some(digest) = reference.digest {
        return Ok(digest);
    }
    match (client.look(reference, known).await?, known) {
        (ManifestState::Is(digest), _) => Ok(digest),
        (ManifestState::Unchanged, Some(known)) => Ok(*known),
        (ManifestState::Unchanged, None) => Err(Error::Malformed(
            reference.to_string(),
            "the registry reports it as unchanged, but no earlier response is known".to_owned(),
        )),
    }
}

/// Reads the documents of an artifact at a digest: the named one first, then the other YAML files beside it.
pub(crate) async fn documents(
    client: &Client,
    reference: &Reference,
    document: Document,
    limits: &Limits,
) -> Result<(Vec<Fetched>, RemoteArtifact), Error> {
    let opened = client.open(reference).await?;
    let wrong = |why: String| Error::Malformed(reference.to_string(), why);
    let main = document.file();
    if !opened.files.iter().any(|(name, _)| name == main) {
        return Err(Error::NotFound(format!("{main} in {reference}")));
    }
    let files = opened.files.iter();
    let wanted: Vec<(String, Descriptor)> =
        files.filter(|(name, _)| is_yaml(name)).cloned().collect();
    if wanted.len() > limits.files {
        return Err(wrong(format!("it has more than {} files", limits.files)));
    }
    let total = wanted.iter().map(|(_, layer)| layer.size);
    let total = total.fold(0_u64, u64::saturating_add);
    if total > limits.documents as u64 {
        let most = limits.documents;
        return Err(wrong(format!(
            "its documents have {total} bytes, more than {most}"
        )));
    }
    let reading = wanted.into_iter().map(|(name, layer)| async move {
        let blob = client.fetch_blob(&reference.repository, &layer, limits.document);
        let text = text(&name, blob.await?.to_vec())
            .map_err(|why| Error::Malformed(reference.to_string(), why))?;
        Ok::<_, Error>(Fetched { name, text })
    });
    let mut documents: Vec<Fetched> = stream::iter(reading)
        .buffered(SIDE_BY_SIDE)
        .try_collect()
        .await?;
    documents.sort_by(|one, other| {
        let place = |file: &Fetched| (file.name != main, file.name.clone());
        place(one).cmp(&place(other))
    });
    Ok((documents, opened))
}

/// Reads the packed chart of an artifact at a digest.
pub(crate) async fn chart(
    client: &Client,
    reference: &Reference,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let wrong = |why: &str| Error::Malformed(reference.to_string(), why.to_owned());
    let Content::Manifest(manifest) = client.fetch(reference).await?.content else {
        return Err(wrong(
            "it is an index of several manifests, expected a chart",
        ));
    };
    if manifest.config.media_type != CHART_CONFIG {
        return Err(wrong("it is not a Helm chart"));
    }
    let mut layers = manifest.layers.iter();
    let layer = layers
        .find(|layer| layer.media_type == CHART)
        .ok_or_else(|| wrong("it is a Helm chart without a packed chart"))?;
    let blob = client.fetch_blob(&reference.repository, layer, limits.chart);
    Ok(blob.await?.to_vec())
}
