//! How a client of the cluster is built.

use std::time::Duration;

use http::{HeaderValue, header};
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::lead::Gate;

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
    /// The client, with kube's own authentication, our user agent and [`CONNECT_TIMEOUT`]. It has no read timeout, since
    /// watches are silent for minutes: whoever makes a single call gives it a deadline.
    pub client: kube::Client,
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
    format!("orkestra/{}", crate::VERSION)
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
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = None;
    // A version is digits and dots: it cannot fail.
    if let Ok(agent) = HeaderValue::from_str(&user_agent()) {
        config.headers.push((header::USER_AGENT, agent));
    }
    let server = config.cluster_url.to_string();
    let client = kube::client::ClientBuilder::try_from(config).map_err(Error::Build)?;
    let client = match gate {
        // Outermost: what waits inside for a token or a connection is dropped with the lease.
        Some(gate) => client.with_layer(gate).build(),
        None => client.build(),
    };
    Ok(Connection { client, server })
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
