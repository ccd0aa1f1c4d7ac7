//! A server that answers with a function of the request.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// The head, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key == name).then_some(value.trim())
        })
    }
}

/// The response to a request.
pub(crate) enum Act {
    /// A response.
    Send(Vec<u8>),
    /// Sends this, then blanks until the client closes the connection.
    Endless(String),
    /// Sends this, then a byte every 50 ms.
    Drip(String),
    /// Sends nothing.
    Silence,
}

pub(crate) fn ok(headers: &str, body: impl AsRef<[u8]>) -> Act {
    respond("200 OK", headers, body)
}

pub(crate) fn respond(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Act {
    let body = body.as_ref();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    Act::Send([head.as_bytes(), body].concat())
}

pub(crate) fn redirect(to: &str) -> Act {
    respond("302 Found", &format!("location: {to}\r\n"), "")
}

pub(crate) fn not_found() -> Act {
    respond("404 Not Found", "", "")
}

/// A server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Request) -> Act + Send + Sync + 'static) -> Self {
        Self::start_with(None, answer).await
    }

    /// Starts a server over TLS. Returns the certificate to trust, too.
    pub(crate) async fn start_tls(
        answer: impl Fn(&Request) -> Act + Send + Sync + 'static,
    ) -> (Self, CertificateDer<'static>) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let certificate = made.cert.der().clone();
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        (Self::start_with(Some(acceptor), answer).await, certificate)
    }

    async fn start_with(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Request) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, record) = (Arc::new(answer), seen.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, record, tls) = (answer.clone(), record.clone(), tls.clone());
                tokio::spawn(async move {
                    // The client is expected to close the connection.
                    let _ = match tls {
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &*answer, &record).await,
                            Err(error) => Err(error),
                        },
                        None => serve(stream, &*answer, &record).await,
                    };
                });
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the requests since the last call.
    pub(crate) fn seen(&self) -> Vec<Request> {
        std::mem::take(&mut *self.seen.lock())
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: &(impl Fn(&Request) -> Act + ?Sized),
    seen: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
        if read.first() == Some(&0x16) {
            // A TLS handshake.
            return stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    };
    let text = String::from_utf8_lossy(&read[..end]).into_owned();
    let mut words = text.split(' ');
    let mut request = Request {
        method: words.next().unwrap_or_default().to_owned(),
        path: words.next().unwrap_or_default().to_owned(),
        head: text.to_lowercase(),
        body: read.split_off(end),
    };
    let length = request
        .header("content-length")
        .map_or("0", |length| length);
    let length: usize = length.parse().unwrap();
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await? == 0 {
            return Ok(());
        }
    }
    seen.lock().push(request.clone());
    let act = answer(&request);
    respond_with(act, &mut stream).await
}

/// Sends a response, until it is complete or the client closes the connection.
async fn respond_with(
    act: Act,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> std::io::Result<()> {
    match act {
        Act::Send(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        }
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
                stream.flush().await?;
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
