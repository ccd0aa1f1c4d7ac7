//! The task that follows the sources of one Komposer.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use kube::api::DynamicObject;
use orkestra_cluster::wire::Served;
use orkestra_core::{
    api::sources::SourceSecret,
    compose::{Artifact, Fetched, OciReference, Request, RequestKind},
    plan::KatalogRef,
};
use orkestra_ground::Backoff;
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use super::{
    super::{
        calls::Resource,
        katalog::Shared,
        watched::{Content, Watches},
    },
    FetchError, Known, KnownSources, Secret, Secrets, Wanted, is_in_cluster,
};
use crate::metrics::FetchResult;

/// How often a source is fetched that does not say so.
const INTERVAL: Duration = Duration::from_mins(5);
/// The minimum interval of a source.
const LEAST: Duration = Duration::from_secs(1);
/// Intervals are shortened by up to this fraction, so that sources are not fetched in step.
const JITTER: f64 = 0.1;
/// The delay after a failure that may pass.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));

/// The result of a fetch of one source.
type Done = (String, Result<Arc<Artifact>, FetchError>, Duration);

/// Follows the sources of one Komposer.
pub(super) struct Following {
    shared: Arc<Shared>,
    of: KatalogRef,
    wants: watch::Receiver<Arc<Wanted>>,
    sender: watch::Sender<KnownSources>,
    sources: BTreeMap<String, Source>,
    requested: Option<String>,
    config_maps: ConfigMaps,
}

/// One source.
struct Source {
    request: Request,
    known: Known,
    failures: u32,
    /// When it is fetched next; none while it is being fetched, and for sources of the cluster.
    due: Option<Instant>,
}

/// The watched `ConfigMaps`, in the order of their watches.
struct ConfigMaps {
    names: Vec<String>,
    watches: Watches<ConfigMap>,
}

/// A `ConfigMap`.
struct ConfigMap {
    data: BTreeMap<String, String>,
}

impl Content for ConfigMap {
    fn new(object: DynamicObject) -> Self {
        let data = object.data.get("data").and_then(Value::as_object);
        let text =
            |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        Self {
            data: data.into_iter().flatten().filter_map(text).collect(),
        }
    }
}

impl Following {
    pub(super) fn new(
        shared: Arc<Shared>,
        of: KatalogRef,
        wants: watch::Receiver<Arc<Wanted>>,
        sender: watch::Sender<KnownSources>,
    ) -> Self {
        Self {
            shared,
            of,
            wants,
            sender,
            sources: BTreeMap::new(),
            requested: None,
            config_maps: ConfigMaps {
                names: Vec::new(),
                watches: Watches::none(),
            },
        }
    }

    /// Follows the sources until nobody wants them.
    pub(super) async fn run(&mut self) {
        let mut fetching: FuturesUnordered<BoxFuture<'static, Done>> = FuturesUnordered::new();
        let mut katalogs = self.shared.katalogs.changed();
        // A fetch that ended with an earlier run of this task is repeated.
        for source in self.sources.values_mut() {
            source.due.get_or_insert_with(Instant::now);
        }
        self.wants.mark_changed();
        let mut states = Vec::new();
        loop {
            if self.wants.has_changed().unwrap_or_default() {
                self.adopt();
                states = self.config_maps.watches.states();
                katalogs.mark_changed();
            }
            let now = Instant::now();
            for source in self.sources.values_mut() {
                if source.due.is_some_and(|due| due <= now) && !is_in_cluster(&source.request.kind)
                {
                    source.due = None;
                    let fetched = fetch(
                        Arc::clone(&self.shared),
                        self.of.clone(),
                        source.request.clone(),
                    );
                    fetching.push(Box::pin(fetched));
                }
            }
            let due = self.sources.values().filter_map(|source| source.due).min();
            let far = now + RETRY.longest;
            tokio::select! {
                changed = self.wants.changed() => match changed {
                    Ok(()) => self.wants.mark_changed(),
                    Err(_) => return,
                },
                Some((id, result, took)) = fetching.next() => {
                    self.count(&id, &result, took);
                    self.note(&id, result);
                }
                Ok(()) = katalogs.changed() => self.look_at_katalogs(),
                Some(_) = self.config_maps.watches.told.recv() => self.look_at_config_maps(),
                () = Watches::<ConfigMap>::changed(&mut states) => self.look_at_config_maps(),
                () = tokio::time::sleep_until(due.unwrap_or(far).min(far)) => {}
            }
        }
    }

