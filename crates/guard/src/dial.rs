//! Resolves a name once, checks all of its addresses, and connects to one of them.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use orkestra_ground::tasks::{self, Task};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OnceCell,
};
use tokio_rustls::TlsConnector;

use super::{
    Error, Guard,
    target::{Host, LOCALHOST, Target},
};

/// The most addresses of one name that are tried.
const MOST_ADDRESSES: usize = 8;

/// Resolves names.
type LookUp = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// Resolves names, once per call.
#[derive(Clone)]
pub struct Resolver(Arc<LookUp>);

impl Resolver {
    /// Uses the machine's resolver.
    pub fn system() -> Self {
        Self::new(|name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        })
    }

    /// Uses the caller's function.
    pub fn new(
        look_up: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(look_up))
    }

    async fn addresses(&self, host: &Host) -> io::Result<Vec<IpAddr>> {
        match host {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) if **name == *LOCALHOST => {
                Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
            }
            Host::Name(name) => (self.0)(name.to_string()).await,
        }
    }
}

/// A connection, with or without TLS.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to hosts that the guard permits.
pub struct Dialler {
    guard: Guard,
    resolver: Resolver,
    /// Trusted certificates in addition to those of the machine.
    roots: Vec<CertificateDer<'static>>,
    tls: OnceCell<Arc<ClientConfig>>,
}

impl Dialler {
    /// The guard that checks hosts and addresses.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// A dialler that trusts the machine's certificates.
    pub fn new(guard: Guard, resolver: Resolver) -> Self {
        Self {
            guard,
            resolver,
            roots: Vec::new(),
            tls: OnceCell::new(),
        }
    }

    /// The same, trusting these certificates in addition to the machine's.
    #[must_use]
    pub fn with_roots(mut self, roots: Vec<CertificateDer<'static>>) -> Self {
        self.roots = roots;
        self
    }

    /// The same, trusting these certificates instead of the machine's.
    #[must_use]
    pub fn trusting(mut self, roots: RootCertStore) -> Self {
        self.tls = OnceCell::new_with(Some(client_config(roots)));
        self
    }

    /// Connects to the target, over TLS if its scheme says so; see [`Dialler::connect`].
    ///
    /// # Errors
    /// [`Error`].
    pub async fn dial(
        &self,
        guard: &Guard,
        target: &Target,
        within: Duration,
    ) -> Result<Box<dyn Stream>, Error> {
        let tcp = self.connect(guard, target, within).await?;
        if target.secure {
            return self.secure(target, tcp).await;
        }
        Ok(Box::new(tcp))
    }

    /// Connects to the target without TLS. The name is resolved once, every address is checked, and there is no connection unless
    /// all are permitted: the DNS server cannot choose that one address is checked and another is used. `within` is the time for
    /// all addresses together; `guard` is this dialler's own, or one that is [narrower](Guard::led_by).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn connect(
        &self,
        guard: &Guard,
        target: &Target,
        within: Duration,
    ) -> Result<TcpStream, Error> {
        guard.judge_host(target)?;
        let unresolved = || Error::Unresolved(target.to_string());
        let addresses = self.resolver.addresses(&target.host).await;
        let mut addresses = addresses.map_err(|_| unresolved())?;
        for address in &addresses {
            guard.judge_address(target, *address)?;
        }
        addresses.truncate(MOST_ADDRESSES);
        let share = within / u32::try_from(addresses.len().max(1)).unwrap_or(1);
        let mut failed = unresolved();
        for address in addresses {
            match connect(target, address, share).await {
                Ok(tcp) => return Ok(tcp),
                Err(source) => {
                    failed = Error::Connect {
                        to: target.to_string(),
                        source,
                    };
                }
            }
        }
        Err(failed)
    }

    async fn secure(&self, target: &Target, tcp: TcpStream) -> Result<Box<dyn Stream>, Error> {
        let failed = |source| Error::Tls {
            to: target.to_string(),
            source,
        };
        let name = match &target.host {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => ServerName::try_from(name.to_string())
                .map_err(|error| failed(io::Error::other(error)))?,
        };
        // Reading the machine's certificates blocks.
        let load = || {
            let roots = self.roots.clone();
            tasks::named(Task::ExternalRoots, "").start_blocking(|| machine_config(roots))
        };
        let config = self
            .tls
            .get_or_try_init(load)
            .await
            .map_err(|error| failed(io::Error::other(error)))?;
        let connector = TlsConnector::from(config.clone());
        let stream = connector.connect(name, tcp).await.map_err(failed)?;
        Ok(Box::new(stream))
    }
}

async fn connect(target: &Target, address: IpAddr, within: Duration) -> io::Result<TcpStream> {
    let connecting = TcpStream::connect(SocketAddr::new(address, target.port));
    match tokio::time::timeout(within, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
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
