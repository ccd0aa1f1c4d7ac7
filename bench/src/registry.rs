//! A small in-process OCI registry: anonymous, read only, over plain HTTP on loopback. It counts requests and delays each answer,
//! like a remote server.
//!
//! Source: OCI Distribution Specification 1.1.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The delay of an answer.
const DELAY: Duration = Duration::from_millis(5);
/// The media type of manifests.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A registry. It ends with the process.
pub(crate) struct Registry {
    /// Host and port.
    pub(crate) host: String,
    content: Arc<Mutex<Content>>,
}

/// The requests that it received.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    /// Requests by method.
    pub(crate) by: BTreeMap<String, usize>,
    /// The largest number of concurrent requests.
    pub(crate) most: usize,
}

#[derive(Default)]
struct Content {
    /// Media type, digest and content by path.
    files: HashMap<String, File>,
    seen: Seen,
    now: usize,
}

#[derive(Clone)]
struct File {
    media: &'static str,
    digest: String,
    bytes: Arc<[u8]>,
}

impl Registry {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let registry = Self {
            host: listener.local_addr()?.to_string(),
            content: Arc::default(),
        };
        let content = Arc::clone(&registry.content);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // An error of one connection is reported to its client only.
                tokio::spawn(serve(stream, Arc::clone(&content)));
            }
        });
        Ok(registry)
    }

    /// Publishes a Katalog as `repository:stable`.
    pub(crate) fn publish(&self, repository: &str, katalog: &str) {
        let mut content = self.content.lock();
        let config = content.put(repository, "blobs", "application/octet-stream", "{}");
        let layer = content.put(repository, "blobs", "application/octet-stream", katalog);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": "application/vnd.orkestra.pattern.v1+tar+gzip",
            "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2 },
            "layers": [{
                "mediaType": "application/vnd.orkestra.katalog.v1+yaml", "digest": layer, "size": katalog.len(),
                "annotations": { "org.opencontainers.image.title": "katalog.yaml" },
            }],
        });
        let digest = content.put(repository, "manifests", MANIFEST, &manifest.to_string());
        let file = content
            .files
            .get(&path(repository, "manifests", &digest))
            .cloned();
        if let Some(file) = file {
            content
                .files
                .insert(path(repository, "manifests", "stable"), file);
        }
    }

    /// Returns the requests since the last call.
    pub(crate) fn seen(&self) -> Seen {
        std::mem::take(&mut self.content.lock().seen)
    }
}

impl Content {
    fn put(&mut self, repository: &str, kind: &str, media: &'static str, text: &str) -> String {
        let mut digest = "sha256:".to_owned();
        for byte in Sha256::digest(text) {
            // Writing to a String cannot fail.
            let _ = write!(digest, "{byte:02x}");
        }
        let file = File {
            media,
            digest: digest.clone(),
            bytes: text.as_bytes().into(),
        };
        self.files.insert(path(repository, kind, &digest), file);
        digest
    }

    fn begin(&mut self, method: &str, path: &str) -> Option<File> {
        *self.seen.by.entry(method.to_owned()).or_default() += 1;
        self.now += 1;
        self.seen.most = self.seen.most.max(self.now);
        self.files.get(path).cloned()
    }
}

fn path(repository: &str, kind: &str, reference: &str) -> String {
    format!("/v2/{repository}/{kind}/{reference}")
}

/// Answers the requests of one connection. They have no body.
async fn serve(stream: TcpStream, content: Arc<Mutex<Content>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut first, mut line) = (String::new(), String::new());
        if stream.read_line(&mut first).await? == 0 {
            return Ok(());
        }
        while stream.read_line(&mut line).await? > 2 {
            line.clear();
        }
        let mut words = first.split(' ');
        let method = words.next().unwrap_or_default();
        let file = content
            .lock()
            .begin(method, words.next().unwrap_or_default());
        tokio::time::sleep(DELAY).await;
        let mut answer = match &file {
            Some(file) => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nDocker-Content-Digest: {}\r\nContent-Length: {}\r\n\r\n",
                file.media,
                file.digest,
                file.bytes.len()
            ),
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        }
        .into_bytes();
        if let Some(file) = file.filter(|_| method == "GET") {
            answer.extend_from_slice(&file.bytes);
        }
        content.lock().now -= 1;
        stream.write_all(&answer).await?;
    }
}
