//! The connections of one client, as a tower service: HTTP/2 if the server offers it, else HTTP/1.1.
//!
//! ```text
//!  request ─► reserve (connections) ─► sent ─► response, whose body holds the place on an HTTP/2 connection until it ends
//!                  │ none with room
//!                  ▼
//!             a task opens one and maintains it: pings, idleness, its end
//! ```
//!
//! A request that may have reached the server is not retried. A request that a closed connection returned unsent is sent on
//! another one.

mod exchange;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use http::{Request, Response};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use orkestra_ground::tasks::{self, Ends, Task};
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use tower::{BoxError, Service};

use self::exchange::{Answer, ConnectionSender, Slot};
use super::{
    CONNECT_TIMEOUT, Error,
    connections::{Connections, IDLE, Id, StreamSlot, Use},
    dial::{DialError, Dialed, Dialer, Stream},
};
use crate::gate::GatedBody;

/// A peer that is silent for this long is pinged.
const PING_AFTER: Duration = Duration::from_secs(10);
/// A peer that does not answer a ping within this time counts as dead: its requests fail, and the next ones use another
/// connection.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// How many connections a request is tried on while it is returned unsent.
const ATTEMPTS: usize = 8;
/// The most unread bytes of a watch. The connection's window has room for that of all its watches, so a watch that is not read
/// does not block the others.
const WATCH_WINDOW: u32 = 256 * 1024;

/// Sends requests. Cheap to clone; the connections close when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Transport(Arc<Pool>);

/// The connections, and how to open more.
struct Pool {
    dialer: Dialer,
    book: Mutex<Connected>,
}

struct Connected {
    connections: Connections<ConnectionSender>,
    /// Connections that are being opened.
    dials: HashMap<Id, Dial>,
}

/// The body of a request: a write is not sent once the process has lost the lease.
type Body = GatedBody<kube::client::Body>;

/// Completes when a connection is open, or cannot be opened.
type Dial = Shared<oneshot::Receiver<Result<(), DialError>>>;

impl Transport {
    /// For the server that `config` names. Opens no connection yet.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let book = Connected {
            connections: Connections::new(),
            dials: HashMap::new(),
        };
        Ok(Self(Arc::new(Pool {
            dialer: Dialer::new(config)?,
            book: Mutex::new(book),
        })))
    }
}

impl Service<Request<kube::client::Body>> for Transport {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    /// Always ready: a request that waits here would block all others behind `kube::Client`'s single buffer.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        exchange::exchange(self.0.clone(), GatedBody::of(request)).boxed()
    }
}

impl Pool {
    /// Returns a place on a connection, which is opened if necessary.
    async fn reserve(
        self: &Arc<Self>,
        used_for: Use,
    ) -> Result<(Slot, ConnectionSender), BoxError> {
        for _ in 0..ATTEMPTS {
            let dial = {
                let mut book = self.book.lock();
                match book.connections.reserve(used_for, Instant::now()) {
                    StreamSlot::Taken(id, cluster) => {
                        return Ok((Slot::new(self.clone(), id), cluster));
                    }
                    StreamSlot::Wait(id) => book.dials.get(&id).cloned(),
                    StreamSlot::Make(id) => {
                        let (done, dial) = oneshot::channel();
                        let dial = dial.shared();
                        book.dials.insert(id, dial.clone());
                        // A task of its own: others wait for the connection too if the first caller is cancelled.
                        let named = tasks::named(Task::Connection, "");
                        let made = make(self.clone(), id, used_for, done);
                        // A failed task is removed, or everyone would wait for it.
                        let pool = Arc::downgrade(self);
                        named.start_or(Ends::freely(), made, move |_| {
                            if let Some(pool) = pool.upgrade() {
                                pool.forget(id);
                            }
                        });
                        Some(dial)
                    }
                }
            };
            // A channel error means that the task was dropped with its runtime.
            if let Some(dial) = dial {
                dial.await.map_err(|_| DialError::Closed)??;
            }
        }
        Err(DialError::Closed.into())
    }

