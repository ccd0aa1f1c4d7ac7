//! Deletion of Katalogs that are in conflict, that never ran, or whose resources cannot be released.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::json;
use testbed::eventually;

use super::{claim, katalog, leases};
use crate::scenario::{LIMIT, Objects, Scenario, condition, until_next_second};
use crate::waters;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_in_conflict_that_is_deleted_with_its_resources_takes_none_of_the_olders()
-> Result<()> {
    let mut scenario = Scenario::new("younger").await?;
    let elder = katalog(&scenario, "elder")?;
    let younger =
        katalog(&scenario, "younger")?.replace("spec:\n", "spec:\n  deletionPolicy: delete\n");
    ensure!(younger.contains("deletionPolicy"), "{younger}");
    scenario.grant(&elder).await?;
    scenario.grant(&younger).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&elder)?;
    scenario.katalog_is("elder", "True", "Running").await?;
    let pond = waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    let (maps, katalogs) = (scenario.objects("configmaps"), scenario.objects("katalogs"));
    let child = maps
        .until_equal("north-pond", "/data/by", json!("elder"), LIMIT)
        .await?;
    // Creation timestamps have whole seconds: wait, so that the second Katalog is the younger one.
    until_next_second().await?;
    scenario.apply(&younger)?;
    scenario.katalog_is("younger", "False", "Conflict").await?;
    // A forged `status.operated` does not make the kind belong to the younger Katalog.
    let operated = json!([{ "group": scenario.group, "kind": "Pond", "plural": "ponds", "version": "v1alpha1" }]);
    let forged = json!({ "status": { "operated": operated } }).to_string();
    scenario.kubectl(&[
        "patch",
        "katalog",
        "younger",
        "--subresource=status",
        "--type=merge",
        "--patch",
        &forged,
    ])?;
    katalogs.delete("younger").await?;
    katalogs.until_gone("younger", LIMIT).await?;

    let after = scenario.objects("ponds").fetch("north").await?;
    assert_eq!(after["metadata"]["uid"], pond["metadata"]["uid"]);
    assert_eq!(after["metadata"].get("deletionTimestamp"), None);
    assert_eq!(
        after["metadata"]["finalizers"],
        json!(["orkestra.orkspace.io/cleanup"])
    );
    maps.patch("north-pond", &json!({ "data": { "by": "somebody" } }))
        .await?;
    let repaired = maps
        .until_equal("north-pond", "/data/by", json!("elder"), LIMIT)
        .await?;
    assert_eq!(repaired["metadata"]["uid"], child["metadata"]["uid"]);
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_that_never_ran_goes_at_once() -> Result<()> {
    let mut scenario = Scenario::new("never").await?;
    let text = katalog(&scenario, "waters")?;
    // The scenario grants the permissions of the installation, and those on another kind.
    let lakes = text.replace("Pond", "Lake").replace("ponds", "lakes");
    scenario.grant(&lakes).await?;
    scenario.start().await?;
    let katalogs = scenario.objects("katalogs");
    // First without the CRD and the permissions, then with the CRD only, then with an invalid revision.
    scenario.apply(&text)?;
    scenario.katalog_is("waters", "False", "Waiting").await?;
    katalogs.delete("waters").await?;
    katalogs.until_gone("waters", LIMIT).await?;

    scenario.install(&waters::crds()?).await?;
    for policy in ["keep", "delete"] {
        let text = text.replace("spec:\n", &format!("spec:\n  deletionPolicy: {policy}\n"));
        scenario.apply(&text)?;
        scenario.katalog_is("waters", "False", "Forbidden").await?;
        katalogs.delete("waters").await?;
        katalogs.until_gone("waters", LIMIT).await?;
    }

    scenario.apply(&text.replace("onReconcile", "onRekoncile"))?;
    scenario
        .katalog_is("waters", "False", "InvalidRevision")
        .await?;
    katalogs.delete("waters").await?;
    katalogs.until_gone("waters", LIMIT).await?;
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_katalog_that_cannot_be_released_says_why_and_how_to_let_it_go() -> Result<()> {
    let mut scenario = Scenario::new("stuck").await?;
    let text = katalog(&scenario, "waters")?;
    let roles = scenario.grant(&text).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    let (katalogs, ponds) = (scenario.objects("katalogs"), scenario.objects("ponds"));
    let group = scenario.group.clone();
    for way in ["annotation", "command", "force"] {
        for role in &roles {
            scenario.put_role(role).await?;
        }
        scenario
            .wait_for_right("patch", &group, "ponds", true)
            .await?;
        scenario.apply(&text)?;
        scenario.katalog_is("waters", "True", "Running").await?;
        waters::pond(&scenario, way, &json!({ "colour": "green" })).await?;
        ponds.until_ready(way).await?;
        forbid_to_patch_ponds(&scenario, &roles).await?;
        katalogs.delete("waters").await?;
        the_katalog_says_why_it_stays(&katalogs).await?;
        match way {
            "annotation" => the_annotation_lets_it_go(&scenario, way).await?,
            "command" => the_command_lets_it_go(&scenario, way).await?,
            _ => {
                the_command_lets_it_go_by_force(&scenario, way).await?;
                // The controller holds the claim until it has released the resources that the command left behind.
                for role in &roles {
                    scenario.put_role(role).await?;
                }
            }
        }
        leases(&scenario)
            .until_gone(&claim(&scenario), LIMIT)
            .await?;
    }
    scenario.check_running()
}

/// Removes the permission to patch ponds, which is needed to remove the finalizer.
async fn forbid_to_patch_ponds(scenario: &Scenario, roles: &[ClusterRole]) -> Result<()> {
    for role in roles {
        let mut less = role.clone();
        for rule in less.rules.iter_mut().flatten() {
            if rule.resources.iter().flatten().any(|one| one == "ponds") {
                rule.verbs.retain(|verb| verb != "patch");
            }
        }
        scenario.put_role(&less).await?;
    }
    scenario
        .wait_for_right("patch", &scenario.group, "ponds", false)
        .await
}

/// Waits until the Katalog's message names the kind that it waits for and the annotation that releases it, and checks that the
/// reason is `Terminating`.
async fn the_katalog_says_why_it_stays(katalogs: &Objects) -> Result<()> {
    let stuck = katalogs
        .until("waters", "reports the reason", LIMIT, |katalog| {
            let ready = condition(katalog, "Ready");
            let message = ready.map_or("", |ready| waters::text(ready, "/message"));
            let is_named = ["Pond", "ponds"].iter().any(|kind| message.contains(kind));
            is_named && message.contains("orkestra.orkspace.io/release=true")
        })
        .await?;
    let ready = condition(&stuck, "Ready").context("no condition Ready")?;
    assert_eq!(ready["reason"], "Terminating", "{ready}");
    Ok(())
}

/// Releases the Katalog by the annotation, waits for the Event that reports the remaining resources, and removes the pond's
/// finalizer.
async fn the_annotation_lets_it_go(scenario: &Scenario, pond: &str) -> Result<()> {
    let (katalogs, ponds) = (scenario.objects("katalogs"), scenario.objects("ponds"));
    scenario.kubectl(&[
        "annotate",
        "katalog",
        "waters",
        "orkestra.orkspace.io/release=true",
    ])?;
    katalogs.until_gone("waters", LIMIT).await?;
    said_what_is_left(scenario).await?;
    let patch = json!({ "metadata": { "finalizers": null } });
    ponds.patch(pond, &patch).await.map(drop)
}

/// Releases the Katalog by `ork release`, and checks that it also removes the pond's finalizer.
async fn the_command_lets_it_go(scenario: &Scenario, pond: &str) -> Result<()> {
    let (katalogs, ponds) = (scenario.objects("katalogs"), scenario.objects("ponds"));
    let mut command = scenario.command_as(&scenario.cluster.admin());
    let output = command
        .args(["release", "katalog/waters", "-n", &scenario.namespace])
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    katalogs.until_gone("waters", LIMIT).await?;
    let pond = ponds.fetch(pond).await?;
    assert_eq!(pond["metadata"].get("finalizers"), None, "{pond}");
    Ok(())
}

/// Releases the Katalog by `ork release --force` as a user who cannot patch the pond, and removes the pond's finalizer.
async fn the_command_lets_it_go_by_force(scenario: &Scenario, pond: &str) -> Result<()> {
    let (katalogs, ponds) = (scenario.objects("katalogs"), scenario.objects("ponds"));
    let release = |flags: &[&str]| {
        let mut command = scenario.command_as(&scenario.identity);
        command.args(["release", "katalog/waters", "-n", &scenario.namespace]);
        let output = command.args(flags).output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::Ok((output.status.success(), text))
    };
    let (is_released, text) = release(&[])?;
    ensure!(!is_released && text.contains("`--force`"), "{text}");
    let (is_released, text) = release(&["--force"])?;
    ensure!(is_released && text.contains("left behind"), "{text}");
    katalogs.until_gone("waters", LIMIT).await?;
    let patch = json!({ "metadata": { "finalizers": null } });
    ponds.patch(pond, &patch).await.map(drop)
}

/// Waits for the Event that reports which resources a Katalog has left behind.
async fn said_what_is_left(scenario: &Scenario) -> Result<()> {
    let path = format!(
        "/apis/events.k8s.io/v1/namespaces/{}/events",
        scenario.namespace
    );
    let events = Objects::at(&scenario.client, &path);
    eventually("an Event reports the remaining ponds", LIMIT, async || {
        let events = events.list().await?;
        let reported = events.iter().any(|event| {
            event["reason"] == "LeftBehind" && waters::text(event, "/note").contains("ponds")
        });
        Ok(reported.then_some(()))
    })
    .await
}
