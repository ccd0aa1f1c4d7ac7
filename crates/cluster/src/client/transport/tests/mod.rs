//! Tests against HTTP servers in this process, over loopback and TLS.

mod proxies;

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use http::Method;
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{body::Frame, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{PrivateKeyDer, pem::PemObject as _};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_rustls::TlsAcceptor;

use kube::client::Body;

use super::{super::flow::Flow, *};

fn build(config: &Config) -> Result<kube::Client, Error> {
    super::super::build(config, Flow::new(|| 0.0), None)
}

const HOST: &str = "api.cluster.example";

/// The behavior of a server.
#[derive(Clone, Copy)]
struct Manners {
    http2: bool,
    /// The maximum number of streams on an HTTP/2 connection.
    streams: u32,
    /// Closes a connection after each response.
    closes: bool,
}

const HTTP2: Manners = Manners {
    http2: true,
    streams: 100,
    closes: false,
};
const HTTP1: Manners = Manners {
    http2: false,
    ..HTTP2
};

/// The TLS of a server named [`HOST`], and its certificate.
fn tls(protocol: &[u8]) -> (TlsAcceptor, Vec<u8>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec![HOST.to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let private = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    tls.alpn_protocols = vec![protocol.to_vec()];
    let authority = certificate.der().to_vec();
    (TlsAcceptor::from(Arc::new(tls)), authority)
}

struct Server {
    address: SocketAddr,
    authority: Vec<u8>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<String>>,
    /// Breaks every connection at once.
    cut: Notify,
    /// While true, bytes are dropped in both directions.
    dead: AtomicBool,
}

impl Server {
    /// Never answers `GET /stuck`; answers watches with one line and an open end, and everything else with its own request line.
    async fn start(manners: Manners) -> Self {
        let protocol: &[u8] = if manners.http2 { b"h2" } else { b"http/1.1" };
        let (acceptor, authority) = tls(protocol);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let reported = seen.clone();
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                reported.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(tcp, acceptor.clone(), manners, reported.clone()));
            }
        });
        Self {
            address,
            authority,
            seen,
        }
    }

    fn config(&self) -> Config {
        // Another test may have installed the provider already; the error is ignored.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::new(format!("https://{}", self.address).parse().unwrap());
        config.root_cert = Some(vec![self.authority.clone()]);
        config.tls_server_name = Some(HOST.to_owned());
        config
    }

    fn client(&self) -> kube::Client {
        build(&self.config()).unwrap()
    }

    fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().clone()
    }
}

async fn serve(tcp: TcpStream, acceptor: TlsAcceptor, manners: Manners, seen: Arc<Seen>) {
    let Ok(stream) = acceptor.accept(tcp).await else {
        return;
    };
    let reported = seen.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let reported = reported.clone();
        async move { Ok::<_, Infallible>(answer(&reported, manners, &request).await) }
    });
    let cut = async {
        seen.cut.notified().await;
    };
    let io = TokioIo::new(stream);
    if manners.http2 {
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .max_concurrent_streams(manners.streams)
            .serve_connection(io, service);
        let mut connection = pin!(connection);
        if manners.closes {
            // A graceful shutdown finishes the requests in progress.
            tokio::select! {
                _ = &mut connection => return,
                () = seen.closing() => connection.as_mut().graceful_shutdown(),
            }
        }
        tokio::select! { _ = connection => {} () = cut => {} }
    } else {
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(io, service);
        tokio::select! { _ = connection => {} () = cut => {} }
    }
}

impl Seen {
    /// Waits until the server has received another request.
    async fn closing(&self) {
        let before = self.requests.lock().len();
        while self.requests.lock().len() == before {
            tokio::task::yield_now().await;
        }
    }
}

