//! Motifs in registries, fetched from a server on the loopback interface.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of test functions"
)]

use std::{collections::BTreeMap, fs, net::SocketAddr, path::PathBuf, sync::Arc};

use orkestra_compiler::compose::{Lock, digest_of};
use orkestra_egress::Guard;
use orkestra_ground::tasks::{self, Task};
use orkestra_registry::Digest;
use orkestra_sources::{Fetcher, Options};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};

use super::super::{ChartReference, Fetch as _, Remote};
use crate::files::{self, Validated};

const KATALOG: &str = "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {name: ponds}\nspec:\n  crds:\n    pond:\n      workers: 2\n      apiTypes: {group: water.example, version: v1, kind: Pond, plural: ponds}\n";

/// A server with a body for each path.
struct Server {
    address: SocketAddr,
    bodies: Arc<Mutex<BTreeMap<String, (String, String)>>>,
    _task: JoinSet<()>,
}

impl Server {
    async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bodies: Arc<Mutex<BTreeMap<String, (String, String)>>> = Arc::default();
        let (mut task, shown) = (JoinSet::new(), bodies.clone());
        tasks::named(Task::OutboundConnection, "").start_in(&mut task, async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") && head.first() != Some(&0x16) {
                    if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let text = String::from_utf8_lossy(&head).into_owned();
                let path = text.split(' ').nth(1).unwrap_or_default();
                let found = shown.lock().get(path).cloned();
                let response = match found {
                    Some((type_, body)) => {
                        let length = body.len();
                        let shown = if text.starts_with("HEAD") { "" } else { &*body };
                        let digest = Digest::of(body.as_bytes());
                        format!(
                            "HTTP/1.1 200 OK\r\ncontent-type: {type_}\r\ndocker-content-digest: {digest}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{shown}"
                        )
                    }
                    None => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
                };
                // The client may have closed the connection.
                let _ = stream.write_all(response.as_bytes()).await;
            }
        });
        Self {
            address,
            bodies,
            _task: task,
        }
    }

    fn put(&self, path: &str, type_: &str, body: &str) {
        let body = (type_.to_owned(), body.to_owned());
        self.bodies.lock().insert(path.to_owned(), body);
    }
}

fn write(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let file = folder.path().join(name);
    fs::write(&file, text).unwrap();
    file
}

fn errors(validated: &Validated) -> String {
    let problems = validated.problems.0.iter();
    let lines: Vec<String> = problems.map(|problem| format!("{problem}\n")).collect();
    lines.concat()
}

#[tokio::test]
async fn a_motif_is_imported_from_a_registry_with_the_files_that_it_names() {
    let server = Server::start().await;
    let motif = "apiVersion: orkestra.orkspace.io/v1\nkind: Motif\nmetadata: {name: reeds}\nspec:\n  inputs:\n  - {name: depth}\n  profiles: {include: profiles.yaml}\n  resources:\n    configMaps:\n    - name: '{{ .metadata.name }}-reeds'\n      data: {depth: '{{ .inputs.depth }}'}\n";
    let profiles = "profiles: {}\n";
    let mut layers = Vec::new();
    for (name, text) in [("motif.yaml", motif), ("profiles.yaml", profiles)] {
        let digest = Digest::of(text.as_bytes());
        server.put(&format!("/v2/m/reeds/blobs/{digest}"), "x/y", text);
        layers.push(format!(
            r#"{{"mediaType": "x/y", "digest": "{digest}", "size": {}, "annotations": {{"org.opencontainers.image.title": "{name}"}}}}"#,
            text.len()
        ));
    }
    let layers = layers.join(",");
    let type_ = "application/vnd.oci.image.manifest.v1+json";
    let manifest = format!(
        r#"{{"schemaVersion": 2, "mediaType": "{type_}", "artifactType": "application/vnd.orkestra.motif.v1+tar+gzip", "config": {{"mediaType": "application/vnd.oci.empty.v1+json", "digest": "{}", "size": 2}}, "layers": [{layers}]}}"#,
        Digest::of(b"{}")
    );
    server.put("/v2/", "text/plain", "{}");
    let digest = Digest::of(manifest.as_bytes());
    for name in ["1.0.0".to_owned(), digest.to_string()] {
        server.put(&format!("/v2/m/reeds/manifests/{name}"), type_, &manifest);
    }
    let folder = TempDir::new().unwrap();
    let with_import = |import: &str| format!("{KATALOG}      imports:\n      - {import}\n");
    let host = server.address;
    let mut options = Options::new(Guard::at_desk(Vec::new()));
    options.motifs = format!("{host}/m");
    let short = Remote::new(Fetcher::new(options));
    for import in [
        format!("{{motif: 'oci://{host}/m/reeds:1.0.0', with: {{depth: '4'}}}}"),
        format!("{{motif: '{host}/m/reeds', oci: true, version: 1.0.0, with: {{depth: '4'}}}}"),
        format!("{{motif: 'oci://{host}/m/reeds@{digest}', with: {{depth: '4'}}}}"),
        "{motif: reeds@1.0.0, with: {depth: '4'}}".to_owned(),
    ] {
        let paths = [write(&folder, "katalog.yaml", &with_import(&import))];
        let found = files::validate_with(&paths, &short).await;
        assert_eq!(found.katalogs.len(), 1, "{import}: {}", errors(&found));
    }
    let absent = format!("{{motif: 'oci://{host}/m/lilies:1.0.0'}}");
    let paths = [write(&folder, "katalog.yaml", &with_import(&absent))];
    let found = files::validate_with(&paths, &short).await;
    assert!(
        errors(&found).contains("cannot be fetched"),
        "{}",
        errors(&found)
    );
    let unlocked = format!("{{motif: 'oci://{host}/m/reeds:1.0.0'}}");
    let paths = [write(&folder, "katalog.yaml", &with_import(&unlocked))];
    let found = files::validate_with(&paths, &short.clone().locked(Lock::default())).await;
    assert!(
        errors(&found).contains("is not locked"),
        "{}",
        errors(&found)
    );
}

#[tokio::test]
async fn a_chart_of_setup_is_compared_with_the_lock() {
    let server = Server::start().await;
    let index = "apiVersion: v1\nentries:\n  reeds:\n  - {name: reeds, version: 1.0.0, urls: [reeds-1.0.0.tgz]}\n";
    server.put("/index.yaml", "text/yaml", index);
    server.put("/reeds-1.0.0.tgz", "application/gzip", "one");
    let repo = format!("http://{}", server.address);
    let chart = ChartReference {
        repo: &repo,
        chart: "reeds",
        version: "^1",
    };
    let remote = Remote::new(Fetcher::new(Options::new(Guard::at_desk(Vec::new()))));
    let archive = remote.chart(chart).await.unwrap();
    assert_eq!(archive, b"one");
    let why = remote.clone().locked(Lock::default()).chart(chart).await;
    assert!(why.unwrap_err().contains("is not locked: run `ork lock`"));
    let locked = Lock::of_digests(&[(chart.id(), digest_of(&archive))].into());
    let locked = remote.locked(locked);
    assert_eq!(locked.chart(chart).await.unwrap(), b"one");
    server.put("/reeds-1.0.0.tgz", "application/gzip", "two");
    let why = locked.chart(chart).await.unwrap_err();
    assert!(why.contains("is locked"), "{why}");
    let other = ChartReference {
        version: "1.0.0",
        ..chart
    };
    assert!(
        locked
            .chart(other)
            .await
            .unwrap_err()
            .contains("is not locked")
    );
}
