//! The `ConfigMaps` of the cluster as sources of Komposers: watched, each by its name.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::DynamicObject;
use orkestra_cluster::{requests::Served, watch::Informers};
use orkestra_compiler::compose::Artifact;
use serde_json::Value;

use super::{
    super::watched::{WatchedContent, Watches, words},
    FetchError,
};

/// The watched `ConfigMaps`, in the order of their watches.
pub(crate) struct ConfigMaps {
    names: Vec<String>,
    pub(crate) watches: Watches<ConfigMap>,
}

/// A `ConfigMap`.
pub(crate) struct ConfigMap {
    data: BTreeMap<String, String>,
}

impl WatchedContent for ConfigMap {
    fn new(object: DynamicObject) -> Self {
        let data = object.data.get("data").and_then(Value::as_object);
        let text =
            |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        Self {
            data: data.into_iter().flatten().filter_map(text).collect(),
        }
    }
}

impl ConfigMaps {
    /// None.
    pub(crate) fn none() -> Self {
        Self {
            names: Vec::new(),
            watches: Watches::none(),
        }
    }

    /// Watches the `ConfigMaps` of these names, and no others.
    pub(crate) fn watch(&mut self, names: BTreeSet<&str>, namespace: &str, informers: &Informers) {
        if self.names.iter().eq(names.iter()) {
            return;
        }
        let mut watches = Watches::none();
        for name in &names {
            let namespace = Some(namespace.to_owned());
            watches.add(informers, &config_maps(), namespace, Some(name));
        }
        let names = names.into_iter().map(str::to_owned).collect();
        *self = Self { names, watches };
    }

    /// Returns the artifact of a `ConfigMap`; none while it is not listed yet.
    pub(crate) fn find(
        &self,
        name: &str,
        key: Option<&str>,
        namespace: &str,
    ) -> Option<Result<Artifact, FetchError>> {
        let watch = self.names.iter().position(|one| one == name)?;
        let refused =
            |message: String, permanent: bool| Some(Err(FetchError { message, permanent }));
        if !self.watches.was_synced(watch) {
            let (_, handle) = self.watches.handles.get(watch)?;
            let (_, problem) = handle.problem()?;
            return refused(words(problem), false);
        }
        let Some(found) = self.watches.all(watch).into_iter().next() else {
            let message = format!("there is no ConfigMap `{name}` in namespace {namespace}");
            return refused(message, true);
        };
        Some(found.artifact(name, key))
    }
}

impl ConfigMap {
    /// Returns the documents of a key, or of every key that ends in `.yaml`.
    fn artifact(&self, name: &str, key: Option<&str>) -> Result<Artifact, FetchError> {
        let artifact = Artifact::of_config_map(name, key, &self.data);
        artifact.map_err(|message| FetchError {
            message,
            permanent: true,
        })
    }
}

fn config_maps() -> Served {
    Served::namespaced("", "v1", "ConfigMap", "configmaps")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_that_end_in_yaml_are_documents_unless_a_key_is_named() {
        let object = json!({
            "metadata": { "name": "ponds" },
            "data": { "b.yaml": "two", "a.yaml": "one", "notes.txt": "three" },
        });
        let map = ConfigMap::new(serde_json::from_value(object).unwrap());
        let texts = |key| {
            let artifact = map.artifact("ponds", key).unwrap();
            let texts = artifact.documents.into_iter().map(|file| file.text);
            texts.collect::<Vec<_>>()
        };
        assert_eq!(texts(None), ["one", "two"]);
        assert_eq!(texts(Some("notes.txt")), ["three"]);
        let missing = map.artifact("ponds", Some("c.yaml")).unwrap_err();
        assert_eq!(missing.message, "ConfigMap `ponds` has no key `c.yaml`");
        let empty = ConfigMap {
            data: BTreeMap::new(),
        };
        let missing = empty.artifact("ponds", None).unwrap_err();
        let expected = "ConfigMap `ponds` has no key that ends in `.yaml`";
        assert_eq!(missing.message, expected);
    }
}
