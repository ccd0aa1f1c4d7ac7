//! An HTTP request through `kubectl port-forward`.

use std::{ffi::OsString, net::Ipv4Addr, process::Stdio};

use http::Request;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use orkestra_e2e::{CallOutput, Forward};
use orkestra_ground::tasks::{self, Task};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    net::TcpStream,
    process::Child,
    task::JoinSet,
    time::Instant,
};

use super::process::{KUBECTL, ProcessError, ProgramEnvironment, spawn};

/// The output of `kubectl` when the port is ready.
const READY: &str = "Forwarding from 127.0.0.1:";
/// The maximum size of a response body, in bytes.
const MOST_BODY: usize = 8 << 20;

/// The reason why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForwardError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("`kubectl port-forward` ended: {0}")]
    Ended(String),
    #[error("no answer to the request: {0}")]
    Request(String),
    #[error("no answer to the request in time")]
    Late,
}

fn failed(error: impl std::fmt::Display) -> ForwardError {
    ForwardError::Request(error.to_string())
}

/// Forwards a port, sends the request and stops the forwarding.
pub(crate) async fn request(
    place: &ProgramEnvironment,
    forward: &Forward,
    target: &[OsString],
    deadline: Instant,
) -> Result<CallOutput, ForwardError> {
    let args = ["port-forward", "--address", "127.0.0.1"].map(OsString::from);
    let port = OsString::from(format!(":{}", forward.port));
    let args: Vec<OsString> = args
        .into_iter()
        .chain(target.iter().cloned())
        .chain([port])
        .collect();
    let mut command = place.command(KUBECTL, &args);
    command.stdin(Stdio::null());
    let mut child = spawn(&mut command, KUBECTL)?;
    let work = async {
        let port = local_port(&mut child).await?;
        tokio::time::sleep(forward.wait).await;
        send(forward, port).await
    };
    let answer = tokio::time::timeout_at(deadline, work).await;
    // An error means that it has exited.
    let _ = child.kill().await;
    answer.unwrap_or(Err(ForwardError::Late))
}

/// Waits until `kubectl` prints its local port.
async fn local_port(child: &mut Child) -> Result<u16, ForwardError> {
    if let Some(output) = child.stdout.as_mut() {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let port = line
                .strip_prefix(READY)
                .and_then(|rest| rest.split(' ').next());
            if let Some(port) = port.and_then(|port| port.parse().ok()) {
                return Ok(port);
            }
        }
    }
    let mut said = String::new();
    if let Some(error) = child.stderr.take() {
        // Unreadable output is not shown.
        let _ = error.take(4096).read_to_string(&mut said).await;
    }
    Err(ForwardError::Ended(said.trim().to_owned()))
}

async fn send(forward: &Forward, port: u16) -> Result<CallOutput, ForwardError> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(failed)?;
    let (mut sender, connection) = http1::handshake::<_, Full<bytes::Bytes>>(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    // Dropping the set closes the connection.
    let mut driver = JoinSet::new();
    tasks::named(Task::ForwardedRequest, port).start_in(&mut driver, connection);
    let variable = |name: &str| std::env::var(name).ok();
    let body = forward.body.as_deref().map(|body| expanded(body, variable));
    let mut request = Request::builder()
        .method(forward.method.as_str())
        .uri(&forward.path);
    let mut has_host = false;
    for (name, value) in &forward.headers {
        has_host |= name.eq_ignore_ascii_case("host");
        request = request.header(name, value);
    }
    if !has_host {
        request = request.header("Host", format!("localhost:{port}"));
    }
    let body = Full::new(body.unwrap_or_default().into());
    let request = request.body(body).map_err(failed)?;
    let response = sender.send_request(request).await.map_err(failed)?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), MOST_BODY)
        .collect()
        .await;
    let body = body.map_err(failed)?.to_bytes();
    Ok(CallOutput {
        output: String::from_utf8_lossy(&body).into_owned(),
        status: Some(status),
        ..CallOutput::default()
    })
}

/// Replaces `$NAME` and `${NAME}` with environment variables; unset ones are empty. `$$` is `$`.
fn expanded(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        result.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            result.push('$');
            rest = after;
            continue;
        }
        let braced = rest
            .strip_prefix('{')
            .and_then(|inside| inside.split_once('}'));
        let (name, after) = braced.unwrap_or_else(|| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            rest.split_at(end)
        });
        if name.is_empty() {
            result.push('$');
        } else {
            result.push_str(&variable(name).unwrap_or_default());
            rest = after;
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::expanded;

    #[test]
    fn environment_variables_are_expanded_in_bodies() {
        let variable = |name: &str| (name == "TOKEN").then(|| "abc".to_owned());
        for (text, result) in [
            ("{\"t\": \"$TOKEN\"}", "{\"t\": \"abc\"}"),
            ("${TOKEN}x", "abcx"),
            ("$NONE.", "."),
            ("costs 5$ or $$TOKEN", "costs 5$ or $TOKEN"),
            ("${open", "${open"),
            ("", ""),
        ] {
            assert_eq!(expanded(text, variable), result, "{text}");
        }
    }
}
