//! The status of a custom resource after a pass: it reports completed actions, not wanted ones.
//!
//! One file: each condition depends on the others, so they are computed together.

mod gated;
mod own;
mod released;

use std::collections::BTreeSet;

pub use self::{gated::gated, released::released};
use super::{
    crd_status::{CONDITIONS, CrdStatus, GENERATION},
    field_holders, hooks,
    inputs::Inputs,
    patch::merge_patch,
    reason::Reason,
    record::{CrRecord, Observed},
    render::{RenderError, Renderer, Setting, wanted},
    requested::LAST_HANDLED,
    template_data::{CleanupState, TemplateData},
    verdict::{Executed, verdict},
    view::PassView,
};
use orkestra_language::api::conditions::{self, Condition, ConditionStatus};
use orkestra_object::value::{Key, Map, Node, Path, PathStep, set};
use orkestra_plan::{CleanupPlan, Coerce, Gate, Leaf, OperatorPlan, StatusFieldPlan};
use orkestra_template::EvalBudget;

/// A patch of the status.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusPatch {
    /// A JSON merge patch: `status`, and `metadata.resourceVersion`, so that it is refused over another state.
    pub body: Node,
    /// Whether it is sent to the status subresource.
    pub subresource: bool,
}

/// Returns the paths of the status and the spec that a plan writes, from the object's root: a record must keep these and
/// their other holders for comparison. A list with a written item is kept whole, since a merge patch replaces it whole.
pub fn written_paths(plan: &OperatorPlan) -> Vec<Path> {
    let is_item = |step: &PathStep| match step {
        PathStep::Index(_) => true,
        PathStep::Field(key) => key.bytes().all(|byte| byte.is_ascii_digit()),
    };
    let up_to_list = |path: Path| {
        path.steps()
            .iter()
            .take_while(|step| !is_item(step))
            .cloned()
            .collect()
    };
    let persisted = plan
        .persisted()
        .flat_map(|path| [path.clone(), field_holders::request_path(path)]);
    let cleanup = plan
        .cleanup
        .iter()
        .map(|_| field_holders::request_path(&CleanupPlan::protection()));
    let handled = plan.status.conditions.then(|| field(LAST_HANDLED));
    let declared = declared_paths(plan).chain(handled);
    let declared = declared.map(|path| up_to_list(below_status(&path)));
    declared.chain(persisted).chain(cleanup).collect()
}

/// Returns the paths that a plan writes below `status`.
fn declared_paths(plan: &OperatorPlan) -> impl Iterator<Item = Path> {
    let every = plan.status.conditions;
    let every = every.then(|| [CONDITIONS, GENERATION].map(field));
    let declared = plan.status.fields.iter();
    every
        .into_iter()
        .flatten()
        .chain(declared.map(|field| field.path.clone()))
}

fn below_status(path: &Path) -> Path {
    let status = std::iter::once(PathStep::Field(Key::from("status")));
    status.chain(path.steps().iter().cloned()).collect()
}

/// Returns the parts of a plan's status that the CRD does not have: the API server would drop them silently, and every pass
/// would write them again.
pub fn unwritable(plan: &OperatorPlan, crd_status: &CrdStatus) -> Vec<Path> {
    let [conditions, generation] = [CONDITIONS, GENERATION].map(field);
    let lost = declared_paths(plan).filter(|path| {
        !crd_status.status.holds(path)
            || (*path == conditions && !crd_status.status.holds_conditions())
            // There the generation changes with every write: it would never match the observed one.
            || (*path == generation && !crd_status.has_status)
    });
    lost.map(|path| below_status(&path)).collect()
}

/// True if the status reports a pass; none if it never can. See [`Observed::reported`].
pub fn reported(plan: &OperatorPlan, crd_status: &CrdStatus, cr: &CrRecord) -> Option<bool> {
    if !plan.status.conditions || !crd_status.status.holds_conditions() {
        return None;
    }
    let status = cr.view.get("status");
    let listed = status.and_then(|status| status.get(CONDITIONS)?.as_list());
    Some(listed.is_some_and(|listed| {
        listed
            .iter()
            .any(|one| own_type(one) == Some(conditions::READY))
    }))
}

/// Returns whether the last pass that the status reports left the custom resource ready, and at which generation; none if it
/// reports no pass.
pub fn reported_ready(cr: &CrRecord) -> Option<(bool, Option<i64>)> {
    let status = cr.view.get("status")?;
    let listed = status.get(CONDITIONS)?.as_list()?;
    let mut ready = listed.iter();
    let ready = ready.find(|one| own_type(one) == Some(conditions::READY))?;
    let ready = Condition::read(ready)?;
    let at = status.get(GENERATION).and_then(Node::as_i64);
    let at = ready.observed_generation.or(at);
    Some((ready.status == ConditionStatus::True, at))
}

