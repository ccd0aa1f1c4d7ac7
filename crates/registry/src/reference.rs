//! References to artifacts: `oci://host/path:tag`, `…@sha256:…`, `…@tag`, and short names.

use std::{fmt, str::FromStr};

use super::Digest;

/// The default tag.
pub const LATEST: &str = "latest";

/// The maximum length of a repository's path, in characters. Source: OCI distribution specification, "Pulling manifests".
const MOST_PATH: usize = 255;
/// The maximum length of a tag, in characters. Source: as above.
const MOST_TAG: usize = 128;

/// A folder of a registry: host and path, without a tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    /// Host and port, as in `127.0.0.1:5000`.
    pub host: Box<str>,
    /// Path, without slashes at its ends.
    pub path: Box<str>,
}

/// A reference to an artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The repository.
    pub repository: Repository,
    /// The tag; `None` if only a digest is given.
    pub tag: Option<Box<str>>,
    /// The required digest.
    pub digest: Option<Digest>,
}

/// A text that is not a reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a reference: {why}; write `oci://host/path:tag` or `oci://host/path@sha256:…`"
)]
pub struct BadReference {
    text: String,
    why: String,
}

impl Reference {
    /// Parses a reference. A text without a host is a short name below `base`, which consists of host and path.
    ///
    /// # Errors
    /// [`BadReference`], with the reason.
    pub fn parse(text: &str, base: &str) -> Result<Self, BadReference> {
        Self::read(text.trim(), base).map_err(|why| BadReference {
            text: text.chars().take(300).collect(),
            why,
        })
    }

    fn read(text: &str, base: &str) -> Result<Self, String> {
        let (is_whole, rest) = match text.strip_prefix("oci://") {
            Some(rest) => (true, rest),
            None if text.contains("://") => return Err("its scheme is not `oci`".to_owned()),
            None => (false, text),
        };
        let (rest, pinned) = match rest.split_once('@') {
            Some((rest, after)) => (rest, Some(after)),
            None => (rest, None),
        };
        let after_slash = rest.rfind('/').map_or(0, |at| at + 1);
        // The colon of a port precedes the first slash.
        let (path, mut tag) = match rest[after_slash..].rfind(':') {
            Some(at) if after_slash > 0 || !is_host(rest, is_whole) => {
                let at = after_slash + at;
                (&rest[..at], Some(&rest[at + 1..]))
            }
            _ => (rest, None),
        };
        let mut digest = None;
        match pinned {
            Some(pinned) if pinned.starts_with("sha256:") => {
                digest = Some(
                    pinned
                        .parse::<Digest>()
                        .map_err(|error| error.to_string())?,
                );
            }
            Some(pinned) if pinned.contains(':') => {
                return Err("its digest is not of sha256".to_owned());
            }
            Some(_) if tag.is_some() => return Err("it has two tags".to_owned()),
            Some(pinned) => tag = Some(pinned),
            None => {}
        }
        let repository = Repository::read(path, is_whole, base)?;
        if let Some(tag) = tag {
            check_tag(tag)?;
        } else if digest.is_none() {
            tag = Some(LATEST);
        }
        Ok(Self {
            repository,
            tag: tag.map(Into::into),
            digest,
        })
    }

    /// Returns the identifier of the manifest in a request: the digest if there is one, else the tag.
    pub fn selector(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.as_deref().unwrap_or(LATEST).to_owned(),
        }
    }

    /// Returns a reference to this digest in the same repository, without a tag.
    #[must_use]
    pub fn at(&self, digest: Digest) -> Self {
        Self {
            repository: self.repository.clone(),
            tag: None,
            digest: Some(digest),
        }
    }

    /// Returns a reference to this tag in the same repository, without a digest.
    ///
    /// # Errors
    /// [`BadReference`] if the tag is not valid.
    pub fn tagged(&self, tag: &str) -> Result<Self, BadReference> {
        check_tag(tag).map_err(|why| BadReference {
            text: tag.to_owned(),
            why,
        })?;
        Ok(Self {
            repository: self.repository.clone(),
            tag: Some(tag.into()),
            digest: None,
        })
    }
}

impl Repository {
    /// Parses host and path.
    ///
    /// # Errors
    /// [`BadReference`], with the reason.
    pub fn parse(text: &str) -> Result<Self, BadReference> {
        let path = text.trim().trim_end_matches('/');
        let path = path.strip_prefix("oci://").unwrap_or(path);
        Self::read(path, true, "").map_err(|why| BadReference {
            text: text.to_owned(),
            why,
        })
    }

    fn read(path: &str, is_whole: bool, base: &str) -> Result<Self, String> {
        if is_host(path, is_whole) {
            let (host, path) = path
                .split_once('/')
                .ok_or("it has no path after the host")?;
            check_host(host)?;
            check_path(path)?;
            return Ok(Self {
                host: host.to_ascii_lowercase().into(),
                path: path.into(),
            });
        }
        let base = base.trim().trim_end_matches('/');
        let base = base.strip_prefix("oci://").unwrap_or(base);
        if base.is_empty() && (path.is_empty() || check_path(path).is_ok()) {
            return Err(
                "has no host, and no registry is set for short names: write oci://host/path, or set \
                 ORK_REGISTRY (for Motifs ORK_MOTIFS_REGISTRY)"
                    .to_owned(),
            );
        }
        check_path(path)?;
        Self::read(&format!("{base}/{path}"), true, "")
            .map_err(|why| format!("below the registry `{base}` {why}"))
    }

