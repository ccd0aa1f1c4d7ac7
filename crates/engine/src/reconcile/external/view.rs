//! The responses of calls, as template data.

use std::sync::Arc;

use crate::reconcile::{
    calls::{CallAnswer, CallFailure, CallRequest},
    sources,
};
use orkestra_object::value::{Key, Map, Node};

/// Keys of `.external.<name>` that fields of an answer cannot override.
const OWN: [&str; 5] = ["status", "body", "error", "called", "json"];
/// Why templates cannot read the answer to a call that has none.
pub(crate) const NO_ANSWER: &str = "no response is declared for this call";

/// Returns the answer for a pass: the answer as templates see it, and whether a retry is pointless.
pub fn answered(answer: &CallAnswer) -> sources::Answer {
    let permanent = answer.error.as_ref().is_some_and(|error| error.permanent);
    let reported = Node::object([("seen", view(answer)), ("permanent", Node::Bool(permanent))]);
    sources::Answer::Ready(Arc::new(reported))
}

/// Returns the answer that a user gives for a call, in a map of `status` (200 by default), `body` (text, or a value that
/// becomes JSON) and `error`.
///
/// # Errors
/// The problem of the given answer.
pub fn assumed(given: &Node, request: &CallRequest) -> Result<CallAnswer, String> {
    let Node::Map(fields) = given else {
        return Err("a response is a map of `status`, `body` and `error`".to_owned());
    };
    if let Some(key) = fields
        .keys()
        .find(|key| !["status", "body", "error"].contains(&key.as_str()))
    {
        return Err(format!(
            "unknown field `{key}` of a response; expected `status`, `body` or `error`"
        ));
    }
    let text = |name| {
        fields
            .get(name)
            .map(|node| node.to_text().trim().to_owned())
    };
    let error = text("error").filter(|error| !error.is_empty());
    let status = match text("status") {
        Some(text) => Some(
            text.parse()
                .map_err(|_| format!("`{text}` is not a status"))?,
        ),
        None => error.is_none().then_some(200),
    };
    let refused = status.filter(|status| !request.takes(*status));
    let refused = refused.map(|status| format!("the response has status {status}"));
    Ok(CallAnswer {
        status,
        body: fields
            .get("body")
            .map(Node::to_text)
            .unwrap_or_default()
            .into(),
        error: error.or(refused).map(|message| CallFailure {
            message: message.into(),
            permanent: false,
            retry_after: None,
        }),
    })
}

/// Returns `.external.<name>` for a call that was made.
fn view(answer: &CallAnswer) -> Node {
    let status = answer.status.map(|status| status.to_string());
    let error = answer.error.as_ref().map(|error| &*error.message);
    let json = serde_json::from_str::<Node>(&answer.body).ok();
    let mut seen = Map::default();
    if let Some(Node::Map(fields)) = &json {
        let others = fields
            .iter()
            .filter(|(key, _)| !OWN.contains(&key.as_str()));
        seen = others
            .map(|(key, node)| (Key::clone(key), node.clone()))
            .collect();
    }
    put(
        &mut seen,
        [
            status.as_deref().unwrap_or_default(),
            &answer.body,
            error.unwrap_or_default(),
            "true",
        ],
    );
    seen.insert(Key::from("json"), json.unwrap_or_default());
    Node::Map(seen)
}

/// Returns `.external.<name>` for a call that was not made.
pub(crate) fn not_called() -> Node {
    let mut seen = Map::default();
    put(&mut seen, ["", "", "", "false"]);
    Node::Map(seen)
}

fn put(seen: &mut Map, texts: [&str; 4]) {
    for (key, text) in OWN.into_iter().zip(texts) {
        seen.insert(Key::from(key), Node::from(text));
    }
}

/// Reads the answer for a pass: the answer as templates see it, and whether a retry is pointless.
pub(crate) fn read_answer(answer: &sources::Answer) -> (Node, bool) {
    match answer {
        sources::Answer::Ready(reported) => {
            let permanent = reported.get("permanent").and_then(Node::as_bool);
            let seen = reported.get("seen").cloned();
            (
                seen.unwrap_or_else(not_called),
                permanent.unwrap_or_default(),
            )
        }
        sources::Answer::Absent => (failed(NO_ANSWER), false),
        sources::Answer::Unavailable(why) => (failed(why), false),
    }
}

/// Returns `.external.<name>` for a failed call.
pub(crate) fn failed(why: &str) -> Node {
    view(&CallAnswer {
        error: Some(CallFailure {
            message: why.into(),
            permanent: false,
            retry_after: None,
        }),
        ..CallAnswer::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_of(status: u16, body: &str) -> serde_json::Value {
        let answer = CallAnswer {
            status: Some(status),
            body: body.into(),
            error: None,
        };
        view(&answer).to_json()
    }

    #[test]
    fn the_fields_of_a_json_object_stand_beside_ours_and_never_in_their_place() {
        let seen = seen_of(
            201,
            r#"{"tier":"gold","status":"200","error":"no","called":0,"json":{},"body":1}"#,
        );
        assert_eq!(seen["tier"], "gold");
        assert_eq!(
            (&seen["status"], &seen["error"], &seen["called"]),
            (&"201".into(), &"".into(), &"true".into())
        );
        assert_eq!(seen["json"]["status"], "200");
        assert!(seen["body"].as_str().unwrap().starts_with("{\"tier\""));
    }

    #[test]
    fn a_body_that_is_no_json_is_text_alone() {
        let seen = seen_of(200, "up since [1");
        assert_eq!(
            (&seen["body"], &seen["json"]),
            (&"up since [1".into(), &serde_json::Value::Null)
        );
        let deep = "[".repeat(200_000);
        assert_eq!(seen_of(200, &deep)["json"], serde_json::Value::Null);
        assert_eq!(seen_of(200, "[1,2]")["json"][1], 2);
    }
}
