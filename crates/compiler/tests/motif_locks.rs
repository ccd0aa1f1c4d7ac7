//! Motifs of registries, in compositions that require a lock, and in documents that were fetched.

#![allow(clippy::panic, reason = "helpers of tests, outside of test functions")]

use std::sync::Arc;

use orkestra_compiler::compilation::{
    Compilation, CompilationResult, CompilationStep, DocumentSite, InputAnswer, InputRequest,
    MotifAnswer, RefusedDocument, SourceAnswer, UnreadFile,
};
use orkestra_compiler::compose::{Artifact, Fetched};
use orkestra_language::document::parse_stream;
use orkestra_plan::definitions::Schemas;

const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn artifact(url: &str, name: &str, text: String) -> Arc<Artifact> {
    let documents = vec![Fetched {
        name: name.to_owned(),
        text,
    }];
    Arc::new(Artifact {
        url: url.to_owned(),
        digest: format!("sha256:{DIGEST}"),
        documents,
        ..Artifact::default()
    })
}

fn katalog(import: &str) -> String {
    format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{ name: ponds }}\nspec:\n  crds:\n    pond:\n      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}\n      imports: [{{ motif: '{import}' }}]\n"
    )
}

/// A Motif, which imports another one.
fn motif(imports: &str) -> String {
    format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Motif\nmetadata: {{ name: reeds }}\nspec:\n  imports: [{imports}]\n  resources: {{ configMaps: [{{ name: '{{{{ .metadata.name }}}}-m', data: {{ a: b }} }}] }}\n"
    )
}

/// Compiles a Komposer with one source; the Motif `outer` imports `inner`. Returns the problems.
fn problems(lock: &str, katalog: &str, inner: &str) -> String {
    let source = format!("oci://r.example/ponds@sha256:{DIGEST}");
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Komposer\nmetadata: {{ name: waters }}\nsources: {{ registry: [{{ url: '{source}' }}] }}\nspec: {{ {lock} }}\n"
    );
    let document = parse_stream("komposer.yaml", &text).sources.remove(0);
    let mut compilation = Compilation::new(document, DocumentSite::File("komposer.yaml".into()));
    let ended = compilation.run(|request| {
        Some(match request {
            InputRequest::Source(source, _) => {
                let found = artifact(&source.id, "katalog.yaml", katalog.to_owned());
                InputAnswer::Source(source.id.clone(), SourceAnswer::Fetched(found))
            }
            InputRequest::Motif(name) => InputAnswer::Motif(
                name.clone(),
                MotifAnswer::Absent("there is none".to_owned()),
            ),
            InputRequest::Artifact(text) => {
                let imports = if text.contains("outer") { inner } else { "" };
                let found = artifact(text, "motif.yaml", motif(imports));
                InputAnswer::Artifact(text.clone(), Ok(found))
            }
            InputRequest::File(path) => {
                let unread = UnreadFile {
                    is_missing: true,
                    why: "it is not there".to_owned(),
                };
                InputAnswer::File(path.clone(), Err(unread))
            }
            InputRequest::Schemas(kinds) => InputAnswer::Schemas(kinds.clone(), Schemas::default()),
        })
    });
    let CompilationStep::Ended(result) = ended else {
        panic!("{ended:?}");
    };
    match *result {
        CompilationResult::Compiled(_) => String::new(),
        CompilationResult::Refused(RefusedDocument::Invalid(problems)) => problems.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_composition_that_requires_a_lock_uses_only_motifs_by_their_digest() {
    let pinned = |name: &str| format!("oci://m.example/{name}@sha256:{DIGEST}");
    let required = "lock: required";
    for import in [
        "oci://m.example/outer:v1",
        "oci://m.example/outer",
        "outer@v1",
    ] {
        let found = problems(required, &katalog(import), "");
        assert!(found.contains("is not locked"), "{import}: {found}");
        assert!(found.contains("katalog.yaml:8"), "{import}: {found}");
        assert_eq!(problems("", &katalog(import), ""), "", "{import}");
    }
    assert_eq!(problems(required, &katalog(&pinned("outer")), ""), "");
    let both = format!("{}:v1@sha256:{DIGEST}", "oci://m.example/outer");
    assert_eq!(problems(required, &katalog(&both), ""), "");
    // Of a Motif as well.
    let inner = "{ motif: 'oci://m.example/inner:v1' }";
    let found = problems(required, &katalog(&pinned("outer")), inner);
    assert!(found.contains("is not locked"), "{found}");
    let inner = format!("{{ motif: '{}' }}", pinned("inner"));
    assert_eq!(problems(required, &katalog(&pinned("outer")), &inner), "");
}

#[test]
fn a_fetched_document_imports_no_motifs_from_this_machine() {
    for import in [
        "oci://localhost:5000/outer:v1",
        "oci://127.0.0.1/outer:v1",
        "oci://LOCALHOST/outer:v1",
    ] {
        let found = problems("", &katalog(import), "");
        assert!(
            found.contains("cannot name this machine"),
            "{import}: {found}"
        );
    }
    let inner = "{ motif: 'oci://localhost:5000/inner:v1' }";
    let found = problems("", &katalog("oci://m.example/outer:v1"), inner);
    assert!(found.contains("cannot name this machine"), "{found}");
}
