//! The samples that read other objects and services: `cross` and `external`.

use anyhow::Result;
use serde_json::json;

use super::{DEMO, completed, demo, demos, sample};
use crate::cross::{database, host, of_group, status_of};
use crate::external::{reported, sink::Sink};
use crate::scenario::{LIMIT, Scenario, input};
use crate::waters;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_deployment_waits_for_its_database_and_gets_its_endpoint() -> Result<()> {
    // The sample as printed is not valid YAML: it has quotes within quotes. Another Katalog has the operator that it reads.
    let (katalog, databases) = (
        completed(&sample("cross")?)?,
        input("cross/databases.yaml")?,
    );
    let mut scenario = Scenario::new("row15").await?;
    scenario.grant(&katalog).await?;
    scenario.grant(&databases).await?;
    scenario.start().await?;
    scenario.install(&input(DEMO)?).await?;
    scenario.install(&input("cross/database-crd.yaml")?).await?;
    scenario.apply(&databases)?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("sample", "True", "Running").await?;
    let deployments = scenario.objects("deployments");
    demo(
        &scenario,
        "web",
        &json!({ "image": "registry.example/web:3" }),
    )
    .await?;
    demos(&scenario).until_ready("web").await?;
    assert_eq!(deployments.get("web").await?, None);

    // The database is pending, then ready, then ready at another endpoint.
    database(
        &scenario,
        &json!({ "phase": "Pending", "endpoint": "db-0.example" }),
    )?;
    let kind = of_group(&scenario, "manageddatabases");
    scenario.kubectl(&[
        "wait",
        &kind,
        "web-db",
        "--for=jsonpath={.status.phase}=Pending",
    ])?;
    assert_eq!(deployments.get("web").await?, None);
    for endpoint in ["db-1.example", "db-2.example"] {
        status_of(
            &scenario,
            "web-db",
            &json!({ "phase": "Ready", "endpoint": endpoint }),
        )?;
        deployments
            .until("web", "has the endpoint", LIMIT, |one| {
                host(one) == Some(endpoint)
            })
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn children_are_gated_on_what_calls_answer() -> Result<()> {
    let sink = Sink::start().await?;
    sink.answer("/health", 503, "");
    sink.answer("/flags/shop", 200, "dark-mode");
    let katalog = sample("external")?;
    let mut scenario = Scenario::new("row19").await?;
    scenario.arguments = vec!["--external-allow".to_owned(), sink.url()];
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&input(DEMO)?).await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("sample", "True", "Running").await?;
    let (deployments, maps) = (
        scenario.objects("deployments"),
        scenario.objects("configmaps"),
    );
    let spec = json!({ "image": "registry.example/web:3", "serviceUrl": sink.url() });
    demo(&scenario, "shop", &spec).await?;
    // `continueOnError: false` blocks the whole pass.
    let message = reported(&demos(&scenario), "shop", "ExternalCallFailed").await?;
    assert!(
        message.contains("answers with status 503, not 200"),
        "{message}"
    );
    assert_eq!(deployments.get("shop").await?, None);
    assert_eq!(sink.requests("/flags"), [""; 0]);

    sink.answer("/health", 200, "");
    maps.until_equal("shop-flags", "/data/flags", json!("dark-mode"), LIMIT)
        .await?;
    let deployment = deployments
        .until("shop", "is created", LIMIT, |_| true)
        .await?;
    let image = waters::text(&deployment, "/spec/template/spec/containers/0/image");
    assert_eq!(image, "registry.example/web:3");

    // With `continueOnError: true` the pass continues; the service has no flags for `other`.
    demo(&scenario, "other", &spec).await?;
    deployments
        .until("other", "exists", LIMIT, |_| true)
        .await?;
    demos(&scenario).until_ready("other").await?;
    assert_eq!(maps.get("other-flags").await?, None);
    assert!(!sink.requests("/flags/other").is_empty());
    Ok(())
}
