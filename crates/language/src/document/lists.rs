//! Lists of earlier documents that have another form today: operators, and the files of definitions.

use crate::api::shape::RULES;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use crate::tree::{Tree, TreeKey, TreeValue};

/// Turns `spec.crds` as a list of named entries into a map by name, with a warning.
///
/// An entry without a name and a duplicate name are errors, and are omitted.
pub(crate) fn operators(root: &mut Tree, found: &mut Diagnostics) {
    let Some(crds) = root.get_mut("spec").and_then(|spec| spec.get_mut("crds")) else {
        return;
    };
    let TreeValue::List(items) = &mut crds.value else {
        return;
    };
    // A list of other values is a different mistake, which the check of the shape reports.
    if items.is_empty() || items.iter().any(|item| item.as_map().is_none()) {
        return;
    }
    let path = FieldPath::root().field("spec").field("crds");
    let warning = Diagnostic::warning(
        Code::OtherSpelling,
        path.clone(),
        "a list of operators is an old spelling",
    );
    let hint = "write a map, the operator's `name` as the key and its fields below; `ork convert` rewrites it. Until then \
                the document runs from files only: `kubectl apply` refuses a list here";
    let first = items.first().and_then(|item| item.span);
    found.push(warning.hint(hint).at(first));
    let mut entries: Vec<(TreeKey, Tree)> = Vec::with_capacity(items.len());
    for (index, mut item) in std::mem::take(items).into_iter().enumerate() {
        let at = path.index(index);
        let named = item.take(&["name"]);
        let name = named.as_ref().and_then(|(_, value)| value.as_str());
        let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
            let error = Diagnostic::error(Code::Missing, at, "`name` is missing");
            found.push(error.at(item.span));
            continue;
        };
        let span = named.as_ref().and_then(|(_, value)| value.span);
        if entries.iter().any(|(key, _)| key.name == name) {
            let message = format!("a second operator has the name `{name}`");
            let error = Diagnostic::error(Code::SetTwice, at.field("name"), message);
            found.push(error.hint("give each operator a name of its own").at(span));
            continue;
        }
        let name = name.to_owned();
        entries.push((TreeKey { name, span }, item));
    }
    crds.value = TreeValue::Map(entries);
}

/// Turns an entry's `crdFiles` into `crdFile`, with the first file, and manifests of `setup`, with a warning.
pub(crate) fn definitions(root: &mut Tree, found: &mut Diagnostics) {
    let crds = root.get_mut("spec").and_then(|spec| spec.get_mut("crds"));
    let path = FieldPath::root().field("spec").field("crds");
    for (key, entry) in crds.and_then(Tree::as_map_mut).into_iter().flatten() {
        let path = path.field(&key.name).field("crdFiles");
        let is_list =
            |tree: &Tree| matches!(&tree.value, TreeValue::List(items) if !items.is_empty());
        if !entry.get("crdFiles").is_some_and(is_list) {
            continue;
        }
        if let Some(other) = entry.get("crdFile") {
            let message = "`crdFiles` and `crdFile` mean the same";
            let error = Diagnostic::error(Code::TwoSpellings, path, message).hint("keep `crdFile`");
            found.push(error.at(other.span));
            entry.take(&["crdFiles"]);
            continue;
        }
        let Some((key, files)) = entry.take(&["crdFiles"]) else {
            continue;
        };
        let TreeValue::List(mut files) = files.value else {
            continue;
        };
        let warning = Diagnostic::warning(
            Code::OtherSpelling,
            path,
            "`crdFiles` is another spelling of `crdFile`",
        );
        let hint = if files.len() > 1 {
            "the first file is used as the definition of this entry; list the others under `setup`"
        } else {
            "write `crdFile` with the one file"
        };
        found.push(warning.hint(hint).at(key.span));
        let own = files.remove(0);
        // Cannot fail: the field does not exist.
        let _ = entry.put(&["crdFile"], key, own);
        before_setup(entry, files);
    }
}

/// Turns rules given as a bare list into `rules`, with a warning.
pub(crate) fn rules(root: &mut Tree, found: &mut Diagnostics) {
    let crds = root.get_mut("spec").and_then(|spec| spec.get_mut("crds"));
    let path = FieldPath::root().field("spec").field("crds");
    for (key, entry) in crds.and_then(Tree::as_map_mut).into_iter().flatten() {
        let path = path.field(&key.name);
        for block in RULES {
            let Some(block_of) = entry.get_mut(block) else {
                continue;
            };
            if !matches!(block_of.value, TreeValue::List(_)) {
                continue;
            }
            let span = block_of.span;
            let key = TreeKey {
                name: "rules".to_owned(),
                span,
            };
            let list = std::mem::replace(block_of, Tree::new(TreeValue::Null));
            block_of.value = TreeValue::Map(vec![(key, list)]);
            block_of.span = span;
            let message = format!("`{block}` as a list is an old spelling");
            let warning = Diagnostic::warning(Code::OtherSpelling, path.field(block), message);
            found.push(warning.hint("write the list under `rules`").at(span));
        }
    }
}

/// Inserts `files` before the manifests of an entry's `setup`.
fn before_setup(entry: &mut Tree, mut files: Vec<Tree>) {
    let Some(first) = files.first() else {
        return;
    };
    let key = TreeKey {
        name: String::new(),
        span: first.span,
    };
    let is_map = entry
        .get("setup")
        .is_some_and(|setup| setup.as_map().is_some());
    let place: &[&str] = if is_map {
        &["setup", "apply"]
    } else {
        &["setup"]
    };
    match entry.below_mut(place) {
        Some(present) if present.is_null() => present.value = TreeValue::List(files),
        Some(present) => {
            if let Some(items) = present.as_list_mut() {
                files.append(items);
                *items = files;
            }
        }
        None => {
            // Cannot fail: the value does not exist, and only maps are on the path.
            let _ = entry.put(place, key, Tree::new(TreeValue::List(files)));
        }
    }
}
