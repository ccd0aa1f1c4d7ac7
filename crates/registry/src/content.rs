//! Reads and writes manifests, blobs and tags.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode, header};
use orkestra_egress::Target;
use serde::Deserialize;

use super::{
    Client, Descriptor, Digest, Error, Fetched, Reference, Repository,
    client::{Access, RequestTarget},
    digest::Hasher,
    manifest::{self, MOST_MANIFEST, media},
    transport::{RegistryRequest, location},
};

/// The size of the chunks of a large upload, in bytes.
const PIECE: usize = 8 << 20;
/// The maximum size of a page of tags, in bytes.
const MOST_PAGE: usize = 4 << 20;
/// The maximum number of tags read from a repository.
const MOST_TAGS: usize = 100_000;

const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// The state of a manifest, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestState {
    /// It is unchanged.
    Unchanged,
    /// It has this digest.
    Is(Digest),
}

/// The result of writing a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedManifest {
    /// Its digest.
    pub digest: Digest,
    /// True if the registry itself lists it as a referrer of its subject.
    pub is_listed: bool,
}

impl Client {
    /// Requests the digest of a manifest, with one small request.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none.
    pub async fn look(
        &self,
        reference: &Reference,
        known: Option<&Digest>,
    ) -> Result<ManifestState, Error> {
        let ask = RequestTarget::new(&reference.repository, Access::Pull, reference.to_string());
        let url = self
            .manifest_url(&reference.repository, &reference.selector())
            .await?;
        let mut call = RegistryRequest::new(Method::HEAD, url).header(header::ACCEPT, ACCEPT);
        if let Some(known) = known {
            call = call.header(header::IF_NONE_MATCH, &format!("\"{known}\""));
        }
        let response = self.ask(&ask, call).await?;
        let good = [StatusCode::OK, StatusCode::NOT_MODIFIED];
        let response = self.expect(&ask, response, &good).await?;
        if response.status == StatusCode::NOT_MODIFIED {
            return Ok(ManifestState::Unchanged);
        }
        let digest = match claimed(&response.headers, &ask.what)? {
            Some(digest) => digest,
            // The header is optional. Without it the digest is computed from the content.
            None => self.fetch(reference).await?.digest,
        };
        if known == Some(&digest) {
            return Ok(ManifestState::Unchanged);
        }
        Ok(ManifestState::Is(digest))
    }

    /// Reads a manifest or an index. Its digest is checked if the reference or the registry specifies one.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Mismatch`]; [`Error::Malformed`] as for [`manifest::parse`].
    pub async fn fetch(&self, reference: &Reference) -> Result<Fetched, Error> {
        let what = reference.to_string();
        let ask = RequestTarget::new(&reference.repository, Access::Pull, &what);
        let url = self
            .manifest_url(&reference.repository, &reference.selector())
            .await?;
        let call = RegistryRequest::new(Method::GET, url).header(header::ACCEPT, ACCEPT);
        let response = self.ask(&ask, call).await?;
        let response = self.expect(&ask, response, &[StatusCode::OK]).await?;
        let claimed = claimed(&response.headers, &what)?;
        let media_type = text_header(&response.headers, &header::CONTENT_TYPE);
        let bytes = self.transport().collect(response, MOST_MANIFEST).await?;
        let digest = Digest::of(&bytes);
        for expected in [reference.digest, claimed].into_iter().flatten() {
            if expected != digest {
                return Err(Error::Mismatch {
                    what,
                    expected,
                    actual: digest,
                });
            }
        }
        let media_type = manifest::essence(&media_type).to_owned();
        let content = manifest::parse(&media_type, &bytes).map_err(|error| named(error, &what))?;
        Ok(Fetched {
            bytes,
            media_type,
            digest,
            content,
        })
    }

