//! The client, with servers that lead it elsewhere, do not end, or answer nonsense.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of test functions"
)]

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{HeaderValue, Method, header};
use orkestra_egress::{
    Client, Error, Guard, Leader, Limits, RedirectError, Refusal, Request, Resolver, Response,
    Target,
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

const LIMITS: Limits = Limits {
    patience: Duration::from_secs(2),
    slowest: 100 << 20,
};
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A server that answers each request of a connection, and counts connections.
struct Server {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    /// The number of connections that have ended.
    ended: watch::Receiver<usize>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, ended) = watch::channel(0);
        let (answer, seen, opened) = (Arc::new(answer), heads.clone(), connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                opened.fetch_add(1, Ordering::SeqCst);
                let (answer, seen, count) = (answer.clone(), seen.clone(), count.clone());
                tokio::spawn(async move {
                    // The client is expected to close the connection.
                    let _ = serve(stream, &*answer, &seen).await;
                    count.send_modify(|count| *count += 1);
                });
            }
        });
        Self {
            address,
            heads,
            connections,
            ended,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: &(impl Fn(&str) -> String + ?Sized),
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        seen.lock().push(head.clone());
        let response = answer(&head);
        stream.write_all(response.as_bytes()).await?;
        while response.ends_with("endless") {
            stream.write_all(&[b' '; 8192]).await?;
        }
    }
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

/// Returns a resolver with one answer, and the number of times that it was asked.
fn resolver(address: &str) -> (Resolver, Arc<AtomicUsize>) {
    let address: IpAddr = address.parse().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let resolver = Resolver::new(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok(vec![address]) })
    });
    (resolver, asked)
}

fn guard(entries: &[&str]) -> Guard {
    Guard::new(entries.iter().map(|entry| entry.parse().unwrap()).collect())
}

async fn get(client: &Client, url: &str) -> Result<Response, Error> {
    let request = Request::new(Method::GET, Target::parse(url).unwrap());
    client.send(request, LIMITS.patience).await
}

async fn text(client: &Client, url: &str) -> String {
    let response = get(client, url).await.unwrap();
    String::from_utf8(response.read(100, LIMITS).await.unwrap()).unwrap()
}

