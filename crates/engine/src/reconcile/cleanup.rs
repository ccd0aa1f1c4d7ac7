//! `runtime.cleanup`: deletion of a custom resource by its operator.
//!
//! The clock of `deleteAfter` is the transition time of the condition `CleanupPending`, so it outlives restarts.

use jiff::Timestamp;

use super::{
    record::Observed,
    render::Setting,
    template_data::{CleanupState, TemplateData},
    view::PassView,
};
use orkestra_language::api::{
    conditions::{self, Condition},
    names,
};
use orkestra_plan::{CleanupPlan, OperatorPlan};

/// Evaluates the conditions of the cleanup over the prepared custom resource; none if they do not hold. A condition that cannot
/// be evaluated is reported, and deletes nothing.
pub(crate) fn evaluate(
    plan: &OperatorPlan,
    observed: &Observed,
    sources: &mut TemplateData,
    now: Timestamp,
) {
    let Some(declared) = plan.cleanup.as_deref() else {
        return;
    };
    let setting = Setting::of(plan, observed);
    let view = PassView::of(plan, (observed, sources), &setting, now);
    let cleanup = match view.gate(&declared.gate) {
        Ok(true) => Some(judge(declared, observed, now)),
        Ok(false) => None,
        Err(error) => {
            setting.effects.doubt(&error.path, error.message);
            None
        }
    };
    sources.heard(&setting.effects);
    if let Some(CleanupState::Pending(due)) = &cleanup {
        sources.wake = sources.wake.into_iter().chain([*due]).min();
    }
    sources.cleanup = cleanup;
}

fn judge(declared: &CleanupPlan, observed: &Observed, now: Timestamp) -> CleanupState {
    if let Some(why) = protected(observed) {
        return CleanupState::Refused(why);
    }
    // Conditions hold their time in whole seconds.
    let started = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let since = since(observed).unwrap_or(started);
    let due = since.checked_add(declared.after).unwrap_or(Timestamp::MAX);
    if due <= now {
        CleanupState::Due
    } else {
        CleanupState::Pending(due)
    }
}

/// Returns why the custom resource must not be deleted: its owner would create it again, or it is protected.
fn protected(observed: &Observed) -> Option<String> {
    let label = observed.cr.view.at(&CleanupPlan::protection());
    if label.is_some_and(|value| value.as_str() != Some("false")) {
        return Some(format!(
            "it carries the label `{}`",
            names::LABEL_PROTECTION
        ));
    }
    let holds = observed.cr.holds.as_deref()?;
    holds.object.as_deref().map(str::to_owned)
}

/// Returns since when the conditions hold.
fn since(observed: &Observed) -> Option<Timestamp> {
    let conditions = observed.cr.view.get("status")?.get("conditions")?;
    let mut conditions = conditions.as_list()?.iter().filter_map(Condition::read);
    let pending = conditions.find(|one| one.type_ == conditions::CLEANUP_PENDING)?;
    pending.last_transition_time?.parse().ok()
}