    fn forget(&self, id: Id) {
        let mut book = self.book.lock();
        book.connections.remove(id);
        book.dials.remove(&id);
    }
}

/// Opens a connection, notifies those that wait for it, and maintains it to its end.
async fn make(
    pool: Arc<Pool>,
    id: Id,
    used_for: Use,
    done: oneshot::Sender<Result<(), DialError>>,
) {
    let opened = timeout(CONNECT_TIMEOUT, open(&pool.dialer, used_for)).await;
    let (cluster, open) = match opened.unwrap_or(Err(DialError::Silent)) {
        Ok(opened) => opened,
        Err(error) => {
            pool.forget(id);
            // There may be no receivers left.
            let _ = done.send(Err(error));
            return;
        }
    };
    {
        let mut book = pool.book.lock();
        let now = Instant::now();
        book.connections.opened(id, cluster, open.limit(), now);
        book.dials.remove(&id);
    }
    let _ = done.send(Ok(()));
    // From here on the pool may be dropped: its senders are dropped with it, and the connection ends.
    let weak = Arc::downgrade(&pool);
    drop(pool);
    tend(&weak, id, open).await;
    if let Some(pool) = weak.upgrade() {
        pool.forget(id);
    }
}

/// The half of a connection that does the I/O.
enum Open {
    Two(Box<http2::Connection<Box<dyn Stream>, Body, TokioExecutor>>),
    One(Pin<Box<http1::Connection<Box<dyn Stream>, Body>>>),
}

impl Open {
    /// The number of concurrent requests that the server takes.
    fn limit(&self) -> usize {
        match self {
            Self::Two(connection) => connection.current_max_send_streams(),
            Self::One(_) => 1,
        }
    }
}

async fn open(dialer: &Dialer, used_for: Use) -> Result<(ConnectionSender, Open), DialError> {
    let Dialed { stream, is_http2 } = dialer.dial().await?;
    let refused = |error| DialError::Handshake(Arc::new(error));
    if !is_http2 {
        let (sender, connection) = http1::handshake(stream).await.map_err(refused)?;
        return Ok((
            ConnectionSender::one(sender),
            Open::One(Box::pin(connection)),
        ));
    }
    let mut builder = http2::Builder::new(TokioExecutor::new());
    if used_for == Use::Watches {
        let watches = u32::try_from(used_for.most()).unwrap_or(u32::MAX);
        builder
            .initial_stream_window_size(WATCH_WINDOW)
            .initial_connection_window_size(WATCH_WINDOW.saturating_mul(watches));
    }
    let (sender, connection) = builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        // None until the server has announced its limit; requests beyond the limit would wait unseen.
        .initial_max_send_streams(0)
        .handshake(stream)
        .await
        .map_err(refused)?;
    // A server announces it first. hyper offers no notification, so this polls.
    while connection.current_max_send_streams() == 0 {
        if sender.is_closed() {
            return Err(DialError::Closed);
        }
        sleep(Duration::from_millis(1)).await;
    }
    Ok((
        ConnectionSender::Two(sender),
        Open::Two(Box::new(connection)),
    ))
}

/// Runs a connection until the server closes it, or until it has been idle.
async fn tend(pool: &Weak<Pool>, id: Id, open: Open) {
    let ended = match open {
        Open::One(mut connection) => loop {
            tokio::select! {
                ended = &mut connection => break ended,
                () = sleep(IDLE / 3) => look_after(pool, id, None),
            }
        },
        Open::Two(mut connection) => loop {
            tokio::select! {
                ended = &mut connection => break ended,
                () = sleep(IDLE / 3) => {
                    look_after(pool, id, Some(connection.current_max_send_streams()));
                }
            }
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection to the API server ended");
    }
}

/// Closes the connection if it is idle, by dropping its sender; records how many requests it takes.
fn look_after(pool: &Weak<Pool>, id: Id, limit: Option<usize>) {
    let Some(pool) = pool.upgrade() else { return };
    let mut book = pool.book.lock();
    if let Some(limit) = limit {
        book.connections.limit(id, limit);
    }
    book.connections.close_idle(id, Instant::now());
}
