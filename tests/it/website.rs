//! A declared operator: a Website gets its children, and Katalog, CRD and custom resource may be applied in any order.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario, input, is_ready, owner_uid, within};

/// An object that a user applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Katalog,
    Crd,
    Website,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_website_becomes_ready_in_every_order_of_katalog_crd_and_cr() -> Result<()> {
    use Step::{Crd, Katalog, Website};
    let orders = [
        [Crd, Katalog, Website],
        [Crd, Website, Katalog],
        [Katalog, Crd, Website],
        [Katalog, Website, Crd],
        [Website, Crd, Katalog],
        [Website, Katalog, Crd],
    ];
    // Each order has its own controller, which mostly waits.
    let all = orders.map(async |order| {
        let ready = becomes_ready(order).await;
        ready.with_context(|| format!("in the order {order:?}"))
    });
    try_join_all(all).await.map(drop)
}

async fn becomes_ready(order: [Step; 3]) -> Result<()> {
    let mut scenario = Scenario::new("website").await?;
    let (crd, katalog, website) = (
        input("website/crd.yaml")?,
        input("website/katalog.yaml")?,
        input("website/cr.yaml")?,
    );
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    let (mut applied, mut started) = (Vec::new(), Instant::now());
    for step in order {
        started = Instant::now();
        match step {
            Step::Crd => scenario.apply(&crd)?,
            Step::Katalog => scenario.apply(&katalog)?,
            Step::Website if applied.contains(&Step::Crd) => accept(&scenario, &website).await?,
            Step::Website => refuse(&scenario, &website).await?,
        }
        if step == Step::Crd && applied.contains(&Step::Website) {
            accept(&scenario, &website).await?;
        }
        applied.push(step);
        // Wait for the operator's state, so that the next object is applied late.
        if applied.contains(&Step::Katalog) {
            let state = if applied.contains(&Step::Crd) {
                "Running"
            } else {
                "Waiting"
            };
            scenario
                .operator_is("website-operator", "website", state)
                .await?;
        }
    }
    let ready = scenario.objects("websites").until_ready("hello").await?;
    println!(
        "{order:?}: ready {:?} after the last `kubectl apply` was started",
        started.elapsed()
    );
    assert_eq!(
        ready["status"]["endpoint"],
        format!("hello.{}.svc", scenario.namespace)
    );
    scenario
        .katalog_is("website-operator", "True", "Running")
        .await?;
    has_its_children(&scenario, &ready).await
}

/// Checks that a resource is refused while its CRD does not exist.
async fn refuse(scenario: &Scenario, website: &str) -> Result<()> {
    let refused = eventually("kubectl finds no such kind", LIMIT, async || {
        match scenario.apply(website) {
            Ok(()) => Ok(Some(false)),
            Err(error) if format!("{error:#}").contains("no matches for kind") => Ok(Some(true)),
            // kubectl may fail to read the kinds while other tests create and delete CRDs.
            Err(error) => Err(error),
        }
    })
    .await?;
    ensure!(refused, "a kind without a CRD was accepted");
    Ok(())
}

/// Applies the resource until it is accepted, as tools that apply a repository do: a new CRD is not served immediately.
async fn accept(scenario: &Scenario, website: &str) -> Result<()> {
    eventually("the Website is accepted", LIMIT, async || {
        scenario.apply(website).map(Some)
    })
    .await
}

async fn has_its_children(scenario: &Scenario, website: &Value) -> Result<()> {
    let uid = website["metadata"]["uid"].as_str().context("no uid")?;
    let deployment = scenario.objects("deployments").fetch("hello").await?;
    let service = scenario.objects("services").fetch("hello").await?;
    for child in [&deployment, &service] {
        let metadata = &child["metadata"];
        assert_eq!(owner_uid(child), Some(uid));
        assert_eq!(
            metadata["ownerReferences"].as_array().map(Vec::len),
            Some(1)
        );
        assert_eq!(metadata["labels"]["orkestra.orkspace.io/managed"], "true");
        assert_eq!(metadata["labels"]["orkestra.orkspace.io/owner-uid"], uid);
        assert_eq!(
            metadata["labels"]["orkestra.orkspace.io/katalog"],
            format!("{}.website-operator", scenario.namespace)
        );
    }
    assert_eq!(
        deployment["metadata"]["annotations"]["orkestra.orkspace.io/child"],
        "Deployment/hello"
    );
    // The value is an integer: "2" would not be equal.
    assert_eq!(deployment["spec"]["replicas"], json!(2));
    let template = &deployment["spec"]["template"];
    let containers = template["spec"]["containers"]
        .as_array()
        .context("no containers")?;
    assert_eq!(containers.len(), 1);
    assert_eq!(containers[0]["image"], "registry.example/web:3");
    assert_eq!(
        template["metadata"]["labels"].get("orkestra.orkspace.io/owner-uid"),
        None,
        "pods have no owner label"
    );
    assert_eq!(
        service["spec"]["ports"],
        json!([{ "port": 80, "protocol": "TCP", "targetPort": 8081 }])
    );
    selects_the_pods(scenario, &service).await
}

/// Checks that the Service's selector matches both pods of the Deployment, which are the only pods of the namespace.
async fn selects_the_pods(scenario: &Scenario, service: &Value) -> Result<()> {
    let selector = service["spec"]["selector"]
        .as_object()
        .context("no selector")?;
    ensure!(!selector.is_empty(), "the selector is empty");
    let pods = scenario.objects("pods").list().await?;
    let selected = pods
        .iter()
        .filter(|pod| {
            selector
                .iter()
                .all(|(label, value)| &pod["metadata"]["labels"][label] == value)
        })
        .count();
    assert_eq!((pods.len(), selected), (2, 2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_field_that_reads_a_child_follows_it_within_a_second() -> Result<()> {
    let mut scenario = Scenario::new("follow").await?;
    let katalog = input("website/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&input("website/crd.yaml")?).await?;
    scenario.apply(&katalog)?;
    scenario.apply(&input("website/cr.yaml")?)?;
    let (websites, deployments) = (
        scenario.objects("websites"),
        scenario.objects("deployments"),
    );
    let ready = websites.until_ready("hello").await?;
    assert_eq!(ready["status"]["readyReplicas"], json!(2));

    let mut sizes = [5, 1].into_iter().cycle();
    let mut follow = async || -> Result<Duration> {
        let replicas = sizes.next().context("endless")?;
        websites
            .patch("hello", &json!({ "spec": { "replicas": replicas } }))
            .await?;
        deployments
            .until_equal("hello", "/status/readyReplicas", json!(replicas), LIMIT)
            .await?;
        let reached = Instant::now();
        websites
            .until_equal("hello", "/status/readyReplicas", json!(replicas), LIMIT)
            .await?;
        let took = reached.elapsed();
        websites
            .until("hello", "is ready again", LIMIT, is_ready)
            .await?;
        Ok(took)
    };
    within("the status follows", Duration::from_secs(1), async || {
        let took = follow().await?;
        follow().await.map(|other| took.min(other))
    })
    .await
    .map(drop)
}
