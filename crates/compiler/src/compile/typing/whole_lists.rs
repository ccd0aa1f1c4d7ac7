//! Finds lists that a field manager owns as a whole and that may be empty.

use std::collections::BTreeSet;

use orkestra_language::schema::{NestedSchema, Schema};
use orkestra_object::value::{Key, Node, Path};
use orkestra_plan::ObjectTree;

/// See [`orkestra_plan::ChildPlan::whole_lists`].
pub(crate) fn of_body(body: &ObjectTree, schema: Schema<'_>) -> Box<[Path]> {
    let mut walk = ListWalk::default();
    walk.tree(body, schema);
    walk.found.into_iter().collect()
}

#[derive(Default)]
struct ListWalk {
    at: Vec<Key>,
    found: BTreeSet<Path>,
}

impl ListWalk {
    fn tree(&mut self, tree: &ObjectTree, schema: Schema<'_>) {
        match tree {
            ObjectTree::Fixed(node) => self.node(node, schema),
            ObjectTree::Leaf(_) => self.anything(schema),
            ObjectTree::Map(entries) | ObjectTree::Part(entries) => {
                for (key, below) in entries {
                    self.field(key, schema, |walk, schema| walk.tree(below, schema));
                }
            }
            // A list without items is left out, but an item may contain an empty one.
            ObjectTree::List(items) => {
                for item in items {
                    self.item(schema, |walk, schema| walk.tree(item, schema));
                }
            }
            ObjectTree::Patched(parts) => {
                self.tree(&parts.0, schema);
                self.tree(&parts.1, schema);
            }
            ObjectTree::Joined(parts) => parts.iter().for_each(|part| self.tree(part, schema)),
            ObjectTree::Chosen(chosen) => chosen.trees().for_each(|tree| self.tree(tree, schema)),
            ObjectTree::Image(_)
            | ObjectTree::ContainerName(_)
            | ObjectTree::Workload(_)
            | ObjectTree::Owner(_) => {}
        }
    }

    fn node(&mut self, node: &Node, schema: Schema<'_>) {
        match node {
            Node::List(items) if items.is_empty() && schema.is_whole_list() => {
                self.find(&[]);
            }
            Node::List(items) => {
                for item in items {
                    self.item(schema, |walk, schema| walk.node(item, schema));
                }
            }
            Node::Map(fields) => {
                for (key, value) in fields.iter() {
                    self.field(key, schema, |walk, schema| walk.node(value, schema));
                }
            }
            _ => {}
        }
    }

    /// Handles a value that is known only when rendered.
    fn anything(&mut self, schema: Schema<'_>) {
        for path in schema.whole_lists() {
            self.find(&path);
        }
    }

    /// Adds the path of a list at or below the current one.
    fn find(&mut self, below: &[&str]) {
        let below = below.iter().copied().map(Key::from);
        let path = Path::of_fields(self.at.iter().cloned().chain(below));
        self.found.insert(path);
    }

    fn field(&mut self, key: &Key, schema: Schema<'_>, go_on: impl FnOnce(&mut Self, Schema<'_>)) {
        if let NestedSchema::Schema(below) = schema.field(key) {
            self.at.push(key.clone());
            go_on(self, below);
            self.at.pop();
        }
    }

    /// Visits an item. Parts of a list that is owned as a whole have no owner of their own: an empty list inside adds the
    /// outer list.
    fn item(&mut self, schema: Schema<'_>, go_on: impl FnOnce(&mut Self, Schema<'_>)) {
        let NestedSchema::Schema(below) = schema.item() else {
            return;
        };
        if !schema.is_whole_list() {
            return go_on(self, below);
        }
        let mut inside = Self::default();
        go_on(&mut inside, below);
        if !inside.found.is_empty() {
            self.find(&[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orkestra_language::schema::BuiltIn;

    fn found(group: &str, kind: &str, body: &str) -> Vec<String> {
        let built_in = BuiltIn::new();
        let schema = built_in.kind(group, "v1", kind).unwrap();
        let body: Node = serde_json::from_str(body).unwrap();
        let found = of_body(&ObjectTree::Fixed(body), schema);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn of_what_is_written_out_the_empty_ones_are_found_and_what_is_around_them() {
        for (spec, lists) in [
            (r#"{"egress":[],"ingress":[{}]}"#, &["spec.egress"][..]),
            (r#"{"egress":[{"to":[]}]}"#, &["spec.egress"]),
            (r#"{"egress":[{"to":[{}]}]}"#, &[]),
            (r#"{"unknown":[]}"#, &[]),
        ] {
            let body = format!(r#"{{"spec":{spec}}}"#);
            assert_eq!(found("networking.k8s.io", "NetworkPolicy", &body), lists);
        }
        let body = r#"{"metadata":{"finalizers":[]},"spec":{"template":{"spec":{"volumes":[],"containers":[{"args":[],"env":[]}]}}}}"#;
        let args = ["spec.template.spec.containers.args"];
        assert_eq!(found("apps", "Deployment", body), args);
    }
}
