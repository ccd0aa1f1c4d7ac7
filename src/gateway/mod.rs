//! The gateway: webhooks that the API server calls when custom resources and Katalogs are written, and what points it at them.
//!
//! ```text
//!  API server ── HTTPS ─► routes: size, time, turns ─┬─ kinds       Katalogs and Motifs: diagnostics, the author's permissions
//!                                                    ├─ instances   rules of operators ─► verdict, JSON patch
//!                                                    ├─ convert     versions of a kind
//!                                                    └─ protection  deletions in spite of a protection: an Event
//!  Katalogs ─► Directory ─► catalogue ──────────────────┘
//!      └─► wanted ─► keeper ─► webhook configurations, policies, `spec.conversion`   once the webhook answers
//!  Secret ◄─► secret, keys ─► TLS; the authorities of two certificates are trusted while one follows the other
//! ```
//!
//! Every replica serves, whether it leads or not: reviews need compiled plans and nothing else, conversions not even the API
//! server. Only the leader writes what points at the webhooks; any replica may issue the certificate.

mod author;
mod catalogue;
mod convert;
mod instances;
mod keeper;
mod keys;
mod kinds;
mod probe;
mod protection;
mod remove;
mod review;
mod routes;
mod secret;
#[cfg(test)]
mod tests;
mod turns;
mod wanted;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use orkestra_cluster::wire::Wire;
use orkestra_core::plan::rbac;
use orkestra_ground::{
    Backoff, chain,
    tasks::{self, Ends, Task},
};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

pub use author::AuthorCheck;
pub use remove::{Registered, Settings, registered, remove};

use self::{author::Authors, catalogue::Catalogue, keys::Keys, turns::Turns};
use crate::{
    meta::{Directory, Namespaces},
    metrics::WebhookMetrics,
    runtime::context::{Context, cores},
    server::{
        listen::{self, Limits, Port},
        tls::Tls,
    },
};

/// The field manager of everything that the gateway writes.
const MANAGER: &str = "orkestra-gateway";
/// The default name of an installation's webhook configurations.
pub const NAME: &str = rbac::WEBHOOKS;
/// The default name of the Secret with the certificates.
pub const SECRET: &str = rbac::WEBHOOKS_SECRET;
/// The delays after a failure at the start.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(500), Duration::from_secs(30));
/// The interval at which the file of authorities is read.
const READ_AGAIN: Duration = Duration::from_secs(30);
/// How long the removal of configurations may take at the end.
const FAREWELL: Duration = Duration::from_secs(10);

/// How the API server reaches the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By a Service of the gateway's namespace, at port 443.
    Service {
        /// The Service, for Katalogs that name none.
        name: String,
    },
    /// By a URL, without a path.
    Url(String),
}

/// A certificate from files, such as a Secret of cert-manager that is mounted.
#[derive(Clone, Debug)]
pub struct Files {
    /// Certificate and key, which are read again when they change.
    pub tls: Tls,
    /// The certificates of its authorities, in PEM.
    pub authorities: PathBuf,
}

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of its configurations, and the value of their label.
    pub name: String,
    /// The namespace of the Secret and of the Service; nothing in it depends on the webhooks.
    pub namespace: String,
    /// The Secret with the certificates.
    pub secret: String,
    /// How the API server reaches it.
    pub reach: Reach,
    /// Whether kinds are converted whose Katalog does not say so.
    pub conversion: bool,
    /// Whether authors of Katalogs are checked.
    pub author_check: AuthorCheck,
    /// The validity of certificates that it issues.
    pub life: Duration,
    /// The certificate, if it does not issue its own.
    pub files: Option<Files>,
    /// The namespaces whose Katalogs are its own.
    pub katalogs: Namespaces,
    /// The user of this process, whose writes are not reviewed; set at the start.
    pub user: String,
}

/// Authorities that all configurations have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trusted {
    authorities: String,
    since: Timestamp,
}

/// A gateway. Clones share its state.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

