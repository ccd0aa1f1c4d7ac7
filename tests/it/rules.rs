//! Rules for custom resources in reconcile passes: mutation, validation and normalization.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::AuditEvent;

use crate::scenario::{LIMIT, Scenario, condition, input, is_ready, until_next_second};
use crate::waters::{self, text};

const CRDS: &[&str] = &["rules/crds.yaml"];

/// Runs a Katalog whose rules no policy enforces: these tests are about passes.
async fn running(katalog: &str) -> Result<Scenario> {
    let off = "spec:\n  security: { webhooks: { admission: { enabled: false } } }\n  crds:";
    let katalog = input(katalog)?.replace("spec:\n  crds:", off);
    Scenario::with_katalog("rules", CRDS, &katalog).await
}

fn site(scenario: &Scenario, name: &str, spec: &Value) -> Value {
    waters::resource(scenario, "Site", name, spec)
}

async fn make(scenario: &Scenario, name: &str, spec: &Value) -> Result<Value> {
    scenario
        .objects("sites")
        .create(&site(scenario, name, spec))
        .await
}

/// Returns `reason: message` of a condition with status `True`; empty if there is none.
fn reported(object: &Value, kind: &str) -> String {
    match condition(object, kind) {
        Some(found) if found["status"] == "True" => {
            format!("{}: {}", text(found, "/reason"), text(found, "/message"))
        }
        _ => String::new(),
    }
}

/// Waits until the condition `kind` of the Site `name` is `wanted` for its current generation.
async fn until_reported(
    scenario: &Scenario,
    name: &str,
    kind: &str,
    wanted: &str,
) -> Result<Value> {
    let sites = scenario.objects("sites");
    let what = format!("has {kind} {wanted:?}");
    let is_current =
        |site: &Value| site["status"]["observedGeneration"] == site["metadata"]["generation"];
    sites
        .until(name, &what, LIMIT, |site| {
            is_current(site) && reported(site, kind) == wanted
        })
        .await
}

