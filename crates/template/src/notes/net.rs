//! Addresses, networks and host names.

use std::net::IpAddr;

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_object::value::{Network, Node};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "cidrContains",
        doc: "True if a network in CIDR notation contains an address; false if either is malformed.",
        example: (
            r#"{{ cidrContains "10.1.0.0/16" "10.1.7.9" }} {{ cidrContains "10.1.0.0/16" "10.2.0.1" }}"#,
            "true false",
        ),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text],
        result: NoteType::Bool,
        run: NoteBody::Eager(cidr_contains),
        ..PLAIN
    },
    BuiltInNote {
        name: "ipValid",
        doc: "True if the text is an IPv4 or IPv6 address.",
        example: (
            r#"{{ ipValid "::1" }} {{ ipValid "10.0.0.256" }}"#,
            "true false",
        ),
        params: &[NoteType::Text],
        result: NoteType::Bool,
        run: NoteBody::Eager(ip_valid),
        ..PLAIN
    },
    BuiltInNote {
        name: "ipIsPrivate",
        doc: "True if the address is in a private range: 10/8, 172.16/12, 192.168/16 or fc00::/7.",
        example: (
            r#"{{ ipIsPrivate "172.31.0.1" }} {{ ipIsPrivate "172.32.0.1" }}"#,
            "true false",
        ),
        params: &[NoteType::Text],
        result: NoteType::Bool,
        run: NoteBody::Eager(ip_is_private),
        ..PLAIN
    },
    BuiltInNote {
        name: "domainHost",
        doc: "The host of a URL: without surrounding white space, `http://` or `https://`, and trailing slashes.",
        example: (
            r#"{{ domainHost " https://pond.example/ " }}"#,
            "pond.example",
        ),
        result: NoteType::Text,
        run: NoteBody::Eager(domain_host),
        ..PLAIN
    },
    BuiltInNote {
        name: "domainBare",
        doc: "Like `domainHost`, and without a leading `www.`.",
        example: (
            r#"{{ domainBare "https://www.pond.example" }}"#,
            "pond.example",
        ),
        result: NoteType::Text,
        run: NoteBody::Eager(domain_bare),
        ..PLAIN
    },
];

fn cidr_contains<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let network = Network::parse(call.text(0));
    let address = call.text(1).parse::<IpAddr>().ok();
    let inside = network.zip(address).is_some_and(|(n, a)| n.contains(a));
    Ok(inside.into())
}

fn ip_valid<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok(call.text(0).parse::<IpAddr>().is_ok().into())
}

fn ip_is_private<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let private = match call.text(0).parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(IpAddr::V4(ip)) => ip.is_private(),
        Ok(IpAddr::V6(ip)) => ip.is_unique_local(),
        Err(_) => false,
    };
    Ok(private.into())
}

fn domain_host<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let length = host(call.text(0)).len();
    call.budget.text(length)?;
    Ok(Node::from(host(call.text(0))).into())
}

fn domain_bare<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    fn bare(text: &str) -> &str {
        let host = host(text);
        host.strip_prefix("www.").unwrap_or(host)
    }
    let length = bare(call.text(0)).len();
    call.budget.text(length)?;
    Ok(Node::from(bare(call.text(0))).into())
}

/// Returns the host in a URL. A plain host is returned as it is.
fn host(text: &str) -> &str {
    let mut rest = text;
    loop {
        let before = rest.len();
        rest = rest.trim();
        for scheme in ["http://", "https://"] {
            if let Some((start, after)) = rest.split_at_checked(scheme.len())
                && start.eq_ignore_ascii_case(scheme)
            {
                rest = after;
            }
        }
        rest = rest.trim_end_matches('/');
        if rest.len() == before {
            return rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_host_is_itself() {
        let cases = [
            ("a.io", "a.io"),
            (" HTTPS://a.io// ", "a.io"),
            ("http://https://a.io/", "a.io"),
            ("http:// a.io", "a.io"),
            ("https://a.io/x/", "a.io/x"),
            ("http://", ""),
            ("/", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(host(text), expected, "{text}");
            assert_eq!(host(host(text)), host(text), "{text}");
        }
    }
}
