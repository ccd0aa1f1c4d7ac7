//! Merges of compositions: their properties, their limits, and the Komposers of the founding documents.

mod authority;
mod cases;
mod locks;
mod spellings;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::scope::Library;
use orkestra_language::diagnostics::{Code, Diagnostics, FieldPath};
use orkestra_language::document::{DocumentKind, parse_stream, read_katalog, read_komposer};
use orkestra_plan::{self, KatalogRef, Plan, definitions::Schemas};

/// The name of the composition's file.
const KOMPOSER: &str = "komposer.yaml";

fn artifact(id: &str, documents: Vec<Fetched>) -> Artifact {
    let url = id.split('#').next().unwrap_or_default();
    Artifact {
        url: url.trim_start_matches("git+").to_owned(),
        revision: OciReference::parse(url)
            .ok()
            .and_then(|it| it.tag)
            .unwrap_or_default(),
        digest: format!("sha256:{}", "ab".repeat(32)),
        documents,
        verified: Verified::NotRequired,
    }
}

fn composition(
    text: &str,
) -> Result<(Composition, Vec<orkestra_language::diagnostics::Diagnostic>), Diagnostics> {
    let stream = parse_stream(KOMPOSER, text);
    stream.problems.into_result()?;
    let base = Base::File(KOMPOSER.to_owned());
    let source = &stream.sources[0];
    if DocumentKind::of(source) == Some(DocumentKind::Katalog) {
        let (document, warnings) = read_katalog(source)?;
        return Ok((Composition::of_katalog(&document, base).unwrap(), warnings));
    }
    let (document, warnings) = read_komposer(source)?;
    Ok((Composition::of_komposer(&document, base), warnings))
}

fn merged(text: &str, artifacts: &Artifacts) -> Result<Merged, Diagnostics> {
    let (composition, warnings) = composition(text)?;
    let mut merged = merge(&composition, artifacts)?;
    if let Merged::Done(_, others) = &mut merged {
        others.splice(0..0, warnings);
    }
    Ok(merged)
}

fn resolved(text: &str, artifacts: &Artifacts) -> ResolvedComposition {
    match merged(text, artifacts) {
        Ok(Merged::Done(resolved, _)) => *resolved,
        other => panic!("{other:?}"),
    }
}

fn compiled(
    resolved: &ResolvedComposition,
) -> Result<(Plan, Vec<orkestra_language::diagnostics::Diagnostic>), Diagnostics> {
    let mut schemas = Schemas::default();
    resolved.add_schemas(&mut schemas);
    compiled_with(resolved, &schemas)
}

fn compiled_with(
    resolved: &ResolvedComposition,
    schemas: &Schemas,
) -> Result<(Plan, Vec<orkestra_language::diagnostics::Diagnostic>), Diagnostics> {
    let mut library = Library::default();
    loop {
        let missing = library.missing(resolved.spec());
        if missing.is_empty() {
            break;
        }
        for reference in resolved.fill(&mut library, missing) {
            library.put_absent(reference, "not among the artifacts");
        }
    }
    let katalog = KatalogRef::new("default".to_owned(), resolved.document.name.clone());
    crate::compile::katalog(&katalog, resolved.spec(), schemas, &library).map_err(|mut found| {
        found.locate(&resolved.document.tree, resolved.document.file.as_deref());
        found
    })
}

const POND: &str = "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: { name: ponds }\nspec:\n  crds:\n    pond:\n      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }\n      operatorBox:\n        reconciler: { workers: 2, resync: 1m }\n        onReconcile:\n          configMaps:\n            - name: \"{{ .metadata.name }}-a\"\n              data: { depth: \"{{ .spec.depth }}\" }\n";

fn disk(id: &str, text: &str) -> (String, Arc<Artifact>) {
    let documents = vec![Fetched {
        name: String::new(),
        text: text.to_owned(),
    }];
    (id.to_owned(), Arc::new(artifact(id, documents)))
}

