use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Method, Request, Response, Version};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::Body;
use rustls::pki_types::ServerName;
use tokio::sync::mpsc;

use super::*;
use crate::pki::Authority;

/// The longest time to wait for an expected event.
const LIMIT: Duration = Duration::from_secs(20);
/// The time to wait for an event that must not happen.
const MOMENT: Duration = Duration::from_millis(150);

/// An in-process API server behind a proxy.
struct Bench {
    proxy: Proxy,
    client: kube::Client,
    seen: Arc<AtomicUsize>,
    /// Sends a line to every running watch.
    lines: tokio::sync::broadcast::Sender<&'static str>,
    authority: Vec<u8>,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn start(faults: Faults) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        let authority = Authority::create(&pki).unwrap();
        authority.write_server_files().unwrap();
        let pem = authority.certificate().as_bytes().to_vec();
        let user = ("heron", ["birds"].as_slice());
        let url = "https://127.0.0.1:1";
        let identity = Identity::create(&authority, folder.path(), "heron", url, user).unwrap();
        let seen = Arc::new(AtomicUsize::new(0));
        let lines = tokio::sync::broadcast::channel(16).0;
        let upstream = upstream(seen.clone(), lines.clone());
        let proxy = Proxy::start(upstream, &pki, &identity, 7).await.unwrap();
        proxy.set(faults);
        let mut config = proxy.identity().config().unwrap();
        config.default_retry = false;
        Self {
            client: Identity::client_of(config).unwrap(),
            proxy,
            seen,
            lines,
            authority: pem,
            _folder: folder,
        }
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }

    async fn text(&self, path: &str) -> kube::Result<String> {
        let request = Request::get(path).body(Vec::new()).unwrap();
        self.client.request_text(request).await
    }

    /// Starts a watch and returns its lines as they arrive, followed by an error if the watch broke.
    async fn watch(&self) -> mpsc::UnboundedReceiver<Result<String, ()>> {
        let request = Request::get("/things?watch=true").body(Body::empty());
        let answer = self.client.send(request.unwrap()).await.unwrap();
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut body = answer.into_body();
            while let Some(frame) = body.frame().await {
                let line = frame
                    .map(|frame| String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap());
                let _ = sender.send(line.map_err(drop));
            }
        });
        receiver
    }
}

/// Answers requests and counts them. A watch receives the lines.
fn upstream(
    seen: Arc<AtomicUsize>,
    lines: tokio::sync::broadcast::Sender<&'static str>,
) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, lines) = (seen.clone(), lines.subscribe());
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect_bytes().await?;
            seen.fetch_add(1, Ordering::SeqCst);
            if parts.uri.query() == Some("watch=true") {
                let frames = stream::unfold(lines, async |mut lines| {
                    let line = lines.recv().await.ok()?;
                    Some((Ok::<_, Broken>(Frame::data(Bytes::from(line))), lines))
                });
                return Ok::<_, kube::Error>(Response::new(StreamBody::new(frames).boxed_unsync()));
            }
            let kind = parts.headers.get("content-type");
            let reported = format!(
                "{} {} {} {}{}",
                parts.method,
                parts.uri,
                kind.map_or("-", |kind| kind.to_str().unwrap()),
                String::from_utf8(bytes.to_vec()).unwrap(),
                if parts.uri.path() == "/long" {
                    "x".repeat(100_000)
                } else {
                    String::new()
                },
            );
            Ok(Response::new(
                Full::new(Bytes::from(reported))
                    .map_err(|never| match never {})
                    .boxed_unsync(),
            ))
        }
    });
    kube::Client::new(service, "default")
}

fn code<T>(answer: kube::Result<T>) -> Option<u16> {
    match answer.err()? {
        kube::Error::Api(status) => Some(status.code),
        _ => Some(0),
    }
}

#[tokio::test]
async fn what_is_asked_and_answered_passes_as_it_is() {
    let bench = Bench::start(Faults::default()).await;
    let request = Request::builder()
        .method(Method::PATCH)
        .uri("/ponds/north?fieldManager=heron&x=a%20b")
        .header("content-type", "application/merge-patch+json")
        .body(b"{}".to_vec());
    let reported = bench.client.request_text(request.unwrap()).await.unwrap();
    let expected = "PATCH /ponds/north?fieldManager=heron&x=a%20b application/merge-patch+json {}";
    assert_eq!(reported, expected);
    assert_eq!(bench.proxy.counts(), BTreeMap::from([("passed", 1)]));
}

#[tokio::test]
async fn http2_carries_many_requests_on_one_connection() {
    let bench = Bench::start(Faults::default()).await;
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(&bench.authority).unwrap())
        .unwrap();
    let mut config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![front::H2.to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = tokio::net::TcpStream::connect(bench.proxy.address)
        .await
        .unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let answers = (0..20).map(|index| {
        let mut sender = sender.clone();
        let uri = format!("https://{}/ponds/{index}", bench.proxy.address);
        let request = Request::get(uri)
            .body(Full::new(Bytes::from("body")))
            .unwrap();
        async move {
            let answer = sender.send_request(request).await.unwrap();
            assert_eq!(answer.version(), Version::HTTP_2);
            answer.into_body().collect().await.unwrap().to_bytes()
        }
    });
    let answers = futures::future::join_all(answers).await;
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(answer, &format!("GET /ponds/{index} - body"));
    }
    assert_eq!(bench.seen(), 20);
}

