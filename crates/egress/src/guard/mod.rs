//! Checks whether calls are permitted.

use std::net::IpAddr;

use super::{
    Leader, Refusal,
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
/// HTTPS, and the machine's own loopback addresses, if they are named as such. A guard [of a user](Guard::of_user) permits every host
/// that the user names.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    purpose: Purpose,
    without_entry: WithoutEntry,
    entries: Vec<Allow>,
    /// Hosts and ports of the API server.
    api_servers: Vec<(Host, u16)>,
}

/// The targets that are permitted without an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum WithoutEntry {
    /// None.
    #[default]
    Nothing,
    /// Public hosts over HTTPS, and the machine's loopback addresses as far as the flag says.
    Desk { is_near: bool },
    /// All that the user names.
    Named,
    /// All that a server leads to: at public addresses, and at those of the kind that this server has.
    Led {
        by: Target,
        kind: Option<&'static str>,
    },
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
            without_entry: WithoutEntry::Desk { is_near: true },
            ..Self::for_sources(entries)
        }
    }

    /// A guard for the servers that the user of this machine names: it permits all of them. Where such a server
    /// [leads](Guard::led_by), it permits public addresses and those of the kind that the server itself has: a server on the
    /// internet leads neither to this machine nor to a private network.
    pub fn of_user() -> Self {
        Self {
            without_entry: WithoutEntry::Named,
            ..Self::for_sources(Vec::new())
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
    pub fn led_by(&self, from: &Leader) -> Self {
        let without_entry = match &self.without_entry {
            WithoutEntry::Nothing => WithoutEntry::Nothing,
            WithoutEntry::Desk { is_near } => WithoutEntry::Desk {
                is_near: *is_near && from.server.is_loopback(),
            },
            WithoutEntry::Named | WithoutEntry::Led { .. } => WithoutEntry::Led {
                by: from.server.clone(),
                kind: from.address.and_then(closed).map(|closed| closed.what),
            },
        };
        Self {
            without_entry,
            ..self.clone()
        }
    }

    /// True if no connections are permitted at all.
    pub fn is_closed(&self) -> bool {
        self.entries.is_empty() && self.without_entry == WithoutEntry::Nothing
    }

    /// True if the target needs no entry, as far as its name or address says.
    fn is_open(&self, target: &Target) -> bool {
        match &self.without_entry {
            WithoutEntry::Nothing => false,
            WithoutEntry::Desk { is_near } if target.is_loopback() => *is_near,
            WithoutEntry::Desk { .. } => target.secure,
            WithoutEntry::Named | WithoutEntry::Led { .. } => true,
        }
    }

    /// True if an address of an open target needs no entry.
    fn is_expected(&self, target: &Target, address: IpAddr) -> bool {
        let Some(closed) = closed(address) else {
            return true;
        };
        match &self.without_entry {
            WithoutEntry::Nothing => false,
            WithoutEntry::Desk { .. } => address.is_loopback() && target.is_loopback(),
            WithoutEntry::Named => true,
            WithoutEntry::Led { kind, .. } => *kind == Some(closed.what),
        }
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
        if self.is_open(target) && self.is_expected(target, address) {
            return Ok(());
        }
        let closed = closed(address);
        if let (WithoutEntry::Led { by, .. }, Some(closed)) = (&self.without_entry, closed) {
            return Err(Refusal::Led {
                host: target.to_string(),
                address,
                what: closed.what,
                by: by.to_string(),
            });
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
mod tests;
