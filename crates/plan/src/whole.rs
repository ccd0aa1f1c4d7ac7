//! Fields with parts whose whole value one template returns: the conversion to the form that Kubernetes has.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

use orkestra_language::{api::names, schema::Kinds};
use orkestra_object::value::{Key, Map, Node};

/// The form of a field with parts. A missing value and an empty text leave the field out, and so does an empty map or list
/// unless it is passed on as in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// A map, as in Kubernetes.
    Map,
    /// A map whose values become text.
    Texts,
    /// Labels or annotations: texts by key, without keys of our own.
    Metadata,
    /// Secret data: the base64 of each value.
    Secret,
    /// The labels of a selector: alone, or as a selector of Kubernetes.
    Selector,
    /// The same where a missing selector would select everything: a missing value is an error.
    NeededSelector,
    /// A list, as in Kubernetes.
    List,
    /// A list whose items become text.
    Words,
    /// A list of references by name; an item may be the name alone.
    References,
    /// Environment variables: a list as in a Pod, or a map by name.
    Variables,
    /// Sources of environment variables: a list as in a Pod, or lists of names by kind.
    Sources,
}

/// The parts of a label selector of Kubernetes.
const OF_SELECTORS: [&str; 2] = ["matchExpressions", "matchLabels"];
/// The sources of a variable that a map of variables may name.
const SOURCES: [&str; 4] = [
    "configMapKeyRef",
    "fieldRef",
    "resourceFieldRef",
    "secretKeyRef",
];

impl Whole {
    /// Returns the kinds of values that it takes.
    pub fn takes(self) -> Kinds {
        match self {
            Self::Map
            | Self::Texts
            | Self::Metadata
            | Self::Secret
            | Self::Selector
            | Self::NeededSelector => Kinds::MAP,
            Self::List | Self::Words | Self::References => Kinds::LIST,
            Self::Variables | Self::Sources => Kinds::MAP | Kinds::LIST,
        }
    }

    /// Describes what it takes.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Map | Self::Selector | Self::NeededSelector => "a map",
            Self::Texts | Self::Secret => "a map of text",
            Self::Metadata => "a map of text without keys that start with `orkestra.orkspace.io/`",
            Self::List => "a list",
            Self::Words => "a list of text",
            Self::References => "a list of names",
            Self::Variables => "a map of text, or a list of `name` and `value`",
            Self::Sources => "a list, or a map with lists of names",
        }
    }

    /// Returns the key of its form in the description of a plan.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Map => "$wholeMap",
            Self::Texts => "$wholeTexts",
            Self::Metadata => "$wholeMetadata",
            Self::Secret => "$wholeSecret",
            Self::Selector => "$wholeSelector",
            Self::NeededSelector => "$wholeNeededSelector",
            Self::List => "$wholeList",
            Self::Words => "$wholeWords",
            Self::References => "$wholeReferences",
            Self::Variables => "$wholeVariables",
            Self::Sources => "$wholeSources",
        }
    }

    /// Converts the value; the outer `None` if the field does not take it, the inner one if there is none.
    #[expect(clippy::option_option, reason = "both cases are the caller's")]
    pub(crate) fn apply(self, value: Node) -> Option<Option<Node>> {
        if value.to_text().trim().is_empty() && !matches!(value, Node::Map(_) | Node::List(_)) {
            return (self != Self::NeededSelector).then_some(None);
        }
        let made = match (self, value) {
            (Self::Map, value @ Node::Map(_)) | (Self::List, value @ Node::List(_)) => value,
            (Self::Texts, Node::Map(map)) => texts(&map, text),
            (Self::Metadata, Node::Map(map)) => {
                if map.keys().any(|key| key.starts_with(names::PREFIX)) {
                    return None;
                }
                texts(&map, text)
            }
            (Self::Secret, Node::Map(map)) => {
                texts(&map, |value| Node::from(BASE64.encode(&*value.to_text())))
            }
            (Self::Selector | Self::NeededSelector, Node::Map(map)) => selector(map),
            (Self::Words, Node::List(items)) => {
                items.iter().map(text_of).collect::<Vec<_>>().into()
            }
            (Self::References, Node::List(items)) => {
                items.iter().map(reference).collect::<Vec<_>>().into()
            }
            (Self::Variables, Node::List(items)) => {
                items.iter().map(variable).collect::<Vec<_>>().into()
            }
            (Self::Variables, Node::Map(map)) => map.iter().map(named).collect::<Vec<_>>().into(),
            (Self::Sources, Node::List(items)) => {
                items.iter().map(source).collect::<Vec<_>>().into()
            }
            (Self::Sources, Node::Map(map)) => {
                map.iter().flat_map(sources).collect::<Vec<_>>().into()
            }
            _ => return None,
        };
        let is_empty = match (self, &made) {
            // As in a manifest, where an empty value may have a meaning.
            (Self::Map | Self::List | Self::Selector | Self::NeededSelector, _) => false,
            (_, Node::Map(map)) => map.is_empty(),
            (_, Node::List(items)) => items.is_empty(),
            _ => false,
        };
        Some((!is_empty).then_some(made))
    }
}

fn text(value: Node) -> Node {
    match value {
        Node::Str(_) => value,
        value => Node::from(&*value.to_text()),
    }
}

fn text_of(value: &Node) -> Node {
    text(value.clone())
}