/// Returns the patch that makes the status report a pass; none if it already does.
///
/// `observed.cr` is the custom resource as the pass saw it, `observed.children` the state after its writes. A field that
/// cannot be rendered is added to `executed.failures` and keeps its old value. `now` is the time of the pass, for templates
/// and for transitions of conditions.
pub fn status(
    plan: &OperatorPlan,
    crd_status: &CrdStatus,
    observed: &Observed,
    sources: &TemplateData,
    executed: &mut Executed,
    now: jiff::Timestamp,
) -> Option<StatusPatch> {
    let live = observed.cr.view.get("status").cloned();
    let live = live.unwrap_or_else(|| Node::Map(Map::default()));
    let mut wanted = live.clone();
    // Declared fields describe a custom resource with its children, and these are being deleted.
    let own = if observed.cr.deleting {
        Vec::new()
    } else {
        declared_fields(
            plan,
            crd_status,
            (observed, sources),
            executed,
            &mut wanted,
            now,
        )
    };
    if plan.status.conditions {
        let listed = wanted_conditions(observed, sources, executed);
        write_conditions(plan, crd_status, (observed, listed, own), &mut wanted, now);
    }
    write_handled(plan, crd_status, observed, &mut wanted);
    patch(crd_status, observed, &live, &wanted)
}

/// Returns the patch that makes the status `wanted`, over the observed state; none if they are equal.
fn patch(
    crd_status: &CrdStatus,
    observed: &Observed,
    live: &Node,
    wanted: &Node,
) -> Option<StatusPatch> {
    let patch = merge_patch(live, wanted)?;
    let metadata = Node::object([(
        "resourceVersion",
        Node::from(&observed.cr.id.resource_version),
    )]);
    Some(StatusPatch {
        body: Node::object([("metadata", metadata), ("status", patch)]),
        subresource: crd_status.has_status,
    })
}

/// Records the request that this pass has handled, if the CRD keeps that and the Katalog does not write it.
fn write_handled(
    plan: &OperatorPlan,
    crd_status: &CrdStatus,
    observed: &Observed,
    wanted: &mut Node,
) {
    let path = field(LAST_HANDLED);
    let is_declared = plan.status.fields.iter().any(|field| field.path == path);
    if !plan.status.conditions || is_declared || !crd_status.status.holds_handled() {
        return;
    }
    if let Some(requested) = &observed.cr.requested {
        set(wanted, &path, Node::from(requested.latest()));
    }
}

fn declared_fields(
    plan: &OperatorPlan,
    crd_status: &CrdStatus,
    (observed, sources): (&Observed, &TemplateData),
    executed: &mut Executed,
    wanted: &mut Node,
    now: jiff::Timestamp,
) -> Vec<Condition> {
    let setting = Setting::of(plan, observed);
    let view = PassView::of(plan, (observed, sources), &setting, now);
    let (frame, data) = (view.frame, view.data());
    let inputs = Inputs::of(plan, &data, frame);
    let around = inputs.around(data.clone());
    let failed = !executed.failures.is_empty();
    for field in &plan.status.fields {
        // A field without a condition describes a successful pass.
        if (failed && field.gate.is_empty()) || !crd_status.status.holds(&field.path) {
            continue;
        }
        // What a hook says later keeps its value until then.
        if is_later(plan, sources, [&field.value], &field.gate) {
            continue;
        }
        let mut budget = EvalBudget::default();
        let said = around.of(field.import).and_then(|data| {
            let mut renderer = frame.renderer(data, &mut budget);
            field_value(&mut renderer, field, crd_status)
        });
        match said {
            Ok(FieldResult::New(value)) => set(wanted, &field.path, value),
            Ok(FieldResult::Nothing) => {}
            Err(error) => fail(executed, error),
        }
    }
    if !failed {
        hooks::write_status((plan, crd_status), sources, wanted);
    }
    let mut budget = EvalBudget::default();
    let mut renderer = frame.renderer(&data, &mut budget);
    let mut own = own_conditions(plan, sources, &mut renderer, executed);
    for condition in hooks::conditions(sources) {
        if !own.iter().any(|other| other.type_ == condition.type_) {
            own.push(condition.clone());
        }
    }
    executed.unmet = executed.unmet.take().or_else(|| hooks::unready(sources));
    executed.wake_at(setting.effects.first());
    executed.doubt(setting.effects.doubts());
    own
}

