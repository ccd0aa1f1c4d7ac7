//! The consequences of errors of the API server.

use orkestra_cluster::requests::ClusterError;
use orkestra_language::reasons::Reason;

/// Returns the reason for conditions of an error, as the response to a write; the reason determines whether it is permanent, and when
/// the request is repeated.
pub(crate) fn reason_of(error: &ClusterError) -> Reason {
    match error {
        ClusterError::Forbidden { .. } => Reason::Forbidden,
        ClusterError::Denied { .. } | ClusterError::Terminating(_) => Reason::Denied,
        ClusterError::NotServed(_) => Reason::KindNotServed,
        ClusterError::NotFound(_) => Reason::NamespaceMissing,
        ClusterError::Invalid { .. } => Reason::Invalid,
        ClusterError::Unreadable(_) => Reason::Unreadable,
        ClusterError::Other { code, .. }
            if (400..500).contains(code) && !matches!(code, 401 | 408 | 425) =>
        {
            Reason::Invalid
        }
        ClusterError::Conflict { .. } | ClusterError::AlreadyExists(_) => Reason::WriteConflict,
        ClusterError::TooManyRequests { .. }
        | ClusterError::Gone(_)
        | ClusterError::Unavailable(_)
        | ClusterError::Other { .. } => Reason::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use orkestra_cluster::{
        requests::Served,
        watch::testing::{Server, status},
    };
    use orkestra_plan::ObjectKey;

    use super::*;

    /// The consequence of each response to a write: its reason, whether it is permanent, and when it is retried.
    // Over 60 lines: a table of responses.
    #[tokio::test(start_paused = true)]
    #[expect(clippy::too_many_lines, reason = "it is a table")]
    async fn every_refusal_is_permanent_or_transient_and_tried_again_in_its_time() {
        use orkestra_language::reasons::{
            Class::{self, Permanent, Transient},
            RetryWhen::{self, Backoff, OnChange, Slowly},
        };
        let kind = Served::namespaced("", "v1", "Pod", "pods");
        let key = ObjectKey {
            namespace: Some("shop".into()),
            name: "web".into(),
        };
        let missing = r#"{"kind":"Status","code":404,"reason":"NotFound","message":"namespaces \"x\" not found","details":{"name":"x","kind":"namespaces"}}"#;
        let going = r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"it is being terminated","details":{"causes":[{"reason":"NamespaceTerminating"}]}}"#;
        let table: [(u16, String, Reason, Class, RetryWhen); 21] = [
            (
                400,
                status(400, "BadRequest", "no"),
                Reason::Invalid,
                Permanent,
                OnChange,
            ),
            (
                401,
                status(401, "Unauthorized", "no"),
                Reason::Unavailable,
                Transient,
                Backoff,
            ),
            (
                403,
                status(403, "Forbidden", "user cannot patch pods"),
                Reason::Forbidden,
                Transient,
                Slowly,
            ),
            (
                403,
                status(403, "Forbidden", "exceeded quota: small"),
                Reason::Denied,
                Transient,
                Backoff,
            ),
            (403, going.to_owned(), Reason::Denied, Transient, Backoff),
            (
                404,
                missing.to_owned(),
                Reason::NamespaceMissing,
                Transient,
                Slowly,
            ),
            (
                404,
                "404 page not found".to_owned(),
                Reason::KindNotServed,
                Transient,
                Slowly,
            ),
            (
                405,
                status(405, "MethodNotAllowed", "no"),
                Reason::Invalid,
                Permanent,
                OnChange,
            ),
            (
                408,
                status(408, "Timeout", "no"),
                Reason::Unavailable,
                Transient,
                Backoff,
            ),
            (
                409,
                status(409, "Conflict", "no"),
                Reason::WriteConflict,
                Transient,
                Backoff,
            ),
            (
                409,
                status(409, "AlreadyExists", "no"),
                Reason::WriteConflict,
                Transient,
                Backoff,
            ),
            (
                410,
                status(410, "Gone", "no"),
                Reason::Unavailable,
                Transient,
                Backoff,
            ),
            (
                413,
                status(413, "RequestEntityTooLarge", "no"),
                Reason::Invalid,
                Permanent,
                OnChange,
            ),
            (
                415,
                status(415, "UnsupportedMediaType", "no"),
                Reason::Invalid,
                Permanent,
                OnChange,
            ),
            (
                422,
                status(422, "Invalid", "no"),
                Reason::Invalid,
                Permanent,
                OnChange,
            ),
            (
                429,
                status(429, "TooManyRequests", "no"),
                Reason::Unavailable,
                Transient,
                Backoff,
            ),
            (
                500,
                status(
                    500,
                    "InternalError",
                    "quantities must match the regular expression '^x$'",
                ),
                Reason::Invalid,
                Permanent,
                OnChange,
            ),
            (
                500,
                status(500, "InternalError", "etcdserver: request is too large"),
                Reason::Invalid,
                Permanent,
                OnChange,
            ),
            (
                500,
                status(500, "InternalError", "no"),
                Reason::Unavailable,
                Transient,
                Backoff,
            ),
            (
                503,
                status(503, "ServiceUnavailable", "no"),
                Reason::Unavailable,
                Transient,
                Backoff,
            ),
            (
                504,
                "<html>a proxy's page</html>".to_owned(),
                Reason::Unavailable,
                Transient,
                Backoff,
            ),
        ];
        for (code, body, reason, class, again) in table {
            let server = Server::new();
            server.answer(code, body.clone());
            let error = server.cluster().get(&kind, &key).await.unwrap_err();
            let about = reason_of(&error).about();
            assert_eq!(
                (reason_of(&error), about.class, about.again),
                (reason, class, again),
                "{code} {body}"
            );
        }
    }
}