/// Returns the map with converted values, without those that are missing.
fn texts(map: &Map, convert: fn(Node) -> Node) -> Node {
    let given = map.iter().filter(|(_, value)| **value != Node::Null);
    let made = given.map(|(key, value)| (Key::clone(key), convert(value.clone())));
    Node::Map(made.collect::<Map>())
}

fn selector(map: Map) -> Node {
    if map.keys().any(|key| OF_SELECTORS.contains(&&**key)) {
        return Node::Map(map);
    }
    match texts(&map, text) {
        Node::Map(labels) if labels.is_empty() => Node::Map(labels),
        labels => Node::object([("matchLabels", labels)]),
    }
}

fn reference(item: &Node) -> Node {
    match item {
        Node::Map(_) => item.clone(),
        name => Node::object([("name", text_of(name))]),
    }
}

/// Returns a variable of a list, whose value becomes text.
fn variable(item: &Node) -> Node {
    let Node::Map(map) = item else {
        return item.clone();
    };
    let made = map.iter().map(|(key, value)| {
        let value = match &**key {
            "name" | "value" if *value != Node::Null => text_of(value),
            _ => value.clone(),
        };
        (Key::clone(key), value)
    });
    Node::Map(made.collect::<Map>())
}

/// Returns the variable of a map's entry: its value, or the source of its value.
fn named((name, value): (&Key, &Node)) -> Node {
    let name = ("name", Node::from(&**name));
    match value {
        Node::Map(map) if map.keys().any(|key| SOURCES.contains(&&**key)) => {
            Node::object([name, ("valueFrom", value.clone())])
        }
        Node::Map(map) if map.get("value").is_some() || map.get("valueFrom").is_some() => {
            let mut made = match variable(value) {
                Node::Map(map) => map,
                _ => Map::default(),
            };
            made.insert(Key::from(name.0), name.1);
            Node::Map(made)
        }
        value => Node::object([name, ("value", text_of(value))]),
    }
}

/// Returns a source of a list, whose references may be names alone.
fn source(item: &Node) -> Node {
    let Node::Map(map) = item else {
        return item.clone();
    };
    let made = map.iter().map(|(key, value)| {
        let value = match &**key {
            "configMapRef" | "secretRef" => reference(value),
            _ => value.clone(),
        };
        (Key::clone(key), value)
    });
    Node::Map(made.collect::<Map>())
}

/// Returns the sources of one kind.
fn sources((kind, names): (&Key, &Node)) -> Vec<Node> {
    let names = match names {
        Node::List(names) => &**names,
        Node::Null => &[],
        one => std::slice::from_ref(one),
    };
    let one = |name: &Node| Node::object([(&**kind, reference(name))]);
    names.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_value_gets_the_form_that_kubernetes_has() {
        for (whole, value, expected) in [
            (Whole::Map, r#"{"a":1}"#, r#"{"a":1}"#),
            (
                Whole::Texts,
                r#"{"a":1000000,"b":true,"c":null}"#,
                r#"{"a":"1000000","b":"true"}"#,
            ),
            (Whole::Secret, r#"{"a":"x"}"#, r#"{"a":"eA=="}"#),
            (
                Whole::Selector,
                r#"{"app":1}"#,
                r#"{"matchLabels":{"app":"1"}}"#,
            ),
            (
                Whole::Selector,
                r#"{"matchLabels":{"app":"a"}}"#,
                r#"{"matchLabels":{"app":"a"}}"#,
            ),
            (Whole::Words, "[1]", r#"["1"]"#),
            (
                Whole::References,
                r#"["a",{"name":"b"}]"#,
                r#"[{"name":"a"},{"name":"b"}]"#,
            ),
            (
                Whole::Variables,
                r#"{"B":2,"A":{"secretKeyRef":{"name":"s","key":"k"}}}"#,
                r#"[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}},{"name":"B","value":"2"}]"#,
            ),
            (
                Whole::Variables,
                r#"[{"name":"A","value":1}]"#,
                r#"[{"name":"A","value":"1"}]"#,
            ),
            (
                Whole::Sources,
                r#"{"secretRef":["a"],"configMapRef":["b"]}"#,
                r#"[{"configMapRef":{"name":"b"}},{"secretRef":{"name":"a"}}]"#,
            ),
        ] {
            assert_eq!(
                whole.apply(node(value)),
                Some(Some(node(expected))),
                "{value}"
            );
        }
    }

    #[test]
    fn nothing_leaves_the_field_out_and_another_type_is_refused() {
        for value in ["null", r#""""#, r#"" ""#, "{}"] {
            assert_eq!(Whole::Texts.apply(node(value)), Some(None), "{value}");
        }
        assert_eq!(Whole::Words.apply(node("[]")), Some(None));
        assert_eq!(Whole::Selector.apply(node("null")), Some(None));
        assert_eq!(Whole::NeededSelector.apply(node("null")), None);
        let all = Whole::NeededSelector.apply(node("{}"));
        assert_eq!(all, Some(Some(node("{}"))));
        assert_eq!(Whole::List.apply(node("[]")), Some(Some(node("[]"))));
        for (whole, value) in [
            (Whole::Texts, r#""a: b""#),
            (Whole::Map, "[1]"),
            (Whole::List, r#"{"a":1}"#),
            (Whole::Metadata, r#"{"orkestra.orkspace.io/owner-uid":"x"}"#),
        ] {
            assert_eq!(whole.apply(node(value)), None, "{value}");
        }
    }
}
