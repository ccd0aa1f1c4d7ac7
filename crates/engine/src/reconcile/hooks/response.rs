//! The answer of a hook, read and checked as a whole before anything of it is used.

use std::time::Duration;

use jiff::Timestamp;

use super::children::children;
use crate::reconcile::{emit::Emitted, labels::Labels, record::Observed, status::is_own_type};
use orkestra_language::{
    api::{
        conditions::{Condition, ConditionStatus, READY},
        duration, names,
    },
    schema::with_article,
};
use orkestra_object::value::{Map, Node};
use orkestra_plan::{
    ChildKey, HookPlan, HookProtocol, MetadataKey, OperatorPlan, ResourceType, is_event_reason,
    is_reason,
};

/// Most Events and conditions in one answer.
const MOST_REPORTS: usize = 20;
/// Most labels and annotations in one answer.
const MOST_LABELS: usize = 50;

/// Fields of an answer in Orkestra's own protocol.
const FIELDS: [&str; 10] = [
    "apiVersion",
    "kind",
    "children",
    "status",
    "conditions",
    "events",
    "requeueAfter",
    "error",
    "data",
    "finalized",
];

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

/// Why an answer is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookError {
    /// The problem.
    pub message: String,
    /// Whether only a change of the custom resource or of the hook fixes it.
    pub permanent: bool,
}

pub(crate) fn refused<T>(message: impl Into<String>) -> Result<T, HookError> {
    Err(HookError {
        message: message.into(),
        permanent: true,
    })
}

impl HookResponse {
    /// Reads the answer of a hook about a custom resource.
    ///
    /// # Errors
    /// The answer is not valid, or says that the hook failed.
    // Over 60 lines: a line or two for each field of an answer.
    pub fn read(
        (plan, hook): (&OperatorPlan, &HookPlan),
        observed: &Observed,
        answer: &Node,
        now: Timestamp,
    ) -> Result<Self, HookError> {
        let Some(fields) = answer.as_map() else {
            return refused(format!(
                "the answer is {}, not a JSON object",
                with_article(answer.type_name())
            ));
        };
        let known = match hook.protocol {
            HookProtocol::Orkestra => fields.keys().find(|key| !FIELDS.contains(&key.as_str())),
            // Its servers may add fields of their own. Source: Metacontroller, "Composite Controller".
            HookProtocol::Metacontroller => None,
        };
        if let Some(unknown) = known {
            return refused(format!("the answer has an unknown field `{unknown}`"));
        }
        let get = |name: &str| fields.get(name).filter(|node| **node != Node::Null);
        if let Some(error) = get("error").and_then(reported) {
            return Err(error);
        }
        let declared = get("children");
        let declared = match hook.protocol {
            HookProtocol::Orkestra => declared,
            HookProtocol::Metacontroller => declared.or_else(|| get("attachments")),
        };
        let mut response = Self {
            children: children((plan, hook), observed, declared, now)?,
            status: map(get("status"), "status")?,
            finalized: match get("finalized") {
                None => false,
                Some(Node::Bool(finalized)) => *finalized,
                Some(_) => return refused("`finalized` is neither true nor false"),
            },
            ..Self::default()
        };
        match hook.protocol {
            HookProtocol::Orkestra => {
                response.data = get("data").cloned().unwrap_or_default();
                response.report(get("conditions"))?;
                response.events = events(get("events"))?;
                response.requeue_after = match get("requeueAfter") {
                    None => None,
                    Some(text) => match duration::parse(&text.to_text()) {
                        Ok(delay) => Some(delay),
                        Err(why) => return refused(format!("`requeueAfter`: {why}")),
                    },
                };
            }
            HookProtocol::Metacontroller => {
                response.replaces_status = get("status").is_some();
                let conditions = response.status.get("conditions").cloned();
                response.status.remove("conditions");
                // An answer often repeats the status that it was asked with, in which the runtime's own conditions are.
                let others = match &conditions {
                    Some(Node::List(all)) => {
                        let is_others = |one: &&Node| {
                            let type_ = one.get("type").and_then(Node::as_str);
                            !type_.is_some_and(is_own_type)
                        };
                        Some(Node::from(
                            all.iter().filter(is_others).cloned().collect::<Vec<_>>(),
                        ))
                    }
                    other => other.clone(),
                };
                response.report(others.as_ref())?;
                response.requeue_after = resync(get("resyncAfterSeconds"))?;
                response.labels = labels(get("labels"), get("annotations"))?;
            }
        }
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
    fn report(&mut self, declared: Option<&Node>) -> Result<(), HookError> {
        for (index, item) in list(declared, "conditions", MOST_REPORTS)?
            .iter()
            .enumerate()
        {
            let Some(condition) = Condition::read(item) else {
                return refused(format!(
                    "`conditions[{index}]` needs `type`, and `status` that is `True`, `False` or `Unknown`"
                ));
            };
            if condition.type_ == READY {
                if condition.status != ConditionStatus::True {
                    let why = [&*condition.message, &*condition.reason];
                    let why = why.into_iter().find(|text| !text.is_empty());
                    self.unready = Some(
                        why.unwrap_or("the hook reports that it is not ready")
                            .into(),
                    );
                }
                continue;
            }
            if is_own_type(&condition.type_) {
                return refused(format!(
                    "`conditions[{index}]`: `{}` is written by Orkestra itself",
                    condition.type_
                ));
            }
            if !condition.reason.is_empty() && !is_reason(&condition.reason) {
                return refused(format!(
                    "`conditions[{index}].reason` is not one word in CamelCase"
                ));
            }
            let mut condition = Condition::new(
                &condition.type_,
                condition.status,
                if condition.reason.is_empty() {
                    "Reported"
                } else {
                    &condition.reason
                },
                &condition.message,
            );
            condition.last_transition_time = None;
            self.conditions
                .retain(|other| other.type_ != condition.type_);
            self.conditions.push(condition);
        }
        Ok(())
    }
}

/// Reads `error`: a text, or a map of `message` and `permanent`.
fn reported(error: &Node) -> Option<HookError> {
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
        message: if message.is_empty() { none } else { message }.to_owned(),
        permanent,
    })
}

