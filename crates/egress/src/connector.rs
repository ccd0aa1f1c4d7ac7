//! Connections for hyper's client: dialled within the guard, with TLS where the URL says so.

use std::{
    error::Error as StdError,
    io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use orkestra_ground::tasks::{self, Task};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use tokio::{net::TcpStream, sync::OnceCell};
use tokio_rustls::TlsConnector;
use tower::Service;

use super::{
    Error, Leader,
    dial::Dialler,
    target::{Host, Target},
};

type Connection = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Connects to the origins of URLs.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) dialler: Dialler,
    pub(crate) trust: Arc<Trust>,
    /// The server that leads to the URLs.
    pub(crate) led_by: Option<Leader>,
    /// The time for a connection.
    pub(crate) patience: Duration,
}

impl Connector {
    async fn connect(self, url: Uri) -> Result<Connection, Error> {
        // The URL was a target before: it has one meaning.
        let target = Target::parse(&url.to_string());
        let target = target.map_err(|_| Error::Request(String::new()))?;
        let connecting = self
            .dialler
            .connect(self.led_by.as_ref(), &target, self.patience);
        let tcp = connecting.await?;
        let failed = |source| Error::Tls {
            to: target.to_string(),
            source,
        };
        tcp.set_nodelay(true).map_err(|source| Error::Connect {
            to: target.to_string(),
            source,
        })?;
        let tcp = TokioIo::new(tcp);
        if !target.secure {
            return Ok(MaybeHttpsStream::Http(tcp));
        }
        let name = match &target.host {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => ServerName::try_from(name.to_string())
                .map_err(|error| failed(io::Error::other(error)))?,
        };
        let config = self.trust.config().await.map_err(failed)?;
        let handshake = TlsConnector::from(config).connect(name, TokioIo::new(tcp));
        let stream = handshake.await.map_err(failed)?;
        Ok(MaybeHttpsStream::Https(TokioIo::new(stream)))
    }
}

impl Service<Uri> for Connector {
    type Response = Connection;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Connection, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        Box::pin(self.clone().connect(url))
    }
}

/// Returns the error of a connection among the causes of another error.
pub(crate) fn cause(error: &(dyn StdError + 'static)) -> Option<Error> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<Error>() {
            return found.of_connection();
        }
        next = cause.source();
    }
    None
}

/// Runs connections as tasks.
#[derive(Clone)]
pub(crate) struct Tasks;

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, connection: F) {
        let connection = async {
            connection.await;
        };
        drop(tasks::named(Task::OutboundConnection, "").start(connection));
    }
}

/// Trusted certificates, which are read when the first connection needs them.
#[derive(Default)]
pub(crate) struct Trust {
    /// Certificates in addition to those of the machine.
    roots: Vec<CertificateDer<'static>>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Trust {
    /// Trusts the machine's certificates and these.
    pub(crate) fn machine_and(roots: Vec<CertificateDer<'static>>) -> Self {
        Self {
            roots,
            config: OnceCell::new(),
        }
    }

    /// Trusts these certificates alone.
    pub(crate) fn only(roots: RootCertStore) -> Self {
        Self {
            roots: Vec::new(),
            config: OnceCell::new_with(Some(client_config(roots))),
        }
    }

    async fn config(&self) -> io::Result<Arc<ClientConfig>> {
        let load = || {
            let roots = self.roots.clone();
            // Reading the machine's certificates blocks.
            tasks::named(Task::ExternalRoots, "").start_blocking(|| machine_config(roots))
        };
        let config = self.config.get_or_try_init(load).await;
        config.cloned().map_err(io::Error::other)
    }
}

/// Trusts the machine's certificate store and `extra`; unreadable certificates in it are ignored.
fn machine_config(extra: Vec<CertificateDer<'static>>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(extra);
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    client_config(roots)
}

fn client_config(roots: RootCertStore) -> Arc<ClientConfig> {
    ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth()
        .into()
}
