//! The WebAssembly modules of a Katalog's hooks: `ConfigMap`s of its namespace, each watched by its name while a hook names it.
//!
//! A change wakes the Katalog, which is compiled again. What runs is what was compiled: its plan and its revision have the module.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kube::api::DynamicObject;
use orkestra_cluster::{
    requests::{Scope, Served},
    watch::{Change, Handle, Informers, Watched},
};
use orkestra_compiler::compilation::ModuleAnswer;
use orkestra_object::ObjectKey;
use orkestra_plan::ModulePlace;
use orkestra_wasm::Module;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::watched::{ReadObject, WatchedContent, words};

/// How long a compilation waits for a `ConfigMap` that was not watched before.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// The binary data of a `ConfigMap`.
pub(crate) struct BinaryMap(BTreeMap<String, BinaryValue>);

/// A value, and its digest.
#[derive(Clone)]
struct BinaryValue(Arc<[u8]>, Box<str>);

impl WatchedContent for BinaryMap {
    fn new(object: DynamicObject) -> Self {
        let data = object.data.get("binaryData").and_then(Value::as_object);
        let decoded = data.into_iter().flatten().filter_map(|(key, value)| {
            let bytes = BASE64_STANDARD.decode(value.as_str()?).ok()?;
            let digest = Module::digest_of(&bytes);
            Some((key.clone(), BinaryValue(bytes.into(), digest)))
        });
        Self(decoded.collect())
    }
}

/// The watch of one `ConfigMap`.
type MapWatch = Arc<Handle<ReadObject<BinaryMap>>>;

/// The `ConfigMap`s that hooks of a Katalog name.
pub(crate) struct KatalogModules {
    namespace: String,
    maps: Mutex<BTreeMap<Box<str>, MapWatch>>,
    /// Counts changes.
    changed: Arc<watch::Sender<u64>>,
}

impl std::fmt::Debug for KatalogModules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KatalogModules").finish_non_exhaustive()
    }
}

impl KatalogModules {
    /// Watches nothing yet.
    pub(crate) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            maps: Mutex::default(),
            changed: Arc::new(watch::channel(0).0),
        }
    }

    /// A receiver that changes when a watched `ConfigMap` does.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns a module, after the first look at its `ConfigMap`, which is watched from now on.
    pub(crate) async fn read(&self, informers: &Informers, place: &ModulePlace) -> ModuleAnswer {
        if let ModulePlace::ConfigMap { name, key: _ } = place {
            let handle = self.watch(informers, name);
            // Without an answer, the state of the watch says why.
            let _ = tokio::time::timeout(FIRST_LOOK, handle.looked_at()).await;
        }
        match self.find(place) {
            Ok(BinaryValue(bytes, _)) => ModuleAnswer::Found(bytes),
            Err(why) => ModuleAnswer::Unread(why),
        }
    }

    /// Returns the digest of a module as it is known now, or why it cannot be read.
    pub(crate) fn digest(&self, place: &ModulePlace) -> Result<Box<str>, String> {
        self.find(place).map(|BinaryValue(_, digest)| digest)
    }

    /// Ends the watches of `ConfigMap`s that hold none of these modules.
    pub(crate) fn keep<'a>(&self, places: impl Iterator<Item = &'a ModulePlace>) {
        let named: BTreeSet<&str> = places
            .filter_map(|place| match place {
                ModulePlace::ConfigMap { name, key: _ } => Some(&**name),
                ModulePlace::File(_) => None,
            })
            .collect();
        self.maps.lock().retain(|name, _| named.contains(&**name));
    }

    fn watch(&self, informers: &Informers, name: &str) -> MapWatch {
        let mut maps = self.maps.lock();
        if let Some(handle) = maps.get(name) {
            return Arc::clone(handle);
        }
        let changed = Arc::clone(&self.changed);
        let subscriber = move |_: &Change<ReadObject<BinaryMap>>| {
            changed.send_modify(|count| *count += 1);
        };
        let watched = Watched {
            served: Served::namespaced("", "v1", "ConfigMap", "configmaps"),
            scope: Scope {
                namespace: Some(self.namespace.clone()),
                fields: Some(format!("metadata.name={name}")),
                ..Scope::default()
            },
        };
        let handle = Arc::new(informers.alone(watched, Arc::new(subscriber)));
        maps.insert(name.into(), Arc::clone(&handle));
        handle
    }

    fn find(&self, place: &ModulePlace) -> Result<BinaryValue, String> {
        let ModulePlace::ConfigMap { name, key } = place else {
            return Err("files are not available in the cluster".to_owned());
        };
        let handle = self.maps.lock().get(name).map(Arc::clone);
        let handle = handle.ok_or_else(|| "it is not watched".to_owned())?;
        let found = handle.store().get(&ObjectKey {
            namespace: Some((&*self.namespace).into()),
            name: (&**name).into(),
        });
        match found {
            Some(map) => match map.content.0.get(&**key) {
                Some(value) => Ok(value.clone()),
                None => Err(format!("`binaryData` has no key `{key}`")),
            },
            None => Err(match handle.problem() {
                Some((_, problem)) => words(problem),
                None => format!(
                    "there is no ConfigMap `{name}` in namespace {}",
                    self.namespace
                ),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_binary_data_holds_modules() {
        let object = json!({
            "metadata": { "name": "hooks" },
            "data": { "text.wasm": "AGFzbQ==" },
            "binaryData": { "hook.wasm": "AGFzbQ==", "broken": "***" },
        });
        let BinaryMap(values) = BinaryMap::new(serde_json::from_value(object).unwrap());
        assert_eq!(values.len(), 1);
        let BinaryValue(bytes, digest) = &values["hook.wasm"];
        assert_eq!(
            (&**bytes, digest),
            (&b"\0asm"[..], &Module::digest_of(bytes))
        );
    }
}