async fn answer(
    seen: &Seen,
    manners: Manners,
    request: &Request<Incoming>,
) -> Response<BoxBody<bytes::Bytes, Infallible>> {
    let host = request.headers().get(http::header::HOST);
    let host = host.map_or("", |host| host.to_str().unwrap());
    let line = format!("{} {} {host}", request.method(), request.uri());
    seen.requests.lock().push(line.clone());
    if request.uri().path() == "/stuck" {
        std::future::pending::<()>().await;
    }
    let line = bytes::Bytes::from(line);
    let first = futures::stream::once(async { Ok(Frame::data(line)) });
    let body = if request.uri().query() == Some("watch=true") {
        use futures::StreamExt as _;
        let open = first.chain(futures::stream::pending());
        BodyExt::boxed(StreamBody::new(open))
    } else {
        BodyExt::boxed(StreamBody::new(first))
    };
    let mut response = Response::new(body);
    if manners.closes && !manners.http2 {
        let close = http::HeaderValue::from_static("close");
        (response.headers_mut()).insert(http::header::CONNECTION, close);
    }
    response
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// Returns the response as text.
async fn ask(client: &kube::Client, path: &str) -> String {
    let answer = client.send(get(path)).await.unwrap();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Starts a watch, and returns its body after the first frame.
async fn watch(client: &kube::Client) -> Body {
    let answer = client.send(get("/api/v1/pods?watch=true")).await.unwrap();
    let mut body = answer.into_body();
    body.frame().await.unwrap().unwrap();
    body
}

#[tokio::test]
async fn watches_share_connections_of_http2_up_to_the_servers_limit_and_requests_pass_them() {
    let server = Server::start(Manners {
        streams: 3,
        ..HTTP2
    })
    .await;
    let client = server.client();
    let watches = futures::future::join_all((0..10).map(|_| watch(&client))).await;
    // Each connection takes three watches; those that were opened before the limit was known are closed when idle.
    let watching = server.connections();
    assert!((4..=10).contains(&watching), "{watching}");
    for _ in 0..5 {
        assert!(
            ask(&client, "/api/v1/nodes")
                .await
                .contains("/api/v1/nodes")
        );
    }
    assert_eq!(server.connections(), watching + 1);
    drop(watches);
}

#[tokio::test]
async fn at_most_eighty_watches_are_on_one_connection() {
    let server = Server::start(HTTP2).await;
    let client = server.client();
    let watches = futures::future::join_all((0..80).map(|_| watch(&client))).await;
    assert_eq!(server.connections(), 1);
    let one_more = watch(&client).await;
    assert_eq!(server.connections(), 2);
    // A watch that ends frees a stream on its connection.
    drop((watches, one_more));
    tokio::task::yield_now().await;
    let _again = watch(&client).await;
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_server_of_http1_gets_a_connection_for_each_watch_and_one_that_requests_use_again() {
    let server = Server::start(HTTP1).await;
    let client = server.client();
    let watches = futures::future::join_all((0..4).map(|_| watch(&client))).await;
    assert_eq!(server.connections(), 4);
    for _ in 0..5 {
        let line = ask(&client, "/api/v1/nodes?limit=7").await;
        assert_eq!(
            line,
            format!("GET /api/v1/nodes?limit=7 {}", server.address)
        );
        // The connection is free once the client's task has seen the end of the response.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(server.connections() <= 6, "{}", server.connections());
    drop(watches);
}

#[tokio::test]
async fn connections_that_the_server_closes_are_replaced_without_a_request_sent_twice() {
    for http2 in [true, false] {
        let server = Server::start(Manners {
            http2,
            closes: true,
            ..HTTP2
        })
        .await;
        let client = server.client();
        for at in 0..6 {
            let path = format!("/api/v1/nodes/{at}");
            assert!(ask(&client, &path).await.contains(&path));
        }
        assert_eq!(server.requests().len(), 6, "{:?}", server.requests());
        assert!(server.connections() > 1);
    }
}

#[tokio::test]
async fn a_request_that_may_have_arrived_fails_and_is_not_sent_again() {
    for manners in [HTTP2, HTTP1] {
        let server = Server::start(manners).await;
        let client = server.client();
        let request = Request::builder()
            .method(Method::POST)
            .uri("/stuck")
            .body(Body::from(b"{}".to_vec()))
            .unwrap();
        let sent = tokio::spawn({
            let client = client.clone();
            async move { client.send(request).await.map(|_| ()) }
        });
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        server.seen.cut.notify_waiters();
        assert!(sent.await.unwrap().is_err());
        assert_eq!(server.requests().len(), 1);
        // The next request gets a connection of its own.
        assert!(ask(&client, "/healthz").await.contains("/healthz"));
    }
}

#[tokio::test]
async fn a_refused_connection_is_an_error_for_everybody_who_waited() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config::new(format!("https://{address}").parse().unwrap());
    let client = build(&config).unwrap();
    let asked = futures::future::join_all((0..5).map(|_| client.send(get("/version")))).await;
    for answer in asked {
        let kube::Error::Service(error) = answer.unwrap_err() else {
            panic!("not a transport error");
        };
        let error = error.downcast::<DialError>().unwrap();
        assert!(matches!(*error, DialError::Connect(_)), "{error:?}");
    }
}

#[tokio::test]
async fn another_name_than_the_certificates_is_refused_without_tls_server_name() {
    let server = Server::start(HTTP2).await;
    let mut config = server.config();
    config.tls_server_name = None;
    let client = build(&config).unwrap();
    assert!(client.send(get("/version")).await.is_err());
    config.tls_server_name = Some("not a name".to_owned());
    let refused = build(&config).err().unwrap();
    assert!(matches!(refused, Error::ServerName(_)), "{refused}");
}
