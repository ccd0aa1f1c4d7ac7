//! The check of which calls are permitted.

use std::net::IpAddr;

use super::{
    address::{closed, effective},
    allow::{Allow, LOCALHOST, Whom},
    target::{Host, Target},
};

/// Why a call is not made. Only a change of the flags or of the URL fixes it; a retry does not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No calls are permitted.
    #[error("external calls are off: to permit this one, start with --external-allow {0}")]
    Off(String),
    /// Neither the host nor its address is permitted.
    #[error("{host} is not permitted: --external-allow {entry} would permit it")]
    NotAllowed {
        /// Scheme, host and port of the call.
        host: String,
        /// The entry that would permit it.
        entry: String,
    },
    /// The host is permitted only with TLS.
    #[error(
        "{host} is permitted only over https: --external-allow {entry} would permit plain HTTP"
    )]
    Plain {
        /// Scheme, host and port of the call.
        host: String,
        /// The entry that would permit it.
        entry: String,
    },
    /// The host is permitted, but it has an address that is not public.
    #[error(
        "{host} has the address {address}, which is {what}: --external-allow {address} would permit it"
    )]
    Closed {
        /// Scheme, host and port of the call.
        host: String,
        /// Its address.
        address: IpAddr,
        /// The use of the address.
        what: &'static str,
    },
    /// The host is the cluster's API server.
    #[error(
        "{host} is the API server of the cluster, which requires an entry with its port: --external-allow {entry}"
    )]
    ApiServer {
        /// Scheme, host and port of the call.
        host: String,
        /// The entry that would permit it.
        entry: String,
    },
}

/// Checks hosts before they are resolved, and addresses before a connection.
///
/// An entry for a host permits that name, at public addresses. An entry for addresses permits them, under any name; but a range
/// that is not public (loopback, private, link-local, …) is only permitted by an entry inside that range: `0.0.0.0/0` is the
/// public internet. `localhost` is the machine's loopback addresses.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    entries: Vec<Allow>,
    /// Hosts and ports of the API server.
    api_servers: Vec<(Host, u16)>,
}

impl Guard {
    /// A guard that permits what the entries permit, and nothing without entries.
    pub fn new(entries: Vec<Allow>) -> Self {
        Self {
            entries,
            api_servers: Vec::new(),
        }
    }

    /// Refuses calls to this API server, unless an entry names it with its port.
    #[must_use]
    pub fn with_api_server(mut self, url: &str) -> Self {
        let server = Target::parse(url).map(|target| (target.host, target.port));
        self.api_servers.extend(server);
        self
    }

    /// True if no calls are permitted at all.
    pub fn is_closed(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entry that permits the host by its name or its address. A name that is permitted only by its addresses has
    /// none.
    pub(super) fn entry(&self, target: &Target) -> Option<&Allow> {
        self.entries.iter().find(|entry| {
            let is_about = match target.host {
                Host::Address(address) => entry
                    .network()
                    .is_some_and(|network| network.contains(effective(address))),
                Host::Name(_) => entry.names(&target.host),
            };
            is_about && entry.takes_port(target) && entry.takes_scheme(target)
        })
    }

    /// Checks that a host may be resolved or, if it is an address, connected to.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn judge_host(&self, target: &Target) -> Result<(), Refusal> {
        if self.is_closed() {
            return Err(Refusal::Off(entry_for(target)));
        }
        if let Host::Address(address) = target.host {
            return self.judge_address(target, address);
        }
        self.judge_api_server(target, &target.host, |entry| entry.names(&target.host))?;
        // An address may permit it later, under any name.
        let about = |entry: &&Allow| entry.names(&target.host) || entry.network().is_some();
        self.permits(target, about)
    }

    /// Checks that this address of the host may be connected to.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn judge_address(&self, target: &Target, address: IpAddr) -> Result<(), Refusal> {
        let address = effective(address);
        self.judge_api_server(target, &Host::Address(address), |entry| {
            let network = entry.network();
            network.is_some_and(|network| network.contains(address))
        })?;
        let closed = closed(address);
        let opened = |entry: &&Allow| match &entry.whom {
            Whom::Network(network) => {
                network.contains(address) && closed.is_none_or(|closed| closed.range.holds(network))
            }
            Whom::Host(name) if **name == *LOCALHOST => {
                entry.names(&target.host) && address.is_loopback()
            }
            Whom::Host(_) | Whom::Below(_) => closed.is_none() && entry.names(&target.host),
        };
        let refused = match self.permits(target, opened) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        match (refused, closed) {
            (Refusal::NotAllowed { host, .. }, Some(closed)) => Err(Refusal::Closed {
                host,
                address,
                what: closed.what,
            }),
            (refused, _) => Err(refused),
        }
    }

    /// Checks that one of the matching entries permits the port and the scheme.
    fn permits(&self, target: &Target, about: impl Fn(&&Allow) -> bool) -> Result<(), Refusal> {
        let about = |entry: &&Allow| about(entry) && entry.takes_port(target);
        let (host, entry) = (target.to_string(), entry_for(target));
        if self
            .entries
            .iter()
            .filter(about)
            .any(|entry| entry.takes_scheme(target))
        {
            Ok(())
        } else if self.entries.iter().any(|entry| about(&entry)) {
            Err(Refusal::Plain { host, entry })
        } else {
            Err(Refusal::NotAllowed { host, entry })
        }
    }

    fn judge_api_server(
        &self,
        target: &Target,
        host: &Host,
        about: impl Fn(&Allow) -> bool,
    ) -> Result<(), Refusal> {
        let mut servers = self.api_servers.iter();
        if !servers.any(|(server, port)| server == host && *port == target.port) {
            return Ok(());
        }
        let meant =
            |entry: &Allow| entry.port.is_some() && entry.takes_port(target) && about(entry);
        if self.entries.iter().any(meant) {
            return Ok(());
        }
        Err(Refusal::ApiServer {
            host: target.to_string(),
            entry: format!("{host}:{}", target.port),
        })
    }
}

