//! The Secret with the certificates, which replicas share: the first one writes it, and the others read it.
//!
//! Each write names the resourceVersion that it is based on, so that of two writers one starts again with the other's result.

use std::{path::Path, sync::Arc, time::Duration};

use jiff::Timestamp;
use orkestra_cluster::{
    requests::{Cluster, ClusterError, RETRY, Scope, Served},
    watch::{Handle, Presence, Watched},
};
use orkestra_object::value::Node;
use orkestra_plan::ObjectKey;
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    Gateway, MANAGER, desired,
    keys::{self, Rotation, ServingKeys},
};
use orkestra_http_api::tls;

/// The longest time between two looks at the Secret's state.
const LOOK_AGAIN: Duration = Duration::from_mins(10);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The Secret cannot be read or written.
    #[error("cannot {verb} Secret {name}: {source}")]
    Request {
        /// The verb.
        verb: &'static str,
        /// Namespace and name.
        name: String,
        /// The cause.
        source: ClusterError,
    },
    /// A certificate cannot be issued for the hosts of the webhooks.
    #[error("cannot issue a certificate: {0}")]
    Issue(#[from] rcgen::Error),
    /// The files cannot be used.
    #[error(transparent)]
    Files(#[from] super::files::Error),
    /// The Secret's certificate cannot be used.
    #[error(transparent)]
    Use(#[from] tls::Error),
}

/// The content of the Secret.
struct Stored {
    /// The certificates, without what cannot be used.
    keys: Option<ServingKeys>,
    /// Its resourceVersion.
    version: String,
    /// True if something in it cannot be used.
    is_damaged: bool,
}

/// The Secret of an installation.
pub(crate) struct Store {
    cluster: Cluster,
    served: Served,
    key: ObjectKey,
}

impl Store {
    pub(crate) fn new(gateway: &Gateway) -> Self {
        let options = &gateway.options;
        Self {
            cluster: gateway.cluster.clone(),
            served: secrets(),
            key: ObjectKey {
                namespace: Some(options.namespace.as_str().into()),
                name: options.secret.as_str().into(),
            },
        }
    }

    fn error(&self, verb: &'static str) -> impl FnOnce(ClusterError) -> Error {
        let name = self.key.to_string();
        move |source| Error::Request { verb, name, source }
    }

    /// Returns the Secret; none if there is none.
    async fn read(&self, now: Timestamp) -> Result<Option<Stored>, Error> {
        let secret = match self.cluster.get(&self.served, &self.key).await {
            Ok(secret) => secret,
            Err(ClusterError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(self.error("get")(error)),
        };
        let version = secret.meta_text("resourceVersion").unwrap_or_default();
        let read = ServingKeys::read(&secret);
        let usable = read.clone().and_then(|keys| keys.usable(now));
        Ok(Some(Stored {
            is_damaged: usable != read
                || read.is_none()
                || !read.is_some_and(|keys| keys.is_written_to(&secret)),
            keys: usable,
            version: version.to_owned(),
        }))
    }

    /// Writes certificates in place of those of that resourceVersion, or as a new Secret. False if another replica was first.
    async fn write(
        &self,
        keys: &ServingKeys,
        version: Option<&str>,
        label: &str,
    ) -> Result<bool, Error> {
        let mut body = json!({
            "metadata": { "labels": { desired::LABEL: label } },
            "data": keys.data(),
        });
        let written = if let Some(version) = version {
            body["metadata"]["resourceVersion"] = version.into();
            let body = Node::from(&body);
            self.cluster
                .merge_patch(&self.served, &self.key, None, MANAGER, &body)
                .await
        } else {
            body["apiVersion"] = "v1".into();
            body["kind"] = "Secret".into();
            body["type"] = "kubernetes.io/tls".into();
            body["metadata"]["name"] = Value::from(&*self.key.name);
            body["metadata"]["namespace"] = Value::from(self.key.namespace.as_deref());
            let body = Node::from(&body);
            self.cluster
                .create(&self.served, &self.key, MANAGER, &body)
                .await
        };
        match written {
            Ok(_) => Ok(true),
            Err(
                ClusterError::Conflict { .. }
                | ClusterError::AlreadyExists(_)
                | ClusterError::NotFound(_),
            ) => Ok(false),
            Err(error) => Err(self.error("write")(error)),
        }
    }
}

pub(crate) fn secrets() -> Served {
    Served::namespaced("", "v1", "Secret", "secrets")
}

/// Returns the certificates, which are issued if there are none, or if theirs has expired.
pub(crate) async fn obtain(gateway: &Gateway) -> Result<ServingKeys, Error> {
    let store = Store::new(gateway);
    loop {
        if let Some(keys) = advance(gateway, &store).await? {
            return Ok(keys);
        }
    }
}

/// Does what is due; returns the certificates, or none if another replica was first.
async fn advance(gateway: &Gateway, store: &Store) -> Result<Option<ServingKeys>, Error> {
    let options = &gateway.options;
    let hosts = desired::hosts(options, &gateway.catalogue.load());
    let now = gateway.context.clock.now();
    let (keys, version, is_damaged) = match store.read(now).await? {
        None => (None, None, false),
        Some(stored) => (stored.keys, Some(stored.version), stored.is_damaged),
    };
    let issue = || keys::issue(&hosts, now, options.life);
    let next = match keys {
        None => ServingKeys::first(issue()?),
        Some(keys) => {
            let authorities = keys.authorities();
            let trusted = gateway.trusted.borrow().clone();
            let since = trusted.filter(|trusted| trusted.authorities == authorities);
            match keys.rotation(&hosts, now, since.map(|trusted| trusted.since)) {
                Rotation::Wait(_) if is_damaged => keys,
                Rotation::Wait(_) => return Ok(Some(keys)),
                Rotation::Prepare => keys.with_next(issue()?, now),
                Rotation::Promote => keys.promoted(),
                Rotation::Replace => ServingKeys::first(issue()?),
            }
        }
    };
    let written = store.write(&next, version.as_deref(), &options.name);
    if !written.await? {
        return Ok(None);
    }
    if is_damaged {
        tracing::warn!(secret = %store.key, "the certificate of the webhooks was damaged; what could not be used is replaced");
    }
    let what = if next.next.is_some() {
        "prepared"
    } else {
        "serving"
    };
    tracing::info!(secret = %store.key, what, "wrote the certificate of the webhooks");
    Ok(Some(next))
}

/// Returns the certificate that serves, for handshakes.
pub(crate) fn certified(keys: &ServingKeys) -> Result<CertifiedKey, tls::Error> {
    let pair = &keys.serving;
    tls::certified(
        (Path::new("tls.crt"), pair.certificate.as_bytes()),
        (Path::new("tls.key"), pair.key.as_bytes()),
    )
}

/// Watches the Secret, and renews the certificate when it is time; never returns.
pub(crate) async fn keep(gateway: &Gateway) {
    let store = Store::new(gateway);
    let changed = Arc::new(Notify::new());
    let _watch = watch(gateway, &store, &changed);
    let mut trusted = gateway.trusted.subscribe();
    let mut catalogue = gateway.changed.subscribe();
    let mut failures = 0;
    loop {
        let pause = match advance(gateway, &store).await {
            Ok(None) => continue,
            Ok(Some(keys)) => {
                failures = 0;
                gateway.use_keys(&keys);
                due(gateway, &keys)
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(
                    error = orkestra_ground::chain(&error),
                    "cannot maintain the certificate of the webhooks"
                );
                RETRY.after(failures - 1)
            }
        };
        tokio::select! {
            () = changed.notified() => {}
            Ok(()) = trusted.changed() => {}
            Ok(()) = catalogue.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Returns how long nothing is due.
fn due(gateway: &Gateway, keys: &ServingKeys) -> Duration {
    let clock = &gateway.context.clock;
    let hosts = desired::hosts(&gateway.options, &gateway.catalogue.load());
    let trusted = gateway.trusted.borrow().clone();
    let since = trusted.filter(|trusted| trusted.authorities == keys.authorities());
    let since = since.map(|trusted| trusted.since);
    match keys.rotation(&hosts, clock.now(), since) {
        // Half a second later than the moment: never an instant before it.
        Rotation::Wait(at) => (clock.until(at) + Duration::from_millis(500)).min(LOOK_AGAIN),
        _ => Duration::from_millis(100),
    }
}

fn watch(gateway: &Gateway, store: &Store, changed: &Arc<Notify>) -> Handle<Presence> {
    let watched = Watched {
        served: store.served.clone(),
        scope: Scope {
            namespace: store.key.namespace.as_deref().map(str::to_owned),
            fields: Some(format!("metadata.name={}", store.key.name)),
            selector: None,
        },
    };
    let changed = Arc::clone(changed);
    let subscriber = Arc::new(move |_: &_| changed.notify_one());
    gateway
        .context
        .informers
        .shared(watched, &[], Some(subscriber))
}
