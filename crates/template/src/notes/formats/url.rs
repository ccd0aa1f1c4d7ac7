//! URLs with a scheme and a host.
//!
//! Source: RFC 3986, section 3; git-fetch(1), "GIT URLS".

use std::net::Ipv6Addr;

/// True for an http or https URL with a host.
pub(crate) fn is_web(text: &str) -> bool {
    parse(text, &["http", "https"]).is_some()
}

/// True for the URL of a Git repository.
pub(crate) fn is_repository(text: &str) -> bool {
    match parse(text, &["https", "git", "ssh"]) {
        Some(path) => path.len() > 1 && path.starts_with('/'),
        None => is_scp(text),
    }
}

/// `user@host:path`
fn is_scp(text: &str) -> bool {
    let Some((login, path)) = text.split_once(':') else {
        return false;
    };
    let Some((user, host)) = login.split_once('@') else {
        return false;
    };
    let user_is_name = user
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    text.len() <= LONGEST
        && !user.is_empty()
        && user_is_name
        && is_host_name(host)
        && !path.is_empty()
        && !path.starts_with("//")
        && is_clean(path)
}

/// The maximum length of a URL.
///
/// Source: RFC 9110, section 4.1, which requires support for at least 8,000 bytes.
const LONGEST: usize = 8192;

/// Returns the part after the host of a URL with one of the schemes.
fn parse<'t>(text: &'t str, schemes: &[&str]) -> Option<&'t str> {
    let (scheme, rest) = text.split_once("://")?;
    if text.len() > LONGEST
        || !schemes.iter().any(|s| s.eq_ignore_ascii_case(scheme))
        || !is_clean(rest)
    {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    is_host(host).then_some(path)
}

/// True if no character has to be escaped and every `%` starts an escape.
fn is_clean(text: &str) -> bool {
    let forbidden = |c: char| c.is_whitespace() || c.is_control() || r#""<>\^`{|}"#.contains(c);
    let escapes = text.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    !text.contains(forbidden) && escapes
}

/// Checks for a host name or address and an optional port.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let port_fits = port.is_none_or(|port| {
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        digits && (port.is_empty() || port.parse::<u16>().is_ok())
    });
    let address = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    port_fits
        && match address {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => is_host_name(host),
        }
}

/// Checks for labels of letters, digits, `-` and `_`, each with a letter or digit at both ends, separated by dots. An IPv4
/// address is valid too, and so is a dot at the end.
pub(crate) fn is_host_name(text: &str) -> bool {
    let label = |label: &str| {
        let inside = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        (1..=63).contains(&label.len())
            && label.chars().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_addresses_have_a_host() {
        for good in [
            "http://a",
            "https://a.io",
            "HTTPS://A.IO/x",
            "http://a.io:8080",
            "http://u:p@a.io/x?y=z#w",
            "http://[::1]:80/",
            "http://10.0.0.1",
            "https://a.io?x",
            "https://bücher.example/ü",
            "https://a.io/%20b",
            "https://my_host/",
        ] {
            assert!(is_web(good), "{good}");
        }
        for bad in [
            "",
            "a.io",
            "http:",
            "http://",
            "http:///x",
            "ftp://a.io",
            "//a.io",
            "http://a b.io",
            "http://a.io/x y",
            "http://-a.io",
            "http://a..io",
            "http://a.io:x",
            "http://a.io:65536",
            "http://[::1",
            "http://[1.2.3.4]",
            "https://a.io/%2",
            " https://a.io",
            "https://a.io/<b>",
            "http://@",
            "http://:80",
        ] {
            assert!(!is_web(bad), "{bad}");
        }
    }

    #[test]
    fn repositories_have_a_path() {
        for good in [
            "https://h.io/o/r",
            "https://h.io/o/r.git",
            "git://h.io/r",
            "ssh://git@h.io:22/o/r",
            "git@h.io:o/r",
            "git@h.io:/abs/r.git",
            "build.bot@h:r",
        ] {
            assert!(is_repository(good), "{good}");
        }
        for bad in [
            "",
            "r",
            "o/r",
            "https://h.io",
            "https://h.io/",
            "ftp://h.io/r",
            "h.io:o/r",
            "git@h.io",
            "git@h.io:",
            "git@:r",
            "@h.io:r",
            "git@h.io:o r",
            "file:///r",
        ] {
            assert!(!is_repository(bad), "{bad}");
        }
    }
}
