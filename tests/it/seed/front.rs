//! The Katalog of the front page, and the features that every operator has by default.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::sample;
use crate::scenario::{LIMIT, Scenario, input, owner_uid};
use crate::waters;

const OPERATOR: &str = "website-operator";

/// Creates a scenario in which the front page's Katalog runs, with a Website.
async fn with_website(prefix: &str) -> Result<Scenario> {
    let crds = ["website/crd.yaml"];
    let scenario = Scenario::with_katalog(prefix, &crds, &sample("website")?).await?;
    scenario.apply(&input("website/cr.yaml")?)?;
    Ok(scenario)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_katalog_is_stored_as_written_and_becomes_an_operator() -> Result<()> {
    let scenario = with_website("row1").await?;
    let stored = scenario.objects("katalogs").fetch(OPERATOR).await?;
    let written: Value = serde_saphyr::from_str(&scenario.text(&sample("website")?))?;
    for field in ["apiVersion", "kind", "spec"] {
        assert_eq!(stored[field], written[field], "{field}");
    }
    let row = waters::row(&stored, "website").context("no row")?;
    assert_eq!(row["state"], "Running");
    scenario.objects("websites").until_ready("hello").await?;
    let deployment = scenario.objects("deployments").fetch("hello").await?;
    assert_eq!(deployment["spec"]["replicas"], 2);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example/web:3");
    let service = scenario.objects("services").fetch("hello").await?;
    let ports = json!([{ "port": 80, "protocol": "TCP", "targetPort": 8081 }]);
    assert_eq!(service["spec"]["ports"], ports);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn an_operator_has_all_that_is_promised_without_a_word_of_it() -> Result<()> {
    let scenario = with_website("row9").await?;
    let (websites, deployments, services) = (
        scenario.objects("websites"),
        scenario.objects("deployments"),
        scenario.objects("services"),
    );
    // The Website is ready once its pods are ready.
    let ready = websites.until_ready("hello").await?;
    let deployment = deployments.fetch("hello").await?;
    assert_eq!(deployment["status"]["readyReplicas"], 2);
    let finalizers = json!(["orkestra.orkspace.io/cleanup"]);
    assert_eq!(ready["metadata"]["finalizers"], finalizers);
    let uid = ready["metadata"]["uid"].as_str();
    for child in [&deployment, &services.fetch("hello").await?] {
        ensure!(
            uid.is_some() && owner_uid(child) == uid,
            "{}",
            child["metadata"]
        );
    }
    events_name_children(&scenario).await?;

    // Children that another client changes or deletes are corrected.
    scenario.kubectl(&["scale", "deployment/hello", "--replicas=5"])?;
    deployments
        .until_equal("hello", "/spec/replicas", json!(2), LIMIT)
        .await?;
    services.delete("hello").await?;
    services
        .until("hello", "is created again", LIMIT, |_| true)
        .await?;

    it_has_metrics(&scenario).await?;
    eventually("its health is reported", LIMIT, async || {
        let health = scenario.page("/katalog/website/health").await?;
        let reports = [&health["healthy"], &health["readyCount"]];
        ensure!(reports == [&json!(true), &json!(1)], "{health}");
        Ok(Some(()))
    })
    .await?;

    websites.delete("hello").await?;
    websites.until_gone("hello", LIMIT).await?;
    deployments.until_gone("hello", LIMIT).await?;
    services.until_gone("hello", LIMIT).await
}

/// Waits for Events that name the children that were created for the Website.
async fn events_name_children(scenario: &Scenario) -> Result<()> {
    let events = scenario.objects("events");
    let is_reported = |event: &Value, child: &str| {
        let about = &event["involvedObject"];
        about["kind"] == "Website"
            && about["name"] == "hello"
            && event["type"] == "Normal"
            && waters::text(event, "/message").contains(child)
    };
    eventually("Events name the children", LIMIT, async || {
        let all = events.list().await?;
        let reported = ["Deployment.apps", "Service"].iter().all(|kind| {
            let made = format!("created {kind} {}/hello", scenario.namespace);
            all.iter().any(|event| is_reported(event, &made))
        });
        ensure!(reported, "{all:?}");
        Ok(Some(()))
    })
    .await
}

/// Checks that the operator has metric series with its name and kind as labels.
async fn it_has_metrics(scenario: &Scenario) -> Result<()> {
    let kind = [
        ("crd", "website"),
        ("version", "v1alpha1"),
        ("kind", "Website"),
    ];
    let labels = [&kind[..], &[("group", &*scenario.group)]].concat();
    for series in [
        "orkestra_reconcile_total",
        "orkestra_reconcile_duration_seconds_count",
        "orkestra_queue_depth",
        "orkestra_workers",
        "orkestra_resource_count",
    ] {
        ensure!(
            !scenario.series(series, &labels).await?.is_empty(),
            "no {series}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn pages_and_metrics_show_every_operator() -> Result<()> {
    let scenario = with_website("row25").await?;
    scenario.objects("websites").until_ready("hello").await?;
    scenario
        .operator_reports(OPERATOR, "website", &json!({ "instances": 1, "ready": 1 }))
        .await?;
    let all = scenario.page("/katalog").await?;
    let counts = [&all["healthy"], &all["total"], &all["name"]];
    assert_eq!(counts, [&json!(true), &json!(1), &json!(OPERATOR)]);
    let row = &all["crds"][0];
    let gvk = json!({ "group": scenario.group, "version": "v1alpha1", "kind": "Website" });
    assert_eq!((&row["name"], &row["gvk"]), (&json!("website"), &gvk));
    assert_eq!(
        (&row["resourceCount"], &row["readyCount"]),
        (&json!(1), &json!(1))
    );

    let health = scenario.page("/katalog/website/health").await?;
    let reports = [&health["state"], &health["status"], &health["totalFailed"]];
    assert_eq!(reports, [&json!("healthy"), &json!(200), &json!(0)]);
    // The same page under its long path.
    let path = format!("/katalog/{}/{OPERATOR}/website/health", scenario.namespace);
    assert_eq!(
        scenario.page(&path).await?["startedAt"],
        health["startedAt"]
    );

    let resources = scenario.page("/katalog/website/cr").await?;
    let item = &resources["items"][0];
    assert_eq!(resources["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&item["name"], &item["namespace"], &item["ready"]),
        (&json!("hello"), &json!(scenario.namespace), &json!(true))
    );
    let one = scenario.page("/katalog/website/cr/hello").await?;
    let deployment = &one["children"]["Deployment"][0];
    assert_eq!(
        (&deployment["name"], &deployment["readyReplicas"]),
        (&json!("hello"), &json!(2)),
        "{one}"
    );

    let passes = scenario.passes("website").await?;
    ensure!(passes >= 1.0, "{passes} passes");
    assert_eq!(health["lastError"], Value::Null);
    let workers = scenario
        .metric("orkestra_workers", &[("crd", "website")])
        .await?;
    ensure!(workers >= 1.0, "{workers} workers");
    Ok(())
}
