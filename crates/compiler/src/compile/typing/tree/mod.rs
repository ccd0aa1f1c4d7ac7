//! Checks the trees of children against the schemas of their kinds.

mod fixed;
mod keys;

use std::sync::Arc;

use super::{Typing, list_keys, whole_lists};
use crate::scope::At;
use orkestra_language::{
    diagnostics::{Code, did_you_mean},
    schema::{Kinds, NestedSchema, Schema},
};
use orkestra_object::value::{Key, Path};
use orkestra_plan::{ChildPlan, Coerce, ListKeys, ObjectTree, Whole, list_keys::ListKey};

/// Parts of an object that shorthand passes through under the same name.
const TAKEN: [&str; 11] = [
    "affinity",
    "behavior",
    "egress",
    "env",
    "ingress",
    "initContainers",
    "ports",
    "tolerations",
    "topologySpreadConstraints",
    "volumeMounts",
    "volumes",
];
/// Maps of an object in which some keys are Orkestra's own.
const METADATA: [&str; 2] = ["metadata.annotations", "metadata.labels"];
/// The list in which shorthand generates the first item and passes the others through.
const TAKEN_BEHIND_FIRST: &str = "containers";

/// A place in a generated object.
#[derive(Clone)]
pub(crate) struct TreePosition<'a> {
    /// The path of its declaration; for shorthand, of the entry.
    pub(crate) at: At<'a>,
    /// The path in the object, for messages.
    pub(crate) path: String,
    /// True if the object is a manifest, so that its fields are the user's.
    pub(crate) is_written: bool,
    /// The path of the declared items after the first, in a list whose first item is generated.
    behind_first: Option<At<'a>>,
    /// True if it is a patch, which is merged into another object.
    pub(crate) is_patch: bool,
    /// Its kind, for messages.
    pub(crate) kind: Key,
}

impl<'a> TreePosition<'a> {
    pub(crate) fn field(&self, key: &str) -> Self {
        let is_written = self.is_written || TAKEN.contains(&key);
        let is_behind = !is_written && key == TAKEN_BEHIND_FIRST;
        Self {
            behind_first: is_behind.then(|| self.at.field(key)),
            at: if is_written {
                self.at.field(key)
            } else {
                self.at.clone()
            },
            is_written,
            path: if self.path.is_empty() {
                key.to_owned()
            } else {
                format!("{}.{key}", self.path)
            },
            ..self.clone()
        }
    }

    /// Returns the place of the patch of the object here.
    fn patch(&self) -> Self {
        Self {
            at: self.at.field("patch"),
            is_written: true,
            is_patch: true,
            ..self.clone()
        }
    }

    /// Returns the place of the first key that the item here has, or of the item.
    fn key(&self, keys: &[ListKey]) -> At<'a> {
        match keys.first().filter(|_| self.is_written) {
            Some(key) => self.at.field(&key.name),
            None => self.at.clone(),
        }
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        if let Some(list) = &self.behind_first
            && let Some(before) = index.checked_sub(1)
        {
            return Self {
                at: list.index(before),
                is_written: true,
                behind_first: None,
                path: format!("{}[{index}]", self.path),
                ..self.clone()
            };
        }
        Self {
            behind_first: None,
            at: if self.is_written {
                self.at.index(index)
            } else {
                self.at.clone()
            },
            path: format!("{}[{index}]", self.path),
            ..self.clone()
        }
    }

    /// Reports a field that the kind does not have.
    pub(crate) fn unknown_field(&self, key: &str, schema: Schema<'_>) {
        if key.contains("{{") || (self.is_patch && key.starts_with('$')) {
            return; // Already reported: a key cannot be a template. In a patch, these are not fields.
        }
        let at = if self.is_written {
            self.at.key(key)
        } else {
            self.at.clone()
        };
        let message = format!("{} has no `{}`", self.kind, self.field(key).path);
        match did_you_mean(key, schema.fields()) {
            Some(hint) => at.error_hint(Code::NoSuchField, message, hint),
            None => at.error(Code::NoSuchField, message),
        }
    }

    /// Reports required fields that are missing.
    pub(crate) fn missing(&self, schema: Schema<'_>, has: impl Fn(&str) -> bool) {
        if !self.is_written || self.is_patch {
            return;
        }
        for name in schema.required() {
            // A pass adds the fields that every object has.
            let is_ours = self.path.is_empty() && name == "metadata";
            if !is_ours && !has(name) {
                let path = self.field(name).path;
                let message = format!("{} needs `{path}`", self.kind);
                self.at.error(Code::Missing, message);
            }
        }
    }
}

/// An object whose leaves have the types of their fields.
pub(crate) struct TypedObject {
    pub(crate) body: ObjectTree,
    /// As [`ChildPlan::whole_lists`].
    pub(crate) whole_lists: Box<[Path]>,
    /// As [`ChildPlan::list_keys`].
    pub(crate) list_keys: Arc<ListKeys>,
}

