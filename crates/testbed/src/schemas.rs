//! The schemas of Kubernetes' own kinds, for the compiler of `orkestra-language`: read from a genuine API server, without the parts
//! that the compiler does not read.
//!
//! ```text
//! /openapi/v3/… ─► definitions ── prune ──► header (one line of JSON) and the definitions, deflated by package
//! ```
//!
//! The file format is described in the code that reads it: `crates/language/src/schema/built_in.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::{Compression, write::DeflateEncoder};
use serde_json::{Map, Value, json};
use testbed::{ControlPlane, Options};

const DEFINITIONS: &str = "#/components/schemas/";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const KIND: &str = "x-kubernetes-group-version-kind";

/// Fields that the documents require but the server does not: their zero value is valid, or the server sets them.
const NOT_REQUIRED: [(&str, &str); 13] = [
    ("api.apps.v1.ControllerRevision", "revision"),
    (
        "api.batch.v1.PodFailurePolicyOnPodConditionsPattern",
        "status",
    ),
    ("api.core.v1.Event", "metadata"),
    ("api.core.v1.HTTPHeader", "value"),
    ("api.core.v1.ISCSIPersistentVolumeSource", "lun"),
    ("api.core.v1.ISCSIVolumeSource", "lun"),
    ("api.core.v1.LimitRangeSpec", "limits"),
    ("api.core.v1.SleepAction", "seconds"),
    ("api.core.v1.Sysctl", "value"),
    ("api.discovery.v1.EndpointSlice", "endpoints"),
    ("api.rbac.v1.RoleRef", "apiGroup"),
    ("api.scheduling.v1.PriorityClass", "value"),
    ("api.storage.v1.CSINodeSpec", "drivers"),
];

/// The parts of the server's documents that are kept.
#[derive(Default)]
struct Found {
    /// Pruned definitions by name.
    definitions: BTreeMap<String, Value>,
    /// Names of definitions by group, version and kind.
    named: BTreeMap<[String; 3], String>,
    /// Plural and scope of the kinds that can be listed.
    listed: BTreeMap<[String; 3], (String, bool)>,
}

