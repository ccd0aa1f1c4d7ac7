//! The paths in a source file, found without a Rust parser: the identifiers to the left and right of `::`.

use std::path::{Path, PathBuf};

/// Where a source is: its crate, and its module path.
pub(super) struct SourceFile {
    pub(super) krate: &'static str,
    pub(super) path: Vec<String>,
}

/// The module path of a file, which is relative to the folder of its crate.
pub(super) fn module_path(file: &Path) -> Vec<String> {
    let file: PathBuf = file.with_extension("");
    let mut path: Vec<String> = file
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    path.pop_if(|last| ["mod", "lib", "main"].contains(&&**last));
    path
}

/// The text of a source without its line comments.
pub(super) fn code(text: &str) -> String {
    let lines = text.lines();
    let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that a source names, in `use` declarations and in code.
pub(super) fn paths(text: &str) -> Vec<Vec<String>> {
    let code = code(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let before = &code[..at];
        let start = before
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |at| at + 1);
        let first = &before[start..];
        // Not in the middle of a path.
        if !before[..start].ends_with("::") {
            found.extend(leaves(first, &code[at + 2..]));
        }
    }
    found
}

/// The paths that begin with `first` and continue with `rest`: one, or those of a group in braces.
fn leaves(first: &str, rest: &str) -> Vec<Vec<String>> {
    if let Some(group) = rest.strip_prefix('{') {
        let (mut depth, mut items, mut item) = (1, Vec::new(), String::new());
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => items.push(std::mem::take(&mut item)),
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if !(c == ',' && depth == 1) {
                item.push(c);
            }
        }
        items.push(item);
        let below = items.iter().filter_map(|item| {
            let (head, tail) = item.trim().split_once("::").unwrap_or((item.trim(), ""));
            (!head.is_empty()).then(|| leaves(head, tail))
        });
        return below
            .flatten()
            .map(|mut path| {
                path.insert(0, first.to_owned());
                path
            })
            .collect();
    }
    let mut path = vec![first.to_owned()];
    let (head, tail) = match rest.find(|c: char| !c.is_alphanumeric() && c != '_') {
        Some(end) => (&rest[..end], &rest[end..]),
        None => (rest, ""),
    };
    if head.is_empty() {
        return vec![path];
    }
    if let Some(tail) = tail.strip_prefix("::") {
        return leaves(head, tail)
            .into_iter()
            .map(|mut below| {
                below.insert(0, first.to_owned());
                below
            })
            .collect();
    }
    path.push(head.to_owned());
    vec![path]
}

/// A path as seen from the root of the crate, if it leads to the root or upwards.
pub(super) fn in_crate(path: &[String], place: &SourceFile) -> Option<Vec<String>> {
    let up = path
        .iter()
        .take_while(|segment| *segment == "super")
        .count();
    let base = match path.first().map(String::as_str)? {
        "crate" => &[][..],
        "super" => place.path.get(..place.path.len().checked_sub(up)?)?,
        _ => return None,
    };
    let rest = path.get(up.max(1)..)?;
    let module: Vec<String> = base.iter().chain(rest).cloned().collect();
    (!module.is_empty()).then_some(module)
}
