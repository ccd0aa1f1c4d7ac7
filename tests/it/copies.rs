//! Copies of Secrets, `ConfigMaps` and policies: they follow their sources, and exist as long and where they are declared.

use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Objects, Scenario, condition, within};
use crate::waters;

/// Starts a scenario; returns it with the namespace of the sources and another namespace.
async fn running(prefix: &str, katalog: &str) -> Result<(Scenario, String, String)> {
    let mut scenario = Scenario::new(prefix).await?;
    let source = waters::second_namespace(&scenario.client).await?;
    let other = waters::second_namespace(&scenario.client).await?;
    let katalog = waters::filled(katalog, "SOURCE", &source)?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    Ok((scenario, source, other))
}

fn registry(password: &str) -> Value {
    json!({ "metadata": { "name": "registry" }, "type": "kubernetes.io/basic-auth", "data": { "password": password, "username": "cm9vdA==" } })
}

/// Returns the reason of the condition `Ready`.
fn reason(object: &Value) -> &str {
    condition(object, "Ready").map_or("", |ready| waters::text(ready, "/reason"))
}

/// Checks that a pass over a converged pond sends no request to the API server, not even for the sources.
async fn ensure_free_pass(scenario: &Scenario) -> Result<()> {
    let ponds = scenario.objects("ponds");
    let requests = waters::costs_of_a_pass(scenario, &ponds, "north").await?;
    ensure!(requests.is_empty(), "{}", waters::lines(&requests));
    Ok(())
}

