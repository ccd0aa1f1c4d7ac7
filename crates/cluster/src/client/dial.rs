//! Opens connections to the API server: directly or through the kubeconfig's proxy, with TLS and protocol negotiation.

use std::{sync::Arc, time::Duration};

use base64::Engine as _;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::{
    FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, builderstates::WantsProtocols1,
};
use hyper_util::client::legacy::connect::{
    Connection, HttpConnector,
    proxy::{SocksV5, Tunnel},
};
use kube::Config;
use percent_encoding::percent_decode_str;
use tower::{BoxError, Service, ServiceExt as _, util::BoxCloneSyncService};

use super::{CONNECT_TIMEOUT, Error, identity};

/// The delay before the first keepalive probe on a silent HTTP/1.1 connection, and the number of probes before the peer counts as
/// dead; HTTP/2 has its own pings.
const TCP_KEEPALIVE: (Duration, u32) = (Duration::from_secs(5), 3);

/// A byte stream in both directions.
pub(crate) trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

/// A connection, and whether the peers agreed on HTTP/2.
pub(crate) struct Dialed {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) is_http2: bool,
}

/// Why a connection could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DialError {
    /// It was refused, or the TLS handshake failed.
    #[error("cannot connect")]
    Connect(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The peer did not answer in time.
    #[error("no connection within {} s", CONNECT_TIMEOUT.as_secs())]
    Silent,
    /// The peer does not speak HTTP.
    #[error("HTTP handshake failed")]
    Handshake(#[source] Arc<hyper::Error>),
    /// Every connection was closed before the request was sent.
    #[error("the connection was closed before the request was sent")]
    Closed,
}

/// Opens connections to one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dialer {
    server: Uri,
    connector: BoxCloneSyncService<Uri, Dialed, BoxError>,
}

impl Dialer {
    /// For the server of `config`, through its proxy, with its certificates.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let (silence, times) = TCP_KEEPALIVE;
        tcp.set_keepalive(Some(silence));
        tcp.set_keepalive_interval(Some(silence));
        tcp.set_keepalive_retries(Some(times));
        let proxy = config.proxy_url.as_ref();
        let connector = match proxy.map(|proxy| (proxy, proxy.scheme_str())) {
            None => boxed(secured(config, tcp)?),
            Some((proxy, Some("http"))) => boxed(secured(config, tunnel(proxy, tcp)?)?),
            Some((proxy, Some("https"))) => {
                // Uses HTTP/1.1, like kube's own connector.
                let to_proxy = tls(config)?.enable_http1().wrap_connector(tcp);
                boxed(secured(config, tunnel(proxy, to_proxy)?)?)
            }
            Some((proxy, Some("socks5"))) => boxed(secured(config, socks5(proxy, tcp))?),
            Some((proxy, _)) => {
                let proxy_url = Box::new(proxy.clone());
                let error = kube::Error::ProxyProtocolUnsupported { proxy_url };
                return Err(Error::Build(error));
            }
        };
        Ok(Self {
            server: config.cluster_url.clone(),
            connector,
        })
    }

    /// Opens a connection.
    pub(crate) async fn dial(&self) -> Result<Dialed, DialError> {
        let dialed = self.connector.clone().oneshot(self.server.clone()).await;
        dialed.map_err(|error| DialError::Connect(error.into()))
    }
}

fn boxed<C>(connector: C) -> BoxCloneSyncService<Uri, Dialed, BoxError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Stream + Connection + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let connector = connector
        .map_response(|stream: C::Response| Dialed {
            is_http2: stream.connected().is_negotiated_h2(),
            stream: Box::new(stream),
        })
        .map_err(Into::into);
    BoxCloneSyncService::new(connector)
}

/// TLS that offers HTTP/2 and HTTP/1.1.
fn secured<C>(config: &Config, connector: C) -> Result<HttpsConnector<C>, Error> {
    Ok(tls(config)?.enable_all_versions().wrap_connector(connector))
}

/// TLS with the certificates of `config` and its server name.
fn tls(config: &Config) -> Result<HttpsConnectorBuilder<WantsProtocols1>, Error> {
    let mut builder = HttpsConnectorBuilder::new()
        .with_tls_config(identity::tls(config)?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into();
        let name = name.map_err(|_| Error::ServerName(config.tls_server_name.clone()))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder)
}

/// A tunnel through a proxy that may require a name and a password.
fn tunnel<C>(proxy: &Uri, connector: C) -> Result<Tunnel<C>, Error> {
    let tunnel = Tunnel::new(proxy.clone(), connector);
    let Some((user, password)) = credentials(proxy) else {
        return Ok(tunnel);
    };
    let user = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    let mut header = HeaderValue::try_from(format!("Basic {user}"))
        .map_err(|error| Error::Build(kube::Error::HttpError(error.into())))?;
    header.set_sensitive(true);
    Ok(tunnel.with_auth(header))
}

/// The same with SOCKS5.
fn socks5<C>(proxy: &Uri, connector: C) -> SocksV5<C> {
    let socks = SocksV5::new(proxy.clone(), connector);
    match credentials(proxy) {
        Some((user, password)) => socks.with_auth(user, password),
        None => socks,
    }
}

/// The name and password in a proxy's address. `http` leaves percent-encoding in place, but the proxy expects decoded names.
fn credentials(proxy: &Uri) -> Option<(String, String)> {
    let (user, _) = proxy.authority()?.as_str().rsplit_once('@')?;
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    let plain = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((plain(user), plain(password)))
}
