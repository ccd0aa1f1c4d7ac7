//! Errors of the API server.
//!
//! One file: one table from responses of the API server to errors.

use std::{io, time::Duration};

use kube::core::Status;
use orkestra_ground::chain;
use orkestra_object::message::{MESSAGE_BYTES, cut_message};
use orkestra_object::value::{Cause as FaultCause, Fault, Node, Path, Projection};

use super::Served;

/// Replaces a message that may contain values of a Secret.
const WITHHELD: &str =
    "the API server's message is not shown, because it may contain values of the Secret";

/// One of several causes that the API server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldManagerConflict`, `FieldValueInvalid`…
    pub reason: String,
    /// Path of the field, as the API server writes it: `.spec.replicas`.
    pub field: String,
    /// The problem.
    pub message: String,
    /// Whether the only problem is that the field is immutable once the object exists.
    pub is_immutable: bool,
}

impl Cause {
    /// Returns the field manager that owns the field, for a cause of an apply conflict.
    pub fn manager(&self) -> Option<&str> {
        if self.reason != "FieldManagerConflict" {
            return None;
        }
        let (_, rest) = self.message.split_once("conflict with \"")?;
        rest.split_once('"').map(|(manager, _)| manager)
    }

    /// True if the field is owned by an update, not by an apply. Source: apimachinery's `printManager`: an update is reported as
    /// `"kubectl" using apps/v1 at <time>`, an apply only by its name.
    pub fn by_update(&self) -> bool {
        self.message.contains("\" using ")
    }
}

/// Why a request failed. Messages never contain values of Secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// There is no such object, or the namespace to create it in does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The API server does not serve the kind in this version.
    #[error("the API server does not serve {0}")]
    NotServed(String),
    /// Another manager owns fields (`causes` lists them), or the resourceVersion or uid is not the object's (no causes).
    #[error("{message}")]
    Conflict {
        /// The API server's message.
        message: String,
        /// A cause of reason `FieldManagerConflict` for each field.
        causes: Vec<Cause>,
    },
    /// An object of that name exists.
    #[error("{0}")]
    AlreadyExists(String),
    /// A permission is missing.
    #[error("{message}")]
    Forbidden {
        /// The verb: `get`, `list`, `watch`, `create`, `patch`, `delete`.
        verb: &'static str,
        /// REST plural.
        resource: String,
        /// API group, empty for the core group.
        group: String,
        /// Namespace; `None` for all.
        namespace: Option<String>,
        /// The API server's message.
        message: String,
    },
    /// Admission denied the request: a quota, a policy, a webhook, a namespace that is being deleted. Or the object would grant
    /// permissions that we do not have: a custom resource may choose them, so no permission of the operator is missing.
    #[error("{message}")]
    Denied {
        /// The API server's message.
        message: String,
    },
    /// The object's namespace is being deleted: nothing can be created in it.
    #[error("{0}")]
    Terminating(String),
    /// The object is not valid.
    #[error("{message}")]
    Invalid {
        /// The API server's message.
        message: String,
        /// A cause for each field.
        causes: Vec<Cause>,
    },
    /// The object exists, but is unreadable.
    #[error("{0}")]
    Unreadable(String),
    /// Too many requests.
    #[error("the API server throttles requests")]
    TooManyRequests {
        /// The earliest time for a retry.
        retry_after: Option<Duration>,
    },
    /// The resourceVersion or page is too old.
    #[error("{0}")]
    Gone(String),
    /// The API server did not answer, or could not.
    #[error("{0}")]
    Unavailable(String),
    /// Any other error response.
    #[error("{message} (HTTP {code})")]
    Other {
        /// HTTP status.
        code: u16,
        /// The API server's message.
        message: String,
    },
}

impl ClusterError {
    /// True if other managers own fields; false if the resourceVersion is outdated.
    pub fn is_field_conflict(&self) -> bool {
        matches!(self, Self::Conflict { causes, .. } if causes.iter().any(|cause| cause.reason == "FieldManagerConflict"))
    }
}

/// The subject of a request, for its errors.
pub(crate) struct RequestSubject<'a> {
    verb: &'static str,
    group: &'a str,
    resource: &'a str,
    namespace: Option<&'a str>,
}

impl<'a> RequestSubject<'a> {
    pub(crate) fn of(verb: &'static str, kind: &'a Served, namespace: Option<&'a str>) -> Self {
        Self {
            verb,
            group: &kind.group,
            resource: &kind.plural,
            namespace,
        }
    }

    pub(crate) fn discovery(group: &'a str) -> Self {
        Self {
            verb: "get",
            group,
            resource: "",
            namespace: None,
        }
    }

