//! Fetches sources concurrently, within limits, and caches them.

mod cache;
mod chart;
mod file;
mod options;
mod repository;

use std::{collections::HashMap, sync::Arc, time::Duration};

use orkestra_egress::{self as egress, Target, Variables};
use orkestra_ground::{
    Clock,
    tasks::{self, Task},
};
use orkestra_registry::{self as registries, Client, Keychain, Reference, Repository};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

pub use self::options::Options;

use self::cache::{Cache, CacheKey, CachedSource, Validators};
use crate::{
    Artifact, Credential, Document, Error, Pin, Policy, Source, Verified,
    http::{HttpClient, without_query},
    policy::SignatureRequirement,
    registry,
};

/// The most sources that are fetched at the same time.
const PLACES: usize = 16;
/// The most packs and charts that are in memory at the same time.
const HEAVY_PLACES: usize = 2;
/// The most registry clients with credentials of their own.
const MOST_CLIENTS: usize = 64;
/// The time for one source.
const WHOLE: Duration = Duration::from_mins(5);

/// Fetches sources. Clones share limits and what is known.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    http: HttpClient,
    /// The same client for registries, which get several requests in a row.
    registries: egress::Client,
    variables: Variables,
    policy: Policy,
    plain_http: bool,
    keychain: Keychain,
    katalogs: String,
    motifs: String,
    local: bool,
    clock: Clock,
    clients: Mutex<HashMap<Option<CacheKey>, Client>>,
    cache: Mutex<Cache>,
    places: Semaphore,
    heavy: Semaphore,
}

/// A fetch: its source with what belongs to it.
#[derive(Clone, Copy)]
pub(crate) struct FetchJob<'a> {
    source: &'a Source,
    credential: Option<&'a Credential>,
    pin: Option<&'a Pin>,
    known: Option<&'a CachedSource>,
}

/// The result of a fetch: new, or unchanged.
type FetchResult = Result<Option<CachedSource>, Error>;

impl Fetcher {
    /// Creates a fetcher.
    pub fn new(options: Options) -> Self {
        let Options {
            guard,
            resolver,
            roots,
            variables,
            policy,
            plain_http,
            keychain,
            katalogs,
            motifs,
            local,
            limits,
            clock,
        } = options;
        let client = egress::Client::new(guard, resolver).with_roots(roots);
        Self(Arc::new(Inner {
            registries: client.clone().keeping(),
            http: HttpClient { client, limits },
            variables,
            policy,
            plain_http,
            keychain,
            katalogs,
            motifs,
            local,
            clock,
            clients: Mutex::default(),
            cache: Mutex::default(),
            places: Semaphore::new(PLACES),
            heavy: Semaphore::new(HEAVY_PLACES),
        }))
    }

