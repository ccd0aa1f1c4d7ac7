//! Sources on disk, and the intervals at which remote sources are fetched.

mod remote;

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use orkestra_core::{
    compose::{Artifact, Base, Composition, RequestKind, SourceRequest},
    diagnostics::Code,
    document::{parse_stream, read_komposer},
};

use super::{DiskFiles, Fetch, Fetched, Paced, resolve};

fn komposer(file: &str, sources: &str) -> Composition {
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Komposer\nmetadata: {{ name: waters }}\nsources:\n{sources}\n"
    );
    let stream = parse_stream(file, &text);
    let (document, _) = read_komposer(&stream.sources[0]).unwrap();
    Composition::of_komposer(&document, Base::File(file.to_owned()))
}

fn katalog(name: &str) -> String {
    format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{ name: {name} }}\nspec:\n  crds:\n    {name}:\n      \
         apiTypes: {{ group: water.example, version: v1, kind: {name}, plural: {name}s }}\n"
    )
}

#[tokio::test]
async fn files_are_found_beside_the_komposer() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("katalogs")).unwrap();
    fs::write(folder.path().join("katalogs/pond.yaml"), katalog("pond")).unwrap();
    let file = folder.path().join("komposer.yaml").display().to_string();
    let composition = komposer(&file, "  files: [./katalogs/pond.yaml]");
    let (resolved, warnings) = resolve(&composition, &DiskFiles).await.unwrap();
    assert!(warnings.is_empty());
    assert!(resolved.spec().crds.contains_key("pond"));
    assert_eq!(resolved.sources[0].source, "katalogs/pond.yaml");
    assert!(resolved.sources[0].digest.starts_with("sha256:"));
}

#[tokio::test]
async fn each_missing_file_is_reported_at_its_source() {
    let composition = komposer(
        "komposer.yaml",
        "  files:\n    - ./no.yaml\n    - neither.yaml",
    );
    let problems = resolve(&composition, &DiskFiles).await.unwrap_err();
    let reported: Vec<_> = problems.iter().map(|one| (one.line, one.code)).collect();
    assert_eq!(
        reported,
        [(Some(6), Code::Unreadable), (Some(7), Code::Unreadable)]
    );
    assert_eq!(problems.0[0].file.as_deref(), Some("komposer.yaml"));
}

#[derive(Debug, Default)]
struct Counting {
    calls: AtomicUsize,
    fails: std::sync::atomic::AtomicBool,
}

impl Fetch for Counting {
    fn fetch<'a>(&'a self, request: &'a SourceRequest) -> BoxFuture<'a, Fetched> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let fetched = if self.fails.load(Ordering::SeqCst) {
            Err(Box::new(request.problem(Code::Unreadable, "no answer")))
        } else {
            Ok(Arc::new(Artifact {
                revision: call.to_string(),
                ..Artifact::default()
            }))
        };
        async move { fetched }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_is_fetched_at_its_interval_and_its_last_artifact_survives_a_failure() {
    let inner = Arc::new(Counting::default());
    let paced = Paced::new(Arc::clone(&inner) as Arc<dyn Fetch>);
    let composition = komposer(
        "komposer.yaml",
        "  files:\n    - { url: 'https://water.example/katalog.yaml', interval: 1m }",
    );
    let request = composition.requests().remove(0);
    assert!(matches!(request.kind, RequestKind::Url { .. }));
    for _ in 0..3 {
        assert_eq!(paced.fetch(&request).await.unwrap().revision, "0");
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(paced.fetch(&request).await.unwrap().revision, "1");
    inner.fails.store(true, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(61)).await;
    for _ in 0..3 {
        assert_eq!(paced.fetch(&request).await.unwrap().revision, "1");
    }
    assert_eq!(inner.calls.load(Ordering::SeqCst), 3);
    // A failed fetch is retried soon, not at the next interval.
    tokio::time::advance(Duration::from_secs(11)).await;
    inner.fails.store(false, Ordering::SeqCst);
    assert_eq!(paced.fetch(&request).await.unwrap().revision, "3");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_never_answered_is_an_error_and_is_tried_again() {
    let inner = Arc::new(Counting::default());
    inner.fails.store(true, Ordering::SeqCst);
    let paced = Paced::new(Arc::clone(&inner) as Arc<dyn Fetch>);
    let composition = komposer("k.yaml", "  registry: [{ url: r.example/pond@v1 }]");
    let request = composition.requests().remove(0);
    assert!(paced.fetch(&request).await.is_err());
    assert!(paced.fetch(&request).await.is_err());
    assert_eq!(inner.calls.load(Ordering::SeqCst), 1);
    tokio::time::advance(Duration::from_secs(11)).await;
    inner.fails.store(false, Ordering::SeqCst);
    assert!(paced.fetch(&request).await.is_ok());
}

#[tokio::test]
async fn the_page_about_composing_shows_an_example_and_its_output() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = root.join("docs/composing.md");
    let file = root.join("examples/34-composed-platform/komposer.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let stream = parse_stream("komposer.yaml", &text);
    let (document, _) = read_komposer(&stream.sources[0]).unwrap();
    let base = Base::File(file.display().to_string());
    let composition = Composition::of_komposer(&document, base);
    let (resolved, _) = resolve(&composition, &DiskFiles).await.unwrap();
    let folder = format!("{}/", file.parent().unwrap().display());
    let shown = resolved.to_yaml(true).replace(&folder, "");
    let mut current = fs::read_to_string(&page).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        for (mark, shown) in [("\n```yaml\n", &text), ("line:\n\n```yaml\n", &shown)] {
            let (before, rest) = current.split_once(mark).unwrap();
            let (_, after) = rest.split_once("```").unwrap();
            current = format!("{before}{mark}{shown}```{after}");
        }
        fs::write(&page, &current).unwrap();
    }
    for part in [text, shown] {
        assert!(current.contains(&format!("```yaml\n{part}```")), "{part}");
    }
}
