//! One pass: decides the wanted state of a custom resource's children from what was observed.
//!
//! ```text
//!  Observed ── collect   ──► reads are missing: StepResult::Need; held back, or a call failed: StepResult::Done(Cycle)
//!                  │
//!               `pass`    gates of the blocks, then child by child: which to create, keep or delete
//!               `object`  a child's name, and its wanted state: `generated_secret`, `copies` and `rolling` add data that
//!                         they request during rendering, and the pass is called again: StepResult::Need
//!               `restored`  a custom resource from a backup waits for children whose values only the backup has
//!               `prune`   undeclared children are deleted; the inventory for the next pass: StepResult::Done(Cycle)
//! ```

mod copies;
mod generated_secret;
mod object;
mod pass;
mod prune;
mod restored;
mod rolling;
mod scale;
mod targets;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use self::pass::Pass;
pub use self::targets::{lacks, not_created};
pub(crate) use self::{
    object::{NamespaceContext, key_of},
    targets::{Permit, permit},
};
use super::{
    child_metadata::ChildMetadata,
    cleanup, collect, hold,
    hold_reason::HoldReason,
    hooks,
    inputs::Inputs,
    inventory::Inventory,
    labels::{Labels, labels},
    record::Observed,
    render::Setting,
    sources::{Answer, Read},
    template_data::{CleanupState, TemplateData},
    unique,
    view::PassView,
};
pub use super::{
    cycle::{Cycle, Deletion, Intent, Rendered, StepResult},
    failure::Failure,
};
use orkestra_plan::{GroupKind, HookStage, OperatorPlan};
use orkestra_template::{Entropy, EvalBudget};

/// The currently served kinds.
pub trait ServedScopes {
    /// Whether objects of that kind are namespaced. None if it is not served.
    fn is_namespaced(&self, kind: &GroupKind) -> Option<bool>;
}

impl ServedScopes for BTreeMap<GroupKind, bool> {
    fn is_namespaced(&self, kind: &GroupKind) -> Option<bool> {
        self.get(kind).copied()
    }
}

/// Decides one pass over a custom resource that is not being deleted, or returns the reads that it needs first. `scopes`
/// holds the served kinds, `now` is the present time for templates: the same for every call of a pass, and for its status.
/// `entropy` is the pass's own source, from which children that are created once draw.
///
/// ```
/// use std::{collections::{BTreeMap, BTreeSet}, sync::Arc};
///
/// use orkestra_compiler::{compile, scope::Library};
/// use orkestra_plan::{definitions::Schemas, GroupKind, KatalogRef};
/// use orkestra_language::{document::read_stream};
/// use orkestra_engine::{reconcile::{
///         record::{CrRecord, Observed},
///         sources::Answers,
///         step::{Intent, StepResult, step},
///     }};
/// use orkestra_template::{Entropy};
/// use orkestra_object::value::Node;
///
/// let text = "
/// apiVersion: orkestra.orkspace.io/v1
/// kind: Katalog
/// metadata: { name: ponds }
/// spec:
///   crds:
///     pond:
///       apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
///       operatorBox:
///         onReconcile:
///           configMaps: [{ data: { depth: '{{ .spec.depth }}' } }]
/// ";
/// let (documents, _) = read_stream("katalog.yaml", text)?;
/// let reference = KatalogRef::new("default".to_owned(), "ponds".to_owned());
/// let spec = &documents.katalogs[0].spec;
/// let (plan, _) = compile::katalog(&reference, spec, &Schemas::default(), &Library::default())?;
/// let plan = &plan.operators[0];
///
/// let pond = Node::from(&serde_json::json!({
///     "apiVersion": "water.example/v1", "kind": "Pond",
///     "metadata": { "name": "north", "namespace": "default", "uid": "u1", "resourceVersion": "1" },
///     "spec": { "depth": 3 },
/// }));
/// let cr = Arc::new(CrRecord::read(&pond, &plan.reads.cr)?);
/// let observed = Observed {
///     inventory: Arc::clone(&cr.inventory),
///     cr,
///     children: Vec::new(),
///     orphans: Vec::new(),
///     unseen: BTreeSet::new(),
///     reported: Some(true),
///     answers: Answers::new(),
/// };
/// let scopes = BTreeMap::from([(GroupKind { group: "".into(), kind: "ConfigMap".into() }, true)]);
/// let (now, entropy) = (jiff::Timestamp::UNIX_EPOCH, Entropy::seeded([0; 32]));
/// let StepResult::Done(cycle) = step(plan, &scopes, &observed, now, &entropy) else {
///     panic!("nothing else is read");
/// };
/// let [Intent::Apply(rendered)] = &cycle.intents[..] else {
///     panic!("one child is wanted: {cycle:?}");
/// };
/// assert_eq!(rendered.object.to_json()["data"]["depth"], "3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn step(
    plan: &OperatorPlan,
    scopes: &dyn ServedScopes,
    observed: &Observed,
    now: Timestamp,
    entropy: &Entropy,
) -> StepResult {
    if observed.cr.suspended {
        let cycle = Cycle {
            held_back: Some(HoldReason::Suspended),
            inventory: Inventory::clone(&observed.inventory),
            ..Cycle::default()
        };
        return cycle.over(TemplateData::default());
    }
    let mut sources = match collect::for_pass(plan, observed, now) {
        Ok(sources) => sources,
        Err(step) => return step,
    };
    cleanup::evaluate(plan, observed, &mut sources, now);
    if sources.cleanup == Some(CleanupState::Due) {
        return Cycle::deletion(plan, observed).over(sources);
    }
    if plan.hooks.iter().any(|hook| hook.at == HookStage::After) && !sources.is_refused() {
        let mut early = sources.clone();
        hooks::postpone(plan, &mut early, HookStage::After);
        match decide(plan, scopes, (observed, &early), now, entropy) {
            Ok(cycle) if !cycle.is_created(observed) => return cycle.over(early),
            Ok(_) => {}
            Err(reads) => return StepResult::Need(reads),
        }
        if let Err(step) = hooks::make(plan, observed, &mut sources, HookStage::After, now) {
            return step;
        }
    }
    match decide(plan, scopes, (observed, &sources), now, entropy) {
        Ok(cycle) => cycle.over(sources),
        Err(reads) => StepResult::Need(reads),
    }
}

