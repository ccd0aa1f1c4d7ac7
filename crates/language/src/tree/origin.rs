//! Documents by name, and the files that their fields come from.

use super::{FieldPath, Segment, Tree, TreeValue};

/// A document other than the Katalog itself: its name and its tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// Its unique name.
    pub name: Box<str>,
    /// Its name in messages: the path of the file from here, or `motif/<name>`.
    pub file: Box<str>,
    /// The content by path, in the current spelling; without overrides.
    pub tree: Tree,
    /// Overrides of other documents, in the order in which they are applied.
    pub over: Box<[Layer]>,
}

/// Overrides of a document's fields, from another document.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The other document's name in messages.
    pub file: Box<str>,
    /// The fields, by the same paths.
    pub tree: Tree,
}

impl Origin {
    /// A document without overrides.
    pub fn new(name: impl Into<Box<str>>, file: impl Into<Box<str>>, tree: Tree) -> Self {
        Self {
            name: name.into(),
            file: file.into(),
            tree,
            over: Box::default(),
        }
    }

    /// Returns the document that a field comes from: its name in messages, and its tree. A field that no document has comes
    /// from the one that has its nearest ancestor; a map that several have comes from the first.
    pub fn owner(&self, path: &FieldPath) -> (&str, &Tree) {
        let steps = path.segments();
        for (index, layer) in self.over.iter().enumerate().rev() {
            let (depth, node) = deepest(&layer.tree, steps);
            let is_map = matches!(node.value, TreeValue::Map(_));
            let has_map = |tree: &Tree| {
                let (other, node) = deepest(tree, steps);
                other > depth || (other == depth && matches!(node.value, TreeValue::Map(_)))
            };
            let below = self.over[..index].iter().map(|layer| &layer.tree);
            let mut below = below.chain([&self.tree]);
            if depth > 0 && (!is_map || !below.any(has_map)) {
                return (&layer.file, &layer.tree);
            }
        }
        (&self.file, &self.tree)
    }

    /// Returns the content with all overrides.
    pub fn merged(&self) -> Tree {
        let mut tree = self.tree.clone();
        for layer in &self.over {
            tree.override_with(&layer.tree);
        }
        tree
    }
}

/// Follows a path as far as the tree has it: the number of steps, and the value there.
fn deepest<'t>(tree: &'t Tree, steps: &[Segment]) -> (usize, &'t Tree) {
    let mut node = tree;
    for (depth, step) in steps.iter().enumerate() {
        match node.step(step) {
            Some((_, next)) => node = next,
            None => return (depth, node),
        }
    }
    (steps.len(), node)
}

impl Tree {
    /// Merges maps field by field; every other value of `over` replaces the one here. A value keeps the position in its own
    /// file. Recursive: parsing limits the depth.
    pub fn override_with(&mut self, over: &Tree) {
        match (&mut self.value, &over.value) {
            (TreeValue::Map(entries), TreeValue::Map(others)) => {
                for (key, value) in others {
                    match entries.iter_mut().find(|(known, _)| known.name == key.name) {
                        Some((known, inner)) => {
                            if !matches!(
                                (&inner.value, &value.value),
                                (TreeValue::Map(_), TreeValue::Map(_))
                            ) {
                                *known = key.clone();
                            }
                            inner.override_with(value);
                        }
                        None => entries.push((key.clone(), value.clone())),
                    }
                }
            }
            _ => *self = over.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn origin() -> Origin {
        let tree = |value| Tree::from_json(&value);
        Origin {
            over: Box::new([
                Layer {
                    file: "inner".into(),
                    tree: tree(json!({ "a": { "c": 3, "d": { "e": 4 } }, "list": [1] })),
                },
                Layer {
                    file: "outer".into(),
                    tree: tree(json!({ "a": { "d": { "f": 5 }, "b": { "x": 1 } } })),
                },
            ]),
            ..Origin::new(
                "o",
                "own",
                tree(json!({ "a": { "b": 1, "c": 2 }, "list": [{ "k": 0 }, 2] })),
            )
        }
    }

    #[test]
    fn maps_are_merged_and_everything_else_is_replaced() {
        let merged =
            json!({ "a": { "b": { "x": 1 }, "c": 3, "d": { "e": 4, "f": 5 } }, "list": [1] });
        assert_eq!(origin().merged().to_json(), merged);
    }

    #[test]
    fn each_field_knows_the_document_that_it_comes_from() {
        let origin = origin();
        for (path, file) in [
            ("", "own"),
            ("a", "own"),
            ("a.b", "outer"),
            ("a.b.x", "outer"),
            ("a.b.missing", "outer"),
            ("a.c", "inner"),
            ("a.d", "inner"),
            ("a.d.e", "inner"),
            ("a.d.f", "outer"),
            ("a.missing", "own"),
            ("list[0]", "inner"),
            ("list[1]", "inner"),
            ("other.x", "own"),
        ] {
            assert_eq!(origin.owner(&FieldPath::parse(path)).0, file, "{path}");
        }
    }
}
