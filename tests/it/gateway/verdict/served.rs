//! Requests to the API server that return its warnings.

use anyhow::{Context as _, Result};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::{Value, json};

/// A response of the API server.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) code: u16,
    /// The message of a refusal.
    pub(crate) message: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Served {
    /// True if the request was accepted.
    pub(crate) fn is_accepted(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// Sends a request, and returns the response even if its status is an error.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Served> {
    let bytes = body.map(serde_json::to_vec).transpose()?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(bytes.unwrap_or_default()))?;
    let response = client.send(request).await?;
    let (code, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.into_body().collect().await?.to_bytes();
    let body: Value = serde_json::from_slice(&bytes).context("the response is not JSON")?;
    let text = |bytes: &[u8]| warning(&String::from_utf8_lossy(bytes));
    let warnings = headers.get_all("warning").iter();
    Ok(Served {
        code,
        message: body["message"].as_str().unwrap_or_default().to_owned(),
        warnings: warnings.filter_map(|one| text(one.as_bytes())).collect(),
        body,
    })
}

/// Returns the text of a warning: `299 - "…"`, with quotes and backslashes escaped.
///
/// Source: RFC 7234, section 5.5.
fn warning(header: &str) -> Option<String> {
    let quoted = header.split_once('"')?.1.strip_suffix('"')?;
    let mut text = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    Some(text)
}

/// Returns a copy of a CRD with another group and plural.
pub(crate) fn of_group(definition: &Value, group: &str, plural: &str) -> Value {
    let mut definition = definition.clone();
    definition["metadata"]["name"] = json!(format!("{plural}.{group}"));
    definition["spec"]["group"] = json!(group);
    definition["spec"]["names"]["plural"] = json!(plural);
    definition
}
