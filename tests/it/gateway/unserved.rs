//! Policies without webhooks: a Katalog that declares rules, and nothing else, has them enforced by the API server.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{ControlPlane, SYSTEM_MASTERS, Signal, eventually, free_port, spawn_guarded};

use super::instances::CRDS;
use crate::scenario::{LIMIT, Objects, Scenario, input};
use crate::waters;

/// Two rules that CEL can express, and one that it cannot.
const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules:
          - { field: spec.image, prefix: 'myorg/', message: 'images must come from the internal registry' }
          - { field: spec.tier, notEquals: lead, message: 'the tier {{ .spec.tier }} is not for {{ .metadata.name }}' }
          - { field: '{{ .spec.seen | upper }}', notEquals: TWICE, message: 'it was seen twice' }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

/// All violations of [`bad`], in one message.
const REFUSAL: &str = "spec.image: images must come from the internal registry; spec.tier: the tier lead is not for bad";

fn bad(scenario: &Scenario) -> String {
    let spec = json!({ "image": "nginx", "tier": "lead" });
    waters::resource(scenario, "Site", "bad", &spec).to_string()
}

/// Returns the error of a dry run that creates [`bad`]; none if it is accepted.
fn refusal(scenario: &Scenario) -> Result<Option<String>> {
    let args = ["create", "--dry-run=server", "-f", "-"];
    let admin = scenario.cluster.admin();
    let args = [&["--namespace", &scenario.namespace], &args[..]].concat();
    let output = scenario
        .cluster
        .kubectl(&admin, &args, Some(&bad(scenario)))?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((!output.status.success()).then_some(error))
}

/// Waits until [`bad`] is refused, with all violations.
async fn until_refused(scenario: &Scenario) -> Result<()> {
    let what = "a bad resource is refused";
    let error = eventually(what, LIMIT, async || refusal(scenario)).await?;
    ensure!(error.contains(REFUSAL), "{error}");
    Ok(())
}

/// Waits until no policy about the scenario's kind exists, and [`bad`] is accepted.
async fn until_removed(scenario: &Scenario) -> Result<()> {
    eventually("no policy remains", LIMIT, async || {
        Ok(policies(scenario).await?.is_empty().then_some(()))
    })
    .await?;
    eventually("a bad resource is accepted", LIMIT, async || {
        Ok(refusal(scenario)?.is_none().then_some(()))
    })
    .await
}

/// Returns the policies about the scenario's kind.
async fn policies(scenario: &Scenario) -> Result<Vec<Value>> {
    let mut all = registered(scenario).list().await?;
    all.retain(|one| {
        one["spec"]["matchConstraints"]
            .to_string()
            .contains(&scenario.group)
    });
    Ok(all)
}

