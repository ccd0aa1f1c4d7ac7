//! Moves other spellings of the language to their present place.
//!
//! Each move warns with the position and the present spelling, so that the corrected document reads without warnings. A
//! value in both spellings is an error: neither may override the other silently.

use super::aliases::{ALIASES, Alias, WORD_ALIASES, WordAlias};
use super::check::suits;
use crate::api::shape::{ObjectShape, PAIRS, Shape};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use crate::tree::{Tree, TreeKey, TreeValue};

/// Moves blocks next to `spec` into it. Both places are valid, so there is no warning.
pub(crate) fn blocks(root: &mut Tree, names: &[&str], found: &mut Diagnostics) {
    for name in names {
        let (from, to) = ([*name], ["spec", name]);
        if root.get(name).is_none() {
            continue;
        }
        if root.below(&to).is_some() {
            refuse_both(root, &from, &to, &FieldPath::root(), found);
        } else if root
            .get("spec")
            .is_none_or(|spec| spec.is_null() || spec.as_map().is_some())
            && let Some((key, value)) = root.take(&from)
        {
            // Cannot fail: the key does not exist, and only a map is on the path.
            let _ = root.put(&to, key, value);
        }
    }
}

/// Moves everything in a document of `shape` to its present spelling.
pub(crate) fn normalise(root: &mut Tree, shape: &Shape, found: &mut Diagnostics) {
    walk(root, shape, &FieldPath::root(), found);
}

fn walk(tree: &mut Tree, shape: &Shape, path: &FieldPath, found: &mut Diagnostics) {
    match shape {
        Shape::Object(object) if tree.as_map().is_some() => {
            move_keys(tree, object, path, found);
            change_words(tree, object, path, found);
            for (key, value) in tree.as_map_mut().into_iter().flatten() {
                let field = object.fields.get(&key.name).map(|field| &field.shape);
                let Some(shape) = field.or(object.rest.as_deref()) else {
                    continue;
                };
                let path = path.field(&key.name);
                if PAIRS.contains(&key.name.as_str()) {
                    pairs_as_map(value, &path, found);
                }
                walk(value, shape, &path, found);
            }
        }
        Shape::List(item) => {
            for (index, value) in tree.as_list_mut().into_iter().flatten().enumerate() {
                walk(value, item, &path.index(index), found);
            }
        }
        Shape::OneOf(shapes) => {
            if let Some(shape) = shapes.iter().find(|shape| suits(shape, tree)) {
                walk(tree, shape, path, found);
            }
        }
        Shape::OrTemplate(written) => walk(tree, written, path, found),
        _ => {}
    }
}

/// Moves everything in an included file, which holds its part under `key`, to its present spelling. A file of status fields
/// may consist of the list alone, and a file of observed objects of its two parts.
pub(crate) fn included(root: &mut Tree, key: &str, shape: &Shape, found: &mut Diagnostics) {
    let parts: &[&str] = match key {
        "status" => &["fields"],
        "observe" => &["watch", "events"],
        _ => &[],
    };
    if root.get(key).is_none() && parts.iter().any(|part| root.get(part).is_some()) {
        let whole = std::mem::replace(root, Tree::new(TreeValue::Null));
        let name = TreeKey {
            name: key.to_owned(),
            span: whole.span,
        };
        *root = Tree::new(TreeValue::Map(vec![(name, whole)]));
    }
    normalise(root, shape, found);
}

