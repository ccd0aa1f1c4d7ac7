//! Authentication and authorization of requests by token and path, with a cluster in this process that counts requests.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::{Router, body::Body, middleware, routing::get};
use http::{Request as HttpRequest, Response as HttpResponse};
use serde_json::{Value, json};
use tower::{ServiceExt as _, service_fn};

use super::*;

/// The numbers of requests to the API server.
#[derive(Default)]
struct Asked {
    tokens: AtomicUsize,
    access: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Asked {
    fn counts(&self) -> (usize, usize) {
        let count = |number: &AtomicUsize| number.load(Ordering::SeqCst);
        (count(&self.tokens), count(&self.access))
    }
}

/// Answers reviews: the tokens `reader` and `nosy` are valid, for users of those names; `reader` may get metrics, and paths that
/// begin with `/katalog/marsh`.
fn answer(path: &str, body: &Value) -> Value {
    if path == "/apis/authentication.k8s.io/v1/tokenreviews" {
        let token = body["spec"]["token"].as_str().unwrap();
        let status = match token {
            "reader" | "nosy" => json!({"authenticated": true, "user": {
                "username": token, "uid": "u-7", "groups": ["system:authenticated"], "extra": {"pod": ["one"]}}}),
            _ => json!({"authenticated": false, "error": "invalid bearer token"}),
        };
        return json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": {}, "status": status});
    }
    assert_eq!(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
    let spec = &body["spec"];
    assert_eq!(
        (&spec["uid"], &spec["extra"]["pod"]),
        (&json!("u-7"), &json!(["one"]))
    );
    assert_eq!(spec["groups"], json!(["system:authenticated"]));
    assert_eq!(spec["nonResourceAttributes"]["verb"], "get");
    let wanted = spec["nonResourceAttributes"]["path"].as_str().unwrap();
    let allowed =
        spec["user"] == "reader" && (wanted == "/metrics" || wanted.starts_with("/katalog/marsh/"));
    json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {},
        "status": {"allowed": allowed}})
}

/// Returns a cluster that responds after `delay`, and its counters.
fn cluster(delay: Duration) -> (Access, Arc<Asked>) {
    let asked = Arc::new(Asked::default());
    let counted = asked.clone();
    let service = service_fn(move |request: HttpRequest<kube::client::Body>| {
        let asked = counted.clone();
        async move {
            let path = request.uri().path().to_owned();
            let count = if path == "/apis/authentication.k8s.io/v1/tokenreviews" {
                &asked.tokens
            } else {
                &asked.access
            };
            count.fetch_add(1, Ordering::SeqCst);
            let now = asked.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            asked.most_at_once.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(delay).await;
            asked.at_once.fetch_sub(1, Ordering::SeqCst);
            let body = request.into_body().collect_bytes().await.unwrap();
            let answer = answer(&path, &serde_json::from_slice(&body).unwrap());
            let answer = kube::client::Body::from(answer.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(HttpResponse::new(answer))
        }
    });
    (
        Access::reviewed(&Cluster::new(kube::Client::new(service, "default"))),
        asked,
    )
}

/// Sends a request of a peer, and returns the status, the body, and the headers by name.
async fn send(
    access: &Access,
    peer: &str,
    token: Option<&str>,
    path: &str,
) -> (u16, Value, BTreeMap<String, String>) {
    let router = Router::new()
        .route("/{*path}", get(|| async { "\"read\"" }))
        .route_layer(middleware::from_fn_with_state(access.clone(), check));
    let mut request = HttpRequest::get(path).extension(Peer(peer.parse().unwrap()));
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let answer = router
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    let code = answer.status().as_u16();
    let headers = answer.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let headers = headers.collect();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20)
        .await
        .unwrap();
    (code, serde_json::from_slice(&body).unwrap(), headers)
}

async fn code(access: &Access, token: &str, path: &str) -> u16 {
    send(access, "10.1.2.3", Some(token), path).await.0
}

