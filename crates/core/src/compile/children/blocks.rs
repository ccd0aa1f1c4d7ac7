//! The lifecycle blocks of an operator, and those of the Motifs that it imports.

use crate::{
    api::{Lifecycle, OperatorBox, children::ForEach, motif::MotifResources},
    resources::{Pods, Shorthand, Workload},
    scope::At,
};

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
    pub(super) block: Block,
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
pub(super) fn selectable<'a>(
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
pub(super) fn within_reach<'a>(
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
        let (row, common) = (entry.row(), entry.common());
        let at = at.field(row.list).index(index);
        Some(Workload {
            kind: row.resource().group_kind(),
            name: row.name(common)?.to_owned(),
            each: common.control.for_each.as_ref(),
            port: port.map(|port| (at.field("port"), port)),
        })
    };
    entries(lifecycle)
        .into_iter()
        .filter_map(workload)
        .collect()
}

/// Returns the entries of the kinds that have their own list, each with its index in that list.
// Over 60 lines: a table, a line for each kind.
pub(crate) fn entries(lifecycle: &Lifecycle) -> Vec<(usize, &dyn Shorthand)> {
    let Lifecycle {
        deployments,
        stateful_sets,
        daemon_sets,
        replica_sets,
        pods,
        jobs,
        cron_jobs,
        services,
        ingresses,
        network_policies,
        config_maps,
        // Compiled separately: a Secret may have generated values, or be a copy of one of two kinds.
        secrets: _,
        service_accounts,
        roles,
        role_bindings,
        cluster_roles,
        cluster_role_bindings,
        hpa,
        pdb,
        persistent_volume_claims,
        persistent_volumes,
        storage_classes,
        namespaces,
        resource_quotas,
        limit_ranges,
        priority_classes,
        custom: _,
        when: _,
        or: _,
        external: _,
    } = lifecycle;
    let mut all = Vec::new();
    add(&mut all, deployments);
    add(&mut all, stateful_sets);
    add(&mut all, daemon_sets);
    add(&mut all, replica_sets);
    add(&mut all, pods);
    add(&mut all, jobs);
    add(&mut all, cron_jobs);
    add(&mut all, services);
    add(&mut all, ingresses);
    add(&mut all, network_policies);
    add(&mut all, config_maps);
    add(&mut all, service_accounts);
    add(&mut all, roles);
    add(&mut all, role_bindings);
    add(&mut all, cluster_roles);
    add(&mut all, cluster_role_bindings);
    add(&mut all, hpa);
    add(&mut all, pdb);
    add(&mut all, persistent_volume_claims);
    add(&mut all, persistent_volumes);
    add(&mut all, storage_classes);
    add(&mut all, namespaces);
    add(&mut all, resource_quotas);
    add(&mut all, limit_ranges);
    add(&mut all, priority_classes);
    all
}

fn add<'a, T: Shorthand>(all: &mut Vec<(usize, &'a dyn Shorthand)>, list: &'a [T]) {
    let list = list.iter().enumerate();
    all.extend(list.map(|(index, entry)| (index, entry as &dyn Shorthand)));
}
