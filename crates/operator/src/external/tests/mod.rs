//! The HTTP client for external calls, with regular and faulty servers on the loopback interface.

mod limits;
mod redirects;
mod sink;
mod tls;
mod urls;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use orkestra_engine::reconcile::calls::{CallAnswer, CallRequest};
use orkestra_plan::{Piece, Retry};

use self::sink::Sink;
use super::{Client, Guard, Resolver, Variables};

fn guard(entries: &[&str]) -> Guard {
    Guard::new(entries.iter().map(|entry| entry.parse().unwrap()).collect())
}

/// Returns a client that may call these targets; its resolver resolves no names.
fn client(entries: &[&str]) -> Client {
    let nameless = Resolver::new(|_| Box::pin(async { Ok(Vec::new()) }));
    Client::new(guard(entries), Variables::default(), nameless)
}

/// Returns a client whose resolver returns these answers in turn, then repeats the last one.
fn client_with_names(entries: &[&str], answers: Vec<Vec<&str>>) -> Client {
    let answers: Vec<Vec<IpAddr>> = answers
        .into_iter()
        .map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect())
        .collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let resolver = Resolver::new(move |_| {
        let turn = asked.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
        let answer = answers[turn].clone();
        Box::pin(async move { Ok(answer) })
    });
    Client::new(guard(entries), Variables::default(), resolver)
}

fn get(url: impl Into<Box<str>>) -> CallRequest {
    CallRequest {
        place: 0,
        name: "call".into(),
        method: "GET",
        url: url.into(),
        headers: Box::default(),
        token: Box::default(),
        body: Box::default(),
        expected_status: None,
        timeout: Duration::from_secs(5),
        retry: Retry::NONE,
        cache_for: None,
        most: 256 * 1024,
        is_paced: false,
    }
}

fn failure_of(answer: &CallAnswer) -> &str {
    &answer.error.as_ref().unwrap().message
}

#[tokio::test]
async fn an_answer_has_status_and_body_and_the_request_what_was_asked_for() {
    let sink =
        Sink::start(|_| "HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\n{\"on\": 1}".into())
            .await;
    let mut request = get(format!("{}/flags?x=1", sink.url()));
    request.method = "PUT";
    request.body = "{}".into();
    request.headers = Box::new([("X-Shop".into(), "reeds".into())]);
    request.token = Box::new([Piece::Text("planted".into())]);
    let answer = client(&["127.0.0.1"]).call(&request).await;
    assert_eq!(
        (answer.status, &*answer.body, &answer.error),
        (Some(201), "{\"on\": 1}", &None)
    );
    let seen = sink.seen().remove(0);
    assert!(seen.starts_with("PUT /flags?x=1 HTTP/1.1\r\n"), "{seen}");
    let host = sink.url().replace("http://", "host: ");
    for line in [
        &*host,
        "x-shop: reeds",
        "authorization: Bearer planted",
        "content-type: application/json",
        "content-length: 2",
        &format!("user-agent: orkestra/{}", orkestra_ground::VERSION),
    ] {
        assert!(
            seen.contains(&format!("{line}\r\n")),
            "{line} is missing:\n{seen}"
        );
    }
    assert!(seen.ends_with("\r\n\r\n{}"), "{seen}");
}

/// Source: RFC 9110, section 10.2.3.
#[tokio::test]
async fn a_server_that_is_busy_says_when_it_may_be_called_again() {
    let cases = [
        ("429 X\r\nretry-after: 7", Some(7)),
        ("503 X\r\nRetry-After: 100000", Some(300)),
        ("500 X\r\nretry-after: 7", None),
        ("429 X", None),
        ("429 X\r\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT", None),
    ];
    for (head, seconds) in cases {
        let text = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n");
        let sink = Sink::start(move |_| text.clone().into()).await;
        let answer = client(&["127.0.0.1"]).call(&get(sink.url())).await;
        let pause = answer.error.unwrap().retry_after;
        assert_eq!(pause.map(|pause| pause.as_secs()), seconds, "{head}");
    }
}

#[tokio::test]
async fn nothing_is_sent_that_was_not_asked_for() {
    let sink = Sink::start(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".into()).await;
    let answer = client(&["127.0.0.1"]).call(&get(sink.url())).await;
    assert_eq!(answer.error, None);
    let seen = sink.seen().remove(0);
    let mut names: Vec<&str> = seen
        .lines()
        .skip(1)
        .filter_map(|line| Some(line.split_once(':')?.0))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["accept", "connection", "host", "user-agent"],
        "unexpected headers"
    );
}

#[tokio::test]
async fn success_is_the_expected_status_or_any_below_400() {
    let sink = Sink::start(|head| {
        let status = head.split(['/', ' ']).nth(2).unwrap_or("200").to_owned();
        format!("HTTP/1.1 {status} X\r\ncontent-length: 4\r\n\r\nbody").into()
    })
    .await;
    let client = client(&["127.0.0.1"]);
    for (status, expected, fails) in [
        (200, None, false),
        (399, None, false),
        (400, None, true),
        (503, None, true),
        (404, Some(404), false),
        (200, Some(204), true),
        (302, Some(302), false),
    ] {
        let mut request = get(format!("{}/{status}", sink.url()));
        request.expected_status = expected;
        let answer = client.call(&request).await;
        assert_eq!(answer.status, Some(status));
        assert_eq!(&*answer.body, "body", "the body is missing");
        assert_eq!(answer.error.is_some(), fails, "{status} {expected:?}");
    }
    let mut request = get(format!("{}/503", sink.url()));
    request.expected_status = Some(204);
    let answer = client.call(&request).await;
    assert_eq!(
        failure_of(&answer),
        format!("{} answers with status 503, not 204", sink.url())
    );
}

#[tokio::test]
async fn a_call_that_fails_is_tried_again_as_often_as_it_says() {
    let sink = Sink::start(|_| "HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n".into()).await;
    let mut request = get(sink.url());
    request.retry = Retry {
        attempts: 3,
        initial: Duration::from_millis(1),
        most: Duration::from_millis(2),
        thousandths: 2000,
    };
    let client = client(&["127.0.0.1"]);
    assert!(client.call(&request).await.error.is_some());
    assert_eq!(sink.seen().len(), 3);
    request.url = "http://10.0.0.1/".into();
    request.retry.initial = Duration::from_hours(1);
    request.retry.most = Duration::from_hours(1);
    let refused = client.call(&request).await;
    assert!(refused.error.unwrap().permanent, "it is retried");
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_reported_by_its_name() {
    let mut request = get("http://127.0.0.1:1/");
    request.headers = Box::new([("x-shop".into(), "planted\r\nevil: 1".into())]);
    let answer = client(&["127.0.0.1"]).call(&request).await;
    assert!(failure_of(&answer).contains("x-shop") && !failure_of(&answer).contains("planted"));
    request.headers = Box::default();
    request.token = Box::new([Piece::Text("planted\n".into())]);
    let answer = client(&["127.0.0.1"]).call(&request).await;
    assert!(failure_of(&answer).starts_with("the token cannot be sent"));
}
