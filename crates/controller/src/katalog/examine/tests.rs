//! Admission and the runtime agree on what a document declares.

use orkestra_compiler::compilation::{InputAnswer, InputRequest, SourceAnswer};
use orkestra_language::document::aliases::{ALIASES, Alias};
use orkestra_plan::definitions::Schemas;
use serde_json::json;

use super::{super::judge::RunnableRevision, *};
use crate::status::Verdict;

/// What a document makes operators do, as one of the two sides decides it.
#[derive(Debug, PartialEq)]
enum Side {
    Refused,
    Own,
    Sources,
}

/// Compiles a document whose sources are not fetched.
fn compile(reference: &KatalogRef, document: &Value) -> (Compilation, CompilationStep) {
    let source = Source::from_object(document).unwrap();
    let mut compilation = Compilation::new(source, DocumentSite::Cluster(reference.clone()));
    let step = compilation.run(|request| {
        Some(match request {
            InputRequest::Source(source, _) => {
                InputAnswer::Source(source.id.clone(), SourceAnswer::Awaited(None))
            }
            InputRequest::Schemas(kinds) => InputAnswer::Schemas(kinds.clone(), Schemas::default()),
            _ => return None,
        })
    });
    (compilation, step)
}

fn admission(reference: &KatalogRef, document: &Value) -> Side {
    let (compilation, step) = compile(reference, document);
    match Examined::of(&compilation, step).declares {
        Declares::Nothing => Side::Refused,
        Declares::Plans(_) => Side::Own,
        Declares::Sources => Side::Sources,
    }
}

fn runtime(reference: &KatalogRef, document: &Value) -> Side {
    let (_, step) = compile(reference, document);
    match RunnableRevision::of(step, document) {
        Ok(_) => Side::Own,
        Err(Verdict::Waiting { .. }) => Side::Sources,
        Err(_) => Side::Refused,
    }
}

#[test]
fn admission_and_runtime_agree_on_every_spelling_and_place_of_sources() {
    let katalog = KatalogRef::new("team".to_owned(), "k".to_owned());
    let types =
        json!({ "group": "water.example", "version": "v1", "kind": "Pond", "plural": "ponds" });
    for (kind, reference) in [
        ("Katalog", katalog.clone()),
        ("Komposer", katalog.of(orkestra_plan::Declaring::Komposer)),
    ] {
        let of = format!("{kind}Spec");
        let is_meant = |alias: &&Alias| alias.of == of && alias.to == ["sources"];
        let aliases = ALIASES.iter().filter(is_meant);
        let spellings: Vec<&[&str]> = aliases
            .map(|alias| alias.from)
            .chain([&["sources"][..]])
            .collect();
        assert_eq!(spellings.len(), if kind == "Komposer" { 2 } else { 1 });
        let sources = [
            json!({ "configMaps": [{ "name": "s" }] }),
            json!({ "katalogs": [{ "name": "s" }] }),
            json!([{ "configMaps": [] }]),
            json!({}),
            json!(null),
        ];
        let mut composed = 0;
        for sources in &sources {
            for spelling in &spellings {
                for is_below in [true, false] {
                    let mut document = json!({
                        "apiVersion": "orkestra.orkspace.io/v1", "kind": kind,
                        "metadata": { "name": "k", "namespace": "team" },
                        "spec": { "crds": { "pond": { "apiTypes": types } } },
                    });
                    let place = if is_below {
                        &mut document["spec"]
                    } else {
                        &mut document
                    };
                    place[spelling[0]] = sources.clone();
                    let decided = admission(&reference, &document);
                    assert_eq!(decided, runtime(&reference, &document), "{document:#}");
                    composed += usize::from(decided == Side::Sources);
                }
            }
        }
        // Both kinds of sources, in each spelling, at both places.
        assert_eq!(composed, 2 * spellings.len() * 2, "{kind}");
    }
}
