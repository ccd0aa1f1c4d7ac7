//! One place in a schema.

use std::sync::LazyLock;

use super::{BuiltIn, Kinds};
use crate::value::{Map, Node, Path, Step};

/// Extension of Kubernetes: keep what the schema doesn't name.
pub const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
/// Extension of Kubernetes: a whole number or a text.
pub(crate) const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// Extension of Kubernetes: an object with `apiVersion`, `kind` and `metadata`.
pub(crate) const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_MAP_KEYS: &str = "x-kubernetes-list-map-keys";

/// References behind one another: far above any there is.
const MOST_REFERENCES: usize = 8;

/// What [`Schema::describe`] says of an object whose schema has no field.
pub const NO_FIELDS: &str = "object without fields";

static EMPTY: LazyLock<Node> = LazyLock::new(|| Node::object([("type", Node::from("object"))]));

/// Fields that every object has, whatever its schema says.
const OF_ALL: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A place in a structural schema.
///
/// Source: Kubernetes, "Specifying a structural schema" and "Field pruning".
#[derive(Clone, Copy, Debug)]
pub struct Schema<'s> {
    node: &'s Node,
    built_in: Option<&'s BuiltIn>,
    /// Whether it describes whole objects.
    is_object: bool,
    /// Whether fields of which it says nothing are kept, as those above are.
    keeps: bool,
    /// Whether the value's key is the user's own: an annotation, a label.
    of_map: bool,
}

/// What lies under a field, or in a list.
#[derive(Clone, Copy, Debug)]
pub enum Below<'s> {
    /// What this describes.
    Schema(Schema<'s>),
    /// Whatever is written.
    Anything,
    /// Nothing: the API server drops it.
    Nowhere,
}

impl<'s> Schema<'s> {
    /// A place in the schemas of Kubernetes' own kinds.
    pub(super) fn new(node: &'s Node, built_in: &'s BuiltIn) -> Self {
        Self {
            built_in: Some(built_in),
            ..Self::of_part(node)
        }
        .resolved()
    }

    /// The schema of whole objects in a definition: `openAPIV3Schema`. With `built_in` the metadata is described too.
    pub(crate) fn of_objects(node: &'s Node, built_in: Option<&'s BuiltIn>) -> Self {
        Self {
            node,
            built_in,
            is_object: true,
            keeps: false,
            of_map: false,
        }
    }

    /// A part of a definition's schema, such as that of the status.
    pub(crate) fn of_part(node: &'s Node) -> Self {
        Self {
            is_object: false,
            ..Self::of_objects(node, None)
        }
    }

    /// That of an object without any field.
    pub fn empty() -> Self {
        Self::of_part(&EMPTY)
    }

    /// The definition that a reference names.
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