/// Returns the narrowest entry that permits a target by its name.
fn entry_for(target: &Target) -> String {
    match &target.host {
        Host::Name(_) if !target.secure => target.to_string(),
        _ => target.host_header(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(entries: &[&str]) -> Guard {
        Guard::new(entries.iter().map(|entry| entry.parse().unwrap()).collect())
    }

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn without_entries_nothing_is_called_and_the_flag_is_named() {
        let refused = guard(&[])
            .judge_host(&target("http://shop.example:81/secret"))
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "external calls are off: to permit this one, start with --external-allow http://shop.example:81"
        );
    }

    #[test]
    fn a_host_is_permitted_at_public_addresses_alone() {
        let guard = guard(&["shop.example"]);
        let shop = target("https://shop.example/");
        assert_eq!(guard.judge_host(&shop), Ok(()));
        assert_eq!(guard.judge_address(&shop, address("93.184.215.14")), Ok(()));
        for inside in [
            "10.0.0.1",
            "169.254.169.254",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "fd00::1",
        ] {
            let refused = guard.judge_address(&shop, address(inside)).unwrap_err();
            assert!(matches!(refused, Refusal::Closed { .. }), "{refused}");
        }
        let other = target("https://shop.example.evil.example/");
        assert!(matches!(
            guard.judge_host(&other),
            Err(Refusal::NotAllowed { .. })
        ));
        let plain = guard
            .judge_host(&target("http://shop.example/"))
            .unwrap_err();
        assert!(
            plain
                .to_string()
                .ends_with("--external-allow http://shop.example would permit plain HTTP")
        );
    }

    #[test]
    fn a_network_permits_any_name_at_its_addresses() {
        let guard = guard(&["10.96.0.0/12:8080"]);
        let api = target("http://api.shop.svc:8080/");
        assert_eq!(guard.judge_host(&api), Ok(()));
        assert_eq!(guard.judge_address(&api, address("10.97.0.9")), Ok(()));
        assert!(guard.judge_address(&api, address("10.112.0.1")).is_err());
        assert!(guard.judge_address(&api, address("93.184.215.14")).is_err());
        assert!(guard.judge_host(&target("http://api.shop.svc/")).is_err());
    }

    #[test]
    fn a_range_that_is_not_public_is_opened_by_an_entry_within_it_alone() {
        let all = guard(&["0.0.0.0/0", "::/0"]);
        let name = target("http://shop.example/");
        assert_eq!(all.judge_address(&name, address("93.184.215.14")), Ok(()));
        assert_eq!(all.judge_address(&name, address("2600:1f18::1")), Ok(()));
        for inside in [
            "127.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "fd00:ec2::254",
            "::1",
        ] {
            assert!(
                all.judge_address(&name, address(inside)).is_err(),
                "{inside}"
            );
        }
        let metadata = guard(&["169.254.169.254"]);
        let url = target("http://169.254.169.254/latest");
        assert_eq!(metadata.judge_host(&url), Ok(()));
        assert!(
            metadata
                .judge_host(&target("http://169.254.169.253/"))
                .is_err()
        );
    }

    #[test]
    fn localhost_is_the_loopback_and_nothing_else() {
        let guard = guard(&["localhost:81"]);
        let near = target("http://localhost:81/");
        assert_eq!(guard.judge_host(&near), Ok(()));
        assert_eq!(guard.judge_address(&near, address("127.0.0.1")), Ok(()));
        assert!(guard.judge_address(&near, address("10.0.0.1")).is_err());
        assert!(guard.judge_host(&target("http://127.0.0.1:81/")).is_err());
        assert!(guard.judge_host(&target("http://localhost:82/")).is_err());
    }

    #[test]
    fn the_api_server_is_permitted_by_an_entry_with_its_port_alone() {
        let server = "https://10.96.0.1:443";
        let by_network = guard(&["10.0.0.0/8"]).with_api_server(server);
        let api = target("https://kubernetes.default.svc/");
        let refused = by_network
            .judge_address(&api, address("10.96.0.1"))
            .unwrap_err();
        assert!(
            refused
                .to_string()
                .ends_with("--external-allow 10.96.0.1:443"),
            "{refused}"
        );
        assert_eq!(by_network.judge_address(&api, address("10.96.0.2")), Ok(()));
        let named = guard(&["10.96.0.1:443"]).with_api_server(server);
        assert_eq!(named.judge_address(&api, address("10.96.0.1")), Ok(()));
        let by_name = guard(&["*.example.org"]).with_api_server("https://k8s.example.org:6443");
        let refused = by_name.judge_host(&target("https://k8s.example.org:6443/"));
        assert!(matches!(refused, Err(Refusal::ApiServer { .. })));
        assert_eq!(
            by_name.judge_host(&target("https://k8s.example.org/")),
            Ok(())
        );
    }
}
