//! A small OCI registry in this process: in memory, anonymous, without referrers API. It records requests, can be stopped and
//! restarted at the same address, and can serve wrong content. The tests with a real registry are in `tests/registry`.
//!
//! Source: OCI Distribution Specification 1.1.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    net::SocketAddr,
    sync::Arc,
};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::Response,
};
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A registry that stops when this value is dropped.
pub(crate) struct Registry {
    /// The host and port.
    pub(crate) host: String,
    address: SocketAddr,
    content: Arc<Mutex<Content>>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Content {
    blobs: HashMap<String, Bytes>,
    /// Media type and content of manifests, by repository and digest.
    manifests: HashMap<(String, String), (String, Bytes)>,
    /// Digests by repository and tag.
    tags: BTreeMap<(String, String), String>,
    uploads: Vec<Vec<u8>>,
    seen: Vec<String>,
}

impl Registry {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let registry = Self {
            host: address.to_string(),
            address,
            content: Arc::default(),
            stop: CancellationToken::new(),
        };
        registry.serve(listener, registry.stop.clone());
        Ok(registry)
    }

    /// Stops the server: further connections are refused.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Serves the same content at the same address again.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        self.stop = CancellationToken::new();
        let listener = TcpListener::bind(self.address).await;
        let listener = listener.context("the registry's port is taken")?;
        self.serve(listener, self.stop.clone());
        Ok(())
    }

    fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(64 << 20))
            .with_state(Arc::clone(&self.content));
        tokio::spawn(async move {
            tokio::select! {
                // The server runs until the test ends.
                _ = axum::serve(listener, router) => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Returns the requests since the last call, such as `GET /v2/…`.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.content.lock().seen)
    }

    /// Returns the digest of a tag.
    pub(crate) fn digest(&self, repository: &str, tag: &str) -> Result<String> {
        let key = (repository.to_owned(), tag.to_owned());
        let found = self.content.lock().tags.get(&key).cloned();
        found.with_context(|| format!("there is no {repository}:{tag}"))
    }

    /// Stores a Katalog as `repository:stable` without validation, as another tool would. If `is_tampered` is true, the served
    /// bytes do not match their digest.
    pub(crate) fn publish(&self, repository: &str, katalog: &str, is_tampered: bool) {
        let mut content = self.content.lock();
        let config = content.put_blob(b"{}", b"{}");
        let other = katalog.replace("Katalog", "Katalok");
        let served = if is_tampered { &other } else { katalog };
        let layer = content.put_blob(katalog.as_bytes(), served.as_bytes());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "artifactType": "application/vnd.orkestra.pattern.v1+tar+gzip",
            "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2 },
            "layers": [{
                "mediaType": "application/vnd.orkestra.katalog.v1+yaml", "digest": layer, "size": katalog.len(),
                "annotations": { "org.opencontainers.image.title": "katalog.yaml" },
            }],
        });
        let kind = "application/vnd.oci.image.manifest.v1+json";
        content.put_manifest(repository, "stable", kind, manifest.to_string().into());
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn answer(
    State(content): State<Arc<Mutex<Content>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut content = content.lock();
    content.seen.push(format!("{method} {}", uri.path()));
    let answered = content.answer(&method, &uri, &headers, body);
    let mut response = answered.unwrap_or_else(|| status(StatusCode::NOT_FOUND));
    if method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

impl Content {
    fn answer(
        &mut self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Option<Response> {
        let path = uri.path().strip_prefix("/v2/")?;
        if path.is_empty() {
            return Some(status(StatusCode::OK));
        }
        if let Some((_, upload)) = path.split_once("/blobs/uploads/") {
            return self.upload(method, uri, upload, &body);
        }
        if let Some((_, digest)) = path.split_once("/blobs/") {
            let blob = self.blobs.get(digest)?;
            return Some(found("application/octet-stream", digest, blob.clone()));
        }
        if let Some(repository) = path.strip_suffix("/tags/list") {
            let mine = self.tags.keys().filter(|(one, _)| one == repository);
            let tags: Vec<&String> = mine.map(|(_, tag)| tag).collect();
            let list = json!({ "name": repository, "tags": tags });
            return Some(found("application/json", "", list.to_string().into()));
        }
        let (repository, reference) = path.split_once("/manifests/")?;
        if method == Method::PUT {
            let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
            self.put_manifest(repository, reference, kind, body);
            return Some(status(StatusCode::CREATED));
        }
        let tagged = (repository.to_owned(), reference.to_owned());
        let digest = self.tags.get(&tagged).cloned();
        let digest = digest.unwrap_or_else(|| reference.to_owned());
        let key = (repository.to_owned(), digest.clone());
        let (kind, manifest) = self.manifests.get(&key)?;
        Some(found(kind, &digest, manifest.clone()))
    }

    fn put_manifest(&mut self, repository: &str, reference: &str, kind: &str, manifest: Bytes) {
        let digest = digest(&manifest);
        let key = (repository.to_owned(), digest.clone());
        self.manifests.insert(key, (kind.to_owned(), manifest));
        if !reference.starts_with("sha256:") {
            let key = (repository.to_owned(), reference.to_owned());
            self.tags.insert(key, digest);
        }
    }

    fn put_blob(&mut self, content: &[u8], served: &[u8]) -> String {
        let digest = digest(content);
        self.blobs.insert(digest.clone(), served.to_vec().into());
        digest
    }

    fn upload(
        &mut self,
        method: &Method,
        uri: &Uri,
        upload: &str,
        body: &[u8],
    ) -> Option<Response> {
        if method == Method::POST {
            self.uploads.push(Vec::new());
            let place = format!("{}{}", uri.path(), self.uploads.len() - 1);
            return located(StatusCode::ACCEPTED, &place);
        }
        let parts = self.uploads.get_mut(upload.parse::<usize>().ok()?)?;
        parts.extend_from_slice(body);
        if method == Method::PATCH {
            return located(StatusCode::ACCEPTED, uri.path());
        }
        let blob = Bytes::from(std::mem::take(parts));
        self.blobs.insert(digest(&blob), blob);
        Some(status(StatusCode::CREATED))
    }
}

fn digest(content: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(content) {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn located(code: StatusCode, place: &str) -> Option<Response> {
    let mut response = status(code);
    let place = place.parse().ok()?;
    response.headers_mut().insert(header::LOCATION, place);
    Some(response)
}

fn found(kind: &str, digest: &str, content: Bytes) -> Response {
    let response = Response::builder()
        .header(header::CONTENT_TYPE, kind)
        .header(header::CONTENT_LENGTH, content.len())
        .header("docker-content-digest", digest);
    let response = response.body(Body::from(content));
    response.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR))
}
