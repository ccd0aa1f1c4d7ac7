//! The answer of a hook, read and checked as a whole before anything of it is used.

use std::time::Duration;

use jiff::Timestamp;

use super::{children::children, metacontroller};
use crate::reconcile::{emit::Emitted, labels::Labels, record::Observed, status::is_own_type};
use orkestra_language::{
    api::{
        conditions::{Condition, ConditionStatus, READY},
        hook_contract::{HookAnswer, HookCondition, HookEvent, HookEventType, MOST_REPORTS},
    },
    schema::with_article,
};
use orkestra_object::value::{Map, Node};
use orkestra_plan::{
    ChildKey, HookPlan, HookProtocol, OperatorPlan, ResourceType, is_event_reason, is_reason,
};

/// The reason of a condition that names none.
const REPORTED: &str = "Reported";

/// The hook with its plan, the state that it was asked with, and the present.
pub(crate) type AnswerContext<'a> = ((&'a OperatorPlan, &'a HookPlan), &'a Observed, Timestamp);

/// A valid answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookResponse {
    /// The data at `.hook.<name>`.
    pub data: Node,
    /// The children by kind: a map of lists.
    pub children: Node,
    /// The fields of the status.
    pub status: Map,
    /// True if fields of the status that the answer does not have are removed.
    pub replaces_status: bool,
    /// The conditions of the custom resource.
    pub conditions: Vec<Condition>,
    /// Why the custom resource is not ready; none if the hook does not say so.
    pub unready: Option<Box<str>>,
    /// Events about the custom resource.
    pub events: Vec<Emitted>,
    /// The delay after which another pass follows a successful one.
    pub requeue_after: Option<Duration>,
    /// Labels and annotations of the custom resource.
    pub labels: Labels,
    /// True if nothing is left to do for a custom resource that is being deleted.
    pub finalized: bool,
}

/// A rule of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookRule {
    /// It answers, and says that it did not fail.
    Answers,
    /// Its answer is as the schema says.
    ValidAnswer,
    /// Its children are of managed kinds.
    ManagedKinds,
    /// Its children are in the namespace of a namespaced custom resource.
    OwnNamespace,
}

/// Why an answer is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookError {
    /// The rule of the contract that it breaks.
    pub rule: HookRule,
    /// The problem.
    pub message: String,
    /// Whether only a change of the custom resource or of the hook fixes it.
    pub permanent: bool,
}

pub(crate) fn refused<T>(message: impl Into<String>) -> Result<T, HookError> {
    breaks(HookRule::ValidAnswer, message)
}

pub(crate) fn breaks<T>(rule: HookRule, message: impl Into<String>) -> Result<T, HookError> {
    Err(HookError {
        rule,
        message: message.into(),
        permanent: true,
    })
}

impl HookResponse {
    /// Reads the answer of a hook about a custom resource.
    ///
    /// # Errors
    /// The answer is not valid, or says that the hook failed.
    pub fn read(
        (plan, hook): (&OperatorPlan, &HookPlan),
        observed: &Observed,
        text: &str,
        now: Timestamp,
    ) -> Result<Self, HookError> {
        let context = ((plan, hook), observed, now);
        match hook.protocol {
            HookProtocol::Orkestra => match HookAnswer::parse(text) {
                Ok(answer) => Self::of_answer(answer, context),
                Err(why) => refused(why),
            },
            HookProtocol::Metacontroller => metacontroller::read(text, context),
        }
    }

    /// Reads an answer in Orkestra's own protocol.
    fn of_answer(
        answer: HookAnswer,
        (of, observed, now): AnswerContext<'_>,
    ) -> Result<Self, HookError> {
        let HookAnswer {
            api_version: _,
            kind: _,
            children: declared,
            data,
            status,
            conditions,
            events,
            requeue_after,
            finalized,
            error,
        } = answer;
        if let Some(error) = error.as_ref().and_then(reported) {
            return Err(error);
        }
        let mut response = Self {
            children: children(of, observed, declared.as_ref(), now)?,
            status: map(status.as_ref(), "status")?,
            finalized: finalized.unwrap_or_default(),
            data: data.unwrap_or_default(),
            requeue_after: requeue_after.map(|span| span.0),
            ..Self::default()
        };
        response.report(&conditions.unwrap_or_default())?;
        response.events = self::events(events.unwrap_or_default())?;
        Ok(response)
    }

