//! All fields of the language are known: lists in `inputs/fields`, one file for each kind.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, too, fail by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use orkestra_language::api::shape::{ObjectShape, Shape};
use orkestra_language::document::DocumentKind;
use orkestra_language::document::aliases::ALIASES;

/// Returns the lines of a list, with `{a,b}` expanded.
fn paths(file: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/fields");
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.flat_map(written_out).collect()
}

fn written_out(line: &str) -> Vec<String> {
    let Some((before, rest)) = line.split_once('{') else {
        return vec![line.to_owned()];
    };
    let (words, after) = rest.split_once('}').unwrap();
    words
        .split(',')
        .flat_map(|word| written_out(&format!("{before}{word}{after}")))
        .collect()
}

fn has(shape: &Shape, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return true;
    };
    match shape {
        Shape::List(item) => has(item, path),
        Shape::OneOf(shapes) => shapes.iter().any(|shape| has(shape, path)),
        Shape::OrTemplate(written) => has(written, path),
        Shape::Object(object) if first.starts_with('<') => {
            object.rest.as_deref().is_some_and(|shape| has(shape, rest))
        }
        Shape::Object(object) => object
            .fields
            .get(*first)
            .is_some_and(|field| has(&field.shape, rest)),
        _ => false,
    }
}

#[test]
fn every_field_of_the_language_is_known() {
    let mut lost = Vec::new();
    for (file, kind) in [
        ("katalog.txt", DocumentKind::Katalog),
        ("motif.txt", DocumentKind::Motif),
        ("komposer.txt", DocumentKind::Komposer),
    ] {
        let shape = kind.shape().unwrap();
        let paths = paths(file);
        let missing = paths
            .iter()
            .filter(|path| !has(shape, &path.split('.').collect::<Vec<_>>()));
        lost.extend(missing.cloned());
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

/// Adds every map of a shape once.
fn objects<'a>(shape: &'a Shape, seen: &mut BTreeSet<String>, found: &mut Vec<&'a ObjectShape>) {
    match shape {
        Shape::List(item) => objects(item, seen, found),
        Shape::OneOf(shapes) => shapes.iter().for_each(|shape| objects(shape, seen, found)),
        Shape::OrTemplate(written) => objects(written, seen, found),
        Shape::Object(object) => {
            if !object.name.is_empty() && !seen.insert(object.name.clone()) {
                return;
            }
            found.push(object);
            let inner = object.fields.values().map(|field| &field.shape);
            inner
                .chain(object.rest.as_deref())
                .for_each(|shape| objects(shape, seen, found));
        }
        _ => {}
    }
}

fn all_objects() -> Vec<&'static ObjectShape> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for shape in DocumentKind::ALL
        .into_iter()
        .filter_map(DocumentKind::shape)
    {
        objects(shape, &mut seen, &mut found);
    }
    found
}

#[test]
fn every_field_says_what_it_is_and_defaults_are_described_in_one_way() {
    for object in all_objects() {
        for (name, field) in &object.fields {
            let place = format!("{}.{name}: {}", object.name, field.description);
            let refused = matches!(
                field.support,
                orkestra_language::api::shape::Support::Refused(_)
            );
            assert!(!field.description.is_empty() || refused, "{place}");
            let says =
                field.description.contains("Default") || field.description.contains("(default");
            assert_eq!(says, field.default.is_some(), "{place}");
        }
    }
}

#[test]
fn every_alias_leads_to_a_field_that_exists() {
    let objects = all_objects();
    for alias in ALIASES {
        let of = objects.iter().filter(|object| match alias.of {
            "" => object.fields.contains_key(alias.to[0]),
            name => object.name == name,
        });
        let known = of.clone().any(|object| {
            let shape = Shape::Object((*object).clone().into());
            has(&shape, alias.to)
        });
        assert!(known, "{alias:?}");
        let is_field = of
            .clone()
            .any(|object| object.fields.contains_key(alias.from[0]));
        assert!(
            !is_field || alias.from.len() > 1 || alias.of.is_empty(),
            "{alias:?}"
        );
    }
}
