//! The entries of allow-lists.

use std::{fmt, net::IpAddr, str::FromStr};

use orkestra_object::value::Network;

use super::target::{Host, LOCALHOST, Target, parse_host, parse_port, split_port};

/// The text is not a valid entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}: expected a host (api.example.org), the subdomains of a host (*.example.org), an IP address (192.0.2.7) or a network \
     (10.0.0.0/8), optionally with a port (api.example.org:8443) or with `http://` before it"
)]
pub struct NotAnEntry(String);

/// A permission for calls: hosts or addresses, one port or all, TLS only or plain HTTP too.
///
/// A host is called with TLS, unless the entry starts with `http://`; addresses and `localhost` are called with either, unless
/// the entry starts with `https://`.
///
/// ```
/// use orkestra_egress::Allow;
///
/// for entry in [
///     "api.example.org", "*.example.org:8443", "http://*.svc.cluster.local", "192.0.2.7", "10.96.0.0/12:80", "[fd00::/8]:80",
/// ] {
///     assert!(entry.parse::<Allow>().is_ok(), "{entry}");
/// }
/// for wrong in ["", "*", "api.example.org/path", "user@api.example.org", "10.0.0.0/33", "host:0", "ftp://host"] {
///     assert!(wrong.parse::<Allow>().is_err(), "{wrong}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    pub(crate) whom: Destination,
    /// The port; `None` for all.
    pub(crate) port: Option<u16>,
    /// Whether plain HTTP is permitted too.
    pub(crate) plain: bool,
}

/// Hosts or addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// This host.
    Host(Box<str>),
    /// The subdomains of this host.
    Below(Box<str>),
    /// These addresses, for any host name.
    Network(Network),
}

impl Allow {
    /// True if the entry matches that host by its name.
    pub(crate) fn names(&self, host: &Host) -> bool {
        match (&self.whom, host) {
            (Destination::Host(name), Host::Name(host)) => name == host,
            (Destination::Below(parent), Host::Name(host)) => host
                .strip_suffix(&**parent)
                .is_some_and(|rest| rest.ends_with('.')),
            _ => false,
        }
    }

    /// True if the entry matches that port.
    pub(crate) fn takes_port(&self, target: &Target) -> bool {
        self.port.is_none_or(|port| port == target.port)
    }

    /// True if the entry permits that scheme.
    pub(crate) fn takes_scheme(&self, target: &Target) -> bool {
        target.secure || self.plain
    }

    /// The addresses of the entry, if it names addresses.
    pub(crate) fn network(&self) -> Option<&Network> {
        match &self.whom {
            Destination::Network(network) => Some(network),
            _ => None,
        }
    }
}

impl FromStr for Allow {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<Self, NotAnEntry> {
        let wrong = || NotAnEntry(text.to_owned());
        let entry = text.trim();
        let (plain, entry) = match entry.split_once("://") {
            Some(("http", rest)) => (Some(true), rest),
            Some(("https", rest)) => (Some(false), rest),
            Some(_) => return Err(wrong()),
            None => (None, entry),
        };
        let (whom, port) = parse_whom(entry).ok_or_else(wrong)?;
        let near = match &whom {
            Destination::Host(name) => **name == *LOCALHOST,
            Destination::Below(_) => false,
            Destination::Network(_) => true,
        };
        Ok(Self {
            whom,
            port,
            plain: plain.unwrap_or(near),
        })
    }
}

/// As it is written in the flag and in messages.
impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.plain { "http" } else { "https" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        match &self.whom {
            Destination::Host(name) => write!(f, "{scheme}://{name}{port}"),
            Destination::Below(parent) => write!(f, "{scheme}://*.{parent}{port}"),
            Destination::Network(network) => write!(f, "{scheme}://[{network}]{port}"),
        }
    }
}

fn parse_whom(entry: &str) -> Option<(Destination, Option<u16>)> {
    // An IPv6 address contains colons: without brackets it has no port.
    if let Some(network) = parse_network(entry) {
        return Some((Destination::Network(network), None));
    }
    let (host, port) = split_port(entry);
    let port = match port {
        Some(port) => Some(parse_port(port)?),
        None => None,
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if let Some(network) = parse_network(inner.unwrap_or(host)) {
        return Some((Destination::Network(network), port));
    }
    let whom = match (
        host.strip_prefix("*."),
        parse_host(host.trim_start_matches("*."))?,
    ) {
        (Some(_), Host::Name(parent)) => Destination::Below(parent),
        (None, Host::Name(name)) => Destination::Host(name),
        (_, Host::Address(_)) => return None,
    };
    Some((whom, port))
}

/// Parses a network, or one address as a network.
fn parse_network(text: &str) -> Option<Network> {
    Network::parse(text).or_else(|| text.parse::<IpAddr>().ok().map(Network::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(text: &str) -> Allow {
        text.parse().unwrap()
    }

    #[test]
    fn entries_are_read_in_every_form() {
        let cases = [
            ("api.Example.org", "https://api.example.org"),
            (
                "https://api.example.org:8443",
                "https://api.example.org:8443",
            ),
            ("http://*.shop.svc", "http://*.shop.svc"),
            ("localhost:9000", "http://localhost:9000"),
            ("192.0.2.7", "http://[192.0.2.7/32]"),
            ("https://192.0.2.7:443", "https://[192.0.2.7/32]:443"),
            ("10.0.0.0/8:80", "http://[10.0.0.0/8]:80"),
            ("::1", "http://[::1/128]"),
            ("[::1]:80", "http://[::1/128]:80"),
            ("fd00::/8", "http://[fd00::/8]"),
            ("[fd00::/8]:80", "http://[fd00::/8]:80"),
        ];
        for (text, shown) in cases {
            assert_eq!(allow(text).to_string(), shown);
            assert_eq!(allow(shown), allow(text), "the display form parses");
        }
    }

    #[test]
    fn what_is_no_entry_is_refused_with_samples() {
        for text in [
            "*",
            "*.",
            "**.a",
            "a.*.b",
            "http://",
            "host:",
            "host:x",
            "1.2.3",
            "0x7f.1",
            "[::1",
            "a/8",
            "*.10.0.0.1",
        ] {
            let error = text.parse::<Allow>().unwrap_err().to_string();
            assert!(error.contains("*.example.org"), "{error}");
        }
    }

    #[test]
    fn hosts_below_a_name_are_not_the_name_itself() {
        let host = |text: &str| parse_host(text).unwrap();
        let below = allow("*.example.org");
        assert!(below.names(&host("a.example.org")));
        assert!(below.names(&host("a.b.example.org")));
        assert!(!below.names(&host("example.org")));
        assert!(!below.names(&host("badexample.org")));
    }
}
