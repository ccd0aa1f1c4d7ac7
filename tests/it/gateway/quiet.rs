//! A gateway whose objects do not change sends no requests.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use testbed::eventually;

use super::{Gate, conversion, requests};
use crate::{scenario::LIMIT, waters};

/// The time during which no request may be sent.
const WINDOW: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_rules_and_conversions_cost_no_request_while_nothing_happens() -> Result<()> {
    let crds = &["rules/crds.yaml", conversion::CRD];
    let katalogs = [requests::KATALOG, conversion::KATALOG];
    let mut gate = Gate::prepared("gatequie", crds, &katalogs).await?;
    gate.scenario.arguments = gate.arguments(&[]);
    gate.scenario.start().await?;
    gate.until_configured().await?;
    for katalog in katalogs {
        gate.run(katalog).await?;
    }
    conversion::until_converted(&gate).await?;
    let site = waters::resource(&gate.scenario, "Site", "one", &json!({ "image": "a" }));
    gate.scenario.objects("sites").create(&site).await?;
    let cron = json!({
        "apiVersion": format!("{}/v1", gate.scenario.group), "kind": "Cron",
        "metadata": { "name": "daily" }, "spec": { "schedule": "5 4 * * 1" },
    });
    let old = conversion::crons(&gate, "v1");
    eventually("a resource is written in v1", LIMIT, async || {
        Ok(old.create(&cron).await.ok())
    })
    .await?;
    let made = gate.scenario.objects("configmaps");
    made.until_equal("daily", "/data/minute", json!("5"), LIMIT)
        .await?;
    // Something that is asked for again and again would not end.
    gate.scenario.until_no_requests((WINDOW, LIMIT * 2)).await
}
