//! Earlier spellings of the language, moved to where they stand today.
//!
//! Each move warns with the place and the spelling to use, so that the same document reads without
//! warnings once it is changed. A value that is written in both spellings is an error: neither may
//! win in silence.

use std::sync::LazyLock;

use super::tree::{Key, Tree, TreeValue};
use crate::api::Lifecycle;
use crate::api::shape::Shape;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};

/// Keys within `operatorBox` and where they stand today.
const BOX_MOVES: &[(&[&str], &[&str])] = &[
    (&["workers"], &["reconciler", "workers"]),
    (&["resync"], &["reconciler", "resync"]),
    (&["queue"], &["reconciler", "queue"]),
    (&["reconcile", "onCreate"], &["onCreate"]),
    (&["reconcile", "onReconcile"], &["onReconcile"]),
    (&["reconcile", "onDelete"], &["onDelete"]),
    (&["reconcile", "workers"], &["reconciler", "workers"]),
    (&["reconcile", "resync"], &["reconciler", "resync"]),
    (&["reconcile", "queue"], &["reconciler", "queue"]),
    (&["reconcile", "default"], &["default"]),
    (&["reconcile", "hooks"], &["reconciler", "hooks"]),
    (
        &["reconcile", "constructor"],
        &["reconciler", "constructor"],
    ),
    (&["reconcile", "profile"], &["reconciler", "profile"]),
    (&["reconcile", "include"], &["reconciler", "include"]),
    (&["reconcile", "requeue"], &["reconciler", "requeue"]),
    (&["reconciler", "onCreate"], &["onCreate"]),
    (&["reconciler", "onReconcile"], &["onReconcile"]),
    (&["reconciler", "onDelete"], &["onDelete"]),
    (&["reconciler", "default"], &["default"]),
    (&["runtime", "autoscale"], &["autoscale"]),
    (&["emit", "status", "conditions"], &["status", "conditions"]),
    (&["watch"], &["observe", "watch"]),
    (&["anyOf"], &["or"]),
];

/// Other names of kinds of children.
const KIND_ALIASES: &[(&str, &str)] = &[
    ("pvc", "persistentVolumeClaims"),
    ("pvcs", "persistentVolumeClaims"),
    ("pvs", "persistentVolumes"),
    ("hpas", "hpa"),
    ("horizontalpodautoscalers", "hpa"),
    ("pdbs", "pdb"),
    ("poddisruptionbudgets", "pdb"),
];

/// Other names of operators of conditions.
const OPERATOR_ALIASES: &[(&str, &str)] =
    &[("eq", "equals"), ("neq", "notEquals"), ("ne", "notEquals")];

/// Other names of the types of status fields; both are the language's own.
const TYPE_ALIASES: &[(&str, &str)] = &[("str", "string"), ("integer", "int"), ("boolean", "bool")];

/// Fields of a lifecycle block that are no kinds.
const NO_KINDS: [&str; 3] = ["external", "or", "when"];

static KINDS: LazyLock<Vec<String>> = LazyLock::new(|| match Shape::of::<Lifecycle>() {
    Shape::Object(object) => {
        let names = object.fields.into_keys();
        names
            .filter(|name| !NO_KINDS.contains(&name.as_str()))
            .collect()
    }
    _ => Vec::new(),
});

/// Moves blocks that stand beside `spec` into it. Both places are right, so there is no warning.
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
            // Cannot fail: nothing is there, and only a map is on the way.
            let _ = root.put(&to, key, value);
        }
    }
}

/// Moves everything in a Motif to its present spelling.
pub(crate) fn motif(root: &mut Tree, found: &mut Diagnostics) {
    let path = FieldPath::root().field("spec").field("resources");
    if let Some(resources) = root.below_mut(&["spec", "resources"]) {
        normalise_lifecycle(resources, &path, found);
        if let Some(block) = resources.get_mut("onCreate") {
            normalise_lifecycle(block, &path.field("onCreate"), found);
        }
    }
    if let Some(status) = root.below_mut(&["spec", "status"]) {
        let path = FieldPath::root().field("spec").field("status");
        normalise_status(status, &path, found);
    }
}

/// Moves everything in a Katalog to its present spelling.
pub(crate) fn katalog(root: &mut Tree, found: &mut Diagnostics) {
    let path = FieldPath::root().field("spec").field("crds");
    let entries = root.below_mut(&["spec", "crds"]).and_then(Tree::as_map_mut);
    for (key, entry) in entries.into_iter().flatten() {
        let path = path.field(&key.name);
        if let Some(operator_box) = entry.get_mut("operatorBox") {
            normalise_box(operator_box, &path.field("operatorBox"), found);
        }
    }
}

fn normalise_box(tree: &mut Tree, path: &FieldPath, found: &mut Diagnostics) {
    for (from, to) in BOX_MOVES {
        relocate(tree, from, to, path, found);
    }
    let kinds: Vec<String> = tree
        .as_map()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.name.clone())
        .filter(|name| kind(name).is_some())
        .collect();
    for name in &kinds {
        relocate(tree, &[name], &["onReconcile", name], path, found);
    }
    for block in ["onCreate", "onReconcile"] {
        if let Some(lifecycle) = tree.get_mut(block) {
            normalise_lifecycle(lifecycle, &path.field(block), found);
        }
    }
    if let Some(status) = tree.get_mut("status") {
        normalise_status(status, &path.field("status"), found);
    }
}

