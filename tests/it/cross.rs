//! `cross`: an operator reads the resources of other operators and follows their changes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Scenario, condition, input, within};
use crate::waters;

/// The limit of the time from a change of a database to the Deployment of the app that reads it.
const SOON: Duration = Duration::from_secs(1);

/// Starts the controller with the Katalogs of apps and databases, and both CRDs.
async fn running() -> Result<Scenario> {
    let (apps, databases) = (input("cross/apps.yaml")?, input("cross/databases.yaml")?);
    let mut scenario = Scenario::new("cross").await?;
    scenario.grant(&apps).await?;
    scenario.grant(&databases).await?;
    scenario.start().await?;
    scenario.install(&input("cross/app-crd.yaml")?).await?;
    scenario.install(&input("cross/database-crd.yaml")?).await?;
    scenario.apply(&apps)?;
    scenario.apply(&databases)?;
    scenario.katalog_is("apps", "True", "Running").await?;
    scenario.katalog_is("databases", "True", "Running").await?;
    Ok(scenario)
}

fn make(scenario: &Scenario, kind: &str, name: &str, labels: &Value, spec: &Value) -> Result<()> {
    let object = json!({
        "apiVersion": "GROUP/v1alpha1", "kind": kind,
        "metadata": { "name": name, "namespace": "NAMESPACE", "labels": labels }, "spec": spec,
    });
    scenario.apply(&object.to_string())
}

fn app(scenario: &Scenario) -> Result<()> {
    let spec = json!({ "image": "registry.example/app:1" });
    make(scenario, "App", "web", &json!({}), &spec)
}

/// Creates the database of the app `web`, with that status.
pub(crate) fn database(scenario: &Scenario, status: &Value) -> Result<()> {
    make(
        scenario,
        "ManagedDatabase",
        "web-db",
        &json!({}),
        &json!({}),
    )?;
    status_of(scenario, "web-db", status)
}

/// Writes the status of a database, as its operator would.
pub(crate) fn status_of(scenario: &Scenario, name: &str, status: &Value) -> Result<()> {
    let patch = json!({ "status": status }).to_string();
    let kind = of_group(scenario, "manageddatabases");
    let args = ["patch", &kind, name, "--subresource=status"];
    let change = ["--type=merge", "--patch", &patch];
    scenario.kubectl(&[&args[..], &change].concat()).map(drop)
}

/// Returns a plural with its group, for kubectl: other scenarios have the same plural in other groups.
pub(crate) fn of_group(scenario: &Scenario, plural: &str) -> String {
    format!("{plural}.{}", scenario.group)
}

