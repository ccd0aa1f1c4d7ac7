use std::sync::Arc;

use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tower::service_fn;

use super::*;
use crate::{
    events::{CAPACITY, Event, EventSink, ObjectReference},
    metrics::Metrics,
};
use orkestra_cluster::client::flow::Share;
use orkestra_ground::Clock;

type Seen = Arc<Mutex<Vec<(Method, String, serde_json::Value)>>>;

/// A cluster that records requests and responds with `code`; the message for 403 reports a missing permission.
fn cluster(code: u16) -> (Cluster, Seen) {
    cluster_that(code, "User \"ork\" cannot create resource \"events\"")
}

/// A cluster that records requests and responds with `code`, and with `message` if it is an error. In namespace `meadow` it
/// accepts all requests, in namespace `creek` the first one.
fn cluster_that(code: u16, message: &'static str) -> (Cluster, Seen) {
    cluster_with(code, message, true)
}

/// The same. Unless `meadow_stays`, self reviews report that nothing is permitted in `meadow`, although requests there succeed.
fn cluster_with(code: u16, message: &'static str, meadow_stays: bool) -> (Cluster, Seen) {
    let seen = Seen::default();
    let log = seen.clone();
    let service = service_fn(move |request: Request<Body>| {
        let log = log.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body: serde_json::Value =
                serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap();
            let path = parts.uri.path().to_owned();
            let is_review = path.ends_with("selfsubjectaccessreviews");
            let mut log = log.lock();
            let is_in = |path: &str, namespace: &str| path.contains(&format!("/{namespace}/"));
            let is_known = log.iter().any(|(_, seen, _)| is_in(seen, "creek"));
            let is_first = is_in(&path, "creek") && !is_known;
            let code = if is_in(&path, "meadow") || is_first || is_review {
                201
            } else {
                code
            };
            log.push((parts.method, path, body.clone()));
            let answer = if is_review {
                let mut review = body;
                review["status"] = serde_json::json!({"allowed": meadow_stays});
                review
            } else if code < 300 {
                body
            } else {
                serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "message": message, "reason": "Forbidden", "code": code})
            };
            let answer = Body::from(answer.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(
                Response::builder().status(code).body(answer).unwrap(),
            )
        }
    });
    (Cluster::new(kube::Client::new(service, "default")), seen)
}

fn event(note: &str) -> Event {
    Event {
        regarding: ObjectReference {
            api_version: Some("water.example/v1".to_owned()),
            kind: Some("Pond".to_owned()),
            name: Some("reeds".to_owned()),
            namespace: Some("marsh".to_owned()),
            uid: Some("u-1".to_owned()),
            ..ObjectReference::default()
        },
        severity: Severity::Normal,
        reason: "Applied".into(),
        note: note.to_owned(),
    }
}

fn sink(code: u16) -> (EventSink, Metrics, Seen) {
    let (cluster, seen) = cluster(code);
    let (sink, metrics) = sink_to(&cluster);
    (sink, metrics, seen)
}

fn sink_to(cluster: &Cluster) -> (EventSink, Metrics) {
    let metrics = Metrics::new().unwrap();
    let sink = EventSink::start(cluster, Flow::new(|| 0.0), &metrics, Clock::system());
    (sink, metrics)
}

#[tokio::test]
async fn the_same_words_become_a_series_and_other_words_a_new_event() {
    let (sink, metrics, seen) = sink(200);
    for note in ["one", "one", "one", "two"] {
        sink.publish(event(note));
    }
    sink.flush(Duration::from_secs(5)).await;
    let seen = seen.lock();
    let methods: Vec<&Method> = seen.iter().map(|(method, ..)| method).collect();
    assert_eq!(
        methods,
        [Method::POST, Method::PATCH, Method::PATCH, Method::POST]
    );
    let (_, path, first) = &seen[0];
    assert_eq!(path, "/api/v1/namespaces/marsh/events");
    assert_eq!(first["reportingComponent"], "orkestra");
    assert_eq!(first["involvedObject"]["uid"], "u-1");
    assert_eq!(first["message"], "one");
    assert_eq!(seen[2].2["series"]["count"], 3);
    // `kubectl get events` sorts by these.
    assert_eq!(first["count"], 1);
    assert_eq!(first["firstTimestamp"], first["lastTimestamp"]);
    assert_eq!(seen[2].2["count"], 3);
    assert!(seen[2].2["lastTimestamp"].is_string() && first["lastTimestamp"].is_string());
    assert!(
        seen[2]
            .1
            .ends_with(first["metadata"]["name"].as_str().unwrap())
    );
    assert_eq!(metrics.events_dropped().get(), 0);
}

#[tokio::test]
async fn events_are_dropped_and_counted_under_pressure() {
    let (sink, metrics, seen) = sink(200);
    // The runtime has one thread, so the sender does not run before the first `await`.
    for serial in 0..CAPACITY + 7 {
        sink.publish(event(&serial.to_string()));
    }
    assert_eq!(metrics.events_dropped().get(), 7);
    sink.flush(Duration::from_secs(30)).await;
    assert_eq!(seen.lock().len(), CAPACITY);
}