    pub(crate) fn review(group: &'a str, resource: &'a str) -> Self {
        Self {
            verb: "create",
            group,
            resource,
            namespace: None,
        }
    }

    /// Parses a response; if it is partly unreadable and `in_part` is set, returns the rest. A response that is not JSON is
    /// probably a proxy's page, so it counts as transient.
    pub(crate) fn parse(text: &str, in_part: bool) -> Result<Node, ClusterError> {
        let error = match serde_json::from_str(text) {
            Ok(node) => return Ok(node),
            Err(error) => error,
        };
        // serde_json's own message may quote a value.
        match FaultCause::of(&error) {
            FaultCause::Syntax => Err(ClusterError::Unavailable(format!(
                "unexpected response (line {}, column {})",
                error.line(),
                error.column()
            ))),
            _ if in_part => Ok(Projection::whole().decode(text.as_bytes())),
            cause => {
                let faults = Fault::all_of(&Projection::whole().decode(text.as_bytes()));
                let whole = || Fault {
                    path: Path::root(),
                    cause,
                };
                let fault = faults.into_iter().next().unwrap_or_else(whole);
                Err(ClusterError::Unreadable(fault.to_string()))
            }
        }
    }

    /// Returns the error for a request that could not be built.
    pub(crate) fn unwritable(&self) -> ClusterError {
        ClusterError::Invalid {
            message: format!(
                "cannot {} {}: the request is not valid",
                self.verb, self.resource
            ),
            causes: Vec::new(),
        }
    }

    /// Classifies an error of the client.
    pub(crate) fn sort(&self, error: kube::Error) -> ClusterError {
        match error {
            kube::Error::Api(status) => self.sort_status(&status),
            kube::Error::SerdeError(error) => ClusterError::Unavailable(format!(
                "cannot decode the response (column {})",
                error.column()
            )),
            error => ClusterError::Unavailable(shorten(chain(&error))),
        }
    }

    /// Classifies an error that came as a watch event.
    pub(crate) fn sort_refusal(&self, status: &Node) -> ClusterError {
        let read = serde_json::from_value::<Status>(status.to_json());
        let read = read
            .ok()
            .filter(|status| status.code != 0 || !status.reason.is_empty());
        read.map_or_else(
            || {
                ClusterError::Unavailable(
                    "the API server reported an error that cannot be read".to_owned(),
                )
            },
            |status| self.sort_status(&status),
        )
    }

    // Over 60 lines: a table, one arm for each status of the API server.
    fn sort_status(&self, status: &Status) -> ClusterError {
        let secret = self.group.is_empty() && self.resource == "secrets";
        let retry_after = status
            .details
            .as_ref()
            .map(|details| details.retry_after_seconds)
            .filter(|seconds| *seconds > 0);
        let causes = || {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            causes
                .map(|cause| Cause {
                    reason: cause.reason.clone(),
                    field: cause.field.clone(),
                    message: match &*cause.reason {
                        "FieldManagerConflict" => shorten(cause.message.clone()),
                        _ if secret => WITHHELD.to_owned(),
                        _ => shorten(cause.message.clone()),
                    },
                    is_immutable: says_immutable(&cause.message),
                })
                .collect()
        };
        let message = shorten(if status.message.is_empty() {
            status.reason.clone()
        } else {
            status.message.clone()
        });
        let guarded = || {
            if secret {
                WITHHELD.to_owned()
            } else {
                message.clone()
            }
        };
        match (status.code, &*status.reason) {
            (404, _) if names_an_object(status) => ClusterError::NotFound(message),
            (404, _) => ClusterError::NotServed(self.kind()),
            (409, "AlreadyExists") => ClusterError::AlreadyExists(message),
            (409, _) => ClusterError::Conflict {
                message: if secret {
                    conflict_words(&message)
                } else {
                    message
                },
                causes: causes(),
            },
            (403, _) if is_terminating(status) => ClusterError::Terminating(guarded()),
            (403, _) if !lacks_right(&message) => ClusterError::Denied { message: guarded() },
            (403, _) => ClusterError::Forbidden {
                verb: self.verb,
                resource: self.resource.to_owned(),
                group: self.group.to_owned(),
                namespace: self.namespace.map(str::to_owned),
                message,
            },
            (422, _) if is_of_another(status) => ClusterError::Conflict {
                message: guarded(),
                causes: Vec::new(),
            },
            (422, _) => ClusterError::Invalid {
                message: guarded(),
                causes: causes(),
            },
            (410, _) | (_, "Expired" | "Gone") => ClusterError::Gone(message),
            // The API server has not reached this version, and may never: it was restored to an older state.
            (504, _) if is_from_the_future(status) => ClusterError::Gone(message),
            (429, _) => ClusterError::TooManyRequests {
                retry_after: retry_after.map(|seconds| Duration::from_secs(seconds.into())),
            },
            // Not a failure of the API server: the same request fails until something changes.
            (500, _) if is_undecodable(&message) => ClusterError::Invalid {
                message: guarded(),
                causes: causes(),
            },
            (0 | 500.., _) => ClusterError::Unavailable(guarded()),
            (400 | 413 | 415, _) => ClusterError::Invalid {
                message: guarded(),
                causes: causes(),
            },
            (code, _) => ClusterError::Other {
                code,
                message: guarded(),
            },
        }
    }

