//! Builds clients of the cluster.
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

/// The deadline for opening a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The location of the cluster; the default is what `kubectl` would use, and inside a Pod its service account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterOptions {
    /// A kubeconfig instead of `KUBECONFIG` and `~/.kube/config`.
    pub kubeconfig: Option<std::path::PathBuf>,
    /// A context of the kubeconfig instead of the current one.
    pub context: Option<String>,
}

/// Why a client could not be built, or cannot reach the cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The requested kubeconfig cannot be read, or lacks the context.
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
    /// The kubeconfig's `tls-server-name` is not valid.
    #[error("`tls-server-name` of the kubeconfig is not a valid server name: {}", .0.as_deref().unwrap_or_default())]
    ServerName(Option<String>),
    /// The cluster did not answer, or did not accept the credentials.
    #[error("the cluster at {server} is unreachable")]
    Unreachable {
        /// Its address.
        server: String,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// The cluster did not answer in time.
    #[error("the cluster at {server} did not answer within {seconds} s")]
    Silent {
        /// Its address.
        server: String,
        /// The deadline.
        seconds: u64,
    },
}

/// A client, and its server's address.
#[derive(Clone)]
pub struct Connection {
    /// The client that [`build`] returns, with our user agent.
    pub client: kube::Client,
    /// The flow control of its requests.
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

/// Builds a client. Makes no request to the cluster yet; credential plugins may start.
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
    // A version is digits and dots: the conversion cannot fail.
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

/// Builds a client of the cluster that `config` names, with kube's own authentication and HTTP/2 connections where the server
/// offers them. Its requests wait for their turn in `flow`, and its writes pass `gate`. Opening a connection takes at most
/// [`CONNECT_TIMEOUT`]. There is no read timeout, since watches are silent for minutes: the caller sets a deadline on each single
/// call. Nothing is retried silently.
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
    // The last layer is the outermost: a layer that checks a request when it is sent is placed before the flow.
    let client = ClientBuilder::new(service, namespace).with_layer(&FlowLayer::new(flow));
    Ok(match gate {
        // Outermost: a request that waits inside for its turn, a token or a connection is dropped when the lease is lost.
        Some(gate) => client.with_layer(gate).build(),
        None => client.build(),
    })
}

/// Whether compression of responses is worth the API server's time, which is considerable for lists: it is not on the same
/// machine, nor inside the cluster, where the CA certificate is a file that is read again.
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
    /// Requests the API server's version, so that a wrong address or credential shows at once.
    ///
    /// Any response but 401 counts: permissions are checked by the requests that need them.
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
