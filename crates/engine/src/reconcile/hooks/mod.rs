//! Hooks: functions outside of the Katalog, which a pass asks like any other source.
//!
//! ```text
//!  request ── Read::Call ──► the runtime ── answer ──► response: read and checked as a whole
//!                                                        ├── data      .hook.<name>, for templates
//!                                                        ├── children  `forEach` of the declarations that the compiler made for it
//!                                                        └── status, conditions, Events, labels, the time of the next pass
//! ```

mod children;
mod entries;
mod request;
mod response;
mod status;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;

pub use self::response::{HookError, HookResponse};
pub(crate) use self::status::{conditions, unready, write_status};
use super::{
    calls::CallRequest,
    cycle::{Cycle, StepResult},
    external::{TokenResult, read_answer, token},
    failure::Failure,
    inputs::Inputs,
    reason::Reason,
    record::Observed,
    render::{RenderError, Setting},
    sources::{Answer, Read},
    template_data::TemplateData,
    view::PassView,
};
use orkestra_object::value::{Key, Map, Node, Path};
use orkestra_plan::{GroupKind, HOOK, HOOK_CHILDREN, HookPlan, HookStage, OperatorPlan};
use orkestra_template::EvalBudget;

/// How long an answer without a declared `cacheFor` is kept, if there is room: forever.
const WHILE_UNCHANGED: Duration = Duration::from_hours(24 * 365);
/// Why the data of a hook cannot be read where no operator runs.
const NO_ANSWER: &str = "no response is declared for this hook";
/// The most bytes of an answer.
const MOST_ANSWER: usize = 1024 * 1024;

/// The answers of hooks in a pass, by their place in the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookAnswers {
    answered: BTreeMap<usize, Arc<HookResponse>>,
    /// Hooks whose answer is unknown, with the reason: their children stay as they are.
    waiting: BTreeMap<usize, Waiting>,
}

/// Why the answer of a hook is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// It is called later: what reads its data keeps its value.
    Later,
    /// There is none where no operator runs: what reads its data fails.
    Unanswered,
}

impl HookAnswers {
    /// True if what a hook wants is unknown.
    pub(crate) fn is_waiting(&self, hook: usize) -> bool {
        self.waiting.contains_key(&hook)
    }

    /// True if one of the paths is below the data of a hook that is called later.
    pub(crate) fn are_later<'p>(
        &self,
        plan: &OperatorPlan,
        paths: impl IntoIterator<Item = &'p Path>,
    ) -> bool {
        let mut later = self.waiting.iter();
        later.any(|(_, why)| *why == Waiting::Later)
            && paths.into_iter().any(|path| {
                let mut later = self.waiting.iter();
                later.any(|(hook, why)| {
                    let data = Path::of_fields([Key::from(HOOK), plan.hooks[*hook].name.clone()]);
                    *why == Waiting::Later && path.overlaps(&data)
                })
            })
    }

    /// Returns why a hook gives no child of a kind.
    pub(crate) fn why_none(&self, plan: &OperatorPlan, hook: usize) -> String {
        let name = &plan.hooks[hook].name;
        match self.waiting.get(&hook) {
            Some(Waiting::Later) => {
                format!("the hook `{name}` is called when the declared children exist")
            }
            Some(Waiting::Unanswered) => format!("{NO_ANSWER}: `{name}`"),
            None => format!("the hook `{name}` returns none"),
        }
    }

    /// Returns the answers, in the order of the calls.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &HookResponse> {
        self.answered.values().map(|response| &**response)
    }

    /// Returns the shortest delay after which a hook asks for another pass.
    pub(crate) fn requeue(&self) -> Option<Duration> {
        self.iter().filter_map(|one| one.requeue_after).min()
    }
}

/// Adds the answers of the hooks of a stage to the sources.
///
/// # Errors
/// The read that must be answered first; or the pass, which does nothing, if a hook fails: nothing of an invalid answer is used.
pub(crate) fn make(
    plan: &OperatorPlan,
    observed: &Observed,
    sources: &mut TemplateData,
    stage: HookStage,
    now: Timestamp,
) -> Result<(), StepResult> {
    for (place, hook) in plan.hooks.iter().enumerate() {
        if hook.at != stage {
            continue;
        }
        let setting = Setting::of(plan, observed);
        let asked = ask((plan, place), (observed, sources), &setting, now, false);
        sources.heard(&setting.effects);
        match asked {
            HookState::Closed => {}
            HookState::Needs(read) => return Err(StepResult::Need(vec![read])),
            HookState::Unanswered => wait(sources, (place, hook), Waiting::Unanswered),
            HookState::Answered(response) => accept(sources, (place, hook), response),
            HookState::Failed(failure) => {
                let cycle = Cycle::untouched(plan, observed, failure);
                return Err(cycle.over(std::mem::take(sources)));
            }
        }
    }
    Ok(())
}

/// Makes the hooks of a stage wait: what they want is unknown, and their data cannot be read.
pub(crate) fn postpone(plan: &OperatorPlan, sources: &mut TemplateData, stage: HookStage) {
    for (place, hook) in plan.hooks.iter().enumerate() {
        if hook.at == stage {
            wait(sources, (place, hook), Waiting::Later);
        }
    }
}

fn wait(sources: &mut TemplateData, (place, hook): (usize, &HookPlan), why: Waiting) {
    let message = match why {
        Waiting::Later => "the hook is called when the declared children exist",
        Waiting::Unanswered => NO_ANSWER,
    };
    sources.hooks.waiting.insert(place, why);
    sources.hide([Key::from(HOOK), hook.name.clone()], message);
}

fn accept(sources: &mut TemplateData, (place, hook): (usize, &HookPlan), response: HookResponse) {
    sources.put(HOOK, &hook.name, response.data.clone());
    sources.put(HOOK_CHILDREN, &hook.name, response.children.clone());
    sources.hooks.answered.insert(place, Arc::new(response));
}

