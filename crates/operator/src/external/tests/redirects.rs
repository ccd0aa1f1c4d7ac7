//! Redirects: each target is checked like that of a new call, and requests for one host are not sent to another.

use std::borrow::Cow;

use orkestra_plan::Piece;

use super::{client, client_with_names, failure_of, get, sink::Sink};

fn to(location: &str) -> Cow<'static, str> {
    with(302, location)
}

fn with(status: u16, location: &str) -> Cow<'static, str> {
    format!("HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n").into()
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn a_redirect_is_followed_on_the_same_host_with_its_headers() {
    let sink = Sink::start(|line| {
        if line.starts_with("GET /a ") {
            to("/b")
        } else {
            OK.into()
        }
    })
    .await;
    let mut request = get(format!("{}/a", sink.url()));
    request.headers = Box::new([("x-shop".into(), "reeds".into())]);
    let answer = client(&["127.0.0.1"]).call(&request).await;
    assert_eq!((answer.status, &*answer.body), (Some(200), "ok"));
    let seen = sink.seen();
    assert!(seen[1].starts_with("GET /b ") && seen[1].contains("x-shop: reeds"));
}

#[tokio::test]
async fn a_redirect_to_another_host_drops_headers_and_token() {
    let other = Sink::start(|_| OK.into()).await;
    let location = format!("{}/b", other.url());
    let sink = Sink::start(move |_| to(&location)).await;
    let mut request = get(sink.url());
    request.headers = Box::new([("x-shop".into(), "planted".into())]);
    request.token = Box::new([Piece::Text("planted".into())]);
    let client = client(&["127.0.0.1"]);
    assert_eq!(&*client.call(&request).await.body, "ok");
    assert!(sink.seen()[0].contains("planted"));
    assert!(!other.seen()[0].contains("planted"), "{}", other.seen()[0]);
    request.method = "DELETE";
    let answer = client.call(&request).await;
    assert!(
        failure_of(&answer).contains("to another host"),
        "{answer:?}"
    );
    assert_eq!(
        other.seen().len(),
        1,
        "the redirected request was sent to another host"
    );
}

#[tokio::test]
async fn a_redirect_to_where_nothing_may_be_called_is_not_followed() {
    let inside = Sink::start(|_| OK.into()).await;
    for location in [
        format!("http://localhost:{}/", inside.port()),
        format!("http://[::ffff:127.0.0.1]:{}/", inside.port()),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://2852039166/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://user@127.0.0.1/".to_owned(),
    ] {
        let sink = Sink::start(move |_| to(&location)).await;
        let entry = sink.url();
        let answer = client(&[&entry]).call(&get(sink.url())).await;
        assert!(
            failure_of(&answer).starts_with(&format!("{} redirects: ", sink.url())),
            "{answer:?}"
        );
        assert_eq!((answer.status, &*answer.body), (None, ""));
    }
    assert!(inside.seen().is_empty());
}

#[tokio::test]
async fn five_redirects_are_followed_and_no_more() {
    let sink = Sink::start(|line| {
        let hop: u32 = line
            .split(['/', ' '])
            .nth(2)
            .unwrap_or_default()
            .parse()
            .unwrap();
        if hop == 0 {
            OK.into()
        } else {
            to(&format!("/{}", hop - 1))
        }
    })
    .await;
    let client = client(&["127.0.0.1"]);
    let answer = client.call(&get(format!("{}/5", sink.url()))).await;
    assert_eq!(&*answer.body, "ok");
    let answer = client.call(&get(format!("{}/6", sink.url()))).await;
    assert_eq!(
        failure_of(&answer),
        format!("{} redirects: more than 5 times", sink.url())
    );
}

#[tokio::test]
async fn what_is_sent_again_depends_on_the_redirect() {
    for (status, line, body) in [
        (303, "GET /b ", ""),
        (302, "GET /b ", ""),
        (307, "POST /b ", "{}"),
        (308, "POST /b ", "{}"),
    ] {
        let sink = Sink::start(move |line| {
            if line.contains("/a ") {
                with(status, "/b")
            } else {
                OK.into()
            }
        })
        .await;
        let mut request = get(format!("{}/a", sink.url()));
        request.method = "POST";
        request.body = "{}".into();
        assert_eq!(&*client(&["127.0.0.1"]).call(&request).await.body, "ok");
        let again = sink.seen().remove(1);
        assert!(
            again.starts_with(line) && again.ends_with(&format!("\r\n\r\n{body}")),
            "{again}"
        );
    }
}

#[tokio::test]
async fn a_name_that_changes_its_address_reaches_only_what_was_judged() {
    let inside = Sink::start(|_| OK.into()).await;
    let url = format!("http://shop.example:{}/", inside.port());
    // The call uses the first, checked address; resolving again would return an internal address.
    let names = vec![vec!["127.0.0.2"], vec!["127.0.0.1"]];
    let client = client_with_names(&["http://shop.example", "127.0.0.2"], names);
    let first = client.call(&get(url.clone())).await;
    assert!(
        failure_of(&first).ends_with("cannot be reached: connection refused"),
        "{first:?}"
    );
    let second = client.call(&get(url.clone())).await;
    assert!(
        failure_of(&second).contains("has the address 127.0.0.1, which is loopback"),
        "{second:?}"
    );
    // The call is refused if any of several addresses is refused.
    let names = vec![vec!["127.0.0.2", "127.0.0.1"]];
    let mixed = client_with_names(&["http://shop.example", "127.0.0.2"], names);
    assert!(failure_of(&mixed.call(&get(url.clone())).await).contains("loopback"));
    assert!(inside.seen().is_empty());
    // If the address is permitted, the name need not be.
    let permitted = client_with_names(&["127.0.0.0/8"], vec![vec!["127.0.0.1"]]);
    assert_eq!(&*permitted.call(&get(url)).await.body, "ok");
}
