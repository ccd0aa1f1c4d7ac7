//! Deletion of custom resources, Katalogs, CRDs and namespaces: nothing is left over, and nothing gets stuck.

mod katalogs;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::{Value, json};
use testbed::{ControlPlane, namespace};

use crate::scenario::{LIMIT, NAMESPACE_LIMIT, Objects, Scenario, condition, input, owner_uid};

pub(crate) const CRDS: [&str; 2] = ["garden/orchard-crd.yaml", "garden/pond-crd.yaml"];
pub(crate) const FINALIZER: &str = "orkestra.orkspace.io/cleanup";

/// Starts a scenario with a ready orchard and its two children, and a garbage collector that knows its kind.
async fn orchard(prefix: &str) -> Result<Scenario> {
    let scenario = Scenario::running(prefix, &CRDS, "garden/katalog.yaml").await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    scenario.objects("orchards").until_ready("north").await?;
    ControlPlane::shared().relearn_kinds()?;
    Ok(scenario)
}

/// Returns the plural with its group, for kubectl: other tests have the same plural in other groups.
fn kind(scenario: &Scenario) -> String {
    format!("orchards.{}", scenario.group)
}

/// Waits until the orchard and its children are gone.
async fn is_all_gone(scenario: &Scenario) -> Result<()> {
    scenario
        .objects("orchards")
        .until_gone("north", LIMIT)
        .await?;
    let maps = scenario.objects("configmaps");
    for child in ["north-basket", "north-ladder"] {
        maps.until_gone(child, LIMIT).await?;
    }
    Ok(())
}

