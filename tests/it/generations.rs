//! Documents of other generations, in the cluster: what loads with a warning works, or fails one custom resource alone.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario, condition};
use crate::waters::{self, text};

/// The annotation that the Katalog puts on each pond.
const NOTE: &str = "/metadata/annotations/example.org~1note";

/// `reason: message` of the condition `Ready`.
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
    let rows = status["status"]["operators"].as_array();
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

    let own = scenario.namespace.clone();
    let maps = scenario.objects("configmaps");
    maps.create(&json!({ "metadata": { "name": "settings" }, "data": { "depth": "9" } }))
        .await?;
    let (ponds, quota) = (scenario.objects("ponds"), "small");
    waters::pond(&scenario, "north", &json!({ "quota": quota, "from": own })).await?;
    maps.until_equal("north-settings", "/data/depth", json!("9"), LIMIT)
        .await?;
    let (quotas, services) = (
        scenario.objects("resourcequotas"),
        scenario.objects("services"),
    );
    // Children of one wave are written side by side.
    let quota = quotas.until("north", "is made", LIMIT, |_| true).await?;
    ensure!(quota["spec"]["hard"].is_object(), "{quota}");
    let service = services.until("north", "is made", LIMIT, |_| true).await?;
    ensure!(
        service["spec"]["selector"] == json!({ "orkestra-owner": "north" })
            && service["spec"]["ports"][0]["port"] == 8080,
        "{service}"
    );

    // What others create, and the operator only reads.
    let label = |key: &str| json!({ key: "north" });
    let account = json!({ "metadata": { "name": "keeper", "labels": label("example.org/pond") } });
    scenario.objects("serviceaccounts").create(&account).await?;
    let slice = json!({
        "metadata": { "name": "north-1", "labels": label("kubernetes.io/service-name") },
        "addressType": "IPv4", "endpoints": [],
    });
    scenario.objects("endpointslices").create(&slice).await?;
    for (key, value) in [("/data/account", "keeper"), ("/data/family", "IPv4")] {
        maps.until_equal("north-seen", key, json!(value), LIMIT)
            .await?;
    }

    // What the Katalog says of metadata is on the resource, and comes back; a page that is off is not found.
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

    waters::pond(&scenario, "south", &json!({ "quota": "vast", "from": own })).await?;
    ponds
        .until("south", "names no profile", LIMIT, |pond| {
            let ready = ready(pond);
            ready.starts_with("TemplateFailed: ") && ready.contains("names no profile")
        })
        .await?;
    let far = json!({ "quota": "small", "from": "kube-system" });
    waters::pond(&scenario, "east", &far).await?;
    ponds
        .until("east", "may not copy", LIMIT, |pond| {
            let ready = ready(pond);
            ready.starts_with("SourceRefused: ") && ready.contains("allowedSources")
        })
        .await?;
    ensure!(maps.get("east-settings").await?.is_none());

    // A Katalog that goes takes with it what it put on resources.
    scenario.objects("katalogs").delete("waters").await?;
    scenario
        .objects("katalogs")
        .until_gone("waters", LIMIT)
        .await?;
    let north = ponds.fetch("north").await?;
    ensure!(north.pointer(NOTE).is_none(), "{north}");
    ensure!(north["metadata"].get("labels").is_none(), "{north}");
    Ok(())
}
