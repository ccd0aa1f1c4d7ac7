//! Hostile servers: each attack ends in an error, within its bound of time and memory, and does not delay other sources.

use std::{io::Write as _, sync::Arc, time::Instant};

use flate2::{Compression, write::GzEncoder};
use orkestra_object::value::Node;
use orkestra_registry::Digest;
use orkestra_sources::{Document, Source};

use crate::{
    fetcher,
    server::{Act, Server, not_found, ok, redirect, respond},
    short,
};

fn helm(repo: String) -> Source {
    Source::Helm {
        repo,
        chart: "pond".to_owned(),
        version: String::new(),
        path: String::new(),
        files: Vec::new(),
        values: Node::Null,
        verify: None,
    }
}

pub(crate) async fn error_of(source: &Source) -> String {
    let started = Instant::now();
    let fetcher = fetcher(|options| options.limits = short());
    let error = fetcher.fetch(source, None, None).await.unwrap_err();
    assert!(started.elapsed().as_secs() < 60, "it took too long");
    error.to_string()
}

#[tokio::test]
async fn endless_and_slow_and_silent_answers_end() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
    let endless = Server::start(move |_| Act::Endless(head.to_owned())).await;
    let error = error_of(&Source::File {
        url: endless.url("/k"),
    })
    .await;
    assert!(error.contains("more than 4 MiB"), "{error}");
    let endless_head = Server::start(|_| Act::Endless("HTTP/1.1 200 OK\r\nx: ".to_owned())).await;
    let error = error_of(&Source::File {
        url: endless_head.url("/k"),
    })
    .await;
    assert!(error.contains("valid HTTP response"), "{error}");
    for act in [0, 1] {
        let server = Server::start(move |_| match act {
            0 => Act::Drip(head.to_owned()),
            _ => Act::Silence,
        })
        .await;
        let error = error_of(&Source::File {
            url: server.url("/k"),
        })
        .await;
        assert!(
            error.contains("did not answer completely within 5 s"),
            "{error}"
        );
    }
    let looping = Server::start(|_| redirect("/again")).await;
    let error = error_of(&Source::File {
        url: looping.url("/k"),
    })
    .await;
    assert!(error.contains("more than 5 times"), "{error}");
    let binary = Server::start(|_| ok("", [0xff, 0xfe, 0])).await;
    let error = error_of(&Source::File {
        url: binary.url("/k"),
    })
    .await;
    assert!(error.contains("not UTF-8"), "{error}");
}

#[tokio::test]
async fn a_source_that_hangs_does_not_delay_another() {
    let hanging = Server::start(|_| Act::Silence).await;
    let quick = Server::start(|_| ok("", "a: 1\n")).await;
    let fetcher = fetcher(|_| {});
    let (hangs, quick) = (hanging.url("/k"), quick.url("/k"));
    let (hangs, quick) = (Source::File { url: hangs }, Source::File { url: quick });
    let slow = fetcher.fetch(&hangs, None, None);
    let fast = fetcher.fetch(&quick, None, None);
    tokio::select! {
        result = slow => panic!("it must hang: {result:?}"),
        result = fast => assert_eq!(result.unwrap().documents[0].text, "a: 1\n"),
    }
}

