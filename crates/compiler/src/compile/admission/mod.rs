//! Protection, webhooks, and where rules apply: at admission, in reconcile passes, or in both.
//!
//! ```text
//!  a rule ── reads only the custom resource ──────────► at admission and in passes
//!         ── reads `.old`, `.operation` ──────────────► at admission only
//!         ── reads `.status`, `.children`, others ────► in passes only
//!         ── reads a field that such a rule sets ─────► in passes only
//! ```

mod moments;

use std::collections::BTreeSet;

use crate::scope::At;
use orkestra_language::{
    api::{
        CrdEntry, EntryProtection, Operation, Security, names,
        security::{DeletionProtection, NamespaceProtection},
    },
    diagnostics::Code,
};
use orkestra_object::value::Path;
use orkestra_plan::{
    AdmissionPlan, DeletionPlan, GroupKind, NamespacePlan, Protection, REPLICAS, SecurityPlan,
    Watched, definitions::CrdVersion, kinds,
};

pub(crate) use moments::{complete, fires};

/// The default of `security.conversion.conversionWindow`.
const CONVERSION_WINDOW: u32 = 100;

/// Compiles `security` at `at`.
pub(crate) fn security(at: &At<'_>, declared: Option<&Security>) -> SecurityPlan {
    let none = Security::default();
    let Security {
        service_name,
        gateway_endpoint,
        deletion_protection,
        namespace_protection,
        webhooks,
        conversion,
    } = declared.unwrap_or(&none);
    let text = |text: &Option<String>| text.as_deref().map(Box::from);
    let webhooks = webhooks.clone().unwrap_or_default();
    let conversion = conversion.unwrap_or_default();
    let at_namespaces = at.field("namespaceProtection");
    let of_webhooks = at.field("webhooks");
    for (at, name) in [(at, service_name), (&of_webhooks, &webhooks.service_name)] {
        if let Some(Err(why)) = name.as_deref().map(names::check_dns1035_label) {
            at.field("serviceName").error(Code::BadName, why);
        }
    }
    let endpoint = gateway_endpoint.as_deref().filter(|url| !url.is_empty());
    if let Some(Err(why)) = endpoint.map(names::check_webhook_url) {
        at.field("gatewayEndpoint").error_hint(
            Code::WrongShape,
            why,
            "the certificate of the webhooks, which all Katalogs share, names this host",
        );
    }
    SecurityPlan {
        service_name: text(service_name),
        gateway_endpoint: endpoint.map(Box::from),
        deletion: deletion_protection.as_ref().and_then(deletion),
        namespaces: namespace_protection
            .as_ref()
            .and_then(|declared| namespaces(&at_namespaces, declared)),
        admission: webhooks.admission.and_then(|switch| switch.enabled),
        failure_policy: webhooks.failure_policy.unwrap_or_default(),
        webhooks_service_name: text(&webhooks.service_name),
        cleanup: webhooks.cleanup_on_shutdown.unwrap_or(false),
        conversion: conversion.enabled,
        conversion_window: conversion.conversion_window.unwrap_or(CONVERSION_WINDOW),
    }
}

fn deletion(declared: &DeletionProtection) -> Option<DeletionPlan> {
    declared.enabled.unwrap_or(true).then(|| DeletionPlan {
        strict: declared.strict_mode.unwrap_or(false),
        failure_policy: declared.failure_policy.unwrap_or_default(),
        cleanup: declared.cleanup_on_shutdown.unwrap_or(false),
    })
}

fn namespaces(at: &At<'_>, declared: &NamespaceProtection) -> Option<NamespacePlan> {
    let NamespaceProtection {
        enabled,
        restricted_namespaces,
        allowed_namespaces,
        failure_policy,
        cleanup_on_shutdown,
    } = declared;
    if !restricted_namespaces.is_empty() && !allowed_namespaces.is_empty() {
        at.error_hint(
            Code::Exclusive,
            "`restrictedNamespaces` and `allowedNamespaces` are mutually exclusive",
            "leave out one of the two",
        );
    }
    let plan = NamespacePlan {
        restricted: super::watched::namespaces(at, "restrictedNamespaces", restricted_namespaces),
        allowed: super::watched::namespaces(at, "allowedNamespaces", allowed_namespaces),
        failure_policy: failure_policy.unwrap_or_default(),
        cleanup: cleanup_on_shutdown.unwrap_or(false),
    };
    enabled.unwrap_or(true).then_some(plan)
}

/// Restricts the custom resources of an entry to the namespaces that the whole Katalog permits.
pub(crate) fn restrict(watched: &mut Watched, security: &SecurityPlan) {
    let Some(plan) = &security.namespaces else {
        return;
    };
    watched.restricted.extend(plan.restricted.iter().cloned());
    if watched.allowed.is_empty() {
        watched.allowed.clone_from(&plan.allowed);
    } else if !plan.allowed.is_empty() {
        // Namespaces of the entry that the Katalog does not permit.
        let outside = watched.allowed.difference(&plan.allowed).cloned();
        watched.restricted.extend(outside.collect::<Vec<_>>());
    }
}

/// Compiles the admission of the entry at `at`.
pub(crate) fn of_entry(at: &At<'_>, entry: &CrdEntry, security: &SecurityPlan) -> AdmissionPlan {
    let webhooks = entry.webhooks.clone().unwrap_or_default();
    let operations = match webhooks.operations {
        None => AdmissionPlan::default().operations,
        Some(declared) => {
            let all: BTreeSet<Operation> = declared.into_iter().collect();
            if all.is_empty() {
                let at = at.field("webhooks").field("operations");
                at.error_hint(Code::Empty, "the value is empty", "remove it");
            }
            all.into_iter().collect()
        }
    };
    AdmissionPlan {
        enabled: security.admission,
        validation: webhooks.validation.unwrap_or(true),
        mutation: webhooks.mutation.unwrap_or(true),
        operations,
        failure_policy: security.failure_policy,
        protection: protection(at, entry.deletion_protection, security.deletion),
        replicas: None,
    }
}

/// Returns the path that the scale subresource of a kind writes, as far as its definition is known.
pub(crate) fn replicas(owner: &GroupKind, version: Option<&CrdVersion>) -> Option<Path> {
    if kinds::built_in(owner).is_some() {
        return kinds::may_be_scaled(owner).then(|| Path::of_fields(REPLICAS));
    }
    let path = version?.scale.as_deref()?;
    Path::parse(path.trim_start_matches('.')).ok()
}

fn protection(
    at: &At<'_>,
    declared: Option<EntryProtection>,
    whole: Option<DeletionPlan>,
) -> Protection {
    let EntryProtection {
        protect_crd,
        protect_crs,
        strict_mode,
    } = declared.unwrap_or_default();
    let Some(whole) = whole else {
        let asks = protect_crd == Some(true) || protect_crs == Some(true);
        if asks || strict_mode == Some(true) {
            at.field("deletionProtection").warn_hint(
                Code::NoEffect,
                "this has no effect: the Katalog does not enable deletion protection",
                "declare `security.deletionProtection`",
            );
        }
        return Protection::default();
    };
    let protection = Protection {
        definition: protect_crd.unwrap_or(true),
        resources: protect_crs.unwrap_or(true),
        strict: strict_mode.unwrap_or(whole.strict),
    };
    if protection.resources && !protection.definition {
        at.field("deletionProtection").warn_hint(
            Code::NoEffect,
            "the custom resources are protected, but their definition is not: deleting the definition deletes them too",
            "protect both, or only the definition",
        );
    }
    protection
}
