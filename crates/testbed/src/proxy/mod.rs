//! A proxy between one client and the API server that injects faults.
//!
//! ```text
//! client ── TLS: HTTP/1.1, HTTP/2 ──► front ── fate of the request ──► kube::Client of the identity ──► API server
//!                                       ▲ faults, cuts, stalls, partitions: set by the test
//! ```
//!
//! The proxy forwards every request as the identity for which it was created, so a controller uses [`Proxy::identity`]: the same
//! user with the proxy's address. The API server's audit log contains that user, and only requests that were forwarded.

mod body;
mod faults;
mod front;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub use self::faults::Faults;
use crate::control_plane::ControlPlane;
use crate::identity::Identity;

/// The way in which a watch is cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cut {
    /// In order, as by a server that ends old watches.
    #[default]
    Ended,
    /// In the middle of the stream, as by a lost connection.
    Broken,
}

/// The behaviour of the proxy for all connections.
#[derive(Debug, Clone, Copy, Default)]
struct Behaviour {
    faults: Faults,
    /// Incremented by each cut.
    cuts: u64,
    how: Cut,
    /// Watch events are not forwarded.
    stalled: bool,
    /// Nothing is forwarded.
    partitioned: bool,
}

/// A connection that broke before its end.
#[derive(Debug, Clone, Copy)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the proxy breaks the connection")
    }
}

impl std::error::Error for Broken {}

/// The state that the connections share.
struct State {
    upstream: kube::Client,
    seed: u64,
    numbers: AtomicU64,
    behaviours: watch::Sender<Behaviour>,
    fates: Mutex<BTreeMap<&'static str, u64>>,
}

impl State {
    fn count(&self, what: &'static str) {
        let mut fates = self.fates.lock();
        *fates.entry(what).or_default() += 1;
    }
}

/// A running proxy. It ends when this value is dropped.
pub struct Proxy {
    address: SocketAddr,
    identity: Identity,
    state: Arc<State>,
    /// The tasks of the connections, which end when this is dropped.
    _tasks: JoinSet<()>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts a proxy in front of this control plane that forwards as `identity`. `seed` determines which request meets which
    /// fault. The proxy belongs to the runtime of the caller.
    pub async fn proxy(&self, identity: &Identity, seed: u64) -> Result<Proxy> {
        let mut config = identity.config()?;
        // Return the API server's first answer, without a retry.
        config.default_retry = false;
        let upstream = Identity::client_of(config)?;
        Proxy::start(upstream, &self.site().pki(), identity, seed).await
    }
}

impl Proxy {
    /// Starts the proxy. `pki` contains the certificate that the proxy presents.
    async fn start(
        upstream: kube::Client,
        pki: &std::path::Path,
        identity: &Identity,
        seed: u64,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            upstream,
            seed,
            numbers: AtomicU64::new(0),
            behaviours: watch::Sender::default(),
            fates: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(front::accept(listener, acceptor(pki)?, state.clone()));
        Ok(Self {
            address,
            identity: identity.at(&format!("https://{address}"))?,
            state,
            _tasks: tasks,
        })
    }

    /// Returns the upstream user with configurations and a kubeconfig that lead to the proxy.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Sets the faults from now on. A request that hangs already hangs until its client or the proxy ends.
    pub fn set(&self, faults: Faults) {
        self.state
            .behaviours
            .send_modify(|behaviour| behaviour.faults = faults);
    }

    /// Ends all running watches.
    pub fn cut_watches(&self, how: Cut) {
        self.state.behaviours.send_modify(|behaviour| {
            behaviour.cuts += 1;
            behaviour.how = how;
        });
    }

    /// Stalls or resumes watches. Events during the stall are sent after it.
    pub fn stall_watches(&self, stalled: bool) {
        self.state
            .behaviours
            .send_modify(|behaviour| behaviour.stalled = stalled);
    }

    /// Starts or ends a partition: nothing is forwarded in either direction, and all connections stay open. After it, everything
    /// is forwarded.
    pub fn partition(&self, partitioned: bool) {
        let change = |behaviour: &mut Behaviour| behaviour.partitioned = partitioned;
        self.state.behaviours.send_modify(change);
    }

    /// Returns the number of requests by outcome. The names are those of [`Faults`], `passed`, and `down` for requests that the
    /// API server did not answer.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let fates = &self.state.fates;
        fates.lock().clone()
    }

    /// Returns the number of requests received.
    pub fn requests(&self) -> u64 {
        self.state.numbers.load(Ordering::Relaxed)
    }
}

fn acceptor(pki: &std::path::Path) -> Result<TlsAcceptor> {
    let certificate = CertificateDer::from_pem_file(pki.join("server.crt"))?;
    let key = PrivateKeyDer::from_pem_file(pki.join("server.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .context("the proxy's certificate")?;
    config.alpn_protocols = [front::H2, front::H1].map(<[u8]>::to_vec).into();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