fn komposer(sources: &str, rest: &str) -> String {
    format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Komposer\nmetadata: {{ name: waters }}\nsources:\n{sources}\n{rest}\n"
    )
}

#[test]
fn an_override_that_repeats_the_source_changes_nothing() {
    let artifacts: Artifacts = [disk("pond.yaml", POND)].into();
    let alone = resolved(&komposer("  files: [pond.yaml]", ""), &artifacts);
    let tree = parse_stream("pond.yaml", POND).sources.remove(0).tree;
    let crds = tree.to_json()["spec"]["crds"].to_string();
    let same = resolved(
        &komposer("  files: [pond.yaml]", &format!("spec: {{ crds: {crds} }}")),
        &artifacts,
    );
    let (Ok((before, _)), Ok((after, _))) = (compiled(&alone), compiled(&same)) else {
        panic!("does not compile");
    };
    assert!(orkestra_plan::diff(&before, &after).is_empty());
    assert_eq!(alone.spec().crds, same.spec().crds);
}

#[test]
fn a_katalog_keeps_its_plan_when_a_komposer_takes_it_over_from_another_version() {
    let registry = |version: &str| {
        let id = format!("oci://r.example/ponds:{version}");
        let documents = vec![Fetched {
            name: "katalog.yaml".to_owned(),
            text: POND.to_owned(),
        }];
        let mut artifact = artifact(&id, documents);
        artifact.digest = format!(
            "sha256:{}",
            if version == "v1" { "aa" } else { "bb" }.repeat(32)
        );
        let artifacts: Artifacts = [(id, Arc::new(artifact))].into();
        let sources = format!("  registry: [{{ url: 'r.example/ponds@{version}', oci: true }}]");
        compiled(&resolved(&komposer(&sources, ""), &artifacts))
            .unwrap()
            .0
    };
    let (one, two) = (registry("v1"), registry("v2"));
    assert!(orkestra_plan::diff(&one, &two).is_empty());
    assert_eq!(one.operators[0].source.as_deref(), Some("ponds"));
}

#[test]
fn nested_komposers_that_multiply_are_bounded() {
    let mut artifacts = Artifacts::new();
    for level in 0..14 {
        let next = format!("k{}.yaml", level + 1);
        let text = komposer(&format!("  files: [{next}, {next}]"), "")
            .replace("waters", &format!("k{level}"));
        artifacts.extend([disk(&format!("k{level}.yaml"), &text)]);
    }
    artifacts.extend([disk("k14.yaml", POND)]);
    let problems = merged(&komposer("  files: [k0.yaml]", ""), &artifacts).unwrap_err();
    assert!(
        problems
            .iter()
            .any(|problem| problem.code == Code::TooLarge),
        "{problems}"
    );
    assert!(problems.0.len() <= 2 * 251);
}

#[test]
fn deep_nesting_is_bounded() {
    let mut artifacts = Artifacts::new();
    for level in 0..40 {
        let text = komposer(&format!("  files: [k{}.yaml]", level + 1), "")
            .replace("waters", &format!("k{level}"));
        artifacts.extend([disk(&format!("k{level}.yaml"), &text)]);
    }
    let problems = merged(&komposer("  files: [k0.yaml]", ""), &artifacts).unwrap_err();
    assert_eq!(problems.0.len(), 1, "{problems}");
    assert_eq!(problems.0[0].code, Code::TooLarge);
}

