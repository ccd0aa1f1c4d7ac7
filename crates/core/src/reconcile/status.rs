//! What a pass reports on the custom resource: what was done, not what was wanted.

use super::{
    children::children_data,
    crd::{CrdFacts, schema_knows, schema_type},
    gate::Turns,
    inputs::Inputs,
    patch::merge_patch,
    reason::Reason,
    record::{CrRecord, Observed},
    render::{Frame, RenderError, Renderer, wanted},
    sources::Sources,
    verdict::{Executed, verdict},
};
use crate::{
    api::conditions::{self, Condition, ConditionStatus},
    plan::{Coerce, OperatorPlan, StatusField},
    template::Budget,
    value::{Key, Map, Node, Path, Step, set},
};

/// A patch of the status.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusPatch {
    /// A JSON merge patch: `status`, and `metadata.resourceVersion` to be refused over another state.
    pub body: Node,
    /// Whether it goes to the status subresource.
    pub subresource: bool,
}

/// The paths of the status that a plan writes, from the object's root: what a record must keep to compare with. A list
/// that is written into is kept whole, since a merge patch replaces it whole.
pub fn written_paths(plan: &OperatorPlan) -> Vec<Path> {
    let is_item = |step: &Step| match step {
        Step::Index(_) => true,
        Step::Field(key) => key.bytes().all(|byte| byte.is_ascii_digit()),
    };
    let up_to_list = |path: Path| {
        path.steps()
            .iter()
            .take_while(|step| !is_item(step))
            .cloned()
            .collect()
    };
    declared_paths(plan).into_iter().map(up_to_list).collect()
}

fn declared_paths(plan: &OperatorPlan) -> Vec<Path> {
    let mut paths = Vec::new();
    if plan.status.conditions {
        paths.extend(
            ["conditions", "observedGeneration"]
                .map(|field| below_status(&Path::default(), Some(field))),
        );
    }
    paths.extend(
        plan.status
            .fields
            .iter()
            .map(|field| below_status(&field.path, None)),
    );
    paths
}

fn below_status(path: &Path, field: Option<&str>) -> Path {
    let status = std::iter::once(Step::Field(Key::from("status")));
    status
        .chain(path.steps().iter().cloned())
        .chain(field.map(|field| Step::Field(Key::from(field))))
        .collect()
}

/// What of a plan's status the CRD cannot hold: the API server would drop it in silence, and we would write it for ever.
pub fn unwritable(plan: &OperatorPlan, facts: &CrdFacts) -> Vec<Path> {
    let [conditions, generation] =
        ["conditions", "observedGeneration"].map(|name| below_status(&Path::default(), Some(name)));
    let mut lost = declared_paths(plan);
    lost.retain(|path| {
        !is_writable(facts, path)
            || (*path == conditions && !holds_conditions(facts))
            // The generation moves with every write there: it would never be the one that is observed.
            || (*path == generation && !facts.has_status)
    });
    lost
}

/// Whether the status tells of a pass; none where it never can. See [`Observed::reported`].
pub fn reported(plan: &OperatorPlan, facts: &CrdFacts, cr: &CrRecord) -> Option<bool> {
    if !plan.status.conditions || !holds_conditions(facts) {
        return None;
    }
    let status = cr.view.get("status");
    let told = status.and_then(|status| status.get("conditions")?.as_list());
    Some(told.is_some_and(|told| {
        told.iter()
            .any(|one| own_type(one) == Some(conditions::READY))
    }))
}

/// Whether the CRD's schema holds what no condition can do without.
fn holds_conditions(facts: &CrdFacts) -> bool {
    ["type", "status"]
        .iter()
        .all(|name| is_writable(facts, &of_condition(name)))
}

/// The path of a field of conditions.
fn of_condition(field: &str) -> Path {
    let mut path = below_status(&Path::default(), Some("conditions"));
    path.push_index(0);
    path.push_field(field);
    path
}

