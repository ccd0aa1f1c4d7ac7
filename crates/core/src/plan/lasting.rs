//! Secrets that last and objects that are copies: what a child plan has beside its body.

use std::time::Duration;

use super::{ChildPlan, GroupKind, Leaf, Mode};
use crate::value::Key;

/// A Secret whose values are made when it is missing, and stay until they are due.
#[derive(Clone, Debug)]
pub struct LastingPlan {
    /// Whether it stays as it is whatever the Katalog says of it now (`once`); else a certificate follows what it is for.
    pub once: bool,
    /// How old its values may become; none is for ever.
    pub renew_after: Option<Duration>,
    /// The certificate that it holds.
    pub certificate: Option<CertificatePlan>,
}

/// A certificate that an authority of its own signs.
#[derive(Clone, Debug)]
pub struct CertificatePlan {
    /// Its common name; where that renders to nothing, the first host is.
    pub common_name: Option<Leaf>,
    /// The hosts that it is for; those that render to nothing are left out.
    pub hosts: Box<[Leaf]>,
    /// How long it is valid.
    pub valid_for: Duration,
}

/// The object that a child is a copy of.
#[derive(Clone, Debug)]
pub struct CopyPlan {
    /// Its kind.
    pub kind: GroupKind,
    /// Its name.
    pub name: Leaf,
    /// Its namespace; none is the custom resource's own.
    pub namespace: Option<Leaf>,
    /// What may be copied from other namespaces, where custom resources have a say in what is; none is everything.
    pub allowed: Option<Box<[Allowed]>>,
    /// The fields at its root that are copied.
    pub parts: Box<[Key]>,
}

/// A pattern of objects: namespace and name, `*` in each for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Of the namespace.
    pub namespace: Box<str>,
    /// Of the name.
    pub name: Box<str>,
}

impl Allowed {
    /// Reads `namespace/name`; nothing where it is none.
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

    /// Whether the object is among them.
    pub fn allows(&self, namespace: &str, name: &str) -> bool {
        matches(&self.namespace, namespace) && matches(&self.name, name)
    }
}

/// Whether `text` is of the pattern, in which `*` stands for any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
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

impl ChildPlan {
    /// The expressions beside its body: what its certificate is for, what it is a copy of, and how many pods it has.
    pub(crate) fn upkeep(&self) -> impl Iterator<Item = &Leaf> {
        let certificate = self.lasting.iter().flat_map(|plan| &plan.certificate);
        let names = certificate.flat_map(|plan| plan.common_name.iter().chain(&plan.hosts));
        let copy = self.copy.iter();
        let scale = self.scale.iter().flat_map(|plan| plan.leaves());
        names
            .chain(copy.flat_map(|plan| std::iter::once(&plan.name).chain(&plan.namespace)))
            .chain(scale)
    }

    /// Whether its body is rendered only when it is made, so that random values in it are kept.
    pub fn draws_once(&self) -> bool {
        self.lasting.is_some() || (self.mode == Mode::Once && !self.spread)
    }

    /// Whether it stays gone when somebody deletes it: the inventory remembers that it was made.
    pub fn stays_gone(&self) -> bool {
        self.mode == Mode::Once && self.lasting.is_none()
    }
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
