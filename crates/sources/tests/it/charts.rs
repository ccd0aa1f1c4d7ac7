//! Charts from repositories over HTTP(S), from Git repositories and from registries.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use flate2::{Compression, write::GzEncoder};
use orkestra_object::value::Node;
use orkestra_registry::Digest;
use orkestra_sources::{Credential, Error, Source, ValuesFile};
use parking_lot::Mutex;

use crate::{
    fetcher,
    server::{Act, Server, not_found, ok, respond},
};

const KATALOG: &str = "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {name: {{ .Release.Name }}}\nspec: {depth: {{ .Values.depth }}}\n";

/// Returns a packed chart.
fn chart(version: &str) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let manifest = format!("apiVersion: v2\nname: pond\nversion: {version}\n");
    for (path, text) in [
        ("pond/Chart.yaml", &*manifest),
        ("pond/values.yaml", "depth: 1\n"),
        ("pond/deep.yaml", "depth: 7\n"),
        ("pond/templates/katalog.yaml", KATALOG),
        (
            "pond/templates/other.yaml",
            "apiVersion: v1\nkind: ConfigMap\n",
        ),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn helm(repo: String, version: &str) -> Source {
    Source::Helm {
        repo,
        chart: "pond".to_owned(),
        version: version.to_owned(),
        path: String::new(),
        files: Vec::new(),
        values: Node::Null,
        verify: None,
    }
}

fn with_values(source: &Source, files: Vec<ValuesFile>, depth: Option<i64>) -> Source {
    let mut changed = source.clone();
    if let Source::Helm {
        files: of, values, ..
    } = &mut changed
    {
        *of = files;
        *values = depth.map_or(Node::Null, |depth| {
            Node::object([("depth", Node::from(depth))])
        });
    }
    changed
}

/// Starts a chart repository with these versions.
fn repository(versions: &[&str]) -> impl Fn(&crate::server::Request) -> Act + use<> {
    let charts: Vec<(String, Vec<u8>)> = versions
        .iter()
        .map(|version| ((*version).to_owned(), chart(version)))
        .collect();
    let entries: String = charts
        .iter()
        .map(|(version, chart)| {
            format!(
                "  - version: {version}\n    urls: [charts/pond-{version}.tgz]\n    digest: {}\n",
                Digest::of(chart).hex()
            )
        })
        .collect();
    let index = format!("apiVersion: v1\nentries:\n  pond:\n{entries}");
    let tag = format!("\"{}\"", versions.len());
    move |request| {
        let path = request.path.trim_start_matches("/stable");
        if path == "/index.yaml" {
            if request.header("if-none-match") == Some(&*tag) {
                return respond("304 Not Modified", "", "");
            }
            return ok(&format!("etag: {tag}\r\n"), &index);
        }
        let found = charts
            .iter()
            .find(|(version, _)| path == format!("/charts/pond-{version}.tgz"));
        found.map_or_else(not_found, |(_, chart)| ok("", chart))
    }
}

#[tokio::test]
async fn a_range_selects_a_version_and_an_unchanged_index_is_one_small_request() {
    let answer = Arc::new(Mutex::new(repository(&["1.0.0", "1.1.0", "2.0.0-rc.1"])));
    let now = answer.clone();
    let server = Server::start(move |request| now.lock()(request)).await;
    let fetcher = fetcher(|_| {});
    let source = helm(server.url("/stable/"), "^1");
    let first = fetcher.fetch(&source, None, None).await.unwrap();
    assert_eq!(first.revision, "1.1.0");
    assert_eq!(first.url, server.url("/stable/pond"));
    assert_eq!(first.documents.len(), 1, "only Orkestra kinds");
    assert_eq!(first.documents[0].name, "pond/templates/katalog.yaml");
    assert!(
        first.documents[0]
            .text
            .contains("{name: pond}\nspec: {depth: 1}")
    );
    assert_eq!(server.seen().len(), 2);
    let again = fetcher.fetch(&source, None, None).await.unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].header("if-none-match").is_some());
    *answer.lock() = repository(&["1.0.0", "1.1.0", "2.0.0-rc.1", "1.2.0"]);
    let new = fetcher.fetch(&source, None, None).await.unwrap();
    assert_eq!(new.revision, "1.2.0");
    let exact = fetcher
        .fetch(&helm(server.url("/stable"), "2.0.0-rc.1"), None, None)
        .await;
    assert_eq!(exact.unwrap().revision, "2.0.0-rc.1");
    let none = fetcher
        .fetch(&helm(server.url("/stable"), "^3"), None, None)
        .await;
    assert!(
        none.unwrap_err()
            .to_string()
            .contains("no version of it satisfies `^3`")
    );
}

