//! A hook by itself: what it is asked with for a custom resource, and whether its answers keep the contract. For `ork hook test`.
//!
//! ```text
//!  custom resource, objects ── pass, with assumed answers ──► HookTrial ── request ──► CallRequest ── any transport ──► answer ──┐
//!                                                               └── judge ◄──────────────────────────────────────────────────┘
//! ```

use jiff::Timestamp;

use super::{HookError, HookResponse, HookState, ask};
use crate::reconcile::{
    calls::{CallAnswer, CallRequest},
    collect,
    data_source::Given,
    external::answered,
    preview::{Assumptions, assume, passed},
    record::Observed,
    render::Setting,
    sources::Read,
};
use orkestra_object::value::Node;
use orkestra_plan::{HookPlan, HookStage, OperatorPlan};

/// The most rounds of reads before a hook is called.
const ROUNDS: usize = 8;

/// A hook, and the state of a custom resource that it is asked about.
pub struct HookTrial<'a> {
    plan: &'a OperatorPlan,
    place: usize,
    observed: Observed,
    assumed: Assumptions<'a>,
    /// What it is asked with in a pass; none if the pass does not call it.
    sync: Option<CallRequest>,
    /// The objects of the pass.
    objects: Vec<Node>,
}

impl<'a> HookTrial<'a> {
    /// Runs a pass as far as it is known without the hook.
    ///
    /// # Errors
    /// There is no such hook, or the custom resource has no name, kind or version.
    pub fn new(
        plan: &'a OperatorPlan,
        name: &str,
        assumed: Assumptions<'a>,
    ) -> Result<Self, String> {
        let place = plan.hooks.iter().position(|hook| &*hook.name == name);
        let place = place.ok_or_else(|| {
            let known: Vec<String> = plan
                .hooks
                .iter()
                .map(|one| format!("`{}`", one.name))
                .collect();
            let known = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("its hooks are {}", known.join(", "))
            };
            format!("the operator `{}` has no hook `{name}`: {known}", plan.name)
        })?;
        let ran = passed(plan, assumed.clone()).map_err(|why| why.to_string())?;
        let (preview, observed, _) = ran;
        let number = plan.calls.len() + place;
        let asked = observed.answers.keys().find_map(|read| match read {
            Read::Call(request) if request.place == number => Some(CallRequest::clone(request)),
            _ => None,
        });
        Ok(Self {
            plan,
            place,
            observed,
            assumed,
            sync: asked,
            objects: preview.objects,
        })
    }

    /// Returns the plan of the hook.
    pub fn hook(&self) -> &'a HookPlan {
        &self.plan.hooks[self.place]
    }

    /// True if it is called only when the children of the templates exist.
    pub fn is_after(&self) -> bool {
        self.hook().at == HookStage::After
    }

    /// Returns the objects that the pass creates, as far as they are known.
    pub fn objects(&self) -> &[Node] {
        &self.objects
    }

    /// Returns what it is asked with in a pass; none if the pass does not call it.
    pub fn sync(&self) -> Option<&CallRequest> {
        self.sync.as_ref()
    }

    /// Returns what it is asked with while the custom resource is being deleted; none if it is not called then.
    ///
    /// # Errors
    /// Why it cannot be called.
    pub fn finalize(&self) -> Result<Option<CallRequest>, String> {
        if self.hook().call(true).is_none() {
            return Ok(None);
        }
        let mut observed = self.observed.clone();
        for _ in 0..ROUNDS {
            let setting = Setting::of(self.plan, &observed);
            let sources = collect::for_deletion(self.plan, &observed, self.now());
            let of = (self.plan, self.place);
            let read = match ask(of, (&observed, &sources), &setting, self.now(), true) {
                HookState::Needs(Read::Call(request)) => return Ok(Some(*request)),
                HookState::Needs(read) => read,
                HookState::Failed(failure) => return Err(failure.message),
                HookState::Closed | HookState::Unanswered | HookState::Answered(_) => {
                    return Ok(None);
                }
            };
            let given = Given {
                plan: self.plan,
                others: &[],
            };
            let objects = (self.assumed.children, self.assumed.calls);
            let answer = assume::answer(&read, objects, given);
            observed.answers.insert(read, answer);
        }
        Err("it reads too many objects".to_owned())
    }

    /// Reads an answer as a pass does.
    ///
    /// # Errors
    /// The answer is not used.
    pub fn judge(&self, answer: &CallAnswer) -> Result<HookResponse, HookError> {
        let text = super::body(&answered(answer))?;
        let of = (self.plan, self.hook());
        HookResponse::read(of, &self.observed, &text, self.now())
    }

    /// True if the object is of a kind that the hook manages.
    pub fn is_managed(&self, object: &Node) -> bool {
        let text = |field| object.get(field).and_then(Node::as_str);
        let mut managed = self.hook().managed.iter();
        managed.any(|one| {
            let api_version = one.kind.api_version();
            text("kind") == Some(&*one.kind.kind) && text("apiVersion") == Some(&*api_version)
        })
    }

    /// True if the answer returns that object, which exists.
    pub fn returns(&self, response: &HookResponse, object: &Node) -> bool {
        self.observed.children.iter().any(|child| {
            let managed = self.hook().managed.iter();
            let mut of_kind = managed.filter(|one| one.kind.group_kind() == child.key.kind);
            object.meta_text("name") == Some(&*child.key.object.name)
                && of_kind.any(|one| {
                    object.get("kind").and_then(Node::as_str) == Some(&*one.kind.kind)
                        && response.returns(&one.kind, &child.key, &self.observed)
                })
        })
    }

    fn now(&self) -> Timestamp {
        self.assumed.now
    }
}
