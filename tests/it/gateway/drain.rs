//! Shutdown of the gateway: requests in progress are answered, and new connections are refused.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::eventually;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    Gate,
    requests::{KATALOG, connect, review},
};
use crate::scenario::LIMIT;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_in_progress_at_sigterm_is_answered_and_new_connections_are_refused() -> Result<()>
{
    let mut gate = Gate::start("gatedrai", &["rules/crds.yaml"], KATALOG).await?;
    gate.run(KATALOG).await?;
    let text = review(&gate.scenario.group, "{}");
    let mut stream = connect(gate.port).await?;
    let head = format!(
        "POST /validate HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await?;
    // The server has sent `100 Continue`: the request is in progress.
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        asked.push(stream.read_u8().await?);
    }
    ensure!(asked.starts_with(b"HTTP/1.1 100"));
    let (first, rest) = text.as_bytes().split_at(text.len() / 2);
    stream.write_all(first).await?;
    stream.flush().await?;

    gate.scenario.signal_term()?;
    eventually("new connections are refused", LIMIT, async || {
        let connected = TcpStream::connect(("127.0.0.1", gate.port)).await;
        Ok(connected.is_err().then_some(()))
    })
    .await?;
    stream.write_all(rest).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    let review: Value = serde_json::from_str(body)?;
    ensure!(review["response"]["uid"] == "u", "{review}");
    gate.scenario.until_ended()
}