    fn kind(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

/// A path that does not exist is answered without a `Status`, or with one that names no object.
fn names_an_object(status: &Status) -> bool {
    status.reason == "NotFound"
        && status
            .details
            .as_ref()
            .is_some_and(|details| !details.name.is_empty())
}

/// True if a 403 means that the namespace is being deleted. Source: Kubernetes, the `NamespaceLifecycle` admission.
fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
}

/// True if a cause means that a field is immutable once the object exists. Source: the messages of Kubernetes' update validation
/// in `pkg/apis/*/validation`.
fn says_immutable(message: &str) -> bool {
    const WORDS: [&str; 8] = [
        "immutable",
        "may not change",
        "may not be changed",
        "cannot change",
        "cannot be changed",
        "can not be less than",
        "updates to ",
        "cannot be updated",
    ];
    WORDS.iter().any(|words| message.contains(words))
}

/// True if a 500 means that the object of the request cannot be decoded, does not match its schema, or is larger than etcd
/// stores. Source: Kubernetes, `structuredMergeManager.Apply` and `resource.ParseQuantity`; etcd, `ErrRequestTooLarge`; gRPC,
/// the limit of a message: the API server passes these errors on unchanged.
fn is_undecodable(message: &str) -> bool {
    const WORDS: [&str; 8] = [
        "etcdserver: request is too large",
        "trying to send message larger than max",
        "quantities must match the regular expression",
        "unable to parse quantity's suffix",
        "unable to parse numeric part of quantity",
        "failed to create typed patch object",
        "failed to create typed new object",
        "json: cannot unmarshal",
    ];
    !message.contains("webhook") && WORDS.iter().any(|words| message.contains(words))
}

/// True if a 422 means that the object of that name has another uid than the request: it was deleted and recreated.
///
/// Source: Kubernetes, `ValidateObjectMetaUpdate`.
fn is_of_another(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.field == "metadata.uid")
}

/// True if the requested resourceVersion is newer than the API server's.
///
/// Source: apiserver, `storage.NewTooLargeResourceVersionError`.
fn is_from_the_future(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut causes = causes.into_iter();
    causes.any(|cause| cause.reason == "ResourceVersionTooLarge")
        || status.message.contains("Too large resource version")
}

/// A conflict's message contains fields and managers, never values; any other form is withheld.
fn conflict_words(message: &str) -> String {
    let known = message.starts_with("Apply failed with ")
        || message.starts_with("Operation cannot be fulfilled on ");
    if known {
        message.to_owned()
    } else {
        WITHHELD.to_owned()
    }
}

/// True if a 403 comes from the authorizer, or from admission that found a permission missing; other admission uses the code as
/// well.
fn lacks_right(message: &str) -> bool {
    const WORDS: [&str; 3] = [" cannot ", "can't set finalizers", "not allowed to"];
    // Such messages quote the object, or are written by the author of a policy, so they may contain any of these words.
    !is_escalation(message)
        && !is_refusal(message)
        && WORDS.iter().any(|words| message.contains(words))
}

/// True if a 403 comes from a webhook or from a policy of the API server.
///
/// Source: Kubernetes, `ToStatusErr` of webhooks; the dispatcher of `ValidatingAdmissionPolicies`.
fn is_refusal(message: &str) -> bool {
    message.contains("denied the request") || message.contains("denied request: ")
}

/// True if a 403 means that a role or a binding would grant permissions that its writer does not have.
///
/// Source: Kubernetes, `ConfirmNoEscalation`.
fn is_escalation(message: &str) -> bool {
    message.contains("is attempting to grant RBAC permissions not currently held")
}

/// The error for a connection that broke during a response.
pub(crate) fn broken(error: &io::Error) -> ClusterError {
    ClusterError::Unavailable(shorten(chain(error)))
}

/// True if the API server gave no response, which the breaker counts.
pub fn is_missed<T>(answer: &Result<T, ClusterError>) -> bool {
    matches!(answer, Err(ClusterError::Unavailable(_)))
}

fn shorten(text: String) -> String {
    if text.len() > MESSAGE_BYTES {
        cut_message(&text)
    } else {
        text
    }
}