/// The state of a [`Gateway`].
pub struct Inner {
    options: Options,
    context: Arc<Context>,
    /// Requests that do not depend on leadership.
    wire: Wire,
    authors: Authors,
    directory: Directory,
    catalogue: ArcSwap<Catalogue>,
    /// Counts changes of the catalogue.
    changed: watch::Sender<u64>,
    /// Whether the Katalogs that existed at the start are known.
    listed: watch::Receiver<bool>,
    /// The trusted authorities, in PEM; empty before there is a certificate.
    authorities: watch::Sender<String>,
    trusted: watch::Sender<Option<Trusted>>,
    tls: std::sync::OnceLock<Tls>,
    turns: Turns,
    metrics: WebhookMetrics,
}

impl std::ops::Deref for Gateway {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gateway").field(&self.options).finish()
    }
}

impl Gateway {
    /// A gateway for the Katalogs of `directory`; `listed` turns true once those that existed at the start are known. `wire`
    /// makes requests whether this process leads or not.
    pub fn new(
        options: Options,
        context: Arc<Context>,
        wire: Wire,
        (directory, listed): (Directory, watch::Receiver<bool>),
    ) -> Self {
        let metrics = WebhookMetrics::new(&context.metrics);
        Self(Arc::new(Inner {
            authors: Authors::new(wire.client().clone()),
            catalogue: ArcSwap::default(),
            changed: watch::Sender::new(0),
            authorities: watch::Sender::default(),
            trusted: watch::Sender::default(),
            tls: std::sync::OnceLock::new(),
            turns: Turns::new(cores() * 2),
            metrics,
            options,
            context,
            wire,
            directory,
            listed,
        }))
    }

    /// Serves the webhooks on `listener`, and keeps what points the API server at them, until `shutdown`. It serves on until
    /// `stop`, since operators that are stopping need conversions; then it removes what a Katalog wants removed, and lets
    /// requests in progress complete.
    pub async fn run(
        self,
        listener: TcpListener,
        shutdown: CancellationToken,
        stop: CancellationToken,
    ) {
        let Some(tls) = self.first_certificate(&stop).await else {
            return;
        };
        let port = Port {
            listener,
            limits: Limits::WEBHOOKS,
            tls: Some(tls.with_http2()),
        };
        // The port serves until everything that points at it is removed.
        let served = CancellationToken::new();
        let serving = listen::serve(port, routes::router(self.clone()), served.clone());
        let keeping = async {
            let leads = tokio::select! {
                () = self.follow_katalogs() => false,
                () = self.keep_certificate() => false,
                () = self.keep_configurations() => false,
                () = shutdown.cancelled() => self.context.leadership.leads(),
            };
            stop.cancelled().await;
            if leads
                && tokio::time::timeout(FAREWELL, keeper::end(&self))
                    .await
                    .is_err()
            {
                tracing::warn!("webhook configurations were not removed in time");
            }
            served.cancel();
        };
        futures::future::join(serving, keeping).await;
    }

