//! The associative lists of an object: lists whose items some of their fields identify, such as `containerPort` and `protocol`.
//!
//! The schema of the kind says which lists these are, and which value an absent key has. Patches are merged by these keys, and
//! two items with the same keys are refused, as the API server refuses them.
//!
//! Source: Kubernetes, "Server-Side Apply", merge strategy: `x-kubernetes-list-map-keys`.

use std::collections::BTreeMap;

use orkestra_language::schema::{NestedSchema, Schema};
use orkestra_object::value::{Key, Node};

/// The associative lists at and below a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListKeys {
    /// The fields that identify an item, each with its value where it is absent; empty for other values.
    keys: Vec<ListKey>,
    fields: BTreeMap<Key, ListKeys>,
    /// The items of a list, or the values of a map with the user's own keys.
    each: Option<Box<ListKeys>>,
}

/// A field that identifies the items of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListKey {
    /// The name of the field.
    pub name: Key,
    /// The value that the API server assumes if the field is absent.
    pub default: Option<Node>,
}

/// Two items of a list with the same keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateItems {
    /// The path of the second item: `spec.ports[1]`.
    pub path: String,
    /// The names of the keys; their values may be secret.
    pub keys: Vec<String>,
}

impl std::fmt::Display for DuplicateItems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(|key| format!("`{key}`")).collect();
        write!(
            f,
            "`{}` has the same {} as an item before it",
            self.path,
            keys.join(" and ")
        )
    }
}

impl ListKeys {
    /// Returns the associative lists of a value with this schema.
    #[cfg(test)]
    pub(crate) fn of_value(node: &Node, schema: Schema<'_>) -> Self {
        let mut found = Self::default();
        found.add_value(node, schema);
        found.prune();
        found
    }

    /// Returns the keys of a list with this schema; empty if it is not associative.
    pub fn of_list(schema: Schema<'_>) -> Vec<ListKey> {
        let keys = schema.list_keys().into_iter();
        keys.map(|(name, default)| ListKey {
            name: Key::from(name),
            default: default.cloned(),
        })
        .collect()
    }

    /// Adds the lists of a value.
    pub fn add_value(&mut self, node: &Node, schema: Schema<'_>) {
        match node {
            Node::Map(fields) => {
                for (key, below) in fields.iter() {
                    if let NestedSchema::Schema(schema) = schema.field(key) {
                        self.field_mut(key).add_value(below, schema);
                    }
                }
            }
            Node::List(items) => {
                if let Some((each, schema)) = self.list(schema) {
                    items.iter().for_each(|item| each.add_value(item, schema));
                }
            }
            _ => {}
        }
    }