/// True if one of the expressions, or the gate, reads data of a hook that is called later.
pub(crate) fn is_later<'p>(
    plan: &OperatorPlan,
    sources: &TemplateData,
    leaves: impl IntoIterator<Item = &'p Leaf>,
    gate: &Gate,
) -> bool {
    let leaves = leaves.into_iter().flat_map(|leaf| leaf.template.reads());
    let mut is_later = sources.hooks.are_later(plan, leaves);
    for condition in gate.iter() {
        condition.visit_reads(&mut |path| is_later |= sources.hooks.are_later(plan, [path]));
    }
    is_later
}

/// A failed input is reported once, not for each field that depends on it.
fn fail(executed: &mut Executed, error: RenderError) {
    let failure = error.into();
    if !executed.failures.contains(&failure) {
        executed.failures.push(failure);
    }
}

/// Evaluates the Katalog's own conditions, and what `Ready` waits for.
fn own_conditions(
    plan: &OperatorPlan,
    sources: &TemplateData,
    renderer: &mut Renderer<'_, '_>,
    executed: &mut Executed,
) -> Vec<Condition> {
    let mut said = Vec::new();
    for own in &plan.status.own {
        let leaves = [&own.status, &own.reason, &own.message];
        if is_later(plan, sources, leaves.into_iter().flatten(), &own.gate) {
            continue;
        }
        *renderer.budget = EvalBudget::default();
        match own::condition(renderer, own) {
            Ok(condition) => said.extend(condition),
            Err(error) => fail(executed, error),
        }
    }
    if is_later(plan, sources, [], &plan.status.ready_when) {
        executed.unmet = Some("a hook is called when the declared children exist".into());
        return said;
    }
    *renderer.budget = EvalBudget::default();
    match renderer.unmet(&plan.status.ready_when) {
        Ok(unmet) => executed.unmet = unmet,
        Err(error) => fail(executed, error),
    }
    said
}

/// The result of a declared field.
enum FieldResult {
    /// Its gate is closed: the old value stays.
    Nothing,
    /// The new value; null removes the field.
    New(Node),
}

fn field_value(
    renderer: &mut Renderer<'_, '_>,
    field: &StatusFieldPlan,
    crd_status: &CrdStatus,
) -> Result<FieldResult, RenderError> {
    let open = renderer.gate(&field.gate)?;
    if !open && !field.clear {
        return Ok(FieldResult::Nothing);
    }
    let kind = field
        .kind
        .unwrap_or_else(|| match crd_status.status.type_at(&field.path) {
            Some("integer") => Coerce::Int,
            Some("number") => Coerce::Float,
            Some("boolean") => Coerce::Bool,
            Some("string") => Coerce::Text,
            _ => Coerce::Native,
        });
    if !open {
        return Ok(FieldResult::New(emptied(kind, field, crd_status)));
    }
    let Some(value) = renderer.leaf(&field.value)? else {
        return Ok(FieldResult::New(Node::Null));
    };
    let value = kind.apply(value).map_err(|mismatch| RenderError {
        path: field.value.path.clone().into(),
        message: format!("status.{} takes {}", field.path, wanted(&mismatch)),
        reason: Reason::WrongType,
    })?;
    Ok(FieldResult::New(value.unwrap_or_default()))
}

/// Returns the value of a cleared field: the empty string if it is valid, else null.
fn emptied(kind: Coerce, field: &StatusFieldPlan, crd_status: &CrdStatus) -> Node {
    match kind {
        Coerce::Text | Coerce::Native | Coerce::Auto
            if crd_status.status.takes_empty_text(&field.path) =>
        {
            Node::from("")
        }
        _ => Node::Null,
    }
}

fn write_conditions(
    plan: &OperatorPlan,
    crd_status: &CrdStatus,
    (observed, listed, own): (&Observed, Vec<Condition>, Vec<Condition>),
    wanted: &mut Node,
    now: jiff::Timestamp,
) {
    let generation = crd_status.has_status.then_some(observed.cr.generation);
    if let Some(generation) = generation.filter(|_| crd_status.status.holds_generation()) {
        set(wanted, &field(GENERATION), Node::Int(generation));
    }
    if !crd_status.status.holds_conditions() {
        return;
    }
    let live = wanted
        .get(CONDITIONS)
        .and_then(Node::as_list)
        .unwrap_or_default();
    // A type that the Katalog or a hook declares belongs to it: two conditions of one type would be refused.
    let mut names = declared_types(plan);
    names.extend(own.iter().map(|one| Box::from(&*one.type_)));
    let existing: Vec<Condition> = live
        .iter()
        .filter_map(|item| own_condition(&names, item))
        .collect();
    let declared = |one: &Condition| names.contains(&*one.type_);
    let said: Vec<Condition> = listed
        .into_iter()
        .filter(|one| !declared(one))
        .chain(own)
        .map(|condition| condition.observed(generation))
        .collect();
    let merged = conditions::merge(&existing, &said, now);
    let mut ours: Vec<Node> = merged
        .iter()
        .map(|condition| written(crd_status, condition))
        .collect();
    // Each in its place: conditions of other writers stay as they are, in any form.
    let mut items = Vec::with_capacity(live.len() + ours.len());
    for item in live {
        let Some(name) = written_type(&names, item) else {
            items.push(item.clone());
            continue;
        };
        if let Some(position) = ours
            .iter()
            .position(|one| written_type(&names, one) == Some(name))
        {
            items.push(ours.remove(position));
        }
    }
    items.append(&mut ours);
    set(wanted, &field(CONDITIONS), Node::List(items.into()));
}

