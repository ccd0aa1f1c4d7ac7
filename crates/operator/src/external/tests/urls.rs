//! URLs by which the author of a custom resource might reach a forbidden address.

use super::{client_with_names, failure_of, get, sink::Sink};

/// URLs that must be refused, each with a part of the reason.
const BLOCKED: &[(&str, &str)] = &[
    // loopback, in every notation
    ("http://127.0.0.1:PORT/", "loopback"),
    ("http://127.9.8.7:PORT/", "loopback"),
    ("http://127.1:PORT/", "host name or an address"),
    ("http://2130706433:PORT/", "host name or an address"),
    ("http://0x7f000001:PORT/", "host name or an address"),
    ("http://0x7f.0.0.1:PORT/", "host name or an address"),
    ("http://0177.0.0.1:PORT/", "host name or an address"),
    ("http://017700000001:PORT/", "host name or an address"),
    ("http://127.0.0.1.:PORT/", "loopback"),
    ("http://0.0.0.0:PORT/", "unspecified"),
    ("http://localhost:PORT/", "loopback"),
    ("http://LOCALHOST.:PORT/", "loopback"),
    ("http://[::1]:PORT/", "loopback"),
    ("http://[::]:PORT/", "unspecified"),
    ("http://[::ffff:127.0.0.1]:PORT/", "loopback"),
    ("http://[::ffff:7f00:1]:PORT/", "loopback"),
    ("http://[0:0:0:0:0:ffff:7f00:0001]:PORT/", "loopback"),
    ("http://[64:ff9b::7f00:1]:PORT/", "loopback"),
    // metadata services and link-local addresses
    ("http://169.254.169.254/latest/meta-data/", "link-local"),
    (
        "http://2852039166/latest/meta-data/",
        "host name or an address",
    ),
    ("http://[::ffff:a9fe:a9fe]/latest/meta-data/", "link-local"),
    ("http://[fd00:ec2::254]/latest/meta-data/", "private"),
    ("http://[fe80::1%25eth0]/", "URL"),
    ("http://100.100.100.200/latest/meta-data/", "shared"),
    ("http://metadata.google.internal/", "loopback"),
    // inside the cluster
    ("https://10.96.0.1/api/v1/secrets", "private"),
    ("https://kubernetes.default.svc/api/v1/secrets", "loopback"),
    ("http://192.168.49.2:10250/pods", "private"),
    // the host differs from the one that the URL appears to name
    ("http://shop.example@127.0.0.1:PORT/", "before an `@`"),
    ("http://127.0.0.1:PORT#@shop.example/", "loopback"),
    ("http://127.0.0.1:PORT\\@shop.example/", "URL"),
    ("http://shop.example:80@127.0.0.1:PORT/", "before an `@`"),
    ("http://127。0。0。1:PORT/", "URL"),
    ("http://①②⑦.⓪.⓪.①:PORT/", "URL"),
    ("http://127.0.0.1%00.shop.example:PORT/", "URL"),
    ("http://shop.example.evil.example:PORT/", "loopback"),
    ("http://127.0.0.1.nip.example:PORT/", "loopback"),
    // not HTTP, or incomplete
    ("file:///etc/passwd", "URL"),
    ("gopher://127.0.0.1:PORT/_x", "https://"),
    ("ftp://shop.example/", "https://"),
    ("//127.0.0.1:PORT/", "URL"),
    ("http:127.0.0.1", "URL"),
    ("http:///127.0.0.1:PORT/", "URL"),
    ("http://shop.example/ HTTP/1.1\r\nhost: 127.0.0.1", "URL"),
    ("unix:///var/run/docker.sock", "URL"),
];

#[tokio::test]
async fn no_spelling_of_a_url_reaches_what_was_not_permitted() {
    let sink = Sink::start(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".into()).await;
    // The widest entries that do not name an internal range. Every name resolves to an internal address.
    let open = [
        "http://shop.example",
        "http://*.example",
        "0.0.0.0/0",
        "::/0",
    ];
    let client = client_with_names(&open, vec![vec!["127.0.0.1"]]);
    assert!(BLOCKED.len() >= 30);
    for (url, why) in BLOCKED {
        let url = url.replace("PORT", &sink.port().to_string());
        let answer = client.call(&get(url.clone())).await;
        assert!(
            failure_of(&answer).contains(why),
            "{url}: {}",
            failure_of(&answer)
        );
        assert!(answer.error.unwrap().permanent, "{url}");
    }
    assert!(sink.seen().is_empty(), "{:?}", sink.seen());
}

#[tokio::test]
async fn without_the_flag_no_url_is_called_and_no_name_looked_up() {
    let sink = Sink::start(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".into()).await;
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let ask = asked.clone();
    let resolver = super::Resolver::new(move |_| {
        ask.store(true, std::sync::atomic::Ordering::Relaxed);
        Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) })
    });
    let client = super::Client::new(super::guard(&[]), super::Variables::default(), resolver);
    for url in [sink.url(), "https://shop.example/".to_owned()] {
        let answer = client.call(&get(url)).await;
        assert!(
            failure_of(&answer).contains("--external-allow"),
            "{answer:?}"
        );
    }
    assert!(sink.seen().is_empty() && !asked.load(std::sync::atomic::Ordering::Relaxed));
}
