//! The definitions that `schema` of entries declares.
//!
//! ```text
//!  schema: spec, types, status ── simple ──► openAPIV3Schema ─┐
//!  operatorBox.status ── status ──► types of its fields ──────┴──► CustomResourceDefinition, a version for each entry
//! ```

mod document;
mod simple;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use self::{
    document::{CrdNames, add_status, crd_document, root_of, version_document},
    simple::object_schema,
};
use super::{CrdShape, Schemas, check::check_crd};
use crate::{GroupKind, kinds};
use orkestra_language::{
    api::{CrdEntry, EntrySchema, KatalogSpec},
    diagnostics::{FieldPath, Severity},
};
use orkestra_object::value::{Key, Node};

/// The default version of a kind.
const VERSION: &str = "v1alpha1";

/// A problem of a `schema`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaProblem {
    /// The field.
    pub path: FieldPath,
    /// The message.
    pub message: String,
    /// The fix.
    pub hint: Option<String>,
}

impl SchemaProblem {
    fn new(path: &FieldPath, message: impl Into<String>) -> Self {
        Self {
            path: path.clone(),
            message: message.into(),
            hint: None,
        }
    }
}

/// A definition that entries of a Katalog declare with `schema`.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedCrd {
    /// The kind.
    pub kind: GroupKind,
    /// The entries, each with a version.
    pub entries: Vec<String>,
    /// The `CustomResourceDefinition`.
    pub crd: Value,
}

/// Returns the definitions that the entries of a Katalog declare, by kind. The same Katalog gives the same definitions.
///
/// Entries with problems are included as far as they can be read; compilation reports the problems.
pub fn generated_crds(spec: &KatalogSpec) -> Vec<GeneratedCrd> {
    let mut kinds: BTreeMap<GroupKind, Vec<(&str, &CrdEntry, &EntrySchema)>> = BTreeMap::new();
    for (name, entry) in &spec.crds {
        if let (Some(schema), Some(kind)) = (&entry.schema, kind_of(entry)) {
            kinds.entry(kind).or_default().push((name, entry, schema));
        }
    }
    let kinds = kinds.into_iter();
    kinds
        .map(|(kind, entries)| generate(kind, &entries))
        .collect()
}

impl Schemas {
    /// Returns the same with the definitions that the entries of a Katalog declare with `schema`.
    #[must_use]
    pub fn with_generated(&self, spec: &KatalogSpec) -> Self {
        let mut all = self.clone();
        for generated in generated_crds(spec) {
            // What cannot be read is reported where it is compiled.
            if let Ok(shape) = CrdShape::from_crd(&Node::from(&generated.crd)) {
                for name in &generated.entries {
                    all.insert_file(name, shape.clone());
                }
            }
        }
        all
    }
}

/// Returns the problems of the `schema` of an entry, with paths relative to the entry.
pub fn schema_problems(entry: &CrdEntry) -> Vec<SchemaProblem> {
    let (Some(schema), Some(kind)) = (&entry.schema, kind_of(entry)) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let at = FieldPath::root().field("schema");
    if schema.open_api_v3_schema.is_some() {
        for (name, is_set) in [
            ("spec", !schema.spec.is_empty()),
            ("types", !schema.types.is_empty()),
            ("validation", !schema.validation.is_empty()),
        ] {
            if is_set {
                let message = format!("`{name}` and `openAPIV3Schema` are mutually exclusive");
                problems.push(SchemaProblem::new(&at.field(name), message));
            }
        }
    }
    complete_schema(entry, schema, &mut problems);
    if !problems.is_empty() {
        return problems;
    }
    let generated = generate(kind, &[("", entry, schema)]);
    let found = check_crd(&Node::from(&generated.crd));
    let errors = found
        .into_iter()
        .filter(|one| one.severity == Severity::Error);
    let problem = |one: orkestra_language::diagnostics::Diagnostic| {
        let path = one.path.to_string();
        let place = path
            .split_once("openAPIV3Schema.")
            .map_or(&*path, |(_, place)| place);
        let column = path.contains("additionalPrinterColumns");
        SchemaProblem {
            path: if column {
                at.field("printerColumns")
            } else {
                at.clone()
            },
            message: format!("{place}: {}", one.message),
            hint: one.hint,
        }
    };
    errors.map(problem).collect()
}

/// Returns the kind that an entry names.
fn kind_of(entry: &CrdEntry) -> Option<GroupKind> {
    let types = entry.api_types.as_ref()?;
    Some(GroupKind {
        group: Key::from(types.group.as_deref().filter(|group| !group.is_empty())?),
        kind: Key::from(types.kind.as_deref().filter(|kind| !kind.is_empty())?),
    })
}

/// Returns the version of an entry.
fn version_of(entry: &CrdEntry) -> &str {
    let types = entry.api_types.as_ref();
    types
        .and_then(|types| types.version.as_deref())
        .unwrap_or(VERSION)
}

