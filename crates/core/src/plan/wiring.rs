//! References between the children of an operator: names, keys, volumes, ports and selectors that lead nowhere.
//!
//! ```text
//!  blocks ──► Declared children by kind and name ──┐
//!         ──► pods, with what they refer to ───────┴──► warnings
//! ```
//!
//! Objects that others create are legal to refer to. So an unknown name alone is no problem: it has to be nearly that of a
//! declared child. Everything here is a warning, and what depends on the custom resource is compared as text.

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
    /// Where it is declared.
    at: At<'a>,
    /// The import that it comes from.
    import: Option<usize>,
    common: &'a Common,
    /// Its name, normalised.
    name: String,
    pod: &'a PodParts,
    /// Of kinds whose pods keep running.
    serving: Option<&'a Serving>,
    /// Of a `StatefulSet`: the volumes of each pod's own.
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

/// The children of a block that have pods.
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
    /// Whether its patch has a field of that name, so that more is there than the entry says.
    fn patches(&self, field: &str) -> bool {
        let patch = &self.common.patch;
        patch.contains_key(field) || patch.values().any(|node| names::mentions(node, field))
    }
}

/// A text without white space around it, if it has no template.
fn literal(text: &Text) -> Option<&str> {
    (!text.contains("{{")).then(|| text.trim())
}