impl<'a, 's> Typing<'a, 's> {
    /// Checks the object of a child, and returns it with the types of its fields.
    pub(crate) fn object(&self, child: &ChildPlan) -> TypedObject {
        let last = child.path.rsplit('.').next().unwrap_or_default();
        let place = TreePosition {
            at: self.at.place(&child.path),
            path: String::new(),
            is_written: last.starts_with("custom["),
            behind_first: None,
            is_patch: false,
            kind: child.kind.kind.clone(),
        };
        let schema = self.known.kind(&child.kind);
        let mut body = child.body.clone();
        self.tree(&mut body, schema, &place);
        let whole_lists =
            schema.map_or_else(Box::default, |schema| whole_lists::of_body(&body, schema));
        let list_keys = schema.map(|schema| list_keys::of_body(&body, schema));
        let list_keys = Arc::new(list_keys.unwrap_or_default());
        if let ObjectTree::Patched(parts) = &mut body {
            parts.2 = Arc::clone(&list_keys);
        }
        TypedObject {
            body,
            whole_lists,
            list_keys,
        }
    }

    fn tree(&self, tree: &mut ObjectTree, schema: Option<Schema<'s>>, place: &TreePosition<'a>) {
        match tree {
            ObjectTree::Fixed(node) => {
                if let Some(schema) = schema {
                    fixed::check(node, schema, place);
                }
            }
            ObjectTree::Leaf(leaf) => {
                if let Some(schema) = schema
                    && leaf.coerce == Coerce::Native
                {
                    leaf.coerce = taking(schema, &place.path);
                }
                self.leaf(leaf, schema);
            }
            ObjectTree::Map(entries) | ObjectTree::Part(entries) => {
                if let Some(schema) = schema {
                    place.missing(schema, |name| entries.iter().any(|(key, _)| &**key == name));
                }
                for (key, below) in entries {
                    self.field(key, below, schema, place);
                }
            }
            ObjectTree::List(items) => {
                let known = schema.map_or(NestedSchema::Anything, |schema| schema.item());
                if let Some(schema) = schema {
                    keys::check(items, schema, place);
                }
                for (index, item) in items.iter_mut().enumerate() {
                    self.tree(item, described(known), &place.index(index));
                }
            }
            ObjectTree::Joined(parts) => {
                for part in parts {
                    self.tree(part, schema, place);
                }
            }
            ObjectTree::Patched(parts) => {
                self.tree(&mut parts.0, schema, place);
                self.tree(&mut parts.1, schema, &place.patch());
            }
            ObjectTree::Chosen(chosen) => {
                self.leaf(&chosen.name, None);
                for (_, option) in &mut chosen.options {
                    if let Some(option) = option {
                        self.tree(option, schema, place);
                    }
                }
            }
            ObjectTree::Image(parts) => {
                self.leaf(&parts.0, schema);
                self.leaf(&parts.1, None);
            }
            ObjectTree::ContainerName(leaf) => self.leaf(leaf, None),
            ObjectTree::Workload(workload) => self.leaf(&workload.1, None),
            ObjectTree::Owner(_) => {}
        }
    }
}

impl<'a, 's> Typing<'a, 's> {
    fn field(
        &self,
        key: &Key,
        value: &mut ObjectTree,
        schema: Option<Schema<'s>>,
        place: &TreePosition<'a>,
    ) {
        let known = schema.map_or(NestedSchema::Anything, |schema| schema.field(key));
        if let (NestedSchema::Nowhere, Some(schema)) = (known, schema) {
            place.unknown_field(key, schema);
        }
        self.tree(value, described(known), &place.field(key));
    }
}

fn described(below: NestedSchema<'_>) -> Option<Schema<'_>> {
    match below {
        NestedSchema::Schema(schema) => Some(schema),
        NestedSchema::Anything | NestedSchema::Nowhere => None,
    }
}

/// Returns the coercion of an expression in a field of a manifest.
fn taking(schema: Schema<'_>, path: &str) -> Coerce {
    let is_of_text = || match schema.any_value() {
        NestedSchema::Schema(below) => below.kinds_of_type() == Kinds::TEXT,
        NestedSchema::Anything | NestedSchema::Nowhere => false,
    };
    match schema.kinds_of_type() {
        Kinds::MAP if METADATA.contains(&path) => Coerce::Whole(Whole::Metadata),
        Kinds::MAP if is_of_text() => Coerce::Whole(Whole::Texts),
        Kinds::LIST if is_of_text() => Coerce::Whole(Whole::Words),
        Kinds::INT => Coerce::Int,
        Kinds::NUMBER => Coerce::Float,
        Kinds::BOOL => Coerce::Bool,
        Kinds::TEXT => Coerce::AsText,
        _ => Coerce::Native,
    }
}
