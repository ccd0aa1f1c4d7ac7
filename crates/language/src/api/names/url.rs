//! URLs of webhooks.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::check_dns1123_subdomain;

/// Checks the URL of a webhook as an API server and a certificate take it: `https`, a DNS name or an IP address, and optionally a
/// port and a path; without user, query and fragment.
///
/// Source: apimachinery's `ValidateWebhookURL`; RFC 3986, section 3.
///
/// # Errors
/// What is expected, and what the URL has instead.
pub fn check_webhook_url(url: &str) -> Result<(), String> {
    let no = |what: String| {
        Err(format!(
            "{what}: expected a URL such as https://gateway.example.org"
        ))
    };
    let Some(rest) = url.strip_prefix("https://") else {
        return no(format!("`{url}` does not start with `https://`"));
    };
    let (authority, path) = match rest.find(['/', '?', '#']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if authority.contains('@') {
        // What precedes `@` may be a password.
        return no("the URL has a user or password before an `@`".to_owned());
    }
    if path.contains(['?', '#']) {
        return no(format!("`{url}` has a query or a fragment"));
    }
    if let Some(letter) = path.chars().find(|c| !c.is_ascii_graphic()) {
        return no(format!("the path of `{url}` has the character {letter:?}"));
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let Some((host, port)) = rest.split_once(']') else {
                return no(format!("the address in `{url}` has no `]`"));
            };
            if host.parse::<Ipv6Addr>().is_err() {
                return no(format!("`{host}` is not an IPv6 address"));
            }
            (
                None,
                port.strip_prefix(':').or((!port.is_empty()).then_some("-")),
            )
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(authority), None),
        },
    };
    if let Some(port) = port
        && !(port.bytes().all(|digit| digit.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0))
    {
        return no(format!(
            "the port of `{url}` is not a number from 1 to 65535"
        ));
    }
    match host {
        Some(host) if !is_host(host) => no(format!(
            "`{host}` is neither a DNS name nor an IP address (write a name with other letters than `a` to `z` in its ASCII form, `xn--…`)"
        )),
        _ => Ok(()),
    }
}

/// True for a DNS name, and for an IPv4 address in its usual form; a name that ends in a number would be read as an address.
fn is_host(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = !last.is_empty() && last.bytes().all(|digit| digit.is_ascii_digit());
    if is_number {
        return host.parse::<Ipv4Addr>().is_ok();
    }
    check_dns1123_subdomain(&host.to_ascii_lowercase()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_called_at_an_https_url_whose_host_a_certificate_can_name() {
        for good in [
            "https://gate.example.org",
            "https://Gate.example.org/",
            "https://xn--mnchen-3ya.example:8443/orkestra",
            "https://10.0.0.7",
            "https://[fd00::1]:8443/",
        ] {
            assert_eq!(check_webhook_url(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            (
                "https://münchen.example",
                "neither a DNS name nor an IP address",
            ),
            ("http://gate.example.org", "https://"),
            ("gate.example.org", "https://"),
            ("https://", "neither a DNS name"),
            ("https://*.example.org", "neither a DNS name"),
            ("https://a b", "neither a DNS name"),
            ("https://user:secret@gate.example.org", "before an `@`"),
            ("https://gate.example.org?x=1", "query"),
            ("https://gate.example.org/#x", "fragment"),
            ("https://gate.example.org/ä", "path"),
            ("https://gate.example.org:0", "port"),
            ("https://gate.example.org:+1", "port"),
            ("https://gate.example.org:", "port"),
            ("https://2130706433", "neither a DNS name"),
            ("https://127.1", "neither a DNS name"),
            ("https://[::1", "`]`"),
            ("https://[gate]", "IPv6"),
            ("https://[::1]x", "port"),
        ] {
            let refused = check_webhook_url(bad).unwrap_err();
            assert!(refused.contains(why), "{bad}: {refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
