//! `.external`: the calls of a pass, one after the other, and their responses.

mod token;
mod view;

use jiff::Timestamp;

use self::view::{NO_ANSWER, failed, not_called};
pub use self::view::{answered, assumed};
pub(crate) use self::{
    token::{TokenResult, token},
    view::read_answer,
};
use super::{
    calls::{CallRequest, MOST_ANSWER},
    cycle::{Cycle, StepResult},
    failure::Failure,
    inputs::Inputs,
    reason::Reason,
    record::Observed,
    render::{RenderError, Renderer, Setting},
    sources::{Answer, Read},
    template_data::TemplateData,
    view::PassView,
};
use orkestra_object::value::{Key, Map, Node, Path, PathStep};
use orkestra_plan::{CallPlan, EXTERNAL, Leaf, OperatorPlan, Piece, Stage};
use orkestra_template::EvalBudget;

/// Adds the answers to the calls of a stage to the sources. A call without an answer, as in a preview, makes only fields that
/// read its answer unavailable.
///
/// # Errors
/// The next call, which must be answered first; or the pass, which does nothing, if a call fails that must not. Later calls
/// are not made then.
pub(crate) fn make(
    plan: &OperatorPlan,
    observed: &Observed,
    sources: &mut TemplateData,
    stage: Stage,
    now: Timestamp,
) -> Result<(), StepResult> {
    for (place, call) in plan.calls.iter().enumerate() {
        if call.stage != stage {
            continue;
        }
        let setting = Setting::of(plan, observed);
        let asked = asked(plan, observed, (sources, &setting), (place, call), now);
        sources.heard(&setting.effects);
        let (seen, failure) = match asked {
            Ok(CallState::Nothing) => (not_called(), None),
            Ok(CallState::Read(read)) => return Err(StepResult::Need(vec![read])),
            Ok(CallState::Answered(seen, permanent)) => {
                let failure = failure(call, &seen, permanent);
                (seen, failure)
            }
            Ok(CallState::Unanswered) => {
                hide(sources, call, NO_ANSWER.into());
                continue;
            }
            // Its request depends on the answer to another call.
            Err(error) if error.reason == Reason::Unavailable && is_unanswered(sources) => {
                hide(sources, call, error.message.into());
                continue;
            }
            Err(error) => (not_called(), Some(error.into())),
        };
        let answers = sources.external.entry(call.import);
        if let Node::Map(answers) = answers.or_insert_with(|| Node::Map(Map::default())) {
            answers.insert(Key::clone(&call.name), seen);
        }
        if let Some(failure) = failure {
            let cycle = Cycle::untouched(plan, observed, failure);
            return Err(cycle.over(std::mem::take(sources)));
        }
    }
    Ok(())
}

/// The state of a call.
enum CallState {
    /// It is not made: its gate, or that of its block, is closed, or it belongs to admission.
    Nothing,
    /// This must be known first.
    Read(Read),
    /// The answer as templates see it, and whether a retry is pointless.
    Answered(Node, bool),
    /// It has no answer, and the declaration does not tolerate its failure.
    Unanswered,
}

/// Makes the answer to a call unavailable.
fn hide(sources: &mut TemplateData, call: &CallPlan, why: Box<str>) {
    let steps = [Key::from(EXTERNAL), Key::clone(&call.name)];
    let path: Path = steps.map(PathStep::Field).into_iter().collect();
    sources.unavailable.push((path, why));
}

/// True if any answer is unavailable.
fn is_unanswered(sources: &TemplateData) -> bool {
    let mut paths = sources.unavailable.iter().map(|(path, _)| path);
    paths.any(
        |path| matches!(path.steps().first(), Some(PathStep::Field(root)) if &**root == EXTERNAL),
    )
}

/// Returns the failure of the pass, if the call failed and must not.
fn failure(call: &CallPlan, seen: &Node, permanent: bool) -> Option<Failure> {
    let error = seen.get("error").and_then(Node::as_str).unwrap_or_default();
    (!error.is_empty() && !call.continue_on_error).then(|| Failure {
        reason: if permanent {
            Reason::ExternalCallRefused
        } else {
            Reason::ExternalCallFailed
        },
        at: call.path.to_string(),
        message: format!("the call `{}` failed: {error}", call.name),
    })
}

fn asked(
    plan: &OperatorPlan,
    observed: &Observed,
    (sources, setting): (&TemplateData, &Setting<'_>),
    (place, call): (usize, &CallPlan),
    now: Timestamp,
) -> Result<CallState, RenderError> {
    if !call.moments.includes(sources.moment) {
        return Ok(CallState::Nothing);
    }
    let view = PassView::of(plan, (observed, sources), setting, now);
    let (frame, data) = (view.frame, view.data());
    let inputs = Inputs::of(plan, &data, frame);
    let around = inputs.around(data.clone());
    let mut budget = EvalBudget::default();
    let mut renderer = frame.renderer(around.of(call.import)?, &mut budget);
    if call.block.is_some() && !renderer.gate(&plan.hold.children)? {
        return Ok(CallState::Nothing);
    }
    if let Some(block) = call.block
        && !renderer.gate(&plan.blocks[block].gate)?
    {
        return Ok(CallState::Nothing);
    }
    if !renderer.gate(&call.gate)? {
        return Ok(CallState::Nothing);
    }
    let token = match token(&mut renderer, observed, call.token.as_ref())? {
        TokenResult::Token(token) => token,
        TokenResult::Needs(read) => return Ok(CallState::Read(read)),
        TokenResult::Missing(why) => return Ok(CallState::Answered(failed(&why), false)),
    };
    let request = Box::new(request(&mut renderer, (place, call), token)?);
    let read = Read::Call(request);
    Ok(match observed.answers.get(&read) {
        Some(Answer::Absent) if !call.continue_on_error => CallState::Unanswered,
        Some(answer) => {
            let (seen, permanent) = read_answer(answer);
            CallState::Answered(seen, permanent)
        }
        None => CallState::Read(read),
    })
}

fn request(
    renderer: &mut Renderer<'_, '_>,
    (place, call): (usize, &CallPlan),
    token: Box<[Piece]>,
) -> Result<CallRequest, RenderError> {
    let mut text = |leaf: &Leaf| -> Result<Box<str>, RenderError> {
        let node = renderer.leaf(leaf)?.unwrap_or_default();
        Ok(node.to_text().into())
    };
    let mut headers = Vec::with_capacity(call.headers.len());
    for (name, value) in &call.headers {
        headers.push((name.clone(), text(value)?));
    }
    Ok(CallRequest {
        place,
        name: (&*call.name).into(),
        method: call.method,
        url: text(&call.url)?,
        headers: headers.into(),
        token,
        body: match &call.body {
            Some(body) => text(body)?,
            None => Box::default(),
        },
        expected_status: call.expected_status,
        timeout: call.timeout,
        retry: call.retry,
        cache_for: call.cache_for,
        most: MOST_ANSWER,
        is_paced: false,
    })
}