/// Returns the host of the database, from the environment of a Deployment's container.
pub(crate) fn host(deployment: &Value) -> Option<&str> {
    let containers = deployment.pointer("/spec/template/spec/containers")?;
    let env = containers[0]["env"].as_array()?;
    env.iter().find(|one| one["name"] == "DB_HOST")?["value"].as_str()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn an_app_waits_for_its_database_and_follows_its_endpoint_within_a_second()
-> Result<()> {
    let scenario = running().await?;
    let (apps, deployments) = (scenario.objects("apps"), scenario.objects("deployments"));
    app(&scenario)?;
    apps.until_equal("web", "/status/database", json!("false"), LIMIT)
        .await?;
    ensure!(deployments.get("web").await?.is_none(), "created too early");

    // A read that found nothing is a trigger too.
    make(
        &scenario,
        "ManagedDatabase",
        "web-db",
        &json!({}),
        &json!({}),
    )?;
    apps.until_equal("web", "/status/database", json!("true"), LIMIT)
        .await?;
    ensure!(deployments.get("web").await?.is_none(), "created too early");

    let (mut round, mut endpoint) = (0, String::new());
    within("an endpoint is applied", SOON, async || {
        round += 1;
        endpoint = format!("db-{round}.example");
        let status = json!({ "phase": "Ready", "endpoint": endpoint });
        status_of(&scenario, "web-db", &status)?;
        let written = Instant::now();
        deployments
            .until("web", "has its endpoint", LIMIT, |one| {
                host(one) == Some(&endpoint)
            })
            .await?;
        Ok(written.elapsed())
    })
    .await?;

    // The database is no longer ready. The Deployment stays, because its condition depends on live objects.
    status_of(
        &scenario,
        "web-db",
        &json!({ "phase": "Failed", "endpoint": "none" }),
    )?;
    scenario.kubectl(&["delete", &of_group(&scenario, "manageddatabases"), "web-db"])?;
    apps.until_equal("web", "/status/database", json!("false"), LIMIT)
        .await?;
    let deployment = deployments.fetch("web").await?;
    assert_eq!(host(&deployment), Some(&*endpoint));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_another_resource_asks_for_nothing_and_what_nobody_reads_wakes_nobody() -> Result<()>
{
    let scenario = running().await?;
    database(&scenario, &json!({ "phase": "Ready", "endpoint": "a" }))?;
    app(&scenario)?;
    scenario
        .objects("deployments")
        .until("web", "has its endpoint", LIMIT, |one| {
            host(one) == Some("a")
        })
        .await?;
    scenario
        .objects("apps")
        .until_equal("web", "/status/database", json!("true"), LIMIT)
        .await?;
    waters::until_counted(&scenario).await?;
    let (mark, passes) = (Scenario::mark()?, scenario.passes("app").await?);
    for load in 0..5 {
        status_of(&scenario, "web-db", &json!({ "load": load }))?;
    }
    // The operators share the watch of databases.
    for (plural, name) in [("manageddatabases", "web-db"), ("apps", "web")] {
        let resources = scenario.objects(plural);
        scenario.until_handled(&resources, name).await?;
    }
    let asked = waters::without_repeats(scenario.requests_since(mark)?);
    ensure!(asked.is_empty(), "{}", waters::lines(&asked));
    let more = scenario.passes("app").await? - passes;
    // The handled request is written to the status, and the watch may deliver that write before its answer arrives.
    ensure!(more < 2.5, "{more} passes");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_other_katalog_nothing_is_decided_and_without_its_definition_there_is_none()
-> Result<()> {
    let (katalog, databases) = (input("cross/apps.yaml")?, input("cross/databases.yaml")?);
    let mut scenario = Scenario::new("crosscrd").await?;
    scenario.grant(&katalog).await?;
    scenario.grant(&databases).await?;
    scenario.start().await?;
    scenario.install(&input("cross/app-crd.yaml")?).await?;
    scenario.apply(&katalog)?;
    app(&scenario)?;
    let apps = scenario.objects("apps");
    let reported = apps
        .until("web", "names the missing operator", LIMIT, |app| {
            condition(app, "Ready").is_some_and(|ready| ready["reason"] == "Unavailable")
        })
        .await?;
    let message = condition(&reported, "Ready").context("no condition")?["message"].to_string();
    ensure!(message.contains("managed-database"), "{message}");
    ensure!(reported["status"].get("database").is_none(), "{reported}");

    // The operator of databases waits for its CRD, so no database can exist.
    scenario.apply(&databases)?;
    apps.until_equal("web", "/status/database", json!("false"), LIMIT)
        .await?;

    scenario.install(&input("cross/database-crd.yaml")?).await?;
    database(&scenario, &json!({ "phase": "Ready", "endpoint": "late" }))?;
    apps.until_equal("web", "/status/database", json!("true"), LIMIT)
        .await?;
    let (deployments, maps) = (
        scenario.objects("deployments"),
        scenario.objects("configmaps"),
    );
    deployments
        .until("web", "has its endpoint", LIMIT, |one| {
            host(one) == Some("late")
        })
        .await?;

    // Without that Katalog, the operator that the read refers to is unknown: all children stay.
    scenario.kubectl(&["delete", "katalogs.orkestra.orkspace.io", "databases"])?;
    apps.until("web", "is unavailable", LIMIT, |app| {
        condition(app, "Ready").is_some_and(|ready| ready["reason"] == "Unavailable")
    })
    .await?;
    scenario.kubectl(&["delete", &of_group(&scenario, "manageddatabases"), "web-db"])?;
    scenario.until_handled(&apps, "web").await?;
    maps.fetch("web-has-db").await?;
    assert_eq!(host(&deployments.fetch("web").await?), Some("late"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_may_not_be_read_keeps_what_depends_on_it() -> Result<()> {
    let (katalog, databases) = (input("cross/apps.yaml")?, input("cross/databases.yaml")?);
    let mut scenario = Scenario::new("crossright").await?;
    scenario.grant(&katalog).await?;
    let roles = scenario.grant(&databases).await?;
    scenario.start().await?;
    scenario.install(&input("cross/app-crd.yaml")?).await?;
    scenario.install(&input("cross/database-crd.yaml")?).await?;
    scenario.apply(&katalog)?;
    scenario.apply(&databases)?;
    database(&scenario, &json!({ "phase": "Ready", "endpoint": "a" }))?;
    app(&scenario)?;
    let (apps, maps) = (scenario.objects("apps"), scenario.objects("configmaps"));
    apps.until_equal("web", "/status/database", json!("true"), LIMIT)
        .await?;
    maps.until("web-has-db", "exists", LIMIT, |_| true).await?;

    scenario.terminate()?;
    let group = scenario.group.clone();
    for role in &roles {
        let mut less = role.clone();
        let granted = less.rules.iter_mut().flatten();
        for rule in granted.filter(|rule| rule.api_groups.iter().flatten().any(|one| *one == group))
        {
            rule.verbs.retain(|verb| verb != "list" && verb != "watch");
        }
        scenario.put_role(&less).await?;
    }
    scenario
        .wait_for_right("list", &group, "manageddatabases", false)
        .await?;
    scenario.start().await?;
    apps.until("web", "reports the refused read", LIMIT, |app| {
        condition(app, "Ready").is_some_and(|ready| {
            let message = ready["message"].as_str().unwrap_or_default();
            ready["reason"] == "Unavailable" && message.contains("manageddatabases")
        })
    })
    .await?;
    maps.fetch("web-has-db").await?;

    for role in &roles {
        scenario.put_role(role).await?;
    }
    scenario
        .wait_for_right("list", &group, "manageddatabases", true)
        .await?;
    apps.until("web", "can read again", LIMIT, |app| {
        condition(app, "Ready").is_some_and(|ready| ready["reason"] != "Unavailable")
    })
    .await?;
    maps.fetch("web-has-db").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_choose_the_operator_and_the_first_resource_by_name() -> Result<()> {
    let (katalog, databases) = (input("cross/labels.yaml")?, input("cross/databases.yaml")?);
    let mut scenario = Scenario::new("crosslabel").await?;
    scenario.grant(&katalog).await?;
    scenario.grant(&databases).await?;
    scenario.start().await?;
    scenario.install(&input("cross/app-crd.yaml")?).await?;
    scenario.install(&input("cross/database-crd.yaml")?).await?;
    scenario.apply(&katalog)?;
    scenario.apply(&databases)?;
    let apps = scenario.objects("apps");
    let of = |colour: &str| json!({ "example.org/colour": colour });
    let spec = json!({ "colour": "red" });
    make(&scenario, "App", "web", &json!({}), &spec)?;
    make(&scenario, "ManagedDatabase", "c", &of("red"), &json!({}))?;
    make(&scenario, "ManagedDatabase", "a", &of("blue"), &json!({}))?;
    apps.until_equal("web", "/status/chosen", json!("c"), LIMIT)
        .await?;
    apps.until("web", "has the operator's health", LIMIT, |app| {
        app["status"]["keeper"] == "healthy"
    })
    .await?;
    make(&scenario, "ManagedDatabase", "b", &of("red"), &json!({}))?;
    apps.until_equal("web", "/status/chosen", json!("b"), LIMIT)
        .await?;
    let kind = of_group(&scenario, "manageddatabases");
    scenario.kubectl(&["label", "--overwrite", &kind, "a", "example.org/colour=red"])?;
    apps.until_equal("web", "/status/chosen", json!("a"), LIMIT)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn two_operators_that_read_each_other_come_to_rest() -> Result<()> {
    let crds = ["cross/app-crd.yaml", "cross/database-crd.yaml"];
    let scenario = Scenario::running("crosscircle", &crds, "cross/circle.yaml").await?;
    make(&scenario, "App", "one", &json!({}), &json!({}))?;
    let said = json!({ "word": "hello" });
    make(&scenario, "ManagedDatabase", "one", &json!({}), &said)?;
    let databases = scenario.objects("manageddatabases");
    databases
        .until_equal("one", "/status/echo", json!("hello"), LIMIT)
        .await?;
    databases
        .patch("one", &json!({ "spec": { "word": "goodbye" } }))
        .await?;
    databases
        .until_equal("one", "/status/echo", json!("goodbye"), LIMIT)
        .await?;
    waters::until_counted(&scenario).await?;
    let mut passes = 0.0;
    for operator in ["app", "managed-database"] {
        passes += scenario.until_at_rest(operator).await?.passes(operator)?;
    }
    ensure!(passes < 40.0, "{passes} passes");
    // A pass of either does not start the circle again. The watch may deliver the answer before it arrives, so each has up to two.
    let mut later = 0.0;
    for (plural, operator) in [("apps", "app"), ("manageddatabases", "managed-database")] {
        let resources = scenario.objects(plural);
        scenario.until_handled(&resources, "one").await?;
        later += scenario.until_at_rest(operator).await?.passes(operator)?;
    }
    ensure!(later < passes + 4.5, "{passes}, then {later} passes");
    Ok(())
}
