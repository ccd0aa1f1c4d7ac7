//! Explains why a declared child is not among the objects.

use std::fmt;

use jiff::Timestamp;

use super::super::{
    cycle::{Cycle, Intent},
    inputs::Inputs,
    reason::Reason,
    record::Observed,
    render::{RenderError, Renderer, Setting},
    template_data::{CleanupState, TemplateData},
    view::PassView,
};
use super::condition_text::said;
use orkestra_plan::{ChildPlan, ConditionPlan, Gate, Mode, OperatorPlan};
use orkestra_template::EvalBudget;

/// A declared child that is not created, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its kind.
    pub kind: String,
    /// Its path in the Katalog.
    pub at: String,
    /// Why it is not created.
    pub why: LeftOutReason,
}

/// Why a child is not created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOutReason {
    /// A condition does not hold.
    Gate {
        /// Its path, relative to the child.
        path: String,
        /// The condition with the values that it compares; empty if it is about the time.
        condition: String,
    },
    /// No element of that list creates one.
    NoElement(String),
    /// A hook decides on it: why there is none.
    Hook(String),
    /// It is created once, and already was.
    Made,
    /// Its namespace renders to nothing.
    Nowhere,
    /// It could not be rendered; see the failures.
    Failed,
    /// It depends on data that cannot be read: which, and why.
    Unavailable(String),
    /// Nothing is created for the custom resource; see the failures.
    Refused,
    /// The custom resource is held back by `preReconcile`.
    Held,
    /// The custom resource is deleted by `runtime.cleanup`.
    CleanedUp,
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate { path, condition } if condition.is_empty() => {
                write!(f, "{path} does not hold")
            }
            Self::Gate { path, condition } => write!(f, "{path} does not hold: {condition}"),
            Self::NoElement(field) => write!(f, "no element of `{field}` creates one"),
            Self::Made => f.write_str("it is created once, and already was"),
            Self::Nowhere => f.write_str("its namespace renders to empty text"),
            Self::Failed => f.write_str("it cannot be rendered"),
            Self::Unavailable(what) | Self::Hook(what) => f.write_str(what),
            Self::Held => f.write_str("`preReconcile` holds this resource back"),
            Self::CleanedUp => f.write_str("`runtime.cleanup` deletes this resource"),
            Self::Refused => f.write_str("no objects are created for this custom resource"),
        }
    }
}

/// Formats `Job at spec.crds.site.operatorBox.onCreate.jobs[0]: it is created once, and already was`.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.kind, self.at, self.why)
    }
}

/// Returns the children that `plan` declares and `cycle` does not create, in the plan's order.
pub(crate) fn left_out(
    plan: &OperatorPlan,
    observed: &Observed,
    cycle: &Cycle,
    now: Timestamp,
) -> Vec<LeftOut> {
    let all = match cycle.held_back {
        Some(_) => Some(LeftOutReason::Held),
        None if cycle.sources.cleanup == Some(CleanupState::Due) => Some(LeftOutReason::CleanedUp),
        None => cycle.sources.is_refused().then_some(LeftOutReason::Refused),
    };
    if let Some(why) = all {
        let refused = |child: &ChildPlan| LeftOut {
            kind: child.kind.kind.to_string(),
            at: child.path.to_string(),
            why: why.clone(),
        };
        return plan.children.iter().map(refused).collect();
    }
    let setting = Setting::of(plan, observed);
    let view = PassView::of(plan, (observed, &cycle.sources), &setting, now);
    let (frame, data) = (view.frame, view.data());
    let inputs = Inputs::of(plan, &data, frame);
    let around = inputs.around(data.clone());
    let closed = |child: &ChildPlan| {
        let data = match around.of(child.import) {
            Ok(data) => data,
            Err(error) => return unrendered(error),
        };
        let mut budget = EvalBudget::default();
        let mut renderer = frame.renderer(data, &mut budget);
        why(&mut renderer, (plan, &cycle.sources), child)
    };
    let made = |index| {
        cycle.intents.iter().any(|intent| match intent {
            Intent::Apply(made) | Intent::Create(made) => made.declared == index,
            Intent::Keep(_) | Intent::Unlink(_) | Intent::Delete(_) => false,
        })
    };
    let declared = plan.children.iter().enumerate();
    let missing = declared.filter(|(index, _)| !made(*index));
    missing
        .map(|(_, child)| LeftOut {
            kind: child.kind.kind.to_string(),
            at: child.path.to_string(),
            why: failed(cycle, child).unwrap_or_else(|| closed(child)),
        })
        .collect()
}

/// Returns why a child is not created, if the pass could not decide on it.
fn failed(cycle: &Cycle, child: &ChildPlan) -> Option<LeftOutReason> {
    let is_below = |at: &str| {
        let rest = at.strip_prefix(&*child.path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let failure = cycle
        .failures
        .iter()
        .find(|failure| is_below(&failure.at))?;
    Some(match failure.reason {
        Reason::Unavailable => LeftOutReason::Unavailable(failure.message.clone()),
        _ => LeftOutReason::Failed,
    })
}

fn unrendered(error: RenderError) -> LeftOutReason {
    match error.reason {
        Reason::Unavailable => LeftOutReason::Unavailable(error.message),
        _ => LeftOutReason::Failed,
    }
}

fn why(
    renderer: &mut Renderer<'_, '_>,
    (plan, sources): (&OperatorPlan, &TemplateData),
    child: &ChildPlan,
) -> LeftOutReason {
    let block = &plan.blocks[child.block].gate;
    for gate in [&plan.hold.children, block] {
        if let Some(why) = shut(renderer, gate, child) {
            return why;
        }
    }
    if let Some(hook) = plan.hook_of(child.block) {
        return LeftOutReason::Hook(sources.hooks.why_none(plan, hook));
    }
    if let Some(each) = &child.for_each {
        return LeftOutReason::NoElement(each.field.to_string());
    }
    if let Some(why) = shut(renderer, &child.gate, child) {
        return why;
    }
    let namespace = child.namespace.as_ref().filter(|_| child.spread);
    if namespace.is_some_and(|leaf| renderer.text(leaf).is_ok_and(|text| text.is_empty())) {
        return LeftOutReason::Nowhere;
    }
    if child.mode == Mode::Once || child.generated.is_some() {
        LeftOutReason::Made
    } else {
        LeftOutReason::Failed
    }
}

/// Returns the condition that keeps a gate closed, with its path relative to the child if it is below it. `None` for an open
/// gate.
fn shut(renderer: &mut Renderer<'_, '_>, gate: &Gate, child: &ChildPlan) -> Option<LeftOutReason> {
    let closed = |renderer: &mut Renderer<'_, '_>, condition: &ConditionPlan| {
        *renderer.budget = EvalBudget::default();
        let path = &*condition.path;
        let below = path.strip_prefix(&*child.path).unwrap_or(path);
        LeftOutReason::Gate {
            path: below.trim_start_matches('.').to_owned(),
            condition: said(renderer, condition).unwrap_or_default(),
        }
    };
    for condition in &gate.all {
        *renderer.budget = EvalBudget::default();
        match renderer.holds(condition) {
            Ok(true) => {}
            Ok(false) => return Some(closed(renderer, condition)),
            Err(error) => return Some(unrendered(error)),
        }
    }
    *renderer.budget = EvalBudget::default();
    match (renderer.gate(gate), gate.any.first()) {
        (Ok(false), Some(condition)) => Some(closed(renderer, condition)),
        (Err(error), _) => Some(unrendered(error)),
        _ => None,
    }
}
