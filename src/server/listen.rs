//! A port, and connections with limits.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Connections at a time; further ones wait to be accepted.
const CONNECTIONS: usize = 256;
/// How long the head of a request may take, also on a connection that idles between requests.
/// Off the usual scrape intervals, so that a kept connection is not closed just as it is used.
const HEAD: Duration = Duration::from_secs(45);
/// Longest head of a request, in bytes.
const HEAD_BYTES: usize = 32 * 1024;
/// How long requests may take to end once the server stops.
const DRAIN: Duration = Duration::from_secs(5);
/// How long to wait after a connection could not be accepted: usually file descriptors are short.
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has the port.
    #[error("cannot listen on {0}: another process does; choose another address with --listen")]
    InUse(SocketAddr),
    /// Anything else.
    #[error("cannot listen on {address}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// Takes the port; requests wait until [`serve`] answers them.
///
/// # Errors
/// [`Error`].
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::InUse(address),
            _ => Error::Bind { address, source },
        })
}

/// Answers requests until `stop`; then lets those under way end, for at most five seconds.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let connections = TaskTracker::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connection(stream, router.clone(), stop.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    connections.close();
    // Whoever is still there after that is cut off.
    let _ = timeout(DRAIN, connections.wait()).await;
}

async fn connection(stream: TcpStream, router: Router, stop: CancellationToken) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
