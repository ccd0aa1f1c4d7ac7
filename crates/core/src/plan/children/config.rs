//! Secrets that last, copies, and pods that roll with what they use.

use std::time::Duration;

use super::{Block, Entry, Surroundings};
use crate::{
    api::{
        Text,
        children::{ConfigMap, Control, Copies, Secret, SecretTls},
        duration::{self, Span},
    },
    diagnostics::Code,
    plan::{
        Allowed, CertificatePlan, ChildPlan, Coerce, CopyPlan, GroupKind, LastingPlan, Leaf,
        NameRule, checks, references,
    },
    resources::{config, scope::At},
    value::Key,
};

/// The default name of a Secret with a certificate.
const TLS_NAME: &str = "{{ .metadata.name }}-tls";
/// The namespace of the custom resource, as templates read it.
const OWN_NAMESPACE: &str = ".metadata.namespace";
/// Shortest time that values last.
const SHORTEST: Duration = Duration::from_secs(1);
/// How long a certificate is valid where nothing is said.
const VALID_FOR: Duration = Duration::from_hours(365 * 24);

/// What an entry copies: the field that names it, its kind, and the fields at the root that are taken.
pub(super) struct Source<'a> {
    pub(super) field: &'static str,
    pub(super) kind: &'static str,
    pub(super) parts: &'static [&'static str],
    pub(super) name: Option<&'a Text>,
}

/// The plan of a workload whose pods roll when what they use changes, if its entry asks for that.
pub(super) fn rolling(at: &At<'_>, plan: ChildPlan, asked: Option<bool>) -> ChildPlan {
    let rolls = asked == Some(true);
    if rolls && references::kinds(&plan.body).is_empty() {
        at.field("rollOnChange").warn(
            Code::NoEffect,
            "the pods use no Secret and no `ConfigMap`: this has no effect",
        );
    }
    ChildPlan { rolls, ..plan }
}

impl Surroundings<'_> {
    /// The `ConfigMap` of an entry, or one in each of its namespaces.
    pub(super) fn config_maps(&self, shell: &Entry<'_>, entry: &ConfigMap) -> Vec<ChildPlan> {
        let source = Source {
            field: "fromConfigMap",
            kind: "ConfigMap",
            parts: &["data", "binaryData"],
            name: entry.from_config_map.as_ref(),
        };
        self.copies(shell, &source, &entry.copies, |shell| {
            self.child(shell, |_, _| config::config_map(&shell.at, entry))
        })
    }

    /// The Secret of an entry, or one in each of its namespaces.
    pub(super) fn secrets<'e>(&self, shell: Entry<'e>, entry: &'e Secret) -> Vec<ChildPlan> {
        let lasting = lasting(&shell, entry);
        let shell = Entry {
            name: match (&entry.tls, &entry.common.meta.name) {
                (Some(_), None) => Some(TLS_NAME),
                _ => shell.name,
            },
            ..shell
        };
        let of_secret = Source {
            field: "fromSecret",
            kind: "Secret",
            parts: &["type", "data"],
            name: entry.from_secret.as_ref(),
        };
        let of_map = Source {
            field: "fromConfigMap",
            kind: "ConfigMap",
            parts: &["data"],
            name: entry.from_config_map.as_ref(),
        };
        let source = match (of_secret.name, of_map.name) {
            (Some(_), Some(_)) => {
                shell.at.field("fromConfigMap").error(
                    Code::Exclusive,
                    "`fromSecret` and `fromConfigMap` exclude each other",
                );
                of_secret
            }
            (None, Some(_)) => of_map,
            _ => of_secret,
        };
        let plans = self.copies(&shell, &source, &entry.copies, |shell| {
            self.child(shell, |_, _| config::secret(&shell.at, entry))
        });
        let with = |plan| ChildPlan {
            lasting: lasting.clone().map(Box::new),
            ..plan
        };
        plans.into_iter().map(with).collect()
    }

    /// The children of an entry that may be a copy, and may be made in several namespaces.
    pub(super) fn copies(
        &self,
        shell: &Entry<'_>,
        source: &Source<'_>,
        copies: &Copies,
        child: impl Fn(&Entry<'_>) -> Option<ChildPlan>,
    ) -> Vec<ChildPlan> {
        let copy = self.copy(&shell.at, source, copies);
        // A copy follows what it is of, in every block.
        let following = Control {
            reconcile: Some(true),
            ..shell.control.clone()
        };
        let follows = copy.is_some() && shell.control.reconcile.is_none();
        let control = match (follows, shell.block) {
            (true, Block::Create) => &following,
            _ => shell.control,
        };
        let shell = Entry {
            control,
            ..shell.clone()
        };
        let plans: Vec<ChildPlan> = if copies.to_namespaces.is_empty() {
            child(&shell).into_iter().collect()
        } else {
            spread(&shell, &copies.to_namespaces, child)
        };
        let with = |plan| ChildPlan {
            copy: copy.clone().map(Box::new),
            ..plan
        };
        plans.into_iter().map(with).collect()
    }

    /// What an entry is a copy of, if it is one.
    fn copy(&self, at: &At<'_>, source: &Source<'_>, copies: &Copies) -> Option<CopyPlan> {
        let Some(name) = source.name else {
            let given = [
                ("fromNamespace", copies.from_namespace.is_some()),
                ("allowedSources", !copies.allowed_sources.is_empty()),
            ];
            for (field, _) in given.into_iter().filter(|(_, given)| *given) {
                let message = format!("without `{}` this has no effect", source.field);
                at.field(field).warn(Code::NoEffect, message);
            }
            return None;
        };
        let name_at = at.field(source.field);
        let name = named(&name_at, name, NameRule::Subdomain)?;
        let from_at = at.field("fromNamespace");
        let namespace = match &copies.from_namespace {
            Some(text) => Some(named(&from_at, text, NameRule::Label1123)?),
            None => None,
        };
        let allowed = allowed(&at.field("allowedSources"), &copies.allowed_sources);
        let is_fixed = |leaf: &Leaf| checks::known_text(self.imports, self.import, leaf).is_some();
        let is_bound = is_fixed(&name) && namespace.as_ref().is_none_or(is_fixed);
        if !is_bound && allowed.is_none() && !is_own(namespace.as_ref()) {
            let place = if is_fixed(&name) { &from_at } else { &name_at };
            place.error_hint(
                Code::OpenSource,
                "whoever writes a custom resource says what is copied from another namespace",
                "list what may be copied: `allowedSources: [infra/*-login]`",
            );
        }
        Some(CopyPlan {
            kind: GroupKind::parse(source.kind),
            name,
            namespace,
            allowed,
            parts: source.parts.iter().map(|part| Key::from(*part)).collect(),
        })
    }
}

