//! The declared children of an operator, to which other children refer by name.

use super::{names, uses::Use};
use crate::compile::children::{DeclaredBlock, entries};
use orkestra_language::{
    api::children::{ConfigMap, Custom, ListEntry, Secret},
    diagnostics::{Code, did_you_mean, nearest},
};
use orkestra_object::value::Node;
use orkestra_plan::kinds::is_built_in_group;

/// Maximum number of keys in a hint.
const KEYS_NAMED: usize = 8;
/// The keys of a certificate Secret.
const TLS_KEYS: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];
/// Kinds that are often confused.
const CONFUSED: [(&str, &str); 4] = [
    ("Secret", "ConfigMap"),
    ("ConfigMap", "Secret"),
    ("Role", "ClusterRole"),
    ("ClusterRole", "Role"),
];

/// The children of an operator that others can refer to.
pub(crate) struct Made<'a> {
    all: Vec<One<'a>>,
    /// True if no child is of a kind from elsewhere, whose controller may create further objects.
    is_closed: bool,
}

struct One<'a> {
    kind: &'a str,
    /// Normalised.
    name: String,
    /// The keys of its data, if all are known.
    keys: Option<Vec<&'a str>>,
}

impl<'a> Made<'a> {
    pub(crate) fn of(blocks: &[DeclaredBlock<'a>]) -> Self {
        let mut all = Vec::new();
        for block in blocks {
            let lifecycle = block.lifecycle;
            let others = entries(lifecycle).into_iter().map(|(_, entry)| entry);
            // The keys of these are known too.
            for entry in others.filter(|entry| entry.row().kind != "ConfigMap") {
                let name = entry.name().unwrap_or_default();
                all.push(One::new(entry.row().kind, name, None));
            }
            for entry in &lifecycle.config_maps {
                let name = entry.name().unwrap_or_default();
                all.push(One::new("ConfigMap", name, config_keys(entry)));
            }
            for entry in &lifecycle.secrets {
                let name = entry.name().unwrap_or_default();
                all.push(One::new("Secret", name, secret_keys(entry)));
            }
            for entry in &lifecycle.ingresses {
                let Some(tls) = entry.tls.as_ref().filter(|tls| tls.create == Some(true)) else {
                    continue;
                };
                let ingress = entry.name().unwrap_or_default();
                let default = format!("{ingress}-tls");
                let name = tls.secret_name.as_deref().unwrap_or(&default);
                all.push(One::new("Secret", name, Some(TLS_KEYS.to_vec())));
            }
            for entry in &lifecycle.custom {
                all.push(One::new(
                    entry.kind.trim(),
                    &entry.metadata.name,
                    custom_keys(entry),
                ));
            }
        }
        let mut custom = blocks.iter().flat_map(|block| &block.lifecycle.custom);
        let is_closed = custom.all(|entry| {
            let group = entry.api_version.trim().split_once('/');
            is_built_in_group(group.map_or("", |(group, _)| group))
        });
        Self { all, is_closed }
    }

    /// Reports a use of a declared object with a misspelled name, or without that key.
    pub(crate) fn check(&self, used: &Use<'_>) {
        if used.optional || used.name.is_empty() {
            return;
        }
        let name = names::normalised(used.name);
        let mut found = self
            .of_kind(used.kind)
            .filter(|one| one.name == name)
            .peekable();
        if found.peek().is_none() {
            return self.unknown(used, &name);
        }
        let Some((at, key)) = &used.key else { return };
        if key.contains("{{") {
            return;
        }
        // Children that exclude each other count together: any may have it.
        let Some(known) = found
            .map(|one| one.keys.as_ref())
            .collect::<Option<Vec<_>>>()
        else {
            return;
        };
        let known: Vec<&str> = known.into_iter().flatten().copied().collect();
        if known.contains(key) {
            return;
        }
        let hint = did_you_mean(key, known.iter().copied()).unwrap_or_else(|| match known.len() {
            0 => "it has no data".to_owned(),
            count if count > KEYS_NAMED => format!("add `{key}` to its `data`"),
            _ => format!("it has `{}`", known.join("`, `")),
        });
        let message = format!(
            "the {} `{}` has no key `{key}`",
            used.kind,
            used.name.trim()
        );
        at.warn_hint(Code::NoSuchKey, message, hint);
    }

    fn of_kind<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = &'s One<'a>> {
        self.all.iter().filter(move |one| one.kind == kind)
    }

    fn unknown(&self, used: &Use<'_>, name: &str) {
        let message = format!(
            "no declared child is the {} `{}`",
            used.kind,
            used.name.trim()
        );
        let slip = self
            .of_kind(used.kind)
            .find(|one| names::is_slip(name, &one.name));
        let meant = slip
            .or_else(|| self.without_ending(used.kind, name))
            .or_else(|| self.with_template(used.kind, name));
        if let Some(meant) = meant {
            let hint = format!("did you mean `{}`?", meant.name);
            return used.at.warn_hint(Code::NotDeclared, message, hint);
        }
        let other = CONFUSED.iter().find(|(kind, _)| *kind == used.kind);
        let Some((_, other)) = other else { return };
        if self.of_kind(other).any(|one| one.name == name) {
            let hint = format!(
                "a {other} has this name: refer to that, or declare the {}",
                used.kind
            );
            used.at.warn_hint(Code::NotDeclared, message, hint);
        }
    }

    /// Returns the child of a kind whose name begins with the custom resource's name, too: the only one, or the nearest. The
    /// operator makes the objects that are named after the custom resource. Users make Secrets of that form themselves.
    fn with_template<'s>(&'s self, kind: &'s str, name: &str) -> Option<&'s One<'a>> {
        let template = names::template_of(name).filter(|_| self.is_closed && kind != "Secret")?;
        let like = |one: &&One<'_>| names::template_of(&one.name) == Some(template);
        let all: Vec<&One<'_>> = self.of_kind(kind).filter(like).collect();
        if let [only] = *all {
            return Some(only);
        }
        let near = nearest(name, all.iter().map(|one| &*one.name))?;
        all.into_iter().find(|one| one.name == near)
    }

