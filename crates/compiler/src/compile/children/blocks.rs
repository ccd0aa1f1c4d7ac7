//! The lifecycle blocks of an operator, and those of the Motifs that it imports.

use crate::{
    resources::{Pods, Shorthand, Workload},
    scope::At,
};
use orkestra_language::api::{Lifecycle, OperatorBox, children::ForEach, motif::MotifResources};

/// The lifecycle block of an entry.
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
pub(crate) struct DeclaredBlock<'a> {
    /// Its path.
    pub(crate) at: At<'a>,
    pub(crate) block: Block,
    pub(crate) lifecycle: &'a Lifecycle,
    /// The import that declares it.
    pub(crate) import: Option<usize>,
}

/// Returns the blocks of the operatorBox at `at`.
pub(crate) fn of_box<'a>(at: &At<'a>, declared: &'a OperatorBox) -> Vec<DeclaredBlock<'a>> {
    let blocks = [
        ("onCreate", Block::Create, &declared.on_create),
        ("onReconcile", Block::Reconcile, &declared.on_reconcile),
    ];
    let declared = blocks.into_iter().filter_map(|(name, block, lifecycle)| {
        Some(DeclaredBlock {
            at: at.field(name),
            block,
            lifecycle: lifecycle.as_ref()?,
            import: None,
        })
    });
    declared.collect()
}

/// Returns the blocks of a Motif whose `resources` are at `at`.
pub(crate) fn of_motif<'a>(
    at: &At<'a>,
    resources: &'a MotifResources,
    import: usize,
) -> Vec<DeclaredBlock<'a>> {
    let MotifResources {
        on_create,
        on_reconcile,
    } = resources;
    let once = on_create.as_ref().map(|lifecycle| DeclaredBlock {
        at: at.field("onCreate"),
        block: Block::Create,
        lifecycle,
        import: Some(import),
    });
    let kept = DeclaredBlock {
        at: at.clone(),
        block: Block::Reconcile,
        lifecycle: on_reconcile,
        import: Some(import),
    };
    once.into_iter().chain([kept]).collect()
}

/// Returns the workloads that Services of one import, or of the operatorBox, can select: its own. If it has none, those of
/// the others that read no inputs, since inputs differ between imports.
pub(crate) fn selectable<'a>(
    blocks: &[DeclaredBlock<'a>],
    import: Option<usize>,
) -> Vec<Workload<'a>> {
    let of = |is_wanted: &dyn Fn(&DeclaredBlock<'_>) -> bool| -> Vec<Workload<'a>> {
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

/// Returns the workloads whose names are known to an entry that is expanded for `each`, or not expanded.
pub(crate) fn within_reach<'a>(
    workloads: &[Workload<'a>],
    each: Option<&ForEach>,
) -> Vec<Workload<'a>> {
    let is_near = |workload: &&Workload<'_>| workload.each.is_none() || workload.each == each;
    workloads.iter().filter(is_near).cloned().collect()
}

/// Returns the workloads that Services can select. Their own compilation reports their problems.
fn workloads<'a>(at: &At<'a>, lifecycle: &'a Lifecycle) -> Vec<Workload<'a>> {
    let workload = |(index, entry): (usize, &'a dyn Shorthand)| {
        let Pods { port } = entry.pods()?;
        let at = at.field(entry.row().list).index(index);
        Some(Workload {
            kind: entry.resource().group_kind(),
            name: entry.name()?.to_owned(),
            each: entry.common().control.for_each.as_ref(),
            port: port.map(|port| (at.field("port"), port)),
        })
    };
    entries(lifecycle)
        .into_iter()
        .filter_map(workload)
        .collect()
}

/// Returns the entries of the kinds that have their own list, each with its index in that list.
pub(crate) fn entries(lifecycle: &Lifecycle) -> Vec<(usize, &dyn Shorthand)> {
    let mut all = Vec::new();
    macro_rules! add_each {
        ($(#[doc = $doc:literal] $field:ident: $kind:ident, $list:literal, $name:expr, $about:literal;)*) => {
            $(add(&mut all, &lifecycle.$field);)*
        };
    }
    orkestra_language::child_lists!(add_each);
    // Compiled separately: a Secret may have generated values, or be a copy of one of two kinds.
    all.retain(|(_, entry)| entry.row().kind != "Secret");
    all
}

fn add<'a, T: Shorthand>(all: &mut Vec<(usize, &'a dyn Shorthand)>, list: &'a [T]) {
    let list = list.iter().enumerate();
    all.extend(list.map(|(index, entry)| (index, entry as &dyn Shorthand)));
}