/// Whether the CRD's schema holds a path that starts with `status`.
fn is_writable(facts: &CrdFacts, path: &Path) -> bool {
    facts
        .status_schema
        .as_ref()
        .is_some_and(|schema| schema_knows(schema, &relative(path)))
}

fn relative(path: &Path) -> Path {
    path.steps().iter().skip(1).cloned().collect()
}

/// The patch that makes the status say what a pass did; none where it says so already.
///
/// `observed.cr` is the custom resource as the pass saw it, `observed.children` what stands after its writes.
/// A field that cannot be rendered is added to `executed.failures` and keeps its old value. `now` is the moment of the
/// pass, for templates and for transitions of conditions.
pub fn status(
    plan: &OperatorPlan,
    facts: &CrdFacts,
    observed: &Observed,
    sources: &Sources,
    executed: &mut Executed,
    now: jiff::Timestamp,
) -> Option<StatusPatch> {
    let live = observed.cr.view.get("status").cloned();
    let live = live.unwrap_or_else(|| Node::Map(Map::default()));
    let mut wanted = live.clone();
    // What is declared is said of a custom resource with its children, and they go.
    if !observed.cr.deleting {
        declared_fields(plan, facts, (observed, sources), executed, &mut wanted, now);
    }
    if plan.status.conditions {
        write_conditions(facts, observed, executed, &mut wanted, now);
    }
    let patch = merge_patch(&live, &wanted)?;
    let metadata = Node::object([(
        "resourceVersion",
        Node::from(&*observed.cr.id.resource_version),
    )]);
    Some(StatusPatch {
        body: Node::object([("metadata", metadata), ("status", patch)]),
        subresource: facts.has_status,
    })
}

fn declared_fields(
    plan: &OperatorPlan,
    facts: &CrdFacts,
    (observed, sources): (&Observed, &Sources),
    executed: &mut Executed,
    wanted: &mut Node,
    now: jiff::Timestamp,
) {
    let (owner_kind, turns) = (plan.resource.group_kind(), Turns::default());
    let frame = Frame {
        owner: (&owner_kind, &observed.cr.id.key),
        sources,
        turns: &turns,
    };
    let children = children_data(plan, observed, &plan.field_manager(), frame);
    let data = sources.data(observed).with("children", &children).at(now);
    let inputs = Inputs::of(plan, &data, frame);
    let around = inputs.around(data.clone());
    let failed = !executed.failures.is_empty();
    for field in &plan.status.fields {
        // What a field says without a condition, it says of a pass that went well.
        if (failed && field.gate.is_empty())
            || !is_writable(facts, &below_status(&field.path, None))
        {
            continue;
        }
        let mut budget = Budget::default();
        let said = around.of(field.import).and_then(|data| {
            let mut renderer = Renderer {
                data,
                budget: &mut budget,
                frame,
            };
            field_value(&mut renderer, field, facts)
        });
        match said {
            Ok(Said::New(value)) => set(wanted, &field.path, value),
            Ok(Said::Nothing) => {}
            Err(error) => {
                // An input that fails is told once, not for each field that depends on it.
                let failure = error.into();
                if !executed.failures.contains(&failure) {
                    executed.failures.push(failure);
                }
            }
        }
    }
    executed.wake_at(turns.first());
    executed.doubt(turns.doubts());
}

/// What a declared field says.
enum Said {
    /// Its gate is closed: the old value stays.
    Nothing,
    /// This; null takes the field away.
    New(Node),
}

