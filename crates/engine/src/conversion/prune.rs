//! Removes fields.

use orkestra_language::schema::{NestedSchema, Schema};
use orkestra_object::value::{Key, Map, Node, Path, PathStep};

/// Removes the field at `path`, through maps.
pub(crate) fn remove(root: &mut Node, path: &Path) {
    let Some((PathStep::Field(last), parents)) = path.steps().split_last() else {
        return;
    };
    let mut at = root;
    for step in parents {
        let (Node::Map(map), PathStep::Field(key)) = (at, step) else {
            return;
        };
        let Some(below) = map.get_mut(key) else {
            return;
        };
        at = below;
    }
    if let Node::Map(map) = at {
        map.remove(last);
    }
}

/// Removes an annotation, and the annotations if no other is left.
pub(crate) fn remove_annotation(object: &mut Node, path: &Path) {
    remove(object, path);
    let annotations = Path::of_fields(["metadata", "annotations"]);
    if object.at(&annotations).is_some_and(Node::is_empty_value) {
        remove(object, &annotations);
    }
}

/// Removes the fields of the spec that the schema of whole objects does not have, and adds them to `lost`, with their paths.
/// Items of lists lose theirs without notice.
pub(crate) fn spec(object: &mut Node, schema: Schema<'_>, lost: &mut Vec<(Path, Node)>) {
    let NestedSchema::Schema(schema) = schema.field("spec") else {
        return;
    };
    let Node::Map(root) = object else { return };
    if let Some(spec) = root.get_mut("spec") {
        prune(spec, schema, &mut vec![Key::from("spec")], &mut Some(lost));
    }
}

fn prune(
    node: &mut Node,
    schema: Schema<'_>,
    at: &mut Vec<Key>,
    lost: &mut Option<&mut Vec<(Path, Node)>>,
) {
    match node {
        Node::Map(map) => {
            if map.keys().all(|key| keeps_whole(schema, key)) {
                return;
            }
            let entries = std::mem::take(map).into_iter();
            let mut kept = Vec::with_capacity(entries.len());
            for (key, mut value) in entries {
                at.push(key.clone());
                match schema.field(&key) {
                    NestedSchema::Nowhere => {
                        if let Some(lost) = lost {
                            lost.push((Path::of_fields(at.iter().cloned()), value));
                        }
                    }
                    NestedSchema::Anything => kept.push((key, value)),
                    NestedSchema::Schema(below) => {
                        prune(&mut value, below, at, lost);
                        kept.push((key, value));
                    }
                }
                at.pop();
            }
            *map = kept.into_iter().collect::<Map>();
        }
        Node::List(items) => {
            if let NestedSchema::Schema(below) = schema.item() {
                for item in items {
                    prune(item, below, at, &mut None);
                }
            }
        }
        _ => {}
    }
}

/// True if any value under the key is kept as it is.
fn keeps_whole(schema: Schema<'_>, key: &str) -> bool {
    matches!(schema.field(key), NestedSchema::Anything)
}