    /// Writes a manifest or an index under a tag or its digest.
    ///
    /// # Errors
    /// Errors of the registry; [`Error::Mismatch`] if it received different content.
    pub async fn put_manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<PushedManifest, Error> {
        let digest = Digest::of(&bytes);
        let what = format!("a push to {reference}");
        let ask = RequestTarget::new(&reference.repository, Access::Push, &what);
        let url = self
            .manifest_url(&reference.repository, &reference.selector())
            .await?;
        let call = RegistryRequest::new(Method::PUT, url).body(media_type, bytes);
        let response = self.ask(&ask, call).await?;
        let good = [StatusCode::CREATED, StatusCode::OK, StatusCode::ACCEPTED];
        let response = self.expect(&ask, response, &good).await?;
        match claimed(&response.headers, &what)? {
            Some(actual) if actual != digest => Err(Error::Mismatch {
                what,
                expected: digest,
                actual,
            }),
            _ => Ok(PushedManifest {
                digest,
                is_listed: response.headers.contains_key("oci-subject"),
            }),
        }
    }

    /// Reads a blob of at most `most` bytes. Every chunk is passed to `each`, and the digest is checked at the end: the
    /// chunks must not be trusted before that.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it is larger than permitted or declared; [`Error::Mismatch`].
    pub async fn stream_blob(
        &self,
        repository: &Repository,
        blob: &Descriptor,
        most: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        let what = format!("the blob {} of {repository}", blob.digest);
        let malformed = |why: String| Error::Malformed {
            what: what.clone(),
            why,
        };
        let size = usize::try_from(blob.size).unwrap_or(usize::MAX);
        if size > most {
            return Err(malformed(format!(
                "it has {} bytes, more than {most}",
                blob.size
            )));
        }
        let ask = RequestTarget::new(repository, Access::Pull, &what);
        let url = self
            .url(repository, &format!("blobs/{}", blob.digest))
            .await?;
        let response = self
            .ask(&ask, RegistryRequest::new(Method::GET, url))
            .await?;
        let response = self.expect(&ask, response, &[StatusCode::OK]).await?;
        let (mut hasher, mut read) = (Hasher::default(), 0);
        let reading = self.transport().read(response, size, |piece| {
            hasher.update(piece);
            read += piece.len();
            each(piece);
        });
        reading.await.map_err(|error| named(error, &what))?;
        if read != size {
            return Err(malformed(format!("it has {read} bytes, expected {size}")));
        }
        let actual = hasher.finish();
        if actual != blob.digest {
            return Err(Error::Mismatch {
                what,
                expected: blob.digest,
                actual,
            });
        }
        Ok(())
    }

    /// Reads a whole blob of at most `most` bytes.
    ///
    /// # Errors
    /// The errors of [`Client::stream_blob`].
    pub async fn fetch_blob(
        &self,
        repository: &Repository,
        blob: &Descriptor,
        most: usize,
    ) -> Result<Bytes, Error> {
        let mut all = BytesMut::new();
        self.stream_blob(repository, blob, most, |piece| all.extend_from_slice(piece))
            .await?;
        Ok(all.freeze())
    }

    /// Writes a blob, unless the registry has it; returns false if it had. `sent` is called with the number of bytes sent so
    /// far.
    ///
    /// # Errors
    /// Errors of the registry.
    pub async fn push_blob(
        &self,
        repository: &Repository,
        content: &Bytes,
        mut sent: impl FnMut(u64),
    ) -> Result<bool, Error> {
        let digest = Digest::of(content);
        let ask = RequestTarget::new(repository, Access::Push, format!("a push to {repository}"));
        let url = self.url(repository, &format!("blobs/{digest}")).await?;
        let response = self
            .ask(&ask, RegistryRequest::new(Method::HEAD, url))
            .await?;
        if response.status == StatusCode::OK {
            sent(content.len() as u64);
            return Ok(false);
        }
        let url = self.url(repository, "blobs/uploads/").await?;
        let response = self
            .ask(&ask, RegistryRequest::new(Method::POST, url.clone()))
            .await?;
        let response = self.expect(&ask, response, &[StatusCode::ACCEPTED]).await?;
        let mut place = location(&url, &response.headers)?;
        let mut start = 0;
        // The last request sends the final chunk.
        while content.len() - start > PIECE {
            let end = start + PIECE;
            let range = format!("{start}-{}", end - 1);
            let call = RegistryRequest::new(Method::PATCH, place.clone())
                .body("application/octet-stream", content.slice(start..end))
                .header(header::CONTENT_RANGE, &range);
            let response = self.ask(&ask, call).await?;
            let response = self.expect(&ask, response, &[StatusCode::ACCEPTED]).await?;
            place = location(&place, &response.headers)?;
            start = end;
            sent(start as u64);
        }
        let last = with_digest(&place, &digest)?;
        let mut call = RegistryRequest::new(Method::PUT, last)
            .body("application/octet-stream", content.slice(start..));
        if start > 0 && start < content.len() {
            call = call.header(
                header::CONTENT_RANGE,
                &format!("{start}-{}", content.len() - 1),
            );
        }
        let response = self.ask(&ask, call).await?;
        self.expect(&ask, response, &[StatusCode::CREATED]).await?;
        sent(content.len() as u64);
        Ok(true)
    }