    fn text(&self, key: &str) -> Option<&'s str> {
        self.node.get(key)?.as_str()
    }

    fn flag(&self, key: &str) -> bool {
        self.node.get(key).and_then(Node::as_bool) == Some(true)
    }

    fn properties(&self) -> Option<&'s Map> {
        self.node.get("properties")?.as_map()
    }

    fn below(&self, node: &'s Node) -> Below<'s> {
        // What is kept above is kept here too, where nothing is said.
        let keeps = self.keeps || self.flag(PRESERVE);
        let below = Self {
            node,
            keeps,
            is_object: false,
            of_map: false,
            ..*self
        };
        Below::Schema(below.resolved())
    }

    fn keeps_unknown(&self) -> bool {
        let says_nothing = || {
            !["properties", "additionalProperties", "items"]
                .iter()
                .any(|key| self.node.get(key).is_some())
        };
        self.flag(PRESERVE) || (self.keeps && says_nothing()) || self.type_name().is_none()
    }

    /// `type`, where it is one; objects need not say so.
    fn type_name(&self) -> Option<&'s str> {
        self.text("type")
            .or_else(|| self.properties().map(|_| "object"))
    }

    /// What lies under a field of the object or map here.
    pub fn field(&self, key: &str) -> Below<'s> {
        if (self.is_object || self.flag(EMBEDDED)) && OF_ALL.contains(&key) {
            return self.of_all(key);
        }
        if let Some(found) = self.properties().and_then(|fields| fields.get(key)) {
            return self.below(found);
        }
        match self.node.get("additionalProperties") {
            Some(Node::Bool(true)) => Below::Anything,
            Some(values @ Node::Map(_)) => match self.below(values) {
                Below::Schema(schema) => Below::Schema(Schema {
                    of_map: true,
                    ..schema
                }),
                other => other,
            },
            _ if self.keeps_unknown() => Below::Anything,
            // No object has such a field by itself: it is what `enrich` adds.
            _ if key.starts_with('_') => Below::Anything,
            _ => Below::Nowhere,
        }
    }

    /// `apiVersion`, `kind` and `metadata` of an object.
    fn of_all(&self, key: &str) -> Below<'s> {
        let known = self.built_in.and_then(|known| match key {
            "metadata" => known.object_meta(),
            _ => match known.object_meta()?.field("name") {
                Below::Schema(text) => Some(text),
                _ => None,
            },
        });
        known.map_or(Below::Anything, Below::Schema)
    }

    /// What lies in the list here.
    pub fn item(&self) -> Below<'s> {
        match self.node.get("items") {
            Some(items) => self.below(items),
            None if self.type_name() == Some("array") || self.keeps_unknown() => Below::Anything,
            None => Below::Nowhere,
        }
    }

    /// What lies under any key: the items of a list, the values of a map whose keys are the user's own.
    pub fn any_value(&self) -> Below<'s> {
        match self.type_name() {
            Some("array") => self.item(),
            Some("object") if self.properties().is_none() => self.field(""),
            _ => Below::Anything,
        }
    }

    /// What lies at a path from here. A number addresses an item, if a list is there.
    pub fn at(&self, path: &[Step]) -> Below<'s> {
        let mut at = *self;
        for step in path {
            let below = match step {
                Step::Index(_) => at.item(),
                Step::Field(key) if at.type_name() == Some("array") && is_number(key) => at.item(),
                Step::Field(key) => at.field(key),
            };
            match below {
                Below::Schema(schema) => at = schema,
                end => return end,
            }
        }
        Below::Schema(at)
    }

    /// As [`Schema::at`].
    pub(crate) fn at_path(&self, path: &Path) -> Below<'s> {
        self.at(path.steps())
    }

    /// The names of the fields here.
    pub fn fields(&self) -> impl Iterator<Item = &'s str> + use<'s> {
        let own = self.properties().into_iter().flat_map(Map::keys);
        let of_all = if self.is_object { &OF_ALL[..] } else { &[] };
        own.map(crate::value::Key::as_str)
            .filter(move |name| !of_all.contains(name))
            .chain(of_all.iter().copied())
    }

    /// The fields that must be there. Those that the API server sets itself need not.
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

    /// Whether this is a list that the API server owns whole: not by item. Source: Kubernetes, "Server-Side Apply", merge
    /// strategy.
    pub(crate) fn is_whole_list(&self) -> bool {
        self.type_name() == Some("array")
            && self.text(LIST_TYPE).is_none_or(|word| word == "atomic")
            && self.node.get(LIST_MAP_KEYS).is_none()
    }

    /// The lists that are owned whole, here and below, as the names of the fields on the way to them; nothing of maps whose
    /// keys are the user's own, and of a definition inside of itself.
    pub(crate) fn whole_lists(&self) -> Vec<Vec<&'s str>> {
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
        if let Below::Schema(item) = self.item() {
            item.each_whole_list(around, at, found);
        }
        for name in self.fields() {
            if let Below::Schema(below) = self.field(name) {
                at.push(name);
                below.each_whole_list(around, at, found);
                at.pop();
            }
        }
        around.pop();
    }

    /// The only values that are possible, where they are listed.
    pub fn words(&self) -> Option<&'s [Node]> {
        self.node.get("enum")?.as_list()
    }

    /// Whether the empty text keeps every rule for texts that is given; of a pattern or format that is not known.
    pub(crate) fn takes_empty_text(&self) -> bool {
        let listed = self.words();
        let shortest = self.node.get("minLength").and_then(Node::as_i64);
        listed.is_none_or(|words| words.iter().any(|word| word.as_str() == Some("")))
            && shortest.is_none_or(|length| length <= 0)
            && ["pattern", "format"]
                .iter()
                .all(|rule| self.node.get(rule).is_none())
    }

    /// Whether the value's key is the user's own, as in a map of labels: all such values are of one type.
    pub(crate) fn is_of_map(&self) -> bool {
        self.of_map
    }

    /// Whether this is an amount of a resource, such as `250m` or `2Gi`. Of all types in the schemas of Kubernetes' own
    /// kinds it alone is text or any number; a definition cannot have such a type.
    pub(crate) fn is_quantity(&self) -> bool {
        let types = self.node.get("type").and_then(Node::as_list);
        let words = types.map(|types| types.iter().filter_map(Node::as_str));
        words.is_some_and(|words| words.eq(["string", "number"]))
    }

    /// `type` as it is written, and `int-or-string`; none where the schema leaves it open.
    pub(crate) fn type_word(&self) -> Option<&'s str> {
        if self.flag(INT_OR_STRING) {
            Some("int-or-string")
        } else {
            self.type_name()
        }
    }

    /// The kinds of values that it takes; of listed words their kinds.
    pub fn kinds(&self) -> Kinds {
        match self.words() {
            Some(words) => words
                .iter()
                .fold(Kinds::NONE, |kinds, word| kinds | Kinds::of(word)),
            None => self.kinds_of_type(),
        }
    }

    /// The kinds of values of its type, whatever words it lists.
    pub(crate) fn kinds_of_type(&self) -> Kinds {
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
        let inner = |below: Below<'s>| match below {
            Below::Schema(schema) => schema.describe(),
            Below::Anything | Below::Nowhere => "anything".to_owned(),
        };
        if let Some(words) = self.words() {
            let words: Vec<_> = words.iter().map(Node::to_text).collect();
            return format!("one of {}", words.join(", "));
        }
        match self.type_name() {
            Some("array") => format!("list of {}", inner(self.item())),
            Some("object") if self.properties().is_some() => "object".to_owned(),
            Some("object") => match self.field("") {
                Below::Nowhere => NO_FIELDS.to_owned(),
                values => format!("map of {}", inner(values)),
            },
            _ => self.kinds().to_string(),
        }
    }
}

/// A type's words in a sentence: `an integer`, `a list of text`, `text`.
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
