//! Finds the associative lists of a child's object.

use orkestra_language::schema::{NestedSchema, Schema};
use orkestra_plan::{ListKeys, ObjectTree};

/// Returns the associative lists of a tree, whose values have this schema. Where a template returns a value with parts, all
/// lists that it may contain are included.
pub(crate) fn of_body(body: &ObjectTree, schema: Schema<'_>) -> ListKeys {
    let mut found = ListKeys::default();
    add(&mut found, body, schema);
    found.prune();
    found
}

fn add(found: &mut ListKeys, tree: &ObjectTree, schema: Schema<'_>) {
    match tree {
        ObjectTree::Fixed(node) => found.add_value(node, schema),
        ObjectTree::Leaf(_) => found.add_all(schema, &mut Vec::new()),
        ObjectTree::Map(entries) | ObjectTree::Part(entries) => {
            for (key, below) in entries {
                if let NestedSchema::Schema(schema) = schema.field(key) {
                    add(found.field_mut(key), below, schema);
                }
            }
        }
        ObjectTree::List(items) => {
            if let Some((each, schema)) = found.list(schema) {
                items.iter().for_each(|item| add(each, item, schema));
            }
        }
        ObjectTree::Joined(parts) => parts.iter().for_each(|part| add(found, part, schema)),
        ObjectTree::Patched(parts) => {
            add(found, &parts.0, schema);
            add(found, &parts.1, schema);
        }
        ObjectTree::Chosen(chosen) => chosen.trees().for_each(|tree| add(found, tree, schema)),
        ObjectTree::ContainerName(_)
        | ObjectTree::Image(_)
        | ObjectTree::Workload(_)
        | ObjectTree::Owner(_) => {}
    }
}