    /// Returns the parent folder, and the name in it; `None` for a path of one part.
    pub fn parent(&self) -> Option<(Self, &str)> {
        let (folder, name) = self.path.rsplit_once('/')?;
        let parent = Self {
            host: self.host.clone(),
            path: folder.into(),
        };
        Some((parent, name))
    }

    /// Returns the subfolder `name`.
    ///
    /// # Errors
    /// [`BadReference`] if the name is not valid.
    pub fn child(&self, name: &str) -> Result<Self, BadReference> {
        let path = format!("{}/{name}", self.path);
        check_path(&path).map_err(|why| BadReference {
            text: name.to_owned(),
            why,
        })?;
        Ok(Self {
            host: self.host.clone(),
            path: path.into(),
        })
    }
}

/// True if the first part of a path is a host, by docker's rule: it contains a dot or a port, or is `localhost`.
fn is_host(path: &str, is_whole: bool) -> bool {
    let Some((first, _)) = path.split_once('/') else {
        return is_whole;
    };
    is_whole || first.contains(['.', ':']) || first == "localhost"
}

fn check_host(host: &str) -> Result<(), String> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']').ok_or("its host has no `]`")?;
            name.parse::<std::net::Ipv6Addr>()
                .map_err(|_| "its host is not an IPv6 address")?;
            (name, port.strip_prefix(':'))
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    if let Some(port) = port {
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        if !is_port {
            return Err(format!("`{port}` is not a port"));
        }
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    if name.is_empty() || !(host.starts_with('[') || name.bytes().all(is_name)) {
        return Err(format!("`{name}` is not a host"));
    }
    Ok(())
}

/// Source: OCI distribution specification, "Pulling manifests": `<name>`.
fn check_path(path: &str) -> Result<(), String> {
    if path.len() > MOST_PATH {
        return Err(format!("its path has more than {MOST_PATH} characters"));
    }
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    for part in path.split('/') {
        let bytes = part.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        let is_framed = ends.is_some_and(|(first, last)| is_letter(*first) && is_letter(*last));
        let words = part.split(|c: char| c.is_ascii() && is_letter(c as u8));
        let is_joined =
            |join: &str| ["", ".", "_", "__"].contains(&join) || join.bytes().all(|b| b == b'-');
        if !is_framed || !words.into_iter().all(is_joined) {
            return Err(format!(
                "`{part}` is not a name in a path: lower-case letters and digits, with `.`, `_` or `-` between them"
            ));
        }
    }
    Ok(())
}

fn check_tag(tag: &str) -> Result<(), String> {
    let is_tag = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let starts = tag
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphanumeric() || first == b'_');
    if starts && tag.len() <= MOST_TAG && tag.bytes().all(is_tag) {
        return Ok(());
    }
    Err(format!(
        "`{tag}` is not a tag: at most {MOST_TAG} letters, digits, `_`, `.` and `-`"
    ))
}

impl FromStr for Reference {
    type Err = BadReference;

    /// Parses a reference with a host.
    fn from_str(text: &str) -> Result<Self, BadReference> {
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("oci://{text}")
        };
        Self::parse(&whole, "")
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.path)
    }
}

/// Prints `oci://host/path:tag@sha256:…`, which can be parsed again.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}", self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn shown(text: &str) -> String {
        Reference::parse(text, "oci://reg.example/base/")
            .unwrap()
            .to_string()
    }

    #[test]
    fn references_are_read_in_every_form() {
        let pinned = format!("ghcr.io/a/b:v1@sha256:{HEX}");
        let cases = [
            ("oci://ghcr.io/a/b:v1", "oci://ghcr.io/a/b:v1"),
            (
                "ghcr.io/orkspace/registry/postgres:v14",
                "oci://ghcr.io/orkspace/registry/postgres:v14",
            ),
            (
                "ghcr.io/orkspace/orkestra-registry/postgres@v14",
                "oci://ghcr.io/orkspace/orkestra-registry/postgres:v14",
            ),
            ("oci://host/a", "oci://host/a:latest"),
            ("localhost:5000/a/b", "oci://localhost:5000/a/b:latest"),
            ("localhost/a", "oci://localhost/a:latest"),
            ("[::1]:5000/a:x", "oci://[::1]:5000/a:x"),
            ("postgres@v14", "oci://reg.example/base/postgres:v14"),
            ("postgres:v14", "oci://reg.example/base/postgres:v14"),
            ("db/postgres", "oci://reg.example/base/db/postgres:latest"),
            (&pinned, &format!("oci://{pinned}")),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
            assert_eq!(shown(expected), expected, "the display form parses");
        }
    }

    #[test]
    fn other_texts_are_refused_with_a_reason() {
        for (text, why) in [
            ("https://ghcr.io/a", "scheme"),
            ("oci://ghcr.io", "no path"),
            ("oci://user@ghcr.io/a:b", "not of sha256"),
            ("ghcr.io/a/b:1@2", "two tags"),
            ("ghcr.io/a/../b", "not a name"),
            ("ghcr.io//b", "not a name"),
            ("ghcr.io/A", "not a name"),
            ("ghcr.io/a___b", "not a name"),
            ("ghcr.io/a:-x", "not a tag"),
            ("ghcr.io/a@sha256:0", "not a digest"),
            ("ghcr.io/a@sha512:0", "not of sha256"),
            ("host:0/a", "not a port"),
            ("", "not a name"),
        ] {
            let error = Reference::parse(text, "reg.example/base").unwrap_err();
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }
}
