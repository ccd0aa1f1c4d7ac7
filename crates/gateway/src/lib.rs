//! The gateway: webhooks that the API server calls when custom resources and Katalogs are written, and what points it at them.
//!
//! ```text
//!  API server ── HTTPS ─► routes: size, time, seats ─┬─ kinds       Katalogs and Motifs: diagnostics, the author's permissions
//!                                                    ├─ instances   rules of operators ─► verdict, JSON patch
//!                                                    ├─ convert     versions of a kind
//!                                                    └─ protection  deletions in spite of a protection: an Event
//!  Katalogs ─► Directory ─► catalogue ──────────────────┘
//!      └─► desired ─► keeper ─► webhook configurations, policies, `spec.conversion`   once the webhook answers
//!  Secret ◄─► secret, keys ─► TLS; the authorities of two certificates are trusted while one follows the other
//! ```
//!
//! Every replica serves, whether it leads or not: reviews need compiled plans and nothing else, conversions not even the API
//! server. Only the leader writes what points at the webhooks; any replica may issue the certificate. A process whose webhooks are
//! off removes what its installation registered before (`withdraw`).

mod author;
mod bodies;
mod callers;
mod catalogue;
mod convert;
mod definitions;
mod desired;
mod files;
mod instances;
mod keeper;
mod keys;
mod kinds;
mod options;
mod policies;
mod probe;
mod protection;
mod queues;
mod record;
mod recorded;
mod remove;
mod review;
mod routes;
mod secret;
#[cfg(test)]
mod tests;
mod webhooks;
mod withdraw;

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use orkestra_cluster::requests::{Cluster, RETRY};
use orkestra_ground::{
    chain,
    tasks::{self, Ends, Task},
};
use orkestra_plan::rbac;
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

pub use author::AuthorCheck;
pub use callers::Callers;
pub use files::{CertificateFiles, Error as FilesError};
pub use options::{GatewayOptions, Reach};
pub use policies::run_policies;
pub use remove::{ALONE, GATEWAY, Registered, Settings, registered, remove, remove_policies};
pub use withdraw::Withdrawal;

use self::{
    author::Authors,
    catalogue::{Catalogue, Conversions, KindConversion},
    keys::ServingKeys,
    routes::Budget,
};
use orkestra_controller::Directory;
use orkestra_http_api::{
    listen::{self, Limits, Port},
    tls::Tls,
};
use orkestra_operator::{
    context::{Context, cores},
    metrics::WebhookMetrics,
};

