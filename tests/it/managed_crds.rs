//! `ork controller --manage-crds`: definitions that `schema` generates follow the Katalog, and no stored custom resource is harmed.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::{
    scenario::{LIMIT, Objects, Scenario, condition},
    waters,
};

/// A kind with two fields; `EXTRA` stands for more of them.
const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: lakes }
spec:
  crds:
    lake:
      apiTypes: { group: GROUP, version: v1, kind: Lake, plural: lakes }
      schema:
        spec:
          depth: integer | default=3
          EXTRA
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}-lake', data: { depth: '{{ .spec.depth }}' } }]
";

fn katalog(extra: &str) -> String {
    KATALOG.replace("EXTRA", extra)
}

fn lake(scenario: &Scenario, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{}/v1", scenario.group), "kind": "Lake",
        "metadata": { "name": name, "namespace": scenario.namespace }, "spec": spec,
    })
}

fn lakes(scenario: &Scenario) -> Objects {
    let (group, namespace) = (&scenario.group, &scenario.namespace);
    let path = format!("/apis/{group}/v1/namespaces/{namespace}/lakes");
    Objects::at(&scenario.client, &path)
}

fn definitions(scenario: &Scenario) -> Objects {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    Objects::at(&scenario.client, path)
}

async fn running(prefix: &str) -> Result<Scenario> {
    let mut scenario = Scenario::new(prefix).await?;
    scenario
        .grant_printed(&katalog(""), &["--manage-crds"])
        .await?;
    scenario.arguments = vec!["--manage-crds".to_owned()];
    scenario.start().await?;
    Ok(scenario)
}

/// Waits until the Katalog is not ready for that reason, with these parts in the message, and is stalled.
async fn refused(scenario: &Scenario, parts: &[&str]) -> Result<()> {
    let katalogs = scenario.objects("katalogs");
    let has = |katalog: &Value| {
        let ready = condition(katalog, "Ready").cloned().unwrap_or_default();
        let message = waters::text(&ready, "/message");
        ready["reason"] == "DefinitionRefused"
            && condition(katalog, "Stalled").is_some()
            && parts.iter().all(|part| message.contains(part))
    };
    let what = format!("is refused with {parts:?}");
    katalogs.until("lakes", &what, LIMIT, has).await?;
    Ok(())
}

fn field(crd: &Value, name: &str) -> Value {
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    crd.pointer(at).map_or(Value::Null, |all| all[name].clone())
}

