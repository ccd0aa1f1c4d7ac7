//! Addresses outside the public internet.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::LazyLock,
};

use orkestra_object::value::Network;

/// The address ranges that are not public, with their use; a narrower range comes first.
///
/// Source: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890) and their updates; IPv6 beyond `2000::/3` is
/// not assigned (RFC 4291, section 2.4).
const CLOSED: &[(&str, &str)] = &[
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    (
        "100.64.0.0/10",
        "shared (used by carriers and some metadata services)",
    ),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "reserved by a cloud platform"),
    ("169.254.0.0/16", "link-local (used by metadata services)"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "reserved"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("ff00::/8", "multicast"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "for tunnels"),
    ("3fff::/20", "for documentation"),
    ("::/3", "reserved"),
    ("4000::/2", "reserved"),
    ("8000::/1", "reserved"),
];

/// A range of addresses that may not be called unless an entry permits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReservedRange {
    /// The addresses.
    pub(crate) range: Network,
    /// Their use, to complete "which is …".
    pub(crate) what: &'static str,
}

static RANGES: LazyLock<Vec<ReservedRange>> = LazyLock::new(|| {
    let parse = |&(text, what): &(&str, &'static str)| {
        Network::parse(text).map(|range| ReservedRange { range, what })
    };
    CLOSED.iter().filter_map(parse).collect()
});

/// Returns the closed range that contains an address; `None` for a public one.
pub(crate) fn closed(address: IpAddr) -> Option<ReservedRange> {
    let address = effective(address);
    RANGES
        .iter()
        .find(|closed| closed.range.contains(address))
        .copied()
}

/// Returns the address that is actually reached: the IPv4 address of an IPv4-mapped IPv6 address, or of one that a gateway
/// translates.
///
/// Source: RFC 4291, section 2.5.5.2; RFC 6052, section 2.1.
pub(crate) fn effective(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => match v6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into()
            }
            _ => v6.into(),
        },
        IpAddr::V4(v4) => v4.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_is_a_network() {
        assert_eq!(RANGES.len(), CLOSED.len());
    }

    #[test]
    fn addresses_of_machines_and_clusters_are_closed_and_public_ones_open() {
        for address in [
            "127.0.0.1",
            "127.255.0.9",
            "0.0.0.0",
            "10.96.0.1",
            "172.31.255.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:a9fe:a9fe",
            "::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "fd00:ec2::254",
            "fe80::1",
            "2002:7f00:1::",
            "2001:db8::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(closed(address.parse().unwrap()).is_some(), "{address}");
        }
        for address in [
            "8.8.8.8",
            "172.32.0.1",
            "168.63.129.17",
            "2600:1f18::1",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
        ] {
            assert_eq!(closed(address.parse().unwrap()), None, "{address}");
        }
    }
}
