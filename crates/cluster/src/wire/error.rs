//! What the API server refused, and what follows from it.

use std::{io, time::Duration};

use kube::core::Status;
use orkestra_core::{
    api::conditions::{MESSAGE_BYTES, cut_message},
    reasons::Reason,
    value::{Cause as FaultCause, Fault, Node, Path, Sieve},
};
use orkestra_ground::chain;

use super::Served;

/// Stands for a message that may hold a Secret's values.
const WITHHELD: &str = "the API server's words are withheld, they may hold values of the Secret";

/// One of several reasons that the API server gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldManagerConflict`, `FieldValueInvalid`…
    pub reason: String,
    /// Path of the field, as the API server writes it: `.spec.replicas`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// Whether it is only that the field cannot change once the object exists.
    pub is_immutable: bool,
}

impl Cause {
    /// The field manager that holds the field, of a cause of a conflict by apply.
    pub fn manager(&self) -> Option<&str> {
        if self.reason != "FieldManagerConflict" {
            return None;
        }
        let (_, rest) = self.message.split_once("conflict with \"")?;
        rest.split_once('"').map(|(manager, _)| manager)
    }

    /// Whether the field is held by an update, not by an apply. Source: apimachinery's `printManager`: an update is told
    /// as `"kubectl" using apps/v1 at <time>`, an apply by its name alone.
    pub fn by_update(&self) -> bool {
        self.message.contains("\" using ")
    }
}

/// Why a request failed. Messages never hold values of Secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// There is no such object, or no such namespace to make it in.
    #[error("{0}")]
    NotFound(String),
    /// The API server does not serve the kind, in this version.
    #[error("the API server does not serve {0}")]
    NotServed(String),
    /// Another manager holds fields (`causes` say which), or the resourceVersion or uid is not the object's (no causes).
    #[error("{message}")]
    Conflict {
        /// What the API server says.
        message: String,
        /// A cause of reason `FieldManagerConflict` for each field.
        causes: Vec<Cause>,
    },
    /// An object of that name exists.
    #[error("{0}")]
    AlreadyExists(String),
    /// A right is missing.
    #[error("{message}")]
    Forbidden {
        /// What was asked: `get`, `list`, `watch`, `create`, `patch`, `delete`.
        verb: &'static str,
        /// REST plural.
        resource: String,
        /// API group, empty for the core group.
        group: String,
        /// Namespace; none for all.
        namespace: Option<String>,
        /// What the API server says.
        message: String,
    },
    /// Admission said no: a quota, a policy, a webhook, a namespace that is being deleted.
    #[error("{message}")]
    Denied {
        /// What the API server says.
        message: String,
    },
    /// The object's namespace is being deleted: nothing is made there any more.
    #[error("{0}")]
    Terminating(String),
    /// The object is not valid.
    #[error("{message}")]
    Invalid {
        /// What the API server says.
        message: String,
        /// A cause for each field.
        causes: Vec<Cause>,
    },
    /// The object is there, and cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// Too much at once.
    #[error("the API server asks for fewer requests")]
    TooManyRequests {
        /// Not before.
        retry_after: Option<Duration>,
    },
    /// The resourceVersion or page is too old.
    #[error("{0}")]
    Gone(String),
    /// The API server did not answer, or could not.
    #[error("{0}")]
    Unavailable(String),
    /// Anything else that it refused.
    #[error("{message} (HTTP {code})")]
    Other {
        /// HTTP status.
        code: u16,
        /// What the API server says.
        message: String,
    },
}

