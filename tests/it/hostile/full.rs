//! Custom resources that are so large that etcd cannot store them with a finalizer: each fails alone, without retries.

use anyhow::{Context as _, Result, ensure};
use testbed::eventually;

use super::{KATALOG, pond, ponds};
use crate::neighbours::{Neighbours, PONDS};
use crate::scenario::{LIMIT, Scenario};
use crate::waters;

/// The number of such resources: more than the failures that may degrade an operator.
const COUNT: usize = 6;
/// The maximum size of a request to etcd, in bytes.
const ETCD: usize = 1_572_864;
/// The step by which sizes are tried: less than the size of a finalizer, an annotation and their entry in `managedFields`.
const STEP: usize = 128;

/// Creates a pond with a text of a length; returns false if it is too large.
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
        length = length.checked_sub(STEP).context("no size is accepted")?;
        ensure!(length > ETCD - 4096, "the limit is lower than expected");
    }
    for number in 1..COUNT {
        let name = format!("full-{number}");
        ensure!(has_room(&scenario, &name, length).await?, "{name}");
    }
    for number in 0..COUNT {
        let name = format!("full-{number}");
        eventually("an Event reports the failure", LIMIT, async || {
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
    // A write that cannot succeed is not retried.
    scenario.until_at_rest("pond").await.map(drop)
}