// Over 60 lines: the life of one definition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_follows_its_katalog_and_harms_no_stored_object() -> Result<()> {
    let mut scenario = running("managedcrds").await?;
    let name = format!("lakes.{}", scenario.group);
    scenario.apply(&katalog("shore: string"))?;
    scenario.katalog_is("lakes", "True", "Running").await?;
    let (lakes, crds) = (lakes(&scenario), definitions(&scenario));
    let crd = crds.fetch(&name).await?;
    ensure!(
        crd["metadata"]["annotations"]["orkestra.orkspace.io/katalog"]
            == format!("{}/lakes", scenario.namespace),
        "{crd}"
    );
    let north = lake(&scenario, "north", &json!({ "shore": "sand" }));
    lakes.create(&north).await?;
    lakes.until_ready("north").await?;

    // A wider definition is applied at once.
    scenario.apply(&katalog("shore: string\n          fish: integer"))?;
    let has_fish = |crd: &Value| field(crd, "fish")["type"] == "integer";
    crds.until(&name, "has the new field", LIMIT, has_fish)
        .await?;
    scenario.katalog_is("lakes", "True", "Running").await?;

    // A field that an object has is not removed, and the last good revision runs on.
    scenario.apply(&katalog("fish: integer"))?;
    let lost = ["north", "spec.shore", "would lose a field"];
    refused(&scenario, &lost).await?;
    ensure!(field(&crds.fetch(&name).await?, "shore")["type"] == "string");
    lakes
        .create(&lake(&scenario, "south", &json!({ "depth": 5 })))
        .await?;
    lakes.until_ready("south").await?;
    // The refusal outlives a restart.
    scenario.kill9()?;
    scenario.start().await?;
    refused(&scenario, &lost).await?;

    // Once no object has it any more, it is removed, with an Event.
    lakes
        .patch("north", &json!({ "spec": { "shore": null } }))
        .await?;
    let is_gone = |crd: &Value| field(crd, "shore").is_null();
    crds.until(&name, "has lost the field", LIMIT, is_gone)
        .await?;
    scenario.katalog_is("lakes", "True", "Running").await?;
    let events = scenario.objects("events");
    eventually("an Event names the change", LIMIT, async || {
        let all = events.list().await?;
        let mut all = all
            .iter()
            .filter(|one| one["reason"] == "DefinitionNarrowed");
        let found = all.find(|one| waters::text(one, "/message").contains("spec.shore is removed"));
        Ok(found.map(|_| ()))
    })
    .await?;

    // A bound that an object violates is refused, one that all keep is not.
    scenario.apply(&katalog("fish: integer").replace("default=3", "default=3 maximum=4"))?;
    refused(&scenario, &["south", "spec.depth"]).await?;
    scenario.apply(&katalog("fish: integer").replace("default=3", "default=3 maximum=5"))?;
    scenario.katalog_is("lakes", "True", "Running").await?;
    ensure!(field(&crds.fetch(&name).await?, "depth")["maximum"] == 5);

    // Another client's change is corrected.
    let open = json!([{ "op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/fish" }]);
    scenario.kubectl(&[
        "patch",
        "crd",
        &name,
        "--type=json",
        "-p",
        &open.to_string(),
    ])?;
    crds.until(&name, "has the field again", LIMIT, has_fish)
        .await?;
    scenario.katalog_is("lakes", "True", "Running").await?;

    // The definition stays when the Katalog goes: with it, all objects would be deleted.
    scenario.kubectl(&["delete", "katalog", "lakes"])?;
    ensure!(crds.get(&name).await?.is_some());
    ensure!(lakes.get("north").await?.is_some());
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_of_others_is_left_alone_until_it_is_given_to_the_katalog() -> Result<()> {
    let mut scenario = running("foreigncrds").await?;
    let name = format!("lakes.{}", scenario.group);
    let file = scenario.file("old.yaml", &katalog("shore: string"))?;
    let file = file.to_str().context("a path is not text")?;
    let generated = scenario.ork(&["generate", "crd", "-k", file])?;
    let crds = definitions(&scenario);
    scenario.install(&generated).await?;

    // What is as declared needs no owner.
    scenario.apply(&katalog("shore: string"))?;
    scenario.katalog_is("lakes", "True", "Running").await?;
    scenario.apply(&katalog("shore: string\n          fish: integer"))?;
    let annotate = format!(
        "kubectl annotate crd {name} --overwrite orkestra.orkspace.io/katalog={}/lakes",
        scenario.namespace
    );
    refused(&scenario, &[&name, "no Katalog has created it", &annotate]).await?;
    ensure!(field(&crds.fetch(&name).await?, "fish").is_null());
    let words: Vec<&str> = annotate.split(' ').skip(1).collect();
    scenario.kubectl(&words)?;
    scenario.katalog_is("lakes", "True", "Running").await?;
    ensure!(field(&crds.fetch(&name).await?, "fish")["type"] == "integer");
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_permission_the_katalog_names_it_and_runs_once_it_is_granted() -> Result<()> {
    let mut scenario = Scenario::new("crdrights").await?;
    let text = katalog("shore: string");
    scenario.grant(&text).await?;
    scenario.arguments = vec!["--manage-crds".to_owned()];
    scenario.start().await?;
    scenario.apply(&text)?;
    let waits = scenario.katalog_is("lakes", "False", "Forbidden").await?;
    let ready = condition(&waits, "Ready").cloned().unwrap_or_default();
    let message = waters::text(&ready, "/message");
    ensure!(
        message.contains("customresourcedefinitions") && message.contains("--manage-crds"),
        "{message}"
    );
    scenario.grant_printed(&text, &["--manage-crds"]).await?;
    scenario.katalog_is("lakes", "True", "Running").await?;
    scenario.check_running()
}
