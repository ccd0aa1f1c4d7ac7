//! References to artifacts of OCI registries, with the spellings of the language.

use std::fmt;

/// A reference to an artifact of a registry.
///
/// Source: distribution spec, "Pulling manifests"; `@tag` is a spelling of the language.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OciReference {
    /// Host and port; empty for a name without one, which the runtime completes.
    pub host: String,
    /// The repository below it.
    pub path: String,
    /// The tag; `None` beside a digest means none was written, else `latest`.
    pub tag: Option<String>,
    /// The digest.
    pub digest: Option<String>,
}

/// A text that is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a reference to an OCI artifact: {why}")]
pub struct BadReference {
    /// The text.
    pub text: String,
    /// The reason.
    pub why: &'static str,
}

impl OciReference {
    /// Parses `host/path`, `host/path:tag`, `host/path@tag`, `host/path@sha256:…` and `host/path:tag@sha256:…`, with or
    /// without `oci://`, and the short `name@version`.
    ///
    /// # Errors
    /// [`BadReference`] with the reason.
    pub fn parse(text: &str) -> Result<Self, BadReference> {
        let bad = |why| BadReference {
            text: text.to_owned(),
            why,
        };
        let rest = text.trim();
        let rest = rest.strip_prefix("oci://").unwrap_or(rest);
        if rest.contains("://") {
            return Err(bad("its scheme is not `oci://`"));
        }
        let (rest, at) = match rest.split_once('@') {
            Some((rest, at)) => (rest, Some(at)),
            None => (rest, None),
        };
        let slash = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, mut tag) = match rest[slash..].split_once(':') {
            Some((name, tag)) => (&rest[..slash + name.len()], Some(tag.to_owned())),
            None => (rest, None),
        };
        let mut digest = None;
        match at {
            Some(at) if at.starts_with("sha256:") => {
                if !is_digest(at) {
                    return Err(bad(
                        "the digest must have 64 hexadecimal digits in lower case",
                    ));
                }
                digest = Some(at.to_owned());
            }
            Some(at) if tag.is_none() => tag = Some(at.to_owned()),
            Some(_) => return Err(bad("it has two versions")),
            None => {}
        }
        if tag.as_deref().is_some_and(|tag| !is_tag(tag)) {
            return Err(bad("the version is not a valid tag"));
        }
        let (host, path) = match name.split_once('/') {
            Some((host, path)) if is_host(host) => (host, path),
            _ => ("", name),
        };
        if path.is_empty() || !path.split('/').all(is_component) {
            return Err(bad(
                "the path must have lower-case letters, digits, `.`, `_` and `-`",
            ));
        }
        Ok(Self {
            host: host.to_owned(),
            path: path.to_owned(),
            tag,
            digest,
        })
    }

    /// Returns host and path, without a version.
    pub fn repository(&self) -> String {
        if self.host.is_empty() {
            self.path.clone()
        } else {
            format!("{}/{}", self.host, self.path)
        }
    }

    /// True if it names its content: no tag has to be resolved.
    pub fn is_pinned(&self) -> bool {
        self.digest.is_some()
    }

    /// Returns the tag, which is `latest` if neither a tag nor a digest is written.
    pub fn tag(&self) -> Option<&str> {
        match (&self.tag, &self.digest) {
            (Some(tag), _) => Some(tag),
            (None, Some(_)) => None,
            (None, None) => Some("latest"),
        }
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}", self.repository())?;
        if let Some(tag) = self.tag() {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// True for `sha256:` and 64 hexadecimal digits in lower case.
pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// As Docker decides it: a name with a dot or a port, or `localhost`.
fn is_host(text: &str) -> bool {
    text.contains(['.', ':']) || text == "localhost"
}

/// Source: distribution spec, `<name>`.
fn is_component(text: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(is_edge)
        && bytes.last().copied().is_some_and(is_edge)
        && bytes
            .iter()
            .all(|byte| is_edge(*byte) || matches!(byte, b'.' | b'_' | b'-'))
}

/// Source: distribution spec, `<reference>` as a tag.
fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    bytes.len() <= 128
        && bytes.first().copied().is_some_and(is_word)
        && bytes
            .iter()
            .all(|byte| is_word(*byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_language_is_one_reference() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for (text, shown) in [
            (
                "ghcr.io/orkspace/orkestra-registry/postgres@v14",
                "oci://ghcr.io/orkspace/orkestra-registry/postgres:v14",
            ),
            (
                "oci://ghcr.io/orkspace/registry/postgres:v14",
                "oci://ghcr.io/orkspace/registry/postgres:v14",
            ),
            ("localhost:5000/a", "oci://localhost:5000/a:latest"),
            ("postgres@v14", "oci://postgres:v14"),
            ("patterns/postgres:v14", "oci://patterns/postgres:v14"),
        ] {
            let reference = OciReference::parse(text).unwrap();
            assert_eq!(reference.to_string(), shown, "{text}");
            assert_eq!(OciReference::parse(shown).unwrap().to_string(), shown);
        }
        let pinned = OciReference::parse(&format!("r.example/a:v1@{digest}")).unwrap();
        assert!(pinned.is_pinned());
        assert_eq!(pinned.to_string(), format!("oci://r.example/a:v1@{digest}"));
        assert_eq!(
            OciReference::parse("r.example/a").unwrap().host,
            "r.example"
        );
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        for (text, why) in [
            ("https://r.example/a", "scheme"),
            ("r.example/a:v1@v2", "two versions"),
            ("r.example/a@sha256:12", "64"),
            ("r.example/A", "lower-case"),
            ("r.example/", "lower-case"),
            ("", "lower-case"),
            ("r.example/a:b c", "tag"),
        ] {
            let error = OciReference::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