impl WireError {
    /// The reason that conditions give for it, as the answer to a write; whether it is permanent, and when it is tried again, is the reason's.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Forbidden { .. } => Reason::Forbidden,
            Self::Denied { .. } | Self::Terminating(_) => Reason::Denied,
            Self::NotServed(_) => Reason::KindNotServed,
            Self::NotFound(_) => Reason::NamespaceMissing,
            Self::Invalid { .. } => Reason::Invalid,
            Self::Unreadable(_) => Reason::Unreadable,
            Self::Other { code, .. }
                if (400..500).contains(code) && !matches!(code, 401 | 408 | 425) =>
            {
                Reason::Invalid
            }
            Self::Conflict { .. } | Self::AlreadyExists(_) => Reason::WriteConflict,
            Self::TooManyRequests { .. }
            | Self::Gone(_)
            | Self::Unavailable(_)
            | Self::Other { .. } => Reason::Unavailable,
        }
    }

    /// Whether the same request will be refused again until somebody changes it.
    pub fn is_permanent(&self) -> bool {
        self.reason().is_permanent()
    }

    /// Whether fields are held by other managers, not the resourceVersion outdated.
    pub fn is_field_conflict(&self) -> bool {
        matches!(self, Self::Conflict { causes, .. } if causes.iter().any(|cause| cause.reason == "FieldManagerConflict"))
    }
}

/// What a request was about, for its errors.
pub(super) struct Asked<'a> {
    verb: &'static str,
    group: &'a str,
    resource: &'a str,
    namespace: Option<&'a str>,
}

impl<'a> Asked<'a> {
    pub(super) fn of(verb: &'static str, kind: &'a Served, namespace: Option<&'a str>) -> Self {
        Self {
            verb,
            group: &kind.group,
            resource: &kind.plural,
            namespace,
        }
    }

    pub(super) fn discovery(group: &'a str) -> Self {
        Self {
            verb: "get",
            group,
            resource: "",
            namespace: None,
        }
    }

    /// Reads an answer; of one that cannot be read whole the rest, where `in_part` says so. What is not JSON is some proxy's
    /// page, so it passes.
    pub(super) fn parse(text: &str, in_part: bool) -> Result<Node, WireError> {
        let error = match serde_json::from_str(text) {
            Ok(node) => return Ok(node),
            Err(error) => error,
        };
        // serde_json's own message may quote a value.
        match FaultCause::of(&error) {
            FaultCause::Syntax => Err(WireError::Unavailable(format!(
                "the answer is not what was asked for (line {}, column {})",
                error.line(),
                error.column()
            ))),
            _ if in_part => Ok(Sieve::whole().decode(text.as_bytes())),
            cause => {
                let faults = Fault::all_of(&Sieve::whole().decode(text.as_bytes()));
                let whole = || Fault {
                    path: Path::root(),
                    cause,
                };
                let fault = faults.into_iter().next().unwrap_or_else(whole);
                Err(WireError::Unreadable(fault.to_string()))
            }
        }
    }

    /// The request itself could not be written.
    pub(super) fn unwritable(&self) -> WireError {
        WireError::Invalid {
            message: format!(
                "cannot {} {}: no legal request comes of it",
                self.verb, self.resource
            ),
            causes: Vec::new(),
        }
    }

    /// Sorts an error of the client.
    pub(super) fn sort(&self, error: kube::Error) -> WireError {
        match error {
            kube::Error::Api(status) => self.sort_status(&status),
            kube::Error::SerdeError(error) => WireError::Unavailable(format!(
                "the answer cannot be read (column {})",
                error.column()
            )),
            error => WireError::Unavailable(shorten(chain(&error))),
        }
    }

    /// Sorts an error that came as an event of a watch.
    pub(super) fn sort_refusal(&self, status: &Node) -> WireError {
        let read = serde_json::from_value::<Status>(status.to_json());
        let read = read
            .ok()
            .filter(|status| status.code != 0 || !status.reason.is_empty());
        read.map_or_else(
            || {
                WireError::Unavailable(
                    "the API server reported an error that cannot be read".to_owned(),
                )
            },
            |status| self.sort_status(&status),
        )
    }