#[tokio::test(start_paused = true)]
async fn what_was_done_waits_for_other_requests_a_moment_and_what_is_wrong_does_not() {
    let metrics = Metrics::new().unwrap();
    let (cluster, seen) = cluster(200);
    let flow = Flow::new(|| 0.0);
    let sink = EventSink::start(&cluster, flow.clone(), &metrics, Clock::system());
    let other = flow.turn(&Share::new("a")).await;
    sink.publish(event("done"));
    sink.publish(Event {
        severity: Severity::Warning,
        ..event("wrong")
    });
    tokio::time::sleep(PATIENCE / 2).await;
    let notes = |seen: &Seen| -> Vec<_> {
        let seen = seen.lock();
        seen.iter()
            .map(|(.., body)| body["message"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(notes(&seen), ["wrong"]);
    tokio::time::sleep(PATIENCE).await;
    assert_eq!(notes(&seen), ["wrong", "done"], "the Event is not sent");
    sink.publish(event("more"));
    drop(other);
    tokio::time::sleep(PATIENCE / 2).await;
    assert_eq!(notes(&seen).last().unwrap(), "more");
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_named_and_tried_again_after_thirty_seconds() {
    let (sink, metrics, seen) = sink(403);
    for _ in 0..5 {
        sink.publish(event("one"));
    }
    sink.flush(Duration::from_secs(5)).await;
    assert_eq!(seen.lock().len(), 1);
    assert_eq!(metrics.events_dropped().get(), 5);
    let problem = sink.problem().unwrap();
    assert!(
        problem.contains("marsh") && problem.contains("events of the core group"),
        "{problem}"
    );
    tokio::time::advance(REST).await;
    sink.publish(event("one"));
    sink.flush(Duration::from_secs(5)).await;
    assert_eq!(seen.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_quota_of_a_namespace_is_no_problem_of_a_katalog() {
    let quota = "events.events.k8s.io \"a\" is forbidden: exceeded quota: few, requested: 1, used: 9, limited: 9";
    let (cluster, seen) = cluster_that(403, quota);
    let (sink, metrics) = sink_to(&cluster);
    for _ in 0..2 {
        sink.publish(event("one"));
    }
    sink.flush(Duration::from_secs(5)).await;
    assert_eq!(seen.lock().len(), 1, "the namespace is not paused");
    assert_eq!(metrics.events_dropped().get(), 2);
    assert_eq!(sink.problem(), None);
}

fn event_in(namespace: &str) -> Event {
    let mut event = event("one");
    event.regarding.namespace = Some(namespace.to_owned());
    event
}

#[tokio::test(start_paused = true)]
async fn a_role_removed_in_one_namespace_is_no_problem_of_a_katalog_while_others_accept_events() {
    let missing = "User \"ork\" cannot create resource \"events\"";
    for meadow_stays in [true, false] {
        let (cluster, seen) = cluster_with(403, missing, meadow_stays);
        let (sink, _metrics) = sink_to(&cluster);
        sink.publish(event_in("meadow"));
        sink.publish(event_in("marsh"));
        sink.flush(Duration::from_secs(5)).await;
        let review = seen.lock().last().unwrap().2.clone();
        let asked = &review["spec"]["resourceAttributes"];
        assert_eq!(
            (&asked["namespace"], &asked["verb"]),
            (&"meadow".into(), &"create".into())
        );
        assert_eq!(
            sink.problem().is_none(),
            meadow_stays,
            "{:?}",
            sink.problem()
        );
        // An accepted Event shows that the permission is granted again.
        sink.publish(event_in("meadow"));
        sink.flush(Duration::from_secs(5)).await;
        assert_eq!(sink.problem(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_removed_where_events_were_permitted_last_is_no_problem_while_others_accept_events()
{
    let (refusing, _seen) = cluster(403);
    let (sink, _metrics) = sink_to(&refusing);
    for namespace in ["meadow", "creek", "creek"] {
        sink.publish(event_in(namespace));
    }
    sink.flush(Duration::from_secs(5)).await;
    assert_eq!(sink.problem(), None);
    let (refusing, _seen) = cluster(403);
    let (sink, _metrics) = sink_to(&refusing);
    for namespace in ["creek", "creek"] {
        sink.publish(event_in(namespace));
    }
    sink.flush(Duration::from_secs(5)).await;
    assert!(
        sink.problem()
            .is_some_and(|problem| problem.contains("creek"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_that_a_quota_refused_is_not_sent_again() {
    let quota = "events.events.k8s.io \"a\" is forbidden: exceeded quota: few, requested: 1, used: 9, limited: 9";
    let (cluster, seen) = cluster_that(403, quota);
    let (sink, _metrics) = sink_to(&cluster);
    sink.publish(event("one"));
    sink.flush(Duration::from_secs(5)).await;
    tokio::time::sleep(REST * 3).await;
    assert_eq!(seen.lock().len(), 1);
    sink.publish(event("one"));
    sink.flush(Duration::from_secs(5)).await;
    assert_eq!(seen.lock().len(), 2);
}
