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
use orkestra_compiler::{
    compilation::{Compilation, CompilationResult, CompilationStep, DocumentSite, RefusedDocument},
    compose::{Artifact, RequestKind, ResolvedComposition, SourceRequest},
};
use orkestra_language::{
    diagnostics::{Code, Diagnostics},
    document::{Source, parse_stream},
};
use orkestra_plan::definitions::Schemas;

use super::{DiskFiles, Fetch, Fetched, FileInputs, Paced};

fn komposer(file: &str, sources: &str) -> Source {
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Komposer\nmetadata: {{ name: waters }}\nsources:\n{sources}\n"
    );
    parse_stream(file, &text).sources.remove(0)
}

/// Returns the request for the only source.
fn request(komposer: Source) -> SourceRequest {
    let mut compilation = Compilation::new(komposer, DocumentSite::File("k.yaml".into()));
    drop(compilation.step());
    compilation.requests()[0].clone()
}

/// Compiles the Komposer of a file.
async fn resolve(
    (file, komposer): (&str, Source),
    fetch: &dyn Fetch,
) -> Result<Arc<ResolvedComposition>, Diagnostics> {
    let (schemas, motifs) = (&Schemas::default(), &[]);
    let inputs = FileInputs {
        schemas,
        motifs,
        fetch,
        manages_definitions: false,
    };
    let compilation = Compilation::new(komposer, DocumentSite::File(file.into()));
    let finished = crate::compilation::finish(compilation, &inputs, ()).await;
    match finished.unwrap().1 {
        CompilationStep::Ended(result) => match *result {
            CompilationResult::Compiled(compiled) => Ok(compiled.composed.unwrap()),
            CompilationResult::Refused(RefusedDocument::Invalid(problems)) => Err(problems),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn katalog(name: &str) -> String {
    let kind = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
    format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{ name: {name} }}\nspec:\n  crds:\n    {name}:\n      \
         apiTypes: {{ group: water.example, version: v1, kind: {kind}, plural: {name}s }}\n"
    )
}

#[tokio::test]
async fn files_are_found_beside_the_komposer() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("katalogs")).unwrap();
    fs::write(folder.path().join("katalogs/pond.yaml"), katalog("pond")).unwrap();
    let file = folder.path().join("komposer.yaml").display().to_string();
    let composition = komposer(&file, "  files: [./katalogs/pond.yaml]");
    let resolved = resolve((&file, composition), &DiskFiles).await.unwrap();
    assert!(resolved.spec().crds.contains_key("pond"));
    assert_eq!(resolved.sources[0].source, "katalogs/pond.yaml");
    assert!(resolved.sources[0].digest.starts_with("sha256:"));
}

#[tokio::test]
async fn a_config_map_is_composed_from_the_given_content_and_without_it_the_flag_is_named() {
    let composition = komposer(
        "komposer.yaml",
        "  configMaps: [{ name: waters, key: k.yaml }]",
    );
    let fetcher = orkestra_sources::Fetcher::new(orkestra_sources::Options::new(
        orkestra_egress::Guard::at_desk(Vec::new()),
    ));
    let remote = super::Remote::new(fetcher);
    let resolve =
        async |fetch: &dyn Fetch| resolve(("komposer.yaml", composition.clone()), fetch).await;
    let problems = resolve(&remote).await.unwrap_err();
    let hint = problems.0[0].hint.clone().unwrap_or_default();
    assert!(hint.contains("--source configmap/waters=FILE"), "{hint}");
    // A manifest has keys; a document stands for the key that the source names.
    for key in ["k.yaml", super::ANY_KEY] {
        let data = [(key.to_owned(), katalog("pond"))].into();
        let given = remote
            .clone()
            .with_config_maps([("waters".to_owned(), data)].into());
        let resolved = resolve(&given).await.unwrap();
        assert!(resolved.spec().crds.contains_key("pond"), "{key:?}");
    }
    let data = [("other.yaml".to_owned(), katalog("pond"))].into();
    let given = remote.with_config_maps([("waters".to_owned(), data)].into());
    let problems = resolve(&given).await.unwrap_err();
    let message = &problems.0[0].message;
    assert!(message.contains("no key `k.yaml`"), "{message}");
}

#[tokio::test]
async fn each_missing_file_is_reported_at_its_source() {
    let composition = komposer(
        "komposer.yaml",
        "  files:\n    - ./no.yaml\n    - neither.yaml",
    );
    let problems = resolve(("komposer.yaml", composition), &DiskFiles).await;
    let problems = problems.unwrap_err();
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
    let request = request(composition);
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
    let request = request(composition);
    assert!(paced.fetch(&request).await.is_err());
    assert!(paced.fetch(&request).await.is_err());
    assert_eq!(inner.calls.load(Ordering::SeqCst), 1);
    tokio::time::advance(Duration::from_secs(11)).await;
    inner.fails.store(false, Ordering::SeqCst);
    assert!(paced.fetch(&request).await.is_ok());
}

#[tokio::test]
async fn the_page_about_composing_shows_an_example_and_its_output() {
    let root = orkestra_testkit::root();
    let page = root.join("docs/guides/composing.md");
    let file = root.join("examples/34-composed-platform/komposer.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let composition = parse_stream("komposer.yaml", &text).sources.remove(0);
    let shown = file.display().to_string();
    let resolved = resolve((&shown, composition), &DiskFiles).await.unwrap();
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