#[tokio::test]
async fn an_address_in_a_url_is_checked_although_no_resolver_sees_it() {
    let (resolver, asked) = resolver("127.0.0.1");
    let client = Client::new(guard(&["0.0.0.0/0", "::/0", "127.0.0.1"]), resolver);
    for inside in [
        "http://169.254.169.254/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://10.0.0.1/",
        "http://[fd00::1]/",
        "http://[::]/",
    ] {
        let error = get(&client, inside).await.unwrap_err();
        assert!(
            matches!(error, Error::Refused(Refusal::Closed { .. })),
            "{inside}: {error}"
        );
        let server = Server::start(move |_| redirect(inside)).await;
        let error = get(&client, &server.url("/")).await.unwrap_err();
        let Error::Redirect { from, why } = error else {
            unreachable!("{inside}: {error}");
        };
        assert_eq!(from, server.url(""));
        assert!(matches!(why, RedirectError::Refused(_)), "{inside}: {why}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn every_hop_is_resolved_once_and_connected_to_the_checked_address() {
    let server = Server::start(|head| {
        if head.starts_with("get /a ") {
            redirect("/b")
        } else {
            OK.to_owned()
        }
    })
    .await;
    let (resolver, asked) = resolver("127.0.0.1");
    let client = Client::new(guard(&["http://shop.example", "127.0.0.1"]), resolver);
    let url = format!("http://shop.example:{}/a", server.address.port());
    assert_eq!(text(&client, &url).await, "ok");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "once for each connection");
    let host = format!("host: shop.example:{}\r\n", server.address.port());
    assert!(server.heads.lock().iter().all(|head| head.contains(&host)));
}

#[tokio::test]
async fn headers_do_not_change_the_server_or_the_end_of_a_message() {
    let server = Server::start(|_| OK.to_owned()).await;
    let client = Client::new(guard(&["127.0.0.1"]), Resolver::system());
    let mut request = Request::new(Method::GET, Target::parse(&server.url("/")).unwrap());
    for (name, value) in [
        (header::HOST, "inside.example"),
        (header::CONTENT_LENGTH, "7"),
        (header::TRANSFER_ENCODING, "chunked"),
        (header::CONNECTION, "keep-alive"),
    ] {
        request
            .own
            .insert(name.clone(), HeaderValue::from_static(value));
        request
            .headers
            .insert(name, HeaderValue::from_static(value));
    }
    client.send(request, LIMITS.patience).await.unwrap();
    let head = server.heads.lock().remove(0);
    assert!(
        head.contains(&format!("host: {}\r\n", server.address)),
        "{head}"
    );
    assert!(head.contains("connection: close\r\n"), "{head}");
    for absent in ["inside.example", "content-length", "transfer-encoding"] {
        assert!(!head.contains(absent), "{head}");
    }
}

#[tokio::test]
async fn connections_are_kept_for_one_leader_alone() {
    let server = Server::start(|_| OK.to_owned()).await;
    let single = Client::new(Guard::of_user(), Resolver::system());
    let kept = single.clone().keeping();
    for (client, connections) in [(&kept, 1), (&single, 3)] {
        for _ in 0..2 {
            assert_eq!(text(client, &server.url("/")).await, "ok");
        }
        assert_eq!(server.connections.load(Ordering::SeqCst), connections);
    }
    let to = server.url("/");
    let other = Server::start(move |_| redirect(&to)).await;
    assert_eq!(text(&kept, &other.url("/")).await, "ok");
    assert_eq!(server.connections.load(Ordering::SeqCst), 4, "not shared");
}

#[tokio::test]
async fn a_server_leads_where_it_is_itself_and_not_further() {
    let near = Server::start(|_| OK.to_owned()).await;
    let to = near.url("/");
    let server = Server::start(move |_| redirect(&to)).await;
    let client = Client::new(Guard::of_user(), Resolver::system());
    assert_eq!(text(&client, &server.url("/")).await, "ok");
    let mut led = Request::new(Method::GET, Target::parse(&near.url("/")).unwrap());
    let leader = |url: &str, address: &str| {
        Some(Leader {
            server: Target::parse(url).unwrap(),
            address: address.parse().ok(),
        })
    };
    // The address at which the leader answered counts, whatever its name resolves to now.
    for address in ["93.184.215.14", "10.0.0.1", ""] {
        led.led_by = leader("http://localhost/", address);
        let error = client.send(led.clone(), LIMITS.patience).await.unwrap_err();
        assert!(
            matches!(error, Error::Refused(Refusal::Led { .. })),
            "{address}: {error}"
        );
    }
    led.led_by = leader("https://localhost/", "127.0.0.1");
    let error = client.send(led, LIMITS.patience).await.unwrap_err();
    assert!(
        error.to_string().contains("from HTTPS to plain HTTP"),
        "{error}"
    );
}

#[tokio::test]
async fn a_detour_over_another_server_widens_nothing() {
    let near = Server::start(|_| OK.to_owned()).await;
    let (to, port) = (near.url("/inside"), near.address.port());
    let other = Server::start(move |_| redirect(&to)).await;
    let away = format!("http://charts.example:{}/", other.address.port());
    let first = Server::start(move |_| redirect(&away)).await;
    let (resolver, _) = resolver("127.0.0.1");
    // The second server is permitted by its entries, and only the first one is on this machine by its name.
    let entries = ["http://charts.example", "127.0.0.1"].map(|entry| {
        let port = other.address.port();
        format!("{entry}:{port}").parse().unwrap()
    });
    let client = Client::new(Guard::at_desk(entries.to_vec()), resolver);
    let error = get(&client, &first.url("/")).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Redirect {
                why: RedirectError::Refused(_),
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains(&format!("127.0.0.1:{port}")),
        "{error}"
    );
    assert!(near.heads.lock().is_empty());
}

#[tokio::test]
async fn heads_and_bodies_are_limited_and_a_dropped_response_ends_its_connection() {
    let client = Client::new(guard(&["127.0.0.1"]), Resolver::system());
    let head = Server::start(|_| "HTTP/1.1 200 OK\r\nx: endless".to_owned()).await;
    let error = get(&client, &head.url("/")).await.unwrap_err();
    assert!(matches!(error, Error::Broken(_)), "{error}");
    let mut body = Server::start(|_| "HTTP/1.1 200 OK\r\n\r\nendless".to_owned()).await;
    let response = get(&client, &body.url("/")).await.unwrap();
    let error = response.read(1 << 20, LIMITS).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let unread = get(&client, &body.url("/")).await.unwrap();
    drop(unread);
    let both = |ended: &usize| *ended == 2;
    let ending = tokio::time::timeout(Duration::from_mins(1), body.ended.wait_for(both));
    assert!(ending.await.is_ok(), "a connection stays open");
}

#[tokio::test]
async fn a_silent_server_runs_into_the_limit() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(guard(&["127.0.0.1"]), Resolver::system());
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let error = get(&client, &url).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}
