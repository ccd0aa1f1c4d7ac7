//! Error responses.

use std::fmt;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use orkestra_cluster::requests::ClusterError;
use schemars::JsonSchema;
use serde::Serialize;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ApiError {
    #[serde(skip)]
    status: StatusCode,
    /// The error.
    error: String,
    /// A hint for the fix.
    #[serde(skip_serializing_if = "String::is_empty")]
    hint: String,
    /// Paths that distinguish operators or instances of the same name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<String>,
}

impl ApiError {
    /// A response with that status.
    pub fn new(status: StatusCode, error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            hint: hint.into(),
            candidates: Vec::new(),
        }
    }

    /// True for status 404.
    pub fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Status 400.
    pub fn bad_request(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, hint)
    }

    /// Status 404.
    pub fn not_found(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error, hint)
    }

    /// Status 409: several objects have the name; `candidates` are the paths that distinguish them.
    pub fn ambiguous(error: impl Into<String>, candidates: Vec<String>) -> Self {
        let hint = "use one of the candidates";
        Self {
            candidates,
            ..Self::new(StatusCode::CONFLICT, error, hint)
        }
    }
}

/// The error, without its hint.
impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}

impl ApiError {
    /// Status 502: the API server did not answer.
    pub(crate) fn unanswered() -> Self {
        Self::new(
            StatusCode::BAD_GATEWAY,
            "the API server did not answer",
            "check whether the API server is reachable",
        )
    }

    /// The error for a request that the API server refused with that status and message.
    pub(crate) fn refused(status: StatusCode, message: String) -> Self {
        match status {
            StatusCode::NOT_FOUND => {
                Self::not_found("the object does not exist in the cluster", "")
            }
            StatusCode::FORBIDDEN => Self::new(
                StatusCode::BAD_GATEWAY,
                message,
                "`ork generate rbac` prints the required rules",
            ),
            StatusCode::GONE => Self::new(
                StatusCode::GONE,
                message,
                "the token of `continue` has expired: start again with the first page",
            ),
            StatusCode::BAD_REQUEST => Self::bad_request(message, ""),
            _ => Self::new(StatusCode::BAD_GATEWAY, message, ""),
        }
    }
}

/// Converts the API server's response to our own request.
impl From<ClusterError> for ApiError {
    fn from(error: ClusterError) -> Self {
        match error {
            // About connections, and only logged.
            ClusterError::Unavailable(error) => {
                tracing::warn!(error, "cannot read a page from the API server");
                Self::unanswered()
            }
            ClusterError::Forbidden { message, .. } => {
                Self::refused(StatusCode::FORBIDDEN, message)
            }
            error => Self::refused(StatusCode::BAD_GATEWAY, error.to_string()),
        }
    }
}

/// Shortens a text for a message.
pub(crate) fn short(text: &str) -> String {
    cut(text, 120)
}

/// Cuts a text to `most` characters, with an ellipsis if it is longer.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut start: String = text.chars().take(most).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}
