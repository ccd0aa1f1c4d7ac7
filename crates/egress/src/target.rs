//! The target of a call, parsed strictly: ambiguous URLs are refused.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use http::Uri;

/// The name of the machine itself, which is not resolved. Source: RFC 6761, section 6.3.
pub(crate) const LOCALHOST: &str = "localhost";

/// The longest URL, in bytes.
const LONGEST_URL: usize = 8 * 1024;
/// The longest host name, in bytes. Source: RFC 1035, section 2.3.4.
const LONGEST_NAME: usize = 253;
/// The longest label of a host name, in bytes.
const LONGEST_LABEL: usize = 63;

/// Why a text is not a valid URL for a call. The text itself is not included: its path may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// The rendered text is empty.
    #[error("the URL is empty")]
    Empty,
    /// It is longer than 8 KiB.
    #[error("the URL is longer than 8 KiB")]
    TooLong,
    /// It is not a URL with a host: it has a space, no `//`, or characters that are not valid in URLs.
    #[error(
        "the URL is not valid; expected `https://host/path`; pass inserted values through `urlquery`"
    )]
    Malformed,
    /// The scheme is neither http nor https.
    #[error("the URL must start with `https://` or `http://`")]
    Scheme,
    /// `https://user:password@host`.
    #[error("the URL has a user or password before an `@`; use `token` or `headers`")]
    UserInfo,
    /// The host is neither a plain name nor an address in its usual form.
    #[error("the URL's host must be a host name or an address such as 192.0.2.1 or [2001:db8::1]")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("the URL's port must be a number from 1 to 65535")]
    Port,
}

/// The host of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name in lower case, without a trailing dot.
    Name(Box<str>),
    /// An address.
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
        }
    }
}

/// The target of a call. Displayed without path and query.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Whether TLS is used.
    pub secure: bool,
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// Path and query, with a leading slash.
    pub path: String,
}

impl Target {
    /// Parses an absolute URL. A fragment is dropped.
    ///
    /// # Errors
    /// [`BadUrl`]. Addresses in other than the usual form (decimal, octal, hexadecimal, shortened) are refused, and so is a user
    /// or password.
    ///
    /// Source: RFC 3986; the URL standard's "ends in a number" check for hosts.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadUrl::Empty);
        }
        if text.len() > LONGEST_URL {
            return Err(BadUrl::TooLong);
        }
        let uri: Uri = text.parse().map_err(|_| BadUrl::Malformed)?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) => return Err(BadUrl::Scheme),
            None => return Err(BadUrl::Malformed),
        };
        let authority = uri.authority().ok_or(BadUrl::Malformed)?.as_str();
        if authority.contains('@') {
            return Err(BadUrl::UserInfo);
        }
        let (host, port) = split_port(authority);
        let port = match port {
            Some(port) => parse_port(port).ok_or(BadUrl::Port)?,
            None if secure => 443,
            None => 80,
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            secure,
            host: parse_host(host).ok_or(BadUrl::Host)?,
            port,
            path: format!("{slash}{path}"),
        })
    }

    /// Resolves the target of a redirect from this URL.
    ///
    /// # Errors
    /// [`BadUrl`], as for any URL.
    pub fn join(&self, location: &str) -> Result<Self, BadUrl> {
        let location = location.trim();
        let location = location.split('#').next().unwrap_or_default();
        let (path, _) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let whole = match location {
            "" => return Ok(self.clone()),
            absolute if has_scheme(absolute) => absolute.to_owned(),
            other if other.starts_with("//") => format!("{}:{other}", self.scheme()),
            rooted if rooted.starts_with('/') => format!("{self}{rooted}"),
            query if query.starts_with('?') => format!("{self}{path}{query}"),
            relative => format!("{self}{folder}/{relative}"),
        };
        Self::parse(&whole)
    }

    /// Resolves the URL or absolute path that a response names, as registries write it.
    ///
    /// # Errors
    /// [`BadUrl`], also for other references.
    pub fn join_absolute(&self, location: &str) -> Result<Self, BadUrl> {
        if !is_absolute(location) {
            return Err(BadUrl::Malformed);
        }
        self.join(location)
    }

    /// Returns the URL of another path, with a leading slash, at the same origin.
    ///
    /// # Errors
    /// [`BadUrl`].
    pub fn at(&self, path: &str) -> Result<Self, BadUrl> {
        Self::parse(&format!("{self}{path}"))
    }

    /// The whole URL. Its path and query may be secret.
    pub fn url(&self) -> String {
        format!("{self}{}", self.path)
    }

    /// True if another target has the same scheme, host and port.
    pub fn same_origin(&self, other: &Self) -> bool {
        (self.secure, &self.host, self.port) == (other.secure, &other.host, other.port)
    }

    /// True if the host is this machine, by its name or its address.
    pub fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Name(name) => **name == *LOCALHOST,
            Host::Address(address) => address.to_canonical().is_loopback(),
        }
    }

    /// The value of the `Host` header: the port only if it is not the scheme's default.
    pub fn host_header(&self) -> String {
        match (self.secure, self.port) {
            (true, 443) | (false, 80) => self.host.to_string(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }

    /// The scheme.
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

/// Scheme, host and port only, since a path may be secret.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.host_header())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// Splits `host:port`, `[address]:port` or either without a port.
pub(crate) fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Parses a port, 1 to 65535, in decimal digits only.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}

/// Parses a host name or an address in its usual form; an IPv6 address in brackets.
pub(crate) fn parse_host(text: &str) -> Option<Host> {
    if let Some(inner) = text.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(Host::Address(IpAddr::V6(address).to_canonical()));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Some(Host::Address(address.into()));
    }
    let labels = || name.split('.');
    let sound = name.len() <= LONGEST_NAME && labels().all(is_label);
    // Some parsers read such a host as a number: 2130706433, 0x7f.1, 127.1.
    let number = labels().next_back().is_some_and(|last| {
        last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit())
    });
    (sound && !number).then(|| Host::Name(name.into()))
}

