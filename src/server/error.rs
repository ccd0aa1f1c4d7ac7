//! Answers that are no success.

use std::fmt;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

/// What went wrong with a request: `{error, hint, candidates}`, where the last two are left out when empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiError {
    #[serde(skip)]
    status: StatusCode,
    error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hint: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<String>,
}

impl ApiError {
    /// An answer with that status.
    pub fn new(status: StatusCode, error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            hint: hint.into(),
            candidates: Vec::new(),
        }
    }

    /// Whether the answer is 404.
    pub fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// 400.
    pub fn bad_request(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, hint)
    }

    /// 404.
    pub fn not_found(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error, hint)
    }

    /// 409: several things have the name; `candidates` are the paths that tell them apart.
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

/// The API server's answer to a request of ours.
impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        let hint = "see whether the API server can be reached";
        match error {
            kube::Error::Api(status) => match status.code {
                404 => Self::not_found("the cluster has no such object", ""),
                403 => Self::new(
                    StatusCode::BAD_GATEWAY,
                    status.message,
                    "`ork generate rbac` prints the rights",
                ),
                _ => Self::new(StatusCode::BAD_GATEWAY, status.message, ""),
            },
            kube::Error::Discovery(_) => {
                Self::not_found("the cluster does not serve this kind", "")
            }
            // What it holds beside is about connections, and for the log.
            other => {
                tracing::warn!(error = %other, "a page could not be read from the API server");
                Self::new(
                    StatusCode::BAD_GATEWAY,
                    "the API server did not answer",
                    hint,
                )
            }
        }
    }
}
