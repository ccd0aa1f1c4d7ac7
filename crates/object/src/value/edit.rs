//! Edits of trees: setting a value, and keeping only some parts.

use super::{Key, Map, Node, Path, PathStep};

/// An index this far beyond the end of a list appends instead of padding.
const WIDEST_GAP: usize = 65_536;

/// Sets the value at a path, and creates missing parents.
///
/// A parent of the wrong type (a scalar, or a list where a key is needed) is replaced. An index beyond the end of a list pads it
/// with nulls. The empty path replaces the whole tree.
pub fn set(root: &mut Node, path: &Path, value: Node) {
    let target = path.steps().iter().fold(root, |node, step| match step {
        PathStep::Field(key) if !addresses_item(node, step) => entry(node, key),
        step => item(node, step.index().unwrap_or(0)),
    });
    *target = value;
}

fn addresses_item(node: &Node, step: &PathStep) -> bool {
    matches!(node, Node::List(_)) && step.index().is_some()
}

fn entry<'n>(node: &'n mut Node, key: &Key) -> &'n mut Node {
    if !matches!(node, Node::Map(_)) {
        *node = Node::Map(Map::default());
    }
    let Node::Map(map) = node else {
        return node;
    };
    map.entry(key)
}

fn item(node: &mut Node, index: usize) -> &mut Node {
    if !matches!(node, Node::List(_)) {
        *node = Node::List(Box::default());
    }
    let Node::List(items) = node else {
        return node;
    };
    if index >= items.len() {
        let mut longer = std::mem::take(items).into_vec();
        let length = if index - longer.len() < WIDEST_GAP {
            index + 1
        } else {
            longer.len() + 1
        };
        longer.resize(length, Node::Null);
        *items = longer.into_boxed_slice();
    }
    let last = items.len() - 1;
    &mut items[index.min(last)]
}

/// Returns the part of a tree at or below any of the paths.
///
/// Reading one of the paths from the part gives the same value as reading it from the tree. If a path leads nowhere, the maps
/// along it are kept, so that existing and missing parents can be distinguished. List items keep their position: earlier items
/// that no path selects are null. An empty path keeps everything; without any path a map becomes an empty map and everything else
/// null.
pub fn project(root: &Node, paths: &[Path]) -> Node {
    let rests: Vec<&[PathStep]> = paths.iter().map(Path::steps).collect();
    project_rests(root, &rests).unwrap_or_else(|| match root {
        Node::Map(_) => Node::Map(Map::default()),
        _ => Node::Null,
    })
}

fn project_rests(node: &Node, rests: &[&[PathStep]]) -> Option<Node> {
    if rests.iter().any(|rest| rest.is_empty()) {
        return Some(node.clone());
    }
    match node {
        Node::Map(map) => {
            let kept: Map = map
                .iter()
                .filter_map(|(key, value)| {
                    let below = below(rests, |step| matches!(step, PathStep::Field(k) if k == key));
                    Some((key.clone(), project_below(value, &below)?))
                })
                .collect();
            Some(Node::Map(kept))
        }
        Node::List(items) => {
            let mut kept = Vec::new();
            for (index, value) in items.iter().enumerate() {
                let below = below(rests, |step| step.index() == Some(index));
                if let Some(part) = project_below(value, &below) {
                    kept.resize(index, Node::Null);
                    kept.push(part);
                }
            }
            (!kept.is_empty()).then(|| Node::from(kept))
        }
        _ => None,
    }
}

fn project_below(value: &Node, rests: &[&[PathStep]]) -> Option<Node> {
    if rests.is_empty() {
        return None;
    }
    project_rests(value, rests)
}

/// Returns the remaining steps of the paths whose next step is wanted.
fn below<'p>(rests: &[&'p [PathStep]], wanted: impl Fn(&PathStep) -> bool) -> Vec<&'p [PathStep]> {
    rests
        .iter()
        .filter_map(|rest| {
            let (first, rest) = rest.split_first()?;
            wanted(first).then_some(rest)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn paths(texts: &[&str]) -> Vec<Path> {
        texts
            .iter()
            .map(|text| Path::parse(text).unwrap())
            .collect()
    }

    fn projected(tree: &Value, texts: &[&str]) -> Value {
        project(&Node::from(tree), &paths(texts)).to_json()
    }

    #[test]
    fn setting_makes_the_parents() {
        let cases = [
            (json!(null), "a.b", json!({"a": {"b": 7}})),
            (
                json!({"a": {"c": 1}}),
                "a.b",
                json!({"a": {"c": 1, "b": 7}}),
            ),
            (json!({"a": 1}), "a.b", json!({"a": {"b": 7}})),
            (json!({}), "a[2]", json!({"a": [null, null, 7]})),
            (json!({"a": [1, 2]}), "a.1", json!({"a": [1, 7]})),
            (json!({"a": [1, 2]}), "a[0].b", json!({"a": [{"b": 7}, 2]})),
            (json!({"a": [1]}), "a.b", json!({"a": {"b": 7}})),
            (json!({"a": {"0": 1}}), "a.0", json!({"a": {"0": 7}})),
            (json!({"a": 1}), "", json!(7)),
            (json!({}), r#"a["x.y"].z"#, json!({"a": {"x.y": {"z": 7}}})),
        ];
        for (before, path, after) in cases {
            let mut node = Node::from(&before);
            set(&mut node, &Path::parse(path).unwrap(), Node::Int(7));
            assert_eq!(node.to_json(), after, "{before} {path}");
        }
    }

    #[test]
    fn an_absurd_index_cannot_fill_the_memory() {
        let mut node = Node::Null;
        let mut path = Path::root();
        path.push_index(usize::MAX);
        set(&mut node, &path, Node::Int(7));
        assert_eq!(node.to_json(), json!([7]));
    }

    #[test]
    fn only_what_the_paths_reach_is_kept() {
        let tree = json!({"metadata": {"name": "n", "uid": "u"}, "spec": {"l": [{"a": 1, "b": 2}, {"a": 3}]}, "status": {"x": null}});
        let cases = [
            (vec!["metadata.name"], json!({"metadata": {"name": "n"}})),
            (vec!["spec", "spec.l[0].a"], json!({"spec": tree["spec"]})),
            (vec!["spec.l[0].a"], json!({"spec": {"l": [{"a": 1}]}})),
            (vec!["spec.l.1.a"], json!({"spec": {"l": [null, {"a": 3}]}})),
            (vec!["status.x"], json!({"status": {"x": null}})),
            (
                vec!["status.y", "nope.z", "metadata.name.deeper"],
                json!({"metadata": {}, "status": {}}),
            ),
            (vec![""], tree.clone()),
            (vec![], json!({})),
        ];
        for (paths, kept) in cases {
            assert_eq!(projected(&tree, &paths), kept, "{paths:?}");
        }
    }

    #[test]
    fn a_projection_answers_its_paths_as_the_whole_does() {
        let tree = json!({"a": [{"b": 1}, [2, 3], null], "c": {"0": {"d": false}}, "e": "text"});
        let texts = ["a[1][0]", "a.0.b", "a[2]", "a[9]", "c.0.d", "e", "e.f", "g"];
        let whole = Node::from(&tree);
        let part = project(&whole, &paths(&texts));
        for path in paths(&texts) {
            assert_eq!(part.at(&path), whole.at(&path), "{path}");
        }
    }
}
