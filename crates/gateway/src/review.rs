//! The reviews that the API server sends, and their responses.
//!
//! Source: Kubernetes API reference, `AdmissionReview` of `admission.k8s.io/v1` and `ConversionReview` of
//! `apiextensions.k8s.io/v1`.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use orkestra_engine::admission::PatchOp;
use orkestra_language::api::Operation;
use orkestra_object::value::{Fault, Node, Projection};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

/// A request for admission.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Admission {
    /// Echoed in the response.
    pub(crate) uid: String,
    /// The kind of `object`.
    pub(crate) kind: ReviewKind,
    /// The resource of `object`.
    pub(crate) resource: ReviewResource,
    /// The subresource; empty for the object itself.
    #[serde(default)]
    pub(crate) sub_resource: String,
    /// The name; empty if the API server generates it later.
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    pub(crate) operation: String,
    #[serde(default)]
    pub(crate) user_info: RequestUser,
    /// Null if it is deleted. Parsed later, since it may be nested too deeply.
    #[serde(default)]
    object: Option<Box<RawValue>>,
    /// Null if it is created.
    #[serde(default)]
    old_object: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) dry_run: Option<bool>,
}

/// Group, version and kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReviewKind {
    pub(crate) group: String,
    pub(crate) version: String,
    #[serde(rename = "kind")]
    pub(crate) name: String,
}

/// Group, version and plural.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReviewResource {
    pub(crate) group: String,
    pub(crate) version: String,
    #[serde(rename = "resource")]
    pub(crate) plural: String,
}

/// The user of a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RequestUser {
    pub(crate) username: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

/// A request for conversion.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversionRequest {
    /// Echoed in the response.
    pub(crate) uid: String,
    #[serde(rename = "desiredAPIVersion")]
    pub(crate) desired_api_version: String,
    /// Parsed later, since they may be nested deeply.
    pub(crate) objects: Vec<Box<RawValue>>,
}

/// A body is not JSON, or another document.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not an {kind}: {why}")]
pub(crate) struct Malformed {
    /// The expected kind.
    kind: &'static str,
    /// The error of the parser.
    why: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<T> {
    kind: String,
    request: T,
}

fn parse<T: for<'a> Deserialize<'a>>(kind: &'static str, body: &[u8]) -> Result<T, Malformed> {
    let malformed = |why: String| Malformed { kind, why };
    let review: Review<T> =
        serde_json::from_slice(body).map_err(|error| malformed(error.to_string()))?;
    if review.kind == kind {
        Ok(review.request)
    } else {
        Err(malformed("`kind` is not the expected one".to_owned()))
    }
}

/// An object of a review, as far as it could be decoded.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decoded {
    /// The object: the whole of it, or what the projection keeps of it and can be decoded. Null if there is none.
    pub(crate) node: Node,
    /// True if it is not the whole object.
    pub(crate) is_partial: bool,
    /// A part that the projection keeps and that cannot be decoded.
    pub(crate) fault: Option<Fault>,
}

impl Decoded {
    /// Decodes the whole object. If that fails, such as for one that is nested too deeply, it decodes what `projection` keeps: a
    /// part that no rule reads must not keep the object from being changed or deleted.
    fn of(raw: Option<&RawValue>, projection: impl FnOnce() -> Projection) -> Self {
        let Some(raw) = raw else {
            return Self::default();
        };
        if let Ok(node) = serde_json::from_str(raw.get()) {
            return Self {
                node,
                ..Self::default()
            };
        }
        let mut node = projection().decode(raw.get().as_bytes());
        let fault = Fault::all_of(&node).into_iter().next();
        if let Node::Map(fields) = &mut node {
            fields.remove(Fault::MARK);
        }
        Self {
            node,
            is_partial: true,
            fault,
        }
    }
}

impl Admission {
    /// Parses an `AdmissionReview`.
    ///
    /// # Errors
    /// [`Malformed`].
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        parse("AdmissionReview", body)
    }

    /// Returns the object, null if it is deleted: the whole, or what `projection` keeps of one that cannot be decoded.
    pub(crate) fn object(&self, projection: impl FnOnce() -> Projection) -> Decoded {
        Decoded::of(self.object.as_deref(), projection)
    }

    /// Returns the object before, null if it is created, in the same way.
    pub(crate) fn old_object(&self, projection: impl FnOnce() -> Projection) -> Decoded {
        Decoded::of(self.old_object.as_deref(), projection)
    }

    /// Returns the operation; none for `CONNECT`.
    pub(crate) fn operation(&self) -> Option<Operation> {
        match self.operation.as_str() {
            "CREATE" => Some(Operation::Create),
            "UPDATE" => Some(Operation::Update),
            "DELETE" => Some(Operation::Delete),
            _ => None,
        }
    }

    /// True if nothing is stored.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run == Some(true)
    }
}

impl ConversionRequest {
    /// Parses a `ConversionReview`.
    ///
    /// # Errors
    /// [`Malformed`].
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        parse("ConversionReview", body)
    }

    /// Returns the group and kind of the first object; none if there is none, or if it has none.
    pub(crate) fn kind(&self) -> Option<(String, String)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed {
            api_version: String,
            kind: String,
        }
        let typed: Typed = serde_json::from_str(self.objects.first()?.get()).ok()?;
        let (group, _) = typed.api_version.split_once('/')?;
        Some((group.to_owned(), typed.kind))
    }
}

/// The response to a request for admission.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// The message of a refusal; none if the request is accepted.
    pub(crate) denial: Option<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) patch: Vec<PatchOp>,
}

/// The status code of a refusal by a rule.
const FORBIDDEN: u16 = 403;

impl Answer {
    /// Refuses the request.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self {
            denial: Some(message.into()),
            ..Self::default()
        }
    }

    /// Returns the review to send.
    pub(crate) fn review(&self, uid: &str) -> Value {
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
    objects: &'a [Box<RawValue>],
    result: Value,
}

/// Returns the bytes of the response to a request for conversion: every object in order, or why there are none.
pub(crate) fn converted(uid: &str, objects: &Result<Vec<Box<RawValue>>, String>) -> Vec<u8> {
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
    use orkestra_object::value::Path;

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
            request.object(Projection::whole).node.to_json(),
            json!({ "spec": { "a": 1 } })
        );
        assert_eq!(request.old_object(Projection::whole), Decoded::default());
        assert!(!request.is_dry_run());

        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        let object = format!(r#"{{"spec":{{"size":3,"notes":{deep}}}}}"#);
        let request = Admission::parse(review(&object).as_bytes()).unwrap();
        let reads = |path: &str| Projection::new([&Path::parse(path).unwrap()]);
        let read = request.object(|| reads("spec.size"));
        assert_eq!((read.is_partial, read.fault), (true, None));
        assert_eq!(read.node.to_json(), json!({ "spec": { "size": 3 } }));
        let fault = request.object(|| reads("spec.notes")).fault.unwrap();
        assert_eq!(
            fault.to_string(),
            "`spec.notes` is nested more than 128 levels deep"
        );

        for other in ["", "[]", "{}", r#"{"kind":"Pod","request":{}}"#, "\u{0}"] {
            assert!(Admission::parse(other.as_bytes()).is_err(), "{other}");
            assert!(
                ConversionRequest::parse(other.as_bytes()).is_err(),
                "{other}"
            );
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
        let objects = vec![RawValue::from_string(r#"{"a":1}"#.to_owned()).unwrap()];
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
