//! Selects the Events that a pass sends from those that a Katalog declares and hooks return.
//!
//! An Event reports a state, so it is sent when the state begins: its conditions hold now and did not hold in the previous pass, or
//! its reason or text has changed.

use std::collections::BTreeSet;

use super::{
    failure::Failure,
    reason::Reason,
    record::Observed,
    render::{RenderError, Renderer, Setting},
    status::is_later,
    template_data::TemplateData,
    verdict::Executed,
    view::PassView,
};
use orkestra_language::api::EmitOn;
use orkestra_object::value::hash_text;
use orkestra_plan::{EmitPlan, HOOK, OperatorPlan, is_event_reason};
use orkestra_template::EvalBudget;

/// An Event to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// True for a warning.
    pub warns: bool,
    /// Its reason: one word.
    pub reason: String,
    /// Its text.
    pub message: String,
}

/// The Events of a custom resource whose conditions held in its last pass, each as a hash of its name, reason and text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmittedBefore(BTreeSet<u64>);

impl EmittedBefore {
    /// True if it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the Events that a pass sends, and what to remember of them; the arguments are those of
/// [`status`](super::status::status). `before` is the memory of the last pass.
///
/// An Event that cannot be rendered is added to `executed.doubts`: it fails nothing.
pub fn emitted(
    plan: &OperatorPlan,
    (observed, sources): (&Observed, &TemplateData),
    executed: &mut Executed,
    before: &EmittedBefore,
    now: jiff::Timestamp,
) -> (Vec<Emitted>, EmittedBefore) {
    if plan.emits.is_empty() && plan.hooks.is_empty() {
        return <_>::default();
    }
    let setting = Setting::of(plan, observed);
    let view = PassView::of(plan, (observed, sources), &setting, now);
    let (frame, data) = (view.frame, view.data());
    let has_failed = !executed.failures.is_empty();
    let (mut sent, mut held, mut faults) = (Vec::new(), BTreeSet::new(), Vec::new());
    for declared in &plan.emits {
        let leaves = [&declared.reason, &declared.message];
        if is_later(plan, sources, leaves, &declared.gate) {
            continue;
        }
        let mut budget = EvalBudget::default();
        let mut renderer = frame.renderer(&data, &mut budget);
        match event(&mut renderer, declared, has_failed) {
            Ok(None) => {}
            Ok(Some(event)) => {
                let hash = hash_of(&declared.name, &event);
                held.insert(hash);
                if !before.0.contains(&hash) {
                    sent.push(event);
                }
            }
            Err(error) => faults.push(Failure::from(error)),
        }
    }
    for event in sources.hooks.iter().flat_map(|response| &response.events) {
        let hash = hash_of(HOOK, event);
        if held.insert(hash) && !before.0.contains(&hash) {
            sent.push(event.clone());
        }
    }
    executed.wake_at(setting.effects.first());
    executed.doubt(setting.effects.doubts());
    executed.doubt(faults);
    (sent, EmittedBefore(held))
}

/// Returns the Event if its conditions hold.
fn event(
    renderer: &mut Renderer<'_, '_>,
    declared: &EmitPlan,
    has_failed: bool,
) -> Result<Option<Emitted>, RenderError> {
    let counts = match declared.on {
        EmitOn::Always => true,
        EmitOn::Success => !has_failed,
        EmitOn::Failure => has_failed,
    };
    if !counts || !renderer.gate(&declared.gate)? {
        return Ok(None);
    }
    let reason = renderer.text(&declared.reason)?;
    if !is_event_reason(&reason) {
        let source = declared.reason.template.source();
        return Err(wrong(declared, format!("`{source}` must return one word")));
    }
    let message = renderer.text(&declared.message)?;
    if message.is_empty() {
        let source = declared.message.template.source();
        return Err(wrong(declared, format!("`{source}` must return a text")));
    }
    Ok(Some(Emitted {
        warns: declared.warns,
        reason,
        message,
    }))
}

fn wrong(declared: &EmitPlan, message: String) -> RenderError {
    RenderError {
        path: declared.reason.path.clone().into(),
        message,
        reason: Reason::WrongType,
    }
}

fn hash_of(name: &str, event: &Emitted) -> u64 {
    let text = format!("{name}\n{}\n{}", event.reason, event.message);
    let hash = hash_text(&text);
    u64::from_str_radix(hash.get(..16).unwrap_or_default(), 16).unwrap_or_default()
}
