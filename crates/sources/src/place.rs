//! Places of sources, in the form in which rules of a policy are compared with them: the one that is requested.

use std::net::{IpAddr, Ipv6Addr};

/// True for what may follow a rule's folder: nothing, a folder below it, or the ending of a Git repository.
pub(crate) fn is_end(rest: &str) -> bool {
    let rest = rest.strip_prefix(".git").unwrap_or(rest);
    rest.is_empty() || rest.starts_with('/')
}

/// Returns why a place could be compared in another form than the one in which servers read it.
pub(crate) fn ambiguous(place: &str) -> Option<&'static str> {
    let (host, path) = place.split_once('/').unwrap_or((place, ""));
    if host.contains(['@', '%', '\\']) {
        return Some("its host is not written as it is requested");
    }
    if path.contains(['\\', '%', ';']) {
        return Some("its path has `%`, `;` or a backslash");
    }
    let mut parts = path.split('/').rev();
    // A slash at the end is as good as none.
    let last = parts.next().unwrap_or_default();
    let is_odd = |part: &str| part == "." || part == "..";
    (is_odd(last) || parts.any(|part| part.is_empty() || is_odd(part)))
        .then_some("its path has `.`, `..` or `//`")
}

/// Returns a place in the one spelling that rules are compared in: lower case, without the dot that ends a name, without the port
/// of HTTPS, and with one name for Docker Hub.
pub(crate) fn normal(place: &str) -> String {
    let place = place.to_lowercase();
    let (host, path) = match place.find('/') {
        Some(at) => place.split_at(at),
        None => (&*place, ""),
    };
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port.trim_start_matches('0')),
        _ => (host, ""),
    };
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let name = match address.and_then(|address| address.parse::<Ipv6Addr>().ok()) {
        // Requests are made to the address that it stands for.
        Some(address) => match address.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        },
        None => name.trim_end_matches('.').to_owned(),
    };
    let host = match port {
        "" | "443" => name,
        port => format!("{name}:{port}"),
    };
    let host = match &*host {
        "registry-1.docker.io" | "index.docker.io" => "docker.io",
        host => host,
    };
    format!("{host}{path}")
}
