//! A server on the loopback interface for external calls: the path selects the answer, and all requests are recorded.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Result;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::scenario::pause;

/// The server. It ends when this value is dropped.
pub(crate) struct Sink {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct State {
    /// The status and body by the prefix of the path; 404 for other paths.
    answers: BTreeMap<String, (u16, String)>,
    requests: Vec<String>,
}

impl Sink {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, shared.clone()));
            }
        });
        Ok(Self {
            address,
            state,
            _tasks: tasks,
        })
    }

    /// Returns the URL of the server, `http://127.0.0.1:port`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the answer for paths with that prefix.
    pub(crate) fn answer(&self, path: &str, status: u16, body: &str) {
        let mut state = self.state.lock();
        state
            .answers
            .insert(path.to_owned(), (status, body.to_owned()));
    }

    /// Returns the requests so far for paths with that prefix.
    pub(crate) fn requests(&self, path: &str) -> Vec<String> {
        let state = self.state.lock();
        let asks = |request: &&String| {
            request
                .split(' ')
                .nth(1)
                .is_some_and(|of| of.starts_with(path))
        };
        state.requests.iter().filter(asks).cloned().collect()
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let (mut request, mut buffer) = (String::new(), [0; 4096]);
    while !request.contains("\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => request.push_str(&String::from_utf8_lossy(&buffer[..n])),
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let answer = {
        let mut state = state.lock();
        state.requests.push(request);
        let mut answers = state.answers.iter();
        let found = answers.find(|(start, _)| path.starts_with(*start));
        found.map_or((404, String::new()), |(_, answer)| answer.clone())
    };
    // A client that closes the connection ends the answer.
    let _ = match path.get(..5) {
        Some("/hang") => return std::future::pending().await,
        Some("/drip") => drip(stream).await,
        Some("/endl") => endless(stream).await,
        _ => {
            let (status, body) = answer;
            let length = body.len();
            let text = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}");
            stream.write_all(text.as_bytes()).await
        }
    };
}

async fn drip(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await?;
    loop {
        pause(Duration::from_millis(100)).await;
        stream.write_all(b"y").await?;
    }
}

async fn endless(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    loop {
        stream.write_all(&[b'y'; 16 * 1024]).await?;
    }
}
