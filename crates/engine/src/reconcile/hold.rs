//! Evaluates the gates of `preReconcile`, and the rules of `requeue`.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    cycle::{Cycle, StepResult},
    external,
    hold_reason::HoldReason,
    prepared::Prepared,
    record::Observed,
    render::{Renderer, Setting},
    template_data::TemplateData,
    view::PassView,
};
use orkestra_language::api::duration;
use orkestra_plan::{Gate, HoldPlan, OperatorPlan, RequeuePlan, Stage};
use orkestra_template::EvalBudget;

/// The minimum delay between a pass and its own requeue.
const LEAST: Duration = Duration::from_secs(1);

/// Makes the calls for the gates before a pass, and evaluates the gates.
///
/// # Errors
/// The reads that are not answered yet; or the pass, which does nothing, if the custom resource is held back or that is
/// unknown.
pub(crate) fn evaluate_gates(
    plan: &OperatorPlan,
    observed: &Observed,
    sources: &mut TemplateData,
    now: Timestamp,
) -> Result<(), StepResult> {
    if !plan.holds_back() {
        return Ok(());
    }
    let HoldPlan {
        enqueue, reconcile, ..
    } = &plan.hold;
    external::make(plan, observed, sources, Stage::PreReconcile, now)?;
    for (stage, gate, held) in [
        (Stage::EnqueueGate, enqueue, HoldReason::NotQueued),
        (Stage::ReconcileGate, reconcile, HoldReason::Gated),
    ] {
        external::make(plan, observed, sources, stage, now)?;
        if let Some(cycle) = closed(plan, observed, sources, (gate, held), now) {
            // A pass that does nothing does not report the results of rules.
            sources.prepared = Prepared::default();
            return Err(cycle.over(std::mem::take(sources)));
        }
    }
    Ok(())
}

/// Returns the pass that does nothing, if the gate is closed or cannot be evaluated.
fn closed(
    plan: &OperatorPlan,
    observed: &Observed,
    sources: &mut TemplateData,
    (gate, held): (&Gate, HoldReason),
    now: Timestamp,
) -> Option<Cycle> {
    if gate.is_empty() {
        return None;
    }
    let setting = Setting::of(plan, observed);
    let view = PassView::of(plan, (observed, sources), &setting, now);
    let (frame, data) = (view.frame, view.data());
    let mut budget = EvalBudget::default();
    let mut renderer = frame.renderer(&data, &mut budget);
    let cycle = match renderer.gate(gate) {
        Ok(true) => None,
        Ok(false) => {
            // No event reports a change of external answers.
            let requeue = plan
                .gates_ask_outside()
                .then(|| requeue(plan, &mut renderer));
            *renderer.budget = EvalBudget::default();
            Some(Cycle {
                held_back: Some(held),
                unmet: renderer.unmet(gate).ok().flatten(),
                inventory: observed.inventory.as_ref().clone(),
                requeue: requeue.flatten(),
                ..Cycle::default()
            })
        }
        Err(error) => Some(Cycle::untouched(plan, observed, error.into())),
    };
    sources.heard(&setting.effects);
    cycle
}

/// Returns the delay after which another pass follows a successful one. A text that is not a duration is reported, and ignored.
pub(crate) fn requeue(plan: &OperatorPlan, renderer: &mut Renderer<'_, '_>) -> Option<Duration> {
    for rule in &plan.requeue {
        *renderer.budget = EvalBudget::default();
        let length = match renderer.gate(&rule.gate) {
            Ok(false) => continue,
            Ok(true) => after(rule, renderer),
            Err(error) => Err(error.message),
        };
        return match length {
            Ok(length) => length,
            Err(message) => {
                renderer.frame.effects.doubt(&rule.after.path, message);
                None
            }
        };
    }
    None
}

/// How long after the pass the rule asks for another one, if it does.
fn after(rule: &RequeuePlan, renderer: &mut Renderer<'_, '_>) -> Result<Option<Duration>, String> {
    let text = renderer.text(&rule.after).map_err(|error| error.message)?;
    if text.is_empty() {
        return Ok(None);
    }
    let length = duration::parse(&text).map_err(|_| {
        let source = rule.after.template.source();
        format!("`{source}` must return a duration, such as `5m`")
    })?;
    Ok((!length.is_zero()).then(|| length.max(LEAST)))
}