fn registered(scenario: &Scenario) -> Objects {
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    Objects::at(&scenario.client, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_are_enforced_with_webhooks_off_until_the_katalog_is_gone() -> Result<()> {
    let mut scenario = Scenario::new("unserved").await?;
    for crd in CRDS {
        scenario.install(&input(crd)?).await?;
    }
    scenario.grant(KATALOG).await?;
    scenario.arguments = vec!["--webhooks=off".to_owned()];
    scenario.start().await?;
    scenario.apply(KATALOG)?;
    let ready = scenario.katalog_is("sites", "True", "Running").await?;
    until_refused(&scenario).await?;
    // The status says where each rule applies.
    let katalogs = scenario.objects("katalogs");
    let rules = json!({
        "policy": ["validation of spec.image", "validation of spec.tier"],
        "passes": ["validation of spec.crds.site.validation.rules[2]"],
    });
    katalogs
        .until_equal("sites", "/status/operators/0/rules", rules, LIMIT)
        .await
        .with_context(|| ready.to_string())?;
    let good = waters::resource(&scenario, "Site", "good", &json!({ "image": "myorg/a" }));
    let sites = scenario.objects("sites");
    sites.create(&good).await?;
    sites.until_ready("good").await?;

    // A policy that a user deletes is restored.
    let registered = registered(&scenario);
    let policy = policies(&scenario).await?;
    let policy = policy.first().context("no policy")?;
    let (name, uid) = (
        waters::text(policy, "/metadata/name"),
        &policy["metadata"]["uid"],
    );
    registered.delete(name).await?;
    registered
        .until(name, "is restored", LIMIT, |one| {
            one["metadata"]["uid"] != *uid
        })
        .await?;

    // A suspended Katalog keeps its kind, and its rules.
    let suspend = |flag: bool| json!({ "spec": { "suspend": flag } });
    katalogs.patch("sites", &suspend(true)).await?;
    scenario.katalog_is("sites", "False", "Suspended").await?;
    until_refused(&scenario).await?;
    katalogs.patch("sites", &suspend(false)).await?;
    scenario.katalog_is("sites", "True", "Running").await?;

    // Rules hold while no controller runs, and go with the Katalog, also if it is deleted meanwhile.
    scenario.kill9()?;
    until_refused(&scenario).await?;
    scenario.kubectl(&["delete", "katalog", "sites", "--wait=false"])?;
    scenario.start().await?;
    katalogs.until_gone("sites", LIMIT).await?;
    until_removed(&scenario).await?;
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ork_run_enforces_rules_while_it_runs() -> Result<()> {
    let scenario = Scenario::new("runrules").await?;
    for crd in CRDS {
        scenario.install(&input(crd)?).await?;
    }
    let person = format!("person-{}", scenario.namespace);
    let person = ControlPlane::shared().identity(&person, &[SYSTEM_MASTERS])?;
    let off = KATALOG.replace(
        "spec:\n  crds:",
        "spec:\n  security: { webhooks: { admission: { enabled: false } } }\n  crds:",
    );
    let katalog = scenario.file("katalog.yaml", KATALOG)?;
    let listen = format!("127.0.0.1:{}", free_port()?);
    let mut command = scenario.command_as(&person);
    command
        .args(["run", "--listen", &listen, "-k"])
        .arg(&katalog);
    let log = scenario.path("run.log");
    let mut run = spawn_guarded(&command, &log)?;
    until_refused(&scenario).await.with_context(|| run.log())?;

    // The switch takes the policies away, and gives them back.
    scenario.file("katalog.yaml", &off)?;
    until_removed(&scenario).await.with_context(|| run.log())?;
    scenario.file("katalog.yaml", KATALOG)?;
    until_refused(&scenario).await.with_context(|| run.log())?;

    // They belong to the Katalog, which ends with the command.
    run.signal(Signal::Term)?;
    ensure!(run.wait(LIMIT)?.success(), "{}", run.log());
    until_removed(&scenario).await
}

/// Rules about the number of replicas: alone, with another field, and a warning.
const SCALED: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: scaled }
spec:
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules:
          - { field: spec.replicas, min: 1, max: 5, message: '{{ .spec.replicas }} of {{ .metadata.name }} are not permitted' }
          - { name: never, field: spec.replicas, notEquals: '4', message: 'four is unlucky' }
          - { name: costs, field: spec.replicas, max: 2, action: warn, message: 'this is expensive' }
          - { name: lead, field: spec.tier, notEquals: lead, when: [{ field: spec.replicas, equals: '3' }] }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: a } }]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_on_replicas_hold_for_kubectl_scale_without_a_webhook() -> Result<()> {
    let mut scenario = Scenario::new("scaledrules").await?;
    scenario.install(&super::authority::scaled_crd()?).await?;
    scenario.grant(SCALED).await?;
    scenario.arguments = vec!["--webhooks=off".to_owned()];
    scenario.start().await?;
    let spec = json!({ "image": "a", "replicas": 1, "tier": "lead" });
    let sites = scenario.objects("sites");
    let shop = waters::resource(&scenario, "Site", "shop", &spec);
    sites.create(&shop).await?;
    scenario.apply(SCALED)?;
    scenario.katalog_is("scaled", "True", "Running").await?;
    let kind = format!("sites.{}/shop", scenario.group);
    let scale = |count: &str| -> Result<(bool, String)> {
        let count = format!("--replicas={count}");
        let args = ["--namespace", &scenario.namespace, "scale", &kind, &count];
        let admin = scenario.cluster.admin();
        let output = scenario.cluster.kubectl(&admin, &args, None)?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output.status.success(), error))
    };
    let both = "spec.replicas: 9 of shop are not permitted";
    eventually("scaling is judged", LIMIT, async || {
        let (is_accepted, error) = scale("9")?;
        if is_accepted {
            let one = json!({ "spec": { "replicas": 1 } });
            sites.patch("shop", &one).await?;
        }
        Ok((!is_accepted && error.contains(both)).then_some(()))
    })
    .await?;
    for (count, message) in [
        ("4", "never: four is unlucky"),
        ("0", "spec.replicas: 0 of shop are not permitted"),
    ] {
        let (is_accepted, error) = scale(count)?;
        ensure!(!is_accepted && error.contains(message), "{count}: {error}");
    }
    let (is_accepted, error) = scale("5")?;
    ensure!(
        is_accepted && error.contains("this is expensive"),
        "{error}"
    );
    ensure!(sites.fetch("shop").await?["spec"]["replicas"] == 5);
    // A rule that reads more than the number of replicas is applied by passes, and the status says so.
    let (is_accepted, error) = scale("3")?;
    ensure!(is_accepted, "{error}");
    crate::external::reported(&sites, "shop", "ValidationFailed").await?;
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_of_different_namespaces_leave_the_policies_of_each_other() -> Result<()> {
    let mut scenarios = Vec::new();
    for prefix in ["sidea", "sideb"] {
        let mut scenario = Scenario::new(prefix).await?;
        for crd in CRDS {
            scenario.install(&input(crd)?).await?;
        }
        scenario.grant(KATALOG).await?;
        scenario.start().await?;
        scenario.apply(KATALOG)?;
        until_refused(&scenario).await?;
        scenarios.push(scenario);
    }
    let [first, second] = &mut scenarios[..] else {
        anyhow::bail!("there are not two scenarios");
    };
    let uids = async |scenario: &Scenario| -> Result<Vec<Value>> {
        let all = policies(scenario).await?;
        Ok(all
            .iter()
            .map(|one| one["metadata"]["uid"].clone())
            .collect())
    };
    let before = uids(first).await?;
    ensure!(!before.is_empty());
    // The second controller looks at all policies when its own change.
    let rule = "field: spec.tier, notEquals: lead,";
    second.apply(&KATALOG.replace(rule, "field: spec.tier, notEquals: leader,"))?;
    eventually("the second policy has changed", LIMIT, async || {
        let all = policies(second).await?;
        Ok(all
            .iter()
            .any(|one| one.to_string().contains("leader"))
            .then_some(()))
    })
    .await?;
    ensure!(
        uids(first).await? == before,
        "the first policies were replaced"
    );
    until_refused(first).await?;
    first.check_running()?;
    second.check_running()
}