fn move_keys(tree: &mut Tree, object: &ObjectShape, path: &FieldPath, found: &mut Diagnostics) {
    let kinds = kinds_of(object);
    for name in keys(tree).iter().filter(|_| !kinds.is_empty()) {
        let today = kinds.iter().find(|kind| kind.eq_ignore_ascii_case(name));
        if let Some(today) = today {
            rename(tree, name, today, path, found);
        }
    }
    let of_kinds = |alias: &&Alias| !kinds.is_empty() && kinds.contains(&alias.to[0]);
    for alias in ALIASES.iter().filter(of_kinds) {
        let other = alias.from[0];
        let written = keys(tree)
            .into_iter()
            .find(|name| name.eq_ignore_ascii_case(other));
        if let Some(name) = written {
            relocate(tree, &[&name], alias.to, true, path, found);
        }
    }
    for alias in ALIASES.iter().filter(|alias| applies(alias, object)) {
        relocate(tree, alias.from, alias.to, alias.warns, path, found);
    }
    if let Some(Shape::Object(block)) = object.fields.get("onReconcile").map(|field| &field.shape) {
        let kinds = kinds_of(block);
        for name in keys(tree) {
            if kinds.iter().any(|kind| kind.eq_ignore_ascii_case(&name)) {
                relocate(tree, &[&name], &["onReconcile", &name], true, path, found);
            }
        }
    }
}

/// True if the alias is one of the maps of that shape.
pub fn applies(alias: &Alias, object: &ObjectShape) -> bool {
    let has = |name: &str| object.fields.contains_key(name);
    match alias.of {
        "" => has(alias.to[0]) && !has(alias.from[0]),
        of => of == object.name,
    }
}

/// Returns the kinds of children that a map may hold, if it is a block of children. Their case is ignored.
fn kinds_of(object: &ObjectShape) -> Vec<&str> {
    let is_block = ["deployments", "custom"]
        .iter()
        .all(|kind| object.fields.contains_key(*kind));
    let lists = object
        .fields
        .iter()
        .filter(|(_, field)| matches!(field.shape, Shape::List(_)));
    let names = lists.map(|(name, _)| name.as_str());
    names
        .filter(|name| is_block && !NO_KINDS.contains(name))
        .collect()
}

/// Lists of a block that hold no children.
const NO_KINDS: [&str; 4] = ["external", "groups", "or", "when"];

fn keys(tree: &Tree) -> Vec<String> {
    let entries = tree.as_map().into_iter().flatten();
    entries.map(|(key, _)| key.name.clone()).collect()
}

fn change_words(tree: &mut Tree, object: &ObjectShape, path: &FieldPath, found: &mut Diagnostics) {
    for word in WORD_ALIASES {
        if !(word.of.is_empty() || word.of == object.name) {
            continue;
        }
        for field in word.fields {
            let is_here = object.fields.contains_key(*field);
            let Some(value) = tree.get_mut(field).filter(|_| is_here) else {
                continue;
            };
            let span = value.span;
            if change_word(value, word) && word.warns {
                let message = format!("`{}` is another spelling of `{}`", word.from, word.to);
                let place = path.field(field);
                let warning = Diagnostic::warning(Code::OtherSpelling, place, message);
                found.push(warning.at(span));
            }
        }
    }
}

/// Replaces the other spelling in a value or in an item of a list; returns whether it did.
fn change_word(value: &mut Tree, word: &WordAlias) -> bool {
    match &mut value.value {
        TreeValue::Str(text) if text == word.from => word.to.clone_into(text),
        TreeValue::Map(entries) if entries.len() == 1 && entries[0].0.name == word.from => {
            word.to.clone_into(&mut entries[0].0.name);
        }
        TreeValue::List(items) => {
            let mut changed = false;
            for item in items {
                changed |= change_word(item, word);
            }
            return changed;
        }
        _ => return false,
    }
    true
}

/// Turns labels or annotations in the form of a list of `{key, value}` into a map.
fn pairs_as_map(labels: &mut Tree, path: &FieldPath, found: &mut Diagnostics) {
    let TreeValue::List(items) = &labels.value else {
        return;
    };
    let pairs: Option<Vec<(TreeKey, Tree)>> = items
        .iter()
        .map(|item| {
            let (key, value) = (item.get("key")?, item.get("value")?);
            let name = key.as_str()?.to_owned();
            let is_pair = item.as_map().is_some_and(|entries| entries.len() == 2);
            is_pair.then(|| {
                (
                    TreeKey {
                        name,
                        span: key.span,
                    },
                    value.clone(),
                )
            })
        })
        .collect();
    if let Some(pairs) = pairs {
        let warning = Diagnostic::warning(
            Code::OtherSpelling,
            path.clone(),
            "a list of `{key, value}` is an old spelling of a map",
        );
        found.push(warning.hint("write a map: `key: value`").at(labels.span));
        labels.value = TreeValue::Map(pairs);
    }
}

