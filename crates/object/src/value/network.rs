//! IP networks.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// A network: all addresses with a common prefix.
///
/// ```
/// use orkestra_object::value::Network;
///
/// let network = Network::parse("10.1.0.0/16").unwrap();
/// assert!(network.contains("10.1.7.9".parse().unwrap()));
/// assert!(Network::parse("10.0.0.0/8").unwrap().holds(&network));
/// assert_eq!(Network::parse("10.0.0.0/33"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Parses CIDR notation, `10.1.0.0/16`; `None` if it is malformed. Bits after the prefix have no effect.
    ///
    /// Source: RFC 4632, section 3.1; RFC 4291, section 2.3.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        if bits.is_empty() || !bits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let bits = bits.parse().ok().filter(|bits| *bits <= width(address))?;
        Some(Network { address, bits })
    }

    /// The network of one address. An IPv4-mapped IPv6 address counts as an IPv4 address.
    pub fn of(address: IpAddr) -> Network {
        let address = address.to_canonical();
        Network {
            address,
            bits: width(address),
        }
    }

    /// True if the network contains an address. An IPv4-mapped IPv6 address counts as an IPv4 address.
    pub fn contains(&self, other: IpAddr) -> bool {
        match (self.address, other.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let host_bits = Ipv4Addr::BITS - self.bits;
                let network = |ip: Ipv4Addr| ip.to_bits().checked_shr(host_bits).unwrap_or(0);
                network(a) == network(b)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let host_bits = Ipv6Addr::BITS - self.bits;
                let network = |ip: Ipv6Addr| ip.to_bits().checked_shr(host_bits).unwrap_or(0);
                network(a) == network(b)
            }
            _ => false,
        }
    }

    /// True if the network contains every address of `other`.
    pub fn holds(&self, other: &Network) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() {
        Ipv4Addr::BITS
    } else {
        Ipv6Addr::BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_the_addresses_that_share_their_first_bits() {
        let cases = [
            ("10.1.0.0/16", "10.1.255.255", true),
            ("10.1.2.3/16", "10.1.0.1", true),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("192.0.2.1/32", "192.0.2.1", true),
            ("192.0.2.1/32", "192.0.2.2", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/33", "2001:db8:8000::", false),
            ("2001:db8::1/128", "2001:db8::1", true),
            ("10.0.0.0/8", "2001:db8::1", false),
        ];
        for (network, address, inside) in cases {
            let network = Network::parse(network).unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), inside);
        }
        for bad in [
            "10.0.0.0",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "10.0.0.0/+8",
            "/8",
            "",
        ] {
            assert!(Network::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_network_holds_smaller_ones_and_itself() {
        let network = |text| Network::parse(text).unwrap();
        assert!(network("10.0.0.0/8").holds(&network("10.0.0.0/8")));
        assert!(network("10.0.0.0/8").holds(&network("10.9.0.0/16")));
        assert!(!network("10.9.0.0/16").holds(&network("10.0.0.0/8")));
        assert!(!network("10.0.0.0/8").holds(&network("11.0.0.0/16")));
        assert!(!network("0.0.0.0/0").holds(&network("::1/128")));
        let one = Network::of("::ffff:192.0.2.7".parse().unwrap());
        assert_eq!(one.to_string(), "192.0.2.7/32");
    }
}
