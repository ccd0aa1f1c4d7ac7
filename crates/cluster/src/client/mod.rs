//! How a client of the cluster is built.
//!
//! ```text
//!  kube::Client ─► flow ─► headers ─► credentials ─► gzip ─► base address ─► transport ─► connections
//! ```
//!
//! All layers but flow and transport are kube's own: exec plugins, token files and certificates work as they do there.

mod connections;
mod dial;
pub mod flow;
mod identity;
mod transport;

use std::time::Duration;

use http::{HeaderValue, header};
use kube::{
    Config,
    client::{ClientBuilder, ConfigExt as _},
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::{BoxError, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;

pub use self::{dial::DialError, identity::CertificateError};
use self::{
    flow::{Flow, FlowLayer},
    transport::Transport,
};

use crate::gate::Gate;

/// How long a connection may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the cluster is; the default is what `kubectl` would take, and inside a Pod its service account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterOptions {
    /// A kubeconfig instead of `KUBECONFIG` and `~/.kube/config`.
    pub kubeconfig: Option<std::path::PathBuf>,
    /// A context of it instead of the current one.
    pub context: Option<String>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig that was asked for cannot be read, or lacks the context.
    #[error("cannot use the kubeconfig")]
    Kubeconfig(#[source] kube::config::KubeconfigError),
    /// There is neither a kubeconfig nor a service account.
    #[error("no cluster: neither a kubeconfig nor a service account was found")]
    Infer(#[source] kube::config::InferConfigError),
    /// Its certificates or its proxy cannot be used.
    #[error("cannot build a client")]
    Build(#[source] kube::Error),
    /// The kubeconfig's client certificate cannot be used.
    #[error("cannot use the client certificate of the kubeconfig")]
    Certificate(#[source] CertificateError),
    /// The kubeconfig's `tls-server-name` is none.
    #[error("`tls-server-name` of the kubeconfig is no name of a server: {}", .0.as_deref().unwrap_or_default())]
    ServerName(Option<String>),
    /// It did not answer, or did not accept the credentials.
    #[error("the cluster at {server} cannot be reached")]
    Unreachable {
        /// Its address.
        server: String,
        /// Why.
        source: Box<kube::Error>,
    },
    /// It did not answer in time.
    #[error("the cluster at {server} did not answer within {seconds} s")]
    Silent {
        /// Its address.
        server: String,
        /// How long was waited.
        seconds: u64,
    },
}

/// A client, and the address that it talks to.
#[derive(Clone)]
pub struct Connection {
    /// The client, as [`build`] makes it, with our user agent.
    pub client: kube::Client,
    /// The turns of its requests.
    pub flow: Flow,
    /// The API server's address, for messages.
    pub server: String,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// `orkestra/<version>`.
pub fn user_agent() -> String {
    concat!("orkestra/", env!("CARGO_PKG_VERSION")).to_owned()
}

/// Builds a client. Does not talk to the cluster yet, but for credential plugins that start with it.
///
/// # Errors
/// [`Error::Kubeconfig`], [`Error::Infer`] and [`Error::Build`].
pub async fn connect(options: &ClusterOptions) -> Result<Connection, Error> {
    connect_through(options, None).await
}

/// The same with a client whose writes pass `gate`.
///
/// # Errors
/// As [`connect`].
pub async fn connect_through(
    options: &ClusterOptions,
    gate: Option<&Gate>,
) -> Result<Connection, Error> {
    let mut config = configure(options).await?;
    // A version is digits and dots: it cannot fail.
    if let Ok(agent) = HeaderValue::from_str(&user_agent()) {
        config.headers.push((header::USER_AGENT, agent));
    }
    let server = config.cluster_url.to_string();
    let flow = Flow::new(rand::random::<f64>);
    let client = build(&config, flow.clone(), gate)?;
    Ok(Connection {
        client,
        flow,
        server,
    })
}

/// A client of the cluster that `config` names, with kube's own authentication, over connections of HTTP/2 where the
/// server offers it, whose requests have their turns in `flow` and whose writes pass `gate`. A connection takes at most
/// [`CONNECT_TIMEOUT`]. There is no read timeout, since watches are silent for minutes: whoever makes a single call gives it
/// a deadline. Nothing is retried in silence.
///
/// # Errors
/// [`Error::Build`], [`Error::Certificate`] and [`Error::ServerName`].
pub fn build(config: &Config, flow: Flow, gate: Option<&Gate>) -> Result<kube::Client, Error> {
    let gzip = DecompressionLayer::new().gzip(is_far(config));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(gzip)
        .option_layer(config.auth_layer().map_err(Error::Build)?)
        .layer(config.extra_headers_layer().map_err(Error::Build)?)
        .map_err(BoxError::from)
        .service(Transport::new(config)?);
    let namespace = config.default_namespace.clone();
    // The last one is the outermost: what looks at a request in the moment that it is sent stands before the flow.
    let client = ClientBuilder::new(service, namespace).with_layer(&FlowLayer::new(flow));
    Ok(match gate {
        // Outermost: what waits inside for its turn, a token or a connection is dropped with the lease.
        Some(gate) => client.with_layer(gate).build(),
        None => client.build(),
    })
}

/// Whether packed answers are worth the API server's time, which packing a list takes a good part of: they are not on
/// the same machine, nor inside the cluster, where the authority's certificate is a file that is read again.
fn is_far(config: &Config) -> bool {
    let host = config.cluster_url.host().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let is_near = host == "localhost"
        || address.is_ok_and(|address| address.is_loopback())
        || config.root_cert_file.is_some();
    !is_near && !config.disable_compression
}

async fn configure(options: &ClusterOptions) -> Result<Config, Error> {
    let choice = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    match (&options.kubeconfig, &options.context) {
        (Some(path), _) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(Error::Kubeconfig)?;
            Config::from_custom_kubeconfig(kubeconfig, &choice)
                .await
                .map_err(Error::Kubeconfig)
        }
        (None, Some(_)) => Config::from_kubeconfig(&choice)
            .await
            .map_err(Error::Kubeconfig),
        (None, None) => Config::infer().await.map_err(Error::Infer),
    }
}

impl Connection {
    /// Asks the API server for its version, so that a wrong address or credential shows at once.
    ///
    /// Any answer but 401 counts: whether a request is allowed is for those who make it.
    ///
    /// # Errors
    /// [`Error::Unreachable`] and [`Error::Silent`].
    pub async fn check(&self, within: Duration) -> Result<(), Error> {
        let server = || self.server.clone();
        match tokio::time::timeout(within, self.client.apiserver_version()).await {
            Err(_) => Err(Error::Silent {
                server: server(),
                seconds: within.as_secs(),
            }),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if status.code != 401 => Ok(()),
            Ok(Err(source)) => Err(Error::Unreachable {
                server: server(),
                source: Box::new(source),
            }),
        }
    }
}
