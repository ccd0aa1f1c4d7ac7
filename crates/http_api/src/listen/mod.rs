//! A port with limits on the number and duration of connections.
//!
//! ```text
//!  accept ─► Room: a place? ─┬─ yes ───────────────────────────► connection: head, response, write, each with a deadline
//!                            └─ full: the longest idle one of the
//!                               peer with the most is closed
//! ```
//!
//! Each port has its own room, so that a client that fills one port does not block another.

mod connection;
mod slots;
#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use orkestra_ground::tasks::{self, Task};
use tokio::{net::TcpListener, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::connection::{Certified, Peer};
use self::slots::ConnectionLimit;
use super::tls::Tls;

/// How long requests may take to complete once the server stops.
const DRAIN: Duration = Duration::from_secs(5);
/// The delay after a connection could not be accepted, usually because file descriptors are exhausted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);
/// The interval at which a full room is checked for an idle connection.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The limits for the connections of a port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most concurrent connections. A further one replaces an idle one, or waits to be accepted while none is idle.
    pub connections: usize,
    /// From the first byte of a request, or the start of the connection, to the end of the request's head.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// From the end of a request's head until the last byte of the response was passed to the network.
    pub answer: Duration,
    /// How long a peer may accept no byte of a response.
    pub stall: Duration,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
}

impl Limits {
    /// For metrics and pages. An idle connection is kept longer than Prometheus' usual interval of 30 s.
    pub const PAGES: Self = Self {
        connections: 256,
        head: Duration::from_secs(10),
        idle: Duration::from_secs(45),
        answer: Duration::from_mins(1),
        stall: Duration::from_secs(10),
        keep_alive: true,
    };
    /// For webhooks. Idle connections are kept longer than the API server keeps them, which closes its own after 90 s: a
    /// connection that is closed while it sends a request loses the request.
    pub const WEBHOOKS: Self = Self {
        connections: 256,
        head: Duration::from_secs(10),
        idle: Duration::from_mins(5),
        answer: Duration::from_secs(30),
        stall: Duration::from_secs(10),
        keep_alive: true,
    };
    /// For probes: the kubelet opens a connection for each.
    pub const PROBES: Self = Self {
        connections: 64,
        head: Duration::from_secs(5),
        idle: Duration::from_secs(5),
        answer: Duration::from_secs(5),
        stall: Duration::from_secs(2),
        keep_alive: false,
    };
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process uses the port.
    #[error("cannot listen on {address}: the address is in use; choose another one with {flag}")]
    InUse {
        /// The address.
        address: SocketAddr,
        /// The flag that sets the address.
        flag: &'static str,
    },
    /// Any other error.
    #[error("cannot listen on {address}, which {flag} sets")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The flag that sets the address.
        flag: &'static str,
        /// The cause.
        source: io::Error,
    },
}

/// Binds the port of the command-line flag `flag`; requests wait until [`serve`] answers them.
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
    /// The listener for connections.
    pub listener: TcpListener,
    /// The limits for connections.
    pub limits: Limits,
    /// The certificate of HTTPS; plain HTTP without one.
    pub tls: Option<Tls>,
}

/// Answers requests until `stop` is cancelled; then lets requests in progress complete, for at most five seconds.
pub async fn serve(port: Port, router: Router, stop: CancellationToken) {
    let Port {
        listener,
        limits,
        tls,
    } = port;
    let connections = TaskTracker::new();
    let room = Arc::new(ConnectionLimit::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
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
    // Who connects now is refused, and turns to another replica at once.
    drop(listener);
    connections.close();
    // Connections that are left then are closed with the process.
    let _ = timeout(DRAIN, connections.wait()).await;
}
