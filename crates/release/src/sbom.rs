//! The software bill of materials: the crates that are linked into the binary.
//!
//! Source: `CycloneDX` 1.6 JSON; package URL specification, type `cargo`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::Moment;

/// The media type of the document.
pub const MEDIA_TYPE: &str = "application/vnd.cyclonedx+json";

/// Why the bill cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SbomError {
    /// `cargo metadata` printed something else.
    #[error("`cargo metadata` lists no package {0}")]
    NoPackage(String),
}

/// Returns the bill of a package, from what `cargo metadata` prints and the text of `Cargo.lock`. Dependencies of builds and tests
/// are not part of the binary, and are left out.
///
/// # Errors
/// [`SbomError::NoPackage`].
pub fn sbom(
    metadata: &Value,
    lock: &str,
    package: &str,
    moment: Moment,
) -> Result<Value, SbomError> {
    let packages: BTreeMap<&str, &Value> = list(&metadata["packages"])
        .filter_map(|one| Some((one["id"].as_str()?, one)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"]["nodes"])
        .filter_map(|one| Some((one["id"].as_str()?, one)))
        .collect();
    let is_root = |(id, one): &(&&str, &&Value)| {
        one["name"] == package && list(&metadata["workspace_members"]).any(|member| member == **id)
    };
    let root = packages.iter().find(is_root).map(|(id, _)| *id);
    let root = root.ok_or_else(|| SbomError::NoPackage(package.to_owned()))?;
    let sums = checksums(lock);
    let mut linked = BTreeSet::new();
    let mut left = vec![root];
    while let Some(id) = left.pop() {
        if linked.insert(id) {
            left.extend(
                nodes
                    .get(id)
                    .into_iter()
                    .flat_map(|node| dependencies(node)),
            );
        }
    }
    let component = |id: &&str| packages.get(*id).map(|package| component(package, &sums));
    let graph = linked.iter().filter_map(|id| {
        let names = nodes
            .get(id)
            .into_iter()
            .flat_map(|node| dependencies(node));
        let names: BTreeSet<String> = names
            .filter_map(|one| packages.get(one).map(|one| purl(one)))
            .collect();
        Some(json!({ "ref": purl(packages.get(id)?), "dependsOn": names }))
    });
    let mut components: Vec<Value> = linked
        .iter()
        .filter(|id| **id != root)
        .filter_map(component)
        .collect();
    let mut graph: Vec<Value> = graph.collect();
    components.sort_by_key(|one| one["bom-ref"].to_string());
    graph.sort_by_key(|one| one["ref"].to_string());
    let mut subject = component(&root).unwrap_or_default();
    subject["type"] = "application".into();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "timestamp": moment.text(), "component": subject },
        "components": components,
        "dependencies": graph,
    }))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The packages that a package links.
fn dependencies(node: &Value) -> impl Iterator<Item = &str> {
    let is_linked = |one: &&Value| list(&one["dep_kinds"]).any(|kind| kind["kind"].is_null());
    list(&node["deps"])
        .filter(is_linked)
        .filter_map(|one| one["pkg"].as_str())
}

fn text<'v>(package: &'v Value, field: &str) -> &'v str {
    package[field].as_str().unwrap_or_default()
}

fn purl(package: &Value) -> String {
    format!(
        "pkg:cargo/{}@{}",
        text(package, "name"),
        text(package, "version")
    )
}

fn component(package: &Value, sums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
    });
    if let Some(license) = package["license"].as_str() {
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(sum) = sums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// The checksums of `Cargo.lock`, by name and version. Every package is a table of lines `key = "value"`.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |table: &str, key: &str| {
        let line = table
            .lines()
            .find_map(|line| line.strip_prefix(key)?.trim().strip_prefix('='))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    let tables = lock.split("[[package]]").skip(1);
    let sums = tables.filter_map(|table| {
        Some((
            (value(table, "name")?, value(table, "version")?),
            value(table, "checksum")?,
        ))
    });
    sums.collect()
}