/// Decides a pass whose reads have answers at once: without a cluster, or in one in memory. Each read is asked for once, so it ends.
pub(crate) fn decided(
    plan: &OperatorPlan,
    scopes: &dyn ServedScopes,
    observed: &mut Observed,
    (now, entropy): (Timestamp, &Entropy),
    mut answer: impl FnMut(&Read) -> Answer,
) -> Cycle {
    loop {
        match step(plan, scopes, observed, now, entropy) {
            StepResult::Done(cycle) => return *cycle,
            StepResult::Need(reads) => {
                let answers = reads.into_iter().map(|read| (answer(&read), read));
                let answers = answers.map(|(answer, read)| (read, answer));
                observed.answers.extend(answers);
            }
        }
    }
}

/// Returns a cycle in which no child is created, changed or deleted: the custom resource is invalid.
fn refused(
    plan: &OperatorPlan,
    (observed, sources): (&Observed, &TemplateData),
    labels: Labels,
    failed: Vec<Failure>,
) -> Cycle {
    let mut failures = sources.prepared.failures.clone();
    failures.extend(failed);
    let inventory = Inventory {
        labels: labels.keys().cloned().collect(),
        finalizers: plan.other_finalizers.iter().cloned().collect(),
        held: unique::held(plan, observed, sources),
        ..Inventory::clone(&observed.inventory)
    };
    Cycle {
        failures,
        inventory,
        labels,
        ..Cycle::default()
    }
}

/// Returns the decision of the pass, or the reads that it needs first.
// Over 60 lines: the state of a pass, a line for each field.
fn decide(
    plan: &OperatorPlan,
    scopes: &dyn ServedScopes,
    (observed, sources): (&Observed, &TemplateData),
    now: Timestamp,
    entropy: &Entropy,
) -> Result<Cycle, Vec<Read>> {
    let (manager, setting) = (plan.field_manager(), Setting::of(plan, observed));
    let view = PassView::of(plan, (observed, sources), &setting, now);
    let (frame, data) = (view.frame, view.data());
    let inputs = Inputs::of(plan, &data, frame);
    let around = inputs.around(data.clone());
    let (mut labels, failed) = labels(plan, &observed.cr, &data, frame);
    for response in sources.hooks.iter() {
        labels.extend(response.labels.clone());
    }
    if sources.is_refused() {
        return Ok(refused(plan, (observed, sources), labels, failed));
    }
    let mut pass = Pass {
        plan,
        scopes,
        observed,
        manager,
        marks: ChildMetadata::of(plan, observed),
        frame,
        around: &around,
        entropy,
        now,
        needs: Vec::new(),
        blocks: Vec::with_capacity(plan.blocks.len()),
        whole: Ok(true),
        wanted: BTreeSet::new(),
        open: BTreeMap::new(),
        closed: Vec::new(),
        spared: BTreeSet::new(),
        declared_once: BTreeSet::new(),
        unproven: BTreeSet::new(),
        is_restoring: false,
        held: unique::held(plan, observed, sources),
        complete: true,
        copied: 0,
        cycle: Cycle::default(),
    };
    let mut budget = EvalBudget::default();
    let mut renderer = frame.renderer(&data, &mut budget);
    let requeue = hold::requeue(plan, &mut renderer);
    pass.whole(&mut renderer);
    pass.blocks();
    for index in 0..plan.children.len() {
        pass.child(index);
    }
    if !pass.needs.is_empty() {
        return Err(pass.needs);
    }
    for failure in failed {
        pass.fail(failure);
    }
    pass.cycle.labels = labels;
    let mut cycle = pass.finish();
    cycle.requeue = requeue.into_iter().chain(sources.hooks.requeue()).min();
    cycle.wake = setting.effects.first();
    cycle.doubts = setting.effects.doubts();
    Ok(cycle)
}