/// Changes the case of a key, without a warning, because the case of kinds is ignored.
fn rename(tree: &mut Tree, from: &str, to: &str, path: &FieldPath, found: &mut Diagnostics) {
    if from == to {
        return;
    }
    if tree.get(to).is_some() {
        refuse_both(tree, &[from], &[to], path, found);
    } else if let Some(entries) = tree.as_map_mut()
        && let Some((key, _)) = entries.iter_mut().find(|(key, _)| key.name == from)
    {
        to.clone_into(&mut key.name);
    }
}

fn relocate(
    tree: &mut Tree,
    from: &[&str],
    to: &[&str],
    warns: bool,
    path: &FieldPath,
    found: &mut Diagnostics,
) {
    if tree.below(from).is_none() {
        return;
    }
    let is_blocked = (1..to.len()).any(|n| {
        let on_the_way = tree.below(&to[..n]);
        on_the_way.is_some_and(|tree| !tree.is_null() && tree.as_map().is_none())
    });
    if is_blocked {
        return;
    }
    let Some((key, value)) = tree.take(from) else {
        return;
    };
    let (path, names) = (join(path, from), (from.join("."), to.join(".")));
    let message = format!("`{}` is another spelling of `{}`", names.0, names.1);
    let warning = Diagnostic::warning(Code::OtherSpelling, path.clone(), message).at(key.span);
    let before = found.0.len();
    if let Some(present) = tree.below_mut(to) {
        merge(present, (key, value), (&names.0, &names.1), &path, found);
    } else {
        // Cannot fail: the value does not exist, and only maps are on the path.
        let _ = tree.put(to, key, value);
    }
    // After an error, the warning would be redundant.
    if warns && found.0.len() == before {
        found.push(warning);
    }
}

/// Merges a value in another spelling, at `path`, into the one in the present spelling: maps key by key. Other values must
/// be equal. `from` and `to` are the spellings, with dots.
fn merge(
    present: &mut Tree,
    (key, other): (TreeKey, Tree),
    (from, to): (&str, &str),
    path: &FieldPath,
    found: &mut Diagnostics,
) {
    if present.is_null() {
        *present = other;
        return;
    }
    match (&mut present.value, other.value) {
        (TreeValue::Map(entries), TreeValue::Map(others)) => {
            for (key, value) in others {
                let Some((_, known)) = entries.iter_mut().find(|(known, _)| known.name == key.name)
                else {
                    entries.push((key, value));
                    continue;
                };
                let path = path.field(&key.name);
                let names = (format!("{from}.{}", key.name), format!("{to}.{}", key.name));
                merge(known, (key, value), (&names.0, &names.1), &path, found);
            }
        }
        (_, TreeValue::Null) => {}
        (value, other) if same(value, &other) => {}
        _ => found.push(mean_the_same((from, to), path.clone()).at(key.span)),
    }
}

/// True if two values are equal, regardless of their positions.
fn same(one: &TreeValue, other: &TreeValue) -> bool {
    let json = |value: &TreeValue| Tree::new(value.clone()).to_json();
    json(one) == json(other)
}

fn refuse_both(
    tree: &mut Tree,
    from: &[&str],
    to: &[&str],
    path: &FieldPath,
    found: &mut Diagnostics,
) {
    let span = tree.take(from).and_then(|(key, _)| key.span);
    let names = (from.join("."), to.join("."));
    let error = mean_the_same((&names.0, &names.1), join(path, from));
    found.push(error.at(span));
}

fn mean_the_same((from, to): (&str, &str), path: FieldPath) -> Diagnostic {
    let message = format!("`{from}` and `{to}` mean the same");
    Diagnostic::error(Code::TwoSpellings, path, message).hint(format!("keep `{to}`"))
}

fn join(path: &FieldPath, names: &[&str]) -> FieldPath {
    names
        .iter()
        .fold(path.clone(), |path, name| path.field(name))
}