    /// Returns all tags of a repository, in the registry's order.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the repository does not exist; [`Error::Malformed`] if the list does not end.
    pub async fn tags(&self, repository: &Repository) -> Result<Vec<String>, Error> {
        let ask = RequestTarget::new(
            repository,
            Access::Pull,
            format!("the tags of {repository}"),
        );
        let mut url = self.url(repository, "tags/list?n=1000").await?;
        let mut tags: Vec<String> = Vec::new();
        loop {
            let response = self
                .ask(&ask, RegistryRequest::new(Method::GET, url.clone()))
                .await?;
            let response = self.expect(&ask, response, &[StatusCode::OK]).await?;
            let next = next_page(&url, &response.headers);
            let body = self.transport().collect(response, MOST_PAGE).await?;
            let malformed = |why: String| Error::Malformed {
                what: ask.what.clone(),
                why,
            };
            let page: Tags =
                serde_json::from_slice(&body).map_err(|error| malformed(error.to_string()))?;
            let page = page.tags.unwrap_or_default();
            let is_empty = page.is_empty();
            tags.extend(page);
            if tags.len() > MOST_TAGS {
                return Err(malformed(format!("there are more than {MOST_TAGS}")));
            }
            match next {
                // Pages without tags that refer to further pages could continue forever.
                Some(next) if !is_empty => url = next,
                _ => return Ok(tags),
            }
        }
    }

    async fn manifest_url(&self, repository: &Repository, selector: &str) -> Result<Target, Error> {
        self.url(repository, &format!("manifests/{selector}")).await
    }
}

#[derive(Deserialize)]
struct Tags {
    tags: Option<Vec<String>>,
}

/// Returns the URL of the next page. Source: RFC 5988; OCI distribution specification, "Listing Tags".
pub(crate) fn next_page(asked: &Target, headers: &HeaderMap) -> Option<Target> {
    let links = headers.get_all(header::LINK).iter();
    let link = links.filter_map(|link| link.to_str().ok()).find(|link| {
        link.split(';')
            .skip(1)
            .any(|part| part.trim().replace('"', "") == "rel=next")
    })?;
    let target = link.trim().strip_prefix('<')?.split('>').next()?;
    let next = asked.join_absolute(target).ok()?;
    // All pages of a list must be from the same registry.
    next.same_origin(asked).then_some(next)
}

fn with_digest(place: &Target, digest: &Digest) -> Result<Target, Error> {
    let path = &place.path;
    let joint = if path.contains('?') { '&' } else { '?' };
    let whole = place.at(&format!("{path}{joint}digest={digest}"));
    whole.map_err(|_| Error::Malformed {
        what: "the Location of an upload".to_owned(),
        why: "it is too long".to_owned(),
    })
}

/// Returns the digest in the response's headers.
fn claimed(headers: &HeaderMap, what: &str) -> Result<Option<Digest>, Error> {
    let Some(value) = headers.get("docker-content-digest") else {
        return Ok(None);
    };
    let parsed = value.to_str().unwrap_or_default().parse::<Digest>();
    parsed.map(Some).map_err(|error| Error::Malformed {
        what: format!("the Docker-Content-Digest of {what}"),
        why: error.to_string(),
    })
}

fn text_header(headers: &HeaderMap, name: &header::HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// Replaces the subject of an error with a name that users know.
pub(crate) fn named(error: Error, what: &str) -> Error {
    match error {
        Error::Malformed { why, .. } => Error::Malformed {
            what: what.to_owned(),
            why,
        },
        other => other,
    }
}

/// Returns an empty configuration, as `oras` writes it: its descriptor and its content.
pub fn empty_config() -> (Descriptor, Bytes) {
    let content = Bytes::from_static(b"{}");
    (Descriptor::of(media::EMPTY, &content), content)
}
