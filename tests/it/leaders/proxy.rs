//! A network between a process and the API server that can be held up in one direction.

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on; it ends with the test.
pub(super) struct Proxy {
    /// Where it listens, as a kubeconfig has it.
    pub(super) url: String,
    held: watch::Sender<bool>,
}

impl Proxy {
    /// One before the server at `url`.
    pub(super) async fn start(url: &str) -> Result<Self> {
        let server = url.strip_prefix("https://").context("no https")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (held, holds) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, holds) = (server.clone(), holds.clone());
                tokio::spawn(async move {
                    // A connection that breaks is what a test may look for.
                    let _ = pass(client, &server, holds).await;
                });
            }
        });
        Ok(Self {
            url: format!("https://127.0.0.1:{port}"),
            held,
        })
    }

    /// From now on nothing that a client sends arrives; what the server sends does.
    pub(super) fn hold_requests(&self) {
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
