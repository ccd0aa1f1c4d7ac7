//! Servers that hang, drip, never end or speak nonsense, and too many calls at once.

use std::time::{Duration, Instant};

use super::{
    client, get,
    sink::{Manner, Sink},
    trouble,
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
        assert!(start.elapsed() >= WITHIN && start.elapsed() < WITHIN * 10);
        assert_eq!(
            trouble(&answer),
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
        trouble(&answer),
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
            trouble(&answer),
            format!("{} does not answer as HTTP does", sink.url())
        );
    }
    let none = client(&["127.0.0.1"])
        .call(&get("http://127.0.0.1:1/"))
        .await;
    assert_eq!(
        trouble(&none),
        "http://127.0.0.1:1 cannot be reached: connection refused"
    );
}

#[tokio::test]
async fn a_host_that_hangs_takes_no_room_from_others() {
    let hanging = Sink::behaving(Manner::Hang).await;
    let quick = Sink::start(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".into()).await;
    let client = client(&["127.0.0.1"]);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let (client, request) = (client.clone(), get(hanging.url()));
        calls.spawn(async move { client.call(&request).await });
    }
    while hanging.seen().len() < 16 {
        tokio::task::yield_now().await;
    }
    let start = Instant::now();
    for _ in 0..50 {
        assert_eq!(client.call(&get(quick.url())).await.error, None);
    }
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(hanging.seen().len(), 16, "no more than a host's share");
}
