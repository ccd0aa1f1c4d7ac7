//! Checks references between the children of an operator: unresolved names, keys, volumes, ports and selectors.
//!
//! ```text
//!  blocks ──► Declared children by kind and name ──┐
//!         ──► pods, with their references ─────────┴──► warnings
//! ```
//!
//! References to objects from elsewhere are valid. An unknown name is therefore reported only if it is similar to that of a
//! declared child. All problems here are warnings, and values that depend on the custom resource are compared as text.

mod made;
mod names;
mod pods;
mod ports;
mod uses;

use super::{OperatorPlan, ResourceType, children::Declared};
use crate::{
    api::{
        children::{Common, PodParts, Serving, VolumeClaimTemplate},
        scalar::Text,
    },
    diagnostics::Code,
    resources::{Row, Shorthand, scope::At},
};

/// A child with pods.
struct Workload<'a> {
    /// The path of its declaration.
    at: At<'a>,
    /// The import that declares it.
    import: Option<usize>,
    common: &'a Common,
    /// Its name, normalised.
    name: String,
    pod: &'a PodParts,
    /// Set for kinds whose pods keep running.
    serving: Option<&'a Serving>,
    /// For a `StatefulSet`: the volume claims of each pod.
    claims: &'a [VolumeClaimTemplate],
}

/// Checks the references between the children of all blocks of an operator.
pub(super) fn check(blocks: &[Declared<'_>]) {
    let made = made::Made::of(blocks);
    let workloads: Vec<Workload<'_>> = blocks.iter().flat_map(workloads).collect();
    for block in blocks {
        uses::visit(block, &mut |used| made.check(&used));
    }
    for workload in &workloads {
        uses::visit_pod(&workload.at, workload.pod, &mut |used| made.check(&used));
        pods::check_mounts(workload);
        ports::check_probes(workload);
    }
    for block in blocks {
        ports::check_services(block, &workloads);
        ports::check_ingresses(block, blocks);
        pods::check_selectors(block, blocks, &workloads);
    }
}

/// Reports the children that a custom resource without a namespace cannot have.
pub(super) fn check_namespaces(at: &At<'_>, plan: &OperatorPlan, owner: Option<&ResourceType>) {
    if owner.is_none_or(|owner| owner.namespaced != Some(false)) {
        return;
    }
    for child in &plan.children {
        if child.kind.namespaced == Some(true) && child.namespace.is_none() {
            at.place(&child.path).warn_hint(
                Code::NoNamespace,
                format!(
                    "the custom resource is cluster-scoped, and this {} has no namespace",
                    child.kind.kind
                ),
                "declare `namespace`",
            );
        }
    }
}

/// Returns the children of a block that have pods.
fn workloads<'a>(block: &Declared<'a>) -> Vec<Workload<'a>> {
    let lifecycle = block.lifecycle;
    let mut all = Vec::new();
    let mut add = |row: &Row, index, common: &'a Common, pod, serving, claims| {
        all.push(Workload {
            at: block.at.field(row.list).index(index),
            import: block.import,
            common,
            name: names::normalised(row.name(common).unwrap_or_default()),
            pod,
            serving,
            claims,
        });
    };
    for (index, one) in lifecycle.deployments.iter().enumerate() {
        add(
            one.row(),
            index,
            &one.common,
            &one.pod,
            Some(&one.serving),
            &[],
        );
    }
    for (index, one) in lifecycle.stateful_sets.iter().enumerate() {
        let claims = &*one.volume_claim_templates;
        add(
            one.row(),
            index,
            &one.common,
            &one.pod,
            Some(&one.serving),
            claims,
        );
    }
    for (index, one) in lifecycle.daemon_sets.iter().enumerate() {
        add(
            one.row(),
            index,
            &one.common,
            &one.pod,
            Some(&one.serving),
            &[],
        );
    }
    for (index, one) in lifecycle.replica_sets.iter().enumerate() {
        add(
            one.row(),
            index,
            &one.common,
            &one.pod,
            Some(&one.serving),
            &[],
        );
    }
    for (index, one) in lifecycle.pods.iter().enumerate() {
        add(
            one.row(),
            index,
            &one.common,
            &one.pod,
            Some(&one.serving),
            &[],
        );
    }
    for (index, one) in lifecycle.jobs.iter().enumerate() {
        add(one.row(), index, &one.common, &one.pod, None, &[]);
    }
    for (index, one) in lifecycle.cron_jobs.iter().enumerate() {
        add(one.row(), index, &one.common, &one.pod, None, &[]);
    }
    all
}

impl Workload<'_> {
    /// True if its patch has a field with that name, so that the entry is incomplete.
    fn patches(&self, field: &str) -> bool {
        let patch = &self.common.patch;
        patch.contains_key(field) || patch.values().any(|node| names::mentions(node, field))
    }
}

/// Returns a text without surrounding white space, if it has no template.
fn literal(text: &Text) -> Option<&str> {
    (!text.contains("{{")).then(|| text.trim())
}
