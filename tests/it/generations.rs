//! Documents of earlier releases, in the cluster: fields that load with a warning work, and a wrong value fails one resource only.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario, condition};
use crate::waters::{self, text};

/// The JSON pointer to the annotation that the Katalog sets on each pond.
const NOTE: &str = "/metadata/annotations/example.org~1note";

/// Returns `reason: message` of the condition `Ready`.
fn ready(pond: &Value) -> String {
    condition(pond, "Ready").map_or_else(String::new, |ready| {
        format!("{}: {}", text(ready, "/reason"), text(ready, "/message"))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_resource_chooses_fails_that_one_alone_and_a_built_in_kind_stays_stopped()
-> Result<()> {
    let katalog = "generations/katalog.yaml";
    let mut scenario = Scenario::new("generations").await?;
    let katalog = crate::scenario::input(katalog)?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    let status = scenario.katalog_is("waters", "True", "Running").await?;
    the_entry_of_a_built_in_kind_is_stopped(&status)?;

    the_children_of_a_pond_are_created(&scenario).await?;
    what_others_create_is_read(&scenario).await?;
    declared_metadata_comes_back_and_a_page_that_is_off_is_not_found(&scenario).await?;
    a_wrong_choice_fails_its_pond_alone(&scenario).await?;
    metadata_goes_with_the_katalog(&scenario).await
}

/// Checks that the Katalog's entry for `ConfigMap` is stopped with the reason `BuiltInKind`.
fn the_entry_of_a_built_in_kind_is_stopped(katalog: &Value) -> Result<()> {
    let rows = katalog["status"]["operators"].as_array();
    let row = rows
        .into_iter()
        .flatten()
        .find(|row| row["name"] == "maps")
        .context("no row of the entry for ConfigMaps")?;
    ensure!(
        (&row["state"], &row["reason"], &row["kind"])
            == (
                &json!("Stopped"),
                &json!("BuiltInKind"),
                &json!("ConfigMap")
            ),
        "{row}"
    );
    Ok(())
}

/// Creates a pond with a profile and a source, and checks its children.
async fn the_children_of_a_pond_are_created(scenario: &Scenario) -> Result<()> {
    let own = &scenario.namespace;
    let maps = scenario.objects("configmaps");
    maps.create(&json!({ "metadata": { "name": "settings" }, "data": { "depth": "9" } }))
        .await?;
    waters::pond(scenario, "north", &json!({ "quota": "small", "from": own })).await?;
    maps.until_equal("north-settings", "/data/depth", json!("9"), LIMIT)
        .await?;
    let (quotas, services) = (
        scenario.objects("resourcequotas"),
        scenario.objects("services"),
    );
    // Children of one wave are written concurrently, so each is waited for.
    let quota = quotas.until("north", "exists", LIMIT, |_| true).await?;
    ensure!(quota["spec"]["hard"].is_object(), "{quota}");
    let service = services.until("north", "exists", LIMIT, |_| true).await?;
    ensure!(
        service["spec"]["selector"] == json!({ "orkestra-owner": "north" })
            && service["spec"]["ports"][0]["port"] == 8080,
        "{service}"
    );
    Ok(())
}

/// Creates objects that the operator only reads, and waits until a child contains values of them.
async fn what_others_create_is_read(scenario: &Scenario) -> Result<()> {
    let label = |key: &str| json!({ key: "north" });
    let account = json!({ "metadata": { "name": "keeper", "labels": label("example.org/pond") } });
    scenario.objects("serviceaccounts").create(&account).await?;
    let slice = json!({
        "metadata": { "name": "north-1", "labels": label("kubernetes.io/service-name") },
        "addressType": "IPv4", "endpoints": [],
    });
    scenario.objects("endpointslices").create(&slice).await?;
    for (key, value) in [("/data/account", "keeper"), ("/data/family", "IPv4")] {
        scenario
            .objects("configmaps")
            .until_equal("north-seen", key, json!(value), LIMIT)
            .await?;
    }
    Ok(())
}

/// Checks that declared metadata is set on the resource and restored after a change, and that a disabled page is not found.
async fn declared_metadata_comes_back_and_a_page_that_is_off_is_not_found(
    scenario: &Scenario,
) -> Result<()> {
    let ponds = scenario.objects("ponds");
    let north = ponds.fetch("north").await?;
    ensure!(text(&north, NOTE) == "the pond north", "{north}");
    let other = json!({ "metadata": { "annotations": { "example.org/note": "mine" } } });
    ponds.patch("north", &other).await?;
    ponds
        .until_equal("north", NOTE, json!("the pond north"), LIMIT)
        .await?;
    let address = format!("/katalog/{}/waters/pond", scenario.namespace);
    let health = scenario.http(&format!("{address}/health")).await?;
    ensure!(health.starts_with("HTTP/1.1 404"), "{health}");
    let operator = scenario.page(&address).await?;
    ensure!(operator["name"] == "pond", "{operator}");
    Ok(())
}

/// Creates ponds with an unknown profile and with a source that is not permitted, and checks that each fails with that reason.
async fn a_wrong_choice_fails_its_pond_alone(scenario: &Scenario) -> Result<()> {
    let ponds = scenario.objects("ponds");
    waters::pond(
        scenario,
        "south",
        &json!({ "quota": "vast", "from": scenario.namespace }),
    )
    .await?;
    ponds
        .until("south", "names no profile", LIMIT, |pond| {
            let ready = ready(pond);
            ready.starts_with("TemplateFailed: ") && ready.contains("names no profile")
        })
        .await?;
    let far = json!({ "quota": "small", "from": "kube-system" });
    waters::pond(scenario, "east", &far).await?;
    ponds
        .until("east", "may not copy", LIMIT, |pond| {
            let ready = ready(pond);
            ready.starts_with("SourceRefused: ") && ready.contains("allowedSources")
        })
        .await?;
    let maps = scenario.objects("configmaps");
    ensure!(maps.get("east-settings").await?.is_none());
    Ok(())
}

/// Deletes the Katalog, and checks that the metadata that it set on resources is removed.
async fn metadata_goes_with_the_katalog(scenario: &Scenario) -> Result<()> {
    scenario.objects("katalogs").delete("waters").await?;
    scenario
        .objects("katalogs")
        .until_gone("waters", LIMIT)
        .await?;
    let north = scenario.objects("ponds").fetch("north").await?;
    ensure!(north.pointer(NOTE).is_none(), "{north}");
    ensure!(north["metadata"].get("labels").is_none(), "{north}");
    Ok(())
}
