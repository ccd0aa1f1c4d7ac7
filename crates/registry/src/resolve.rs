//! Resolves host names to addresses, and restricts the addresses of hosts other than the registry.

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

/// Returns the kind of an address that is not on the public internet, in the form that completes "which is …".
pub type ReservedRange = fn(IpAddr) -> Option<&'static str>;

/// Kinds of addresses that are not on the public internet, as named by [`ReservedRange`].
pub(crate) type Kinds = BTreeSet<&'static str>;

/// A resolver. A guarded one returns no closed address unless its kind is permitted. The connection uses the returned
/// address, so a name cannot resolve to another one later.
#[derive(Clone)]
pub(crate) struct Resolve(Option<(ReservedRange, Kinds)>);

impl Resolve {
    pub(crate) fn open() -> Self {
        Self(None)
    }

    pub(crate) fn guarded(closed: ReservedRange, permitted: Kinds) -> Self {
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

/// Checks that a place other than the registry may have this address.
pub(crate) fn judge(
    address: IpAddr,
    closed: ReservedRange,
    permitted: &Kinds,
) -> Result<(), String> {
    // An IPv4-mapped IPv6 address counts as IPv4.
    match closed(address.to_canonical()) {
        Some(kind) if !permitted.contains(kind) => Err(format!(
            "the registry refers to it, and {address} is {kind}"
        )),
        _ => Ok(()),
    }
}

/// Returns the kinds of closed addresses of a registry; the places that it leads to may have them too.
pub(crate) async fn kinds(authority: &Authority, closed: ReservedRange) -> Kinds {
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

/// Returns the address in the host of a URL; `None` for a name.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}
