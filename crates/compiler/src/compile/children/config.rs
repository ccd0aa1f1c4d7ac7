//! Secrets with generated values, including those of Ingresses, and pods that roll when their configuration changes.

use std::time::Duration;

use super::{BlockContext, Entry, blocks::Block};
use crate::{
    resources::{CopySource, config, ingress},
    scope::At,
};
use orkestra_language::{
    api::{
        Text,
        children::{Ingress, Secret, SecretTls},
        duration::{self, Span},
        or_template::OrTemplate,
    },
    diagnostics::Code,
};
use orkestra_plan::{
    CertificatePlan, ChildPlan, Coerce, GeneratedSecretPlan, GroupKind, Whole, kinds, references,
};

/// The default name of a certificate Secret.
const TLS_NAME: &str = "{{ .metadata.name }}-tls";
/// Shortest lifetime of generated values.
const SHORTEST: Duration = Duration::from_secs(1);
/// Default validity of a certificate.
const VALID_FOR: Duration = Duration::from_hours(365 * 24);

/// Returns the plan of a workload whose pods roll when the Secrets or `ConfigMaps` that they use change, if the entry asks
/// for it.
pub(crate) fn rolling(at: &At<'_>, plan: ChildPlan, asked: Option<bool>) -> ChildPlan {
    let rolls = asked == Some(true);
    if rolls && references::kinds(&plan.body).is_empty() {
        at.field("rollOnChange").warn(
            Code::NoEffect,
            "the pods use no Secret and no `ConfigMap`: this has no effect",
        );
    }
    ChildPlan { rolls, ..plan }
}

/// The age at which a certificate is renewed: two thirds of its validity.
fn renewal(certificate: &CertificatePlan) -> Duration {
    certificate.valid_for * 2 / 3
}

impl BlockContext<'_> {
    /// Compiles the certificate Secret of an Ingress that asks for one. Problems of its entry are reported once.
    pub(crate) fn certificate_of(&self, shell: &Entry<'_>, entry: &Ingress) -> Option<ChildPlan> {
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
        let host = |(at, text): (At<'_>, &Text)| match tls.hosts.template() {
            Some(all) => at.whole_leaf(all, Whole::Words),
            None => at.leaf(text, Coerce::OptionalText),
        };
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
            annotations: &OrTemplate::default(),
            ..shell.clone()
        };
        let plan = self.child_at(&secret, &at, |_, _| config::certificate())?;
        Some(ChildPlan {
            path: place.kept(),
            generated: Some(Box::new(GeneratedSecretPlan {
                once: false,
                renew_after: Some(renewal(&certificate)),
                certificate: Some(certificate),
            })),
            ..plan
        })
    }

    /// Compiles the Secret of an entry, or one in each of its namespaces.
    pub(crate) fn secrets<'e>(&self, shell: Entry<'e>, entry: &'e Secret) -> Vec<ChildPlan> {
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
    let due = certificate.as_ref().map(renewal);
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
    if !entry.data.is_absent() {
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
    if common_name.is_none() && dns_names.is_absent() {
        at.error(Code::Missing, "`commonName` or `dnsNames` is needed");
    }
    let leaf = |at: &At<'_>, text: &Text| at.leaf(text, Coerce::OptionalText);
    let named = at.field("dnsNames");
    let all = dns_names
        .template()
        .and_then(|text| named.whole_leaf(text, Whole::Words));
    let written = dns_names.iter().enumerate();
    let written = written.filter_map(|(index, text)| leaf(&named.index(index), text));
    let hosts = written.chain(all);
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