#[tokio::test]
async fn what_is_refused_is_not_forwarded_and_says_when_to_come_back() {
    let all = |code| match code {
        429 => Faults {
            too_many: 1000,
            ..Faults::default()
        },
        410 => Faults {
            expired: 1000,
            ..Faults::default()
        },
        _ => Faults {
            internal: 1000,
            ..Faults::default()
        },
    };
    let bench = Bench::start(all(429)).await;
    assert_eq!(code(bench.text("/ponds").await), Some(429));
    let request = Request::get("/ponds").body(Body::empty()).unwrap();
    let answer = bench.client.send(request).await.unwrap();
    assert_eq!(answer.headers()["retry-after"], "1");
    bench.proxy.set(all(500));
    assert_eq!(code(bench.text("/ponds").await), Some(500));
    bench.proxy.set(all(410));
    assert_eq!(code(bench.text("/ponds?watch=true").await), Some(410));
    assert_eq!(bench.seen(), 0);
    assert_eq!(
        code(bench.text("/ponds").await),
        None,
        "only watches expire"
    );
}

#[tokio::test]
async fn a_lost_answer_is_of_a_request_that_was_done() {
    let bench = Bench::start(Faults {
        lost: 1000,
        ..Faults::default()
    })
    .await;
    assert_eq!(code(bench.text("/ponds").await), Some(0));
    assert_eq!(bench.seen(), 1);
    bench.proxy.set(Faults {
        unreached: 1000,
        ..Faults::default()
    });
    assert_eq!(code(bench.text("/ponds").await), Some(0));
    assert_eq!(bench.seen(), 1);
}

#[tokio::test]
async fn what_hangs_is_never_answered_whether_or_not_it_was_forwarded() {
    let bench = Bench::start(Faults {
        hung: 1000,
        ..Faults::default()
    })
    .await;
    let asked = (0..12).map(|_| tokio::time::timeout(MOMENT * 4, bench.text("/ponds")));
    let answers = futures::future::join_all(asked).await;
    assert!(answers.iter().all(Result::is_err), "{answers:?}");
    assert!((1..12).contains(&bench.seen()), "{} of 12", bench.seen());
}

#[tokio::test]
async fn a_torn_answer_begins_and_is_an_error() {
    let bench = Bench::start(Faults {
        torn: 1000,
        ..Faults::default()
    })
    .await;
    let request = Request::get("/long").body(Body::empty()).unwrap();
    let answer = bench.client.send(request).await.unwrap();
    let mut stream = answer.into_body().into_data_stream();
    let (mut bytes, mut broken) = (0, false);
    while let Some(data) = stream.next().await {
        match data {
            Ok(data) => bytes += data.len(),
            Err(_) => broken = true,
        }
    }
    assert!(broken && bytes < 1000, "{bytes} bytes");
}

#[tokio::test]
async fn watches_are_cut_in_order_or_in_the_middle_and_single_requests_continue() {
    let bench = Bench::start(Faults::default()).await;
    for (how, end) in [(Cut::Ended, None), (Cut::Broken, Some(Err(())))] {
        let mut watch = bench.watch().await;
        bench.lines.send("a line").unwrap();
        assert_eq!(watch.recv().await, Some(Ok("a line".to_owned())));
        bench.proxy.cut_watches(how);
        let next = tokio::time::timeout(LIMIT, watch.recv()).await.unwrap();
        assert_eq!(next, end, "{how:?}");
        assert_eq!(code(bench.text("/ponds").await), None);
    }
    bench.proxy.set(Faults {
        short: 1000,
        ..Faults::default()
    });
    let mut watch = bench.watch().await;
    assert_eq!(tokio::time::timeout(LIMIT, watch.recv()).await, Ok(None));
}

#[tokio::test]
async fn a_stalled_watch_reports_afterwards_what_happened_meanwhile() {
    let bench = Bench::start(Faults::default()).await;
    let mut watch = bench.watch().await;
    bench.proxy.stall_watches(true);
    bench.lines.send("late").unwrap();
    assert!(tokio::time::timeout(MOMENT, watch.recv()).await.is_err());
    assert_eq!(code(bench.text("/ponds").await), None);
    bench.proxy.stall_watches(false);
    let next = tokio::time::timeout(LIMIT, watch.recv()).await;
    assert_eq!(next, Ok(Some(Ok("late".to_owned()))));
}

#[tokio::test]
async fn nothing_passes_a_partition_and_all_of_it_afterwards() {
    let bench = Bench::start(Faults::default()).await;
    let mut watch = bench.watch().await;
    bench.proxy.partition(true);
    bench.lines.send("late").unwrap();
    let mut asked = std::pin::pin!(bench.text("/ponds"));
    let both = async {
        tokio::select! { _ = watch.recv() => (), _ = &mut asked => () }
    };
    assert!(tokio::time::timeout(MOMENT, both).await.is_err());
    assert_eq!(bench.seen(), 1, "the watch alone");
    bench.proxy.partition(false);
    assert_eq!(code(asked.await), None);
    assert_eq!(watch.recv().await, Some(Ok("late".to_owned())));
}
