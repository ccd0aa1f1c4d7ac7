//! Katalogs in a genuine cluster: accepted, refused, conflicting, deleted, and found again after a restart.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use kube::{
    Client,
    api::{
        Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
        PatchParams,
    },
};
use orkestra::{
    meta::{Feed, FileError, Files, Namespaces, Notice, Runtime},
    runtime::context::Context,
};
use serde_json::{Value, json};
use testbed::{ControlPlane, eventually, namespace};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_mins(1);
const FINALIZER: &str = "orkestra.orkspace.io/cleanup";

/// One test's world: a namespace whose Katalogs a runtime follows, and a kind of its own.
struct World {
    client: Client,
    namespace: String,
    /// API group of the kinds that this test defines.
    group: String,
    runtime: Option<(CancellationToken, JoinHandle<Result<(), FileError>>)>,
}

impl World {
    async fn new(name: &str) -> Result<Self> {
        let client = ControlPlane::shared().admin().client()?;
        let namespace = namespace(&client, name).await?;
        let group = format!("{namespace}.example");
        let world = Self {
            client,
            namespace,
            group,
            runtime: None,
        };
        let crd: Value = serde_saphyr::from_str(&std::fs::read_to_string("crds/katalogs.yaml")?)?;
        world
            .apply(
                None,
                "apiextensions.k8s.io/v1",
                "customresourcedefinitions",
                crd,
            )
            .await?;
        eventually("Katalogs are served", LIMIT, async || {
            world.katalogs().list(&ListParams::default()).await?;
            Ok(Some(()))
        })
        .await?;
        Ok(world)
    }

    /// Starts the runtime; the one before has to be stopped.
    fn start(&mut self) -> Result<()> {
        let runtime = Runtime::new(Arc::new(Context::new(self.client.clone())?));
        let stop = CancellationToken::new();
        let feed = Feed::Cluster(Namespaces::Some(vec![self.namespace.clone()]));
        let token = stop.clone();
        let task = tokio::spawn(runtime.run(feed, token));
        self.runtime = Some((stop, task));
        Ok(())
    }

    async fn stop(&mut self) -> Result<()> {
        if let Some((stop, task)) = self.runtime.take() {
            stop.cancel();
            task.await??;
        }
        Ok(())
    }

