//! Answers in the protocol of Metacontroller. Source: Metacontroller, "Composite Controller" and "Decorator Controller", sync hook
//! response.

use std::time::Duration;

use super::{
    children::children,
    response::{AnswerContext, HookError, HookResponse, list, map, refused, reported},
};
use crate::reconcile::{labels::Labels, status::is_own_type};
use orkestra_language::{
    api::{
        conditions::Condition,
        hook_contract::{HookCondition, MOST_REPORTS},
        names,
    },
    schema::with_article,
};
use orkestra_object::value::Node;
use orkestra_plan::MetadataKey;

/// Most labels and annotations in one answer.
const MOST_LABELS: usize = 50;

/// Reads an answer. Fields that are not known are left out: its servers may add some of their own.
pub(crate) fn read(
    text: &str,
    (of, observed, now): AnswerContext<'_>,
) -> Result<HookResponse, HookError> {
    let answer: Node = match serde_json::from_str(text) {
        Ok(answer) => answer,
        Err(why) => return refused(format!("the answer is not JSON: {why}")),
    };
    let Some(fields) = answer.as_map() else {
        let found = with_article(answer.type_name());
        return refused(format!("the answer is {found}, not a JSON object"));
    };
    let get = |name: &str| fields.get(name).filter(|node| **node != Node::Null);
    if let Some(error) = get("error").and_then(reported) {
        return Err(error);
    }
    let declared = get("children").or_else(|| get("attachments"));
    let mut response = HookResponse {
        children: children(of, observed, declared, now)?,
        status: map(get("status"), "status")?,
        replaces_status: get("status").is_some(),
        finalized: match get("finalized") {
            None => false,
            Some(Node::Bool(finalized)) => *finalized,
            Some(_) => return refused("`finalized` is neither true nor false"),
        },
        requeue_after: resync(get("resyncAfterSeconds"))?,
        labels: labels(get("labels"), get("annotations"))?,
        ..HookResponse::default()
    };
    let declared = response.status.get("conditions").cloned();
    response.status.remove("conditions");
    response.report(&conditions(declared.as_ref())?)?;
    Ok(response)
}

/// Reads the conditions of the status. An answer often repeats the status that it was asked with, in which the runtime's own conditions
/// are.
fn conditions(declared: Option<&Node>) -> Result<Vec<HookCondition>, HookError> {
    let mut conditions = Vec::new();
    for (index, item) in list(declared, "conditions", MOST_REPORTS)?
        .iter()
        .enumerate()
    {
        let type_ = item.get("type").and_then(Node::as_str);
        if type_.is_some_and(is_own_type) {
            continue;
        }
        let Some(condition) = Condition::read(item) else {
            return refused(format!(
                "`conditions[{index}]` needs `type`, and `status` that is `True`, `False` or `Unknown`"
            ));
        };
        conditions.push(HookCondition {
            type_: condition.type_,
            status: condition.status,
            reason: Some(condition.reason),
            message: Some(condition.message),
        });
    }
    Ok(conditions)
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