fn normalise_status(tree: &mut Tree, path: &FieldPath, found: &mut Diagnostics) {
    let path = path.field("fields");
    let fields = tree.get_mut("fields").and_then(Tree::as_list_mut);
    for (index, field) in fields.into_iter().flatten().enumerate() {
        let path = path.index(index);
        replace_word(field, "type", TYPE_ALIASES);
        normalise_gate(field, &path, found);
    }
}

fn normalise_lifecycle(tree: &mut Tree, path: &FieldPath, found: &mut Diagnostics) {
    relocate(tree, &["anyOf"], &["or"], path, found);
    let names: Vec<String> = tree
        .as_map()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.name.clone())
        .collect();
    for name in names {
        let Some(today) = kind(&name) else { continue };
        if name.eq_ignore_ascii_case(today) {
            rename(tree, &name, today, path, found);
        } else {
            relocate(tree, &[&name], &[today], path, found);
        }
        let path = path.field(today);
        let children = tree.get_mut(today).and_then(Tree::as_list_mut);
        for (index, child) in children.into_iter().flatten().enumerate() {
            let path = path.index(index);
            labels_as_map(child, &path, found);
            normalise_gate(child, &path, found);
        }
    }
}

fn normalise_gate(tree: &mut Tree, path: &FieldPath, found: &mut Diagnostics) {
    relocate(tree, &["anyOf"], &["or"], path, found);
    let conditions = tree.get_mut("when").and_then(Tree::as_list_mut);
    for (index, condition) in conditions.into_iter().flatten().enumerate() {
        let place = path.field("when").index(index).field("operator");
        let span = condition.get("operator").and_then(|tree| tree.span);
        if let Some((old, new)) = replace_word(condition, "operator", OPERATOR_ALIASES) {
            let message = format!("`{old}` is another spelling of `{new}`");
            found.push(Diagnostic::warning(Code::OtherSpelling, place, message).at(span));
        }
    }
}

/// The kind that a key names, in whatever case.
fn kind(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let alias = KIND_ALIASES.iter().find(|(alias, _)| *alias == lower);
    let today = alias.map_or(lower.as_str(), |(_, today)| *today);
    KINDS
        .iter()
        .map(String::as_str)
        .find(|kind| kind.eq_ignore_ascii_case(today))
}

fn replace_word(
    tree: &mut Tree,
    key: &str,
    words: &[(&'static str, &'static str)],
) -> Option<(&'static str, &'static str)> {
    let value = tree.get_mut(key)?;
    let (old, new) = *words.iter().find(|(old, _)| value.as_str() == Some(*old))?;
    value.value = TreeValue::Str(new.to_owned());
    Some((old, new))
}

/// `labels` as a list of `{key, value}` becomes a map.
fn labels_as_map(child: &mut Tree, path: &FieldPath, found: &mut Diagnostics) {
    let Some(labels) = child.get_mut("labels") else {
        return;
    };
    let TreeValue::List(items) = &labels.value else {
        return;
    };
    let pairs: Option<Vec<(Key, Tree)>> = items
        .iter()
        .map(|item| {
            let (key, value) = (item.get("key")?, item.get("value")?);
            let name = key.as_str()?.to_owned();
            let is_pair = item.as_map().is_some_and(|entries| entries.len() == 2);
            is_pair.then(|| {
                (
                    Key {
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
            path.field("labels"),
            "labels as a list are an old spelling",
        );
        found.push(warning.hint("write a map: `key: value`").at(labels.span));
        labels.value = TreeValue::Map(pairs);
    }
}

/// Changes the case of a key. No warning: case doesn't count in kinds.
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
    path: &FieldPath,
    found: &mut Diagnostics,
) {
    if tree.below(from).is_none() {
        return;
    }
    if tree.below(to).is_some() {
        refuse_both(tree, from, to, path, found);
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
    let message = format!(
        "`{}` is another spelling of `{}`",
        from.join("."),
        to.join(".")
    );
    let warning = Diagnostic::warning(Code::OtherSpelling, join(path, from), message);
    found.push(warning.at(key.span));
    // Cannot fail: nothing is there, and only maps are on the way.
    let _ = tree.put(to, key, value);
}

fn refuse_both(
    tree: &mut Tree,
    from: &[&str],
    to: &[&str],
    path: &FieldPath,
    found: &mut Diagnostics,
) {
    let span = tree.take(from).and_then(|(key, _)| key.span);
    let message = format!("`{}` and `{}` mean the same", from.join("."), to.join("."));
    let error = Diagnostic::error(Code::TwoSpellings, join(path, from), message);
    found.push(error.hint(format!("keep `{}`", to.join("."))).at(span));
}

fn join(path: &FieldPath, names: &[&str]) -> FieldPath {
    names
        .iter()
        .fold(path.clone(), |path, name| path.field(name))
}
