//! Secrets with generated values, and copies: parts of a child plan in addition to its body.

use std::time::Duration;

use super::{GroupKind, Leaf};
use orkestra_object::value::Key;

/// A Secret whose values are generated when it is missing, and stay until they expire.
#[derive(Clone, Debug)]
pub struct GeneratedSecretPlan {
    /// True if it stays unchanged whatever the Katalog declares later (`once`); otherwise a certificate follows its
    /// declared names.
    pub once: bool,
    /// The age at which its values are renewed; `None` keeps them forever.
    pub renew_after: Option<Duration>,
    /// Its certificate.
    pub certificate: Option<CertificatePlan>,
}

/// A certificate signed by its own CA.
#[derive(Clone, Debug)]
pub struct CertificatePlan {
    /// Its common name; if that renders to nothing, the first host.
    pub common_name: Option<Leaf>,
    /// Its hosts; those that render to nothing are left out.
    pub hosts: Box<[Leaf]>,
    /// How long it is valid.
    pub valid_for: Duration,
}

/// The source object of a copy.
#[derive(Clone, Debug)]
pub struct CopyPlan {
    /// Its kind.
    pub kind: GroupKind,
    /// Its name.
    pub name: Leaf,
    /// Its namespace; `None` is the custom resource's own.
    pub namespace: Option<Leaf>,
    /// Objects that may be copied from other namespaces, if custom resources influence the choice; `None` permits all.
    pub allowed: Option<Box<[Allowed]>>,
    /// The top-level fields that are copied.
    pub parts: Box<[Key]>,
}

/// A pattern of objects: namespace and name, each with `*` for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The pattern of the namespace.
    pub namespace: Box<str>,
    /// The pattern of the name.
    pub name: Box<str>,
}

impl Allowed {
    /// Parses `namespace/name`; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.trim().split_once('/')?;
        let is_part = |part: &str| {
            let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '*');
            !part.is_empty() && part.chars().all(legal)
        };
        (is_part(namespace) && is_part(name)).then(|| Self {
            namespace: namespace.into(),
            name: name.into(),
        })
    }

    /// True if the object matches.
    pub fn allows(&self, namespace: &str, name: &str) -> bool {
        matches(&self.namespace, namespace) && matches(&self.name, name)
    }
}

/// True if `text` matches the pattern, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = text.split_once(part) else {
            return false;
        };
        text = after;
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_within_its_part() {
        let allows = |pattern: &str, namespace: &str, name: &str| {
            Allowed::parse(pattern).unwrap().allows(namespace, name)
        };
        assert!(allows("infra/*-login", "infra", "web-login"));
        assert!(allows("infra/*", "infra", "anything"));
        assert!(allows("team-*/db-*-key", "team-a", "db-x-y-key"));
        assert!(!allows("infra/*-login", "infra", "web-key"));
        assert!(!allows("infra/*", "infra-2", "web"));
        assert!(!allows("a/ab*ab", "a", "ab"));
        assert_eq!(Allowed::parse("infra"), None);
        assert_eq!(Allowed::parse("{{ .spec.x }}/y"), None);
    }
}
