//! The sender of a review: any client that can connect, until it is proven to be the API server.
//!
//! ```text
//!  connection ─┬─ certificate of an authority of `--webhooks-client-ca` ─┬─► proven: rules may read Secrets and call out,
//!              ├─ address of `--webhooks-trusted-peers` ────────────────┘    deletions are recorded
//!              └─ neither ────────────────────────────────────────────────► unproven: a verdict, and nothing else happens
//! ```
//!
//! A review names its user, its object and its namespace itself, so one from another client could use what belongs to others. The
//! API server presents a certificate if its `AdmissionConfiguration` says so; for conversions it has no such setting, and these
//! have no effects.
//!
//! Source: Kubernetes, "Dynamic Admission Control", authenticate API servers.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use axum::extract::FromRequestParts;
use http::request::Parts;
use orkestra_object::value::Network;
use rustls::server::danger::ClientCertVerifier;

use super::Gateway;
use orkestra_http_api::listen::{Certified, Peer};

/// Who counts as the API server.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    /// Verifies client certificates, which only the API server has.
    pub certificates: Option<Arc<dyn ClientCertVerifier>>,
    /// The networks from which only the API server connects.
    pub peers: Vec<Network>,
}

/// The sender of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReviewCaller {
    /// Its address.
    pub(crate) peer: IpAddr,
    /// Whether it is proven to be the API server.
    pub(crate) is_proven: bool,
}

/// Why an unproven caller gets no answer to a question.
pub(crate) const UNPROVEN: &str = "the caller is not proven to be the API server: set `--webhooks-client-ca` or `--webhooks-trusted-peers`";

impl Callers {
    /// Returns the sender of a request.
    fn caller(&self, parts: &Parts) -> ReviewCaller {
        let peer = parts.extensions.get::<Peer>();
        let peer = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.0);
        let is_trusted = self.peers.iter().any(|network| network.contains(peer));
        let is_certified = parts.extensions.get::<Certified>().is_some();
        ReviewCaller {
            peer: peer.to_canonical(),
            is_proven: is_trusted || is_certified,
        }
    }
}

impl FromRequestParts<Gateway> for ReviewCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Infallible> {
        Ok(gateway.options.callers.caller(parts))
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn a_caller_is_proven_by_its_certificate_or_its_address_and_by_nothing_that_it_says() {
        let callers = Callers {
            certificates: None,
            peers: vec![Network::parse("10.0.0.0/30").unwrap()],
        };
        let caller = |peer: &str, is_certified: bool| {
            let mut request = Request::post("/validate")
                .header("x-forwarded-for", "10.0.0.1")
                .body(())
                .unwrap();
            let extensions = request.extensions_mut();
            extensions.insert(Peer(peer.parse().unwrap()));
            if is_certified {
                extensions.insert(Certified);
            }
            callers.caller(&request.into_parts().0)
        };
        assert!(caller("10.0.0.1", false).is_proven);
        assert!(caller("::ffff:10.0.0.2", false).is_proven);
        assert!(!caller("10.0.0.4", false).is_proven);
        assert!(caller("10.0.0.4", true).is_proven);
    }
}
