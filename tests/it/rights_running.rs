//! Permissions: they are revoked while the controller runs, and permissions on Katalogs are revoked.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::rights::Case;
use crate::scenario::{LIMIT, Scenario, condition, input, until_no_writes};
use crate::waters;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_lost_while_the_controller_runs_is_named_and_its_return_is_noticed()
-> Result<()> {
    let mut case = Case::new().await?;
    let (secrets, deployments) = (
        case.scenario.objects("secrets"),
        case.scenario.objects("deployments"),
    );
    for role in case
        .without(&[("", "secrets"), ("autoscaling", "horizontalpodautoscalers")])?
        .0
    {
        case.scenario.put_role(&role).await?;
    }
    case.scenario
        .wait_for_right("patch", "", "secrets", false)
        .await?;
    case.scenario
        .wait_for_right("list", "autoscaling", "horizontalpodautoscalers", false)
        .await?;

    refused_repairs_are_named(&case).await?;
    let colour = case.paint();
    case.scenario
        .objects("lakes")
        .patch("north", &json!({ "spec": { "colour": colour } }))
        .await?;
    case.until_followed("lake").await?;
    few_requests_are_refused(&case.scenario).await?;

    grant_all_again(&case).await?;
    let returned = Instant::now();
    secrets
        .until("north-pond", "exists again", LIMIT, |_| true)
        .await?;
    deployments
        .until_equal("north-pond", "/spec/replicas", json!(0), LIMIT)
        .await?;
    println!(
        "all children were corrected {:?} after the permissions were restored",
        returned.elapsed()
    );
    case.scenario
        .objects("ponds")
        .patch("north", &json!({ "spec": { "colour": colour } }))
        .await?;
    case.until_followed("pond").await?;
    case.scenario
        .katalog_is("waters", "True", "Running")
        .await?;
    a_finalizer_that_cannot_be_removed_is_reported(&case).await?;
    case.scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_permissions_on_katalogs_the_operators_continue_and_the_log_names_the_permission()
-> Result<()> {
    let mut case = Case::new().await?;
    // Without permission to write the Katalog's status, only the log can report it.
    let (roles, _) = case.without(&[("orkestra.orkspace.io", "katalogs/status")])?;
    for role in &roles {
        case.scenario.put_role(role).await?;
    }
    case.scenario
        .wait_for_right("patch", "orkestra.orkspace.io", "katalogs/status", false)
        .await?;
    case.scenario
        .apply(&input("rights/katalog.yaml")?.replace("revision 0", "revision 1"))?;
    eventually("the log names the permission", LIMIT, async || {
        Ok((case.scenario.log().contains("katalogs/status")).then_some(()))
    })
    .await?;
    both_operators_follow(&mut case).await?;
    grant_all_again(&case).await?;
    case.scenario
        .katalog_is("waters", "True", "Running")
        .await?;

    let (roles, _) = case.without(&[("orkestra.orkspace.io", "katalogs")])?;
    case.scenario.kill9()?;
    for role in &roles {
        case.scenario.put_role(role).await?;
    }
    case.scenario
        .wait_for_right("list", "orkestra.orkspace.io", "katalogs", false)
        .await?;
    let before = case.scenario.log().len();
    case.scenario.launch().await?;
    eventually("the log names the permission", LIMIT, async || {
        Ok(case.scenario.log()[before..]
            .contains("katalogs")
            .then_some(()))
    })
    .await?;
    ensure!(
        !case
            .scenario
            .http("/readyz")
            .await?
            .starts_with("HTTP/1.1 200"),
        "the controller is ready although it has seen no Katalog"
    );
    grant_all_again(&case).await?;
    both_operators_follow(&mut case).await?;
    case.scenario
        .katalog_is("waters", "True", "Running")
        .await?;
    case.scenario.check_running()
}

/// Grants the scenario's user all permissions again.
async fn grant_all_again(case: &Case) -> Result<()> {
    for role in &case.roles {
        case.scenario.put_role(role).await?;
    }
    Ok(())
}

/// Checks that conditions name the permissions without which the operators cannot correct drift.
async fn refused_repairs_are_named(case: &Case) -> Result<()> {
    // The watches that were started before still run; only the corrections are refused.
    case.scenario
        .objects("secrets")
        .delete("north-pond")
        .await?;
    case.until_reported("secrets", &["patch".to_owned(), "create".to_owned()])
        .await?;
    case.scenario
        .objects("deployments")
        .patch("north-pond", &json!({ "spec": { "replicas": 3 } }))
        .await?;
    case.until_reported("horizontalpodautoscalers", &["list".to_owned()])
        .await
}

/// Deletes a pond without permission to patch ponds, but with permission to patch their status: the condition and an Event report
/// that the finalizer is not removed, and the pond is deleted once the permission is restored.
async fn a_finalizer_that_cannot_be_removed_is_reported(case: &Case) -> Result<()> {
    let group = case.scenario.text("GROUP");
    for role in case.without(&[(&group, "ponds")])?.0 {
        case.scenario.put_role(&role).await?;
    }
    case.scenario
        .wait_for_right("patch", &group, "ponds", false)
        .await?;
    let ponds = case.scenario.objects("ponds");
    ponds.delete("north").await?;
    ponds
        .until("north", "reports why it still exists", LIMIT, |pond| {
            condition(pond, "Ready").is_some_and(|ready| {
                let message = waters::text(ready, "/message");
                ready["reason"] == "Forbidden" && message.contains("the finalizer is not removed")
            })
        })
        .await?;
    eventually("an Event reports why it still exists", LIMIT, async || {
        let events = waters::warnings(&case.scenario, "north").await?;
        let says_it = |event: &Value| {
            waters::text(event, "/message").contains("the finalizer is not removed")
        };
        ensure!(events.iter().any(says_it), "{events:#?}");
        Ok(Some(()))
    })
    .await?;
    grant_all_again(case).await?;
    ponds.until_gone("north", LIMIT).await
}

/// The number of refused requests within eight seconds that are no repetition.
const PERMITTED: usize = 4;

/// Checks that the controller does not keep repeating refused requests after the events that trigger them have ended. Some of
/// these come from the Deployment controller, which follows the changed `replicas`.
async fn few_requests_are_refused(scenario: &Scenario) -> Result<()> {
    until_no_writes((Duration::from_secs(8), LIMIT), || {
        let mark = Scenario::mark()?;
        Ok(move || {
            let mut requests = scenario.requests_since(mark)?;
            requests.retain(|request| request.code == 403);
            Ok(requests.into_iter().skip(PERMITTED).collect())
        })
    })
    .await
}

/// Changes the resource of each operator, and waits until the operator has applied the change.
async fn both_operators_follow(case: &mut Case) -> Result<()> {
    let colour = json!({ "spec": { "colour": case.paint() } });
    for operator in ["pond", "lake"] {
        case.scenario
            .objects(&format!("{operator}s"))
            .patch("north", &colour)
            .await?;
        case.until_followed(operator).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_printed_permissions_suffice_to_go_back_to_an_earlier_revision() -> Result<()> {
    let mut case = Case::new().await?;
    let katalog = input("rights/katalog.yaml")?;
    for katalog in [katalog.replace("revision 0", "revision 1"), katalog] {
        case.scenario.apply(&katalog)?;
        case.scenario
            .katalog_is("waters", "True", "Running")
            .await?;
    }
    assert_eq!(
        case.scenario
            .objects("controllerrevisions")
            .list()
            .await?
            .len(),
        2
    );
    case.scenario.check_running()
}
