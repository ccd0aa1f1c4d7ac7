//! Drift: what others do to children, and what becomes of it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{AuditEvent, ControlPlane, Mark, eventually};

use crate::scenario::{LIMIT, Objects, Scenario, condition, input};

/// How soon drift is repaired. The promise is a second; the machine runs other tests meanwhile.
const SOON: Duration = Duration::from_secs(3);
/// Another applies what stands on the standard input, and takes what is ours.
const FORCED: [&str; 6] = [
    "apply",
    "--server-side",
    "--field-manager=other",
    "--force-conflicts",
    "-f",
    "-",
];
/// How long nothing must happen.
const QUIET: Duration = Duration::from_secs(3);

/// A Website with a Deployment, a Service and a `ConfigMap`, ready, without resync.
async fn converged(prefix: &str) -> Result<Scenario> {
    converged_by(prefix, "drift/katalog.yaml").await
}

/// A Website that is ready, without resync.
async fn converged_by(prefix: &str, katalog: &str) -> Result<Scenario> {
    let scenario = Scenario::running(prefix, &["website/crd.yaml"], katalog).await?;
    scenario.apply(&input("website/cr.yaml")?)?;
    scenario.objects("websites").until_ready("hello").await?;
    let told = json!({ "instances": 1, "ready": 1 });
    scenario.operator_tells("drift", "website", &told).await?;
    Ok(scenario)
}

/// How long after the first write of somebody else on an object our next one came, by the API server's own clock.
fn reaction(scenario: &Scenario, since: Mark, resource: &str) -> Result<Duration> {
    let ours = scenario.identity.user();
    let written: Vec<AuditEvent> = ControlPlane::shared()
        .audit_since(since)?
        .into_iter()
        .filter(|event| event.namespace == scenario.namespace && event.resource == resource)
        .filter(|event| event.is_write() && event.subresource != "status" && event.code < 300)
        .collect();
    let change = written
        .iter()
        .find(|event| event.user == "testbed-admin")
        .context("nobody changed it")?;
    let repair = written
        .iter()
        .find(|event| event.user == ours && event.timestamp > change.timestamp)
        .context("it was not repaired")?;
    Ok(repair
        .timestamp
        .duration_since(change.timestamp)
        .unsigned_abs())
}

