//! References of container images: `registry.example:5000/garden/pump:2.4@sha256:…`.
//!
//! Source: distribution/reference, "Grammar", and its rule for the host: the part before the first slash is a host if it
//! contains a dot or a port, or is `localhost`.

/// The maximum length of a name, including the host, in bytes.
const NAME_BYTES: usize = 255;
/// The maximum length of a tag, in bytes.
const TAG_BYTES: usize = 128;

/// The maximum length of a reference. No digest is that long.
const LONGEST: usize = 1024;

/// True if the text is an image reference.
pub fn is_reference(text: &str) -> bool {
    if text.len() > LONGEST {
        return false;
    }
    let (named, digest) = match text.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (text, None),
    };
    let (name, tag) = match named.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (named, None),
    };
    name.len() <= NAME_BYTES
        && is_name(name)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

fn is_name(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => {
            if !is_host(host) {
                return false;
            }
            path
        }
        _ => name,
    };
    path.split('/').all(is_component)
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let label = |label: &str| {
        let inside = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        !label.is_empty()
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let address = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    port.is_none_or(digits)
        && match address {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => host.split('.').all(label),
        }
}

/// Lower-case letters and digits, with one `.`, one or two `_`, or any number of `-` between them.
fn is_component(component: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut rest = component;
    loop {
        let after = rest.trim_start_matches(word);
        if after.len() == rest.len() {
            return false;
        }
        if after.is_empty() {
            return true;
        }
        rest = after.trim_start_matches(['.', '_', '-']);
        let separator = &after[..after.len() - rest.len()];
        let hyphens = !separator.is_empty() && separator.bytes().all(|b| b == b'-');
        if !hyphens && !matches!(separator, "." | "_" | "__") {
            return false;
        }
    }
}

fn is_tag(tag: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    (1..=TAG_BYTES).contains(&tag.len()) && tag.bytes().all(inside) && !tag.starts_with(['.', '-'])
}

/// Checks for an algorithm and at least 32 hexadecimal digits, or the exact number for a known algorithm.
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return false;
    };
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let length = match algorithm {
        "sha256" => hex.len() == 64,
        "sha384" => hex.len() == 96,
        "sha512" => hex.len() == 128,
        _ => hex.len() >= 32,
    };
    algorithm.split(['-', '_', '+', '.']).all(part)
        && length
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_a_lower_case_path() {
        let digest = "f".repeat(64);
        for good in [
            "nginx",
            "nginx:1.25",
            "library/nginx",
            "h.io/a",
            "h.io:5000/a:1",
            "localhost/a",
            "localhost:5000/a",
            "H.io/a",
            "[::1]:5000/a:1",
            "a__b/c-d--e.f_g",
            "a:V1.0-x_y",
            "a.b/c",
            &format!("a@sha256:{digest}"),
            &format!("h.io/a:1@sha256:{digest}"),
        ] {
            assert!(is_reference(good), "{good}");
        }
        for bad in [
            "",
            "A",
            "A/b",
            "a/B",
            "a/",
            "/a",
            "a//b",
            "a:",
            "a:.1",
            "a:-1",
            "a:b c",
            "a b",
            "a___b",
            "a..b",
            "a._b",
            "-a",
            "a-",
            "h.io:x/a",
            "h..io/a",
            "h.io/",
            "https://h.io/a",
            "a@sha256:f",
            "a@sha256",
            &format!("a@sha256:{}", "g".repeat(64)),
            &format!("a:{}", "t".repeat(129)),
            &"a".repeat(256),
            "[::1/a",
            "a:1:2",
        ] {
            assert!(!is_reference(bad), "{bad}");
        }
    }
}
