//! Names to addresses, and which of them another place than the registry may have.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, SocketAddr},
    task::{Context, Poll},
    vec,
};

use futures::future::BoxFuture;
use http::uri::Authority;
use hyper_util::client::legacy::connect::dns::Name;
use tower::Service;

use super::transport::Closed;

/// Kinds of addresses that are not the public internet's, as [`Closed`] names them.
pub(crate) type Kinds = BTreeSet<&'static str>;

/// Looks names up. A guarded one gives no address of a kind that is closed and not among the permitted ones; as the
/// connection is made to what is given, a name cannot lead elsewhere later.
#[derive(Clone)]
pub(crate) struct Resolve(Option<(Closed, Kinds)>);

impl Resolve {
    pub(crate) fn open() -> Self {
        Self(None)
    }

    pub(crate) fn guarded(closed: Closed, permitted: Kinds) -> Self {
        Self(Some((closed, permitted)))
    }
}

impl Service<Name> for Resolve {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = self.0.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            if let Some((closed, permitted)) = guard {
                for address in &found {
                    judge(address.ip(), closed, &permitted).map_err(io::Error::other)?;
                }
            }
            Ok(found.into_iter())
        })
    }
}

/// Whether a place that is not the registry's own may have this address.
pub(crate) fn judge(address: IpAddr, closed: Closed, permitted: &Kinds) -> Result<(), String> {
    // An IPv4 address that is written as an IPv6 one is an IPv4 one.
    match closed(address.to_canonical()) {
        Some(kind) if !permitted.contains(kind) => {
            Err(format!("the registry leads there, and {address} is {kind}"))
        }
        _ => Ok(()),
    }
}

/// The kinds of closed addresses that a registry itself has: what it leads to may have them too.
pub(crate) async fn kinds(authority: &Authority, closed: Closed) -> Kinds {
    if let Some(address) = literal(authority.host()) {
        return closed(address.to_canonical()).into_iter().collect();
    }
    let port = authority.port_u16().unwrap_or(443);
    match tokio::net::lookup_host((authority.host(), port)).await {
        Ok(found) => found
            .filter_map(|address| closed(address.ip().to_canonical()))
            .collect(),
        Err(_) => Kinds::new(),
    }
}

/// The address that a host of a URL is; none for a name.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}