    fn sort_status(&self, status: &Status) -> WireError {
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
            (404, _) if names_an_object(status) => WireError::NotFound(message),
            (404, _) => WireError::NotServed(self.kind()),
            (409, "AlreadyExists") => WireError::AlreadyExists(message),
            (409, _) => WireError::Conflict {
                message: if secret {
                    conflict_words(&message)
                } else {
                    message
                },
                causes: causes(),
            },
            (403, _) if is_terminating(status) => WireError::Terminating(guarded()),
            (403, _) if !lacks_right(&message) => WireError::Denied { message: guarded() },
            (403, _) => WireError::Forbidden {
                verb: self.verb,
                resource: self.resource.to_owned(),
                group: self.group.to_owned(),
                namespace: self.namespace.map(str::to_owned),
                message,
            },
            (422, _) if is_of_another(status) => WireError::Conflict {
                message: guarded(),
                causes: Vec::new(),
            },
            (422, _) => WireError::Invalid {
                message: guarded(),
                causes: causes(),
            },
            (410, _) | (_, "Expired" | "Gone") => WireError::Gone(message),
            // It has not come so far, and never may: it was put back to an older state.
            (504, _) if is_from_the_future(status) => WireError::Gone(message),
            (429, _) => WireError::TooManyRequests {
                retry_after: retry_after.map(|seconds| Duration::from_secs(seconds.into())),
            },
            // It says nothing of the API server: the same request fails until somebody changes it.
            (500, _) if is_undecodable(&message) => WireError::Invalid {
                message: guarded(),
                causes: causes(),
            },
            (0 | 500.., _) => WireError::Unavailable(guarded()),
            (400 | 413 | 415, _) => WireError::Invalid {
                message: guarded(),
                causes: causes(),
            },
            (code, _) => WireError::Other {
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

/// Of a path that leads nowhere the answer is no `Status`, or one that names nothing.
fn names_an_object(status: &Status) -> bool {
    status.reason == "NotFound"
        && status
            .details
            .as_ref()
            .is_some_and(|details| !details.name.is_empty())
}

/// Whether a 403 says that the namespace is being deleted. Source: Kubernetes, the `NamespaceLifecycle` admission.
fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
}

/// Whether a cause says that a field cannot change once the object exists. Source: Kubernetes, the validation of updates in
/// `pkg/apis/*/validation`, whose words these are.
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

/// Whether a 500 says that the object of the request cannot be decoded, or does not fit its schema. Source: Kubernetes,
/// `structuredMergeManager.Apply` and `resource.ParseQuantity`, whose errors the API server passes on as they are.
fn is_undecodable(message: &str) -> bool {
    const WORDS: [&str; 6] = [
        "quantities must match the regular expression",
        "unable to parse quantity's suffix",
        "unable to parse numeric part of quantity",
        "failed to create typed patch object",
        "failed to create typed new object",
        "json: cannot unmarshal",
    ];
    !message.contains("webhook") && WORDS.iter().any(|words| message.contains(words))
}

/// Whether a 422 says that the object of that name has another uid than the request: it was deleted and made again.
///
/// Source: Kubernetes, `ValidateObjectMetaUpdate`.
fn is_of_another(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.field == "metadata.uid")
}

/// Whether the resourceVersion that was asked for is newer than the API server's.
///
/// Source: apiserver, `storage.NewTooLargeResourceVersionError`.
fn is_from_the_future(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut causes = causes.into_iter();
    causes.any(|cause| cause.reason == "ResourceVersionTooLarge")
        || status.message.contains("Too large resource version")
}

/// A conflict's message names fields and managers, never values; but it is taken at its word only in that form.
fn conflict_words(message: &str) -> String {
    let known = message.starts_with("Apply failed with ")
        || message.starts_with("Operation cannot be fulfilled on ");
    if known {
        message.to_owned()
    } else {
        WITHHELD.to_owned()
    }
}

/// Whether a 403 is the authorizer's, or admission's that found a right missing; other admission uses the code as well.
fn lacks_right(message: &str) -> bool {
    const WORDS: [&str; 4] = [
        " cannot ",
        "can't set finalizers",
        "attempting to grant",
        "not allowed to",
    ];
    !message.contains("denied the request") && WORDS.iter().any(|words| message.contains(words))
}

/// A connection that broke while an answer came.
pub(super) fn broken(error: &io::Error) -> WireError {
    WireError::Unavailable(shorten(chain(error)))
}

/// Whether the API server gave no answer at all, which the breaker counts.
pub fn is_missed<T>(answer: &Result<T, WireError>) -> bool {
    matches!(answer, Err(WireError::Unavailable(_)))
}

fn shorten(text: String) -> String {
    if text.len() > MESSAGE_BYTES {
        cut_message(&text)
    } else {
        text
    }
}