    /// Takes the wanted sources: new ones are due at once.
    fn adopt(&mut self) {
        let wanted = Arc::clone(&self.wants.borrow_and_update());
        let at_once = wanted.requested != self.requested;
        self.requested.clone_from(&wanted.requested);
        let ids: BTreeSet<&str> = wanted.requests.iter().map(|one| &*one.id).collect();
        self.sources.retain(|id, _| ids.contains(id.as_str()));
        for request in &wanted.requests {
            let source = self.sources.entry(request.id.clone());
            let source = source.or_insert_with(|| Source {
                request: request.clone(),
                known: Known::default(),
                failures: 0,
                due: Some(Instant::now()),
            });
            let is_other = (
                &source.request.auth,
                &source.request.verify,
                source.request.interval,
            ) != (&request.auth, &request.verify, request.interval);
            source.request = request.clone();
            // One that is being fetched stays without a due time.
            if (is_other || at_once) && source.due.is_some() {
                source.due = Some(Instant::now());
            }
        }
        self.watch_config_maps();
        self.publish();
    }

    /// Watches the wanted `ConfigMaps`, each by its name.
    fn watch_config_maps(&mut self) {
        let name = |source: &Source| match &source.request.kind {
            RequestKind::ConfigMap { name, .. } => Some(name.clone()),
            _ => None,
        };
        let names: BTreeSet<String> = self.sources.values().filter_map(name).collect();
        let names: Vec<String> = names.into_iter().collect();
        if names == self.config_maps.names {
            return;
        }
        let mut watches = Watches::none();
        for name in &names {
            let namespace = Some(self.of.namespace.clone());
            let informers = &self.shared.context.informers;
            watches.add(informers, &config_maps(), namespace, Some(name));
        }
        self.config_maps = ConfigMaps { names, watches };
    }

    fn look_at_config_maps(&mut self) {
        let mut results = Vec::new();
        for (id, source) in &self.sources {
            let RequestKind::ConfigMap { name, key } = &source.request.kind else {
                continue;
            };
            let found = self
                .config_maps
                .find(name, key.as_deref(), &self.of.namespace);
            results.extend(found.map(|found| (id.clone(), found)));
        }
        for (id, result) in results {
            self.note(&id, result.map(Arc::new));
        }
    }

    fn look_at_katalogs(&mut self) {
        let mut results = Vec::new();
        for (id, source) in &self.sources {
            if let RequestKind::Katalogs { name, selector } = &source.request.kind {
                let katalogs = &self.shared.katalogs;
                let found =
                    katalogs.artifact(&self.of.namespace, name.as_deref(), selector.as_ref());
                results.push((id.clone(), found));
            }
        }
        for (id, result) in results {
            self.note(&id, result.map(Arc::new));
        }
    }

    /// Counts a fetch.
    fn count(&self, id: &str, result: &Result<Arc<Artifact>, FetchError>, took: Duration) {
        let Some(source) = self.sources.get(id) else {
            return;
        };
        let known = source.known.artifact.as_deref();
        let result = match result {
            Ok(artifact) if known == Some(&**artifact) => FetchResult::Unchanged,
            Ok(artifact) => FetchResult::Changed(artifact),
            Err(_) => FetchResult::Failed,
        };
        let metrics = &self.shared.context.metrics;
        metrics.fetched(&source.request.kind, result, took);
    }

    /// Records the result of a fetch, and when the source is fetched again.
    fn note(&mut self, id: &str, result: Result<Arc<Artifact>, FetchError>) {
        let entropy = &self.shared.context.entropy;
        let Some(source) = self.sources.get_mut(id) else {
            return;
        };
        let interval = interval(&source.request);
        let regular = interval.map(|interval| Instant::now() + entropy.shorten(interval, JITTER));
        match result {
            Ok(artifact) => {
                source.failures = 0;
                source.due = regular;
                source.known.problem = None;
                // An equal artifact stays the same object.
                if source.known.artifact.as_deref() != Some(&*artifact) {
                    tracing::info!(komposer = %self.of, source = id, revision = artifact.revision, digest = artifact.digest, "source has a new revision");
                    source.known.artifact = Some(artifact);
                }
            }
            Err(error) => {
                source.failures = source.failures.saturating_add(1);
                let retry = Instant::now() + RETRY.jittered(source.failures - 1, entropy, JITTER);
                source.due = if error.permanent {
                    regular
                } else {
                    Some(retry)
                };
                if source.known.problem.as_ref() != Some(&error) {
                    tracing::warn!(komposer = %self.of, source = id, error = %error, "cannot fetch a source");
                }
                source.known.problem = Some(error);
            }
        }
        if is_in_cluster(&source.request.kind) {
            source.due = None;
        }
        self.publish();
    }

