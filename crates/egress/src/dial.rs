//! Resolves a name once, checks all of its addresses, and connects to one of them.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::net::TcpStream;

use super::{
    Error, Guard, Leader,
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

/// Connects to hosts that the guard permits, without TLS.
#[derive(Clone)]
pub(crate) struct Dialler {
    pub(crate) guard: Guard,
    pub(crate) resolver: Resolver,
}

impl Dialler {
    /// Connects to the target. The name is resolved once, every address is checked, and there is no connection unless all are
    /// permitted: the DNS server cannot choose that one address is checked and another is used. `led_by` is the server that leads
    /// to the target, and `within` the time for all addresses together.
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) async fn connect(
        &self,
        led_by: Option<&Leader>,
        target: &Target,
        within: Duration,
    ) -> Result<TcpStream, Error> {
        let guard = led_by.map_or_else(|| self.guard.clone(), |from| self.guard.led_by(from));
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
}

async fn connect(target: &Target, address: IpAddr, within: Duration) -> io::Result<TcpStream> {
    let connecting = TcpStream::connect(SocketAddr::new(address, target.port));
    match tokio::time::timeout(within, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