    /// Returns the certificate to start with: none if the process stops before there is one.
    async fn first_certificate(&self, stop: &CancellationToken) -> Option<Tls> {
        self.refresh();
        if let Some(files) = &self.options.files {
            self.read_authorities(files).await;
            return Some(files.tls.clone());
        }
        let mut failures = 0;
        loop {
            let error = match secret::obtain(self).await {
                Ok(keys) => match secret::certified(&keys) {
                    Ok(certified) => {
                        let tls = self.tls.get_or_init(|| Tls::holding(certified)).clone();
                        self.use_keys(&keys);
                        return Some(tls);
                    }
                    Err(error) => secret::Error::Use(error),
                },
                Err(error) => error,
            };
            tracing::warn!(
                error = chain(&error),
                "the webhooks have no certificate yet"
            );
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(RETRY.after(failures)) => failures += 1,
            }
        }
    }

    /// Uses the certificate for handshakes from now on, and publishes its authorities.
    fn use_keys(&self, keys: &Keys) {
        match secret::certified(keys) {
            Ok(certified) => {
                if let Some(tls) = self.tls.get()
                    && tls.certificate().as_ref() != certified.cert.first()
                {
                    tls.replace(certified);
                    tracing::info!(until = %keys.serving.expires, "the webhooks use another certificate");
                }
                self.metrics
                    .certificate_end()
                    .set(keys.serving.expires.as_second());
            }
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "cannot use the certificate of the Secret"
                );
            }
        }
        self.publish_authorities(keys.authorities());
    }

    fn publish_authorities(&self, authorities: String) {
        self.authorities.send_if_modified(|before| {
            let differs = *before != authorities;
            *before = authorities;
            differs
        });
    }

    async fn read_authorities(&self, files: &Files) {
        match tokio::fs::read_to_string(&files.authorities).await {
            Ok(text) => self.publish_authorities(text),
            Err(error) => {
                let file = files.authorities.display();
                tracing::warn!(%error, %file, "cannot read the authorities of the webhooks' certificate");
            }
        }
    }

    /// All configurations have these authorities.
    fn trust(&self, authorities: &str) {
        self.trusted.send_if_modified(|trusted| {
            if (trusted.as_ref()).is_some_and(|known| known.authorities == authorities) {
                return false;
            }
            *trusted = Some(Trusted {
                authorities: authorities.to_owned(),
                since: self.context.clock.now(),
            });
            true
        });
    }

    /// Rebuilds the catalogue.
    fn refresh(&self) {
        let katalogs = self.directory.katalogs();
        let catalogue = Catalogue::new(&katalogs, self.options.conversion);
        self.catalogue.store(Arc::new(catalogue));
        self.changed.send_modify(|count| *count += 1);
    }

    async fn follow_katalogs(&self) {
        let mut directory = self.directory.clone();
        self.refresh();
        while directory.changed().await {
            self.refresh();
        }
        std::future::pending::<()>().await;
    }

    async fn keep_certificate(&self) {
        let named = tasks::named(Task::WebhookCertificate, "");
        named
            .kept(Ends::never(), self.clone(), |gateway| {
                Box::pin(async {
                    let Some(files) = gateway.options.files.clone() else {
                        return secret::keep(gateway).await;
                    };
                    let again = async {
                        loop {
                            tokio::time::sleep(READ_AGAIN).await;
                            gateway.read_authorities(&files).await;
                        }
                    };
                    futures::future::join(files.tls.clone().follow(), again).await;
                })
            })
            .await;
    }

    async fn keep_configurations(&self) {
        let named = tasks::named(Task::WebhookConfigurations, "");
        named
            .kept(Ends::never(), self.clone(), |gateway| {
                Box::pin(keeper::keep(gateway))
            })
            .await;
    }
}

/// Runs a gateway, as [`Gateway::run`], once the API server has told who this process is.
pub async fn run(
    mut options: Options,
    context: Arc<Context>,
    wire: Wire,
    katalogs: (Directory, watch::Receiver<bool>),
    (listener, shutdown, stop): (TcpListener, CancellationToken, CancellationToken),
) {
    let mut failures = 0;
    loop {
        match own_user(wire.client()).await {
            Ok(user) => {
                options.user = user;
                break;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot ask the API server for this process's user");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RETRY.after(failures)) => failures += 1,
        }
    }
    let gateway = Gateway::new(options, context, wire, katalogs);
    gateway.run(listener, shutdown, stop).await;
}

/// Returns the user of this process, as the API server knows it.
///
/// # Errors
/// The API server did not answer.
async fn own_user(client: &kube::Client) -> Result<String, kube::Error> {
    let body = serde_json::json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
    });
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    let review: SelfSubjectReview = client.request(request).await?;
    let user = review.status.and_then(|status| status.user_info);
    Ok(user.and_then(|user| user.username).unwrap_or_default())
}
