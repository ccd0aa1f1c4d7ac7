//! RBAC with fixed namespaces: if a Katalog fixes its namespaces, Roles in these namespaces permit everything that it needs.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::namespace;

use crate::scenario::{LIMIT, Objects, Scenario, input};
use crate::waters;

const COLOUR: &str = "/metadata/labels/colour";

/// A scenario with an operator for ponds in two namespaces, with children there and in a third, permitted by Roles only.
struct Confined {
    scenario: Scenario,
    second: String,
    far: String,
}

impl Confined {
    async fn running(prefix: &str) -> Result<Self> {
        let mut scenario = Scenario::new(prefix).await?;
        let second = namespace(&scenario.client, "second").await?;
        let far = namespace(&scenario.client, "far").await?;
        let katalog = input("rights/confined.yaml")?;
        let katalog = katalog.replace("SECOND", &second).replace("FAR", &far);
        let (everywhere, confined) = scenario.grant_confined(&katalog).await?;
        for role in &everywhere {
            let role = serde_json::to_string(role)?;
            for kind in [
                &*scenario.group,
                "deployments",
                "configmaps",
                "katalogs",
                "pods",
            ] {
                ensure!(!role.contains(kind), "a ClusterRole covers {kind}: {role}");
            }
        }
        let places = confined.iter();
        let places = places.filter_map(|role| role.metadata.namespace.as_deref());
        for needed in [&*scenario.namespace, &*second, &*far] {
            ensure!(places.clone().any(|place| place == needed), "{needed}");
        }
        let depths = json!({ "metadata": { "name": "depths" }, "data": { "depth": "3" } });
        for used in [&scenario.namespace, &second] {
            let maps = scenario.objects_in(used, "configmaps");
            maps.create(&depths).await?;
        }
        scenario.install(&waters::crds()?).await?;
        scenario.start().await?;
        scenario.apply(&katalog)?;
        scenario.katalog_is("waters", "True", "Running").await?;
        Ok(Self {
            scenario,
            second,
            far,
        })
    }

    fn objects(&self, namespace: &str, plural: &str) -> Objects {
        self.scenario.objects_in(namespace, plural)
    }

    async fn pond(&self, namespace: &str, name: &str) -> Result<Objects> {
        let ponds = self.objects(namespace, "ponds");
        let pond = waters::resource(&self.scenario, "Pond", name, &json!({ "colour": "green" }));
        ponds.create(&pond).await?;
        Ok(ponds)
    }

    /// Checks that a new colour reaches the children, and that drift is corrected.
    async fn is_followed(&self, namespace: &str, name: &str, colour: &str) -> Result<()> {
        let spec = json!({ "spec": { "colour": colour } });
        self.objects(namespace, "ponds").patch(name, &spec).await?;
        let deployments = self.objects(namespace, "deployments");
        deployments
            .until_equal(name, COLOUR, json!(colour), LIMIT)
            .await?;
        let (maps, map) = (
            self.objects(&self.far, "configmaps"),
            format!("{name}-{namespace}"),
        );
        maps.until_equal(&map, "/data/colour", json!(colour), LIMIT)
            .await?;
        let edit = json!({ "metadata": { "labels": { "colour": "other" } } });
        deployments.patch(name, &edit).await?;
        maps.delete(&map).await?;
        deployments
            .until_equal(name, COLOUR, json!(colour), LIMIT)
            .await?;
        maps.until_equal(&map, "/data/colour", json!(colour), LIMIT)
            .await?;
        // The replicas of a custom kind are corrected once no autoscaler is found.
        let lakes = self.objects(&self.far, "lakes");
        let more = json!({ "spec": { "replicas": 3 } });
        lakes.patch(&map, &more).await?;
        lakes
            .until_equal(&map, "/spec/replicas", json!(1), LIMIT)
            .await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_fixed_namespaces_roles_alone_are_enough() -> Result<()> {
    let start = Scenario::mark()?;
    let mut confined = Confined::running("confined").await?;
    let own = confined.scenario.namespace.clone();
    let second = confined.second.clone();
    let first_ponds = confined.pond(&own, "north").await?;
    let second_ponds = confined.pond(&second, "south").await?;
    let far_ponds = confined.pond(&confined.far, "wild").await?;
    first_ponds.until_ready("north").await?;
    second_ponds.until_ready("south").await?;
    confined.is_followed(&own, "north", "blue").await?;
    confined.is_followed(&second, "south", "red").await?;

    // A child in another namespace, without an owner reference, is deleted with its custom resource.
    second_ponds.delete("south").await?;
    second_ponds.until_gone("south", LIMIT).await?;
    let maps = confined.objects(&confined.far, "configmaps");
    maps.until_gone(&format!("south-{second}"), LIMIT).await?;
    let katalogs = confined.scenario.objects("katalogs");
    katalogs.delete("waters").await?;
    katalogs.until_gone("waters", LIMIT).await?;
    for (ponds, name) in [(&first_ponds, "north"), (&far_ponds, "wild")] {
        let pond = ponds.fetch(name).await?;
        assert_eq!(pond["metadata"].get("finalizers"), None, "{name}");
    }
    let map = maps.fetch(&format!("north-{own}")).await?;
    let labels = map["metadata"]
        .get("labels")
        .cloned()
        .unwrap_or(Value::Null);
    ensure!(
        !labels.to_string().contains("orkestra"),
        "the child was not released: {labels}"
    );

    let mut events = confined.scenario.cluster.audit_since(start)?;
    let user = confined.scenario.identity.user();
    events.retain(|event| event.user == user && event.code == 403);
    ensure!(events.is_empty(), "refused: {}", waters::lines(&events));
    confined.scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_without_its_role_keeps_no_other_waiting() -> Result<()> {
    let mut confined = Confined::running("unbound").await?;
    let own = confined.scenario.namespace.clone();
    let second = confined.second.clone();
    let ponds = confined.pond(&own, "north").await?;
    ponds.until_ready("north").await?;
    confined.scenario.kill9()?;
    confined
        .scenario
        .kubectl(&["delete", "rolebindings", "--all", "--namespace", &second])?;
    let list = ("list", confined.scenario.group.as_str(), "ponds");
    let scenario = &confined.scenario;
    scenario
        .wait_for_right_in(Some(&second), list, false)
        .await?;
    confined.scenario.launch().await?;
    confined.is_followed(&own, "north", "blue").await?;
    let reported = confined
        .scenario
        .katalog_is("waters", "False", "Forbidden")
        .await?;
    let row = waters::row(&reported, "pond").cloned().unwrap_or_default();
    let message = waters::text(&row, "/message");
    ensure!(message.contains(&second), "{message}");
    // A deletion depends only on the namespaces of the resource and its children.
    ponds.delete("north").await?;
    ponds.until_gone("north", LIMIT).await?;
    confined.scenario.check_running()
}