    /// Returns the only child of a kind, if its name is this one with a suffix, as default names have.
    fn without_ending<'s>(&'s self, kind: &'s str, name: &str) -> Option<&'s One<'a>> {
        let mut all = self.of_kind(kind);
        let only = all.next()?;
        let is_only = all.all(|other| other.name == only.name);
        let on_delete = only.name.strip_prefix(name)?;
        (is_only
            && name.ends_with("}}")
            && name.contains(".metadata.name")
            && on_delete.starts_with('-'))
        .then_some(only)
    }
}

impl<'a> One<'a> {
    fn new(kind: &'a str, name: &str, keys: Option<Vec<&'a str>>) -> Self {
        Self {
            kind,
            name: names::normalised(name),
            keys,
        }
    }
}

fn config_keys(entry: &ConfigMap) -> Option<Vec<&str>> {
    let is_whole = entry.common.patch.is_empty()
        && entry.from_config_map.is_none()
        && entry.data.template().is_none();
    is_whole.then(|| entry.data.keys().map(String::as_str).collect())
}

fn secret_keys(entry: &Secret) -> Option<Vec<&str>> {
    let is_copy = entry.from_secret.is_some() || entry.from_config_map.is_some();
    let is_whole = entry.common.patch.is_empty() && !is_copy && entry.data.template().is_none();
    let tls = entry.tls.iter().flat_map(|_| TLS_KEYS);
    is_whole.then(|| entry.data.keys().map(String::as_str).chain(tls).collect())
}

fn custom_keys(entry: &Custom) -> Option<Vec<&str>> {
    if !matches!(entry.kind.trim(), "Secret" | "ConfigMap") {
        return None;
    }
    let mut keys = Vec::new();
    for field in ["data", "stringData", "binaryData"] {
        match entry.body.get(field) {
            None | Some(Node::Null) => {}
            Some(node) => keys.extend(node.as_map()?.iter().map(|(key, _)| &**key)),
        }
    }
    Some(keys)
}
