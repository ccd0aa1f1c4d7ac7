//! The parts of its CRD that a pass uses: the status fields that the API server does not drop, and their types.

use std::sync::Arc;

use super::requested::LAST_HANDLED;
use orkestra_language::{
    api::conditions::Condition,
    schema::{EMBEDDED, INT_OR_STRING, NestedSchema, PRESERVE, Schema},
};
use orkestra_object::value::{Key, Map, Node, Path};
use orkestra_plan::definitions;

/// The field of the status that holds its conditions.
pub(crate) const CONDITIONS: &str = "conditions";
/// The field of the status with the generation that it describes.
pub(crate) const GENERATION: &str = "observedGeneration";

/// The facts about the CRD that a pass uses, for its version.
#[derive(Clone, Debug, PartialEq)]
pub struct CrdStatus {
    /// Whether objects are namespaced.
    pub namespaced: bool,
    /// Whether there is a status subresource: then only spec changes increase the generation.
    pub has_status: bool,
    /// The fields of the status.
    pub status: StatusShape,
}

impl CrdStatus {
    /// Returns the facts from a complete CRD version. Without one: it has the status subresource, and keeps every status.
    pub fn assumed(namespaced: bool, version: Option<&definitions::CrdVersion>) -> Self {
        let schema = match version {
            Some(version) => status_schema(&version.schema),
            None => Some(open_schema()),
        };
        Self {
            namespaced,
            has_status: version.is_none_or(|version| version.status),
            status: StatusShape::new(schema),
        }
    }
}

/// The schema of the fields below `status`. Fields that every pass writes are looked up once.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusShape {
    schema: Option<Arc<Node>>,
    holds_generation: bool,
    holds_handled: bool,
    /// Which of [`Condition::FIELDS`] its conditions have.
    of_conditions: [bool; Condition::FIELDS.len()],
}

impl StatusShape {
    /// Reads `schema`, as in [`super::crd::ObservedCrdVersion::status_schema`]. Without one no field is kept.
    pub fn new(schema: Option<Arc<Node>>) -> Self {
        let mut shape = Self {
            schema,
            holds_generation: false,
            holds_handled: false,
            of_conditions: Default::default(),
        };
        shape.holds_generation = shape.holds(&Path::of_fields([GENERATION]));
        let handled = Path::of_fields([LAST_HANDLED]);
        shape.holds_handled =
            shape.holds(&handled) && matches!(shape.type_at(&handled), None | Some("string"));
        shape.of_conditions = Condition::FIELDS.map(|name| shape.holds(&of_condition(name)));
        shape
    }

    /// True if the API server keeps a value at `path`, which starts below `status`.
    pub fn holds(&self, path: &Path) -> bool {
        !matches!(self.at(path), NestedSchema::Nowhere)
    }

    /// Returns the type at `path`: `string`, `integer`, `number`, `boolean`, `object`, `array`, or `int-or-string`. None if
    /// the schema leaves it open or has no such path.
    pub fn type_at(&self, path: &Path) -> Option<&str> {
        match self.at(path) {
            NestedSchema::Schema(found) => found.type_word(),
            NestedSchema::Anything | NestedSchema::Nowhere => None,
        }
    }

    /// True if the empty string is certainly valid at `path`, provided that strings are.
    pub(crate) fn takes_empty_text(&self, path: &Path) -> bool {
        match self.at(path) {
            NestedSchema::Schema(found) => found.takes_empty_text(),
            NestedSchema::Anything | NestedSchema::Nowhere => true,
        }
    }

    /// True if it has `observedGeneration`.
    pub(crate) fn holds_generation(&self) -> bool {
        self.holds_generation
    }

    /// True if it has `lastHandledReconcileAt`, as a string.
    pub(crate) fn holds_handled(&self) -> bool {
        self.holds_handled
    }

    /// True if its conditions have the required fields of a condition.
    pub(crate) fn holds_conditions(&self) -> bool {
        ["type", "status"]
            .iter()
            .all(|name| self.holds_of_condition(name))
    }

    /// True if its conditions have the field of that name.
    pub(crate) fn holds_of_condition(&self, name: &str) -> bool {
        let mut fields = Condition::FIELDS.iter().zip(self.of_conditions);
        match fields.find(|(field, _)| **field == name) {
            Some((_, is_held)) => is_held,
            None => self.holds(&of_condition(name)),
        }
    }

    fn at(&self, path: &Path) -> NestedSchema<'_> {
        match self.schema.as_deref() {
            Some(schema) => Schema::of_part(schema).at_path(path),
            None => NestedSchema::Nowhere,
        }
    }
}

/// Returns the path of a field of conditions, below `status`.
fn of_condition(field: &str) -> Path {
    let mut path = Path::of_fields([CONDITIONS]);
    path.push_index(0);
    path.push_field(field);
    path
}

