//! A server on the loopback interface that records requests.

use std::{borrow::Cow, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// A server that stops when it is dropped.
pub(crate) struct Sink {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

/// The behavior of a server after it has received a request.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    /// Sends nothing.
    Hang,
    /// Sends its head one character at a time.
    Drip,
    /// Sends its head, and a body that never ends.
    Endless,
    /// Sends header lines without end.
    EndlessHead,
    /// Sends data that is not HTTP.
    Noise,
}

impl Sink {
    /// Starts a server that responds to each request with the result of `answer` for its first line, then closes the connection.
    pub(crate) async fn start(
        answer: impl Fn(&str) -> Cow<'static, str> + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::serve(move |mut stream: TcpStream, head| {
            let answer = answer.clone();
            async move {
                let _ = stream.write_all(answer(&head).as_bytes()).await;
            }
        })
        .await
    }

    /// Starts a server that behaves as described by `manner` until the client disconnects.
    pub(crate) async fn behaving(manner: Manner) -> Self {
        Self::serve(move |stream, _| misbehave(stream, manner)).await
    }

    async fn serve<F>(act: impl Fn(TcpStream, String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read(&mut stream).await;
                let line = request.lines().next().unwrap_or_default().to_owned();
                kept.lock().push(request);
                connections.spawn(act(stream, line));
            }
        });
        Self {
            address,
            seen,
            _tasks: tasks,
        }
    }

    /// `http://127.0.0.1:port`
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the received requests, in the order of arrival.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }
}

/// Reads a request: its head, and a body of the announced length.
async fn read(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            body.len() >= length.map_or(0, |length| length.parse().unwrap())
        });
        if whole {
            return text;
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(n) => text.push_str(&String::from_utf8_lossy(&buffer[..n])),
        }
    }
}

async fn misbehave(mut stream: TcpStream, manner: Manner) {
    let (first, again): (&[u8], &[u8]) = match manner {
        Manner::Hang => return std::future::pending().await,
        Manner::Drip => (b"HTTP/1.1 200 OK\r\nx: ", b"y"),
        Manner::Endless => (
            b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
            &[b'y'; 16 * 1024],
        ),
        Manner::EndlessHead => (
            b"HTTP/1.1 200 OK\r\n",
            b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n",
        ),
        Manner::Noise => (b"220 mail.example\r\n", b"500 what?\r\n"),
    };
    let mut said = stream.write_all(first).await;
    while said.is_ok() {
        if matches!(manner, Manner::Drip) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        said = stream.write_all(again).await;
    }
}
