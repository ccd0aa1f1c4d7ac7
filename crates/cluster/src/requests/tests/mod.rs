//! The errors of requests.

mod requests;

use orkestra_object::{ObjectKey, message::MESSAGE_BYTES};

use super::*;
use crate::watch::testing::{Server, status};

fn served(group: &str, plural: &str) -> Served {
    Served::namespaced(group, "v1", "Kind", plural)
}

fn key() -> ObjectKey {
    ObjectKey {
        namespace: Some("shop".into()),
        name: "web".into(),
    }
}

/// The error of a GET with this response.
async fn refused(kind: &Served, code: u16, body: impl Into<String>) -> ClusterError {
    let server = Server::new();
    server.answer(code, body);
    server.cluster().get(kind, &key()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn an_unknown_object_and_an_unknown_kind_are_distinguished() {
    let named = r#"{"kind":"Status","code":404,"reason":"NotFound","message":"pods \"web\" not found","details":{"name":"web","kind":"pods"}}"#;
    assert!(
        matches!(refused(&served("", "pods"), 404, named).await, ClusterError::NotFound(message) if message.contains("web"))
    );
    let unknown = refused(
        &served("shop.example", "websites"),
        404,
        "404 page not found",
    )
    .await;
    assert_eq!(
        unknown,
        ClusterError::NotServed("websites.shop.example".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_of_a_command_is_repeated_when_the_api_server_says_so() {
    let throttled = || status(429, "TooManyRequests", "storage is (re)initializing");
    let pod = r#"{"kind":"Pod","metadata":{"name":"web"}}"#;
    let server = Server::new();
    for _ in 0..2 {
        server.answer(429, throttled());
    }
    server.answer(200, pod);
    let start = Instant::now();
    let patient = server.cluster().patient(Duration::from_secs(5));
    assert!(patient.get(&served("", "pods"), &key()).await.is_ok());
    assert!(start.elapsed() >= THROTTLED * 2, "{:?}", start.elapsed());
    // An operator waits in its own way, and a command gives up after its time.
    for (patience, answers) in [(Duration::ZERO, 1), (Duration::from_millis(1500), 2)] {
        let server = Server::new();
        for _ in 0..answers {
            server.answer(429, throttled());
        }
        let cluster = server.cluster().patient(patience);
        let error = cluster.get(&served("", "pods"), &key()).await.unwrap_err();
        assert!(
            matches!(error, ClusterError::TooManyRequests { .. }),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_of_fields_name_their_managers() {
    let body = r#"{"kind":"Status","code":409,"reason":"Conflict","message":"Apply failed with 2 conflicts","details":{"causes":[
        {"reason":"FieldManagerConflict","message":"conflict with \"helm\"","field":".spec.a"},
        {"reason":"FieldManagerConflict","message":"conflict with \"kubectl-edit\" using apps/v1 at 2026-01-01T00:00:00Z","field":".spec.b"}]}}"#;
    let error = refused(&served("apps", "deployments"), 409, body).await;
    assert!(error.is_field_conflict());
    let ClusterError::Conflict { causes, .. } = error else {
        panic!()
    };
    let reported: Vec<_> = causes
        .iter()
        .map(|cause| (cause.field.as_str(), cause.manager(), cause.by_update()))
        .collect();
    assert_eq!(
        reported,
        [
            (".spec.a", Some("helm"), false),
            (".spec.b", Some("kubectl-edit"), true)
        ]
    );
    let outdated = refused(
        &served("apps", "deployments"),
        409,
        status(409, "Conflict", "the object has been modified"),
    )
    .await;
    assert!(
        matches!(&outdated, ClusterError::Conflict { causes, .. } if causes.is_empty())
            && !outdated.is_field_conflict()
    );
    let exists = refused(
        &served("apps", "deployments"),
        409,
        status(409, "AlreadyExists", "it exists"),
    )
    .await;
    assert_eq!(exists, ClusterError::AlreadyExists("it exists".into()));
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_not_a_policy_that_says_no() {
    let kind = served("apps", "deployments");
    let missing = refused(
        &kind,
        403,
        status(
            403,
            "Forbidden",
            "deployments is forbidden: User ork cannot get resource deployments",
        ),
    )
    .await;
    let ClusterError::Forbidden {
        verb,
        resource,
        group,
        namespace,
        ..
    } = missing
    else {
        panic!("{missing:?}")
    };
    assert_eq!(
        (
            verb,
            resource.as_str(),
            group.as_str(),
            namespace.as_deref()
        ),
        ("get", "deployments", "apps", Some("shop"))
    );
    let denied = refused(
        &kind,
        403,
        status(403, "Forbidden", "exceeded quota: small, requested: pods=1"),
    )
    .await;
    assert!(matches!(denied, ClusterError::Denied { .. }));
    // The message of a webhook or policy is free text of its author.
    for by in [
        "admission webhook 'a.example' denied the request",
        "ValidatingAdmissionPolicy 'a' with binding 'b' denied request",
    ] {
        let message = format!("pods 'x' is forbidden: {by}: the colour cannot be red");
        let denied = refused(&kind, 403, status(403, "Forbidden", &message)).await;
        assert_eq!(denied, ClusterError::Denied { message });
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_that_would_grant_what_we_do_not_have_is_denied_and_no_permission_is_missing() {
    let kind = served("rbac.authorization.k8s.io", "roles");
    // The author of a custom resource may choose the name and the rules so that they contain phrases of other messages.
    for (name, resource) in [("x", "secrets"), ("a cannot b", "not allowed to")] {
        let message = format!(
            "roles.rbac.authorization.k8s.io \"{name}\" is forbidden: user \"system:serviceaccount:a:b\" \
             (groups=[\"system:serviceaccounts\" \"system:authenticated\"]) is attempting to grant RBAC permissions not \
             currently held:\n{{APIGroups:[\"\"], Resources:[\"{resource}\"], Verbs:[\"get\"]}}"
        );
        let body = serde_json::json!({
            "kind": "Status", "code": 403, "reason": "Forbidden", "message": message,
            "details": { "name": name, "group": "rbac.authorization.k8s.io", "kind": "roles" },
        });
        let error = refused(&kind, 403, body.to_string()).await;
        assert_eq!(error, ClusterError::Denied { message });
    }
}

#[tokio::test(start_paused = true)]
async fn values_of_secrets_never_reach_a_message() {
    let body = r#"{"kind":"Status","code":422,"reason":"Invalid","message":"data: Invalid value: hunter2","details":{"causes":[{"reason":"FieldValueInvalid","message":"hunter2","field":"data.x"}]}}"#;
    for (code, body) in [
        (422, body.to_owned()),
        (500, status(500, "InternalError", "hunter2")),
        (400, "hunter2".to_owned()),
    ] {
        let error = refused(&served("", "secrets"), code, body).await;
        assert!(
            !format!("{error:?} {error}").contains("hunter2"),
            "{error:?}"
        );
    }
    let broken = refused(&served("", "secrets"), 200, r#"{"data":{"x":"hunter2"#).await;
    assert!(!format!("{broken:?}").contains("hunter2"));
    let plain = refused(&served("", "configmaps"), 422, body).await;
    assert!(plain.to_string().contains("hunter2"));
}

#[tokio::test(start_paused = true)]
async fn a_long_message_is_passed_on_whole_up_to_what_a_condition_holds() {
    let kind = served("", "pods");
    let long = "\u{1f980}".repeat(5_000);
    let error = refused(&kind, 422, status(422, "Invalid", &long)).await;
    assert_eq!(error.to_string(), long);
    let error = refused(&kind, 422, status(422, "Invalid", &long.repeat(3))).await;
    let text = error.to_string();
    assert!(text.len() <= MESSAGE_BYTES && text.ends_with("\u{1f980}..."));
}

#[test]
fn a_refusal_is_an_answer_to_the_breaker() {
    let unavailable = ClusterError::Unavailable("connection refused".to_owned());
    let denied = ClusterError::Denied {
        message: "no".to_owned(),
    };
    let missed = [Ok(()), Err(denied), Err(unavailable)].map(|answer| is_missed(&answer));
    assert_eq!(missed, [false, false, true]);
}