    /// Fetches a source. An unchanged one gives the same artifact again.
    ///
    /// At most 16 are fetched at the same time, others wait. A fetch takes at most five minutes. Dropping the future ends it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn fetch(
        &self,
        source: &Source,
        credential: Option<&Credential>,
        pin: Option<&Pin>,
    ) -> Result<Arc<Artifact>, Error> {
        let fetching = tokio::time::timeout(WHOLE, self.fetch_one(source, credential, pin));
        fetching.await.unwrap_or_else(|_| Err(timed_out(source)))
    }

    async fn fetch_one(
        &self,
        source: &Source,
        credential: Option<&Credential>,
        pin: Option<&Pin>,
    ) -> Result<Arc<Artifact>, Error> {
        let _place = self.0.places.acquire().await;
        let key = key(source, credential, pin);
        let known = self.0.cache.lock().get(&key);
        let job = FetchJob {
            source,
            credential,
            pin,
            known: known.as_ref(),
        };
        let found = match source {
            Source::Path(path) => self.path(path).await,
            Source::File { url } => self.file(job, url).await,
            Source::Registry {
                reference,
                document,
                verify,
            } => {
                self.registry(job, reference, *document, verify.as_ref())
                    .await
            }
            Source::Git {
                url,
                reference,
                path,
            } => self.git(job, url, reference, path).await,
            Source::Helm { .. } => self.helm(job).await,
        }?;
        let artifact = match (found, known) {
            (Some(found), _) => {
                let artifact = found.artifact.clone();
                check_pin(&artifact, pin)?;
                self.0.cache.lock().put(key, found);
                artifact
            }
            (None, Some(known)) => known.artifact,
            (None, None) => return Err(Error::Ended(name(source))),
        };
        Ok(artifact)
    }

    pub(crate) fn variables(&self) -> &Variables {
        &self.0.variables
    }

    pub(crate) fn katalogs(&self) -> &str {
        &self.0.katalogs
    }

    pub(crate) fn is_local(&self) -> bool {
        self.0.local
    }

    async fn registry(
        &self,
        job: FetchJob<'_>,
        text: &str,
        document: Document,
        verify: Option<&SignatureRequirement>,
    ) -> FetchResult {
        let base = match document {
            Document::Motif => &self.0.motifs,
            Document::Katalog | Document::Komposer => &self.0.katalogs,
        };
        let wrong = |why: &dyn std::fmt::Display| Error::Invalid(text.to_owned(), why.to_string());
        let mut reference = Reference::parse(text, base).map_err(|why| wrong(&why))?;
        if let Some(pin) = job.pin {
            let digest = pin.digest.parse().map_err(|why| wrong(&why))?;
            reference.digest.get_or_insert(digest);
        }
        let client = self.client(job.credential)?;
        let known = match job.known.map(|known| &known.state) {
            Some(Validators::Registry(digest)) => Some(digest),
            _ => None,
        };
        let digest = registry::digest(&client, &reference, known).await?;
        if known == Some(&digest) {
            return Ok(None);
        }
        let verified = self
            .verified(&client, &reference.repository, &digest, verify)
            .await?;
        let pinned = reference.at(digest);
        let limits = &self.0.http.limits;
        let read = registry::documents(&client, &pinned, document, limits);
        let (documents, _) = read.await?;
        let mut named = reference.clone();
        named.digest = named.digest.filter(|_| named.tag.is_none());
        Ok(Some(CachedSource {
            state: Validators::Registry(digest),
            artifact: Arc::new(Artifact {
                url: named.to_string(),
                revision: reference.tag.as_deref().unwrap_or_default().to_owned(),
                digest: digest.to_string(),
                documents,
                verified,
            }),
        }))
    }

    /// Returns the result of the source's own requirement, or of the policy's. Both must be met if both exist.
    async fn verified(
        &self,
        client: &Client,
        repository: &Repository,
        digest: &registries::Digest,
        own: Option<&SignatureRequirement>,
    ) -> Result<Verified, Error> {
        let mut verified = Verified::NotRequired;
        let now = self.0.clock.now();
        let policy = self.0.policy.of(&repository.to_string());
        for trust in [own, policy].into_iter().flatten() {
            verified = trust.check(client, repository, digest, now).await?;
        }
        Ok(verified)
    }

    /// Judges a source that cannot carry a signature.
    fn unsigned(&self, url: &str) -> Result<Verified, Error> {
        match self.0.policy.of_url(url)? {
            Some(trust) => trust.unsigned(without_query(url)),
            None => Ok(Verified::NotRequired),
        }
    }

    async fn authorization(
        &self,
        credential: Option<&Credential>,
        url: &str,
    ) -> Result<Option<::http::HeaderValue>, Error> {
        let Some(credential) = credential else {
            return Ok(None);
        };
        let target =
            Target::parse(url).map_err(|why| Error::Url(without_query(url).to_owned(), why))?;
        credential.header(&target.host_header()).await
    }

    /// Returns the client for registries with these credentials, or with the process's own.
    fn client(&self, credential: Option<&Credential>) -> Result<Client, Error> {
        let key = credential.map(Credential::mark);
        let clients = || self.0.clients.lock();
        if let Some(client) = clients().get(&key) {
            return Ok(client.clone());
        }
        let keychain = match credential {
            Some(credential) => credential.keychain()?,
            None => self.0.keychain.clone(),
        };
        let client = Client::new(registries::Options {
            plain_http: self.0.plain_http,
            keychain,
            limits: self.0.http.limits.durations(),
            egress: self.0.registries.clone(),
        });
        let mut clients = clients();
        if clients.len() >= MOST_CLIENTS {
            clients.clear();
        }
        Ok(clients.entry(key).or_insert(client).clone())
    }
}

fn timed_out(source: &Source) -> Error {
    Error::TimedOut {
        host: name(source),
        seconds: WHOLE.as_secs(),
    }
}

/// Runs work that blocks.
async fn blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let running = tasks::named(Task::SourceFetch, what).start_blocking(work);
    running.await.map_err(|_| Error::Ended(what.to_owned()))
}

/// Returns what is known with the new state, if the content is the same.
fn same(job: FetchJob<'_>, digest: &str, state: &Validators) -> Option<CachedSource> {
    let known = job.known.filter(|known| known.artifact.digest == digest)?;
    Some(CachedSource {
        state: state.clone(),
        artifact: known.artifact.clone(),
    })
}

pub(crate) fn no_files(path: &str) -> Error {
    Error::Unsupported(format!(
        "{path}: a path cannot be used in a cluster; use an HTTPS URL, `registry`, `git`, `helm`, `configMaps` or `katalogs`"
    ))
}

fn check_pin(artifact: &Artifact, pin: Option<&Pin>) -> Result<(), Error> {
    match pin {
        Some(pin) if pin.digest != artifact.digest => Err(Error::Mismatch {
            what: artifact.url.clone(),
            expected: pin.digest.clone(),
            actual: artifact.digest.clone(),
        }),
        _ => Ok(()),
    }
}

/// The name of a source in messages.
fn name(source: &Source) -> String {
    match source {
        Source::Path(path) => path.display().to_string(),
        Source::File { url } | Source::Git { url, .. } => without_query(url).to_owned(),
        Source::Registry { reference, .. } => reference.clone(),
        Source::Helm { repo, chart, .. } => format!("the chart {chart} of {}", without_query(repo)),
    }
}

fn key(source: &Source, credential: Option<&Credential>, pin: Option<&Pin>) -> CacheKey {
    let mut hasher = Sha256::new();
    hasher.update(format!("{source:?}\0{pin:?}\0"));
    hasher.update(credential.map(Credential::mark).unwrap_or_default());
    hasher.finalize().into()
}
