//! Webhooks that cannot be reached yet: no configuration and no CRD refers to them.

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::{eventually, free_port};

use super::{Gate, alone::Service, conversion};
use crate::scenario::LIMIT;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_points_at_a_webhook_before_it_answers() -> Result<()> {
    let mut gate = Gate::prepared("gateprob", &[conversion::CRD], &[conversion::KATALOG]).await?;
    // The controller listens on another port than that of its URL, like a Service without endpoints.
    let port = free_port()?;
    let arguments = gate.arguments(&[]).into_iter();
    let arguments = arguments.map(|one| match one.strip_prefix("--webhooks-listen=") {
        Some(_) => format!("--webhooks-listen=127.0.0.1:{port}"),
        None => one,
    });
    gate.scenario.arguments = arguments.collect();
    gate.scenario.start().await?;
    gate.scenario.apply(conversion::KATALOG)?;
    // The Katalog reports that its conversion is not in place.
    gate.scenario
        .katalog_is("crons", "False", "NotEnforced")
        .await?;
    // The controller has tried to write the configuration and the CRD.
    eventually("two attempts are logged", LIMIT, async || {
        let log = gate.scenario.log();
        let tried = log.lines().filter(|line| {
            line.contains("not all webhooks, policies and conversions are in place")
                && line.contains("the webhook does not answer")
        });
        Ok((tried.count() >= 2).then_some(()))
    })
    .await?;
    let (crds, name) = conversion::crd(&gate);
    let definition = crds.fetch(&name).await?;
    let conversion_now = &definition["spec"]["conversion"];
    ensure!(
        *conversion_now == json!({ "strategy": "None" }),
        "{conversion_now}"
    );
    ensure!(gate.configuration().await?.is_none());

    // From now on the URL leads to the controller.
    let _service = Service::start(gate.port, vec![port]).await?;
    conversion::until_converted(&gate).await?;
    gate.until_configured().await?;
    let cron = json!({
        "apiVersion": format!("{}/v1", gate.scenario.group), "kind": "Cron",
        "metadata": { "name": "daily" }, "spec": { "schedule": "5 4 * * 1" },
    });
    eventually("a resource is written in v1", LIMIT, async || {
        Ok(conversion::crons(&gate, "v1").create(&cron).await.ok())
    })
    .await?;
    Ok(())
}