fn is_label(label: &str) -> bool {
    (1..=LONGEST_LABEL).contains(&label.len())
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// True if a `Location` is a URL or an absolute path.
pub(crate) fn is_absolute(location: &str) -> bool {
    let is_path = location.starts_with('/') && !location.starts_with("//");
    is_path || location.contains("://")
}

fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    #[test]
    fn a_url_has_scheme_host_port_and_path() {
        let shop = target("HTTPS://Shop.Example.:8443/a/b?c=d#e");
        assert!(shop.secure);
        assert_eq!(shop.host, Host::Name("shop.example".into()));
        assert_eq!((shop.port, &*shop.path), (8443, "/a/b?c=d"));
        assert_eq!(shop.to_string(), "https://shop.example:8443");
        let bare = target(" http://shop.example?x=1 ");
        assert_eq!((bare.port, &*bare.path), (80, "/?x=1"));
        assert_eq!(target("http://[::1]:9/").to_string(), "http://[::1]:9");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_no_url() {
        let cases = [
            ("", BadUrl::Empty),
            ("shop.example", BadUrl::Malformed),
            ("//shop.example/x", BadUrl::Malformed),
            ("http:/shop.example", BadUrl::Malformed),
            ("http://shop example/", BadUrl::Malformed),
            ("http://shop.example/a b", BadUrl::Malformed),
            ("http://shop.example\r\nx: y", BadUrl::Malformed),
            ("ftp://shop.example/", BadUrl::Scheme),
            ("http://shop.example@127.0.0.1/", BadUrl::UserInfo),
            ("http://2130706433/", BadUrl::Host),
            ("http://0x7f000001/", BadUrl::Host),
            ("http://0177.0.0.1/", BadUrl::Host),
            ("http://127.1/", BadUrl::Host),
            ("http://127.0.0.0x1/", BadUrl::Host),
            ("http://a..b/", BadUrl::Host),
            ("http://shop.example:0/", BadUrl::Port),
            ("http://shop.example:70000/", BadUrl::Port),
        ];
        for (text, why) in cases {
            assert_eq!(Target::parse(text), Err(why), "{text}");
        }
        let long = format!("http://a/{}", "x".repeat(LONGEST_URL));
        assert_eq!(Target::parse(&long), Err(BadUrl::TooLong));
    }

    #[test]
    fn a_redirect_leads_from_where_it_was_met() {
        let from = target("https://shop.example/a/b?c=d");
        let cases = [
            ("https://other.example/x", "https://other.example", "/x"),
            ("//other.example/x", "https://other.example", "/x"),
            ("/x?y=1", "https://shop.example", "/x?y=1"),
            ("?y=1", "https://shop.example", "/a/b?y=1"),
            ("x#part", "https://shop.example", "/a/x"),
            ("#part", "https://shop.example", "/a/b?c=d"),
        ];
        for (location, origin, path) in cases {
            let to = from.join(location).unwrap();
            assert_eq!((to.to_string().as_str(), to.path.as_str()), (origin, path));
        }
        assert_eq!(from.join("file:///etc/passwd"), Err(BadUrl::Malformed));
        assert_eq!(from.join("javascript:x"), Err(BadUrl::Malformed));
    }
}