/// Returns the path of a field, below the status.
fn field(name: &str) -> Path {
    Path::of_fields([name])
}

/// True if the runtime writes conditions of that type.
pub(crate) fn is_own_type(name: &str) -> bool {
    const OURS: [&str; 11] = [
        conditions::READY,
        conditions::RECONCILING,
        conditions::STALLED,
        conditions::FIELD_CONFLICT,
        conditions::AUTOSCALED,
        conditions::NORMALIZED,
        conditions::MUTATED,
        conditions::VALIDATION_WARNING,
        conditions::GATED,
        conditions::SUSPENDED,
        conditions::CLEANUP_PENDING,
    ];
    OURS.contains(&name)
}

/// Returns the type of a condition of ours.
fn own_type(item: &Node) -> Option<&str> {
    let name = item.get("type").and_then(Node::as_str);
    name.filter(|name| is_own_type(name))
}

/// Returns the types of the conditions that the Katalog declares.
fn declared_types(plan: &OperatorPlan) -> BTreeSet<Box<str>> {
    let own = plan.status.own.iter();
    own.map(|own| own.name.clone()).collect()
}

/// Returns the type of a condition that is written: ours, or one of `names`.
fn written_type<'n>(names: &BTreeSet<Box<str>>, item: &'n Node) -> Option<&'n str> {
    let declared = |name: &&str| names.contains(*name);
    own_type(item).or_else(|| item.get("type")?.as_str().filter(declared))
}

fn own_condition(names: &BTreeSet<Box<str>>, item: &Node) -> Option<Condition> {
    written_type(names, item)?;
    Condition::read(item)
}

/// Returns the fields of a condition that the CRD's schema has.
fn written(crd_status: &CrdStatus, condition: &Condition) -> Node {
    let fields = condition.fields();
    let held = fields.filter(|(name, _)| crd_status.status.holds_of_condition(name));
    Node::Map(held.collect())
}

/// Returns the wanted conditions: `Ready` always, all others while they are true. Source: kstatus.
fn wanted_conditions(
    observed: &Observed,
    sources: &TemplateData,
    executed: &Executed,
) -> Vec<Condition> {
    let verdict = verdict(observed, executed);
    let (reason, message) = (verdict.reason.as_str(), verdict.message.as_str());
    let truth = |holds| {
        if holds {
            ConditionStatus::True
        } else {
            ConditionStatus::False
        }
    };
    let mut wanted = vec![Condition::new(
        conditions::READY,
        truth(verdict.ready),
        reason,
        verdict.summary(),
    )];
    if !verdict.ready {
        let kind = if verdict.stalled {
            conditions::STALLED
        } else {
            conditions::RECONCILING
        };
        wanted.push(Condition::new(kind, ConditionStatus::True, reason, message));
    }
    if !executed.held.is_empty() {
        let lines = executed.held.iter().map(|(child, held)| {
            format!(
                "{child}: {} is owned by field manager `{}`",
                held.path, held.manager
            )
        });
        let message = conditions::fit(&lines.collect::<Vec<_>>(), conditions::MESSAGE_BYTES);
        wanted.push(Condition::new(
            conditions::FIELD_CONFLICT,
            ConditionStatus::True,
            Reason::FieldConflict.as_str(),
            &message,
        ));
    }
    if !executed.autoscaled.is_empty() {
        let lines = executed.autoscaled.iter().map(|(child, scaler)| {
            format!("{child}: spec.replicas is set by HorizontalPodAutoscaler `{scaler}`")
        });
        let message = conditions::fit(&lines.collect::<Vec<_>>(), conditions::MESSAGE_BYTES);
        wanted.push(Condition::new(
            conditions::AUTOSCALED,
            ConditionStatus::True,
            Reason::Autoscaled.as_str(),
            &message,
        ));
    }
    wanted.extend(sources.prepared.conditions());
    wanted.extend(sources.cleanup.as_ref().and_then(CleanupState::condition));
    wanted
}