/// Returns the Katalog with a template that does not compile.
fn broken() -> Result<String> {
    let good = input("garden/katalog.yaml")?;
    let bad = good.replace(r#""{{ .spec.fruit }}""#, r#""{{ .spec.fruit""#);
    ensure!(bad != good, "the Katalog has no such template");
    Ok(bad)
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let all = object["metadata"]["finalizers"].as_array();
    all.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_resource_leaves_no_children_and_no_finalizer() -> Result<()> {
    let scenario = orchard("delete").await?;
    let north = scenario.objects("orchards").fetch("north").await?;
    assert_eq!(finalizers(&north), [FINALIZER]);
    scenario.kubectl(&["delete", &kind(&scenario), "north", "--timeout=120s"])?;
    is_all_gone(&scenario).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_whose_katalog_is_broken_can_be_deleted() -> Result<()> {
    let mut scenario = orchard("broken").await?;
    scenario.apply(&input("garden/orchard.yaml")?.replace("north", "south"))?;
    scenario.objects("orchards").until_ready("south").await?;
    scenario.apply(&broken()?)?;
    scenario
        .katalog_is("garden", "False", "InvalidRevision")
        .await?;
    scenario.kubectl(&["delete", &kind(&scenario), "north", "--wait=false"])?;
    is_all_gone(&scenario).await?;

    scenario.kill9()?;
    scenario.kubectl(&["delete", &kind(&scenario), "south", "--wait=false"])?;
    scenario.start().await?;
    scenario
        .objects("orchards")
        .until_gone("south", LIMIT)
        .await?;
    let maps = scenario.objects("configmaps");
    for child in ["south-basket", "south-ladder"] {
        maps.until_gone(child, LIMIT).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_deleted_while_the_controller_is_down_goes_when_it_is_back() -> Result<()> {
    let mut scenario = orchard("down").await?;
    scenario.terminate()?;
    scenario.kubectl(&["delete", &kind(&scenario), "north", "--wait=false"])?;
    let waiting = scenario.objects("orchards").fetch("north").await?;
    assert_eq!(finalizers(&waiting), [FINALIZER]);
    scenario.start().await?;
    is_all_gone(&scenario).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_crd_deleted_with_its_resources_goes_with_all_of_them() -> Result<()> {
    let scenario = orchard("crdgone").await?;
    let _collector = scenario.cluster.keep_collector();
    let name = kind(&scenario);
    scenario.kubectl(&["delete", "crd", &name, "--wait=false"])?;
    Objects::of_cluster(&scenario.client, "customresourcedefinitions")
        .until_gone(&name, LIMIT)
        .await?;
    let maps = scenario.objects("configmaps");
    for child in ["north-basket", "north-ladder"] {
        maps.until_gone(child, LIMIT).await?;
    }
    scenario.operator_is("garden", "orchard", "Waiting").await?;
    scenario.operator_is("garden", "pond", "Running").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_crd_deleted_while_the_controller_is_down_goes_when_it_is_back() -> Result<()>
{
    let mut scenario = orchard("crdlate").await?;
    let _collector = scenario.cluster.keep_collector();
    scenario.kill9()?;
    let name = kind(&scenario);
    scenario.kubectl(&["delete", "crd", &name, "--wait=false"])?;
    let is_deleted = |orchard: &Value| orchard["metadata"]["deletionTimestamp"].is_string();
    let orchards = scenario.objects("orchards");
    orchards
        .until("north", "is being deleted", LIMIT, is_deleted)
        .await?;
    scenario.start().await?;
    Objects::of_cluster(&scenario.client, "customresourcedefinitions")
        .until_gone(&name, LIMIT)
        .await?;
    is_all_gone(&scenario).await
}

/// An orchard with children that cannot have owner references, and a copy of one child with the same labels and annotations.
pub(crate) struct Far {
    pub(crate) scenario: Scenario,
    /// The namespace of the child `north-sign`.
    pub(crate) elsewhere: String,
    pub(crate) signs: Objects,
    pub(crate) classes: Objects,
    pub(crate) class: String,
    /// The roles of the controller's user.
    pub(crate) roles: Vec<ClusterRole>,
}

impl Far {
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        let (mut scenario, katalog) = (Scenario::new(prefix).await?, input("garden/far.yaml")?);
        let roles = scenario.grant(&katalog).await?;
        scenario.start().await?;
        scenario.install(&input(CRDS[0])?).await?;
        scenario.apply(&katalog)?;
        scenario.katalog_is("far", "True", "Running").await?;
        let elsewhere = namespace(&scenario.client, "elsewhere").await?;
        let orchard = input("garden/orchard.yaml")?;
        scenario.apply(&format!("{orchard}  elsewhere: {elsewhere}\n"))?;
        scenario.objects("orchards").until_ready("north").await?;
        ControlPlane::shared().relearn_kinds()?;
        let far = Self {
            signs: scenario.objects_in(&elsewhere, "configmaps"),
            classes: Objects::at(
                &scenario.client,
                "/apis/networking.k8s.io/v1/ingressclasses",
            ),
            class: format!("{}-north", scenario.namespace),
            elsewhere,
            roles,
            scenario,
        };
        let sign = far.signs.fetch("north-sign").await?;
        for child in [&sign, &far.classes.fetch(&far.class).await?] {
            // The garbage collector treats an owner in another namespace as deleted.
            assert_eq!(child["metadata"].get("ownerReferences"), None);
        }
        let mut copy = sign.clone();
        copy["metadata"] = json!({
            "name": "copy",
            "labels": sign["metadata"]["labels"],
            "annotations": sign["metadata"]["annotations"],
        });
        far.signs.create(&copy).await?;
        Ok(far)
    }

    pub(crate) async fn is_gone_but_for_the_bystander(&self) -> Result<()> {
        let orchards = self.scenario.objects("orchards");
        orchards.until_gone("north", LIMIT).await?;
        assert_eq!(
            self.signs.get("north-sign").await?,
            None,
            "the finalizer did not wait for the child"
        );
        assert_eq!(self.classes.get(&self.class).await?, None);
        let maps = self.scenario.objects("configmaps");
        maps.until_gone("north-basket", LIMIT).await?;
        self.signs.fetch("copy").await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn children_that_kubernetes_does_not_collect_go_too() -> Result<()> {
    let far = Far::new("far").await?;
    // Their drift is corrected like that of other children.
    far.signs.delete("north-sign").await?;
    far.signs
        .until_equal("north-sign", "/data/fruit", json!("quince"), LIMIT)
        .await?;
    far.scenario.objects("orchards").delete("north").await?;
    far.is_gone_but_for_the_bystander().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_that_the_katalog_no_longer_declares_go_with_their_resource() -> Result<()> {
    let mut far = Far::new("undeclared").await?;
    let katalog = input("garden/far.yaml")?;
    let custom = katalog.find("          custom:").context("no block")?;
    far.scenario.kill9()?;
    far.scenario.objects("orchards").delete("north").await?;
    far.scenario.apply(&katalog[..custom])?;
    far.scenario.start().await?;
    far.is_gone_but_for_the_bystander().await
}

/// Waits until the controller is idle, and the garbage collector has deleted an object whose owner has gone later than all others.
async fn until_collected(scenario: &Scenario) -> Result<()> {
    scenario.until_idle().await?;
    let maps = scenario.objects("configmaps");
    let (owner, child) = ("barrier-owner", "barrier");
    let map = |name: &str, owners: Value| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "ownerReferences": owners },
        })
    };
    let made = maps.create(&map(owner, json!([]))).await?;
    let uid = &made["metadata"]["uid"];
    let owners = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid }]);
    maps.create(&map(child, owners)).await?;
    maps.delete(owner).await?;
    maps.until_gone(child, LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_deleted_with_orphan_propagation_leaves_its_children() -> Result<()> {
    let scenario = orchard("orphan").await?;
    let maps = scenario.objects("configmaps");
    let basket = maps.fetch("north-basket").await?;
    // The garbage collector releases the dependents that it knows.
    until_collected(&scenario).await?;
    scenario.kubectl(&[
        "delete",
        &kind(&scenario),
        "north",
        "--cascade=orphan",
        "--wait=false",
    ])?;
    scenario
        .objects("orchards")
        .until_gone("north", LIMIT)
        .await?;
    until_collected(&scenario).await?;
    for child in ["north-basket", "north-ladder"] {
        let orphan = maps.fetch(child).await?;
        assert_eq!(owner_uid(&orphan), None, "{child}");
    }
    assert_eq!(
        maps.fetch("north-basket").await?["metadata"]["uid"],
        basket["metadata"]["uid"]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphan_propagation_leaves_children_without_an_owner_reference_too() -> Result<()> {
    let far = Far::new("orphans").await?;
    let kind = kind(&far.scenario);
    far.scenario
        .kubectl(&["delete", &kind, "north", "--cascade=orphan", "--wait=false"])?;
    let orchards = far.scenario.objects("orchards");
    orchards.until_gone("north", LIMIT).await?;
    until_collected(&far.scenario).await?;
    let sign = far.signs.fetch("north-sign").await?;
    let class = far.classes.fetch(&far.class).await?;
    for orphan in [sign, class] {
        let labels = orphan["metadata"]["labels"].to_string();
        ensure!(!labels.contains("orkestra"), "still labelled: {labels}");
    }
    Ok(())
}

/// Creates a namespace with an orchard that has a child in another namespace.
async fn doomed(far: &Far) -> Result<String> {
    let doomed = namespace(&far.scenario.client, "doomed").await?;
    ControlPlane::shared().relearn_kinds()?;
    let text = far.scenario.text(&input("garden/orchard.yaml")?);
    let mut orchard: Value = serde_saphyr::from_str(&text)?;
    orchard["metadata"] = json!({ "name": "doomed" });
    orchard["spec"]["elsewhere"] = json!(far.elsewhere);
    let orchards = far.scenario.objects_in(&doomed, "orchards");
    orchards.create(&orchard).await?;
    orchards.until_ready("doomed").await?;
    Ok(doomed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_with_resources_can_be_deleted_while_the_controller_runs() -> Result<()> {
    let far = Far::new("nsup").await?;
    let doomed = doomed(&far).await?;
    let spaces = Objects::of_cluster(&far.scenario.client, "namespaces");
    spaces.delete(&doomed).await?;
    spaces.until_gone(&doomed, NAMESPACE_LIMIT).await?;
    assert_eq!(far.signs.get("doomed-sign").await?, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_deleted_while_the_controller_is_down_goes_when_it_is_back() -> Result<()> {
    let mut far = Far::new("nsdown").await?;
    let doomed = doomed(&far).await?;
    far.scenario.kill9()?;
    let spaces = Objects::of_cluster(&far.scenario.client, "namespaces");
    spaces.delete(&doomed).await?;
    let orchards = far.scenario.objects_in(&doomed, "orchards");
    let is_going = |orchard: &Value| orchard["metadata"]["deletionTimestamp"].is_string();
    orchards
        .until("doomed", "is being deleted", LIMIT, is_going)
        .await?;
    far.scenario.start().await?;
    spaces.until_gone(&doomed, NAMESPACE_LIMIT).await?;
    assert_eq!(far.signs.get("doomed-sign").await?, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_needs_no_template_no_source_and_no_crd_of_its_children() -> Result<()> {
    let katalog = input("garden/needy.yaml")?;
    let crds = [CRDS[0], "kinds/crds.yaml"];
    let mut scenario = Scenario::with_katalog("needy", &crds, &katalog).await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    let orchards = scenario.objects("orchards");
    scenario
        .objects("lakes")
        .until("north-lake", "exists", LIMIT, |_| true)
        .await?;
    orchards
        .until("north", "waits for its source", LIMIT, |orchard| {
            condition(orchard, "Ready").is_some_and(|ready| ready["reason"] == "SourceMissing")
        })
        .await?;
    // Delete the CRD of the child, and break the Katalog.
    let lakes = format!("lakes.{}", scenario.group);
    scenario.kubectl(&["delete", "crd", &lakes, "--timeout=120s"])?;
    let broken = katalog.replace("{{ .spec.fruit }}", "{{ .spec.fruit");
    ensure!(broken != katalog, "the Katalog has no such template");
    scenario.apply(&broken)?;
    scenario
        .katalog_is("garden", "False", "InvalidRevision")
        .await?;
    scenario.kill9()?;
    orchards.delete("north").await?;
    scenario.start().await?;
    orchards.until_gone("north", LIMIT).await
}