/// Changes the source several times, the last time to `dHdv`, and checks that the copies follow within a second. Resync is off
/// and no pass is due, so only the change can cause the writes. The time is measured from the API server's answer to the change
/// until the last copy's write in the audit log. The fastest change counts, as the machine may be busy.
async fn ensure_followed_at_once(
    scenario: &Scenario,
    sources: &Objects,
    places: &[&Objects],
) -> Result<()> {
    // No pass runs without a change.
    scenario.until_at_rest("pond").await?;
    let mut passwords = ["YQ==", "Yg==", "Yw==", "ZA=="].into_iter().cycle();
    let follow = async |password: &str| -> Result<Duration> {
        let (mark, before) = (Scenario::mark()?, scenario.passes("pond").await?);
        sources
            .patch("registry", &json!({ "data": { "password": password } }))
            .await?;
        let changed = Timestamp::now();
        for place in places {
            place
                .until_equal("north-registry", "/data/password", json!(password), LIMIT)
                .await?;
        }
        let writes = eventually("the writes are logged", LIMIT, async || {
            let mut writes = scenario.writes_since(mark)?;
            writes.retain(|write| write.name == "north-registry");
            Ok((writes.len() >= places.len()).then_some(writes))
        })
        .await?;
        ensure!(
            writes.len() == places.len(),
            "not one write per copy:\n{}",
            waters::lines(&writes)
        );
        let last = writes.iter().map(|write| write.timestamp).max();
        let metrics = scenario.until_idle().await?;
        ensure!(
            metrics.passes("pond")? > before + 0.5,
            "no pass was counted"
        );
        Ok(last
            .unwrap_or(changed)
            .duration_since(changed)
            .unsigned_abs())
    };
    within("the copies follow", Duration::from_secs(1), async || {
        follow(passwords.next().unwrap_or_default()).await
    })
    .await?;
    follow("dHdv").await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_copy_waits_for_its_source_follows_it_and_is_cleaned_up() -> Result<()> {
    let (mut scenario, source, other) = running("copies", "copies/katalog.yaml").await?;
    let sources = scenario.objects_in(&source, "secrets");
    let (here, there) = (
        scenario.objects("secrets"),
        scenario.objects_in(&other, "secrets"),
    );
    let ponds = scenario.objects("ponds");
    a_pond_waits_for_its_source(&scenario, &source, &other).await?;

    sources.create(&registry("b25l")).await?;
    for place in [&here, &there] {
        let copy = place
            .until_equal("north-registry", "/data/password", json!("b25l"), LIMIT)
            .await?;
        ensure!(copy["type"] == "kubernetes.io/basic-auth");
    }
    ponds.until_ready("north").await?;

    ensure_followed_at_once(&scenario, &sources, &[&here, &there]).await?;

    // A copy stays when its source is deleted.
    sources.delete("registry").await?;
    ponds
        .until("north", "misses its source", LIMIT, |pond| {
            reason(pond) == "SourceMissing"
        })
        .await?;
    ensure!(there.fetch("north-registry").await?["data"]["password"] == "dHdv");
    sources.create(&registry("dHdv")).await?;
    ponds.until_ready("north").await?;

    a_restart_writes_nothing(&mut scenario).await?;

    ensure_free_pass(&scenario).await?;

    // A namespace is removed from the list and added again; then the pond is deleted.
    ponds
        .patch("north", &json!({ "spec": { "also": "" } }))
        .await?;
    there.until_gone("north-registry", LIMIT).await?;
    ensure!(here.get("north-registry").await?.is_some());
    ponds
        .patch("north", &json!({ "spec": { "also": other } }))
        .await?;
    there
        .until_equal("north-registry", "/data/password", json!("dHdv"), LIMIT)
        .await?;
    ponds.delete("north").await?;
    there.until_gone("north-registry", LIMIT).await?;
    ponds.until_gone("north", LIMIT).await
}

/// Creates a pond whose Secret has no source yet: it waits, and its settings are copied meanwhile.
async fn a_pond_waits_for_its_source(scenario: &Scenario, source: &str, other: &str) -> Result<()> {
    scenario
        .objects_in(source, "configmaps")
        .create(&json!({ "metadata": { "name": "pond-deep" }, "data": { "depth": "9", "owner": "infra" } }))
        .await?;
    waters::pond(
        scenario,
        "north",
        &json!({ "also": other, "settings": "pond-deep" }),
    )
    .await?;
    scenario
        .objects("ponds")
        .until("north", "waits for its source", LIMIT, |pond| {
            reason(pond) == "SourceMissing"
        })
        .await?;
    ensure!(
        scenario
            .objects("secrets")
            .get("north-registry")
            .await?
            .is_none()
    );
    let settings = scenario
        .objects("configmaps")
        .fetch("north-settings")
        .await?;
    ensure!(
        settings["data"] == json!({ "depth": "9", "owner": "north" }),
        "{}",
        settings["data"]
    );
    Ok(())
}

/// Kills and restarts the controller, and checks that it writes nothing.
async fn a_restart_writes_nothing(scenario: &mut Scenario) -> Result<()> {
    scenario.kill9()?;
    scenario.start().await?;
    waters::ensure_no_writes(scenario).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_custom_resource_copies_nothing_that_is_not_allowed() -> Result<()> {
    let (scenario, source, _) = running("refused", "copies/katalog.yaml").await?;
    let sources = scenario.objects_in(&source, "configmaps");
    let secret = json!({ "metadata": { "name": "payroll" }, "data": { "salary": "much" } });
    sources.create(&secret).await?;
    scenario
        .objects_in(&source, "secrets")
        .create(&registry("b25l"))
        .await?;
    waters::pond(&scenario, "north", &json!({ "settings": "payroll" })).await?;
    let ponds = scenario.objects("ponds");
    let pond = ponds
        .until("north", "is refused its source", LIMIT, |pond| {
            reason(pond) == "SourceRefused"
        })
        .await?;
    let message = condition(&pond, "Ready").map_or("", |ready| waters::text(ready, "/message"));
    ensure!(message.contains("allowedSources"), "{message}");
    ensure!(
        scenario
            .objects("configmaps")
            .get("north-settings")
            .await?
            .is_none()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_quotas_and_limits_follow_their_source_outlive_a_restart_and_are_cleaned_up()
-> Result<()> {
    let (mut scenario, source, other) = running("rules", "copies/rules.yaml").await?;
    rules_are_copied_as_declared(&scenario, &source, &other).await?;
    copies_of_rules_follow_their_sources(&scenario, &source, &other).await?;
    a_restart_writes_nothing(&mut scenario).await?;

    // A source that is not allowed is refused, and the copy of the previous one stays.
    let limits = scenario.objects("limitranges");
    let copied = limits.fetch("north-limits").await?["spec"].clone();
    let ponds = scenario.objects("ponds");
    let choose = |limits: &str| json!({ "spec": { "limits": limits } });
    ponds.patch("north", &choose("treasury")).await?;
    let refused = |pond: &Value| reason(pond) == "SourceRefused";
    ponds.until("north", "is refused", LIMIT, refused).await?;
    assert_eq!(limits.fetch("north-limits").await?["spec"], copied);
    ponds.patch("north", &choose("house")).await?;
    ponds.until_ready("north").await?;

    ponds
        .patch("north", &json!({ "spec": { "also": "" } }))
        .await?;
    let there = |plural: &str| scenario.objects_in(&other, plural);
    there("networkpolicies")
        .until_gone("north-policy", LIMIT)
        .await?;
    there("resourcequotas")
        .until_gone("north-services", LIMIT)
        .await?;
    ponds
        .patch("north", &json!({ "spec": { "also": other } }))
        .await?;
    there("networkpolicies")
        .until("north-policy", "is copied again", LIMIT, |_| true)
        .await?;
    ponds.delete("north").await?;
    there("networkpolicies")
        .until_gone("north-policy", LIMIT)
        .await?;
    ponds.until_gone("north", LIMIT).await
}

/// Creates the sources and a pond that copies them, and checks the content of the copies in both namespaces.
async fn rules_are_copied_as_declared(
    scenario: &Scenario,
    source: &str,
    other: &str,
) -> Result<()> {
    let from = |plural: &str| scenario.objects_in(source, plural);
    let house = |spec: Value| json!({ "metadata": { "name": "house", "labels": { "argocd.argoproj.io/instance": "house" } }, "spec": spec });
    let policy = json!({ "podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{ "from": [{ "podSelector": {} }] }] });
    from("networkpolicies")
        .create(&house(policy.clone()))
        .await?;
    let hard = json!({ "hard": { "pods": "9", "secrets": "20", "services": "9" } });
    from("resourcequotas").create(&house(hard)).await?;
    let limits = json!({ "limits": [{ "type": "Pod", "max": { "memory": "16Gi" } }] });
    from("limitranges").create(&house(limits.clone())).await?;
    waters::pond(
        scenario,
        "north",
        &json!({ "also": other, "limits": "house" }),
    )
    .await?;
    let ponds = scenario.objects("ponds");
    ponds.until_ready("north").await?;
    for place in [&*scenario.namespace, other] {
        let copy = scenario.objects_in(place, "networkpolicies");
        let copy = copy.fetch("north-policy").await?;
        ensure!(copy["spec"] == policy, "{}", copy["spec"]);
        let labels = &copy["metadata"]["labels"];
        ensure!(labels["argocd.argoproj.io/instance"].is_null(), "{labels}");
        let quotas = scenario.objects_in(place, "resourcequotas");
        let quota = quotas.fetch("north-services").await?;
        ensure!(quota["spec"]["hard"] == json!({ "services": "20" }));
    }
    let here = |plural: &str| scenario.objects(plural);
    let copy = here("limitranges").fetch("north-limits").await?;
    ensure!(copy["spec"] == limits, "{}", copy["spec"]);
    let quota = here("resourcequotas").fetch("north-quota").await?;
    let hard = json!({ "pods": "3", "secrets": "20", "services": "9" });
    ensure!(quota["spec"]["hard"] == hard, "{}", quota["spec"]);
    Ok(())
}

/// Changes the sources, and waits until their copies have the changes.
async fn copies_of_rules_follow_their_sources(
    scenario: &Scenario,
    source: &str,
    other: &str,
) -> Result<()> {
    let from = |plural: &str| scenario.objects_in(source, plural);
    let closed = json!({ "spec": { "ingress": null } });
    from("networkpolicies").patch("house", &closed).await?;
    let more = json!({ "spec": { "hard": { "services": "12" } } });
    from("resourcequotas").patch("house", &more).await?;
    for place in [&*scenario.namespace, other] {
        let copies = scenario.objects_in(place, "networkpolicies");
        let no_rule = |copy: &Value| copy["spec"].get("ingress").is_none();
        copies
            .until("north-policy", "is closed", LIMIT, no_rule)
            .await?;
    }
    scenario
        .objects("resourcequotas")
        .until_equal("north-quota", "/spec/hard/services", json!("12"), LIMIT)
        .await?;
    Ok(())
}