    /// True if it returns that child.
    pub(crate) fn returns(
        &self,
        kind: &ResourceType,
        child: &ChildKey,
        observed: &Observed,
    ) -> bool {
        let returned = self
            .children
            .get(&HookPlan::key_of(kind))
            .and_then(Node::as_list);
        returned.unwrap_or_default().iter().any(|object| {
            let namespace = object
                .meta_text("namespace")
                .filter(|text| !text.is_empty());
            let namespace = namespace.or(observed.cr.id.key.namespace.as_deref());
            object.meta_text("name") == Some(&*child.object.name)
                && (kind.namespaced == Some(false)
                    || namespace == child.object.namespace.as_deref())
        })
    }

    /// Reads the conditions. `Ready` is the runtime's own: one that does not hold is a reason why it does not.
    pub(crate) fn report(&mut self, declared: &[HookCondition]) -> Result<(), HookError> {
        check_number("conditions", declared.len())?;
        for (index, declared) in declared.iter().enumerate() {
            let HookCondition {
                type_,
                status,
                reason,
                message,
            } = declared;
            let reason = reason.as_deref().unwrap_or_default();
            let message = message.as_deref().unwrap_or_default();
            if type_ == READY {
                if *status != ConditionStatus::True {
                    let why = [message, reason].into_iter().find(|text| !text.is_empty());
                    let none = "the hook reports that it is not ready";
                    self.unready = Some(why.unwrap_or(none).into());
                }
                continue;
            }
            if is_own_type(type_) {
                return refused(format!(
                    "`conditions[{index}]`: `{type_}` is written by Orkestra itself"
                ));
            }
            if !reason.is_empty() && !is_reason(reason) {
                return refused(format!(
                    "`conditions[{index}].reason` is not one word in CamelCase"
                ));
            }
            let reason = if reason.is_empty() { REPORTED } else { reason };
            let mut condition = Condition::new(type_, *status, reason, message);
            condition.last_transition_time = None;
            self.conditions.retain(|other| other.type_ != *type_);
            self.conditions.push(condition);
        }
        Ok(())
    }
}

fn check_number(name: &str, number: usize) -> Result<(), HookError> {
    if number <= MOST_REPORTS {
        return Ok(());
    }
    refused(format!(
        "`{name}` has {number} items; at most {MOST_REPORTS} are permitted"
    ))
}

/// Reads `error`: a text, or a map of `message` and `permanent`.
pub(crate) fn reported(error: &Node) -> Option<HookError> {
    let message = match error {
        Node::Map(_) => error.get("message").map(Node::to_text).unwrap_or_default(),
        other => other.to_text(),
    };
    let permanent = error.get("permanent").and_then(Node::as_bool);
    let permanent = permanent.unwrap_or_default();
    let message = message.trim();
    let none = "it gives no reason";
    let is_error = matches!(error, Node::Map(_)) || !message.is_empty();
    is_error.then(|| HookError {
        rule: HookRule::Answers,
        message: if message.is_empty() { none } else { message }.to_owned(),
        permanent,
    })
}

pub(crate) fn map(declared: Option<&Node>, name: &str) -> Result<Map, HookError> {
    match declared {
        None => Ok(Map::default()),
        Some(Node::Map(fields)) => Ok(fields.clone()),
        Some(other) => refused(format!(
            "`{name}` is {}, not a map",
            with_article(other.type_name())
        )),
    }
}

pub(crate) fn list<'n>(
    declared: Option<&'n Node>,
    name: &str,
    most: usize,
) -> Result<&'n [Node], HookError> {
    match declared {
        None => Ok(&[]),
        Some(Node::List(items)) if items.len() <= most => Ok(items),
        Some(Node::List(items)) => refused(format!(
            "`{name}` has {} items; at most {most} are permitted",
            items.len()
        )),
        Some(other) => refused(format!(
            "`{name}` is {}, not a list",
            with_article(other.type_name())
        )),
    }
}

fn events(declared: Vec<HookEvent>) -> Result<Vec<Emitted>, HookError> {
    check_number("events", declared.len())?;
    let mut events = Vec::new();
    for (index, declared) in declared.into_iter().enumerate() {
        let HookEvent {
            type_,
            reason,
            message,
        } = declared;
        let (reason, message) = (reason.trim().to_owned(), message.trim().to_owned());
        if !is_event_reason(&reason) || message.is_empty() {
            return refused(format!(
                "`events[{index}]` needs `reason`, one word in CamelCase, and `message`"
            ));
        }
        events.push(Emitted {
            warns: type_ == Some(HookEventType::Warning),
            reason,
            message,
        });
    }
    Ok(events)
}
