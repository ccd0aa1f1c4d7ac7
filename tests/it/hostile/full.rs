//! Custom resources that leave no room for a finalizer.

use anyhow::{Context as _, Result, ensure};
use testbed::eventually;

use super::{KATALOG, pond, ponds};
use crate::neighbours::{Neighbours, PONDS};
use crate::scenario::{LIMIT, Scenario};
use crate::waters;

/// More than the failures after which an operator may be degraded.
const COUNT: usize = 6;
/// What etcd stores at most, in bytes.
const ETCD: usize = 1_572_864;
/// Less than what a finalizer, an annotation and their entry in the managed fields take.
const STEP: usize = 128;

/// Creates a pond with a text of that length; whether there is room for it.
async fn has_room(scenario: &Scenario, name: &str, length: usize) -> Result<bool> {
    let spec = format!(r#""colour":"green","text":"{}""#, "x".repeat(length));
    let request = http::Request::post(ponds(scenario, ""))
        .header("content-type", "application/json")
        .body(pond(scenario, name, "", &spec).into_bytes())?;
    match scenario.client.request_text(request).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.message.contains("too large") => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_without_room_for_a_finalizer_are_their_own_trouble() -> Result<()> {
    let scenario = Scenario::running("full", &["kinds/crds.yaml"], KATALOG).await?;
    let mut neighbours = Neighbours::settle(&scenario, PONDS).await?;
    let mut length = ETCD;
    while !has_room(&scenario, "full-0", length).await? {
        length = length.checked_sub(STEP).context("nothing fits")?;
        ensure!(length > ETCD - 4096, "less fits than expected");
    }
    for number in 1..COUNT {
        let name = format!("full-{number}");
        ensure!(has_room(&scenario, &name, length).await?, "{name}");
    }
    for number in 0..COUNT {
        let name = format!("full-{number}");
        eventually("an Event says why", LIMIT, async || {
            let reported = waters::warnings(&scenario, &name).await?;
            let is_own = reported.iter().any(|event| event["reason"] == "Invalid");
            ensure!(is_own, "{reported:?}");
            Ok(Some(()))
        })
        .await?;
    }
    neighbours.ensure_followed().await?;
    let katalog = scenario.katalog_is("waters", "True", "Running").await?;
    ensure!(
        waters::row(&katalog, "pond").is_some_and(|row| row["state"] == "Running"),
        "{katalog}"
    );
    // Nothing is retried that cannot succeed.
    let passes = scenario.passes("pond").await?;
    waters::until_counted(&scenario).await?;
    ensure!(
        scenario.passes("pond").await? <= passes + 8.0,
        "passes go on"
    );
    Ok(())
}