    fn publish(&self) {
        let known = self.sources.iter();
        let known: BTreeMap<String, Known> = known
            .map(|(id, source)| (id.clone(), source.known.clone()))
            .collect();
        self.sender.send_if_modified(|before| {
            let differs = **before != known;
            if differs {
                *before = Arc::new(known);
            }
            differs
        });
    }
}

impl ConfigMaps {
    /// Returns the artifact of a `ConfigMap`; none while it is not listed yet.
    fn find(
        &self,
        name: &str,
        key: Option<&str>,
        namespace: &str,
    ) -> Option<Result<Artifact, FetchError>> {
        let watch = self.names.iter().position(|one| one == name)?;
        let refused =
            |message: String, permanent: bool| Some(Err(FetchError { message, permanent }));
        if !self.watches.was_synced(watch) {
            let (_, handle) = self.watches.handles.get(watch)?;
            let (_, problem) = handle.trouble()?;
            return refused(super::super::watched::words(problem), false);
        }
        let Some(found) = self.watches.all(watch).into_iter().next() else {
            let message = format!("there is no ConfigMap `{name}` in namespace {namespace}");
            return refused(message, true);
        };
        let is_wanted = |name: &str| match key {
            Some(key) => name == key,
            None => name.strip_suffix(".yaml").is_some(),
        };
        let documents: Vec<Fetched> = (found.data.iter())
            .filter(|(name, _)| is_wanted(name))
            .map(|(name, text)| Fetched {
                name: name.clone(),
                text: text.clone(),
            })
            .collect();
        if documents.is_empty() {
            let what = match key {
                Some(key) => format!("no key `{key}`"),
                None => "no key that ends in `.yaml`".to_owned(),
            };
            return refused(format!("ConfigMap `{name}` has {what}"), true);
        }
        Some(Ok(Artifact {
            url: format!("configmap/{name}"),
            digest: Artifact::digest_of(&documents),
            documents,
            ..Artifact::default()
        }))
    }
}

/// Fetches one source, at most as many at a time as the process permits.
async fn fetch(shared: Arc<Shared>, of: KatalogRef, request: Request) -> Done {
    let id = request.id.clone();
    let Ok(_permit) = shared.fetches.acquire().await else {
        let message = "the process is stopping".to_owned();
        return (
            id,
            Err(FetchError {
                message,
                permanent: false,
            }),
            Duration::ZERO,
        );
    };
    let began = Instant::now();
    let fetched = async {
        let auth = request
            .auth
            .as_ref()
            .and_then(|auth| auth.secret_ref.as_ref());
        let verify = request
            .verify
            .as_ref()
            .and_then(|one| one.secret_ref.as_ref());
        let secrets = Secrets {
            auth: secret(&shared, &of, auth).await?,
            verify: secret(&shared, &of, verify).await?,
        };
        shared.fetch.fetch(&request, &secrets).await
    };
    let fetched = fetched.await;
    (id, fetched, began.elapsed())
}

/// Reads a Secret by name, in the namespace of the Komposer.
async fn secret(
    shared: &Shared,
    of: &KatalogRef,
    wanted: Option<&SourceSecret>,
) -> Result<Option<Secret>, FetchError> {
    let Some(SourceSecret { name, .. }) = wanted else {
        return Ok(None);
    };
    let transient = |message: String| FetchError {
        message,
        permanent: false,
    };
    let secrets = Resource::secrets(shared.context.wire.client());
    let found = secrets.get(Some(&of.namespace), name).await;
    let found =
        found.map_err(|error| transient(format!("cannot read Secret `{name}`: {error}")))?;
    let found = found.ok_or_else(|| {
        transient(format!(
            "there is no Secret `{name}` in namespace {}",
            of.namespace
        ))
    })?;
    let decode = |(key, value): (&String, &Value)| {
        let value: k8s_openapi::ByteString = serde_json::from_value(value.clone()).ok()?;
        Some((key.clone(), value.0))
    };
    let data = found.data.get("data").and_then(Value::as_object);
    let type_ = found.data.get("type").and_then(Value::as_str);
    Ok(Some(Secret {
        name: name.clone(),
        type_: type_.unwrap_or_default().to_owned(),
        data: data.into_iter().flatten().filter_map(decode).collect(),
    }))
}

/// Returns how often a source is fetched; none for one whose content its reference names, and for an interval of zero.
fn interval(request: &Request) -> Option<Duration> {
    if let RequestKind::Registry { url, .. } = &request.kind
        && OciReference::parse(url).is_ok_and(|reference| reference.is_pinned())
    {
        return None;
    }
    let declared = request.interval.map_or(INTERVAL, |interval| interval.0);
    (!declared.is_zero()).then(|| declared.max(LEAST))
}

fn config_maps() -> Served {
    Served {
        group: "".into(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
    }
}
