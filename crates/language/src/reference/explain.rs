//! `ork explain`: describes a field.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use super::{in_order, maps, named_maps, support_note, type_of, words};
use crate::api::names;
use crate::api::shape::{Field, Shape, Support};
use crate::diagnostics::{did_you_mean, nearest};
use crate::document::DocumentKind;

/// A path that does not lead to a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at} has no field `{word}`")]
pub struct NoSuchField {
    /// The valid part of the path: `Katalog.spec`.
    pub at: String,
    /// The word after it.
    pub word: String,
    /// The suggestion.
    pub hint: String,
}

/// The target of a path.
pub(crate) struct PathTarget<'a> {
    kind: DocumentKind,
    /// The path in its written form: `spec.crds.<name>.workers`.
    pub(crate) path: Vec<String>,
    /// The shape at the path.
    pub(crate) shape: &'a Shape,
    field: Option<&'a Field>,
    /// True for a field that is not implemented yet, or inside one.
    pub(crate) is_later: bool,
}

/// Describes the field at `path`. With `recursive`, prints the whole tree below it, one field per line.
///
/// The first word may be a kind; the default is a Katalog. Case is ignored. Keys of the user's own and list items may be
/// omitted, or written in any form: `spec.crds.workers`, `spec.crds.<name>.workers`.
///
/// # Errors
/// [`NoSuchField`] with the nearest names.
pub fn explain(path: &str, recursive: bool) -> Result<String, NoSuchField> {
    let place = find(path)?;
    let mut text = head(&place);
    if recursive {
        let mut seen = BTreeMap::new();
        tree(place.shape, &place.path.join("."), 0, &mut seen, &mut text);
    } else {
        fields(&place, &mut text);
    }
    Ok(text)
}

/// The shape of kinds without one.
static ANYTHING: Shape = Shape::Free;

/// Finds the target of a path; see [`explain`].
pub(crate) fn find(path: &str) -> Result<PathTarget<'static>, NoSuchField> {
    let words = path.split('.').filter_map(|word| {
        let word = word.split('[').next().unwrap_or(word).trim();
        // The number of a list item. No field has such a name.
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        (!is_number).then_some(word)
    });
    let mut words: VecDeque<&str> = words.collect();
    let kind_of = |word: &str| {
        let mut kinds = DocumentKind::ALL.into_iter();
        kinds.find(|kind| kind.shape().is_some() && kind.name().eq_ignore_ascii_case(word))
    };
    let kind = words.front().and_then(|word| kind_of(word));
    if kind.is_some() {
        words.pop_front();
    }
    let kind = kind.unwrap_or(DocumentKind::Katalog);
    let mut place = PathTarget {
        kind,
        path: Vec::new(),
        shape: kind.shape().unwrap_or(&ANYTHING),
        field: None,
        is_later: false,
    };
    for word in words {
        step(&mut place, word)?;
    }
    Ok(place)
}

/// Advances by one word: a field here, a key of the user's own, or a field below such a key.
fn step(place: &mut PathTarget<'static>, word: &str) -> Result<(), NoSuchField> {
    if let Some((name, field)) = field_of(place.shape, word) {
        place.path.push(name.clone());
        place.is_later |= field.support == Support::Later;
        (place.shape, place.field) = (&field.shape, Some(field));
        return Ok(());
    }
    let rest = maps(place.shape)
        .into_iter()
        .find_map(|map| map.rest.as_deref());
    let Some(rest) = rest else {
        return Err(unknown(place, word));
    };
    place.path.push("<name>".to_owned());
    place.shape = rest;
    if word.starts_with('<') || word == "*" {
        return Ok(());
    }
    if field_of(rest, word).is_some() {
        return step(place, word);
    }
    let near = nearest(word, names_of(rest));
    match near {
        Some(_) => Err(unknown(place, word)),
        None => Ok(()),
    }
}

fn field_of<'a>(shape: &'a Shape, word: &str) -> Option<(&'a String, &'a Field)> {
    let mut fields = maps(shape).into_iter().flat_map(|map| &map.fields);
    fields.find(|(name, _)| name.eq_ignore_ascii_case(word))
}

fn names_of(shape: &Shape) -> Vec<&str> {
    let fields = maps(shape).into_iter().flat_map(|map| map.fields.keys());
    fields.map(String::as_str).collect()
}

fn unknown(place: &PathTarget<'_>, word: &str) -> NoSuchField {
    let here = names_of(place.shape);
    let hint = match did_you_mean(word, here.iter().copied()) {
        Some(hint) => hint,
        None => match elsewhere(place.kind, word) {
            Some(path) => format!("it is at `{path}`"),
            None if here.is_empty() => "there are no fields below it".to_owned(),
            None => format!("it has `{}`", here.join("`, `")),
        },
    };
    let path = place.path.iter().map(String::as_str);
    let at: Vec<&str> = std::iter::once(place.kind.name()).chain(path).collect();
    NoSuchField {
        at: at.join("."),
        word: word.to_owned(),
        hint,
    }
}

