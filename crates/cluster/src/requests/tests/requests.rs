//! Requests as the API server receives them: method, URL and body of each verb, the timing, and the timeouts.

use parking_lot::Mutex;
use tokio::time::Instant;

use super::*;
use crate::watch::testing::node;

#[tokio::test(start_paused = true)]
async fn an_apply_names_its_manager_and_forces_when_asked_to() {
    let server = Server::new();
    server.answer(200, r#"{"kind":"Deployment"}"#);
    let body = node(r#"{"spec":{"replicas":2}}"#);
    let kind = served("apps", "deployments");
    server
        .cluster()
        .apply(&kind, &key(), "orkestra/websites.shop.example", true, &body)
        .await
        .unwrap();
    server
        .cluster()
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
    let (cluster, kind, body) = (server.cluster(), served("", "pods"), node("{}"));
    cluster.create(&kind, &key(), "m", &body).await.unwrap();
    cluster
        .merge_patch(&kind, &key(), Some("status"), "m", &body)
        .await
        .unwrap();
    let how = Deletion {
        propagation: Propagation::Foreground,
        uid: Some("u1"),
        resource_version: None,
    };
    assert!(cluster.delete(&kind, &key(), &how).await.unwrap().is_none());
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
            .cluster()
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
    let cluster = Cluster::new(kube::Client::new(service, "default"));
    let start = Instant::now();
    let error = cluster.get(&served("", "pods"), &key()).await.unwrap_err();
    assert_eq!(
        (error, start.elapsed()),
        (
            ClusterError::Unavailable("no answer within 30 s".into()),
            Duration::from_secs(30)
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_its_turn_and_its_deadline_waits_with_it() {
    let flow = Flow::new(|| 0.0);
    let share = Share::new("pond");
    let mut permits: Vec<RequestPermit> =
        std::iter::from_fn(|| futures::FutureExt::now_or_never(flow.turn(&share))).collect();
    let server = Server::new();
    server.answer(200, "{}");
    let cluster = server.cluster().in_turn(flow).on_account_of(share);
    let start = Instant::now();
    let asked = tokio::spawn(async move { cluster.get(&served("", "pods"), &key()).await });
    tokio::time::sleep(DEADLINE * 3).await;
    assert!(server.requests().is_empty());
    permits.pop();
    asked.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), DEADLINE * 3);
}

#[tokio::test(start_paused = true)]
async fn discovery_shows_plural_and_scope() {
    let server = Server::new();
    server.answer(
        200,
        r#"{"kind":"APIResourceList","resources":[{"name":"websites/status","kind":"Website","namespaced":true},{"name":"websites","kind":"Website","namespaced":true}]}"#,
    );
    let found = server
        .cluster()
        .discover("shop.example", "v1", "Website")
        .await
        .unwrap()
        .unwrap();
    assert_eq!((&*found.plural, found.namespaced), ("websites", true));
    assert_eq!(
        server
            .cluster()
            .discover("shop.example", "v1", "Shop")
            .await
            .unwrap(),
        None
    );
    server.answer(404, "404 page not found");
    assert_eq!(
        server.cluster().discover("", "v9", "Pod").await.unwrap(),
        None
    );
    let paths: Vec<String> = server.requests().into_iter().map(|seen| seen.uri).collect();
    assert_eq!(
        paths,
        ["/apis/shop.example/v1", "/apis/shop.example/v1", "/api/v9"]
    );
}

/// A service that answers each list after a delay, and records how many are waiting.
fn slow_lists(most: &Arc<Mutex<(usize, usize)>>) -> Cluster {
    let most = most.clone();
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        let most = most.clone();
        async move {
            {
                let mut most = most.lock();
                most.0 += 1;
                most.1 = most.1.max(most.0);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            most.lock().0 -= 1;
            let body = axum::body::Body::from(r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#);
            Ok::<_, std::convert::Infallible>(http::Response::new(body))
        }
    });
    Cluster::new(kube::Client::new(service, "default"))
}

#[tokio::test(start_paused = true)]
async fn no_more_than_a_few_pages_are_read_at_once() {
    let most = Arc::new(Mutex::new((0, 0)));
    let cluster = slow_lists(&most);
    let lists = (0..20).map(|_| {
        let cluster = cluster.clone();
        tokio::spawn(async move {
            let how = (Form::Whole, &orkestra_object::value::Projection::whole());
            let (kind, scope) = (served("shop.example", "websites"), Scope::default());
            let mut take = |_: Listed| {};
            cluster
                .list_each(how, &kind, &scope, PageOf::default(), &mut take)
                .await
                .unwrap();
        })
    });
    for list in lists.collect::<Vec<_>>() {
        list.await.unwrap();
    }
    assert_eq!(*most.lock(), (0, PAGES_AT_ONCE));
}