fn field_value(
    renderer: &mut Renderer<'_, '_>,
    field: &StatusField,
    facts: &CrdFacts,
) -> Result<Said, RenderError> {
    if !renderer.gate(&field.gate)? {
        return Ok(Said::Nothing);
    }
    let Some(value) = renderer.leaf(&field.value)? else {
        return Ok(Said::New(Node::Null));
    };
    let kind = field.kind.unwrap_or_else(|| {
        match facts
            .status_schema
            .as_ref()
            .and_then(|schema| schema_type(schema, &field.path))
        {
            Some("integer") => Coerce::Int,
            Some("number") => Coerce::Float,
            Some("boolean") => Coerce::Bool,
            Some("string") => Coerce::Text,
            _ => Coerce::Native,
        }
    });
    let value = kind.apply(value).map_err(|misfit| RenderError {
        path: field.value.path.clone(),
        message: format!("status.{} takes {}", field.path, wanted(&misfit)),
        reason: Reason::WrongType,
    })?;
    Ok(Said::New(value.unwrap_or_default()))
}

fn write_conditions(
    facts: &CrdFacts,
    observed: &Observed,
    executed: &Executed,
    wanted: &mut Node,
    now: jiff::Timestamp,
) {
    let generation = facts.has_status.then_some(observed.cr.generation);
    let field = |name: &str| below_status(&Path::default(), Some(name));
    if let Some(generation) =
        generation.filter(|_| is_writable(facts, &field("observedGeneration")))
    {
        set(
            wanted,
            &relative(&field("observedGeneration")),
            Node::Int(generation),
        );
    }
    if !holds_conditions(facts) {
        return;
    }
    let live = wanted
        .get("conditions")
        .and_then(Node::as_list)
        .unwrap_or_default();
    let existing: Vec<Condition> = live.iter().filter_map(own_condition).collect();
    let merged = conditions::merge(
        &existing,
        &wanted_conditions(observed, executed, generation),
        now,
    );
    let mut ours: Vec<Node> = merged
        .iter()
        .filter_map(|condition| written(facts, condition))
        .collect();
    // Each in its place: what others write stays as it is, whatever it looks like.
    let mut items = Vec::with_capacity(live.len() + ours.len());
    for item in live {
        let Some(name) = own_type(item) else {
            items.push(item.clone());
            continue;
        };
        if let Some(position) = ours.iter().position(|one| own_type(one) == Some(name)) {
            items.push(ours.remove(position));
        }
    }
    items.append(&mut ours);
    set(
        wanted,
        &relative(&field("conditions")),
        Node::List(items.into()),
    );
}

/// The type of a condition of ours.
fn own_type(item: &Node) -> Option<&str> {
    const OURS: [&str; 4] = [
        conditions::READY,
        conditions::RECONCILING,
        conditions::STALLED,
        conditions::FIELD_CONFLICT,
    ];
    item.get("type")
        .and_then(Node::as_str)
        .filter(|name| OURS.contains(name))
}

fn own_condition(item: &Node) -> Option<Condition> {
    own_type(item)?;
    serde_json::from_value(item.to_json()).ok()
}

/// A condition as far as the CRD's schema holds it.
fn written(facts: &CrdFacts, condition: &Condition) -> Option<Node> {
    let node = Node::from(&serde_json::to_value(condition).ok()?);
    let fields = node.as_map()?.iter();
    let held = fields.filter(|(name, _)| is_writable(facts, &of_condition(name)));
    Some(Node::Map(
        held.map(|(name, value)| (Key::clone(name), value.clone()))
            .collect::<Map>(),
    ))
}

/// `Ready` always; `Reconciling`, `Stalled` and `FieldConflict` while they are true. Source: kstatus.
fn wanted_conditions(
    observed: &Observed,
    executed: &Executed,
    generation: Option<i64>,
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
        message,
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
        let lines = executed
            .held
            .iter()
            .map(|(child, held)| format!("{child}: {} is held by `{}`", held.path, held.manager));
        let message = lines.collect::<Vec<_>>().join("; ");
        wanted.push(Condition::new(
            conditions::FIELD_CONFLICT,
            ConditionStatus::True,
            Reason::FieldConflict.as_str(),
            &message,
        ));
    }
    wanted
        .into_iter()
        .map(|condition| condition.observed(generation))
        .collect()
}