/// Returns the part of an object's schema under `status`; if the object keeps unknown fields and has no schema for `status`,
/// one that keeps everything.
pub(crate) fn status_schema(root: &Node) -> Option<Arc<Node>> {
    let schema = match root
        .get("properties")
        .and_then(|properties| properties.get("status"))
    {
        Some(schema) => shape(schema),
        None if flag(root, PRESERVE) => return Some(open_schema()),
        None => return None,
    };
    Some(Arc::new(schema))
}

/// Returns a schema that keeps everything.
fn open_schema() -> Arc<Node> {
    Arc::new(Node::object([(PRESERVE, Node::Bool(true))]))
}

/// Returns a schema without unused parts. One rule for strings is kept: whether the empty string satisfies them all.
fn shape(schema: &Node) -> Node {
    let Some(fields) = schema.as_map() else {
        return schema.clone();
    };
    let kept = fields.iter().filter_map(|(key, value)| {
        let value = match &**key {
            "type" | PRESERVE | INT_OR_STRING | EMBEDDED => value.clone(),
            "items" | "additionalProperties" => shape(value),
            "properties" => Node::Map(
                value
                    .as_map()?
                    .iter()
                    .map(|(name, schema)| (name.clone(), shape(schema)))
                    .collect::<Map>(),
            ),
            _ => return None,
        };
        Some((key.clone(), value))
    });
    let is_text = fields
        .get("type")
        .is_none_or(|name| name.as_str() == Some("string"));
    let takes_empty = !is_text || Schema::of_part(schema).takes_empty_text();
    let rule = (!takes_empty).then(|| (Key::from("minLength"), Node::Int(1)));
    Node::Map(kept.chain(rule).collect())
}

fn flag(schema: &Node, field: &str) -> bool {
    schema.get(field).and_then(Node::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> StatusShape {
        let schema = r#"{"type": "object", "properties": {
            "ready": {"type": "integer"},
            "url": {"type": "string"},
            "word": {"type": "string", "enum": ["a", "b"]}, "some": {"type": "string", "enum": ["", "b"]},
            "long": {"type": "string", "minLength": 1}, "like": {"type": "string", "pattern": "^a"},
            "since": {"type": "string", "format": "date-time"},
            "port": {"x-kubernetes-int-or-string": true},
            "labels": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "steps": {"type": "array", "items": {"type": "object", "properties": {"took": {"type": "number"}}}},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "any": {"type": "object", "additionalProperties": true},
            "conditions": {"type": "array", "items": {"type": "object", "properties": {
                "type": {"type": "string"}, "status": {"type": "string"}, "by": {"type": "string"}}}}
        }}"#;
        StatusShape::new(Some(Arc::new(serde_json::from_str(schema).unwrap())))
    }

    fn path(text: &str) -> Path {
        Path::parse(text).unwrap()
    }

    #[test]
    fn a_schema_holds_its_fields_and_no_others() {
        for known in [
            "ready",
            "labels.x",
            "steps[3].took",
            "steps.0.took",
            "raw.a.b",
            "any.a.b",
            "",
        ] {
            assert!(shape().holds(&path(known)), "{known}");
        }
        for unknown in [
            "nope",
            "url.deeper",
            "steps.took",
            "steps[0].nope",
            "labels.x.y",
        ] {
            assert!(!shape().holds(&path(unknown)), "{unknown}");
        }
        assert!(!StatusShape::new(None).holds(&path("ready")));
    }

    #[test]
    fn a_schema_shows_types() {
        for (text, kind) in [
            ("ready", Some("integer")),
            ("url", Some("string")),
            ("port", Some("int-or-string")),
            ("labels.x", Some("boolean")),
            ("steps[0].took", Some("number")),
            ("raw.a", None),
            ("nope", None),
        ] {
            assert_eq!(shape().type_at(&path(text)), kind, "{text}");
        }
    }

    #[test]
    fn what_every_pass_writes_is_held_as_far_as_the_schema_has_it() {
        let shape = shape();
        assert!(shape.holds_conditions() && !shape.holds_generation());
        for (name, held) in [
            ("type", true),
            ("message", false),
            ("by", true),
            ("to", false),
        ] {
            assert_eq!(shape.holds_of_condition(name), held, "{name}");
        }
        assert!(!StatusShape::new(None).holds_conditions());
    }

    #[test]
    fn an_empty_text_is_written_only_where_it_is_certain_to_be_valid() {
        for (text, takes) in [
            ("url", true),
            ("some", true),
            ("raw.a", true),
            ("word", false),
            ("long", false),
            ("like", false),
            ("since", false),
        ] {
            assert_eq!(shape().takes_empty_text(&path(text)), takes, "{text}");
        }
    }
}