/// Tells how soon a repair came that is already seen. Its request may be in the log only later: the
/// log is written before whoever asked has the answer, not before others see what it changed.
async fn assert_soon(scenario: &Scenario, since: Mark, resource: &str, what: &str) -> Result<()> {
    let took = eventually("the log has the repair", LIMIT, async || {
        reaction(scenario, since, resource).map(Some)
    })
    .await?;
    println!("{what} was put right after {took:?}");
    ensure!(took < SOON, "{what} was put right after {took:?} only");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_what_somebody_changes_or_deletes_is_put_right_within_a_second() -> Result<()> {
    let scenario = converged("repair").await?;
    let deployments = scenario.objects("deployments");

    let mark = Scenario::mark()?;
    scenario.kubectl(&["scale", "deployment", "hello", "--replicas=5"])?;
    deployments
        .until_equal("hello", "/spec/replicas", json!(2), SOON)
        .await?;
    assert_soon(&scenario, mark, "deployments", "kubectl scale").await?;

    let mark = Scenario::mark()?;
    scenario.kubectl(&[
        "set",
        "image",
        "deployment/hello",
        "*=registry.example/evil:1",
    ])?;
    let image = "/spec/template/spec/containers/0/image";
    deployments
        .until_equal("hello", image, json!("registry.example/web:3"), SOON)
        .await?;
    assert_soon(&scenario, mark, "deployments", "kubectl set image").await?;

    let mark = Scenario::mark()?;
    let gone = r#"[{"op":"remove","path":"/data/colour"}]"#;
    scenario.kubectl(&["patch", "configmap", "hello", "--type=json", "-p", gone])?;
    scenario
        .objects("configmaps")
        .until_equal(
            "hello",
            "/data",
            json!({ "colour": "teal", "size": "3" }),
            SOON,
        )
        .await?;
    assert_soon(&scenario, mark, "configmaps", "a removed key").await?;

    let mark = Scenario::mark()?;
    let services = scenario.objects("services");
    let before = services.fetch("hello").await?["metadata"]["uid"].clone();
    scenario.kubectl(&["delete", "service", "hello", "--wait=false"])?;
    services
        .until("hello", "is there anew", SOON, |service| {
            service["metadata"]["uid"] != before
        })
        .await?;
    assert_soon(&scenario, mark, "services", "a deleted Service").await?;
    scenario.objects("websites").until_ready("hello").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_a_field_of_somebody_else_stays_and_costs_nothing() -> Result<()> {
    let scenario = converged("foreign").await?;
    let maps = scenario.objects("configmaps");
    // The Katalog's row about the resource, which became ready, is written a little later.
    scenario.until_settled(QUIET, LIMIT).await?;
    let mark = Scenario::mark()?;
    scenario.kubectl(&["label", "configmap", "hello", "team=herons"])?;
    scenario.kubectl(&["label", "deployment", "hello", "team=herons"])?;
    scenario.kubectl(&["annotate", "service", "hello", "note=mine"])?;
    maps.patch("hello", &json!({ "data": { "theirs": "kept" } }))
        .await?;
    // Nothing is to be done about any of it.
    tokio::time::sleep(QUIET).await;
    assert_eq!(scenario.writes_since(mark)?, []);

    // Nor when the objects are written for another reason.
    maps.patch("hello", &json!({ "data": { "colour": "red" } }))
        .await?;
    maps.until_equal("hello", "/data/colour", json!("teal"), SOON)
        .await?;
    let websites = scenario.objects("websites");
    websites
        .patch("hello", &json!({ "spec": { "replicas": 3 } }))
        .await?;
    scenario
        .objects("deployments")
        .until_equal("hello", "/spec/replicas", json!(3), LIMIT)
        .await?;
    let map = maps.fetch("hello").await?;
    assert_eq!(map["metadata"]["labels"]["team"], "herons");
    assert_eq!(map["data"]["theirs"], "kept");
    let deployment = scenario.objects("deployments").fetch("hello").await?;
    assert_eq!(deployment["metadata"]["labels"]["team"], "herons");
    let service = scenario.objects("services").fetch("hello").await?;
    assert_eq!(service["metadata"]["annotations"]["note"], "mine");
    Ok(())
}

fn conflict(website: &Value) -> String {
    let found = condition(website, "FieldConflict").filter(|one| one["status"] == "True");
    found
        .and_then(|one| one["message"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Waits until a field conflict is reported, and answers its message, which names these parts.
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
async fn b_a_path_that_another_manager_applies_is_a_field_conflict_until_it_lets_go() -> Result<()>
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
        "`extra` is theirs alone: {message}"
    );

    // It is not taken back, neither by itself nor by the repair of another field; what is ours alone is still kept.
    maps.patch("hello", &json!({ "data": { "size": "99" } }))
        .await?;
    maps.until_equal("hello", "/data/size", json!("3"), SOON)
        .await?;
    let mark = Scenario::mark()?;
    tokio::time::sleep(QUIET).await;
    assert_eq!(scenario.writes_since(mark)?, []);
    let map = maps.fetch("hello").await?;
    assert_eq!(
        map["data"],
        json!({ "colour": "red", "extra": "theirs", "size": "3" })
    );

    // It lets go: the path is ours again, without anybody's help.
    scenario.kubectl_with(&FORCED, Some(&theirs("{ extra: theirs }")))?;
    maps.until_equal("hello", "/data/colour", json!("teal"), SOON)
        .await?;
    websites
        .until("hello", "has no FieldConflict", LIMIT, |website| {
            condition(website, "FieldConflict").is_none()
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_a_path_that_two_apply_alike_stays_with_the_other_when_ours_changes() -> Result<()> {
    let scenario = converged("shared").await?;
    let (websites, deployments) = (
        scenario.objects("websites"),
        scenario.objects("deployments"),
    );
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
        "both still say 2 replicas: {message}"
    );

    // It is left alone, and nothing is written again and again for it.
    scenario.until_settled(QUIET, LIMIT).await?;
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

    // What somebody else changes without applying it is still put right.
    scenario.kubectl(&["scale", "deployment", "hello", "--replicas=5"])?;
    let repaired = deployments
        .until_equal("hello", "/spec/replicas", json!(2), SOON)
        .await?;
    assert_eq!(
        repaired.pointer(image),
        Some(&json!("registry.example/web:3"))
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_an_empty_list_is_whose_applies_it_and_costs_nothing_where_it_is_nobodys() -> Result<()> {
    let mut scenario = converged_by("closed", "drift/closed.yaml").await?;
    let deployments = scenario.objects("deployments");
    let policies = scenario.objects("networkpolicies");
    let open = json!({ "spec": { "egress": [{}] } });

    // What somebody puts into it is drift, also while nobody looks.
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

    // Whoever applies it has it.
    let theirs = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": { "name": "hello" }, "spec": open["spec"],
    });
    scenario.kubectl_with(&FORCED, Some(&theirs.to_string()))?;
    let websites = scenario.objects("websites");
    until_conflict(&websites, &["other", "spec.egress", "hello"]).await?;

    // A keyed list is in nobody's fields while it is empty: that is no drift, not after a restart either.
    scenario.until_settled(QUIET, LIMIT).await?;
    scenario.kill9()?;
    let mark = Scenario::mark()?;
    scenario.start().await?;
    websites.until_ready("hello").await?;
    scenario.until_settled(QUIET, LIMIT).await?;
    let written = |mark: Mark, resource: &str| -> Result<usize> {
        let writes = scenario.writes_since(mark)?.into_iter();
        Ok(writes.filter(|write| write.resource == resource).count())
    };
    assert_eq!(written(mark, "networkpolicies")?, 0);
    assert_eq!(written(mark, "deployments")?, 0);
    let mark = Scenario::mark()?;
    let theirs = json!({ "spec": { "template": { "spec": { "imagePullSecrets": [{ "name": "theirs" }] } } } });
    deployments.patch("hello", &theirs).await?;
    tokio::time::sleep(QUIET).await;
    assert_eq!(written(mark, "deployments")?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_a_fight_is_slowed_and_named() -> Result<()> {
    let scenario = converged("fight").await?;
    let maps = scenario.objects("configmaps");
    let mark = Scenario::mark()?;
    let started = Instant::now();
    let mut blows = 0;
    while started.elapsed() < Duration::from_secs(8) {
        maps.patch("hello", &json!({ "data": { "colour": "red" } }))
            .await?;
        blows += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let repairs = scenario
        .writes_since(mark)?
        .into_iter()
        .filter(|event| event.resource == "configmaps")
        .count();
    println!("{repairs} repairs of {blows} blows");
    ensure!(repairs >= 3, "it gave up after {repairs}");
    ensure!(repairs <= 8, "it fought on: {repairs} repairs");

    let websites = scenario.objects("websites");
    until_conflict(&websites, &["somebody", "data.colour", "hello"]).await?;
    // One field is fought over; the object's others are still repaired.
    maps.patch("hello", &json!({ "data": { "size": "99" } }))
        .await?;
    maps.until_equal("hello", "/data/size", json!("3"), SOON)
        .await?;
    assert_eq!(maps.fetch("hello").await?["data"]["colour"], "red");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_an_autoscaler_that_targets_the_deployment_takes_replicas_over() -> Result<()> {
    let scenario = converged("scaled").await?;
    let deployments = scenario.objects("deployments");
    scenario
        .objects("horizontalpodautoscalers")
        .create(&json!({
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": "hello" },
            "spec": {
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "hello" },
                "minReplicas": 4,
                "maxReplicas": 6,
            },
        }))
        .await?;
    // As the autoscaler's controller does it: by the scale subresource.
    scenario.kubectl(&["scale", "deployment", "hello", "--replicas=4"])?;
    let websites = scenario.objects("websites");
    websites
        .until("hello", "is autoscaled", LIMIT, |website| {
            condition(website, "Autoscaled").is_some()
        })
        .await?;
    assert_eq!(
        deployments.fetch("hello").await?["spec"]["replicas"],
        json!(4)
    );
    let website = scenario.objects("websites").until_ready("hello").await?;
    assert_eq!(condition(&website, "FieldConflict"), None);

    // Replicas only: the image is still ours, and its repair leaves replicas alone.
    scenario.kubectl(&[
        "set",
        "image",
        "deployment/hello",
        "*=registry.example/evil:1",
    ])?;
    let image = "/spec/template/spec/containers/0/image";
    let repaired = deployments
        .until_equal("hello", image, json!("registry.example/web:3"), SOON)
        .await?;
    assert_eq!(repaired["spec"]["replicas"], json!(4));
    Ok(())
}
