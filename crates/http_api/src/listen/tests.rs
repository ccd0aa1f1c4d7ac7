//! Limits of connections on a real port, with limits that are short enough for tests.

use std::time::Instant;

use axum::{body::Body, routing::get};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};

use super::*;

/// The timeout for an expected event, on a busy machine.
const SOON: Duration = Duration::from_secs(20);

const LIMITS: Limits = Limits {
    connections: 8,
    head: Duration::from_mins(1),
    idle: Duration::from_mins(1),
    answer: Duration::from_mins(1),
    stall: Duration::from_mins(1),
    keep_alive: true,
};

struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// Starts a server with a fast page, a page that never ends, and a page of a gigabyte.
async fn server(limits: Limits) -> Server {
    server_with(limits, None).await
}

async fn server_with(limits: Limits, tls: Option<Tls>) -> Server {
    let gigabyte = || async {
        let chunk = bytes::Bytes::from(vec![b'x'; 1 << 20]);
        let chunks = std::iter::repeat_n(Ok::<_, std::convert::Infallible>(chunk), 1024);
        Body::from_stream(futures::stream::iter(chunks))
    };
    let router = Router::new()
        .route("/quick", get(|| async { "quick" }))
        .route("/never", get(std::future::pending::<()>))
        .route("/gigabyte", get(gigabyte));
    let listener = bind(([127, 0, 0, 1], 0).into(), "--listen").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let port = Port {
        listener,
        limits,
        tls,
    };
    let task = tokio::spawn(serve(port, router, stop.clone()));
    Server {
        address,
        stop,
        task,
    }
}

impl Server {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Returns an open connection that has received a response.
    async fn kept(&self) -> TcpStream {
        let mut stream = self.connect().await;
        assert!(ask(&mut stream, "/quick").await);
        stream
    }

    /// Returns a connection that has sent the head of a request for `path`.
    async fn sent(&self, path: &str) -> TcpStream {
        let mut stream = self.connect().await;
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }
}

/// Returns true if a request over the connection gets a response.
async fn ask(stream: &mut TcpStream, path: &str) -> bool {
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    if stream.write_all(head.as_bytes()).await.is_err() {
        return false;
    }
    let (mut answer, mut part) = (Vec::new(), [0; 512]);
    while !answer.ends_with(b"quick") {
        match timeout(SOON, stream.read(&mut part)).await.unwrap() {
            Ok(0) | Err(_) => return false,
            Ok(read) => answer.extend_from_slice(&part[..read]),
        }
    }
    answer.starts_with(b"HTTP/1.1 200")
}

/// Waits until the connection is closed, and returns the bytes that were received before.
async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    let read = async {
        while let Ok(read) = stream.read(&mut part).await {
            if read == 0 {
                break;
            }
            all.extend_from_slice(&part[..read]);
        }
    };
    timeout(SOON, read).await.expect("not closed in time");
    all
}

fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0; 1];
    matches!(stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn it_answers_until_it_is_stopped_and_a_kept_connection_does_not_hold_it_up() {
    let server = server(LIMITS).await;
    let mut kept = server.kept().await;
    assert!(ask(&mut kept, "/quick").await, "it is not kept open");
    server.stop.cancel();
    timeout(Duration::from_secs(3), server.task)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_port_with_a_certificate_speaks_https_and_a_handshake_has_its_deadline() {
    use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let limits = Limits {
        head: Duration::from_secs(2),
        ..LIMITS
    };
    let tls = Tls::read(&certificate, &key).unwrap();
    let server = server_with(limits, Some(tls)).await;

    let mut roots = rustls::RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap();
    roots.add(root).unwrap();
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector
        .connect(name, server.connect().await)
        .await
        .unwrap();
    let head = b"GET /quick HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("quick"));
    let mut silent = server.connect().await;
    assert_eq!(until_closed(&mut silent).await, b"");
}

#[tokio::test]
async fn idle_connections_give_way_the_longest_idle_first() {
    let server = server(LIMITS).await;
    let mut streams = Vec::new();
    for _ in 0..LIMITS.connections {
        streams.push(server.kept().await);
    }
    // The first connection is now the most recently used one.
    assert!(ask(&mut streams[0], "/quick").await);
    let mut more = server.kept().await;
    assert_eq!(until_closed(&mut streams[1]).await, b"");
    for (index, stream) in streams.iter_mut().enumerate().skip(2) {
        assert!(ask(stream, "/quick").await, "{index}");
    }
    assert!(ask(&mut streams[0], "/quick").await && ask(&mut more, "/quick").await);
}

#[tokio::test]
async fn a_flood_of_idle_connections_and_slow_heads_keeps_nobody_out() {
    let server = server(LIMITS).await;
    let mut flood = Vec::new();
    for serial in 0..LIMITS.connections * 10 {
        let mut stream = server.connect().await;
        if serial % 2 == 0 {
            // The head of the request never ends.
            stream
                .write_all(b"GET /quick HTTP/1.1\r\nX: ")
                .await
                .unwrap();
        }
        flood.push(stream);
        if serial % 8 == 7 {
            let start = Instant::now();
            server.kept().await;
            assert!(start.elapsed() < SOON);
        }
    }
}

#[tokio::test]
async fn work_in_progress_does_not_give_way_and_a_further_connection_waits_for_it() {
    let server = server(LIMITS).await;
    let mut busy = Vec::new();
    for _ in 0..LIMITS.connections {
        busy.push(server.sent("/never").await);
    }
    let mut late = server.sent("/quick").await;
    let mut byte = [0; 1];
    let answered = timeout(Duration::from_millis(500), late.read(&mut byte)).await;
    assert!(
        answered.is_err(),
        "a request beyond the limit of the server was answered"
    );
    assert!(busy.iter().all(is_open));
    drop(busy.pop());
    let read = timeout(SOON, late.read(&mut byte)).await.unwrap().unwrap();
    assert_eq!((read, &byte), (1, b"H"));
}

#[tokio::test]
async fn a_peer_that_does_not_read_its_answer_gives_way_and_is_cut_in_the_end() {
    let server = server(LIMITS).await;
    let mut stalled = Vec::new();
    for _ in 0..LIMITS.connections {
        stalled.push(server.sent("/gigabyte").await);
    }
    server.kept().await;
    drop(stalled);

    let limits = Limits {
        stall: Duration::from_millis(200),
        ..LIMITS
    };
    let server = self::server(limits).await;
    let mut stream = server.sent("/gigabyte").await;
    let room = wait_until_stalled_is_cut(&server).await;
    assert!(room < SOON);
    // The client still reads the bytes in network buffers, which are a small part of the body.
    let read = until_closed(&mut stream).await;
    assert!(read.len() < 64 << 20, "{}", read.len());
}

/// Waits until a stalled connection must have been closed: for the limit, and as long again for a busy machine.
async fn wait_until_stalled_is_cut(server: &Server) -> Duration {
    let start = Instant::now();
    // Responses to other connections show that the server is not blocked.
    while start.elapsed() < Duration::from_secs(2) {
        server.kept().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    start.elapsed()
}

#[tokio::test]
async fn each_phase_of_a_request_has_its_deadline() {
    let brief = Duration::from_millis(200);
    let head = server(Limits {
        head: brief,
        ..LIMITS
    })
    .await;
    let mut silent = head.connect().await;
    assert_eq!(until_closed(&mut silent).await, b"");
    let mut slow = head.kept().await;
    let drip = async {
        loop {
            if slow.write_all(b"G").await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, drip).await.expect("not closed in time");

    let idle = server(Limits {
        idle: brief,
        ..LIMITS
    })
    .await;
    let mut kept = idle.kept().await;
    assert_eq!(until_closed(&mut kept).await, b"");

    let answer = server(Limits {
        answer: brief,
        ..LIMITS
    })
    .await;
    let mut never = answer.sent("/never").await;
    assert_eq!(until_closed(&mut never).await, b"");

    // The response does not wait for a request body that never arrives, and the connection is closed.
    let mut body = server(LIMITS).await.connect().await;
    let request = b"GET /quick HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n";
    body.write_all(request).await.unwrap();
    let answer = until_closed(&mut body).await;
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
}

#[test]
fn the_peer_with_the_most_connections_gives_way_first() {
    let room = ConnectionLimit::new(4);
    let (one, other) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
    // The oldest connection belongs to the peer that has only this one.
    let oldest = room.enter(one).unwrap();
    let crowd: Vec<_> = (0..3).map(|_| room.enter(other).unwrap()).collect();
    let next = room.enter(other).unwrap();
    assert!(!oldest.is_closed());
    assert_eq!(crowd.iter().filter(|place| place.is_closed()).count(), 1);
    assert!(crowd[0].is_closed());
    for place in crowd.iter().skip(1).chain([&next, &oldest]) {
        place.begin();
    }
    assert!(room.enter(one).is_none(), "all have a request");
    next.end();
    assert!(room.enter(one).is_some());
    assert!(next.is_closed());
}
