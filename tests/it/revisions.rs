//! Revisions of a Katalog: an invalid revision is reported and does not affect the running one.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario, condition, input};

const CRDS: [&str; 2] = ["garden/orchard-crd.yaml", "garden/pond-crd.yaml"];

/// Returns the Katalog with a misspelt field.
fn misspelt() -> Result<String> {
    let good = input("garden/katalog.yaml")?;
    let bad = good.replacen("onReconcile:", "onRekoncile:", 1);
    ensure!(bad != good, "the Katalog has no such field");
    Ok(bad)
}

/// Checks that drift is corrected and that the new resource `new` gets its children: the last valid revision is in use.
async fn last_good_works(scenario: &Scenario, new: &str) -> Result<()> {
    let maps = scenario.objects("configmaps");
    let repaired = [
        ("north-basket", "/data/fruit", "quince"),
        ("east-water", "/data/fish", "carp"),
    ];
    for (map, pointer, wanted) in repaired {
        let key = pointer.trim_start_matches("/data/");
        maps.patch(map, &json!({ "data": { key: "plastic" } }))
            .await?;
        maps.until_equal(map, pointer, json!(wanted), LIMIT).await?;
    }
    scenario.apply(&input("garden/orchard.yaml")?.replace("north", new))?;
    scenario.objects("orchards").until_ready(new).await?;
    maps.until_equal(
        &format!("{new}-basket"),
        "/data/fruit",
        json!("quince"),
        LIMIT,
    )
    .await?;
    Ok(())
}

/// Checks the conditions of a Katalog whose revision is invalid, and returns the message of `Ready`.
fn reported(katalog: &Value) -> Result<String> {
    let ready = condition(katalog, "Ready").context("no condition `Ready`")?;
    let stalled = condition(katalog, "Stalled").context("no condition `Stalled`")?;
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("InvalidRevision"))
    );
    assert_eq!(stalled["status"], "True");
    assert_eq!(condition(katalog, "Reconciling"), None);
    assert_eq!(
        ready["observedGeneration"],
        katalog["metadata"]["generation"]
    );
    Ok(ready["message"].as_str().context("no message")?.to_owned())
}