#[test]
fn a_thousand_sources_are_merged_and_one_more_is_refused() {
    let mut artifacts = Artifacts::new();
    let mut sources = String::from("  files:\n");
    for number in 0..1000 {
        let text = POND
            .replace("pond:", &format!("pond{number}:"))
            .replace("kind: Pond", &format!("kind: Pond{number}"));
        artifacts.extend([disk(&format!("p{number}.yaml"), &text)]);
        writeln!(sources, "    - p{number}.yaml").unwrap();
    }
    let start = std::time::Instant::now();
    let all = resolved(&komposer(&sources, ""), &artifacts);
    assert_eq!(all.spec().crds.len(), 1000);
    assert!(start.elapsed().as_secs() < 60);
    sources.push_str("    - more.yaml\n");
    let problems = merged(&komposer(&sources, ""), &artifacts).unwrap_err();
    assert_eq!(problems.0[0].code, Code::TooLarge);
}

#[test]
fn files_of_one_name_in_two_folders_are_two_sources() {
    let lake = POND
        .replace("pond:", "lake:")
        .replace("kind: Pond, plural: ponds", "kind: Lake, plural: lakes");
    let nested = komposer("  files: [katalog.yaml]", "").replace("waters", "nested");
    let artifacts: Artifacts = [
        disk("katalog.yaml", POND),
        disk("sub/komposer.yaml", &nested),
        disk("sub/katalog.yaml", &lake),
    ]
    .into();
    let all = resolved(
        &komposer("  files: [katalog.yaml, sub/komposer.yaml]", ""),
        &artifacts,
    );
    let names: Vec<_> = all.spec().crds.keys().map(String::as_str).collect();
    assert_eq!(names, ["lake", "pond"]);
    let sources: Vec<_> = all.sources.iter().map(|one| &*one.source).collect();
    assert_eq!(
        sources,
        ["katalog.yaml", "sub/komposer.yaml", "sub/katalog.yaml"]
    );
}

