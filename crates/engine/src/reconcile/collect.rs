//! Collects the data of a pass from all sources.

use jiff::Timestamp;

use super::{
    cycle::StepResult,
    data_source::{PassInput, ReadsDependOn, fill, hide},
    external, hold, hooks, prepare,
    record::Observed,
    sources::Read,
    template_data::TemplateData,
    unique,
};
use orkestra_object::value::{Key, Path, PathStep};
use orkestra_plan::{
    EXTERNAL, GroupKind, HOOK, HookStage, NameForm, OperatorPlan, Stage, roots::CHILDREN,
};

/// Collects the data of a pass of `plan`, in this order:
///
/// ```text
///  normalize, mutation ──► cross, enrich ──► gates ──► validation ──► calls of the box and its blocks ──► hooks
///                                              └─ if mutation waits for answers: mutation, cross, enrich ─┘
/// ```
///
/// Calls are made before the declarations that contain them.
///
/// # Errors
/// The reads that are not answered yet, or the pass, if it is already decided.
pub(crate) fn for_pass(
    plan: &OperatorPlan,
    observed: &Observed,
    now: Timestamp,
) -> Result<TemplateData, StepResult> {
    let rules = &plan.rules;
    let input = PassInput {
        plan,
        observed,
        now,
    };
    let mut sources = begin(input)?;
    let early = if rules.late { &[] } else { &*rules.mutation };
    prepare::complete(plan, observed, now, early, &mut sources);
    if !rules.late || plan.holds_back() {
        fill(ReadsDependOn::Resource, input, &mut sources)?;
        hold::evaluate_gates(plan, observed, &mut sources, now)?;
    }
    // Nothing more is read for a custom resource that is refused.
    if rules.late && !sources.is_refused() {
        sources = anew(sources, input)?;
        external::make(plan, observed, &mut sources, Stage::Mutation, now)?;
        prepare::complete(plan, observed, now, &rules.mutation, &mut sources);
        fill(ReadsDependOn::Resource, input, &mut sources)?;
    }
    for stage in [Stage::Validation, Stage::Box] {
        if sources.is_refused() {
            break;
        }
        external::make(plan, observed, &mut sources, stage, now)?;
        if stage == Stage::Validation {
            prepare::validate(plan, observed, now, &mut sources);
        }
    }
    if !sources.is_refused() {
        hooks::make(plan, observed, &mut sources, HookStage::Before, now)?;
    }
    Ok(sources)
}

/// Collects the data that need no template.
fn begin(input: PassInput<'_>) -> Result<TemplateData, Vec<Read>> {
    let PassInput { plan, observed, .. } = input;
    let mut sources = TemplateData {
        same: unique::of(plan, observed)?,
        unavailable: unseen_children(plan, observed),
        ..TemplateData::default()
    };
    fill(ReadsDependOn::Plan, input, &mut sources)?;
    Ok(sources)
}

/// Drops the data read for the gates, which were selected by the custom resource before its completion.
fn anew(sources: TemplateData, input: PassInput<'_>) -> Result<TemplateData, Vec<Read>> {
    Ok(TemplateData {
        cr: sources.cr,
        prepared: sources.prepared,
        external: sources.external,
        wake: sources.wake,
        doubts: sources.doubts,
        ..begin(input)?
    })
}

/// Returns the data for a custom resource that is being deleted: it, as far as it can be completed, and its children. No
/// rule prevents its deletion.
pub(crate) fn for_deletion(
    plan: &OperatorPlan,
    observed: &Observed,
    now: Timestamp,
) -> TemplateData {
    let mut sources = TemplateData {
        unavailable: unseen_children(plan, observed),
        ..TemplateData::default()
    };
    if !plan.calls.is_empty() {
        let external = std::iter::once(PathStep::Field(Key::from(EXTERNAL))).collect();
        let why = "no `external` call is made during deletion";
        sources.unavailable.push((external, why.into()));
    }
    if !plan.hooks.is_empty() {
        let why = "templates of `onDelete` do not read what hooks return";
        sources.hide([Key::from(HOOK)], why);
    }
    prepare::complete(plan, observed, now, &plan.rules.mutation, &mut sources);
    let why = "during deletion only the custom resource and its children are read";
    hide(plan, &mut sources, why);
    sources
}

/// Returns the names below `.children` of kinds that cannot be read, or of which a child is partly unreadable.
fn unseen_children(plan: &OperatorPlan, observed: &Observed) -> Vec<(Path, Box<str>)> {
    let is_unread = |kind: &GroupKind| {
        let mut children = observed.children.iter();
        children.any(|child| child.key.kind == *kind && child.record.unread().is_some())
    };
    let unseen = plan
        .children_names
        .iter()
        .filter(|alias| observed.unseen.contains(&alias.kind) || is_unread(&alias.kind));
    let path = |name: &Key| {
        Path::from_iter([
            PathStep::Field(Key::from(CHILDREN)),
            PathStep::Field(name.clone()),
        ])
    };
    unseen
        .map(|alias| {
            let many = alias.number == NameForm::Plural;
            let what = if many { "the objects" } else { "the object" };
            let why = format!("{what} of kind {} cannot be read", alias.kind);
            (path(&alias.name), why.into())
        })
        .collect()
}
