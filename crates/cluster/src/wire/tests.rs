//! Requests as they arrive, and the classification of errors.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use orkestra_core::{api::conditions::MESSAGE_BYTES, plan::ObjectKey, reasons::Reason};
use tokio::time::Instant;

use super::*;
use crate::watch::testing::{Server, node, status};

fn served(group: &str, plural: &str) -> Served {
    Served {
        group: group.into(),
        version: "v1".into(),
        kind: "Kind".into(),
        plural: plural.into(),
        namespaced: true,
    }
}

fn key() -> ObjectKey {
    ObjectKey {
        namespace: Some("shop".into()),
        name: "web".into(),
    }
}

/// The error of a GET with this response.
async fn refused(kind: &Served, code: u16, body: impl Into<String>) -> WireError {
    let server = Server::new();
    server.answer(code, body);
    server.wire().get(kind, &key()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn an_apply_names_its_manager_and_forces_when_told() {
    let server = Server::new();
    server.answer(200, r#"{"kind":"Deployment"}"#);
    let body = node(r#"{"spec":{"replicas":2}}"#);
    let kind = served("apps", "deployments");
    server
        .wire()
        .apply(&kind, &key(), "orkestra/websites.shop.example", true, &body)
        .await
        .unwrap();
    server
        .wire()
        .apply(
            &kind,
            &key(),
            "orkestra/websites.shop.example",
            false,
            &body,
        )
        .await
        .unwrap();
    let seen = server.requests();
    let path = "/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=orkestra%2Fwebsites.shop.example";
    let forced: Vec<bool> = seen
        .iter()
        .map(|seen| seen.uri.contains("&force=true"))
        .collect();
    assert_eq!(forced, [true, false]);
    assert!(
        seen.iter()
            .all(|seen| seen.method == "PATCH" && seen.uri.starts_with(path))
    );
    assert!(seen[0].uri.ends_with("&fieldValidation=Strict"));
    assert_eq!(
        (seen[0].content_type.as_str(), seen[0].body.as_str()),
        ("application/apply-patch+yaml", r#"{"spec":{"replicas":2}}"#)
    );
}

#[tokio::test(start_paused = true)]
async fn each_verb_is_written_as_kubernetes_reads_it() {
    let server = Server::new();
    server.answer(200, r#"{"kind":"Status","status":"Success"}"#);
    let (wire, kind, body) = (server.wire(), served("", "pods"), node("{}"));
    wire.create(&kind, &key(), "m", &body).await.unwrap();
    wire.merge_patch(&kind, &key(), Some("status"), "m", &body)
        .await
        .unwrap();
    let how = Deletion {
        propagation: Propagation::Foreground,
        uid: Some("u1"),
        resource_version: None,
    };
    assert!(wire.delete(&kind, &key(), &how).await.unwrap().is_none());
    let seen: Vec<String> = server
        .requests()
        .iter()
        .map(|seen| {
            format!(
                "{} {} {} {}",
                seen.method, seen.uri, seen.content_type, seen.body
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            "POST /api/v1/namespaces/shop/pods?fieldManager=m&fieldValidation=Strict application/json {}",
            "PATCH /api/v1/namespaces/shop/pods/web/status?fieldManager=m application/merge-patch+json {}",
            concat!(
                "DELETE /api/v1/namespaces/shop/pods/web application/json ",
                r#"{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u1"},"propagationPolicy":"Foreground"}"#
            ),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_waits_for_its_finalizers_comes_back_from_its_deletion() {
    let server = Server::new();
    server.answer(
        200,
        r#"{"kind":"Pod","metadata":{"name":"web","deletionTimestamp":"2026-01-01T00:00:00Z"}}"#,
    );
    let how = Deletion {
        propagation: Propagation::Background,
        uid: None,
        resource_version: Some("7"),
    };
    assert!(
        server
            .wire()
            .delete(&served("", "pods"), &key(), &how)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        server.requests()[0]
            .body
            .contains(r#""preconditions":{"resourceVersion":"7"}"#)
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_answers_ends_at_its_deadline() {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        std::future::pending::<Result<http::Response<axum::body::Body>, std::convert::Infallible>>()
            .await
    });
    let wire = Wire::new(kube::Client::new(service, "default"));
    let start = Instant::now();
    let error = wire.get(&served("", "pods"), &key()).await.unwrap_err();
    assert_eq!(
        (error, start.elapsed()),
        (
            WireError::Unavailable("no answer within 30 s".into()),
            Duration::from_secs(30)
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_its_turn_and_its_deadline_waits_with_it() {
    let flow = Flow::new(|| 0.0);
    let share = Share::new("pond");
    let mut turns: Vec<RequestPermit> =
        std::iter::from_fn(|| futures::FutureExt::now_or_never(flow.turn(&share))).collect();
    let server = Server::new();
    server.answer(200, "{}");
    let wire = server.wire().in_turn(flow).on_account_of(share);
    let start = Instant::now();
    let asked = tokio::spawn(async move { wire.get(&served("", "pods"), &key()).await });
    tokio::time::sleep(DEADLINE * 3).await;
    assert!(server.requests().is_empty());
    turns.pop();
    asked.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), DEADLINE * 3);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_object_and_an_unknown_kind_are_told_apart() {
    let named = r#"{"kind":"Status","code":404,"reason":"NotFound","message":"pods \"web\" not found","details":{"name":"web","kind":"pods"}}"#;
    assert!(
        matches!(refused(&served("", "pods"), 404, named).await, WireError::NotFound(message) if message.contains("web"))
    );
    let unknown = refused(
        &served("shop.example", "websites"),
        404,
        "404 page not found",
    )
    .await;
    assert_eq!(
        unknown,
        WireError::NotServed("websites.shop.example".into())
    );
}

#[tokio::test(start_paused = true)]
async fn conflicts_of_fields_name_their_managers() {
    let body = r#"{"kind":"Status","code":409,"reason":"Conflict","message":"Apply failed with 2 conflicts","details":{"causes":[
        {"reason":"FieldManagerConflict","message":"conflict with \"helm\"","field":".spec.a"},
        {"reason":"FieldManagerConflict","message":"conflict with \"kubectl-edit\" using apps/v1 at 2026-01-01T00:00:00Z","field":".spec.b"}]}}"#;
    let error = refused(&served("apps", "deployments"), 409, body).await;
    assert!(error.is_field_conflict() && !error.is_permanent());
    let WireError::Conflict { causes, .. } = error else {
        panic!()
    };
    let told: Vec<_> = causes
        .iter()
        .map(|cause| (cause.field.as_str(), cause.manager(), cause.by_update()))
        .collect();
    assert_eq!(
        told,
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
        matches!(&outdated, WireError::Conflict { causes, .. } if causes.is_empty())
            && !outdated.is_field_conflict()
    );
    let exists = refused(
        &served("apps", "deployments"),
        409,
        status(409, "AlreadyExists", "it exists"),
    )
    .await;
    assert_eq!(exists, WireError::AlreadyExists("it exists".into()));
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_not_a_policy_that_says_no() {
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
    let WireError::Forbidden {
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
    assert!(matches!(denied, WireError::Denied { .. }));
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
    assert!(plain.is_permanent() && plain.to_string().contains("hunter2"));
}

/// The consequence of each response to a write: its reason, whether it is permanent, and when it is retried.
#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn every_refusal_is_permanent_or_transient_and_tried_again_in_its_time() {
    use orkestra_core::reasons::{
        Class::{self, Permanent, Transient},
        RetryWhen::{self, Backoff, OnChange, Slowly},
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
        let error = refused(&served("", "pods"), code, &*body).await;
        let about = error.reason().about();
        assert_eq!(
            (error.reason(), about.class, about.again),
            (reason, class, again),
            "{code} {body}"
        );
        assert_eq!(error.is_permanent(), class == Permanent, "{code} {body}");
    }
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

#[tokio::test(start_paused = true)]
async fn discovery_tells_plural_and_scope() {
    let server = Server::new();
    server.answer(
        200,
        r#"{"kind":"APIResourceList","resources":[{"name":"websites/status","kind":"Website","namespaced":true},{"name":"websites","kind":"Website","namespaced":true}]}"#,
    );
    let found = server
        .wire()
        .discover("shop.example", "v1", "Website")
        .await
        .unwrap()
        .unwrap();
    assert_eq!((&*found.plural, found.namespaced), ("websites", true));
    assert_eq!(
        server
            .wire()
            .discover("shop.example", "v1", "Shop")
            .await
            .unwrap(),
        None
    );
    server.answer(404, "404 page not found");
    assert_eq!(server.wire().discover("", "v9", "Pod").await.unwrap(), None);
    let paths: Vec<String> = server.requests().into_iter().map(|seen| seen.uri).collect();
    assert_eq!(
        paths,
        ["/apis/shop.example/v1", "/apis/shop.example/v1", "/api/v9"]
    );
}

/// A service that answers each list after a delay, and records how many are waiting.
fn slow_lists(most: &Arc<Mutex<(usize, usize)>>) -> Wire {
    let most = most.clone();
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        let most = most.clone();
        async move {
            {
                let mut most = most.lock().unwrap();
                most.0 += 1;
                most.1 = most.1.max(most.0);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            most.lock().unwrap().0 -= 1;
            let body = axum::body::Body::from(r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#);
            Ok::<_, std::convert::Infallible>(http::Response::new(body))
        }
    });
    Wire::new(kube::Client::new(service, "default"))
}

#[tokio::test(start_paused = true)]
async fn no_more_than_a_few_pages_are_read_at_once() {
    let most = Arc::new(Mutex::new((0, 0)));
    let wire = slow_lists(&most);
    let lists = (0..20).map(|_| {
        let wire = wire.clone();
        tokio::spawn(async move {
            let how = (Form::Whole, &orkestra_core::value::Projection::whole());
            let (kind, scope) = (served("shop.example", "websites"), Scope::default());
            let mut take = |_: Listed| {};
            wire.list_each(how, &kind, &scope, PageOf::default(), &mut take)
                .await
                .unwrap();
        })
    });
    for list in lists.collect::<Vec<_>>() {
        list.await.unwrap();
    }
    assert_eq!(*most.lock().unwrap(), (0, PAGES_AT_ONCE));
}

#[test]
fn a_refusal_is_an_answer_to_the_breaker() {
    let unavailable = WireError::Unavailable("connection refused".to_owned());
    let denied = WireError::Denied {
        message: "no".to_owned(),
    };
    let missed = [Ok(()), Err(denied), Err(unavailable)].map(|answer| is_missed(&answer));
    assert_eq!(missed, [false, false, true]);
}