#[test]
fn a_huge_override_is_merged() {
    let artifacts: Artifacts = [disk("pond.yaml", POND)].into();
    let mut labels = String::new();
    for number in 0..20_000 {
        write!(labels, "l{number}: v, ").unwrap();
    }
    let rest = format!("spec: {{ crds: {{ pond: {{ labels: {{ {labels} }} }} }} }}");
    let all = resolved(&komposer("  files: [pond.yaml]", &rest), &artifacts);
    assert_eq!(all.spec().crds["pond"].labels.len(), 20_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// An override results in a composition or in problems with positions; merging twice and reading the stored form give the same.
    #[test]
    fn any_override_gives_a_result_or_located_problems(
        field in "(workers|resync|operatorBox|apiTypes|labels|enabled|description|dependsOn|odd|validation)",
        value in "([0-9]{1,3}|true|null|\\[\\]|\\{\\}|abc|\\{ a: b \\}|\\[pond\\]|\\{ kind: X \\}|\\{ reconciler: \\{ workers: 9 \\} \\}|'\\{\\{ .x \\}\\}')",
        name in "(pond|pont|lake)",
    ) {
        let artifacts: Artifacts = [disk("pond.yaml", POND)].into();
        let rest = format!("spec:\n  crds:\n    {name}:\n      {field}: {value}");
        let text = komposer("  files: [pond.yaml]", &rest);
        match merged(&text, &artifacts) {
            Ok(Merged::Done(resolved, _)) => {
                let (back, _) = ResolvedComposition::from_json(&resolved.to_json()).unwrap();
                prop_assert_eq!(back.to_json(), resolved.to_json());
                let yaml = resolved.to_yaml(true);
                for source in &parse_stream("resolved", &yaml).sources {
                    read_katalog(source).map_or_else(|problems| panic!("{yaml}\n{problems}"), |_| ());
                }
            }
            Ok(other) => panic!("{other:?}"),
            Err(problems) => {
                prop_assert!(problems.has_errors());
                for problem in &problems {
                    let is_known = matches!(problem.file.as_deref(), Some(KOMPOSER | "pond.yaml"));
                    prop_assert!(is_known && problem.line.is_some(), "{}", problem);
                }
            }
        }
    }
}

#[test]
fn provenance_is_known_for_each_field() {
    let artifacts: Artifacts = [disk("pond.yaml", POND)].into();
    let rest = "spec:\n  crds:\n    pond:\n      operatorBox: { reconciler: { workers: 8 } }";
    let resolved = resolved(&komposer("  files: [pond.yaml]", rest), &artifacts);
    for (path, file) in [
        ("spec.crds.pond.operatorBox.reconciler.workers", KOMPOSER),
        ("spec.crds.pond.operatorBox.reconciler.resync", "pond.yaml"),
        ("spec.crds.pond.apiTypes.kind", "pond.yaml"),
    ] {
        let path = FieldPath::parse(path);
        assert!(resolved.document.tree.locate(&path).is_some(), "{path}");
        assert_eq!(resolved.file_of(&path), Some(file), "{path}");
    }
    assert_eq!(resolved.source_of("pond").unwrap().source, "pond.yaml");
}

/// Merges the Komposers of the founding documents and of the language reference, with sources that the test provides.
#[test]
fn the_komposers_of_the_founding_documents_are_merged() {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/document");
    for (file, sources, operators) in [
        (
            "seed-komposer.yaml",
            3,
            vec!["pipeline", "postgres", "website"],
        ),
        (
            "row-20-sources.yaml",
            5,
            vec!["katalogs", "postgres", "redis", "website", "websites"],
        ),
    ] {
        let text = std::fs::read_to_string(inputs.join(file)).unwrap();
        let mut artifacts = Artifacts::new();
        let resolved = loop {
            match merged(&text, &artifacts).unwrap() {
                Merged::Done(resolved, warnings) => {
                    assert!(warnings.is_empty(), "{warnings:?}");
                    break resolved;
                }
                Merged::NeedLock => panic!("{file} has nested Komposers that require a lock"),
                Merged::Need(requests) => {
                    assert_eq!(requests.len(), sources);
                    for request in requests {
                        artifacts.insert(request.id.clone(), Arc::new(given(&request)));
                    }
                }
            }
        };
        let (plan, _) = compiled(&resolved).unwrap();
        let names: Vec<_> = plan
            .operators
            .iter()
            .map(|operator| &*operator.name)
            .collect();
        assert_eq!(names, operators, "{file}");
        // Each source declares `operatorBox.reconciler.workers: 2`.
        let workers = |name: &str| {
            plan.operators
                .iter()
                .find(|one| one.name == name)
                .unwrap()
                .workers
        };
        assert_eq!((workers("postgres"), workers("website")), (8, 2), "{file}");
        assert_eq!(resolved.source_of("postgres").unwrap().digest.len(), 71);
    }
}

/// Returns an artifact with one operator, named after the last word of its source.
fn given(request: &SourceRequest) -> Artifact {
    let (url, word, file) = match &request.kind {
        RequestKind::Registry { url, .. } => {
            let path = OciReference::parse(url).unwrap().path;
            let word = path.rsplit('/').next().unwrap().to_owned();
            (format!("oci://{url}"), word, "katalog.yaml")
        }
        RequestKind::File { path } => {
            let word = Path::new(path).file_stem().unwrap().to_str().unwrap();
            (path.clone(), word.to_owned(), "")
        }
        RequestKind::Helm { repo, chart, .. } => {
            (repo.clone(), chart.clone(), "templates/katalog.yaml")
        }
        RequestKind::Git { url, path, .. } => {
            let word = url.rsplit('/').next().unwrap().trim_end_matches(".git");
            (url.clone(), word.to_owned(), &**path)
        }
        other => panic!("{other:?}"),
    };
    let text = POND
        .replace("pond:", &format!("{word}:"))
        .replace("kind: Pond", &format!("kind: {}", word.to_uppercase()));
    Artifact {
        url,
        revision: "r".to_owned(),
        digest: format!("sha256:{}", "0f".repeat(32)),
        documents: vec![Fetched {
            name: file.to_owned(),
            text,
        }],
        verified: Verified::NotRequired,
    }
}