/// Whether that is the custom resource's own namespace, whatever it is.
fn is_own(namespace: Option<&Leaf>) -> bool {
    namespace.is_none_or(|leaf| {
        let source = leaf.template.source().trim();
        let inside = source
            .strip_prefix("{{")
            .and_then(|rest| rest.strip_suffix("}}"));
        inside.is_some_and(|inside| inside.trim_matches('-').trim() == OWN_NAMESPACE)
    })
}

/// A name that is not empty.
fn named(at: &At<'_>, text: &Text, rule: NameRule) -> Option<Leaf> {
    let leaf = at.leaf(text, Coerce::OptionalText)?;
    if leaf
        .template
        .literal()
        .is_some_and(|literal| literal.trim().is_empty())
    {
        at.error(Code::Empty, "this is empty");
        return None;
    }
    let is_legal = at.legal_name(&leaf.template, rule.as_check());
    is_legal.then_some(leaf)
}

/// The patterns; none where nothing is listed.
fn allowed(at: &At<'_>, patterns: &[String]) -> Option<Box<[Allowed]>> {
    let parse = |(index, text): (usize, &String)| {
        let parsed = Allowed::parse(text);
        if parsed.is_none() {
            at.index(index).error_hint(
                Code::BadName,
                format!("`{text}` names no objects of a namespace"),
                "write `namespace/name`, with `*` for any text: `infra/*-login`",
            );
        }
        parsed
    };
    let parsed = patterns.iter().enumerate().filter_map(parse).collect();
    (!patterns.is_empty()).then_some(parsed)
}

