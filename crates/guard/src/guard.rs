//! Checks whether calls are permitted.

use std::net::IpAddr;

use super::{
    Refusal,
    address::{closed, effective},
    allow::{Allow, Destination},
    refusal::Purpose,
    target::{Host, LOCALHOST, Target},
};

/// Checks hosts before they are resolved, and addresses before a connection.
///
/// An entry for a host permits that name, at public addresses. An entry for addresses permits them, under any name; but a range
/// that is not public (loopback, private, link-local, …) is only permitted by an entry inside that range: `0.0.0.0/0` is the
/// public internet. `localhost` is the machine's loopback addresses.
///
/// A guard [at a desk](Guard::at_desk) also permits what the user of a machine may reach without asking: any public host over
/// HTTPS, and the machine's own loopback addresses, if they are named as such.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    purpose: Purpose,
    /// Whether public hosts are permitted over HTTPS without an entry.
    is_public: bool,
    /// Whether the machine's loopback addresses are permitted without an entry.
    is_near: bool,
    entries: Vec<Allow>,
    /// Hosts and ports of the API server.
    api_servers: Vec<(Host, u16)>,
}

impl Guard {
    /// A guard that permits what the entries permit, and nothing without entries.
    pub fn new(entries: Vec<Allow>) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }

    /// The same for the sources of Komposers.
    pub fn for_sources(entries: Vec<Allow>) -> Self {
        Self {
            purpose: Purpose::Sources,
            ..Self::new(entries)
        }
    }

    /// A guard for sources that the user of this machine names: it also permits public hosts over HTTPS, and loopback addresses.
    pub fn at_desk(entries: Vec<Allow>) -> Self {
        Self {
            is_public: true,
            is_near: true,
            ..Self::for_sources(entries)
        }
    }

    /// Refuses calls to this API server, unless an entry names it with its port.
    #[must_use]
    pub fn with_api_server(mut self, url: &str) -> Self {
        let server = Target::parse(url).map(|target| (target.host, target.port));
        self.api_servers.extend(server);
        self
    }

    /// The guard for a place that a permitted server leads to, by a redirect or in a document: a server elsewhere cannot lead to
    /// this machine, unless an entry permits it.
    #[must_use]
    pub fn led_by(&self, from: &Target) -> Self {
        Self {
            is_near: self.is_near && from.is_loopback(),
            ..self.clone()
        }
    }

    /// True if no connections are permitted at all.
    pub fn is_closed(&self) -> bool {
        self.entries.is_empty() && !self.is_public && !self.is_near
    }

    /// True if the target needs no entry, as far as its name or address says.
    fn is_open(&self, target: &Target) -> bool {
        let is_public = self.is_public && target.secure && !target.is_loopback();
        is_public || (self.is_near && target.is_loopback())
    }

    /// Returns the entry that permits the host by its name or its address. A name that is permitted only by its addresses has
    /// none.
    pub fn entry(&self, target: &Target) -> Option<&Allow> {
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
            return Err(Refusal::Off {
                what: self.purpose.what(),
                flag: self.purpose.flag(),
                entry: entry_for(target),
            });
        }
        if let Host::Address(address) = target.host {
            return self.judge_address(target, address);
        }
        self.judge_api_server(target, &target.host, |entry| entry.names(&target.host))?;
        if self.is_open(target) {
            return Ok(());
        }
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
        let is_expected = closed.is_none() || (address.is_loopback() && target.is_loopback());
        if is_expected && self.is_open(target) {
            return Ok(());
        }
        let opened = |entry: &&Allow| match &entry.whom {
            Destination::Network(network) => {
                network.contains(address) && closed.is_none_or(|closed| closed.range.holds(network))
            }
            Destination::Host(name) if **name == *LOCALHOST => {
                entry.names(&target.host) && address.is_loopback()
            }
            Destination::Host(_) | Destination::Below(_) => {
                closed.is_none() && entry.names(&target.host)
            }
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
                flag: self.purpose.flag(),
            }),
            (refused, _) => Err(refused),
        }
    }

    /// Checks that one of the matching entries permits the port and the scheme.
    fn permits(&self, target: &Target, about: impl Fn(&&Allow) -> bool) -> Result<(), Refusal> {
        let about = |entry: &&Allow| about(entry) && entry.takes_port(target);
        let (host, entry) = (target.to_string(), entry_for(target));
        let flag = self.purpose.flag();
        if self
            .entries
            .iter()
            .filter(about)
            .any(|entry| entry.takes_scheme(target))
        {
            Ok(())
        } else if self.entries.iter().any(|entry| about(&entry)) {
            Err(Refusal::Plain { host, flag, entry })
        } else {
            Err(Refusal::NotAllowed { host, flag, entry })
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
            flag: self.purpose.flag(),
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

    #[test]
    fn at_a_desk_public_hosts_and_the_machine_itself_are_open_and_private_networks_are_not() {
        let desk = Guard::at_desk(Vec::new());
        let public = target("https://charts.example/");
        assert_eq!(desk.judge_host(&public), Ok(()));
        assert_eq!(
            desk.judge_address(&public, address("93.184.215.14")),
            Ok(())
        );
        for inside in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1"] {
            let refused = desk.judge_address(&public, address(inside)).unwrap_err();
            assert!(
                refused.to_string().contains("--source-allow"),
                "{inside}: {refused}"
            );
        }
        for near in ["http://127.0.0.1:81/", "http://localhost/", "http://[::1]/"] {
            let near = target(near);
            assert_eq!(desk.judge_host(&near), Ok(()));
        }
        let local = target("http://localhost:81/");
        assert_eq!(desk.judge_address(&local, address("127.0.0.1")), Ok(()));
        assert!(desk.judge_address(&local, address("10.0.0.1")).is_err());
        for refused in [
            "http://charts.example/",
            "https://10.0.0.1/",
            "http://169.254.169.254/",
        ] {
            assert!(desk.judge_host(&target(refused)).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_server_elsewhere_does_not_lead_to_this_machine() {
        let desk = Guard::at_desk(Vec::new());
        let near = target("http://127.0.0.1:81/");
        let led = desk.led_by(&target("https://charts.example/"));
        assert!(led.judge_host(&near).is_err());
        assert_eq!(led.judge_host(&target("https://cdn.example/")), Ok(()));
        assert_eq!(desk.led_by(&near).judge_host(&near), Ok(()));
        let named = Guard::at_desk(vec!["127.0.0.1".parse().unwrap()]);
        let led = named.led_by(&target("https://charts.example/"));
        assert_eq!(led.judge_host(&near), Ok(()));
    }
}
