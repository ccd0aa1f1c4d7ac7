//! Selection of custom resources: which ones an operator manages, and which labels and finalizers it adds to them.

use anyhow::{Result, ensure};
use k8s_openapi::api::rbac::v1::Role;
use serde_json::{Value, json};
use testbed::{eventually, namespace};

use crate::scenario::{LIMIT, Objects, Scenario, condition, input};
use crate::waters;

const CLEANUP: &str = "orkestra.orkspace.io/cleanup";
const ARCHIVE: &str = "example.org/archive";

struct Groves {
    scenario: Scenario,
    /// The second namespace that is allowed.
    second: String,
    /// A namespace that is not allowed.
    third: String,
    /// The controller's Roles in the allowed namespaces.
    roles: Vec<Role>,
}

impl Groves {
    async fn running(prefix: &str) -> Result<Self> {
        Self::of(prefix, "lifecycle/selectors.yaml").await
    }

    async fn of(prefix: &str, katalog: &str) -> Result<Self> {
        Self::of_text(prefix, &input(katalog)?).await
    }

    async fn of_text(prefix: &str, katalog: &str) -> Result<Self> {
        let mut scenario = Scenario::new(prefix).await?;
        let second = namespace(&scenario.client, "second").await?;
        let third = namespace(&scenario.client, "third").await?;
        let katalog = katalog.replace("SECOND", &second);
        let (_, roles) = scenario.grant_printed(&katalog, &[]).await?;
        scenario.start().await?;
        scenario
            .install(&input("lifecycle/grove-crd.yaml")?)
            .await?;
        scenario.apply(&katalog)?;
        scenario.katalog_is("selectors", "True", "Running").await?;
        Ok(Self {
            scenario,
            second,
            third,
            roles,
        })
    }

    /// Revokes or restores the permission to patch groves in the scenario's namespace.
    async fn permit_patches(&self, is_permitted: bool) -> Result<()> {
        let scenario = &self.scenario;
        let own = scenario.namespace.as_str();
        let is_own = |role: &&Role| role.metadata.namespace.as_deref() == Some(own);
        for role in self.roles.iter().filter(is_own) {
            let mut role = role.clone();
            for rule in role.rules.iter_mut().flatten() {
                let mut resources = rule.resources.iter().flatten();
                if !is_permitted && resources.any(|name| name == "groves") {
                    rule.verbs.retain(|verb| verb != "patch");
                }
            }
            scenario.put_role_in(own, &role).await?;
        }
        let patch = ("patch", scenario.group.as_str(), "groves");
        scenario
            .wait_for_right_in(Some(own), patch, is_permitted)
            .await
    }

    async fn grove(
        &self,
        namespace: &str,
        name: &str,
        labels: Value,
        spec: Value,
    ) -> Result<Objects> {
        let groves = self.scenario.objects_in(namespace, "groves");
        let grove = json!({
            "apiVersion": format!("{}/v1alpha1", self.scenario.group), "kind": "Grove",
            "metadata": { "name": name, "labels": labels }, "spec": spec,
        });
        groves.create(&grove).await?;
        Ok(groves)
    }
}