fn tgz(write: impl FnOnce(&mut tar::Builder<GzEncoder<Vec<u8>>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    write(&mut builder);
    builder.into_inner().unwrap().finish().unwrap()
}

fn header(kind: tar::EntryType, path: &[u8], size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..path.len()].copy_from_slice(path);
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

async fn chart_error(chart: Vec<u8>) -> String {
    let chart = Arc::new(chart);
    let server = Server::start(move |request| match &*request.path {
        "/index.yaml" => ok("", "entries: {pond: [{version: 1.0.0, urls: [pond.tgz]}]}"),
        "/pond.tgz" => ok("", &**chart),
        _ => not_found(),
    })
    .await;
    error_of(&helm(server.url(""))).await
}

#[tokio::test]
async fn archives_neither_escape_nor_explode() {
    let file = tar::EntryType::Regular;
    for (path, why) in [
        (&b"../../etc/passwd"[..], "not a valid relative path"),
        (b"/etc/passwd", "not a valid relative path"),
        (b"pond/../../x", "not a valid relative path"),
        (b"C:\\x", "not a valid relative path"),
    ] {
        let chart = tgz(|tar| tar.append(&header(file, path, 0), &b""[..]).unwrap());
        let error = chart_error(chart).await;
        assert!(error.contains(why), "{error}");
    }
    for kind in [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Fifo,
    ] {
        let mut link = header(kind, b"pond/Chart.yaml", 0);
        link.set_link_name("/etc/passwd").unwrap();
        link.set_cksum();
        let error = chart_error(tgz(|tar| tar.append(&link, &b""[..]).unwrap())).await;
        assert!(error.contains("links are refused"), "{error}");
    }
    let many = tgz(|tar| {
        for number in 0..100_000 {
            let path = format!("pond/{number}");
            tar.append(&header(file, path.as_bytes(), 0), &b""[..])
                .unwrap();
        }
    });
    let error = chart_error(many).await;
    assert!(error.contains("limit of 10000 files"), "{error}");
    let error = chart_error(b"not an archive".to_vec()).await;
    assert!(error.contains("malformed archive"), "{error}");
}

#[tokio::test]
async fn ten_gigabytes_of_zeros_in_a_small_archive_are_given_up() {
    // One compressed megabyte of zeros, repeated: gzip members follow one another.
    let mut zeros = GzEncoder::new(Vec::new(), Compression::best());
    zeros.write_all(&vec![0; 1 << 20]).unwrap();
    let zeros = zeros.finish().unwrap();
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    let entry = header(tar::EntryType::Regular, b"pond/values.yaml", 10 << 30);
    bomb.write_all(entry.as_bytes()).unwrap();
    let mut bomb = bomb.finish().unwrap();
    for _ in 0..10_240 {
        bomb.extend_from_slice(&zeros);
    }
    assert!(bomb.len() < 16 << 20, "{}", bomb.len());
    let error = chart_error(bomb).await;
    assert!(error.contains("bytes for one file"), "{error}");
}

#[tokio::test]
async fn indexes_that_lie_or_bomb_are_refused() {
    for (index, why) in [
        (
            "entries: {pond: [{version: 1.0.0, urls: [pond.tgz], digest: 00ff}]}".to_owned(),
            "expected sha256:00ff",
        ),
        (
            "entries: {pond: [{version: 1.0.0, urls: ['http://169.254.169.254/x']}]}".to_owned(),
            "169.254.169.254",
        ),
        (
            "entries: {pond: [{version: 1.0.0, urls: ['file:///etc/passwd']}]}".to_owned(),
            "URL",
        ),
        ("entries: {lake: []}".to_owned(), "no chart `pond`"),
        ("<html>".to_owned(), "index.yaml"),
        (
            format!(
                "a: &a [{}]\nb: &b [{}]\nc: &c [{}]\nentries: *c\n",
                "x,".repeat(500),
                "*a,".repeat(500),
                "*b,".repeat(500)
            ),
            "index.yaml",
        ),
        ("[".repeat(100_000), "index.yaml"),
        (
            format!("{{\"entries\": {}1", "[".repeat(200_000)),
            "index.yaml",
        ),
    ] {
        let server = Server::start(move |request| match &*request.path {
            "/index.yaml" => ok("", &index),
            _ => ok("", "x"),
        })
        .await;
        let error = error_of(&helm(server.url(""))).await;
        assert!(error.contains(why), "{why}: {error}");
    }
}

fn artifact(server: &Server) -> Source {
    Source::Registry {
        reference: format!("{}/a/b:v1", server.address),
        document: Document::Katalog,
        verify: None,
    }
}

/// The header with the media type of a manifest.
const TYPE: &str = "content-type: application/vnd.oci.image.manifest.v1+json\r\n";

/// Returns a manifest of these layers.
fn manifest(layers: &str) -> String {
    format!(
        r#"{{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": "application/vnd.orkestra.pattern.v1+tar+gzip", "config": {{"mediaType": "application/vnd.oci.empty.v1+json", "digest": "{}", "size": 2}}, "layers": [{layers}]}}"#,
        Digest::of(b"{}")
    )
}

/// Returns the descriptor of a layer, whose content is `kind: Katalog`.
fn layer(name: &str, size: usize) -> String {
    let digest = Digest::of(b"kind: Katalog\n");
    format!(
        r#"{{"mediaType": "x", "digest": "{digest}", "size": {size}, "annotations": {{"org.opencontainers.image.title": "{name}"}}}}"#
    )
}

/// Starts a registry with one manifest, and one content of all blobs.
async fn registry(body: String, blob: &'static str) -> Server {
    Server::start(move |request| {
        let path = &*request.path;
        match (&*request.method, path) {
            (_, "/v2/") => ok("", "{}"),
            ("HEAD", _) => {
                let digest = format!("docker-content-digest: {}\r\n", Digest::of(body.as_bytes()));
                respond("200 OK", &format!("{TYPE}{digest}"), "")
            }
            (_, path) if path.contains("/manifests/") => ok(TYPE, &body),
            (_, path) if path.contains("/blobs/") => ok("", blob),
            _ => not_found(),
        }
    })
    .await
}

#[tokio::test]
async fn manifests_and_blobs_that_lie_are_refused() {
    let many = vec![layer("katalog.yaml", 14); 100_000].join(",");
    for (layers, blob, why) in [
        (layer("katalog.yaml", 14), "kind: Changed\n", "digest"),
        (layer("katalog.yaml", 15), "kind: Katalog\n", "bytes"),
        (
            layer("katalog.yaml", 99_000_000_000),
            "kind: Katalog\n",
            "bytes",
        ),
        (
            layer("../katalog.yaml", 14),
            "kind: Katalog\n",
            "not the name of a file",
        ),
        (
            layer("other.yaml", 14),
            "kind: Katalog\n",
            "without a katalog.yaml",
        ),
        (many, "kind: Katalog\n", "not valid"),
    ] {
        let server = registry(manifest(&layers), blob).await;
        let error = error_of(&artifact(&server)).await;
        assert!(error.contains(why), "{why}: {error}");
    }
    let lying = Server::start(move |request| match &*request.path {
        "/v2/" => ok("", "{}"),
        _ => respond(
            "200 OK",
            &format!("{TYPE}docker-content-digest: {}\r\n", Digest::of(b"x")),
            "{}",
        ),
    })
    .await;
    let error = error_of(&artifact(&lying)).await;
    assert!(error.contains("digest"), "{error}");
    let away = Server::start(|request| match &*request.path {
        "/v2/" => ok("", "{}"),
        _ => redirect("http://169.254.169.254/latest"),
    })
    .await;
    let error = error_of(&artifact(&away)).await;
    assert!(
        error.contains("169.254.169.254") && error.contains("--source-allow"),
        "{error}"
    );
}