/// The field manager of everything that the gateway writes.
const MANAGER: &str = "orkestra-gateway";
/// The default name of an installation's webhook configurations.
pub const NAME: &str = rbac::WEBHOOKS;
/// The default name of the Secret with the certificates.
pub const SECRET: &str = rbac::WEBHOOKS_SECRET;
/// The fewest requests of one kind that are evaluated at a time: with less, one peer would have only one of them.
const LEAST_SEATS: usize = 4;

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
    options: GatewayOptions,
    context: Arc<Context>,
    /// Requests that do not depend on leadership.
    cluster: Cluster,
    authors: Authors,
    directory: Directory,
    catalogue: ArcSwap<Catalogue>,
    /// Conversions that definitions record and no Katalog declares; `None` until definitions were read.
    recorded: watch::Sender<Option<Arc<Conversions>>>,
    /// Counts changes of the catalogue.
    changed: watch::Sender<u64>,
    /// Whether the Katalogs that existed at the start are known.
    listed: watch::Receiver<bool>,
    /// The trusted authorities, in PEM; empty before there is a certificate.
    authorities: watch::Sender<String>,
    trusted: watch::Sender<Option<Trusted>>,
    tls: std::sync::OnceLock<Tls>,
    /// The certificates that were read from files.
    read: Mutex<Option<ServingKeys>>,
    /// The limits of reviews.
    reviews: Budget,
    /// The limits of conversions, which cannot fail open.
    converting: Budget,
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
    /// A gateway for the Katalogs of `directory`; `listed` turns true once those that existed at the start are known. `cluster`
    /// makes requests whether this process leads or not.
    pub fn new(
        options: GatewayOptions,
        context: Arc<Context>,
        cluster: Cluster,
        (directory, listed): (Directory, watch::Receiver<bool>),
    ) -> Self {
        let metrics = WebhookMetrics::new(&context.metrics);
        let seats = (cores() * 2).max(LEAST_SEATS);
        Self(Arc::new(Inner {
            authors: Authors::new(&cluster),
            catalogue: ArcSwap::default(),
            recorded: watch::Sender::default(),
            changed: watch::Sender::new(0),
            authorities: watch::Sender::default(),
            trusted: watch::Sender::default(),
            tls: std::sync::OnceLock::new(),
            read: Mutex::default(),
            reviews: Budget::new(seats),
            converting: Budget::new(seats),
            metrics,
            options,
            context,
            cluster,
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
            tls: Some(tls.with_http2(self.options.callers.certificates.clone())),
        };
        // The port serves until everything that points at it is removed.
        let served = CancellationToken::new();
        let serving = listen::serve(port, routes::router(self.clone()), served.clone());
        let keeping = async {
            let leads = tokio::select! {
                () = self.follow_katalogs() => false,
                () = recorded::follow(&self) => false,
                () = self.keep_certificate() => false,
                () = self.keep_configurations() => false,
                () = shutdown.cancelled() => self.context.leadership.leads(),
            };
            stop.cancelled().await;
            if leads {
                self.end().await;
            }
            served.cancel();
        };
        futures::future::join(serving, keeping).await;
    }

    /// Returns the certificate to start with: none if the process stops before there is one.
    async fn first_certificate(&self, stop: &CancellationToken) -> Option<Tls> {
        self.refresh();
        let mut failures = 0;
        loop {
            let obtained = match &self.options.files {
                Some(files) => self.first_of_files(files).await,
                None => secret::obtain(self).await,
            };
            let error = match obtained {
                Ok(keys) => match secret::certified(&keys) {
                    Ok(certified) => {
                        let holding = || Tls::holding(certified);
                        let tls = self.tls.get_or_init(holding).clone();
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
            self.report_without_certificate(&chain(&error));
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(RETRY.after(failures)) => failures += 1,
            }
        }
    }

    /// Uses the certificate for handshakes from now on, and publishes its authorities.
    fn use_keys(&self, keys: &ServingKeys) {
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

    async fn first_of_files(&self, files: &CertificateFiles) -> Result<ServingKeys, secret::Error> {
        let keys = ServingKeys::first(files.read().await?);
        self.keep_read(keys.clone());
        Ok(keys)
    }

    /// Returns the certificates that were read from files.
    fn read_keys(&self) -> Option<ServingKeys> {
        self.read.lock().clone()
    }

    fn keep_read(&self, keys: ServingKeys) {
        *self.read.lock() = Some(keys);
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
        let before = self.catalogue.load_full();
        let catalogue = Catalogue::new(&katalogs, &before, self.options.conversion);
        self.catalogue.store(Arc::new(catalogue));
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns the conversion of a kind: the one that is declared, else the last one that was, else the one that its definition
    /// records.
    fn conversion(&self, group: &str, kind: &str) -> Option<KindConversion> {
        let catalogue = self.catalogue.load();
        let known = catalogue.conversion(group, kind).cloned();
        known.or_else(|| {
            let recorded = self.recorded.borrow();
            recorded
                .as_ref()?
                .get(&(group.into(), kind.into()))
                .cloned()
        })
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
                    match &gateway.options.files {
                        Some(files) => files::keep(gateway, files).await,
                        None => secret::keep(gateway).await,
                    }
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

/// Returns the user of this process, once the API server has identified it; none if the process stops before.
async fn identify(cluster: &Cluster, stop: &CancellationToken) -> Option<String> {
    let mut failures = 0;
    loop {
        match author::own_user(cluster).await {
            Ok(user) => return Some(user),
            Err(error) => {
                tracing::warn!(%error, "cannot determine the user of this process");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(RETRY.after(failures)) => failures += 1,
        }
    }
}

/// Runs a gateway, as [`Gateway::run`], once the API server has identified this process.
pub async fn run(
    mut options: GatewayOptions,
    context: Arc<Context>,
    cluster: Cluster,
    katalogs: (Directory, watch::Receiver<bool>),
    (listener, shutdown, stop): (TcpListener, CancellationToken, CancellationToken),
) {
    let Some(user) = identify(&cluster, &stop).await else {
        return;
    };
    options.user = user;
    let gateway = Gateway::new(options, context, cluster, katalogs);
    gateway.run(listener, shutdown, stop).await;
}
