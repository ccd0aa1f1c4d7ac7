//! The Katalog that declares a child of each kind, merged from the files of `tests/inputs/kinds`.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

/// The merged Katalog, and the custom resources of all files.
pub(crate) struct All {
    katalog: Value,
    pub(crate) resources: Vec<Value>,
}

impl All {
    pub(crate) fn read() -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/kinds");
        let mut files: Vec<_> = std::fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.retain(|path| path.is_file() && !path.ends_with("crds.yaml"));
        files.sort();
        let (mut katalog, mut resources) = (Value::Null, Map::new());
        for file in files {
            let text = std::fs::read_to_string(&file)?;
            for document in serde_saphyr::from_multiple::<Value>(&text)? {
                let kind = document["kind"].as_str().unwrap_or_default().to_owned();
                if kind == "Katalog" {
                    merge(&mut katalog, document);
                } else {
                    merge(resources.entry(kind).or_insert(Value::Null), document);
                }
            }
        }
        let resources = resources.into_iter().map(|(_, resource)| resource);
        Ok(Self {
            katalog,
            resources: resources.collect(),
        })
    }

    pub(crate) fn katalog(&self) -> Result<String> {
        Ok(serde_json::to_string(&self.katalog)?)
    }

    /// Returns the Katalog without one list of children.
    pub(crate) fn without(&self, list: &str) -> Result<String> {
        let mut katalog = self.katalog.clone();
        let operators = katalog["spec"]["crds"].as_object_mut();
        for operator in operators.into_iter().flat_map(|map| map.values_mut()) {
            let blocks = operator["operatorBox"].as_object_mut();
            for block in blocks.into_iter().flat_map(|map| map.values_mut()) {
                block.as_object_mut().context("not a block")?.remove(list);
            }
        }
        Ok(serde_json::to_string(&katalog)?)
    }

    /// Returns the number of declared children; an Ingress with a certificate counts as two.
    pub(crate) fn count(&self) -> usize {
        let operators = self.katalog["spec"]["crds"]
            .as_object()
            .into_iter()
            .flatten();
        let blocks = operators
            .flat_map(|(_, operator)| operator["operatorBox"].as_object().into_iter().flatten());
        let lists = blocks.flat_map(|(_, block)| block.as_object().into_iter().flatten());
        let entries = lists.filter_map(|(_, list)| list.as_array()).flatten();
        entries
            .map(|entry| 1 + usize::from(entry["tls"]["create"] == true))
            .sum()
    }
}

/// Merges a tree into another. Values that both have are equal, except for lists, which are concatenated.
fn merge(into: &mut Value, other: Value) {
    match (into, other) {
        (Value::Object(map), Value::Object(others)) => {
            for (key, value) in others {
                merge(map.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(items), Value::Array(others)) => items.extend(others),
        (into, other) => *into = other,
    }
}
