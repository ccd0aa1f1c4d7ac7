//! Limits of calls: servers that hang, respond slowly, never end or send invalid data, and too many concurrent calls.

use std::time::{Duration, Instant};

use orkestra_engine::reconcile::calls::CallAnswer;
use tokio::task::JoinSet;

use super::{
    Client, client, failure_of, get,
    sink::{Manner, Sink},
};

const WITHIN: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_server_that_hangs_or_drips_costs_the_timeout_and_no_more() {
    for manner in [Manner::Hang, Manner::Drip] {
        let sink = Sink::behaving(manner).await;
        let mut request = get(sink.url());
        request.timeout = WITHIN;
        let start = Instant::now();
        let answer = client(&["127.0.0.1"]).call(&request).await;
        assert!(start.elapsed() >= WITHIN);
        assert_eq!(
            failure_of(&answer),
            format!("{} did not answer within 0.3 s", sink.url())
        );
        assert!(!answer.error.unwrap().permanent);
    }
}

#[tokio::test]
async fn a_server_that_never_ends_is_left_at_256_kib() {
    let sink = Sink::behaving(Manner::Endless).await;
    let answer = client(&["127.0.0.1"]).call(&get(sink.url())).await;
    assert_eq!(
        failure_of(&answer),
        format!("{} answers with more than 256 KiB", sink.url())
    );
    assert_eq!((answer.status, &*answer.body), (None, ""));
}

#[tokio::test]
async fn an_answer_of_256_kib_is_taken_whole() {
    let body = "y".repeat(256 * 1024);
    let length = body.len();
    let sink = Sink::start(move |_| {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").into()
    })
    .await;
    let answer = client(&["127.0.0.1"]).call(&get(sink.url())).await;
    assert_eq!((answer.error, answer.body.len()), (None, length));
}

#[tokio::test]
async fn nonsense_is_not_an_answer() {
    for manner in [Manner::Noise, Manner::EndlessHead] {
        let sink = Sink::behaving(manner).await;
        let answer = client(&["127.0.0.1"]).call(&get(sink.url())).await;
        assert_eq!(
            failure_of(&answer),
            format!("{} did not send a valid HTTP response", sink.url())
        );
    }
    let none = client(&["127.0.0.1"])
        .call(&get("http://127.0.0.1:1/"))
        .await;
    assert_eq!(
        failure_of(&none),
        "http://127.0.0.1:1 cannot be reached: connection refused"
    );
}

/// Starts 100 calls to a hanging server for each of these operators and namespaces, more than there are slots.
async fn hang(client: &Client, url: &str, callers: &[(&str, &str)]) -> JoinSet<CallAnswer> {
    let mut calls = JoinSet::new();
    for (operator, namespace) in callers {
        for _ in 0..100 {
            let client = client.of_operator(operator).in_namespace(Some(namespace));
            let mut request = get(url);
            // The timeout is so long that no call releases its slot before the assertions, even on a busy machine.
            request.timeout = Duration::from_mins(2);
            calls.spawn(async move { client.call(&request).await });
        }
    }
    // Every call has requested its slot once each task was polled.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    calls
}

#[tokio::test]
async fn a_host_that_hangs_takes_no_room_from_others() {
    let hanging = Sink::behaving(Manner::Hang).await;
    let quick = Sink::start(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".into()).await;
    let client = client(&["127.0.0.1"]);
    let names: Vec<String> = (0..20).map(|n| format!("operator-{n}")).collect();
    let callers: Vec<_> = names.iter().map(|name| (&**name, "a")).collect();
    let mut calls = hang(&client, &hanging.url(), &callers).await;
    while hanging.seen().len() < 16 {
        tokio::task::yield_now().await;
    }
    for _ in 0..50 {
        assert_eq!(client.call(&get(quick.url())).await.error, None);
    }
    assert!(calls.try_join_next().is_none(), "no call waits so long");
    assert_eq!(hanging.seen().len(), 16, "the share of a host");
}

#[tokio::test]
async fn calls_that_hang_leave_places_at_the_host_to_other_namespaces_and_operators() {
    let sink = Sink::behaving(Manner::Hang).await;
    let client = client(&["127.0.0.1"]);
    let calls = hang(&client, &sink.url(), &[("ponds", "a")]).await;
    let held = sink.seen().len();
    assert!((2..=10).contains(&held), "{held}");
    for (operator, namespace) in [("ponds", "b"), ("lakes", "a")] {
        let before = sink.seen().len();
        let client = client.of_operator(operator).in_namespace(Some(namespace));
        let request = get(sink.url());
        let call = tokio::spawn(async move { client.call(&request).await });
        while sink.seen().len() == before {
            tokio::task::yield_now().await;
        }
        call.abort();
    }
    drop(calls);
}

#[tokio::test]
async fn where_a_redirect_leads_a_place_is_taken_too() {
    let target = Sink::behaving(Manner::Hang).await;
    let location = target.url();
    let first = Sink::start(move |_| {
        format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n").into()
    })
    .await;
    let client = client(&["127.0.0.1"]);
    let names: Vec<String> = (0..40).map(|n| format!("operator-{n}")).collect();
    let callers: Vec<_> = names.iter().map(|name| (&**name, "a")).collect();
    let _calls = hang(&client, &first.url(), &callers).await;
    let start = Instant::now();
    // Calls that wait for the second host hold no slot of the first host.
    while first.seen().len() < 100 || target.seen().len() < 16 {
        assert!(
            start.elapsed() < Duration::from_mins(1),
            "{}",
            first.seen().len()
        );
        tokio::task::yield_now().await;
    }
    assert_eq!(target.seen().len(), 16, "the share of a host");
}