fn finalizers(object: &Value) -> Vec<&str> {
    let all = object["metadata"]["finalizers"].as_array();
    let mut all: Vec<&str> = all
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    all.sort_unstable();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_is_selected_and_allowed_is_looked_after() -> Result<()> {
    let groves = Groves::running("select").await?;
    let (own, tended) = (
        groves.scenario.namespace.clone(),
        json!({ "tended": "yes" }),
    );
    let spec = json!({ "wood": "elm" });
    let first = groves
        .grove(&own, "first", tended.clone(), spec.clone())
        .await?;
    let second = groves
        .grove(&groves.second, "second", tended.clone(), spec.clone())
        .await?;
    let third = groves
        .grove(&groves.third, "third", tended.clone(), spec.clone())
        .await?;
    groves.grove(&own, "wild", json!({}), spec.clone()).await?;
    groves
        .grove(
            &own,
            "far",
            tended,
            json!({ "wood": "elm", "into": "kube-system" }),
        )
        .await?;
    first.until_ready("first").await?;
    second.until_ready("second").await?;
    let refused = |grove: &Value| {
        condition(grove, "Ready").is_some_and(|ready| ready["reason"] == "RestrictedNamespace")
    };
    first
        .until("far", "is refused the child in kube-system", LIMIT, refused)
        .await?;
    groves
        .scenario
        .operator_reports("selectors", "grove", &json!({ "instances": 3 }))
        .await?;
    // The events of the resources that are not selected came before that of the last one, which is.
    groves.scenario.until_idle().await?;
    for (where_, name) in [(&third, "third"), (&first, "wild")] {
        let left = where_.fetch(name).await?;
        assert_eq!(finalizers(&left), [""; 0], "{name}");
        assert_eq!(left.get("status"), None, "{name}");
    }

    one_that_leaves_is_released_and_looked_after_when_it_is_back(&groves, &first).await
}

/// Checks that a resource that leaves the selection is released and keeps its child, and that an Event reports a failed release.
async fn one_that_leaves_is_released_and_looked_after_when_it_is_back(
    all: &Groves,
    groves: &Objects,
) -> Result<()> {
    let scenario = &all.scenario;
    let mark = Scenario::mark()?;
    all.permit_patches(false).await?;
    groves
        .patch(
            "first",
            &json!({ "metadata": { "labels": { "tended": null } } }),
        )
        .await?;
    eventually("an Event reports the failed release", LIMIT, async || {
        let events = waters::warnings(scenario, "first").await?;
        let says_it = |event: &Value| {
            let text = waters::text(event, "/message");
            text.starts_with("it is no longer managed, but") && text.contains("groves")
        };
        Ok(events.iter().any(says_it).then_some(()))
    })
    .await?;
    all.permit_patches(true).await?;
    // The release is retried after 30 seconds, or when the object changes.
    let touched = json!({ "metadata": { "annotations": { "touched": "yes" } } });
    groves.patch("first", &touched).await?;
    let free = |grove: &Value| finalizers(grove).is_empty();
    let left = groves.until("first", "is released", LIMIT, free).await?;
    assert_eq!(left["metadata"]["labels"], Value::Null);
    let maps = scenario.objects("configmaps");
    maps.fetch("first-map").await?;
    // A resource that is selected again is managed as before.
    maps.patch("first-map", &json!({ "data": { "wood": "oak" } }))
        .await?;
    groves
        .patch(
            "first",
            &json!({ "metadata": { "labels": { "tended": "yes" } } }),
        )
        .await?;
    maps.until_equal("first-map", "/data/wood", json!("elm"), LIMIT)
        .await?;
    scenario.until_idle().await?;
    let writes = scenario.writes_since(mark)?;
    ensure!(
        !writes.iter().any(|write| write.verb == "delete"),
        "{writes:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_has_the_selected_fields_is_looked_after() -> Result<()> {
    let groves = Groves::of("fields", "lifecycle/fields.yaml").await?;
    let own = groves.scenario.namespace.clone();
    let maps = groves.scenario.objects("configmaps");
    let spec = |wood: &str| json!({ "wood": wood, "age": 7 });
    groves.grove(&own, "oaks", json!({}), spec("oak")).await?;
    let objects = groves.grove(&own, "elms", json!({}), spec("elm")).await?;
    objects.until_ready("elms").await?;
    groves
        .scenario
        .operator_reports("selectors", "grove", &json!({ "instances": 1, "ready": 1 }))
        .await?;
    let left = objects.fetch("oaks").await?;
    assert_eq!((finalizers(&left), left.get("status")), (vec![], None));

    // One resource enters the selection. The other leaves it: it is released, and its child stays.
    let wood = |wood: &str| json!({ "spec": { "wood": wood, "age": 8 } });
    objects.patch("oaks", &wood("elm")).await?;
    objects.until_ready("oaks").await?;
    maps.until_equal("oaks-map", "/data/age", json!("8"), LIMIT)
        .await?;
    objects.patch("elms", &wood("oak")).await?;
    let free = |grove: &Value| finalizers(grove).is_empty();
    objects.until("elms", "is released", LIMIT, free).await?;
    assert_eq!(maps.fetch("elms-map").await?["data"]["age"], "7");
    objects.delete("elms").await?;
    objects.until_gone("elms", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_left_the_selection_while_the_controller_was_down_can_be_deleted() -> Result<()> {
    let mut groves = Groves::running("astray").await?;
    let own = groves.scenario.namespace.clone();
    let objects = groves
        .grove(
            &own,
            "first",
            json!({ "tended": "yes" }),
            json!({ "wood": "elm" }),
        )
        .await?;
    objects.until_ready("first").await?;
    groves.scenario.kill9()?;
    objects
        .patch(
            "first",
            &json!({ "metadata": { "labels": { "tended": null } } }),
        )
        .await?;
    objects.delete("first").await?;
    ensure!(
        objects.get("first").await?.is_some(),
        "the finalizer did not block the deletion"
    );
    groves.scenario.start().await?;
    objects.until_gone("first", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_labels_and_finalizers_are_put_on_and_kept() -> Result<()> {
    let groves = Groves::running("labels").await?;
    let own = groves.scenario.namespace.clone();
    let objects = groves
        .grove(
            &own,
            "first",
            json!({ "tended": "yes" }),
            json!({ "wood": "elm" }),
        )
        .await?;
    objects.until_ready("first").await?;
    let label = "/metadata/labels/example.org~1wood";
    let first = objects
        .until_equal("first", label, json!("elm"), LIMIT)
        .await?;
    assert_eq!(finalizers(&first), [ARCHIVE, CLEANUP]);

    // A label that the controller itself writes triggers no pass.
    waters::until_counted(&groves.scenario).await?;
    let rests = async || {
        let metrics = groves.scenario.until_at_rest("grove").await?;
        metrics.passes("grove")
    };
    let passes = rests().await?;
    let costs = waters::costs_of_a_pass(&groves.scenario, &objects, "first").await?;
    ensure!(costs.is_empty(), "{}", waters::lines(&costs));
    // The watch may deliver the answer before it arrives.
    ensure!(rests().await? < passes + 2.5);

    objects
        .patch("first", &json!({ "spec": { "wood": "oak" } }))
        .await?;
    objects
        .until_equal("first", label, json!("oak"), LIMIT)
        .await?;
    objects
        .patch(
            "first",
            &json!({ "metadata": { "labels": { "example.org/wood": "pine" } } }),
        )
        .await?;
    objects
        .until_equal("first", label, json!("oak"), LIMIT)
        .await?;

    // The finalizer of another controller stays until it is removed by others.
    objects.delete("first").await?;
    let held = |grove: &Value| finalizers(grove) == [ARCHIVE];
    objects
        .until("first", "has only the other finalizer", LIMIT, held)
        .await?;
    objects
        .patch("first", &json!({ "metadata": { "finalizers": null } }))
        .await?;
    objects.until_gone("first", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_of_another_operator_is_neither_unmarked_nor_deleted_with_the_katalog() -> Result<()>
{
    let policy = "deletionPolicy: delete";
    let katalog = input("lifecycle/selectors.yaml")?;
    let katalog = katalog.replace("finalizers: [example.org/archive]", policy);
    ensure!(katalog.contains(policy), "{katalog}");
    let mut groves = Groves::of_text("parents", &katalog).await?;
    let parents = input("lifecycle/parents.yaml")?;
    groves.scenario.grant(&parents).await?;
    groves.scenario.install(&waters::crds()?).await?;
    groves.scenario.apply(&parents)?;
    groves
        .scenario
        .katalog_is("parents", "True", "Running")
        .await?;
    let own = groves.scenario.namespace.clone();
    let (tended, elm) = (json!({ "tended": "yes" }), json!({ "wood": "elm" }));
    let objects = groves.grove(&own, "first", tended, elm).await?;
    objects.until_ready("first").await?;
    waters::pond(&groves.scenario, "north", &json!({})).await?;
    let is_managed =
        |grove: &Value| grove["metadata"]["labels"]["orkestra.orkspace.io/managed"] == "true";
    let child = objects
        .until("north-grove", "is created", LIMIT, is_managed)
        .await?;
    // Neither operator reverts writes of the other.
    waters::ensure_no_writes(&groves.scenario).await?;
    let katalogs = groves.scenario.objects("katalogs");
    katalogs.delete("selectors").await?;
    katalogs.until_gone("selectors", LIMIT).await?;
    assert_eq!(objects.get("first").await?, None);
    let left = objects.fetch("north-grove").await?;
    assert_eq!(left["metadata"]["uid"], child["metadata"]["uid"]);
    assert_eq!(left["metadata"].get("deletionTimestamp"), None);
    ensure!(is_managed(&left), "{left}");
    groves.scenario.check_running()
}
