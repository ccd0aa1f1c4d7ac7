//! Checks the order of operators: `dependsOn` must name operators of the same Katalog, without circles.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, nearest};
use crate::tree::{FileSpan, Tree, TreeValue};

/// The maximum number of reported circles. In a tangle, one leads to the next.
const MOST_CIRCLES: usize = 10;

/// One name in a `dependsOn`.
struct Dependency<'a> {
    on: &'a str,
    path: FieldPath,
    span: Option<FileSpan>,
}

/// Reports names of operators that the Katalog does not have, and circles. A circle is reported at the name that closes it.
pub fn check(root: &Tree, found: &mut Diagnostics) {
    let crds = root
        .below(&["spec", "crds"])
        .and_then(Tree::as_map)
        .unwrap_or_default();
    let at = FieldPath::root().field("spec").field("crds");
    let declared: DependencyTable<'_> = crds
        .iter()
        .map(|(key, entry)| {
            let path = at.field(&key.name).field("dependsOn");
            let dependencies = entry.get("dependsOn").map(|tree| dependencies(tree, &path));
            (key.name.as_str(), dependencies.unwrap_or_default())
        })
        .collect();
    for dependency in declared.values().flatten() {
        if !declared.contains_key(dependency.on) {
            let message = format!("there is no operator `{}` here", dependency.on);
            let mut error =
                Diagnostic::error(Code::UnknownOperator, dependency.path.clone(), message)
                    .at(dependency.span);
            error.hint = nearest(dependency.on, declared.keys().copied())
                .map(|near| format!("did you mean `{near}`?"));
            found.push(error);
        }
    }
    for (path, dependency) in circles(&declared) {
        let through: Vec<String> = path.iter().map(|name| format!("`{name}`")).collect();
        let message = format!(
            "`{}` waits for itself, through {}",
            dependency.on,
            through.join(", ")
        );
        let error = Diagnostic::error(Code::DependencyCircle, dependency.path.clone(), message)
            .hint("remove one of these dependencies: operators start one after the other");
        found.push(error.at(dependency.span));
    }
}

/// The dependencies of every operator.
type DependencyTable<'a> = BTreeMap<&'a str, Vec<Dependency<'a>>>;

/// Finds the circles, each once: the operators in it, and the dependency that closes it. One depth-first walk over all
/// operators.
fn circles<'a, 'd>(declared: &'d DependencyTable<'a>) -> Vec<(Vec<&'a str>, &'d Dependency<'a>)> {
    let mut circles = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for start in declared.keys() {
        if !seen.insert(start) {
            continue;
        }
        let mut way: Vec<&str> = vec![start];
        let mut on_way: BTreeSet<&str> = BTreeSet::from([*start]);
        let mut open = vec![declared[start].iter()];
        while let Some(left) = open.last_mut() {
            match left.next() {
                Some(dependency) if on_way.contains(dependency.on) => {
                    if circles.len() == MOST_CIRCLES {
                        return circles;
                    }
                    let circle = way.iter().skip_while(|name| **name != dependency.on);
                    circles.push((circle.copied().collect(), dependency));
                }
                Some(dependency) if seen.insert(dependency.on) => {
                    if let Some(further) = declared.get(dependency.on) {
                        way.push(dependency.on);
                        on_way.insert(dependency.on);
                        open.push(further.iter());
                    }
                }
                Some(_) => {}
                None => {
                    open.pop();
                    if let Some(done) = way.pop() {
                        on_way.remove(done);
                    }
                }
            }
        }
    }
    circles
}

/// Returns the names of a list, or the keys of a map.
fn dependencies<'a>(tree: &'a Tree, path: &FieldPath) -> Vec<Dependency<'a>> {
    match &tree.value {
        TreeValue::List(items) => items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| {
                Some(Dependency {
                    on: item.as_str()?,
                    path: path.index(index),
                    span: item.span,
                })
            })
            .collect(),
        TreeValue::Map(entries) => entries
            .iter()
            .map(|(key, _)| Dependency {
                on: &key.name,
                path: path.field(&key.name),
                span: key.span,
            })
            .collect(),
        _ => Vec::new(),
    }
}
