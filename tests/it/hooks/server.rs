//! A server of hooks on the loopback interface: the path selects the function, and all requests are recorded.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use anyhow::Result;
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;

/// What a path answers.
#[derive(Clone)]
pub(crate) enum Answer {
    /// What the function returns for a request.
    Of(fn(&Value) -> Value),
    /// A status without a body.
    Status(u16),
    /// Text that is no JSON.
    Text(&'static str),
    /// A body without an end.
    Endless,
    /// No answer.
    Never,
}

/// The server. It ends when this value is dropped.
pub(crate) struct Hooks {
    address: SocketAddr,
    state: Arc<Mutex<Recorded>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Recorded {
    answers: BTreeMap<String, Answer>,
    requests: Vec<(String, Value)>,
}

impl Hooks {
    pub(crate) async fn start() -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(Recorded::default()));
        let router = Router::new().fallback(answer).with_state(state.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // It ends with its task.
            let _ = axum::serve(listener, router).await;
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

    /// Sets the answer of a path.
    pub(crate) fn answer(&self, path: &str, answer: Answer) {
        self.state.lock().answers.insert(path.to_owned(), answer);
    }

    /// Returns the bodies of the requests so far of a path, about the custom resource of that name.
    pub(crate) fn requests(&self, path: &str, name: &str) -> Vec<Value> {
        let state = self.state.lock();
        let asked = state.requests.iter().filter(|(of, _)| of == path);
        let about = asked.filter(|(_, body)| body["object"]["metadata"]["name"] == name);
        about.map(|(_, body)| body.clone()).collect()
    }
}

async fn answer(State(state): State<Arc<Mutex<Recorded>>>, uri: Uri, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = {
        let mut state = state.lock();
        state.requests.push((uri.path().to_owned(), body.clone()));
        state.answers.get(uri.path()).cloned()
    };
    match answer {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(Answer::Of(function)) => function(&body).to_string().into_response(),
        Some(Answer::Status(status)) => StatusCode::from_u16(status)
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            .into_response(),
        Some(Answer::Text(text)) => text.into_response(),
        Some(Answer::Endless) => {
            let parts = futures::stream::repeat_with(|| {
                Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 65536]))
            });
            Body::from_stream(parts.boxed()).into_response()
        }
        Some(Answer::Never) => std::future::pending().await,
    }
}
