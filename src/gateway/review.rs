//! The reviews that the API server sends, and their responses.
//!
//! Source: Kubernetes API reference, `AdmissionReview` of `admission.k8s.io/v1` and `ConversionReview` of
//! `apiextensions.k8s.io/v1`.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use orkestra_core::{admission::PatchOp, api::Operation, value::Node};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

/// A request for admission.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Admission {
    /// Echoed in the response.
    pub(super) uid: String,
    /// The kind of `object`.
    pub(super) kind: Kind,
    /// The resource of `object`.
    pub(super) resource: Resource,
    /// The subresource; empty for the object itself.
    #[serde(default)]
    pub(super) sub_resource: String,
    /// The name; empty if the API server generates it later.
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: Option<String>,
    pub(super) operation: String,
    #[serde(default)]
    pub(super) user_info: User,
    /// Null if it is deleted. Parsed later, since it may be nested too deeply.
    #[serde(default)]
    object: Option<Box<RawValue>>,
    /// Null if it is created.
    #[serde(default)]
    old_object: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) dry_run: Option<bool>,
}

/// Group, version and kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) version: String,
    #[serde(rename = "kind")]
    pub(super) name: String,
}

/// Group, version and plural.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    #[serde(rename = "resource")]
    pub(super) plural: String,
}

/// The user of a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    pub(super) username: String,
    pub(super) uid: String,
    pub(super) groups: Vec<String>,
    pub(super) extra: BTreeMap<String, Vec<String>>,
}

/// A request for conversion.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Conversion {
    /// Echoed in the response.
    pub(super) uid: String,
    #[serde(rename = "desiredAPIVersion")]
    pub(super) desired_api_version: String,
    objects: Vec<Box<RawValue>>,
}

/// Why a body is not a review.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    /// It is not JSON, or another document.
    #[error("the body is not an {kind}: {why}")]
    Body {
        /// The expected kind.
        kind: &'static str,
        /// The error of the parser.
        why: String,
    },
    /// A part of it cannot be decoded.
    #[error("`{field}` cannot be decoded: {why}")]
    Field {
        /// The field.
        field: &'static str,
        /// The error of the parser.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<T> {
    kind: String,
    request: T,
}

fn parse<T: for<'a> Deserialize<'a>>(kind: &'static str, body: &[u8]) -> Result<T, Malformed> {
    let malformed = |why: String| Malformed::Body { kind, why };
    let review: Review<T> =
        serde_json::from_slice(body).map_err(|error| malformed(error.to_string()))?;
    if review.kind == kind {
        Ok(review.request)
    } else {
        Err(malformed("`kind` is another one".to_owned()))
    }
}

fn node(field: &'static str, raw: &RawValue) -> Result<Node, Malformed> {
    serde_json::from_str(raw.get()).map_err(|error| Malformed::Field {
        field,
        why: error.to_string(),
    })
}

impl Admission {
    /// Parses an `AdmissionReview`.
    ///
    /// # Errors
    /// [`Malformed::Body`].
    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        parse("AdmissionReview", body)
    }

    /// Returns the object; null if it is deleted.
    ///
    /// # Errors
    /// [`Malformed::Field`], for values that are nested too deeply.
    pub(super) fn object(&self) -> Result<Node, Malformed> {
        let object = self.object.as_deref();
        object.map_or(Ok(Node::Null), |raw| node("object", raw))
    }

    /// Returns the object before; null if it is created.
    ///
    /// # Errors
    /// As [`object`](Self::object).
    pub(super) fn old_object(&self) -> Result<Node, Malformed> {
        let object = self.old_object.as_deref();
        object.map_or(Ok(Node::Null), |raw| node("oldObject", raw))
    }

    /// Returns the operation; none for `CONNECT`.
    pub(super) fn operation(&self) -> Option<Operation> {
        match self.operation.as_str() {
            "CREATE" => Some(Operation::Create),
            "UPDATE" => Some(Operation::Update),
            "DELETE" => Some(Operation::Delete),
            _ => None,
        }
    }

    /// True if nothing is stored.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run == Some(true)
    }
}

impl Conversion {
    /// Parses a `ConversionReview`.
    ///
    /// # Errors
    /// [`Malformed::Body`].
    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        parse("ConversionReview", body)
    }

    /// Returns the objects.
    ///
    /// # Errors
    /// [`Malformed::Field`], for values that are nested too deeply.
    pub(super) fn objects(&self) -> Result<Vec<Node>, Malformed> {
        self.objects
            .iter()
            .map(|raw| node("objects", raw))
            .collect()
    }
}

