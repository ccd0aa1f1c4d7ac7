//! Fields that another field manager applies or keeps changing: they are reported as conflicts, and drift of the object's other
//! fields is still corrected.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{Mark, eventually};

use super::{converged, converged_by};
use crate::scenario::{LIMIT, Objects, Scenario, condition};
use crate::waters;

/// The maximum number of corrections of a field before its conflict is reported.
const MOST: usize = 8;
/// The number of further changes.
const BLOWS: usize = 20;

/// The kubectl arguments with which field manager `other` applies stdin and takes over conflicting fields.
const FORCED: [&str; 6] = [
    "apply",
    "--server-side",
    "--field-manager=other",
    "--force-conflicts",
    "-f",
    "-",
];

fn conflict(website: &Value) -> String {
    let found = condition(website, "FieldConflict").filter(|one| one["status"] == "True");
    found
        .and_then(|one| one["message"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Waits until a field conflict is reported, checks that its message contains `named`, and returns the message.
async fn until_conflict(websites: &Objects, named: &[&str]) -> Result<String> {
    let reported = |website: &Value| !conflict(website).is_empty();
    let website = websites
        .until("hello", "has a FieldConflict", LIMIT, reported)
        .await?;
    let message = conflict(&website);
    for part in named {
        ensure!(message.contains(part), "{part} is not named: {message}");
    }
    Ok(message)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_another_manager_applies_is_a_field_conflict_until_it_releases_it() -> Result<()>
{
    let scenario = converged("conflict").await?;
    let (websites, maps) = (scenario.objects("websites"), scenario.objects("configmaps"));
    let theirs = |data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hello\ndata: {data}\n")
    };
    scenario.kubectl_with(&FORCED, Some(&theirs("{ colour: red, extra: theirs }")))?;
    let message = until_conflict(&websites, &["other", "data.colour", "hello"]).await?;
    ensure!(
        !message.contains("extra"),
        "only `other` applies `extra`: {message}"
    );

    // The field is not taken back, not even when another is corrected. Fields that only Orkestra applies are still corrected.
    maps.patch("hello", &json!({ "data": { "size": "99" } }))
        .await?;
    maps.until_equal("hello", "/data/size", json!("3"), LIMIT)
        .await?;
    scenario.until_idle().await?;
    let mark = Scenario::mark()?;
    maps.patch("hello", &json!({ "data": { "size": "98" } }))
        .await?;
    maps.until_equal("hello", "/data/size", json!("3"), LIMIT)
        .await?;
    scenario.until_idle().await?;
    let writes = scenario.writes_since(mark)?;
    ensure!(writes.len() == 1, "{}", waters::lines(&writes));
    let map = maps.fetch("hello").await?;
    assert_eq!(
        map["data"],
        json!({ "colour": "red", "extra": "theirs", "size": "3" })
    );

    // When `other` no longer applies the path, Orkestra applies it again by itself.
    scenario.kubectl_with(&FORCED, Some(&theirs("{ extra: theirs }")))?;
    maps.until_equal("hello", "/data/colour", json!("teal"), LIMIT)
        .await?;
    websites
        .until("hello", "has no FieldConflict", LIMIT, |website| {
            condition(website, "FieldConflict").is_none()
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_two_apply_alike_stays_with_the_other_when_ours_changes() -> Result<()> {
    let scenario = converged("shared").await?;
    let (websites, deployments) = (
        scenario.objects("websites"),
        scenario.objects("deployments"),
    );
    another_applies_the_same(&scenario, &deployments).await?;

    websites
        .patch(
            "hello",
            &json!({ "spec": { "image": "registry.example/web:4" } }),
        )
        .await?;
    let path = "spec.template.spec.containers[0].image";
    let message = until_conflict(&websites, &["other", path, "hello"]).await?;
    ensure!(
        !message.contains("replicas"),
        "both still apply 2 replicas: {message}"
    );

    // The field is left to `other`, and the write is not retried.
    scenario.until_settled().await?;
    let deployment = deployments.fetch("hello").await?;
    let image = "/spec/template/spec/containers/0/image";
    assert_eq!(
        deployment.pointer(image),
        Some(&json!("registry.example/web:3"))
    );
    let holders = |field: &str| {
        let entries = deployment["metadata"]["managedFields"].as_array();
        let applies = entries.into_iter().flatten().filter(|entry| {
            entry["operation"] == "Apply" && entry["fieldsV1"].to_string().contains(field)
        });
        applies.count()
    };
    assert_eq!((holders("f:image"), holders("f:replicas")), (1, 2));

    // A change by an update, which is not an apply, is still corrected.
    scenario.kubectl(&["scale", "deployment", "hello", "--replicas=5"])?;
    let repaired = deployments
        .until_equal("hello", "/spec/replicas", json!(2), LIMIT)
        .await?;
    assert_eq!(
        repaired.pointer(image),
        Some(&json!("registry.example/web:3"))
    );
    Ok(())
}

/// Applies the Deployment's current replicas and image as another field manager.
async fn another_applies_the_same(scenario: &Scenario, deployments: &Objects) -> Result<()> {
    let containers = "/spec/template/spec/containers";
    let deployment = deployments.fetch("hello").await?;
    let name = &deployment.pointer(containers).context("no containers")?[0]["name"];
    let theirs = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "hello" },
        "spec": { "replicas": 2, "template": { "spec": {
            "containers": [{ "name": name, "image": "registry.example/web:3" }],
        } } },
    });
    let apply = ["apply", "--server-side", "--field-manager=other", "-f", "-"];
    scenario.kubectl_with(&apply, Some(&theirs.to_string()))?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_list_is_whose_applies_it_and_costs_nothing_where_it_is_nobodys() -> Result<()> {
    let mut scenario = converged_by("closed", "drift/closed.yaml").await?;
    let deployments = scenario.objects("deployments");
    let policies = scenario.objects("networkpolicies");
    let open = json!({ "spec": { "egress": [{}] } });

    // An item that another client adds to the list is drift, even if it is added while no controller runs.
    let closed_again = async |opened: &Value| {
        let generation = |policy: &Value| policy["metadata"]["generation"].as_i64();
        let closed = |policy: &Value| {
            generation(policy) > generation(opened) && policy["spec"].get("egress").is_none()
        };
        policies
            .until("hello", "is closed again", LIMIT, closed)
            .await
    };
    closed_again(&policies.patch("hello", &open).await?).await?;
    scenario.terminate()?;
    let opened = policies.patch("hello", &open).await?;
    scenario.start().await?;
    closed_again(&opened).await?;

    // A field manager that applies the list owns it.
    let theirs = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": { "name": "hello" }, "spec": open["spec"],
    });
    scenario.kubectl_with(&FORCED, Some(&theirs.to_string()))?;
    let websites = scenario.objects("websites");
    until_conflict(&websites, &["other", "spec.egress", "hello"]).await?;

    // An empty list of items by key is in no manager's fields. That is no drift, not even after a restart.
    scenario.until_settled().await?;
    scenario.kill9()?;
    let mark = Scenario::mark()?;
    scenario.start().await?;
    websites.until_ready("hello").await?;
    scenario.until_settled().await?;
    let written = |mark: Mark, resource: &str| -> Result<usize> {
        let writes = scenario.writes_since(mark)?.into_iter();
        Ok(writes.filter(|write| write.resource == resource).count())
    };
    assert_eq!(written(mark, "networkpolicies")?, 0);
    assert_eq!(written(mark, "deployments")?, 0);
    let mark = Scenario::mark()?;
    let theirs = json!({ "spec": { "template": { "spec": { "imagePullSecrets": [{ "name": "theirs" }] } } } });
    deployments.patch("hello", &theirs).await?;
    // The watch reports drift of another field later.
    let other = ["deployment/hello", "*=registry.example/evil:1"];
    scenario.kubectl(&[&["set", "image"], &other[..]].concat())?;
    let image = "/spec/template/spec/containers/0/image";
    deployments
        .until_equal("hello", image, json!("registry.example/web:3"), LIMIT)
        .await?;
    scenario.until_idle().await?;
    let mut writes = scenario.writes_since(mark)?;
    writes.retain(|write| write.resource == "deployments" && write.code < 300);
    ensure!(writes.len() == 1, "{}", waters::lines(&writes));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fight_is_slowed_and_named() -> Result<()> {
    let scenario = converged("fight").await?;
    let maps = scenario.objects("configmaps");
    let mark = Scenario::mark()?;
    let websites = scenario.objects("websites");
    let mut corrections = 0;
    loop {
        let red = json!({ "data": { "colour": "red" } });
        maps.patch("hello", &red).await?;
        let is_reported = eventually("it is corrected or reported", LIMIT, async || {
            let is_reported = !conflict(&websites.fetch("hello").await?).is_empty();
            let colour = maps.fetch("hello").await?["data"]["colour"].clone();
            Ok((is_reported || colour == "teal").then_some(is_reported))
        });
        if is_reported.await? {
            break;
        }
        corrections += 1;
        ensure!(corrections <= MOST, "not slowed: {corrections} corrections");
    }
    ensure!(corrections >= 3, "only {corrections} corrections");
    until_conflict(&websites, &["somebody", "data.colour", "hello"]).await?;
    // Further changes are left alone.
    for number in 0..BLOWS {
        let colour = json!({ "colour": format!("red-{number}") });
        maps.patch("hello", &json!({ "data": colour })).await?;
    }
    maps.patch("hello", &json!({ "data": { "colour": "red" } }))
        .await?;
    scenario.until_passed("website", &websites, "hello").await?;
    let mut corrections = scenario.writes_since(mark)?;
    corrections.retain(|write| write.resource == "configmaps");
    ensure!(
        corrections.len() <= MOST,
        "not slowed:\n{}",
        waters::lines(&corrections)
    );

    // Only that field is in conflict; drift of the object's other fields is still corrected.
    maps.patch("hello", &json!({ "data": { "size": "99" } }))
        .await?;
    maps.until_equal("hello", "/data/size", json!("3"), LIMIT)
        .await?;
    assert_eq!(maps.fetch("hello").await?["data"]["colour"], "red");
    Ok(())
}