    /// Adds everything that the schema describes, without recursive definitions.
    pub fn add_all<'s>(&mut self, schema: Schema<'s>, around: &mut Vec<Schema<'s>>) {
        if around.iter().any(|outer| outer.is_at(&schema)) {
            return;
        }
        around.push(schema);
        if let Some((each, schema)) = self.list(schema) {
            each.add_all(schema, around);
        }
        for name in schema.fields() {
            if let NestedSchema::Schema(below) = schema.field(name) {
                self.field_mut(&Key::from(name)).add_all(below, around);
            }
        }
        around.pop();
    }

    /// Returns the items of a list, with their schema, after adding its keys.
    pub fn list<'s>(&mut self, schema: Schema<'s>) -> Option<(&mut Self, Schema<'s>)> {
        let NestedSchema::Schema(item) = schema.item() else {
            return None;
        };
        self.keys = Self::of_list(schema);
        Some((&mut **self.each.get_or_insert_default(), item))
    }

    /// Returns the lists below a field, to add some.
    pub fn field_mut(&mut self, key: &Key) -> &mut Self {
        self.fields.entry(Key::clone(key)).or_default()
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.fields.is_empty() && self.each.is_none()
    }

    /// Removes the parts without an associative list.
    pub fn prune(&mut self) {
        self.fields.values_mut().for_each(Self::prune);
        self.fields.retain(|_, below| !below.is_empty());
        if let Some(each) = &mut self.each {
            each.prune();
        }
        self.each = self.each.take().filter(|each| !each.is_empty());
    }

    /// Returns the lists below a field.
    pub fn field(&self, key: &str) -> Option<&Self> {
        self.fields.get(key)
    }

    /// Returns the lists inside of an item.
    pub fn each(&self) -> Option<&Self> {
        self.each.as_deref()
    }

    /// True if the value is an associative list.
    pub fn is_associative(&self) -> bool {
        !self.keys.is_empty()
    }

    /// True if the keys identify both items as the same.
    pub fn is_same(&self, one: &Node, other: &Node) -> bool {
        let key = |item: &Node| identity(&self.keys, |name| item.get(name).cloned());
        key(one).is_some_and(|one| key(other) == Some(one))
    }

    /// Returns what identifies an item, for messages: `name=web`, `containerPort=80,protocol=TCP`.
    pub fn name_of(&self, item: &Node) -> String {
        let keys = self.keys.iter().filter_map(|key| {
            let value = item.get(&key.name).or(key.default.as_ref())?;
            Some(format!("{}={}", key.name, value.to_text()))
        });
        keys.collect::<Vec<_>>().join(",")
    }

    /// Returns the first item of an associative list of `object` that has the same keys as one before it.
    pub fn duplicate(&self, object: &Node) -> Option<DuplicateItems> {
        self.duplicate_at(object, "")
    }

    fn duplicate_at(&self, node: &Node, at: &str) -> Option<DuplicateItems> {
        match node {
            Node::Map(map) => self.fields.iter().find_map(|(key, below)| {
                let dot = if at.is_empty() { "" } else { "." };
                below.duplicate_at(map.get(key)?, &format!("{at}{dot}{key}"))
            }),
            Node::List(items) => {
                let mut seen = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let key = identity(&self.keys, |name| item.get(name).cloned());
                    if key.as_ref().is_some_and(|key| seen.contains(key)) {
                        return Some(DuplicateItems {
                            path: format!("{at}[{index}]"),
                            keys: self.keys.iter().map(|key| key.name.to_string()).collect(),
                        });
                    }
                    seen.extend(key);
                }
                let each = self.each()?;
                let mut items = items.iter().enumerate();
                items.find_map(|(index, item)| each.duplicate_at(item, &format!("{at}[{index}]")))
            }
            _ => None,
        }
    }
}

/// Returns the values of the keys of an item; `None` if one is unknown, or if the list is not associative.
pub fn identity<T>(keys: &[ListKey], value: impl Fn(&str) -> Option<T>) -> Option<Vec<T>>
where
    T: From<Node>,
{
    let of = |key: &ListKey| value(&key.name).or_else(|| Some(T::from(key.default.clone()?)));
    let values: Option<Vec<T>> = keys.iter().map(of).collect();
    values.filter(|values| !values.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use orkestra_language::schema::BuiltIn;

    fn node(text: &str) -> Node {
        serde_json::from_str(text).unwrap()
    }

    fn duplicate(group: &str, kind: &str, object: &str) -> Option<String> {
        let built_in = BuiltIn::new();
        let schema = built_in.kind(group, "v1", kind).unwrap();
        let object = node(object);
        let keys = ListKeys::of_value(&object, schema);
        keys.duplicate(&object).map(|found| found.to_string())
    }

    #[test]
    fn items_with_the_same_keys_are_found_and_an_absent_key_has_its_default() {
        for (ports, found) in [
            (
                r#"[{"port":80,"name":"a"},{"port":80,"protocol":"TCP","name":"b"}]"#,
                Some("`spec.ports[1]` has the same `port` and `protocol` as an item before it"),
            ),
            (r#"[{"port":53},{"port":53,"protocol":"UDP"}]"#, None),
            (r#"[{"name":"a"},{"name":"a"}]"#, None),
        ] {
            let object = format!(r#"{{"spec":{{"ports":{ports}}}}}"#);
            assert_eq!(
                duplicate("", "Service", &object).as_deref(),
                found,
                "{ports}"
            );
        }
        let env = r#"{"spec":{"template":{"spec":{"containers":[{"name":"a"},{"name":"b","env":[{"name":"X"},{"name":"X"}]}]}}}}"#;
        assert_eq!(
            duplicate("apps", "Deployment", env).as_deref(),
            Some(
                "`spec.template.spec.containers[1].env[1]` has the same `name` as an item before it"
            )
        );
        // Owned as a whole: two may be equal.
        let rules = r#"{"rules":[{"verbs":["get"]},{"verbs":["get"]}]}"#;
        assert_eq!(duplicate("rbac.authorization.k8s.io", "Role", rules), None);
    }
}