const REFUSED: &str = "ValidationFailed: spec.image: images must come from the internal registry";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_that_does_not_keep_a_rule_is_refused_and_its_children_stay() -> Result<()> {
    let scenario = running("rules/admission.yaml").await?;
    let deployments = scenario.objects("deployments");
    make(&scenario, "shop", &json!({ "image": "nginx:1.29" })).await?;
    let refused = until_reported(&scenario, "shop", "Stalled", REFUSED).await?;
    let ready = condition(&refused, "Ready").context("no condition `Ready`")?;
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("ValidationFailed"))
    );
    assert_eq!(
        reported(&refused, "ValidationWarning"),
        "ValidationFailed: spec.tier: shop has no tier"
    );
    // A status field with a gate is reported in any case; a field without one only by passes that succeed.
    assert_eq!(
        (&refused["status"]["asked"], &refused["status"]["image"]),
        (&json!("nginx:1.29"), &Value::Null)
    );
    assert!(deployments.list().await?.is_empty());
    // The pass is not retried until something changes.
    waters::until_counted(&scenario).await?;
    scenario.until_at_rest("site").await?;

    let sites = scenario.objects("sites");
    sites
        .patch(
            "shop",
            &json!({ "spec": { "image": "myorg/shop:1", "tier": "gold" } }),
        )
        .await?;
    deployments
        .until("shop", "is created", LIMIT, |_| true)
        .await?;
    let accepted = until_reported(&scenario, "shop", "Stalled", "").await?;
    assert_eq!(reported(&accepted, "ValidationWarning"), "");
    assert_eq!(accepted["status"]["image"], "myorg/shop:1");

    sites
        .patch(
            "shop",
            &json!({ "spec": { "image": "elsewhere/shop:1", "replicas": 5 } }),
        )
        .await?;
    until_reported(&scenario, "shop", "Stalled", REFUSED).await?;
    let kept = deployments.fetch("shop").await?;
    assert_eq!(kept["spec"]["replicas"], 2);
    assert_eq!(
        text(&kept, "/spec/template/spec/containers/0/image"),
        "myorg/shop:1"
    );
    // A refused resource can be deleted.
    sites.delete("shop").await?;
    sites.until_gone("shop", LIMIT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_is_completed_in_memory_and_stays_as_it_was_written() -> Result<()> {
    let mut scenario = running("rules/admission.yaml").await?;
    let spec = json!({ "image": "myorg/shop:1" });
    make(&scenario, "shop", &spec).await?;
    let sample = "InMemory: spec.port, spec.replicas in memory: rules complete it";
    let shop = until_reported(&scenario, "shop", "Mutated", sample).await?;
    assert_eq!(
        (&shop["spec"], &shop["metadata"]["generation"]),
        (&spec, &json!(1))
    );
    let made = scenario.objects("deployments").fetch("shop").await?;
    assert_eq!(made["spec"]["replicas"], 2);
    assert_eq!(
        made.pointer("/spec/template/spec/containers/0/ports/0/containerPort"),
        Some(&json!(8080))
    );
    a_restart_writes_nothing(&mut scenario).await?;
    // A value that the user sets has precedence, even zero.
    let change = json!({ "spec": { "replicas": 0, "port": 80 } });
    scenario.objects("sites").patch("shop", &change).await?;
    let deployments = scenario.objects("deployments");
    deployments
        .until_equal("shop", "/spec/replicas", json!(0), LIMIT)
        .await?;
    until_reported(&scenario, "shop", "Mutated", "")
        .await
        .map(drop)
}

/// Checks that the running controller has nothing left to write, and that a restarted one writes nothing.
async fn a_restart_writes_nothing(scenario: &mut Scenario) -> Result<()> {
    waters::ensure_no_writes(scenario).await?;
    scenario.terminate()?;
    let mark = Scenario::mark()?;
    scenario.start().await?;
    scenario.katalog_is("sites", "True", "Running").await?;
    waters::until_counted(scenario).await?;
    assert_eq!(waters::lines(&of_sites(scenario.writes_since(mark)?)), "");
    Ok(())
}

/// Returns the writes without those of the Katalog's own status and revisions.
fn of_sites(mut writes: Vec<AuditEvent>) -> Vec<AuditEvent> {
    writes.retain(|write| write.resource != "katalogs" && write.resource != "controllerrevisions");
    writes
}

const HELD: &str = "InMemory: spec.chedule in memory: the definition has no such field";

/// Waits until the `ConfigMap` of the Site `name` has this schedule.
async fn until_scheduled(scenario: &Scenario, name: &str, schedule: &str) -> Result<()> {
    let maps = scenario.objects("configmaps");
    maps.until_equal(name, "/data/schedule", json!(schedule), LIMIT)
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_is_stored_in_its_form_before_anything_is_made_and_once() -> Result<()> {
    let mut scenario = running("rules/normalize.yaml").await?;
    let sites = scenario.objects("sites");
    let mark = Scenario::mark()?;
    make(&scenario, "shop", &json!({ "schedule": "@daily" })).await?;
    let shop = until_reported(&scenario, "shop", "Normalized", HELD).await?;
    assert_eq!(shop["spec"], json!({ "schedule": "0 0 * * *" }));
    assert_eq!(shop["metadata"]["generation"], 2);
    ensure!(is_ready(&shop), "{}", shop["status"]);
    let managers = shop["metadata"]["managedFields"]
        .as_array()
        .context("no field managers")?;
    let manager = format!("orkestra-normalize/sites.{}", scenario.group);
    assert!(
        managers
            .iter()
            .any(|entry| entry["manager"] == manager && entry["operation"] == "Update")
    );
    until_scheduled(&scenario, "shop", "0 0 * * *").await?;
    let map = scenario.objects("configmaps").fetch("shop").await?;
    assert_eq!(
        map["data"]["stray"], "{\"chedule\":\"0 0 * * *\"}",
        "the sample has the misspelt field"
    );
    scenario.until_idle().await?;
    let writes = of_sites(scenario.writes_since(mark)?);
    let first = writes.first().context("no writes")?;
    assert_eq!(
        (&*first.resource, &*first.subresource, &*first.verb),
        ("sites", "", "patch")
    );
    let of_spec = |write: &&AuditEvent| write.resource == "sites" && write.subresource.is_empty();
    assert_eq!(
        writes.iter().filter(of_spec).count(),
        2,
        "one of the spec and one of the metadata: {}",
        waters::lines(&writes)
    );

    a_restart_writes_nothing(&mut scenario).await?;

    // Another notation, and another structure.
    sites
        .patch("shop", &json!({ "spec": { "schedule": "@hourly" } }))
        .await?;
    until_scheduled(&scenario, "shop", "0 * * * *").await?;
    sites
        .until_equal("shop", "/spec/schedule", json!("0 * * * *"), LIMIT)
        .await?;
    let fields = json!({ "minute": "5", "hour": "4" });
    sites
        .patch("shop", &json!({ "spec": { "schedule": fields } }))
        .await?;
    let shop = sites
        .until_equal("shop", "/spec/schedule", json!("5 4 * * *"), LIMIT)
        .await?;
    until_scheduled(&scenario, "shop", "5 4 * * *").await?;
    assert_eq!(shop["metadata"]["generation"], 6);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_kubectl_apply_declares_is_normalized_in_memory_and_applying_it_again_changes_nothing()
-> Result<()> {
    let scenario = running("rules/normalize.yaml").await?;
    let spec = json!({ "schedule": { "minute": "0", "hour": "3" } });
    let file = site(&scenario, "shop", &spec).to_string();
    let maps = scenario.objects("configmaps");
    for turn in 1..=3 {
        scenario.kubectl_with(&["apply", "-f", "-"], Some(&file))?;
        maps.until_equal("shop", "/data/schedule", json!("0 3 * * *"), LIMIT)
            .await?;
        let shop = scenario
            .objects("sites")
            .until("shop", "is normalized in memory", LIMIT, |site| {
                reported(site, "Normalized")
                    .contains("spec.schedule in memory: `kubectl apply` declares it")
            })
            .await?;
        ensure!(shop["metadata"]["generation"] == 1, "turn {turn}: {shop}");
        ensure!(shop["spec"] == spec, "turn {turn}: {}", shop["spec"]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_that_others_bring_back_is_normalized_in_memory() -> Result<()> {
    let scenario = running("rules/normalize.yaml").await?;
    let sites = scenario.objects("sites");
    let spec = json!({ "schedule": "@daily" });
    let mut tracked = site(&scenario, "argo", &spec);
    tracked["metadata"]["annotations"] =
        json!({ "argocd.argoproj.io/tracking-id": "shop:sites/argo" });
    sites.create(&tracked).await?;
    let args = [
        "apply",
        "--server-side",
        "--field-manager=gitops",
        "-f",
        "-",
    ];
    let applied = site(&scenario, "applied", &spec).to_string();
    scenario.kubectl_with(&args, Some(&applied))?;

    let by_mark = "Argo CD tracks the resource (`argocd.argoproj.io/tracking-id`)";
    for (name, why) in [("argo", by_mark), ("applied", "`gitops` applies it")] {
        let reported = format!("{HELD}; spec.schedule in memory: {why}");
        let held = until_reported(&scenario, name, "Normalized", &reported).await?;
        assert_eq!(
            (&held["spec"], &held["metadata"]["generation"]),
            (&spec, &json!(1))
        );
        ensure!(is_ready(&held), "{}", held["status"]);
        until_scheduled(&scenario, name, "0 0 * * *").await?;
    }
    // Applying the same object again causes no conflict and changes nothing.
    scenario.kubectl_with(&args, Some(&applied))?;
    waters::ensure_no_writes(&scenario).await?;
    let hourly = site(&scenario, "applied", &json!({ "schedule": "@hourly" })).to_string();
    scenario.kubectl_with(&args, Some(&hourly))?;
    until_scheduled(&scenario, "applied", "0 * * * *").await?;
    assert_eq!(sites.fetch("applied").await?["spec"]["schedule"], "@hourly");

    // Argo CD no longer tracks the resource, so the value in memory is stored.
    scenario.kubectl(&[
        "annotate",
        &format!("sites.{}", scenario.group),
        "argo",
        "argocd.argoproj.io/tracking-id-",
    ])?;
    sites
        .until_equal("argo", "/spec/schedule", json!("0 0 * * *"), LIMIT)
        .await?;
    until_reported(&scenario, "argo", "Normalized", HELD)
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_never_settles_is_stored_once_and_no_more() -> Result<()> {
    let scenario = running("rules/normalize.yaml").await?;
    let sites = scenario.objects("sites");
    make(
        &scenario,
        "shop",
        &json!({ "tier": "restless", "schedule": "0 0 * * *" }),
    )
    .await?;
    // The stored number of seconds since the creation depends on the machine. The pass that the write itself triggers may fall
    // into another second, and already report the same.
    sites
        .until("shop", "was stored", LIMIT, |site| {
            site["spec"]["seen"].is_string()
        })
        .await?;
    let kind = format!("sites.{}", scenario.group);
    let reported = format!(
        "{HELD}; spec.seen in memory: each pass would normalize the stored value to a different one"
    );
    // Passes at other times compute other values.
    until_next_second().await?;
    scenario.kubectl(&[
        "annotate",
        &kind,
        "shop",
        "orkestra.orkspace.io/reconcile=1",
    ])?;
    until_reported(&scenario, "shop", "Normalized", &reported).await?;
    let generation = sites.fetch("shop").await?["metadata"]["generation"].clone();
    waters::until_counted(&scenario).await?;
    let mark = Scenario::mark()?;
    until_next_second().await?;
    scenario.until_handled(&sites, "shop").await?;
    let writes = waters::without_repeats(of_sites(scenario.writes_since(mark)?));
    assert_eq!(waters::lines(&writes), "");
    assert_eq!(
        sites.fetch("shop").await?["metadata"]["generation"],
        generation
    );
    Ok(())
}
