//! Limits of `cross`: a custom resource reads only in its own namespace and those that the Katalog permits, and no Secret that
//! another Katalog operates.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario, condition, input};
use crate::waters;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_custom_resource_reads_from_no_namespace_that_the_katalog_does_not_permit() -> Result<()>
{
    let mut scenario = Scenario::new("springs").await?;
    let permitted = waters::second_namespace(&scenario.client).await?;
    let foreign = waters::second_namespace(&scenario.client).await?;
    let katalog = waters::filled("cross/springs.yaml", "PERMITTED", &permitted)?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("springs", "True", "Running").await?;
    for (namespace, depth) in [
        (&permitted, "17"),
        (&foreign, "abyssal"),
        (&scenario.namespace, "5"),
    ] {
        let spring = waters::resource(&scenario, "Lake", "spring", &json!({ "depth": depth }));
        scenario
            .objects_in(namespace, "lakes")
            .create(&spring)
            .await?;
    }

    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    waters::pond(&scenario, "north", &json!({ "from": foreign })).await?;
    let refused = until_refused(&ponds, &foreign).await?;
    ensure!(refusal(&refused).contains("allowedNamespaces"), "{refused}");
    ensure!(maps.get("north-found").await?.is_none());

    // The pond's own namespace needs no entry in `allowedNamespaces`.
    for (from, depth) in [
        (&permitted, "17"),
        (&scenario.namespace, "5"),
        (&permitted, "17"),
    ] {
        ponds
            .patch("north", &json!({ "spec": { "from": from } }))
            .await?;
        maps.until_equal("north-found", "/data/depth", json!(depth), LIMIT)
            .await?;
        ponds.until_ready("north").await?;
    }
    // The foreign namespace again: the value read before stays, and the status shows nothing of the foreign lake.
    ponds
        .patch("north", &json!({ "spec": { "from": foreign } }))
        .await?;
    let refused = until_refused(&ponds, &foreign).await?;
    ensure!(
        !refused["status"].to_string().contains("abyssal"),
        "{refused}"
    );
    let map = maps.fetch("north-found").await?;
    assert_eq!(map["data"]["depth"], "17");
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_an_operator_of_another_katalog_operates_is_not_read() -> Result<()> {
    let (keys, borrowers) = (input("cross/keys.yaml")?, input("cross/borrowers.yaml")?);
    let mut scenario = Scenario::new("keys").await?;
    scenario.grant(&keys).await?;
    scenario.grant(&borrowers).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    let labels = json!({ format!("{}/shared", scenario.group): "yes" });
    let key = json!({
        "metadata": { "name": "north-key", "labels": labels, "annotations": { "note": "abyssal" } },
    });
    scenario.objects("secrets").create(&key).await?;
    scenario.apply(&keys)?;
    scenario.katalog_is("keys", "True", "Running").await?;
    scenario.apply(&borrowers)?;
    waters::pond(&scenario, "north", &json!({})).await?;
    let ponds = scenario.objects("ponds");
    until_refused(&ponds, "operators of the same Katalog only").await?;
    let maps = scenario.objects("configmaps");
    ensure!(maps.get("north-borrowed").await?.is_none());
    scenario.check_running()
}

/// Returns a Katalog `name` in a namespace, whose entry `crd` of that kind has these further fields.
fn katalog(namespace: &str, name: &str, (crd, kind): (&str, &str), more: &Value) -> String {
    let mut entry = json!({
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": kind, "plural": format!("{}s", kind.to_lowercase()) },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        entry[field] = value.clone();
    }
    json!({
        "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "crds": { crd: entry } },
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_team_is_read_only_by_its_full_name_and_where_it_opts_in() -> Result<()> {
    let mut scenario = Scenario::new("teams").await?;
    let theirs = waters::second_namespace(&scenario.client).await?;
    let reader = |crd: &str| {
        let cross = json!([{ "crd": crd, "as": "lake", "selector": { "name": "spring", "namespace": theirs } }]);
        let map = json!([{ "name": "{{ .metadata.name }}-found", "data": { "depth": "{{ .cross.lake.spec.depth }}" } }]);
        let more =
            json!({ "operatorBox": { "cross": cross, "onReconcile": { "configMaps": map } } });
        katalog("NAMESPACE", "readers", ("pond", "Pond"), &more)
    };
    let owner = katalog(&theirs, "lakes", ("lake", "Lake"), &json!({}));
    scenario.grant(&reader("lake")).await?;
    scenario.grant(&owner).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.arguments = vec![format!("--namespace={theirs}")];
    scenario.start().await?;
    let spring = waters::resource(&scenario, "Lake", "spring", &json!({ "depth": "17" }));
    let lakes = scenario.objects_in(&theirs, "lakes");
    lakes.create(&spring).await?;
    let owners = scenario.objects_in(&theirs, "katalogs");
    let owner: Value = serde_json::from_str(&scenario.text(&owner))?;
    owners.create(&owner).await?;
    scenario.apply(&reader("lake"))?;
    waters::pond(&scenario, "north", &json!({})).await?;
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    // A bare name is one of the reader's own namespace: any user could take it elsewhere.
    until_refused(&ponds, "in full: `namespace/katalog/crd`").await?;
    // In full it is that Katalog's, which does not permit it.
    scenario.apply(&reader(&format!("{theirs}/lakes/lake")))?;
    until_refused(&ponds, "crossAccess: true").await?;
    ensure!(maps.get("north-found").await?.is_none());
    let permitted = json!({ "spec": { "crds": { "lake": { "crossAccess": true } } } });
    owners.patch("lakes", &permitted).await?;
    maps.until_equal("north-found", "/data/depth", json!("17"), LIMIT)
        .await?;
    ponds.until_ready("north").await?;
    scenario.check_running()
}

/// Waits until the pond's read is refused with a message that contains `reason`, such as a namespace.
async fn until_refused(ponds: &Objects, reason: &str) -> Result<Value> {
    ponds
        .until("north", "is refused its read", LIMIT, |pond| {
            refusal(pond).contains(reason)
        })
        .await
}

/// Returns the message of a pond's `Ready` condition if it is `False`.
fn refusal(pond: &Value) -> String {
    let ready = condition(pond, "Ready").filter(|ready| ready["status"] == "False");
    let message = ready.map_or("", |ready| waters::text(ready, "/message"));
    message.to_owned()
}