/// The response to a request for admission.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// The message of a refusal; none if the request is accepted.
    pub(super) denial: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) patch: Vec<PatchOp>,
}

/// The status code of a refusal by a rule.
const FORBIDDEN: u16 = 403;

impl Answer {
    /// Refuses the request.
    pub(super) fn denied(message: impl Into<String>) -> Self {
        Self {
            denial: Some(message.into()),
            ..Self::default()
        }
    }

    /// Returns the review to send.
    pub(super) fn review(&self, uid: &str) -> Value {
        let mut response = json!({ "uid": uid, "allowed": self.denial.is_none() });
        if let Some(message) = &self.denial {
            response["status"] = json!({
                "status": "Failure", "reason": "Forbidden", "code": FORBIDDEN, "message": message,
            });
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        if self.denial.is_none() && !self.patch.is_empty() {
            let patch = serde_json::to_vec(&self.patch).unwrap_or_default();
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(patch));
        }
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
    }
}

#[derive(Serialize)]
struct Converted<'a> {
    uid: &'a str,
    #[serde(rename = "convertedObjects")]
    objects: &'a [Node],
    result: Value,
}

/// Returns the bytes of the response to a request for conversion: every object in order, or why there are none.
pub(super) fn converted(uid: &str, objects: &Result<Vec<Node>, String>) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Review<'a> {
        api_version: &'static str,
        kind: &'static str,
        response: Converted<'a>,
    }
    let (objects, result) = match objects {
        Ok(objects) => (objects.as_slice(), json!({ "status": "Success" })),
        Err(why) => (
            [].as_slice(),
            json!({ "status": "Failure", "message": why, "reason": "Invalid" }),
        ),
    };
    let review = Review {
        api_version: "apiextensions.k8s.io/v1",
        kind: "ConversionReview",
        response: Converted {
            uid,
            objects,
            result,
        },
    };
    serde_json::to_vec(&review).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(object: &str) -> String {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{
            "uid":"u","kind":{{"group":"g","version":"v1","kind":"K"}},
            "resource":{{"group":"g","version":"v1","resource":"ks"}},"operation":"CREATE",
            "userInfo":{{"username":"me","groups":["a"]}},"object":{object},"oldObject":null,"options":{{}}}}}}"#
        )
    }

    #[test]
    fn a_request_is_read_and_its_parts_may_be_unreadable() {
        let request = Admission::parse(review(r#"{"spec":{"a":1}}"#).as_bytes()).unwrap();
        assert_eq!(request.operation(), Some(Operation::Create));
        assert_eq!(
            request.object().unwrap().to_json(),
            json!({ "spec": { "a": 1 } })
        );
        assert_eq!(request.old_object().unwrap(), Node::Null);
        assert!(!request.is_dry_run());

        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        let request = Admission::parse(review(&deep).as_bytes()).unwrap();
        assert!(matches!(
            request.object(),
            Err(Malformed::Field {
                field: "object",
                ..
            })
        ));

        for other in ["", "[]", "{}", r#"{"kind":"Pod","request":{}}"#, "\u{0}"] {
            assert!(Admission::parse(other.as_bytes()).is_err(), "{other}");
            assert!(Conversion::parse(other.as_bytes()).is_err(), "{other}");
        }
        let wrong = review("{}").replace("AdmissionReview", "Other");
        assert!(Admission::parse(wrong.as_bytes()).is_err());
    }

    #[test]
    fn responses_have_the_form_that_the_api_server_expects() {
        let accepted = Answer::default().review("u");
        assert_eq!(accepted["response"], json!({ "uid": "u", "allowed": true }));
        let refused = Answer::denied("no").review("u");
        assert_eq!(refused["response"]["status"]["message"], "no");
        assert_eq!(refused["response"]["status"]["code"], 403);
        let objects = vec![Node::from(&json!({ "a": 1 }))];
        let read = |bytes: Vec<u8>| serde_json::from_slice::<Value>(&bytes).unwrap();
        let done = read(converted("u", &Ok(objects)));
        assert_eq!(
            done["response"],
            json!({ "uid": "u", "convertedObjects": [{ "a": 1 }], "result": { "status": "Success" } })
        );
        let failed = read(converted("u", &Err("no path".to_owned())));
        assert_eq!(failed["response"]["result"]["message"], "no path");
    }
}
