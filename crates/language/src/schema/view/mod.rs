//! A position in a schema.
//!
//! One file: one type and its queries.

use std::sync::LazyLock;

use super::{BuiltIn, Kinds};
use orkestra_object::value::{Map, Node, Path, PathStep};

/// Kubernetes extension: keep fields that the schema does not name.
pub const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
/// Kubernetes extension: an integer or a text.
pub const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// Kubernetes extension: an object with `apiVersion`, `kind` and `metadata`.
pub const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_MAP_KEYS: &str = "x-kubernetes-list-map-keys";

/// The longest chain of references: far longer than any that exists.
const MOST_REFERENCES: usize = 8;

/// The result of [`Schema::describe`] for an object whose schema has no fields.
pub const NO_FIELDS: &str = "object without fields";

static EMPTY: LazyLock<Node> = LazyLock::new(|| Node::object([("type", Node::from("object"))]));

/// Fields that every object has, independent of its schema.
const OF_ALL: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A position in a structural schema.
///
/// Source: Kubernetes, "Specifying a structural schema" and "Field pruning".
#[derive(Clone, Copy, Debug)]
pub struct Schema<'s> {
    node: &'s Node,
    built_in: Option<&'s BuiltIn>,
    /// Whether it describes complete objects.
    is_object: bool,
    /// Whether unknown fields are kept, inherited from above.
    keeps: bool,
    /// Whether the value's key is chosen by the user, such as that of an annotation or a label.
    of_map: bool,
}

/// The content of a field, or of a list.
#[derive(Clone, Copy, Debug)]
pub enum NestedSchema<'s> {
    /// Described by this schema.
    Schema(Schema<'s>),
    /// Any value.
    Anything,
    /// Nothing: the API server drops it.
    Nowhere,
}

impl BuiltIn {
    /// Returns the schema of complete objects of a kind.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<Schema<'_>> {
        Some(Schema::new(self.object(group, version, kind)?, self))
    }

    /// Returns the schema of `metadata`.
    pub fn object_meta(&self) -> Option<Schema<'_>> {
        let meta = self.definition("apimachinery.pkg.apis.meta.v1.ObjectMeta")?;
        Some(Schema::new(meta, self))
    }
}

impl<'s> Schema<'s> {
    /// A position in the schemas of Kubernetes' built-in kinds.
    fn new(node: &'s Node, built_in: &'s BuiltIn) -> Self {
        Self {
            built_in: Some(built_in),
            ..Self::of_part(node)
        }
        .resolved()
    }

    /// The schema of complete objects in a definition: `openAPIV3Schema`. With `built_in` the metadata is described too.
    pub fn of_objects(node: &'s Node, built_in: Option<&'s BuiltIn>) -> Self {
        Self {
            node,
            built_in,
            is_object: true,
            keeps: false,
            of_map: false,
        }
    }

    /// A part of a definition's schema, such as that of the status.
    pub fn of_part(node: &'s Node) -> Self {
        Self {
            is_object: false,
            ..Self::of_objects(node, None)
        }
    }

    /// The schema of an object without fields.
    pub fn empty() -> Self {
        Self::of_part(&EMPTY)
    }

    /// Follows references to definitions.
    fn resolved(mut self) -> Self {
        for _ in 0..MOST_REFERENCES {
            let Some(name) = self.text("$ref") else {
                break;
            };
            let found = self.built_in.and_then(|known| known.definition(name));
            match found {
                Some(node) => self.node = node,
                None => break,
            }
        }
        self
    }