#[tokio::test]
async fn values_come_from_files_of_the_chart_texts_and_urls_in_order() {
    let depth = Arc::new(AtomicUsize::new(9));
    let now = depth.clone();
    let charts = repository(&["1.0.0"]);
    let (server, certificate) = Server::start_tls(move |request| match &*request.path {
        "/values.yaml" => ok("", format!("depth: {}\n", now.load(Ordering::SeqCst))),
        _ => charts(request),
    })
    .await;
    let fetcher = fetcher(|options| options.roots = vec![certificate]);
    let source = helm(format!("https://{}/stable", server.address), "");
    let url = ValuesFile::Url(format!("https://{}/values.yaml", server.address));
    let in_chart = ValuesFile::InChart("deep.yaml".to_owned());
    let text = ValuesFile::Text("own.yaml".to_owned(), "depth: 8\n".to_owned());
    for (files, values, expected) in [
        (vec![in_chart.clone()], None, "depth: 7"),
        (vec![in_chart.clone(), text.clone()], None, "depth: 8"),
        (vec![text, in_chart.clone()], None, "depth: 7"),
        (vec![url.clone()], None, "depth: 9"),
        (vec![url.clone(), in_chart], Some(11), "depth: 11"),
    ] {
        let artifact = fetcher
            .fetch(&with_values(&source, files, values), None, None)
            .await
            .unwrap();
        assert!(artifact.documents[0].text.contains(expected), "{expected}");
    }
    depth.store(10, Ordering::SeqCst);
    let changed = fetcher
        .fetch(&with_values(&source, vec![url], None), None, None)
        .await
        .unwrap();
    assert!(changed.documents[0].text.contains("depth: 10"));
    let missing = vec![ValuesFile::InChart("absent.yaml".to_owned())];
    let error = fetcher
        .fetch(&with_values(&source, missing, None), None, None)
        .await;
    assert!(error.unwrap_err().to_string().contains("absent.yaml"));
}

#[tokio::test]
async fn credentials_of_a_repository_are_not_sent_to_the_host_of_its_charts() {
    let elsewhere = Server::start(|_| ok("", chart("1.0.0"))).await;
    let url = elsewhere.url("/pond.tgz");
    let server = Server::start(move |request| match request.header("authorization") {
        Some("bearer planted") => ok(
            "",
            format!("entries: {{pond: [{{version: 1.0.0, urls: ['{url}']}}]}}"),
        ),
        _ => respond("401 Unauthorized", "", ""),
    })
    .await;
    let source = helm(server.url(""), "");
    let fetcher = fetcher(|_| {});
    let error = fetcher.fetch(&source, None, None).await;
    assert!(matches!(error, Err(Error::Unauthorized { .. })));
    let token = Credential::Bearer("planted".to_owned());
    fetcher.fetch(&source, Some(&token), None).await.unwrap();
    assert_eq!(elsewhere.seen()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_chart_without_our_kinds_and_one_that_fails_say_why() {
    let empty = |template: &'static str| {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, text) in [
            (
                "pond/Chart.yaml",
                "apiVersion: v2\nname: pond\nversion: 1.0.0\n",
            ),
            ("pond/templates/a.yaml", template),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    };
    for (template, why) in [
        ("kind: ConfigMap\n", "no document of Orkestra's kinds"),
        ("{{ fail \"too shallow\" }}", "too shallow"),
        (
            "{{ range until 100000000 }}x{{ end }}",
            "pond/templates/a.yaml",
        ),
    ] {
        let chart = empty(template);
        let server = Server::start(move |request| match &*request.path {
            "/index.yaml" => ok("", "entries: {pond: [{version: 1.0.0, urls: [pond.tgz]}]}"),
            _ => ok("", &chart),
        })
        .await;
        let error = fetcher(|_| {})
            .fetch(&helm(server.url(""), ""), None, None)
            .await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[tokio::test]
async fn the_archive_of_a_chart_is_fetched_without_rendering_it() {
    let server = Server::start(repository(&["1.0.0", "1.1.0"])).await;
    let fetcher = fetcher(|_| {});
    let archive = fetcher.chart(&server.url("/stable"), "pond", "^1").await;
    assert_eq!(archive.unwrap(), chart("1.1.0"));
    let archive = fetcher.chart(&server.url("/stable"), "pond", "1.0.0").await;
    assert_eq!(archive.unwrap(), chart("1.0.0"));
    let none = fetcher.chart(&server.url("/stable"), "lake", "").await;
    assert!(none.unwrap_err().to_string().contains("lake"));
}