#[tokio::test(start_paused = true)]
async fn only_whom_the_api_server_lets_reads() {
    let (access, asked) = cluster(Duration::ZERO);
    let (code, body, headers) = send(&access, "10.1.2.3", None, "/metrics").await;
    assert_eq!(code, 401);
    assert!(
        headers["www-authenticate"].starts_with("Bearer"),
        "{headers:?}"
    );
    assert_eq!(body["error"], "a bearer token is required");
    assert_eq!(asked.counts(), (0, 0), "requests without a token");
    for odd in ["", "a b", &"x".repeat(LONGEST_TOKEN + 1)] {
        assert_eq!(
            send(&access, "10.1.2.3", Some(odd), "/metrics").await.0,
            401
        );
    }
    assert_eq!(asked.counts(), (0, 0));

    let (code, body, headers) = send(&access, "10.1.2.3", Some("forged"), "/metrics").await;
    assert_eq!(code, 401);
    assert!(
        headers["www-authenticate"].contains("invalid_token"),
        "{headers:?}"
    );
    assert!(!body.to_string().contains("forged"), "{body}");

    let (code, body, _) = send(&access, "10.1.2.3", Some("nosy"), "/metrics").await;
    assert_eq!(code, 403);
    assert_eq!(body["error"], r#"user "nosy" cannot get path "/metrics""#);
    let rule = r#"nonResourceURLs: ["/metrics"], verbs: ["get"]"#;
    assert!(body["hint"].as_str().unwrap().contains(rule), "{body}");

    assert_eq!(
        send(&access, "10.1.2.3", Some("reader"), "/metrics")
            .await
            .0,
        200
    );
    let open = Access::open();
    assert_eq!(send(&open, "10.1.2.3", None, "/metrics").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn the_path_that_is_read_is_the_path_that_is_reviewed() {
    let (access, _) = cluster(Duration::ZERO);
    for (path, expected) in [
        ("/katalog/marsh/reeds/pond", 200),
        ("/katalog/m%61rsh/reeds/pond", 200),
        ("/katalog/delta/mud/pond", 403),
        ("/katalog/marsh", 403),
        // `%2F` is equivalent to a slash.
        ("/katalog%2Fmarsh/reeds", 200),
        ("/katalog/marsh/%ff", 400),
    ] {
        assert_eq!(code(&access, "reader", path).await, expected, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_remembered_for_a_while_and_refusals_for_less() {
    let (access, asked) = cluster(Duration::ZERO);
    for _ in 0..50 {
        assert_eq!(code(&access, "reader", "/metrics").await, 200);
        assert_eq!(code(&access, "forged", "/metrics").await, 401);
        assert_eq!(code(&access, "nosy", "/metrics").await, 403);
    }
    assert_eq!(asked.counts(), (3, 2));
    tokio::time::advance(REFUSED).await;
    assert_eq!(code(&access, "reader", "/metrics").await, 200);
    assert_eq!(asked.counts(), (3, 2));
    // The user of `nosy` is still cached, so only its permission is reviewed again.
    assert_eq!(code(&access, "nosy", "/metrics").await, 403);
    assert_eq!(code(&access, "forged", "/metrics").await, 401);
    assert_eq!(asked.counts(), (4, 3));
    tokio::time::advance(KNOWN).await;
    assert_eq!(code(&access, "reader", "/metrics").await, 200);
    assert_eq!(asked.counts(), (5, 4));
}

#[tokio::test(start_paused = true)]
async fn requests_with_one_new_token_ask_once() {
    let (access, asked) = cluster(Duration::from_millis(20));
    let same = (0..AT_ONCE * 2).map(|_| code(&access, "reader", "/metrics"));
    let codes = futures::future::join_all(same).await;
    assert!(codes.iter().all(|code| *code == 200), "{codes:?}");
    let (tokens, access) = asked.counts();
    assert!(tokens <= AT_ONCE && access <= AT_ONCE, "{tokens}, {access}");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_bad_tokens_is_no_flood_of_reviews_and_others_are_served() {
    let (access, asked) = cluster(Duration::from_millis(5));
    for round in 0..500 {
        let (code, ..) = send(
            &access,
            "10.9.9.9",
            Some(&format!("bad-{round}")),
            "/metrics",
        )
        .await;
        assert!(matches!(code, 401 | 429), "{code}");
    }
    assert_eq!(asked.counts().0, REFUSALS as usize);
    let (code, _, headers) = send(&access, "10.9.9.9", Some("reader"), "/metrics").await;
    assert_eq!((code, &*headers["retry-after"]), (429, "10"));
    assert_eq!(
        send(&access, "10.1.2.3", Some("reader"), "/metrics")
            .await
            .0,
        200
    );
    // A cached result is used without a review.
    assert_eq!(
        send(&access, "10.9.9.9", Some("reader"), "/metrics")
            .await
            .0,
        200
    );
    // All addresses of a /64 network count as one peer.
    for last in 0..REFUSALS {
        let peer = format!("fd00:1:2:3::{last:x}");
        send(&access, &peer, Some(&format!("worse-{last}")), "/metrics").await;
    }
    assert_eq!(
        send(&access, "fd00:1:2:3:4::1", Some("new"), "/metrics")
            .await
            .0,
        429
    );
    tokio::time::advance(REFUSED).await;
    assert_eq!(
        send(&access, "10.9.9.9", Some("nosy"), "/metrics").await.0,
        403
    );
}

#[tokio::test(start_paused = true)]
async fn reviews_are_few_at_a_time_and_a_full_room_says_503() {
    let (access, asked) = cluster(Duration::from_millis(50));
    let tokens: Vec<String> = (0..200).map(|serial| format!("bad-{serial}")).collect();
    let all = tokens.iter().enumerate().map(|(serial, token)| {
        let (access, peer) = (access.clone(), format!("10.0.{serial}.1"));
        async move { send(&access, &peer, Some(token), "/metrics").await }
    });
    let answers = futures::future::join_all(all).await;
    let count = |code: u16| answers.iter().filter(|answer| answer.0 == code).count();
    assert_eq!(
        (count(401), count(503)),
        (AT_ONCE + WAITING, 200 - AT_ONCE - WAITING)
    );
    assert_eq!(asked.most_at_once.load(Ordering::SeqCst), AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_wait_for_a_refusal_is_counted_too() {
    let (access, asked) = cluster(Duration::from_secs(1));
    for serial in 0..100 {
        let token = format!("bad-{serial}");
        let request = send(&access, "10.9.9.9", Some(&token), "/metrics");
        let _ = tokio::time::timeout(Duration::from_millis(10), request).await;
    }
    assert_eq!(asked.counts().0, REFUSALS as usize);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_is_503_and_is_asked_again() {
    let (access, asked) = cluster(Duration::from_hours(1));
    for _ in 0..2 {
        let (code, body, headers) = send(&access, "10.1.2.3", Some("reader"), "/metrics").await;
        assert_eq!((code, &*headers["retry-after"]), (503, "1"), "{body}");
        assert!(
            body["error"].as_str().unwrap().contains("within 5 s"),
            "{body}"
        );
    }
    assert_eq!(asked.counts(), (2, 0));
    let refuse = service_fn(|_: HttpRequest<kube::client::Body>| async {
        let status = json!({"kind": "Status", "code": 403, "status": "Failure", "reason": "Forbidden", "metadata": {},
            "message": "cannot create resource \"tokenreviews\""});
        let body = kube::client::Body::from(status.to_string().into_bytes());
        Ok::<_, std::convert::Infallible>(HttpResponse::builder().status(403).body(body).unwrap())
    });
    let access = Access::reviewed(&Cluster::new(kube::Client::new(refuse, "default")));
    let (code, body, _) = send(&access, "10.1.2.3", Some("reader"), "/metrics").await;
    assert_eq!(code, 503);
    assert!(
        body["error"].as_str().unwrap().contains("tokenreviews"),
        "{body}"
    );
}
