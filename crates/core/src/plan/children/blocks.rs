//! The lifecycle blocks of an operator: its own, and those of the Motifs that it imports.

use super::DEPLOYMENT;
use crate::{
    api::{Lifecycle, OperatorBox, children, motif::MotifResources},
    resources::{scope::At, service::Workload},
};

/// The lifecycle block that an entry stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// `onCreate`.
    Create,
    /// `onReconcile`.
    Reconcile,
    /// `onDelete`.
    Delete,
}

/// A lifecycle block of the operatorBox, or of a Motif.
pub(crate) struct Declared<'a> {
    /// Where it stands.
    pub(crate) at: At<'a>,
    pub(super) block: Block,
    pub(crate) lifecycle: &'a Lifecycle,
    /// The import that it comes from.
    pub(crate) import: Option<usize>,
}

/// The blocks of the operatorBox at `at`.
pub(crate) fn of_box<'a>(at: &At<'a>, declared: &'a OperatorBox) -> Vec<Declared<'a>> {
    let blocks = [
        ("onCreate", Block::Create, &declared.on_create),
        ("onReconcile", Block::Reconcile, &declared.on_reconcile),
    ];
    let declared = blocks.into_iter().filter_map(|(name, block, lifecycle)| {
        Some(Declared {
            at: at.field(name),
            block,
            lifecycle: lifecycle.as_ref()?,
            import: None,
        })
    });
    declared.collect()
}

/// The blocks of a Motif whose `resources` are at `at`.
pub(crate) fn of_motif<'a>(
    at: &At<'a>,
    resources: &'a MotifResources,
    import: usize,
) -> Vec<Declared<'a>> {
    let MotifResources {
        on_create,
        on_reconcile,
    } = resources;
    let once = on_create.as_ref().map(|lifecycle| Declared {
        at: at.field("onCreate"),
        block: Block::Create,
        lifecycle,
        import: Some(import),
    });
    let kept = Declared {
        at: at.clone(),
        block: Block::Reconcile,
        lifecycle: on_reconcile,
        import: Some(import),
    };
    once.into_iter().chain([kept]).collect()
}

/// The workloads that Services of one import, or of the operatorBox, can select: its own. Where it has none: those of
/// the others, as far as they read no inputs, which are not the same there.
pub(super) fn selectable<'a>(blocks: &[Declared<'a>], import: Option<usize>) -> Vec<Workload<'a>> {
    let of = |is_wanted: &dyn Fn(&Declared<'_>) -> bool| -> Vec<Workload<'a>> {
        let wanted = blocks.iter().filter(|block| is_wanted(block));
        wanted
            .flat_map(|block| workloads(&block.at, block.lifecycle))
            .collect()
    };
    let own = of(&|block| block.import == import);
    if !own.is_empty() {
        return own;
    }
    let reads_inputs = |text: &str| text.contains("inputs");
    let mut others = of(&|block| block.import != import);
    others.retain(|workload| !reads_inputs(&workload.name));
    for workload in &mut others {
        let port = workload.port.take();
        workload.port = port.filter(|(_, port)| !reads_inputs(&port.to_string()));
    }
    others
}

/// The workloads whose names can be told where an entry is made for `each` element, or for none.
pub(super) fn within_reach<'a>(
    workloads: &[Workload<'a>],
    each: Option<&children::ForEach>,
) -> Vec<Workload<'a>> {
    let is_near = |workload: &&Workload<'_>| workload.each.is_none() || workload.each == each;
    workloads.iter().filter(is_near).cloned().collect()
}

/// The workloads that Services can select. Their own compilation reports what is wrong with them.
fn workloads<'a>(at: &At<'a>, lifecycle: &'a Lifecycle) -> Vec<Workload<'a>> {
    let at = at.field("deployments");
    let workload = |(index, entry): (usize, &'a children::Deployment)| Workload {
        kind: DEPLOYMENT.kind().group_kind(),
        name: DEPLOYMENT.name(&entry.common.meta).to_owned(),
        each: entry.common.control.for_each.as_ref(),
        port: entry
            .port
            .as_ref()
            .map(|port| (at.index(index).field("port"), port)),
    };
    lifecycle
        .deployments
        .iter()
        .enumerate()
        .map(workload)
        .collect()
}
