//! Files over HTTP(S).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use orkestra_egress::{Guard, Resolver, Target};
use orkestra_sources::{Credential, Error, Pin, Source};

use crate::{
    fetcher,
    server::{Server, ok, redirect, respond},
};

fn file(url: impl Into<String>) -> Source {
    Source::File { url: url.into() }
}

#[tokio::test]
async fn an_unchanged_file_is_one_conditional_request_and_the_same_artifact() {
    let turn = Arc::new(AtomicUsize::new(1));
    let now = turn.clone();
    let server = Server::start(move |request| {
        let turn = now.load(Ordering::SeqCst);
        let tag = format!("\"v{turn}\"");
        if request.header("if-none-match") == Some(&*tag) {
            return respond("304 Not Modified", &format!("etag: {tag}\r\n"), "");
        }
        ok(
            &format!("etag: {tag}\r\n"),
            format!("kind: Katalog # {turn}\n"),
        )
    })
    .await;
    let fetcher = fetcher(|_| {});
    let source = file(server.url("/katalog.yaml?token=planted"));
    let first = fetcher.fetch(&source, None, None).await.unwrap();
    assert_eq!(first.url, server.url("/katalog.yaml"));
    assert_eq!(first.documents[0].text, "kind: Katalog # 1\n");
    assert_eq!(server.seen().len(), 1);
    let again = fetcher.fetch(&source, None, None).await.unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].header("if-none-match"), Some("\"v1\""));
    turn.store(2, Ordering::SeqCst);
    let new = fetcher.fetch(&source, None, None).await.unwrap();
    assert_ne!(new.digest, first.digest);
    // A new tag over the same content is not a new revision.
    let pin = Pin {
        revision: String::new(),
        digest: first.digest.clone(),
    };
    let error = fetcher.fetch(&source, None, Some(&pin)).await.unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
}

#[tokio::test]
async fn tls_is_checked_and_a_certificate_may_be_added() {
    let (server, certificate) = Server::start_tls(|_| ok("", "a: 1\n")).await;
    let source = file(format!("https://{}/k.yaml", server.address));
    let error = fetcher(|_| {})
        .fetch(&source, None, None)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("cannot be trusted"), "{error}");
    let trusting = fetcher(|options| options.roots = vec![certificate]);
    let artifact = trusting.fetch(&source, None, None).await.unwrap();
    assert_eq!(artifact.documents[0].text, "a: 1\n");
}

#[tokio::test]
async fn credentials_stay_with_the_origin_that_was_named() {
    let elsewhere = Server::start(|_| ok("", "a: 1\n")).await;
    let to = elsewhere.url("/k.yaml");
    let server = Server::start(move |request| {
        if request.header("authorization").is_none() {
            return respond("401 Unauthorized", "", "planted in the answer");
        }
        redirect(&to)
    })
    .await;
    let source = file(server.url("/k.yaml"));
    let fetcher = fetcher(|_| {});
    let error = fetcher.fetch(&source, None, None).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { status: 401, .. }));
    assert!(!error.to_string().contains("planted"), "{error}");
    let token = Credential::Bearer("planted".to_owned());
    fetcher.fetch(&source, Some(&token), None).await.unwrap();
    assert_eq!(elsewhere.seen()[0].header("authorization"), None);
}

#[tokio::test]
async fn nothing_is_called_without_an_entry_and_redirects_are_judged_like_urls() {
    let near = Server::start(|_| ok("", "a: 1\n")).await;
    let source = file(near.url("/k.yaml"));
    let closed = fetcher(|options| options.guard = Guard::for_sources(Vec::new()));
    let error = closed.fetch(&source, None, None).await.unwrap_err();
    assert!(error.is_permanent());
    assert!(
        error
            .to_string()
            .starts_with("remote sources are off: to permit this one, start with --source-allow"),
        "{error}"
    );
    assert!(near.seen().is_empty());
    for (to, why) in [
        ("http://169.254.169.254/latest/meta-data", "link-local"),
        ("https://10.0.0.1/", "private"),
        ("file:///etc/passwd", "URL"),
        (
            "http://charts.example/",
            "--source-allow http://charts.example",
        ),
    ] {
        let server = Server::start(move |_| redirect(to)).await;
        let error = fetcher(|_| {})
            .fetch(&file(server.url("/k")), None, None)
            .await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("redirects") && error.contains(why),
            "{to}: {error}"
        );
    }
    let error = fetcher(|_| {})
        .fetch(&file("k.yaml"), None, None)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("cannot be used in a cluster"),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_is_refused() {
    let near = Server::start(|_| ok("", "a: 1\n")).await;
    let port = near.address.port();
    let rebinding = fetcher(|options| {
        options.resolver =
            Resolver::new(|_| Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) }));
    });
    let source = file(format!("https://charts.example:{port}/k.yaml"));
    let error = rebinding.fetch(&source, None, None).await.unwrap_err();
    assert!(error.to_string().contains("which is loopback"), "{error}");
    assert!(near.seen().is_empty());
    assert!(Target::parse(&near.url("/")).unwrap().is_loopback());
}
