//! Every spelling and place of a declaration is read as the same one, by admission and by the runtime: both read [`Declared`].
//!
//! The spellings come from the tables of the normaliser: each alias whose present spelling a document has is turned back.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use orkestra_language::api::shape::Shape;
use orkestra_language::api::{katalog, komposer};
use orkestra_language::document::aliases::{ALIASES, Alias};
use orkestra_language::document::{Source, Tree, TreeKey, TreeValue, alias_applies};
use orkestra_plan::rbac::{self, Permissions};

/// What both sides decide by.
#[derive(Debug, PartialEq)]
struct Decided {
    is_composed: bool,
    kinds: BTreeMap<String, orkestra_plan::GroupKind>,
    /// The permissions that the plan derives; none if it has errors, or its sources are not known.
    permissions: Option<Permissions>,
}

/// Returns what is decided by a document; `None` if it is refused.
fn decided(tree: &Tree) -> Option<Decided> {
    let source = Source::from_object(&tree.to_json()).ok()?;
    let base = Base::Cluster {
        namespace: "team".to_owned(),
    };
    if DocumentKind::of(&source) == Some(DocumentKind::Katalog) {
        read_katalog(&source).ok()?;
    }
    let declared = Declared::read(&source, base).ok()?;
    let permissions = match &declared {
        Declared::Whole(document) => {
            let katalog = KatalogRef::new("team".to_owned(), document.name.clone());
            let (schemas, library) = (Schemas::default(), Library::default());
            let compiled = crate::compile::katalog(&katalog, &document.spec, &schemas, &library);
            compiled.ok().map(|(plan, _)| rbac::permissions(&plan))
        }
        Declared::ComposedKatalog(_) | Declared::Komposer(_) => None,
    };
    Some(Decided {
        is_composed: declared.is_composed(),
        kinds: declared.kinds(),
        permissions,
    })
}

/// Writes `alias` in place of its present spelling wherever `tree` has that; false if it has it nowhere.
fn respell(tree: &mut Tree, shape: &Shape, alias: &Alias) -> bool {
    match shape {
        Shape::Object(object) => {
            let mut is_any = false;
            for (key, value) in tree.as_map_mut().into_iter().flatten() {
                let field = object.fields.get(&key.name).map(|field| &field.shape);
                if let Some(shape) = field.or(object.rest.as_deref()) {
                    is_any |= respell(value, shape, alias);
                }
            }
            let is_here = alias_applies(alias, object)
                && tree.below(alias.to).is_some()
                && tree.below(alias.from).is_none();
            if is_here && let Some((key, value)) = tree.take(alias.to) {
                let before = tree.clone();
                let key = TreeKey {
                    name: (*alias.from.last().unwrap()).to_owned(),
                    ..key
                };
                if tree.put(alias.from, key, value).is_err() {
                    *tree = before;
                    return is_any;
                }
                is_any = true;
            }
            is_any
        }
        Shape::List(item) => {
            let items = tree.as_list_mut().into_iter().flatten();
            items.fold(false, |is_any, value| respell(value, item, alias) | is_any)
        }
        Shape::OneOf(shapes) => shapes.iter().any(|shape| {
            let suits = match shape {
                Shape::Object(_) => tree.as_map().is_some(),
                Shape::List(_) => matches!(tree.value, TreeValue::List(_)),
                _ => false,
            };
            suits && respell(tree, shape, alias)
        }),
        _ => false,
    }
}

/// Returns the documents of the examples, with their kinds.
fn documents() -> Vec<(Tree, DocumentKind)> {
    fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                files(&path, found);
            } else if path.extension().is_some_and(|end| end == "yaml") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in ["examples", "tests/inputs/kinds"] {
        files(&root.join(folder), &mut found);
    }
    found.sort();
    let mut documents = Vec::new();
    for path in found {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for source in parse_stream("k.yaml", &text).sources {
            let kind = DocumentKind::of(&source);
            if let Some(kind @ (DocumentKind::Katalog | DocumentKind::Komposer)) = kind {
                documents.push((Tree::from_json(&source.tree.to_json()), kind));
            }
        }
    }
    documents
}

#[test]
fn every_alias_is_decided_as_its_present_spelling() {
    let (mut compared, mut covered) = (0, BTreeSet::new());
    for (tree, kind) in documents() {
        let shape = kind.shape().unwrap();
        let Some(expected) = decided(&tree) else {
            continue;
        };
        for (index, alias) in ALIASES.iter().enumerate() {
            let mut respelled = tree.clone();
            if !respell(&mut respelled, shape, alias) {
                continue;
            }
            // A spelling that is refused decides nothing.
            if let Some(found) = decided(&respelled) {
                assert_eq!(found, expected, "{alias:?}\n{:#}", respelled.to_json());
                covered.insert(index);
                compared += 1;
            }
        }
    }
    assert!(
        compared > 100 && covered.len() > 15,
        "{compared} {covered:?}"
    );
}

#[test]
fn every_block_is_decided_alike_beside_spec_and_below_it() {
    let mut compared = 0;
    for (tree, kind) in documents() {
        let blocks = if kind == DocumentKind::Komposer {
            komposer::BLOCKS
        } else {
            katalog::BLOCKS
        };
        let (Some(expected), true) = (decided(&tree), tree.get("spec").is_some()) else {
            continue;
        };
        for block in blocks {
            let mut moved = tree.clone();
            let (below, beside) = (["spec", block], [*block]);
            let (from, to): (&[&str], &[&str]) = if tree.below(&below).is_some() {
                (&below, &beside)
            } else {
                (&beside, &below)
            };
            let Some((key, value)) = moved.take(from) else {
                continue;
            };
            if moved.put(to, key, value).is_ok() {
                let found = decided(&moved);
                assert_eq!(found.as_ref(), Some(&expected), "{:#}", moved.to_json());
                compared += 1;
            }
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn entries_as_a_list_are_the_same_entries() {
    let mut compared = 0;
    for (tree, _) in documents() {
        let Some(expected) = decided(&tree) else {
            continue;
        };
        let mut json = tree.to_json();
        let Some(crds) = json
            .pointer_mut("/spec/crds")
            .filter(|crds| crds.is_object())
        else {
            continue;
        };
        let entries = crds.as_object().unwrap().iter().map(|(name, entry)| {
            let mut entry = entry.clone();
            if let Some(entry) = entry.as_object_mut() {
                entry.insert("name".to_owned(), name.clone().into());
            }
            entry
        });
        *crds = serde_json::Value::Array(entries.collect());
        if let Some(found) = decided(&Tree::from_json(&json)) {
            assert_eq!(found.kinds, expected.kinds, "{json:#}");
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}