    fn api(&self, namespaced: bool, api_version: &str, plural: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(group, version, "Any"),
            plural,
        );
        if namespaced {
            Api::namespaced_with(self.client.clone(), &self.namespace, &kind)
        } else {
            Api::all_with(self.client.clone(), &kind)
        }
    }

    fn katalogs(&self) -> Api<DynamicObject> {
        self.api(true, "orkestra.orkspace.io/v1", "katalogs")
    }

    fn ponds(&self) -> Api<DynamicObject> {
        self.api(true, &format!("{}/v1", self.group), "ponds")
    }

    async fn apply(
        &self,
        namespace: Option<()>,
        api_version: &str,
        plural: &str,
        object: Value,
    ) -> Result<DynamicObject> {
        let name = object["metadata"]["name"]
            .as_str()
            .context("a name")?
            .to_owned();
        let api = self.api(namespace.is_some(), api_version, plural);
        let params = PatchParams::apply("test").force();
        Ok(api.patch(&name, &params, &Patch::Apply(&object)).await?)
    }

    /// The definition of a kind of this test's group: `Pond`, `ponds`.
    async fn define(&self, kind: &str) -> Result<()> {
        let plural = format!("{}s", kind.to_lowercase());
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{}", self.group) },
            "spec": {
                "group": self.group, "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": { "status": {} }, "schema": { "openAPIV3Schema": schema },
                }],
            },
        });
        self.apply(
            None,
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            crd,
        )
        .await?;
        Ok(())
    }

    /// An entry that makes a `ConfigMap` for each resource.
    fn entry(&self, kind: &str, colour: &str) -> Value {
        json!({
            "apiTypes": { "group": self.group, "version": "v1", "kind": kind, "plural": format!("{}s", kind.to_lowercase()) },
            "operatorBox": { "onReconcile": { "configMaps": [
                { "name": "{{ .metadata.name }}", "data": { "colour": colour } },
            ]}},
        })
    }

    async fn katalog(&self, name: &str, crds: Value) -> Result<DynamicObject> {
        let object = json!({
            "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
            "metadata": { "name": name, "namespace": self.namespace }, "spec": { "crds": crds },
        });
        self.apply(Some(()), "orkestra.orkspace.io/v1", "katalogs", object)
            .await
    }

    async fn pond(&self, name: &str) -> Result<DynamicObject> {
        let api_version = format!("{}/v1", self.group);
        let object = json!({
            "apiVersion": api_version, "kind": "Pond",
            "metadata": { "name": name, "namespace": self.namespace }, "spec": { "depth": 3 },
        });
        eventually("a Pond can be made", LIMIT, async || {
            Ok(Some(
                self.apply(Some(()), &api_version, "ponds", object.clone())
                    .await?,
            ))
        })
        .await
    }

    /// Waits until the conditions of a Katalog of the current generation read so.
    async fn until_conditions(&self, name: &str, wanted: &str) -> Result<Value> {
        eventually(&format!("{name}: {wanted}"), LIMIT, async || {
            let object = self.katalogs().get(name).await?;
            let status = object.data["status"].clone();
            let seen = status["observedGeneration"].as_i64() == object.metadata.generation;
            let found = conditions(&status);
            if seen && found == wanted {
                Ok(Some(status))
            } else {
                Err(anyhow!("{found}, {status}"))
            }
        })
        .await
    }

    async fn until_colour(&self, name: &str, wanted: &str) -> Result<()> {
        eventually(
            &format!("ConfigMap {name} is {wanted}"),
            LIMIT,
            async || {
                let map = self.api(true, "v1", "configmaps").get(name).await?;
                Ok((map.data["data"]["colour"] == wanted).then_some(()))
            },
        )
        .await
    }

    async fn until_gone(&self, api: Api<DynamicObject>, name: &str) -> Result<()> {
        eventually(&format!("{name} is gone"), LIMIT, async || {
            match api.get_opt(name).await? {
                None => Ok(Some(())),
                Some(object) => Err(anyhow!("{object:?}")),
            }
        })
        .await
    }
}

fn conditions(status: &Value) -> String {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let line = |one: &Value| {
        format!(
            "{}={}/{}",
            text(one, "type"),
            text(one, "status"),
            text(one, "reason")
        )
    };
    let mut lines: Vec<_> = conditions.iter().map(line).collect();
    lines.sort();
    lines.join(", ")
}

