//! A hostile tenant, who may write ponds in one namespace and writes harmful ones: deep nesting, in fields that templates read
//! and in others, texts as large as etcd accepts, and annotations, labels, owner references, finalizers and children that only
//! the controller writes. Other namespaces must not be affected.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use orkestra_language::api::names::{
    ANNOTATION_CHILD, ANNOTATION_OWNER, FINALIZER, LABEL_KATALOG, LABEL_MANAGED, LABEL_OWNER_UID,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use testbed::eventually;

use super::{CONVERGED, GROUP};
use crate::scenario::{Objects, pause};

/// The number of the tenant's ponds.
const PONDS: u64 = 6;
/// The pause between two steps.
const PAUSE: Duration = Duration::from_millis(250);
/// The depths of nested maps: more than JSON readers in Rust accept by default.
const DEPTHS: [usize; 3] = [200, 1_000, 9_000];
/// The length of a text that makes a pond almost as large as etcd accepts, 1.5 MiB.
const LARGE: usize = 1_450_000;
/// Forged values of annotations that only the controller writes.
const FORGED: [(&str, &str); 6] = [
    ("orkestra.orkspace.io/inventory", "Secret"),
    ("orkestra.orkspace.io/inventory", "Widget.nowhere.example"),
    ("orkestra.orkspace.io/inventory", "{[}"),
    ("orkestra.orkspace.io/child", "ConfigMap/p00-kept"),
    ("orkestra.orkspace.io/applied", "0000000000000000"),
    ("orkestra.orkspace.io/owner-uid", NOBODY),
];

/// A uid that no object has.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// The tenant, whose steps are random with a seed.
pub(crate) struct Tenant {
    ponds: Objects,
    maps: Objects,
    dice: StdRng,
    /// The number of successful actions, by name.
    pub(crate) done: BTreeMap<&'static str, u64>,
}

impl Tenant {
    /// Returns a tenant that will write these ponds and `ConfigMaps`.
    pub(crate) fn new((ponds, maps): (Objects, Objects), seed: u64) -> Self {
        Self {
            ponds,
            maps,
            dice: StdRng::seed_from_u64(seed),
            done: BTreeMap::new(),
        }
    }

    /// Runs steps until `ended`. A step fails if the API server does not answer.
    pub(crate) async fn run(mut self, ended: tokio::sync::watch::Receiver<bool>) -> Self {
        while !*ended.borrow() {
            let name = format!("h{}", self.dice.random_range(0..PONDS));
            let (what, done) = self.step(&name).await;
            if done.is_ok() {
                *self.done.entry(what).or_default() += 1;
            }
            pause(PAUSE).await;
        }
        self
    }

    /// Runs a random step on a pond; returns its name and its result.
    async fn step(&mut self, name: &str) -> (&'static str, Result<()>) {
        match self.dice.random_range(0..20) {
            0..3 => ("deleted", self.ponds.delete(name).await),
            3..8 => ("forged", self.forge(name).await),
            8..11 => {
                let depth = DEPTHS[self.dice.random_range(0..DEPTHS.len())];
                ("deepened", self.deepen(name, "unread", depth).await)
            }
            11..13 => {
                let depth = DEPTHS[self.dice.random_range(0..DEPTHS.len())];
                (
                    "deepened where it is read",
                    self.deepen(name, "colour", depth).await,
                )
            }
            13 => ("enlarged", self.enlarge(name).await),
            14..17 => ("children forged", self.forge_child(name).await),
            _ => {
                let colour = format!("h{}", self.dice.random_range(0..1000));
                let patch = json!({ "spec": { "colour": colour } }).to_string();
                ("changed", self.ponds.patch_text(name, patch).await)
            }
        }
    }

    /// Creates a pond with one of the forged annotations, or with marks that only the controller and the garbage collector write.
    async fn forge(&mut self, name: &str) -> Result<()> {
        let mut metadata = match self.dice.random_range(0..4) {
            0 => json!({ "labels": forged_labels() }),
            // No such owner exists in the namespace: the garbage collector deletes the pond.
            1 => json!({ "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "p00-kept", "uid": NOBODY,
                "controller": true, "blockOwnerDeletion": true,
            }] }),
            // No other finalizer is used: no controller would remove it, and the pond would stay forever.
            2 => json!({ "finalizers": [FINALIZER] }),
            _ => {
                let (key, value) = FORGED[self.dice.random_range(0..FORGED.len())];
                json!({ "annotations": { key: value } })
            }
        };
        metadata["name"] = json!(name);
        let pond = json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Pond",
            "metadata": metadata, "spec": { "colour": "grey" },
        });
        self.ponds.create(&pond).await.map(drop)
    }

    /// Creates a `ConfigMap` with the name and labels of a child, or deletes it. While it exists, it occupies the name.
    async fn forge_child(&mut self, pond: &str) -> Result<()> {
        let name = format!("{pond}-kept");
        if self.dice.random() {
            return self.maps.delete(&name).await;
        }
        let child = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "colour": "forged" },
            "metadata": {
                "name": name, "labels": forged_labels(),
                "annotations": { ANNOTATION_CHILD: "ConfigMap/p00-kept", ANNOTATION_OWNER: NOBODY },
            },
        });
        self.maps.create(&child).await.map(drop)
    }

    /// Nests maps in a field of the spec. The patch is text: the JSON library of the test cannot write a value that deep.
    async fn deepen(&self, name: &str, field: &str, depth: usize) -> Result<()> {
        // Remove the previous value first: both values together would be too large.
        let without = format!(r#"{{"spec":{{"{field}":null}}}}"#);
        self.ponds.patch_text(name, without).await?;
        let (open, close) = (r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let text = format!(r#"{{"spec":{{"{field}":{open}1{close}}}}}"#);
        self.ponds.patch_text(name, text).await
    }

    /// Sets a text that makes a pond almost too large, and removes it after a moment: every later write would store it again, and
    /// the history of etcd has a limit.
    async fn enlarge(&self, name: &str) -> Result<()> {
        let text = |text: Option<String>| json!({ "spec": { "unread": text } }).to_string();
        let large = text(Some("x".repeat(LARGE)));
        self.ponds.patch_text(name, large).await?;
        pause(PAUSE).await;
        self.ponds.patch_text(name, text(None)).await
    }

    /// Deletes all ponds and forged children of the tenant, and waits until they are gone. The controller never deletes the
    /// forged children, because it did not create them.
    pub(crate) async fn leave(&self) -> Result<()> {
        eventually("the tenant is gone", CONVERGED, async || {
            let mut left = Vec::new();
            for number in 0..PONDS {
                let name = format!("h{number}");
                let child = format!("{name}-kept");
                for (objects, name) in [(&self.ponds, name), (&self.maps, child)] {
                    // The client may fail to parse the answer, as the object may be nested too deeply.
                    match objects.delete(&name).await {
                        Err(error) if crate::scenario::code(&error) == Some(404) => {}
                        _ => left.push(name),
                    }
                }
            }
            ensure!(left.is_empty(), "{left:?}");
            Ok(Some(()))
        })
        .await
    }
}

/// Returns the labels of a child whose owner does not exist.
fn forged_labels() -> Value {
    json!({
        LABEL_MANAGED: "true", LABEL_OWNER_UID: NOBODY, LABEL_KATALOG: "waters",
    })
}