fn map(declared: Option<&Node>, name: &str) -> Result<Map, HookError> {
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

fn events(declared: Option<&Node>) -> Result<Vec<Emitted>, HookError> {
    let mut events = Vec::new();
    for (index, item) in list(declared, "events", MOST_REPORTS)?.iter().enumerate() {
        let text = |name| {
            item.get(name)
                .map(|node| node.to_text().trim().to_owned())
                .unwrap_or_default()
        };
        let (reason, message) = (text("reason"), text("message"));
        let warns = match &*text("type") {
            "" | "Normal" => false,
            "Warning" => true,
            other => {
                return refused(format!(
                    "`events[{index}].type` is `{other}`, neither `Normal` nor `Warning`"
                ));
            }
        };
        if !is_event_reason(&reason) || message.is_empty() {
            return refused(format!(
                "`events[{index}]` needs `reason`, one word in CamelCase, and `message`"
            ));
        }
        events.push(Emitted {
            warns,
            reason,
            message,
        });
    }
    Ok(events)
}

/// Reads `resyncAfterSeconds`; zero is none. Source: Metacontroller, "Composite Controller", sync hook response.
fn resync(declared: Option<&Node>) -> Result<Option<Duration>, HookError> {
    let Some(declared) = declared else {
        return Ok(None);
    };
    let seconds = declared.to_text().parse::<f64>().ok();
    let delay = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match delay {
        Some(delay) => Ok(Some(delay).filter(|delay| !delay.is_zero())),
        None => refused("`resyncAfterSeconds` is not a number of seconds"),
    }
}

/// Reads the labels and annotations of a decorator hook; one that is null is not set. Source: Metacontroller, "Decorator
/// Controller", sync hook response.
fn labels(labels: Option<&Node>, annotations: Option<&Node>) -> Result<Labels, HookError> {
    type Make = fn(Box<str>) -> MetadataKey;
    let mut all = Labels::new();
    let declared: [(&str, Option<&Node>, Make); 2] = [
        ("labels", labels, MetadataKey::Label),
        ("annotations", annotations, MetadataKey::Annotation),
    ];
    for (name, declared, make) in declared {
        let declared = map(declared, name)?;
        if declared.len() > MOST_LABELS {
            return refused(format!("`{name}` has more than {MOST_LABELS} entries"));
        }
        for (key, value) in declared.iter().filter(|(_, value)| **value != Node::Null) {
            let text = value.to_text();
            let checked = if key.starts_with(names::PREFIX) {
                Err("it is Orkestra's own".to_owned())
            } else {
                names::check_label_key(key).and_then(|()| match name {
                    "labels" => names::check_label_value(&text),
                    _ => Ok(()),
                })
            };
            if let Err(why) = checked {
                return refused(format!("`{name}`: `{key}`: {why}"));
            }
            all.insert(make(Box::from(&**key)), Box::from(&*text));
        }
    }
    Ok(all)
}