/// Starts a control plane, reads its documents and writes the file.
pub(crate) fn write(file: &Path) -> Result<()> {
    let cluster = ControlPlane::start(Options::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (version, found) = runtime.block_on(async {
        let client = cluster.admin().client()?;
        let get = async |path: &str| -> Result<Value> {
            let request = http::Request::get(path).body(Vec::new())?;
            Ok(client.request(request).await?)
        };
        let version = get("/version").await?["gitVersion"].clone();
        let mut found = Found::default();
        let root = get("/openapi/v3").await?;
        for (path, entry) in root["paths"].as_object().context("no paths")? {
            // Documents of a group without a version describe discovery.
            if !path.starts_with("api") || !path.split('/').next_back().is_some_and(is_version) {
                continue;
            }
            let url = entry["serverRelativeURL"].as_str().context("no URL")?;
            found.take_in(&get(url).await?);
        }
        anyhow::Ok((version, found))
    })?;
    std::fs::write(file, found.pack(&version)?)?;
    let size = std::fs::metadata(file)?.len();
    eprintln!("testbed: {} of {version}: {size} bytes", file.display());
    Ok(())
}

fn is_version(name: &str) -> bool {
    name.starts_with('v') && name[1..].starts_with(|c: char| c.is_ascii_digit())
}

fn group_version_kind(of: &Value) -> [String; 3] {
    ["group", "version", "kind"].map(|key| of[key].as_str().unwrap_or_default().to_owned())
}

impl Found {
    /// Adds the document of one group version.
    fn take_in(&mut self, document: &Value) {
        let definitions = document["components"]["schemas"].as_object();
        for (name, schema) in definitions.into_iter().flatten() {
            for kind in schema[KIND].as_array().into_iter().flatten() {
                self.named.insert(group_version_kind(kind), short(name));
            }
            let mut kept = pruned(schema);
            if let Some(required) = kept.get_mut("required").and_then(Value::as_array_mut) {
                required.retain(|field| {
                    let is_it = |(definition, known): &(&str, &str)| {
                        short(name) == *definition && field == known
                    };
                    !NOT_REQUIRED.iter().any(is_it)
                });
            }
            self.definitions.insert(short(name), kept);
        }
        for (path, operations) in document["paths"].as_object().into_iter().flatten() {
            for operation in operations.as_object().into_iter().flatten() {
                if operation.1["x-kubernetes-action"] != "list" {
                    continue;
                }
                let kind = group_version_kind(&operation.1[KIND]);
                let plural = path.rsplit('/').next().unwrap_or_default().to_owned();
                let namespaced = path.contains("/{namespace}/");
                // A namespaced kind is also listed across all namespaces.
                let known = self.listed.entry(kind).or_insert((plural, false));
                known.1 |= namespaced;
            }
        }
    }

    /// Returns the file's contents: the header, then each package that the listed kinds need.
    fn pack(&self, version: &Value) -> Result<Vec<u8>> {
        let mut kinds = Vec::new();
        let mut needed = BTreeSet::new();
        for (kind, (plural, namespaced)) in &self.listed {
            let name = self.named.get(kind).context("a kind without definition")?;
            self.need(name, &mut needed);
            let [group, version, kind] = kind;
            kinds.push(json!([group, version, kind, plural, namespaced, name]));
        }
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        for name in &needed {
            let (package, word) = name.rsplit_once('.').context("a name without package")?;
            let text = texts.entry(package).or_default();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{word} {}", self.definitions[name]);
        }
        let mut packages = Vec::new();
        let mut packed = Vec::new();
        for (package, text) in texts {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(text.as_bytes())?;
            let bytes = encoder.finish()?;
            packages.push(json!([package, bytes.len()]));
            packed.extend(bytes);
        }
        let header = json!({ "kubernetes": version, "kinds": kinds, "packages": packages });
        Ok([header.to_string().as_bytes(), b"\n", &packed].concat())
    }

    /// Adds a definition and those that it refers to.
    fn need(&self, name: &str, needed: &mut BTreeSet<String>) {
        if let Some(schema) = self.definitions.get(name)
            && needed.insert(name.to_owned())
        {
            visit_references(schema, &mut |name| self.need(name, needed));
        }
    }
}

fn visit_references(schema: &Value, visit: &mut dyn FnMut(&str)) {
    if let Some(name) = schema["$ref"].as_str() {
        visit(name);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(below) = schema.get(below) {
            visit_references(below, visit);
        }
    }
    for (_, field) in schema["properties"].as_object().into_iter().flatten() {
        visit_references(field, visit);
    }
}

/// True if a default only says that the server has a value of the type: it is no value that a user would know.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Returns a definition's name in the form that references in the file use.
fn short(name: &str) -> String {
    let name = name.strip_prefix(DEFINITIONS).unwrap_or(name);
    name.strip_prefix("io.k8s.").unwrap_or(name).to_owned()
}

/// Returns a schema without the parts that the compiler does not read. An object schema without properties accepts any field. The
/// file states that explicitly, because the same schema means the opposite in a CRD.
fn pruned(schema: &Value) -> Value {
    let mut kept = Map::new();
    let only = |list: &Value| match list.as_array().map(Vec::as_slice) {
        Some([one]) => Some(pruned(one)),
        _ => None,
    };
    if let Some(one) = only(&schema["allOf"]) {
        return one;
    }
    for (key, value) in schema.as_object().into_iter().flatten() {
        let value = match key.as_str() {
            "$ref" => Value::from(short(value.as_str().unwrap_or_default())),
            "items" | "additionalProperties" if value.is_object() => pruned(value),
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields = fields.map(|(name, schema)| (name.clone(), pruned(schema)));
                Value::Object(fields.collect())
            }
            "oneOf" => {
                let types = value.as_array().into_iter().flatten();
                kept.insert(
                    "type".to_owned(),
                    types.map(|one| one["type"].clone()).collect(),
                );
                continue;
            }
            "type"
            | "enum"
            | "required"
            | "additionalProperties"
            | "x-kubernetes-list-map-keys" => value.clone(),
            // Lists by key are recognised by their keys. All lists other than sets and lists by key are atomic.
            LIST_TYPE if value == "set" => value.clone(),
            "default" if !is_zero(value) => value.clone(),
            _ => continue,
        };
        kept.insert(key.clone(), value);
    }
    let says = |key: &str| kept.contains_key(key);
    if schema["type"] == "object" && !says("properties") && !says("additionalProperties") {
        kept.insert(
            "x-kubernetes-preserve-unknown-fields".to_owned(),
            Value::Bool(true),
        );
    }
    Value::Object(kept)
}