fn has_finalizer(object: &DynamicObject) -> bool {
    object
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|name| name == FINALIZER)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_revision_keeps_the_last_good_one_also_after_a_restart() -> Result<()> {
    let mut world = World::new("revision").await?;
    world.define("Pond").await?;
    world.start()?;
    world
        .katalog("k", json!({ "pond": world.entry("Pond", "teal") }))
        .await?;
    let status = world.until_conditions("k", "Ready=True/Running").await?;
    assert_eq!(status["ready"], "1/1");
    let good = status["revision"].clone();
    world.pond("one").await?;
    world.until_colour("one", "teal").await?;
    world
        .katalog("k", json!({ "pond": world.entry("Pond", "{{ nonsense") }))
        .await?;
    let broken = "Ready=False/InvalidRevision, Stalled=True/InvalidRevision";
    let status = world.until_conditions("k", broken).await?;
    assert_eq!(status["revision"], good);
    world
        .api(true, "v1", "configmaps")
        .delete("one", &DeleteParams::default())
        .await?;
    world.until_colour("one", "teal").await?;
    world.stop().await?;
    world
        .api(true, "v1", "configmaps")
        .delete("one", &DeleteParams::default())
        .await?;
    world.start()?;
    world.until_colour("one", "teal").await?;
    world.until_conditions("k", broken).await?;
    world
        .katalog("k", json!({ "pond": world.entry("Pond", "plum") }))
        .await?;
    world.until_conditions("k", "Ready=True/Running").await?;
    world.until_colour("one", "plum").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_crd_is_waited_for_and_then_operated() -> Result<()> {
    let mut world = World::new("missing").await?;
    world.start()?;
    world
        .katalog("k", json!({ "pond": world.entry("Pond", "teal") }))
        .await?;
    let status = world
        .until_conditions("k", "Ready=False/Waiting, Reconciling=True/Waiting")
        .await?;
    assert_eq!(status["operators"][0]["reason"], "CrdMissing");
    world.define("Pond").await?;
    world.until_conditions("k", "Ready=True/Running").await?;
    world.pond("one").await?;
    world.until_colour("one", "teal").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_katalog_lets_go_of_its_resources_and_keeps_them() -> Result<()> {
    let mut world = World::new("deleted").await?;
    world.define("Pond").await?;
    world.start()?;
    world
        .katalog("k", json!({ "pond": world.entry("Pond", "teal") }))
        .await?;
    world.pond("one").await?;
    world.until_colour("one", "teal").await?;
    assert!(has_finalizer(&world.ponds().get("one").await?));
    assert!(has_finalizer(&world.katalogs().get("k").await?));
    world
        .katalogs()
        .delete("k", &DeleteParams::default())
        .await?;
    world.until_gone(world.katalogs(), "k").await?;
    let pond = world.ponds().get("one").await?;
    assert!(!has_finalizer(&pond), "{:?}", pond.metadata);
    assert!(pond.metadata.deletion_timestamp.is_none());
    world.until_colour("one", "teal").await?;
    world
        .ponds()
        .delete("one", &DeleteParams::default())
        .await?;
    world.until_gone(world.ponds(), "one").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_removed_while_the_runtime_was_down_is_released_at_its_start() -> Result<()> {
    let mut world = World::new("down").await?;
    world.define("Pond").await?;
    world.define("Lake").await?;
    world.start()?;
    let both = json!({ "pond": world.entry("Pond", "teal"), "lake": world.entry("Lake", "teal") });
    world.katalog("k", both).await?;
    world.pond("one").await?;
    world.until_colour("one", "teal").await?;
    world.stop().await?;
    world
        .katalog("k", json!({ "lake": world.entry("Lake", "teal") }))
        .await?;
    world.start()?;
    let status = world.until_conditions("k", "Ready=True/Running").await?;
    assert_eq!(
        status["operated"].as_array().map(Vec::len),
        Some(1),
        "{status}"
    );
    assert!(!has_finalizer(&world.ponds().get("one").await?));
    world.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_katalogs_the_older_has_the_kind_and_the_younger_takes_over() -> Result<()> {
    let mut world = World::new("conflict").await?;
    world.define("Pond").await?;
    world.start()?;
    world
        .katalog("older", json!({ "pond": world.entry("Pond", "teal") }))
        .await?;
    world.pond("one").await?;
    world.until_colour("one", "teal").await?;
    // Times have whole seconds, and ties go by uid.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    world
        .katalog("younger", json!({ "puddle": world.entry("Pond", "plum") }))
        .await?;
    let status = world
        .until_conditions("younger", "Ready=False/Conflict, Reconciling=True/Conflict")
        .await?;
    let message = status["operators"][0]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        message.contains(&format!("{}/older", world.namespace)),
        "{message}"
    );
    world
        .katalogs()
        .delete("older", &DeleteParams::default())
        .await?;
    world.until_gone(world.katalogs(), "older").await?;
    world
        .until_conditions("younger", "Ready=True/Running")
        .await?;
    world.until_colour("one", "plum").await?;
    assert!(has_finalizer(&world.ponds().get("one").await?));
    world.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_katalog_that_never_compiled_can_be_deleted() -> Result<()> {
    let mut world = World::new("broken").await?;
    world.start()?;
    world
        .katalog("k", json!({ "pond": { "crdFile": "pond.yaml" } }))
        .await?;
    world
        .until_conditions("k", "Ready=False/NoApiTypes, Stalled=True/NoApiTypes")
        .await?;
    world
        .katalogs()
        .delete("k", &DeleteParams::default())
        .await?;
    world.until_gone(world.katalogs(), "k").await?;
    world.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_katalog_that_nothing_happens_to_is_not_written() -> Result<()> {
    let mut world = World::new("idle").await?;
    world.define("Pond").await?;
    world.start()?;
    world
        .katalog("k", json!({ "pond": world.entry("Pond", "teal") }))
        .await?;
    world.pond("one").await?;
    let counted = eventually("the Pond is counted and ready", LIMIT, async || {
        let katalog = world.katalogs().get("k").await?;
        Ok((katalog.data["status"]["operators"][0]["ready"] == 1).then_some(katalog))
    })
    .await?;
    assert_eq!(conditions(&counted.data["status"]), "Ready=True/Running");
    // Longer than counts wait for each other.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let later = world.katalogs().get("k").await?;
    assert_eq!(
        later.metadata.resource_version,
        counted.metadata.resource_version
    );
    world.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn files_apply_what_they_name_and_a_mistake_keeps_the_last_good_one() -> Result<()> {
    let world = World::new("files").await?;
    let folder = tempfile::tempdir()?;
    let write =
        |name: &str, value: &Value| std::fs::write(folder.path().join(name), value.to_string());
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    write(
        "crd.yaml",
        &json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("ponds.{}", world.group) },
            "spec": {
                "group": world.group, "scope": "Namespaced", "names": { "kind": "Pond", "plural": "ponds" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} }, "schema": { "openAPIV3Schema": schema } }],
            },
        }),
    )?;
    write(
        "pond.yaml",
        &json!({
            "apiVersion": format!("{}/v1", world.group), "kind": "Pond", "metadata": { "name": "one", "namespace": world.namespace }, "spec": {},
        }),
    )?;
    let katalog = |colour: &str| {
        let mut entry = world.entry("Pond", colour);
        let fields = entry.as_object_mut().unwrap();
        fields.remove("apiTypes");
        fields.insert("crdFile".to_owned(), json!("./crd.yaml"));
        fields.insert("crFiles".to_owned(), json!(["pond.yaml"]));
        json!({ "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "k" }, "spec": { "crds": { "pond": entry } } })
    };
    write("katalog.yaml", &katalog("teal"))?;
    let (notices, mut told) = tokio::sync::mpsc::unbounded_channel();
    let paths = vec![folder.path().join("katalog.yaml")];
    let files = Files {
        paths,
        poll: Duration::from_millis(100),
        notices,
    };
    let runtime = Runtime::new(Arc::new(Context::new(world.client.clone())?));
    let (directory, stop) = (runtime.directory(), CancellationToken::new());
    let token = stop.clone();
    let task = tokio::spawn(async move { runtime.run(Feed::Files(files), token).await.unwrap() });
    world.until_colour("one", "teal").await?;
    write("katalog.yaml", &katalog("{{ nonsense"))?;
    let refused = async {
        loop {
            match told.recv().await.context("the runtime ended")? {
                Notice::Refused(error) => return anyhow::Ok(error.to_string()),
                _ => continue,
            }
        }
    };
    let refused = tokio::time::timeout(LIMIT, refused).await??;
    assert!(
        refused.contains("katalog.yaml:1:") && refused.contains("colour"),
        "{refused}"
    );
    world
        .api(true, "v1", "configmaps")
        .delete("one", &DeleteParams::default())
        .await?;
    world.until_colour("one", "teal").await?;
    write("katalog.yaml", &katalog("plum"))?;
    world.until_colour("one", "plum").await?;
    let view = directory.katalogs().first().cloned().context("a Katalog")?;
    assert_eq!(
        (view.reference.to_string().as_str(), view.ready.status),
        ("default/k", Some(true))
    );
    stop.cancel();
    task.await?;
    assert!(
        has_finalizer(&world.ponds().get("one").await?),
        "the next run goes on with it"
    );
    Ok(())
}