fn generate(kind: GroupKind, entries: &[(&str, &CrdEntry, &EntrySchema)]) -> GeneratedCrd {
    let newest = entries
        .iter()
        .max_by_key(|(_, entry, _)| rank(version_of(entry)));
    let chosen = entries
        .iter()
        .find(|(_, _, schema)| schema.storage == Some(true));
    let stored = chosen.or(newest).map(|(_, entry, _)| version_of(entry));
    let versions = entries.iter().map(|(_, entry, schema)| {
        let root = complete_schema(entry, schema, &mut Vec::new());
        let columns = columns(schema, &root);
        let version = version_of(entry);
        version_document(version, Some(version) == stored, &root, columns)
    });
    let versions: Vec<Value> = versions.collect();
    let mut types = entries
        .iter()
        .filter_map(|(_, entry, _)| entry.api_types.as_ref());
    let plural = types.find_map(|types| types.plural.clone());
    let names = entries
        .iter()
        .find_map(|(_, _, schema)| schema.names.clone());
    let names = names.unwrap_or_default();
    let lower = kind.kind.to_lowercase();
    let names = CrdNames {
        group: kind.group.to_string(),
        kind: kind.kind.to_string(),
        plural: plural.unwrap_or_else(|| kinds::guess_plural(&lower)),
        singular: names.singular.unwrap_or(lower),
        short_names: names.short_names,
        categories: names.categories,
        is_namespaced: entries
            .iter()
            .all(|(_, entry, _)| entry.namespaced != Some(false)),
    };
    GeneratedCrd {
        entries: entries
            .iter()
            .map(|(name, _, _)| (*name).to_owned())
            .collect(),
        crd: crd_document(&names, &versions),
        kind,
    }
}

/// Returns the schema of complete objects.
fn complete_schema(
    entry: &CrdEntry,
    schema: &EntrySchema,
    problems: &mut Vec<SchemaProblem>,
) -> Value {
    let at = FieldPath::root().field("schema");
    let map = |fields: &BTreeMap<String, Node>| -> Value {
        let fields = fields
            .iter()
            .map(|(name, field)| (name.clone(), field.to_json()));
        Value::Object(fields.collect())
    };
    let types = map(&schema.types);
    let mut root = if let Some(complete) = &schema.open_api_v3_schema {
        complete.to_json()
    } else {
        let mut spec = object_schema(&map(&schema.spec), &types, &at.field("spec"), problems);
        let rules = schema.validation.iter().map(|rule| {
            let mut made = json!({ "rule": rule.rule });
            if let Some(message) = &rule.message {
                made["message"] = json!(message);
            }
            made
        });
        let rules: Vec<Value> = rules.collect();
        if !rules.is_empty() {
            spec["x-kubernetes-validations"] = json!(rules);
        }
        root_of(&spec)
    };
    if let Some(description) = &schema.description {
        root["description"] = json!(description);
    }
    if root["properties"].as_object().is_none() {
        root["properties"] = json!({});
    }
    let declared = object_schema(&map(&schema.status), &types, &at.field("status"), problems);
    let written = status::written(entry, &root["properties"]["spec"]);
    let mut fields = written;
    for (name, field) in declared["properties"].as_object().into_iter().flatten() {
        fields.insert(name.clone(), field.clone());
    }
    add_status(&mut root, fields);
    root
}

/// Returns the declared printer columns.
fn columns(schema: &EntrySchema, root: &Value) -> Vec<Value> {
    let columns = schema.printer_columns.iter().map(|column| {
        let path = column.json_path.trim_start_matches('.').split('.');
        let field = path.fold(root, |schema, name| &schema["properties"][name]);
        let of_field = field["type"]
            .as_str()
            .filter(|type_| ["string", "integer", "number", "boolean"].contains(type_));
        let mut made = Map::new();
        made.insert("name".to_owned(), json!(column.name));
        made.insert("jsonPath".to_owned(), json!(column.json_path));
        let type_ = column.type_.as_deref().or(of_field).unwrap_or("string");
        made.insert("type".to_owned(), json!(type_));
        if let Some(description) = &column.description {
            made.insert("description".to_owned(), json!(description));
        }
        if let Some(priority) = column.priority {
            made.insert("priority".to_owned(), json!(priority));
        }
        Value::Object(made)
    });
    columns.collect()
}

/// Returns the rank of a version: stable versions before beta and alpha, then by number.
///
/// Source: Kubernetes, "Version priority".
fn rank(version: &str) -> (u8, u64, u64) {
    let Some(rest) = version.strip_prefix('v') else {
        return (0, 0, 0);
    };
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    if let Some(minor) = rest.strip_prefix("beta") {
        (2, number(major), number(minor))
    } else if let Some(minor) = rest.strip_prefix("alpha") {
        (1, number(major), number(minor))
    } else {
        (3, number(major), 0)
    }
}
