//! Docker credential helpers.

use std::{io, process::Stdio, time::Duration};

use serde::Deserialize;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use super::Credential;
use crate::Error;

/// The user in a helper's response that indicates an identity token.
const TOKEN_USER: &str = "<token>";
/// The timeout of a credential helper.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum length of a response, in bytes.
const MOST_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperOutput {
    username: String,
    secret: String,
}

/// Returns a helper's credential for a registry.
pub(crate) async fn ask(helper: &str, key: &str) -> Result<Option<Credential>, Error> {
    let Some(answer) = run(helper, "get", key).await? else {
        return Ok(None);
    };
    let found: HelperOutput = serde_json::from_slice(&answer)
        .map_err(|_| failed(helper, "its output is not JSON in the expected form"))?;
    Ok(Some(if found.username == TOKEN_USER {
        Credential::Identity(found.secret)
    } else {
        Credential::Basic {
            user: found.username,
            password: found.secret,
        }
    }))
}

/// Runs `docker-credential-NAME`; returns `None` if it has no credential. Source: docker-credential-helpers, "Development".
pub(crate) async fn run(helper: &str, action: &str, input: &str) -> Result<Option<Vec<u8>>, Error> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !helper.bytes().all(is_name) {
        return Err(failed(
            helper,
            "this is not the name of a credential helper",
        ));
    }
    let mut command = Command::new(format!("docker-credential-{helper}"));
    command
        .arg(action)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| failed(helper, &error.to_string()))?;
    let answered = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A helper may exit without reading its input.
            match stdin.write_all(input.as_bytes()).await {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        child.wait_with_output().await
    };
    let answered = timeout(HELPER_TIMEOUT, answered).await;
    let output = answered.map_err(|_| failed(helper, "it does not end"))?;
    let output = output.map_err(|error| failed(helper, &error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && output.stdout.len() <= MOST_BYTES {
        return Ok(Some(output.stdout));
    }
    if said.contains("credentials not found") {
        return Ok(None);
    }
    Err(failed(
        helper,
        &format!(
            "`{action}` failed: {}",
            said.lines().next().unwrap_or_default()
        ),
    ))
}

fn failed(helper: &str, why: &str) -> Error {
    Error::Configuration {
        file: format!("the credential helper docker-credential-{helper}"),
        why: why.to_owned(),
    }
}
