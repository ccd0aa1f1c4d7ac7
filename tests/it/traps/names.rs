//! Names of the maximum length, and one name in two kinds.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::scenario::{LIMIT, Scenario, condition, owner_uid};
use crate::waters;

const KATALOG: &str = "failure/katalog.yaml";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn resources_of_two_kinds_and_one_name_do_not_take_each_others_children()
-> Result<()> {
    let mut scenario = Scenario::running("namesakes", &["kinds/crds.yaml"], KATALOG).await?;
    let (ponds, lakes) = (scenario.objects("ponds"), scenario.objects("lakes"));
    let secrets = scenario.objects("secrets");
    let pond = waters::pond(&scenario, "same", &json!({ "colour": "green" })).await?;
    ponds.until_ready("same").await?;
    // Both kinds declare a Secret of this name.
    let spec = json!({ "bed": "sand", "colour": "blue" });
    waters::lake(&scenario, "same", &spec).await?;
    let refused = lakes
        .until("same", "reports that the name is taken", LIMIT, |lake| {
            condition(lake, "Ready").is_some_and(|ready| ready["reason"] == "NameTaken")
        })
        .await?;
    let ready = condition(&refused, "Ready").context("no condition")?;
    ensure!(
        waters::text(ready, "/message").contains("same-key"),
        "{ready}"
    );
    let key = secrets.fetch("same-key").await?;
    ensure!(
        owner_uid(&key) == Some(waters::text(&pond, "/metadata/uid")),
        "{key}"
    );
    let maps = scenario.objects("configmaps");
    maps.until_equal("sand", "/data/colour", json!("blue"), LIMIT)
        .await?;

    lakes.delete("same").await?;
    lakes.until_gone("same", LIMIT).await?;
    let left = secrets.fetch("same-key").await?;
    assert_eq!(left["metadata"]["uid"], key["metadata"]["uid"]);
    assert_eq!(
        left["metadata"]["resourceVersion"], key["metadata"]["resourceVersion"],
        "the Secret was changed"
    );
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_resource_may_have_the_longest_name_that_there_is() -> Result<()> {
    let mut scenario = Scenario::running("long", &["kinds/crds.yaml"], KATALOG).await?;
    // Two names that differ only at the end, and are short enough for the suffix that the Katalog appends.
    let names = ["a", "b"].map(|end| format!("{}{end}", "long.".repeat(49)));
    let ponds = scenario.objects("ponds");
    for name in &names {
        waters::pond(&scenario, name, &json!({ "colour": "green" })).await?;
    }
    for name in &names {
        ponds.until_ready(name).await?;
        ponds
            .patch(name, &json!({ "spec": { "colour": "red" } }))
            .await?;
        let map = format!("{name}-pond");
        let maps = scenario.objects("configmaps");
        maps.until_equal(&map, "/data/colour", json!("red"), LIMIT)
            .await?;
    }
    // A name that is too long for the suffix is reported, and does not affect the other resources.
    let longest = "x".repeat(253);
    waters::pond(&scenario, &longest, &json!({ "colour": "green" })).await?;
    ponds
        .until(
            &longest,
            "reports that the name is too long",
            LIMIT,
            |pond| condition(pond, "Stalled").is_some_and(|one| one["reason"] == "InvalidName"),
        )
        .await?;
    for name in &names {
        ponds.delete(name).await?;
        ponds.until_gone(name, LIMIT).await?;
    }
    ponds.delete(&longest).await?;
    ponds.until_gone(&longest, LIMIT).await?;
    scenario.check_running()
}
