//! Secrets with generated values, including those of Ingresses, and pods that roll when their configuration changes.

use std::{collections::BTreeMap, time::Duration};

use super::{BlockContext, Entry, blocks::Block};
use crate::{
    api::{
        Text,
        children::{Ingress, Secret, SecretTls},
        duration::{self, Span},
    },
    diagnostics::Code,
    plan::{CertificatePlan, ChildPlan, Coerce, GeneratedSecretPlan, GroupKind, kinds, references},
    resources::{CopySource, config, ingress},
    scope::At,
};

/// The default name of a certificate Secret.
const TLS_NAME: &str = "{{ .metadata.name }}-tls";
/// Shortest lifetime of generated values.
const SHORTEST: Duration = Duration::from_secs(1);
/// Default validity of a certificate.
const VALID_FOR: Duration = Duration::from_hours(365 * 24);

/// Returns the plan of a workload whose pods roll when the Secrets or `ConfigMaps` that they use change, if the entry asks
/// for it.
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

impl CertificatePlan {
    /// The age at which it is renewed: two thirds of its validity.
    fn due(&self) -> Duration {
        self.valid_for * 2 / 3
    }
}

impl BlockContext<'_> {
    /// Compiles the certificate Secret of an Ingress that asks for one. Problems of its entry are reported once.
    pub(super) fn certificate_of(&self, shell: &Entry<'_>, entry: &Ingress) -> Option<ChildPlan> {
        let tls = entry.tls.as_ref().filter(|tls| tls.create == Some(true))?;
        let at = shell.at.shared();
        let place = at.field("tls");
        let name = ingress::secret_name(tls, shell.name.unwrap_or_default());
        let named = match tls.secret_name {
            Some(_) => place.field("secretName"),
            None => place.clone(),
        };
        let hosts = ingress::hosts(&at, tls, entry.host.as_ref());
        if hosts.is_empty() {
            place.error_hint(
                Code::Missing,
                "the certificate has no host",
                "declare `host`, or `tls.hosts`",
            );
        }
        let host = |(at, text): (At<'_>, &Text)| at.leaf(text, Coerce::OptionalText);
        let certificate = CertificatePlan {
            common_name: None,
            hosts: hosts.into_iter().filter_map(host).collect(),
            valid_for: VALID_FOR,
        };
        let secret = Entry {
            at: at.clone(),
            kind: kinds::resource("", "v1", "Secret"),
            name: Some(&name),
            named,
            patch: None,
            annotations: &BTreeMap::new(),
            ..shell.clone()
        };
        let plan = self.child_at(&secret, &at, |_, _| config::certificate())?;
        Some(ChildPlan {
            path: place.kept(),
            generated: Some(Box::new(GeneratedSecretPlan {
                once: false,
                renew_after: Some(certificate.due()),
                certificate: Some(certificate),
            })),
            ..plan
        })
    }

    /// Compiles the Secret of an entry, or one in each of its namespaces.
    pub(super) fn secrets<'e>(&self, shell: Entry<'e>, entry: &'e Secret) -> Vec<ChildPlan> {
        let generated = generated_secret(&shell, entry);
        let shell = Entry {
            name: match (&entry.tls, &entry.common.meta.name) {
                (Some(_), None) => Some(TLS_NAME),
                _ => shell.name,
            },
            ..shell
        };
        let of_secret = CopySource {
            field: "fromSecret",
            kind: GroupKind::parse("Secret"),
            parts: &["type", "data"],
            name: entry.from_secret.as_ref(),
        };
        let of_map = CopySource {
            field: "fromConfigMap",
            kind: GroupKind::parse("ConfigMap"),
            parts: &["data"],
            name: entry.from_config_map.as_ref(),
        };
        let source = match (of_secret.name, of_map.name) {
            (Some(_), Some(_)) => {
                shell.at.field("fromConfigMap").error(
                    Code::Exclusive,
                    "`fromSecret` and `fromConfigMap` are mutually exclusive",
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
            generated: generated.clone().map(Box::new),
            ..plan
        };
        plans.into_iter().map(with).collect()
    }
}

/// Compiles the plan for a Secret with generated values, if it has any.
fn generated_secret(shell: &Entry<'_>, entry: &Secret) -> Option<GeneratedSecretPlan> {
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
    let due = certificate.as_ref().map(CertificatePlan::due);
    Some(GeneratedSecretPlan {
        once,
        renew_after: rotate_after.into_iter().chain(due).min(),
        certificate,
    })
}

/// Reports the fields that a Secret with generated values cannot have.
fn exclusions(at: &At<'_>, entry: &Secret) {
    if entry.once == Some(false) && entry.rotate_after.is_some() && entry.tls.is_none() {
        at.field("rotateAfter").error_hint(
            Code::Exclusive,
            "`rotateAfter` needs values that are generated once: with `once: false` each pass renders them",
            "remove `once: false`",
        );
    }
    if !entry.copies.to_namespaces.is_empty() {
        at.field("toNamespaces").error_hint(
            Code::Exclusive,
            "each namespace would get different values",
            "create the Secret in one namespace, and copy it with `fromSecret` in another entry",
        );
    }
    let sources = [
        ("fromSecret", entry.from_secret.is_some()),
        ("fromConfigMap", entry.from_config_map.is_some()),
    ];
    for (field, is_given) in sources {
        if is_given && entry.tls.is_some() {
            let message = format!("`tls` and `{field}` are mutually exclusive");
            at.field(field).error(Code::Exclusive, message);
        }
    }
}

/// Warns if other fields say that the Secret is kept as declared: `once` takes precedence.
fn warn_of_reconcile(shell: &Entry<'_>, entry: &Secret) {
    const MESSAGE: &str = "`once` takes precedence: an existing Secret is not changed";
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
            "`once` takes precedence over `onReconcile`: an existing Secret is not changed",
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

/// Returns a duration, checked against the minimum.
fn span(at: &At<'_>, span: Option<Span>) -> Option<Duration> {
    let Span(declared) = span?;
    if declared < SHORTEST {
        let shortest = duration::format(SHORTEST);
        at.error(
            Code::OutOfRange,
            format!("expected a duration of at least {shortest}"),
        );
    }
    Some(declared)
}