/// Returns the shortest path to a field of this name.
fn elsewhere(kind: DocumentKind, word: &str) -> Option<String> {
    let mut queue = VecDeque::from([(String::new(), kind.shape()?)]);
    let mut seen = Vec::new();
    while let Some((path, shape)) = queue.pop_front() {
        for map in maps(shape) {
            if !map.name.is_empty() && seen.contains(&&map.name) {
                continue;
            }
            seen.push(&map.name);
            for (name, field) in &map.fields {
                if name.eq_ignore_ascii_case(word) {
                    return Some(format!("{path}{name}"));
                }
                queue.push_back((format!("{path}{name}."), &field.shape));
            }
            if let Some(rest) = &map.rest {
                queue.push_back((format!("{path}<name>."), rest));
            }
        }
    }
    None
}

fn head(place: &PathTarget<'_>) -> String {
    let mut text = format!("KIND:     {} ({})\n", place.kind.name(), names::API_VERSION);
    if let Some(field) = place.field {
        let _ = writeln!(
            text,
            "FIELD:    {} <{}>",
            place.path.join("."),
            type_of(place.shape)
        );
        let is_key = place.path.last().is_some_and(|last| last == "<name>");
        if !is_key {
            let _ = writeln!(text, "\n{}", wrapped(&field.description, 2));
            details(field, &mut text);
        }
    }
    text
}

/// Adds the facts about a field other than its description.
fn details(field: &Field, text: &mut String) {
    let mut lines = Vec::new();
    if field.required {
        lines.push("It is required.".to_owned());
    }
    if let Shape::Int { min, max } = &field.shape {
        let bound = |bound: &Option<i64>, word| bound.map(|number| format!("{word} {number}"));
        let bounds = [bound(min, "at least"), bound(max, "at most")];
        let bounds: Vec<String> = bounds.into_iter().flatten().collect();
        if !bounds.is_empty() {
            lines.push(format!("It is {}.", bounds.join(", ")));
        }
    }
    if let Some((values, later)) = words(&field.shape) {
        lines.push(format!("Words: {}.", values.join(", ")));
        if !later.is_empty() {
            lines.push(format!("Not supported yet: {}.", later.join(", ")));
        }
    }
    if let Some(note) = support_note(field) {
        lines.push(format!("This is {note}.").replace("This is accepted, no", "This has no"));
    }
    for line in lines {
        let _ = writeln!(text, "\n{}", wrapped(&line, 2));
    }
}

fn fields(place: &PathTarget<'_>, text: &mut String) {
    for map in named_maps(place.shape) {
        let _ = writeln!(text, "\nFIELDS of {}:", map.name);
        for (name, field) in in_order(&map.fields) {
            let mut flags = vec![format!("<{}>", type_of(&field.shape))];
            flags.extend(field.required.then(|| "required".to_owned()));
            flags.extend(support_note(field));
            let _ = writeln!(text, "  {name} {}", flags.join(", "));
            if !field.description.is_empty() {
                let _ = writeln!(text, "{}", wrapped(&field.description, 6));
            }
        }
    }
}

/// Prints the fields below, one per line. A type that was printed before is only referred to.
fn tree(
    shape: &Shape,
    path: &str,
    depth: usize,
    seen: &mut BTreeMap<String, String>,
    text: &mut String,
) {
    for map in maps(shape) {
        for (name, field) in &map.fields {
            line(name, field, path, depth, seen, text);
        }
        if let Some(rest) = &map.rest {
            let key = Field {
                shape: (**rest).clone(),
                ..Field::default()
            };
            line("<name>", &key, path, depth, seen, text);
        }
    }
}

fn line(
    name: &str,
    field: &Field,
    path: &str,
    depth: usize,
    seen: &mut BTreeMap<String, String>,
    text: &mut String,
) {
    let path = [path, name].join(".");
    let path = path.trim_start_matches('.');
    let mut flags = vec![format!("<{}>", type_of(&field.shape))];
    flags.extend(field.required.then(|| "required".to_owned()));
    flags.extend(support_note(field));
    let inner = maps(&field.shape);
    let known = inner.iter().find_map(|map| seen.get(&map.name)).cloned();
    if let Some(first) = &known {
        flags.push(format!("as {first}"));
    }
    let _ = writeln!(
        text,
        "{}{name} {}",
        "  ".repeat(depth + 1),
        flags.join(", ")
    );
    if known.is_none() {
        for map in inner.iter().filter(|map| !map.name.is_empty()) {
            seen.insert(map.name.clone(), path.to_owned());
        }
        tree(&field.shape, path, depth + 1, seen, text);
    }
}

/// Wraps text in lines of at most 100 characters, indented.
fn wrapped(text: &str, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = margin.clone();
        for word in paragraph.split_whitespace() {
            if line.len() > indent && line.len() + 1 + word.len() > 100 {
                lines.push(std::mem::replace(&mut line, margin.clone()));
            }
            if line.len() > indent {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}