/// One child for each namespace.
fn spread(
    shell: &Entry<'_>,
    namespaces: &[Text],
    child: impl Fn(&Entry<'_>) -> Option<ChildPlan>,
) -> Vec<ChildPlan> {
    if shell.namespace.is_some() {
        shell.at.field("namespace").error(
            Code::Exclusive,
            "`namespace` and `toNamespaces` exclude each other",
        );
    }
    let mut plans = Vec::with_capacity(namespaces.len());
    for (index, text) in namespaces.iter().enumerate() {
        let at = shell.at.field("toNamespaces").index(index);
        // What is wrong with the entry is told once.
        let shell = Entry {
            at: shell.at.shared(),
            namespace: None,
            ..shell.clone()
        };
        let Some(namespace) = named(&at, text, NameRule::Label1123) else {
            continue;
        };
        plans.extend(child(&shell).map(|plan| ChildPlan {
            namespace: Some(namespace),
            spread: true,
            ..plan
        }));
    }
    plans
}

/// How a Secret lasts, if it does.
fn lasting(shell: &Entry<'_>, entry: &Secret) -> Option<LastingPlan> {
    let at = &shell.at;
    let rotate_after = span(&at.field("rotateAfter"), entry.rotate_after);
    if entry.once.is_none_or(|once| !once) && rotate_after.is_none() && entry.tls.is_none() {
        return None;
    }
    exclusions(at, entry);
    let certificate = entry
        .tls
        .as_ref()
        .map(|tls| certificate(at, entry, tls, rotate_after));
    let once = entry.once.unwrap_or(certificate.is_none());
    if once {
        warn_of_reconcile(shell, entry);
    }
    let due = certificate.as_ref().map(|plan| plan.valid_for * 2 / 3);
    Some(LastingPlan {
        once,
        renew_after: rotate_after.into_iter().chain(due).min(),
        certificate,
    })
}

/// What a Secret that lasts cannot have.
fn exclusions(at: &At<'_>, entry: &Secret) {
    if entry.once == Some(false) && entry.rotate_after.is_some() && entry.tls.is_none() {
        at.field("rotateAfter").error_hint(
            Code::Exclusive,
            "values that are rendered in each pass do not grow old",
            "take `once: false` out",
        );
    }
    if !entry.copies.to_namespaces.is_empty() {
        at.field("toNamespaces").error_hint(
            Code::Exclusive,
            "each namespace would get other values",
            "make the Secret in one namespace, and copy it with `fromSecret` in another entry",
        );
    }
    let sources = [
        ("fromSecret", entry.from_secret.is_some()),
        ("fromConfigMap", entry.from_config_map.is_some()),
    ];
    for (field, is_given) in sources {
        if is_given && entry.tls.is_some() {
            let message = format!("`tls` and `{field}` exclude each other");
            at.field(field).error(Code::Exclusive, message);
        }
    }
}

/// `once` wins over whatever else says that the Secret is kept as declared.
fn warn_of_reconcile(shell: &Entry<'_>, entry: &Secret) {
    const MESSAGE: &str = "`once` wins: the Secret is left alone while it is there";
    let at = &shell.at;
    if shell.control.reconcile == Some(true) {
        at.field("reconcile").warn(Code::NoEffect, MESSAGE);
    } else if shell.block == Block::Reconcile {
        let field = if entry.once.is_some() {
            "once"
        } else {
            "rotateAfter"
        };
        at.field(field).warn_hint(
            Code::NoEffect,
            "`once` wins over `onReconcile`: the Secret is left alone while it is there",
            "move the entry to `onCreate`",
        );
    }
}

fn certificate(
    at: &At<'_>,
    entry: &Secret,
    tls: &SecretTls,
    rotate_after: Option<Duration>,
) -> CertificatePlan {
    let SecretTls {
        common_name,
        dns_names,
        valid_for,
    } = tls;
    if !entry.data.is_empty() {
        at.field("data").warn(
            Code::NoEffect,
            "with `tls` the data is the certificate: this has no effect",
        );
    }
    if entry.type_.is_some() {
        at.field("type").warn(
            Code::NoEffect,
            "with `tls` the type is kubernetes.io/tls: this has no effect",
        );
    }
    let at = at.field("tls");
    if common_name.is_none() && dns_names.is_empty() {
        at.error(Code::Missing, "`commonName` or `dnsNames` is needed");
    }
    let leaf = |at: &At<'_>, text: &Text| at.leaf(text, Coerce::OptionalText);
    let hosts = dns_names
        .iter()
        .enumerate()
        .filter_map(|(index, text)| leaf(&at.field("dnsNames").index(index), text));
    CertificatePlan {
        common_name: common_name
            .as_ref()
            .and_then(|text| leaf(&at.field("commonName"), text)),
        hosts: hosts.collect(),
        valid_for: span(&at.field("validFor"), *valid_for)
            .or(rotate_after)
            .unwrap_or(VALID_FOR),
    }
}

/// A time that is not too short.
fn span(at: &At<'_>, span: Option<Span>) -> Option<Duration> {
    let Span(declared) = span?;
    if declared < SHORTEST {
        let shortest = duration::format(SHORTEST);
        at.error(
            Code::OutOfRange,
            format!("this takes a duration of at least {shortest}"),
        );
    }
    Some(declared)
}
