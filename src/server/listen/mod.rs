//! A port whose connections are bounded in number and in time.
//!
//! ```text
//!  accept ─► Room: a place? ─┬─ yes ───────────────────────────► connection: head, answer, write, each with a deadline
//!                            └─ full: the longest-idle one of the
//!                               peer with the most is closed
//! ```
//!
//! Each port has a room of its own, so that nobody who fills one port keeps another from answering.

mod connection;
mod place;
#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use orkestra_ground::tasks::{self, Task};
use tokio::{net::TcpListener, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::connection::Peer;
use self::place::Room;
use super::tls::Tls;

/// How long requests may take to end once the server stops.
const DRAIN: Duration = Duration::from_secs(5);
/// How long to wait after a connection could not be accepted: usually file descriptors are short.
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);
/// How often a full room is looked at for a connection that became idle.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What the connections of a port are held to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time. A further one takes the place of an idle one, or waits to be accepted while none is idle.
    pub connections: usize,
    /// From the first byte of a request, or from the start of the connection, to the end of the request's head.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// From the end of a request's head until the last byte of its answer has been handed to the network.
    pub answer: Duration,
    /// How long a peer may take no byte of an answer.
    pub stall: Duration,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
}

impl Limits {
    /// For metrics and pages. An idle connection lives longer than Prometheus' usual interval of 30 s.
    pub const PAGES: Self = Self {
        connections: 256,
        head: Duration::from_secs(10),
        idle: Duration::from_secs(45),
        answer: Duration::from_mins(1),
        stall: Duration::from_secs(10),
        keep_alive: true,
    };
    /// For probes, which the kubelet sends over a connection each.
    pub const PROBES: Self = Self {
        connections: 64,
        head: Duration::from_secs(5),
        idle: Duration::from_secs(5),
        answer: Duration::from_secs(5),
        stall: Duration::from_secs(2),
        keep_alive: false,
    };
}

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has the port.
    #[error("cannot listen on {address}: the address is in use; choose another one with {flag}")]
    InUse {
        /// Where.
        address: SocketAddr,
        /// What moves it.
        flag: &'static str,
    },
    /// Anything else.
    #[error("cannot listen on {address}, which {flag} sets")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// What moves it.
        flag: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Binds the port that the command-line flag `flag` sets; requests wait until [`serve`] answers them.
///
/// # Errors
/// [`Error`].
pub async fn bind(address: SocketAddr, flag: &'static str) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::InUse { address, flag },
            _ => Error::Bind {
                address,
                flag,
                source,
            },
        })
}

/// A bound port.
#[derive(Debug)]
pub struct Port {
    /// Where connections come in.
    pub listener: TcpListener,
    /// What they are held to.
    pub limits: Limits,
    /// The certificate of HTTPS; plain HTTP without one.
    pub tls: Option<Tls>,
}

/// Answers requests until `stop`; then lets those under way end, for at most five seconds.
pub async fn serve(port: Port, router: Router, stop: CancellationToken) {
    let Port {
        listener,
        limits,
        tls,
    } = port;
    let connections = TaskTracker::new();
    let room = Arc::new(Room::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let place = loop {
            if let Some(place) = room.enter(peer.ip()) {
                break place;
            }
            tokio::select! {
                () = room.left() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = stop.cancelled() => return,
            }
        };
        let answering = connection::run(
            stream,
            place,
            (limits, tls.clone()),
            router.clone(),
            stop.clone(),
        );
        tasks::named(Task::HttpConnection, "").start_on(&connections, answering);
    }
    connections.close();
    // Connections that are left then are closed with the process.
    let _ = timeout(DRAIN, connections.wait()).await;
}
