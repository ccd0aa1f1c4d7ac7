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

use super::children::DeclaredBlock;
use crate::{resources::Shorthand, scope::At};
use orkestra_language::{
    api::{
        children::{Common, PodParts, Serving, VolumeClaimTemplate},
        or_template::OrTemplate,
        scalar::Text,
    },
    diagnostics::Code,
};
use orkestra_plan::{OperatorPlan, ResourceType};

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
    /// True if there are claims that only a pass knows.
    has_other_claims: bool,
}

/// Checks the references between the children of all blocks of an operator.
pub(crate) fn check(blocks: &[DeclaredBlock<'_>]) {
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
pub(crate) fn check_namespaces(at: &At<'_>, plan: &OperatorPlan, owner: Option<&ResourceType>) {
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
fn workloads<'a>(block: &DeclaredBlock<'a>) -> Vec<Workload<'a>> {
    let lifecycle = block.lifecycle;
    let mut all = Vec::new();
    all.extend(of_list(block, &lifecycle.deployments, |one| {
        (&one.pod, Some(&one.serving), None)
    }));
    all.extend(of_list(block, &lifecycle.stateful_sets, |one| {
        let claims = &one.volume_claim_templates;
        (&one.pod, Some(&one.serving), Some(claims))
    }));
    all.extend(of_list(block, &lifecycle.daemon_sets, |one| {
        (&one.pod, Some(&one.serving), None)
    }));
    all.extend(of_list(block, &lifecycle.replica_sets, |one| {
        (&one.pod, Some(&one.serving), None)
    }));
    all.extend(of_list(block, &lifecycle.pods, |one| {
        (&one.pod, Some(&one.serving), None)
    }));
    all.extend(of_list(block, &lifecycle.jobs, |one| {
        (&one.pod, None, None)
    }));
    all.extend(of_list(block, &lifecycle.cron_jobs, |one| {
        (&one.pod, None, None)
    }));
    all
}

/// The pods of an entry: their template, what they serve, and the claims that each of them gets.
type PodFields<'a> = (
    &'a PodParts,
    Option<&'a Serving>,
    Option<&'a OrTemplate<Vec<VolumeClaimTemplate>>>,
);

/// Returns the workloads of a list of `block`; `pods` returns the pods of an entry.
fn of_list<'b, 'a: 'b, T: Shorthand>(
    block: &'b DeclaredBlock<'a>,
    list: &'a [T],
    pods: impl Fn(&'a T) -> PodFields<'a> + 'b,
) -> impl Iterator<Item = Workload<'a>> + 'b {
    list.iter().enumerate().map(move |(index, one)| {
        let (pod, serving, claims) = pods(one);
        Workload {
            at: block.at.field(one.row().list).index(index),
            import: block.import,
            common: one.common(),
            name: names::normalised(one.name().unwrap_or_default()),
            pod,
            serving,
            claims: claims.map(|claims| claims.as_slice()).unwrap_or_default(),
            has_other_claims: claims.is_some_and(|claims| claims.template().is_some()),
        }
    })
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