    /// Returns the schema's keywords.
    pub fn node(&self) -> &'s Node {
        self.node
    }

    /// Returns a restriction of this schema, such as an item of `allOf`: it declares no fields, so it has none that are unknown.
    #[must_use]
    pub fn restriction(&self, node: &'s Node) -> Self {
        Self {
            node,
            is_object: false,
            keeps: true,
            ..*self
        }
    }

    fn text(&self, key: &str) -> Option<&'s str> {
        self.node.get(key)?.as_str()
    }

    fn flag(&self, key: &str) -> bool {
        self.node.get(key).and_then(Node::as_bool) == Some(true)
    }

    fn properties(&self) -> Option<&'s Map> {
        self.node.get("properties")?.as_map()
    }

    fn below(&self, node: &'s Node) -> NestedSchema<'s> {
        // Unknown fields that are kept above are kept here too, unless the schema specifies otherwise.
        let keeps = self.keeps || self.flag(PRESERVE);
        let below = Self {
            node,
            keeps,
            is_object: false,
            of_map: false,
            ..*self
        };
        NestedSchema::Schema(below.resolved())
    }

    fn keeps_unknown(&self) -> bool {
        let says_nothing = || {
            !["properties", "additionalProperties", "items"]
                .iter()
                .any(|key| self.node.get(key).is_some())
        };
        self.flag(PRESERVE) || (self.keeps && says_nothing()) || self.type_name().is_none()
    }

    /// `type`, if it is a single one; for objects it is optional.
    fn type_name(&self) -> Option<&'s str> {
        self.text("type")
            .or_else(|| self.properties().map(|_| "object"))
    }

    /// Returns the content of a field of the object or map.
    pub fn field(&self, key: &str) -> NestedSchema<'s> {
        if (self.is_object || self.flag(EMBEDDED)) && OF_ALL.contains(&key) {
            return self.of_all(key);
        }
        if let Some(found) = self.properties().and_then(|fields| fields.get(key)) {
            return self.below(found);
        }
        match self.node.get("additionalProperties") {
            Some(Node::Bool(true)) => NestedSchema::Anything,
            Some(values @ Node::Map(_)) => match self.below(values) {
                NestedSchema::Schema(schema) => NestedSchema::Schema(Schema {
                    of_map: true,
                    ..schema
                }),
                other => other,
            },
            _ if self.keeps_unknown() => NestedSchema::Anything,
            // No object has such a field by itself: `enrich` adds it.
            _ if key.starts_with('_') => NestedSchema::Anything,
            _ => NestedSchema::Nowhere,
        }
    }

    /// The content of an object's `apiVersion`, `kind` and `metadata`.
    fn of_all(&self, key: &str) -> NestedSchema<'s> {
        let known = self.built_in.and_then(|known| match key {
            "metadata" => known.object_meta(),
            _ => match known.object_meta()?.field("name") {
                NestedSchema::Schema(text) => Some(text),
                _ => None,
            },
        });
        known.map_or(NestedSchema::Anything, NestedSchema::Schema)
    }

    /// Returns the content of the list.
    pub fn item(&self) -> NestedSchema<'s> {
        match self.node.get("items") {
            Some(items) => self.below(items),
            None if self.type_name() == Some("array") || self.keeps_unknown() => {
                NestedSchema::Anything
            }
            None => NestedSchema::Nowhere,
        }
    }

    /// Returns the content under any key: the items of a list, or the values of a map with user-chosen keys.
    pub fn any_value(&self) -> NestedSchema<'s> {
        match self.type_name() {
            Some("array") => self.item(),
            Some("object") if self.properties().is_none() => self.field(""),
            _ => NestedSchema::Anything,
        }
    }

    /// Returns the content at a path from here. A number selects an item if the value is a list.
    pub fn at(&self, path: &[PathStep]) -> NestedSchema<'s> {
        let mut at = *self;
        for step in path {
            let below = match step {
                PathStep::Index(_) => at.item(),
                PathStep::Field(key) if at.type_name() == Some("array") && is_number(key) => {
                    at.item()
                }
                PathStep::Field(key) => at.field(key),
            };
            match below {
                NestedSchema::Schema(schema) => at = schema,
                end => return end,
            }
        }
        NestedSchema::Schema(at)
    }

    /// As [`Schema::at`].
    pub fn at_path(&self, path: &Path) -> NestedSchema<'s> {
        self.at(path.steps())
    }

    /// Returns the names of the fields.
    pub fn fields(&self) -> impl Iterator<Item = &'s str> + use<'s> {
        let own = self.properties().into_iter().flat_map(Map::keys);
        let of_all = if self.is_object { &OF_ALL[..] } else { &[] };
        own.map(orkestra_object::value::Key::as_str)
            .filter(move |name| !of_all.contains(name))
            .chain(of_all.iter().copied())
    }

    /// Returns the required fields, except for those with a default.
    pub fn required(&self) -> impl Iterator<Item = &'s str> + use<'s> {
        let listed = self.node.get("required").and_then(Node::as_list);
        let properties = self.properties();
        let is_set = move |name: &&str| {
            let property = properties.and_then(|fields| fields.get(name));
            property.is_none_or(|property| property.get("default").is_none())
        };
        let names = listed.unwrap_or_default().iter().filter_map(Node::as_str);
        names.filter(is_set)
    }

    /// True if this is an atomic list: it is owned as a whole, not by item. Source: Kubernetes, "Server-Side Apply", merge
    /// strategy.
    pub fn is_whole_list(&self) -> bool {
        self.type_name() == Some("array")
            && self.text(LIST_TYPE).is_none_or(|word| word == "atomic")
            && self.node.get(LIST_MAP_KEYS).is_none()
    }

    /// Returns the fields that identify the items of an associative list, each with the value that the API server takes where
    /// it is absent. Empty for other lists.
    pub fn list_keys(&self) -> Vec<(&'s str, Option<&'s Node>)> {
        let keys = self.node.get(LIST_MAP_KEYS).and_then(Node::as_list);
        let fields = match self.item() {
            NestedSchema::Schema(item) => item.properties(),
            NestedSchema::Anything | NestedSchema::Nowhere => None,
        };
        let default = |key| fields?.get(key)?.get("default");
        let keys = keys.unwrap_or_default().iter().filter_map(Node::as_str);
        keys.map(|key| (key, default(key))).collect()
    }

    /// True if both are the same position.
    pub fn is_at(&self, other: &Schema<'_>) -> bool {
        std::ptr::eq(self.node, other.node)
    }

    /// Returns the atomic lists here and below, as the names of the fields to them; without maps with user-chosen keys, and
    /// without recursive definitions.
    pub fn whole_lists(&self) -> Vec<Vec<&'s str>> {
        let mut found = Vec::new();
        self.each_whole_list(&mut Vec::new(), &mut Vec::new(), &mut found);
        found
    }

    fn each_whole_list(
        &self,
        around: &mut Vec<&'s Node>,
        at: &mut Vec<&'s str>,
        found: &mut Vec<Vec<&'s str>>,
    ) {
        if self.is_whole_list() {
            found.push(at.clone());
            return;
        }
        if around.iter().any(|node| std::ptr::eq(*node, self.node)) {
            return;
        }
        around.push(self.node);
        if let NestedSchema::Schema(item) = self.item() {
            item.each_whole_list(around, at, found);
        }
        for name in self.fields() {
            if let NestedSchema::Schema(below) = self.field(name) {
                at.push(name);
                below.each_whole_list(around, at, found);
                at.pop();
            }
        }
        around.pop();
    }

    /// Returns the possible values, if they are listed.
    pub fn words(&self) -> Option<&'s [Node]> {
        self.node.get("enum")?.as_list()
    }

    /// True if the empty text is valid for every rule; with a pattern or format this is unknown, so false.
    pub fn takes_empty_text(&self) -> bool {
        let listed = self.words();
        let shortest = self.node.get("minLength").and_then(Node::as_i64);
        listed.is_none_or(|words| words.iter().any(|word| word.as_str() == Some("")))
            && shortest.is_none_or(|length| length <= 0)
            && ["pattern", "format"]
                .iter()
                .all(|rule| self.node.get(rule).is_none())
    }

    /// True if the value's key is chosen by the user, as in a map of labels: all such values have the same type.
    pub fn is_of_map(&self) -> bool {
        self.of_map
    }

    /// True if this is a quantity, such as `250m` or `2Gi`. Of all types in the schemas of Kubernetes' built-in kinds only this
    /// one is text or any number; a definition cannot have such a type.
    pub fn is_quantity(&self) -> bool {
        let types = self.node.get("type").and_then(Node::as_list);
        let words = types.map(|types| types.iter().filter_map(Node::as_str));
        words.is_some_and(|words| words.eq(["string", "number"]))
    }

    /// True if null is valid.
    pub fn is_nullable(&self) -> bool {
        self.flag("nullable")
    }

    /// Returns `type`, or `int-or-string`; `None` if the schema has no type.
    pub fn type_word(&self) -> Option<&'s str> {
        if self.flag(INT_OR_STRING) {
            Some("int-or-string")
        } else {
            self.type_name()
        }
    }

    /// Returns the kinds of valid values; with an enum, the kinds of its values.
    pub fn kinds(&self) -> Kinds {
        match self.words() {
            Some(words) => words
                .iter()
                .fold(Kinds::NONE, |kinds, word| kinds | Kinds::of(word)),
            None => self.kinds_of_type(),
        }
    }

    /// Returns the kinds of values of its type, ignoring an enum.
    pub fn kinds_of_type(&self) -> Kinds {
        if self.flag(INT_OR_STRING) {
            return Kinds::INT | Kinds::TEXT;
        }
        match self.node.get("type") {
            Some(Node::List(types)) => types.iter().fold(Kinds::NONE, |kinds, one| {
                kinds | one.as_str().map_or(Kinds::ANY, kind)
            }),
            _ => self.type_name().map_or(Kinds::ANY, kind),
        }
    }

    /// In words: `integer`, `list of text`, `map of text`, `object`, `one of dev, prod`.
    pub fn describe(&self) -> String {
        let inner = |below: NestedSchema<'s>| match below {
            NestedSchema::Schema(schema) => schema.describe(),
            NestedSchema::Anything | NestedSchema::Nowhere => "anything".to_owned(),
        };
        if let Some(words) = self.words() {
            let words: Vec<_> = words.iter().map(Node::to_text).collect();
            return format!("one of {}", words.join(", "));
        }
        match self.type_name() {
            Some("array") => format!("list of {}", inner(self.item())),
            Some("object") if self.properties().is_some() => "object".to_owned(),
            Some("object") => match self.field("") {
                NestedSchema::Nowhere => NO_FIELDS.to_owned(),
                values => format!("map of {}", inner(values)),
            },
            _ => self.kinds().to_string(),
        }
    }
}

/// Returns a type with its article: `an integer`, `a list of text`, `text`.
pub fn with_article(words: &str) -> String {
    let first = words.split(' ').next().unwrap_or_default();
    let article = match first {
        "integer" | "object" => "an ",
        "number" | "boolean" | "list" | "map" => "a ",
        _ => "",
    };
    format!("{article}{words}")
}

fn kind(type_name: &str) -> Kinds {
    match type_name {
        "integer" => Kinds::INT,
        "number" => Kinds::NUMBER,
        "boolean" => Kinds::BOOL,
        "string" => Kinds::TEXT,
        "array" => Kinds::LIST,
        "object" => Kinds::MAP,
        _ => Kinds::ANY,
    }
}

fn is_number(key: &str) -> bool {
    key.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
