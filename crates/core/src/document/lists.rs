//! Lists that are maps today: the operators of the earliest documents.

use super::tree::{Key, Tree, TreeValue};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};

/// Turns `spec.crds` as a list of named entries into a map by name, with a warning.
///
/// An entry without a name and a second one of the same name are errors, and are left out.
pub(crate) fn operators(root: &mut Tree, found: &mut Diagnostics) {
    let Some(crds) = root.get_mut("spec").and_then(|spec| spec.get_mut("crds")) else {
        return;
    };
    let TreeValue::List(items) = &mut crds.value else {
        return;
    };
    // A list of something else is a mistake of another kind, which the check of the shape reports.
    if items.is_empty() || items.iter().any(|item| item.as_map().is_none()) {
        return;
    }
    let path = FieldPath::root().field("spec").field("crds");
    let warning = Diagnostic::warning(
        Code::OtherSpelling,
        path.clone(),
        "a list of operators is an old spelling",
    );
    let hint = "write a map: the operator's `name` as the key, its fields below";
    let first = items.first().and_then(|item| item.span);
    found.push(warning.hint(hint).at(first));
    let mut entries: Vec<(Key, Tree)> = Vec::with_capacity(items.len());
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
            let message = format!("a second operator is called `{name}`");
            let error = Diagnostic::error(Code::SetTwice, at.field("name"), message);
            found.push(error.hint("give each operator a name of its own").at(span));
            continue;
        }
        let name = name.to_owned();
        entries.push((Key { name, span }, item));
    }
    crds.value = TreeValue::Map(entries);
}