/// Checks that `kubectl explain`, `kubectl get -o wide` and an Event report the running and the invalid revision.
async fn kubectl_says(scenario: &Scenario, revision: &str) -> Result<()> {
    let wide = scenario.kubectl(&["get", "katalogs", "--output", "wide"])?;
    for part in ["REVISION", "MESSAGE", revision, "onRekoncile"] {
        ensure!(wide.contains(part), "no {part} in: {wide}");
    }
    let field = "katalog.spec.crds.operatorBox.reconciler.resync";
    let explained = scenario.kubectl(&["explain", field])?;
    ensure!(explained.contains("Duration."), "{explained}");
    let is_it = |event: &Value| {
        let note = event["message"].as_str().unwrap_or_default();
        event["reason"] == "InvalidRevision"
            && event["type"] == "Warning"
            && note.contains("onRekoncile")
    };
    eventually("an Event reports the invalid revision", LIMIT, async || {
        let events = scenario.objects("events").list().await?;
        Ok(events.iter().any(is_it).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_revision_is_reported_with_its_place_and_the_last_good_one_stays_in_force()
-> Result<()> {
    let mut scenario = Scenario::running("invalid", &CRDS, "garden/katalog.yaml").await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    scenario.apply(&input("garden/pond.yaml")?)?;
    scenario.objects("orchards").until_ready("north").await?;
    scenario.objects("ponds").until_ready("east").await?;
    let good = scenario.objects("katalogs").fetch("garden").await?["status"]["revision"].clone();
    ensure!(good.is_string(), "the status has no revision");

    scenario.apply(&misspelt()?)?;
    let katalog = scenario
        .katalog_is("garden", "False", "InvalidRevision")
        .await?;
    let message = reported(&katalog)?;
    for part in ["spec.crds.orchard.operatorBox.onRekoncile", "onReconcile"] {
        ensure!(message.contains(part), "no {part} in: {message}");
    }
    assert_eq!(katalog["status"]["revision"], good);
    assert_eq!(katalog["status"]["ready"], "2/2");
    last_good_works(&scenario, "south").await?;
    kubectl_says(&scenario, good.as_str().unwrap_or_default()).await?;

    // After a restart, the controller finds the invalid revision, and the valid one among the stored revisions.
    scenario.kill9()?;
    scenario.start().await?;
    last_good_works(&scenario, "west").await?;
    let katalog = scenario
        .katalog_is("garden", "False", "InvalidRevision")
        .await?;
    assert_eq!(reported(&katalog)?, message);
    assert_eq!(katalog["status"]["revision"], good);

    // The fixed revision runs.
    let fixed = input("garden/katalog.yaml")?.replace(r#"steps: "7""#, r#"steps: "9""#);
    scenario.apply(&fixed)?;
    let katalog = scenario.katalog_is("garden", "True", "Running").await?;
    assert_ne!(katalog["status"]["revision"], good);
    assert_eq!(condition(&katalog, "Stalled"), None);
    let maps = scenario.objects("configmaps");
    for name in ["north", "south", "west"] {
        maps.until_equal(&format!("{name}-ladder"), "/data/steps", json!("9"), LIMIT)
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_revision_that_is_invalid_runs_nothing_until_it_is_fixed() -> Result<()> {
    let mut scenario = Scenario::new("first").await?;
    let katalog = input("garden/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    for crd in CRDS {
        scenario.install(&input(crd)?).await?;
    }
    scenario.apply(&misspelt()?)?;
    let refused = scenario
        .katalog_is("garden", "False", "InvalidRevision")
        .await?;
    ensure!(
        reported(&refused)?.contains("spec.crds.orchard.operatorBox.onRekoncile"),
        "{refused}"
    );
    assert_eq!(refused["status"].get("revision"), None);
    scenario.apply(&katalog)?;
    scenario.katalog_is("garden", "True", "Running").await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    scenario.objects("orchards").until_ready("north").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_that_is_accepted_again_runs_whatever_characters_it_holds() -> Result<()> {
    let katalog = |text: &str| -> Result<String> {
        Ok(input("garden/katalog.yaml")?.replace(r#"steps: "7""#, &format!("steps: '{text}'")))
    };
    let (first, second) = (katalog("<7> & 9")?, katalog("8")?);
    let mut scenario = Scenario::with_katalog("again", &CRDS, &first).await?;
    scenario.apply(&input("garden/orchard.yaml")?)?;
    let (maps, katalogs) = (scenario.objects("configmaps"), scenario.objects("katalogs"));
    let mut revisions = Vec::new();
    for (text, steps) in [
        (&first, "<7> & 9"),
        (&second, "8"),
        (&first, "<7> & 9"),
        (&second, "8"),
    ] {
        scenario.apply(text)?;
        maps.until_equal("north-ladder", "/data/steps", json!(steps), LIMIT)
            .await?;
        let running = scenario.katalog_is("garden", "True", "Running").await?;
        revisions.push(running["status"]["revision"].clone());
    }
    assert_eq!(revisions[0], revisions[2]);
    assert_eq!(revisions[1], revisions[3]);
    assert_ne!(revisions[0], revisions[1]);
    // After a restart, the newest valid revision is in use, although an invalid one follows it.
    katalogs
        .patch(
            "garden",
            &json!({ "spec": { "crds": { "pond": { "onRekoncile": {} } } } }),
        )
        .await?;
    scenario
        .katalog_is("garden", "False", "InvalidRevision")
        .await?;
    scenario.kill9()?;
    scenario.start().await?;
    let refused = scenario
        .katalog_is("garden", "False", "InvalidRevision")
        .await?;
    assert_eq!(refused["status"]["revision"], revisions[3]);
    scenario.check_running()
}
