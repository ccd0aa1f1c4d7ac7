//! Hostile registries: each attack ends in an error, within its bound of time and memory.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of test functions"
)]

#[path = "hostile/content.rs"]
mod content;
#[path = "hostile/credentials.rs"]
mod credentials;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use orkestra_registry::{
    Client, Credential, Descriptor, Error, Keychain, Limits, Options, Reference, media,
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The action on a connection after the head of a request was read.
enum Act {
    /// Sends this and closes.
    Send(Vec<u8>),
    /// Sends this, then zeros until the client closes the connection.
    Endless(String),
    /// Sends this, then a byte every 50 ms.
    Drip(String),
    /// Sends nothing.
    Silence,
}

/// A server that responds with a function of the request's head, and stores the heads.
struct Server {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen) = (Arc::new(answer), heads.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, seen) = (answer.clone(), seen.clone());
                tokio::spawn(async move {
                    // The client is expected to close the connection.
                    let _ = serve(stream, &*answer, &seen).await;
                });
            }
        });
        Self { address, heads }
    }

    fn reference(&self) -> Reference {
        format!("{}/a/b:v1", self.address).parse().unwrap()
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: &(impl Fn(&str) -> Act + ?Sized),
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
        if head.first() == Some(&0x16) {
            // A TLS handshake.
            return stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    seen.lock().push(head.clone());
    match answer(&head) {
        Act::Send(bytes) => stream.write_all(&bytes).await,
        Act::Endless(start) => {
            stream.write_all(start.as_bytes()).await?;
            let blanks = vec![b' '; 65536];
            loop {
                stream.write_all(&blanks).await?;
            }
        }
        Act::Drip(start) => {
            stream.write_all(start.as_bytes()).await?;
            loop {
                stream.write_all(b" ").await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Act::Silence => {
            let mut rest = [0; 16];
            while stream.read(&mut rest).await? > 0 {}
            Ok(())
        }
    }
}

fn head(status: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head + "Connection: close\r\n"
}

fn answer(content_type: &str, body: &str) -> Act {
    let length = body.len().to_string();
    let head = head(
        "200 OK",
        &[("Content-Type", content_type), ("Content-Length", &length)],
    );
    Act::Send(format!("{head}\r\n{body}").into_bytes())
}

fn redirect(to: &str) -> Act {
    Act::Send(
        format!(
            "{}\r\n",
            head(
                "307 Temporary Redirect",
                &[("Location", to), ("Content-Length", "0")]
            )
        )
        .into_bytes(),
    )
}

fn client(keychain: Keychain) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new(Options {
        plain_http: true,
        limits: Limits {
            patience: Duration::from_secs(1),
            slowest: 100 << 20,
        },
        ..Options::of_user(keychain, Vec::new())
    })
}

/// Returns the error of fetching a manifest, which must occur soon.
async fn fails(act: impl Fn(&str) -> Act + Send + Sync + 'static) -> Error {
    let server = Server::start(act).await;
    let start = Instant::now();
    let error = client(Keychain::anonymous())
        .fetch(&server.reference())
        .await
        .unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(20), "{error}");
    error
}

fn blob(content: &[u8], size: u64) -> Descriptor {
    let mut blob = Descriptor::of("application/octet-stream", content);
    blob.size = size;
    blob
}

#[tokio::test]
async fn a_body_without_an_end_is_read_up_to_the_bound() {
    let endless =
        |_: &str| Act::Endless(head("200 OK", &[("Content-Type", media::MANIFEST)]) + "\r\n");
    let error = fails(endless).await;
    assert!(
        error.to_string().contains("more than 4194304 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn a_slow_body_and_a_silent_server_run_into_the_limit() {
    let drip = |_: &str| Act::Drip(head("200 OK", &[("Content-Type", media::MANIFEST)]) + "\r\n");
    let error = fails(drip).await;
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    let error = fails(|_| Act::Drip("HTTP/1.1 200 OK\r\nX: ".to_owned())).await;
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    let error = fails(|_| Act::Silence).await;
    assert!(
        matches!(error, Error::TimedOut { .. }) && error.is_unreachable(),
        "{error}"
    );
}

#[tokio::test]
async fn a_head_without_an_end_is_an_error() {
    let error = fails(|_| Act::Endless("HTTP/1.1 200 OK\r\nX: ".to_owned())).await;
    assert!(error.is_unreachable(), "{error}");
}

#[tokio::test]
async fn a_redirect_into_another_kind_of_network_is_refused() {
    for (target, kind) in [
        ("http://169.254.169.254/latest/meta-data", "link-local"),
        ("http://10.0.0.1/x", "private"),
        ("http://[::ffff:169.254.169.254]/", "link-local"),
    ] {
        let error = fails(move |_| redirect(target)).await;
        assert!(
            matches!(error, Error::Refused { .. }) && error.to_string().contains(kind),
            "{error}"
        );
    }
    for target in [
        "ftp://127.0.0.1/",
        "http://user@127.0.0.1/",
        "//127.0.0.1/",
        "relative",
        "",
    ] {
        let error = fails(move |_| redirect(target)).await;
        assert!(
            matches!(error, Error::Malformed { .. }),
            "{target}: {error}"
        );
    }
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let error = fails(|head| redirect(head.split(' ').nth(1).unwrap_or("/"))).await;
    assert!(
        error.to_string().contains("more than 5 redirects"),
        "{error}"
    );
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect_to_another_host() {
    let other = Server::start(|_| answer("application/octet-stream", "content")).await;
    let target = format!("http://{}/elsewhere", other.address);
    let server = Server::start(move |request| {
        if !request.to_lowercase().contains("authorization: basic") {
            let challenge = [
                ("WWW-Authenticate", "Basic realm=\"r\""),
                ("Content-Length", "0"),
            ];
            return Act::Send(format!("{}\r\n", head("401 Unauthorized", &challenge)).into_bytes());
        }
        redirect(&target)
    })
    .await;
    let user = Credential::Basic {
        user: "u".to_owned(),
        password: "p".to_owned(),
    };
    let reference = server.reference();
    let read = client(Keychain::given(user))
        .fetch_blob(&reference.repository, &blob(b"content", 7), 100)
        .await;
    assert_eq!(read.unwrap(), "content");
    let heads = other.heads();
    assert_eq!(heads.len(), 1);
    assert!(
        !heads[0].to_lowercase().contains("authorization"),
        "{}",
        heads[0]
    );
    assert!(
        server
            .heads()
            .iter()
            .any(|head| head.to_lowercase().contains("authorization: basic"))
    );
}

#[tokio::test]
async fn a_token_server_in_another_kind_of_network_is_not_called() {
    let error = fails(|_| {
        let challenge = [
            (
                "WWW-Authenticate",
                "Bearer realm=\"http://169.254.169.254/token\"",
            ),
            ("Content-Length", "0"),
        ];
        Act::Send(format!("{}\r\n", head("401 Unauthorized", &challenge)).into_bytes())
    })
    .await;
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[tokio::test]
async fn a_registry_on_this_machine_may_speak_plain_http_and_no_other_may() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let index = format!(
        r#"{{"schemaVersion":2,"mediaType":"{}","manifests":[]}}"#,
        media::INDEX
    );
    let server = Server::start(move |_| answer(media::INDEX, &index)).await;
    let client = Client::new(Options {
        limits: Limits {
            patience: Duration::from_secs(5),
            slowest: 1 << 20,
        },
        ..Options::of_user(Keychain::anonymous(), Vec::new())
    });
    client.fetch(&server.reference()).await.unwrap();
    // The same server under a name that is not recognized as this machine.
    let named: Reference = format!("localhost.:{}/a/b:v1", server.address.port())
        .parse()
        .unwrap();
    let error = client.fetch(&named).await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
}
