//! Checks custom resources like the API server when they are created.
//!
//! ```text
//!  object ── defaults, nulls ──► complete object ── structure ──► types, required and unknown fields, bounds, formats, duplicates
//!                                       │
//!                                       └──── rules ──► `x-kubernetes-validations`, unless the structure is invalid
//! ```
//!
//! Source: Kubernetes, "Extend the Kubernetes API with `CustomResourceDefinitions`", and the package `apiextensions-apiserver`.

mod format;
mod lists;
mod metadata;
mod rules;
mod structure;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub(crate) use self::{
    format::KNOWN as KNOWN_FORMATS,
    rules::{RuleProblem, check_rule},
};
use self::{rules::Rules, structure::Structure};
use super::{CrdShape, CrdVersion};
use orkestra_language::{
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    schema::{BuiltIn, Schema},
};
use orkestra_object::value::{Map, Node};

impl CrdShape {
    /// Checks a custom resource of one of the definition's versions like the API server when the object is created, with strict
    /// validation of fields, the default of `kubectl`.
    ///
    /// Errors have the code [`Code::RefusedResource`]. A rule that cannot be evaluated here is a warning,
    /// [`Code::RuleNotChecked`]: it neither passed nor failed.
    ///
    /// ```
    /// use orkestra_plan::definitions::CrdShape;
    /// use orkestra_object::value::Node;
    ///
    /// let crd = serde_json::json!({
    ///     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    ///     "metadata": { "name": "ponds.water.example" },
    ///     "spec": {
    ///         "group": "water.example", "scope": "Namespaced", "names": { "kind": "Pond", "plural": "ponds" },
    ///         "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
    ///             "type": "object",
    ///             "properties": { "spec": { "type": "object", "properties": { "depth": { "type": "integer", "minimum": 1 } } } },
    ///         } } }],
    ///     },
    /// });
    /// let shape = CrdShape::from_crd(&Node::from(&crd))?;
    /// let pond = serde_json::json!({
    ///     "apiVersion": "water.example/v1", "kind": "Pond", "metadata": { "name": "north" }, "spec": { "dept": 3 },
    /// });
    /// let problems = shape.check_object(&Node::from(&pond));
    /// assert_eq!(problems.0[0].path.to_string(), "spec.dept");
    /// assert_eq!(problems.0[0].hint.as_deref(), Some("did you mean `depth`?"));
    /// # Ok::<(), orkestra_plan::definitions::NotACrd>(())
    /// ```
    pub fn check_object(&self, object: &Node) -> Diagnostics {
        let Some(served) = self.version_of(object) else {
            let version = object.get("apiVersion").and_then(Node::as_str);
            let at = FieldPath::root().field("apiVersion");
            let message = format!(
                "{} is not served as `{}`",
                self.group_kind(),
                version.unwrap_or_default()
            );
            let refused = Diagnostic::error(Code::RefusedResource, at, message);
            let hint = format!("served versions: {}", self.served().join(", "));
            return refused.hint(hint).into();
        };
        served.check(object)
    }

    /// Returns a custom resource as the API server completes it when it is created: with the defaults of its version.
    pub fn completed(&self, object: &Node) -> Node {
        let version = self.version_of(object);
        version.map_or_else(|| object.clone(), |version| version.stored(object))
    }

    /// Returns the served version of an object.
    fn version_of(&self, object: &Node) -> Option<&CrdVersion> {
        let api_version = object.get("apiVersion").and_then(Node::as_str)?;
        let name = api_version.strip_prefix(&*self.group)?.strip_prefix('/')?;
        self.version(name).filter(|version| version.served)
    }
}

impl CrdVersion {
    /// Checks a custom resource of this version.
    fn check(&self, object: &Node) -> Diagnostics {
        let object = self.stored(object);
        let mut found = Diagnostics::default();
        metadata::check(&object, &mut found);
        if *self.schema == Node::Null {
            return found;
        }
        let built_in = BuiltIn::new();
        let schema = Schema::of_objects(&self.schema, Some(&built_in));
        let mut structure = Structure::new(&mut found);
        structure.check(&schema, &object, &FieldPath::root());
        metadata::check_declared(&self.schema, &object, &mut structure);
        found.cap();
        // As the API server: rules may rely on the types of the fields.
        if !found.has_errors() {
            let mut rules = Rules::default();
            rules.check(&self.schema, &object, &FieldPath::root(), true);
            found.extend(rules.found);
            found.cap();
        }
        found
    }

    /// Returns the object as the API server completes it: with defaults, without nulls where null is not valid, and without the
    /// status, which a creation cannot set if there is a status subresource.
    fn stored(&self, object: &Node) -> Node {
        let mut object = object.clone();
        if let Node::Map(map) = &mut object {
            if self.status {
                map.remove("status");
            }
            map.get_mut("metadata").into_iter().for_each(without_nulls);
        }
        self.set_defaults(&mut object);
        drop_nulls(&self.schema, &mut object);
        object
    }
}

/// Checks a default of a schema: the value must be valid for it, and have no unknown fields.
pub(crate) fn check_default(schema: &Node, value: &Node, at: &FieldPath) -> Diagnostics {
    let mut found = Diagnostics::default();
    let mut structure = Structure::new(&mut found);
    structure.check(&Schema::of_part(schema), value, at);
    found
}

/// Removes null fields that the schema does not allow. Those with a default were set before.
///
/// Recursion depth is that of `object`, which is bounded.
fn drop_nulls(schema: &Node, value: &mut Node) {
    match value {
        Node::Map(map) => {
            let schema_of = |key: &str| {
                let properties = schema.get("properties").and_then(Node::as_map);
                let declared = properties.and_then(|all| all.get(key));
                declared.or_else(|| schema.get("additionalProperties"))
            };
            let keys: Vec<_> = map.keys().cloned().collect();
            for key in keys {
                let Some(below) = schema_of(&key) else {
                    continue;
                };
                if map.get(&key) == Some(&Node::Null) {
                    if !flag(below, "nullable") {
                        map.remove(&key);
                    }
                } else if let Some(value) = map.get_mut(&key) {
                    drop_nulls(below, value);
                }
            }
        }
        Node::List(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| drop_nulls(schema, item));
            }
        }
        _ => {}
    }
}

/// Removes all null fields.
fn without_nulls(value: &mut Node) {
    if let Node::Map(map) = value {
        let keys: Vec<_> = map.keys().cloned().collect();
        for key in keys {
            match map.get_mut(&key) {
                Some(Node::Null) => {
                    map.remove(&key);
                }
                Some(below) => without_nulls(below),
                None => {}
            }
        }
    }
}

/// True if a keyword of a schema is `true`.
fn flag(schema: &Node, keyword: &str) -> bool {
    schema.get(keyword).and_then(Node::as_bool) == Some(true)
}

/// Returns the texts of a list.
pub(crate) fn words_of(list: Option<&Node>) -> BTreeSet<&str> {
    let list = list.and_then(Node::as_list).unwrap_or_default();
    list.iter().filter_map(Node::as_str).collect()
}

/// Returns the fields of a map in a schema, such as `properties`.
pub(crate) fn entries<'n>(
    schema: &'n Node,
    keyword: &str,
) -> impl Iterator<Item = (&'n str, &'n Node)> {
    let map = schema.get(keyword).and_then(Node::as_map);
    map.into_iter()
        .flat_map(Map::iter)
        .map(|(key, node)| (key.as_str(), node))
}
