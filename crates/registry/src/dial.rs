//! Connections, made with the machine's resolver or by a function of the caller.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower::Service;

use super::resolve::Resolve;

/// The maximum size of a response's head, in bytes.
const MOST_HEAD: usize = 64 * 1024;
/// The time for which an idle connection is kept.
const IDLE: Duration = Duration::from_secs(30);

/// A pool of connections.
pub(crate) type Connections = legacy::Client<HttpsConnector<Connector>, Full<Bytes>>;

/// The reason why a connection was not made.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// It is not permitted.
    #[error("{0}")]
    Refused(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// Makes the connections of a client.
pub trait Dial: Send + Sync + 'static {
    /// Connects to scheme, host and port of a URL, without TLS. `led_by` is the registry that leads there; `None` for a connection
    /// to the registry itself.
    fn dial(
        &self,
        url: &Uri,
        led_by: Option<&Uri>,
    ) -> BoxFuture<'static, Result<TcpStream, DialError>>;
}

/// The caller's connections.
pub type Dialler = Arc<dyn Dial>;

/// Connects with the machine's resolver, or as the caller does.
#[derive(Clone)]
pub(crate) enum Connector {
    Own(HttpConnector<Resolve>),
    Given(Dialler, Option<Uri>),
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = Failed;
    type Future = BoxFuture<'static, Result<Self::Response, Failed>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        match self {
            Self::Own(own) => own.poll_ready(context).map_err(Into::into),
            Self::Given(..) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        match self {
            Self::Own(own) => {
                let connecting = own.call(url);
                Box::pin(async { Ok(connecting.await?) })
            }
            Self::Given(given, led_by) => {
                let connecting = given.dial(&url, led_by.as_ref());
                Box::pin(async {
                    let connected = connecting.await?;
                    connected.set_nodelay(true)?;
                    Ok(TokioIo::new(connected))
                })
            }
        }
    }
}

/// Returns the refusal among the causes of an error.
pub(crate) fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(DialError::Refused(why)) = cause.downcast_ref::<DialError>() {
            return Some(why.clone());
        }
        next = cause.source();
    }
    None
}

/// Connects with a resolver of this machine.
pub(crate) fn own(resolve: Resolve, patience: Duration) -> Connector {
    let mut http = HttpConnector::new_with_resolver(resolve);
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(patience));
    Connector::Own(http)
}

/// Returns an empty pool of connections.
pub(crate) fn connections(tls: ClientConfig, connector: Connector) -> Connections {
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(connector);
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .http1_max_buf_size(MOST_HEAD)
        .http2_max_header_list_size(u32::try_from(MOST_HEAD).unwrap_or(u32::MAX))
        .build(https)
}
