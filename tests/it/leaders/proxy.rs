//! A TCP proxy in front of the API server that can stop forwarding requests.

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A proxy that forwards bytes in both directions until the test ends.
pub(crate) struct Proxy {
    /// The URL of the proxy, as written in a kubeconfig.
    pub(crate) url: String,
    held: watch::Sender<bool>,
}

impl Proxy {
    /// Starts a proxy in front of the server at `url`.
    pub(crate) async fn start(url: &str) -> Result<Self> {
        let server = url.strip_prefix("https://").context("no https")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (held, holds) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, holds) = (server.clone(), holds.clone());
                tokio::spawn(async move {
                    // Errors are ignored: a test may break connections on purpose.
                    let _ = pass(client, &server, holds).await;
                });
            }
        });
        Ok(Self {
            url: format!("https://127.0.0.1:{port}"),
            held,
        })
    }

    /// Stops forwarding what clients send; what the server sends is still forwarded.
    pub(crate) fn hold_requests(&self) {
        self.held.send_replace(true);
    }
}

async fn pass(client: TcpStream, server: &str, mut holds: watch::Receiver<bool>) -> Result<()> {
    let server = TcpStream::connect(server).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let mut bytes = vec![0; 16 << 10];
        loop {
            let count = from_client.read(&mut bytes).await?;
            if count == 0 {
                return anyhow::Ok(());
            }
            holds.wait_for(|held| !held).await?;
            to_server.write_all(&bytes[..count]).await?;
        }
    };
    let down = async {
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        anyhow::Ok(())
    };
    tokio::select! {
        ended = up => ended,
        ended = down => ended,
    }
}
