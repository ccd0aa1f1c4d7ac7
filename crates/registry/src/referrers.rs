//! Manifests that refer to another one: the referrers API, and the tag that replaces it.
//!
//! Source: OCI distribution specification, "Listing Referrers" and "Referrers Tag Schema". The tags of single referrers,
//! `sha256-HEX.ork-HEX`, are specific to Orkestra: see [`Client::attach`].

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use http::{Method, StatusCode, header};
use orkestra_ground::{Backoff, Entropy};

use super::{
    Client, Content, Descriptor, Digest, Error, Index, Manifest, Reference, Repository,
    client::{Access, RequestTarget},
    content::{named, next_page},
    manifest::{self, MOST_LISTED, MOST_MANIFEST, media},
    transport::RegistryRequest,
};

/// The maximum number of attempts to write a list that others write concurrently.
pub(crate) const ATTEMPTS: u32 = 12;
/// The number of digits of its digest in the tag of a referrer.
const CLAIM: usize = 16;
/// The maximum delay before another attempt.
const PAUSE: Backoff = Backoff::doubling(Duration::from_millis(20), Duration::from_secs(1));

impl Client {
    /// Returns the referrers of a manifest, at most 1024: those from the API and from the tag, without duplicates.
    ///
    /// # Errors
    /// Errors of the registry; [`Error::Malformed`] if a list violates the format or its limits.
    pub async fn referrers(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Vec<Descriptor>, Error> {
        let mut listed = self
            .referrers_api(repository, digest)
            .await?
            .unwrap_or_default();
        if let Some((index, _)) = self.fallback(repository, digest).await? {
            listed.extend(index.manifests);
        }
        let mut seen = BTreeSet::new();
        listed.retain(|referrer| seen.insert(referrer.digest));
        Ok(listed)
    }

    /// Returns the list from the API; `None` if the registry does not have it.
    async fn referrers_api(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Option<Vec<Descriptor>>, Error> {
        let what = format!("the referrers of {repository}@{digest}");
        let ask = RequestTarget::new(repository, Access::Pull, &what);
        let mut url = self.url(repository, &format!("referrers/{digest}")).await?;
        let mut listed = Vec::new();
        loop {
            let call =
                RegistryRequest::new(Method::GET, url.clone()).header(header::ACCEPT, media::INDEX);
            let response = self.ask(&ask, call).await?;
            // The response of a registry without the API is not specified.
            let lacking = [
                StatusCode::NOT_FOUND,
                StatusCode::METHOD_NOT_ALLOWED,
                StatusCode::BAD_REQUEST,
            ];
            if lacking.contains(&response.status) {
                return Ok(None);
            }
            let response = self.expect(&ask, response, &[StatusCode::OK]).await?;
            let next = next_page(&url, &response.headers);
            let bytes = self.transport().collect(response, MOST_MANIFEST).await?;
            let Content::Index(index) =
                manifest::parse(media::INDEX, &bytes).map_err(|error| named(error, &what))?
            else {
                return Ok(None);
            };
            let is_empty = index.manifests.is_empty();
            listed.extend(index.manifests);
            if listed.len() > MOST_LISTED {
                return Err(Error::Malformed {
                    what,
                    why: format!("there are more than {MOST_LISTED}"),
                });
            }
            match next {
                Some(next) if !is_empty => url = next,
                _ => return Ok(Some(listed)),
            }
        }
    }

    /// Returns the list under the tag, and its digest.
    async fn fallback(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Option<(Index, Digest)>, Error> {
        let reference = fallback(repository, digest);
        match self.fetch(&reference).await {
            Ok(fetched) => match fetched.content {
                Content::Index(index) => Ok(Some((index, fetched.digest))),
                Content::Manifest(_) => Err(Error::Malformed {
                    what: reference.to_string(),
                    why: "it is not an index".to_owned(),
                }),
            },
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a manifest that refers to another one and adds it to the list of referrers.
    ///
    /// # Errors
    /// Errors of the registry; [`Error::Contended`] if others keep changing the list.
    pub async fn attach(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        subject: &Digest,
    ) -> Result<Descriptor, Error> {
        let bytes = Bytes::from(serde_json::to_vec(manifest).unwrap_or_default());
        let entry = entry(manifest, &bytes);
        let mut place = fallback(repository, subject);
        place.digest = Some(entry.digest);
        let written = self
            .put_manifest(&place, media::MANIFEST, bytes.clone())
            .await?;
        if !written.is_listed {
            let mut claim = fallback(repository, subject);
            let tag = format!("{}{}", claim_prefix(subject), &entry.digest.hex()[..CLAIM]);
            claim.tag = Some(tag.into());
            self.put_manifest(&claim, media::MANIFEST, bytes).await?;
            self.list(repository, subject, &entry).await?;
        }
        Ok(entry)
    }

    /// Adds every referrer with its own tag to the list under the fallback tag.
    ///
    /// A registry has no conditional write: concurrent writes of the list can lose an entry. Each writer first writes the
    /// tag of its own entry, and finishes only after it has read a list with all entries that have such a tag. This includes
    /// the last writer, so nothing is lost.
    async fn list(
        &self,
        repository: &Repository,
        subject: &Digest,
        own: &Descriptor,
    ) -> Result<(), Error> {
        let reference = fallback(repository, subject);
        for attempt in 0..ATTEMPTS {
            let found = self.fallback(repository, subject).await?;
            let (mut index, known) = match found {
                Some((index, digest)) => (index, Some(digest)),
                None => (empty_index(), None),
            };
            let is_listed = index
                .manifests
                .iter()
                .any(|listed| listed.digest == own.digest);
            if !is_listed {
                index.manifests.push(own.clone());
            }
            let missing = self.missing(repository, subject, &index).await?;
            if missing.is_empty() && is_listed {
                return Ok(());
            }
            index.manifests.extend(missing);
            if self.is_still(&reference, known).await? {
                let bytes = Bytes::from(serde_json::to_vec(&index).unwrap_or_default());
                self.put_manifest(&reference, media::INDEX, bytes).await?;
            }
            pause(attempt).await;
        }
        Err(Error::Contended(reference.to_string(), ATTEMPTS))
    }

    /// Returns the referrers that have their own tag and are not in the list.
    async fn missing(
        &self,
        repository: &Repository,
        subject: &Digest,
        index: &Index,
    ) -> Result<Vec<Descriptor>, Error> {
        let prefix = claim_prefix(subject);
        let listed: Vec<String> = index
            .manifests
            .iter()
            .map(|entry| entry.digest.hex())
            .collect();
        let mut missing = Vec::new();
        for tag in self.tags(repository).await? {
            let Some(short) = tag
                .strip_prefix(&prefix)
                .filter(|short| short.len() == CLAIM)
            else {
                continue;
            };
            if listed.iter().any(|hex| hex.starts_with(short)) {
                continue;
            }
            let mut claim = fallback(repository, subject);
            claim.tag = Some(tag.clone().into());
            let fetched = match self.fetch(&claim).await {
                Ok(fetched) => fetched,
                // Some registries list a tag shortly before it can be read; its writer will merge it.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            let Content::Manifest(manifest) = &fetched.content else {
                continue;
            };
            if manifest
                .subject
                .as_ref()
                .is_some_and(|found| found.digest == *subject)
            {
                missing.push(entry(manifest, &fetched.bytes));
            }
        }
        Ok(missing)
    }

    /// True if a tag still refers to the manifest that was read.
    async fn is_still(&self, reference: &Reference, known: Option<Digest>) -> Result<bool, Error> {
        match self.look(reference, known.as_ref()).await {
            Ok(super::ManifestState::Unchanged) => Ok(true),
            Ok(super::ManifestState::Is(_)) => Ok(false),
            Err(error) if error.is_not_found() => Ok(known.is_none()),
            Err(error) => Err(error),
        }
    }
}

/// Returns the list entry of a referrer.
fn entry(manifest: &Manifest, bytes: &[u8]) -> Descriptor {
    let mut entry = Descriptor::of(media::MANIFEST, bytes);
    let type_ = manifest.artifact_type.clone();
    entry.artifact_type = type_.or_else(|| Some(manifest.config.media_type.clone()));
    entry.annotations = Some(manifest.annotations.clone()).filter(|all| !all.is_empty());
    entry
}

/// Returns the prefix of the tags of single referrers; digits of the referrer's digest follow.
fn claim_prefix(subject: &Digest) -> String {
    format!("{}.ork-", subject.fallback_tag())
}

/// Waits a random time before a list is read again, so that writers do not stay in step.
pub(crate) async fn pause(attempt: u32) {
    tokio::time::sleep(PAUSE.jittered(attempt, &Entropy::system(), 0.8)).await;
}

fn fallback(repository: &Repository, digest: &Digest) -> Reference {
    Reference {
        repository: repository.clone(),
        tag: Some(digest.fallback_tag().into()),
        digest: None,
    }
}

fn empty_index() -> Index {
    Index {
        schema_version: 2,
        media_type: media::INDEX.to_owned(),
        artifact_type: None,
        manifests: Vec::new(),
        annotations: std::collections::BTreeMap::new(),
    }
}