/// The state of a hook in a pass.
pub(crate) enum HookState {
    /// It is not called: its gate is closed, or it has no URL for this operation.
    Closed,
    /// This must be known first.
    Needs(Read),
    /// It has no answer where no operator runs.
    Unanswered,
    /// Its valid answer.
    Answered(HookResponse),
    /// It could not be called, or its answer is not used.
    Failed(Failure),
}

/// Asks the hook at a place in the plan.
pub(crate) fn ask(
    (plan, place): (&OperatorPlan, usize),
    (observed, sources): (&Observed, &TemplateData),
    setting: &Setting<'_>,
    now: Timestamp,
    is_finalizing: bool,
) -> HookState {
    let hook = &plan.hooks[place];
    if let Some(failure) = unseen(hook, observed) {
        return HookState::Failed(failure);
    }
    let read = match read(
        (plan, place),
        (observed, sources),
        setting,
        now,
        is_finalizing,
    ) {
        Ok(Ok(read)) => read,
        Ok(Err(state)) => return state,
        Err(error) => return HookState::Failed(error.into()),
    };
    let failed = |error: HookError| {
        HookState::Failed(Failure {
            reason: if error.permanent {
                Reason::HookRefused
            } else {
                Reason::HookFailed
            },
            at: hook.path.to_string(),
            message: format!("the hook `{}` failed: {}", hook.name, error.message),
        })
    };
    match observed.answers.get(&read) {
        None => HookState::Needs(read),
        Some(Answer::Absent) => HookState::Unanswered,
        Some(answer) => {
            match body(answer)
                .and_then(|node| HookResponse::read((plan, hook), observed, &node, now))
            {
                Ok(response) => HookState::Answered(response),
                Err(error) => failed(error),
            }
        }
    }
}

/// Returns why a hook cannot see all its children: an answer to a part of them could remove the others.
fn unseen(hook: &HookPlan, observed: &Observed) -> Option<Failure> {
    let is_unread = |kind: &GroupKind| {
        let mut children = observed.children.iter();
        children.any(|child| child.key.kind == *kind && child.record.unread().is_some())
    };
    let mut kinds = hook.managed.iter().map(|managed| managed.kind.group_kind());
    let kind = kinds.find(|kind| observed.unseen.contains(kind) || is_unread(kind))?;
    Some(Failure {
        reason: Reason::Unavailable,
        at: hook.path.to_string(),
        message: format!(
            "the hook `{}` is not called: objects of kind {kind} cannot be read",
            hook.name
        ),
    })
}

/// Returns the read that calls a hook, or why it is not called.
fn read(
    (plan, place): (&OperatorPlan, usize),
    (observed, sources): (&Observed, &TemplateData),
    setting: &Setting<'_>,
    now: Timestamp,
    is_finalizing: bool,
) -> Result<Result<Read, HookState>, RenderError> {
    let hook = &plan.hooks[place];
    let Some(url) = hook.url(is_finalizing) else {
        return Ok(Err(HookState::Closed));
    };
    let view = PassView::of(plan, (observed, sources), setting, now);
    let (frame, data) = (view.frame, view.data());
    let inputs = Inputs::of(plan, &data, frame);
    let around = inputs.around(data.clone());
    let mut budget = EvalBudget::default();
    let mut renderer = frame.renderer(around.of(None)?, &mut budget);
    for gate in [&plan.hold.children, &plan.blocks[hook.block].gate] {
        // The last call for a custom resource is made whatever the gate of its children is.
        if !is_finalizing && !renderer.gate(gate)? {
            return Ok(Err(HookState::Closed));
        }
    }
    let token = match token(&mut renderer, observed, hook.http.token.as_ref())? {
        TokenResult::Token(token) => token,
        TokenResult::Needs(read) => return Ok(Err(HookState::Needs(read))),
        TokenResult::Missing(why) => {
            return Ok(Err(HookState::Failed(Failure {
                reason: Reason::HookFailed,
                at: hook.path.to_string(),
                message: format!("the hook `{}` is not called: {why}", hook.name),
            })));
        }
    };
    let mut headers = Vec::with_capacity(hook.http.headers.len());
    for (name, value) in &hook.http.headers {
        headers.push((name.clone(), renderer.text(value)?.into()));
    }
    let args = renderer.tree(&hook.args)?;
    let args = args.unwrap_or_else(|| Node::Map(Map::default()));
    Ok(Ok(Read::Call(Box::new(CallRequest {
        // Hooks follow the calls.
        place: plan.calls.len() + place,
        name: (&*hook.name).into(),
        method: "POST",
        url: renderer.text(url)?.into(),
        headers: headers.into(),
        token,
        body: request::body((plan, hook), (observed, sources), args, is_finalizing),
        expected_status: None,
        timeout: hook.timeout,
        retry: hook.retry,
        cache_for: Some(hook.cache_for.unwrap_or(WHILE_UNCHANGED)).filter(|time| !time.is_zero()),
        most: MOST_ANSWER,
        is_paced: true,
    }))))
}

/// Returns the body of an answer, parsed.
fn body(answer: &Answer) -> Result<Node, HookError> {
    let (seen, permanent) = read_answer(answer);
    let text = |name| seen.get(name).and_then(Node::as_str).unwrap_or_default();
    let error = text("error");
    if !error.is_empty() {
        return Err(HookError {
            message: error.to_owned(),
            permanent,
        });
    }
    match seen.get("json") {
        None | Some(Node::Null) => Err(HookError {
            message: "the answer is not JSON".to_owned(),
            permanent: true,
        }),
        Some(json) => Ok(json.clone()),
    }
}
