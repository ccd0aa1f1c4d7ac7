//! Several installations in one cluster: each kind is operated by one installation, the one that holds the claim, a Lease.

mod release;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::{Options, eventually, free_port, spawn_guarded};

use crate::private::Private;
use crate::scenario::{CLAIMS, LIMIT, Objects, Scenario, condition};
use crate::waters;

/// Returns the Leases by which installations claim kinds.
fn leases(scenario: &Scenario) -> Objects {
    scenario.objects_in(CLAIMS, "leases")
}

/// Returns the name of the Lease that claims the scenario's ponds.
fn claim(scenario: &Scenario) -> String {
    format!("kind-pond.{}", scenario.group)
}

fn lease(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name }, "spec": spec })
}

/// Returns a Katalog for the ponds of `scenario`.
fn katalog(scenario: &Scenario, name: &str) -> Result<String> {
    Ok(waters::filled("claims/katalog.yaml", "NAME", name)?.replace("GROUP", &scenario.group))
}

/// Creates two installations whose controllers are not started, and a pond.
async fn two() -> Result<(Scenario, Scenario)> {
    let mut east = Scenario::new("east").await?;
    let mut west = Scenario::new("west").await?;
    east.grant(&katalog(&east, "eastern")?).await?;
    west.grant(&katalog(&east, "western")?).await?;
    east.install(&waters::crds()?).await?;
    waters::pond(&east, "north", &json!({ "colour": "green" })).await?;
    Ok((east, west))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_installations_with_one_kind_the_first_runs_it_and_the_other_says_who_and_takes_over()
-> Result<()> {
    let (mut east, mut west) = two().await?;
    let maps = east.objects("configmaps");
    east.start().await?;
    east.apply(&katalog(&east, "eastern")?)?;
    east.katalog_is("eastern", "True", "Running").await?;
    maps.until_equal("north-pond", "/data/by", json!("eastern"), LIMIT)
        .await?;

    let mark = Scenario::mark()?;
    west.start().await?;
    west.apply(&katalog(&east, "western")?)?;
    let refused = west.katalog_is("western", "False", "Conflict").await?;
    let message = waters::row(&refused, "pond").map_or("", |row| waters::text(row, "/message"));
    for part in [
        format!("{}/eastern", east.namespace),
        "installation".to_owned(),
    ] {
        ensure!(message.contains(&part), "no {part} in: {message}");
    }
    maps.patch("north-pond", &json!({ "data": { "by": "somebody" } }))
        .await?;
    maps.until_equal("north-pond", "/data/by", json!("eastern"), LIMIT)
        .await?;
    let mut writes = west.writes_since(mark)?;
    let own = ["katalogs", "controllerrevisions"];
    writes.retain(|write| !own.contains(&write.resource.as_str()));
    ensure!(writes.is_empty(), "{}", waters::lines(&writes));

    // A restart does not change which installation holds the claim.
    west.kill9()?;
    west.start().await?;
    west.katalog_is("western", "False", "Conflict").await?;
    let before = maps.fetch("north-pond").await?["metadata"]["uid"].clone();
    east.objects("katalogs").delete("eastern").await?;
    west.katalog_is("western", "True", "Running").await?;
    let after = maps
        .until_equal("north-pond", "/data/by", json!("western"), LIMIT)
        .await?;
    assert_eq!(after["metadata"]["uid"], before);
    east.objects("katalogs")
        .until_gone("eastern", LIMIT)
        .await?;
    east.check_running()?;
    west.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_run_claim_their_kinds_and_give_them_back_when_they_end() -> Result<()> {
    let (mut east, mut west) = two().await?;
    let maps = east.objects("configmaps");
    east.file("katalog.yaml", &katalog(&east, "eastern")?)?;
    east.run(&[]).await?;
    maps.until_equal("north-pond", "/data/by", json!("eastern"), LIMIT)
        .await?;
    west.start().await?;
    west.apply(&katalog(&east, "western")?)?;
    let refused = west.katalog_is("western", "False", "Conflict").await?;
    let message = waters::row(&refused, "pond").map_or("", |row| waters::text(row, "/message"));
    ensure!(message.contains("ork run on"), "{message}");

    // A process that was killed keeps its claims after a restart.
    east.kill9()?;
    east.run(&[]).await?;
    maps.patch("north-pond", &json!({ "data": { "by": "somebody" } }))
        .await?;
    maps.until_equal("north-pond", "/data/by", json!("eastern"), LIMIT)
        .await?;
    east.terminate()?;
    west.katalog_is("western", "True", "Running").await?;
    maps.until_equal("north-pond", "/data/by", json!("western"), LIMIT)
        .await?;
    west.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_and_stale_claims_block_nobody_and_a_claim_goes_with_its_katalog() -> Result<()> {
    let mut scenario = Scenario::new("forged").await?;
    let text = katalog(&scenario, "waters")?;
    scenario.grant(&text).await?;
    scenario.install(&waters::crds()?).await?;
    let (leases, name) = (leases(&scenario), claim(&scenario));
    // The claim is held by an installation that renewed its Lease long ago.
    let gone = format!("gone/{}", scenario.namespace);
    let mut forged = lease(&name, &json!({ "holderIdentity": gone }));
    forged["metadata"]["annotations"] = json!({ "orkestra.orkspace.io/katalog": "///\u{7f}", "orkestra.orkspace.io/katalog-uid": "x".repeat(4096) });
    leases.create(&forged).await?;
    let own = orkestra_language::api::names::installation_lease(&gone);
    let spec = json!({ "holderIdentity": gone, "renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": i32::MAX });
    leases.create(&lease(&own, &spec)).await?;

    scenario.start().await?;
    scenario.apply(&text)?;
    let running = scenario.katalog_is("waters", "True", "Running").await?;
    let uid = waters::text(&running, "/metadata/uid").to_owned();
    let is_ours = |lease: &Value| {
        waters::text(
            lease,
            "/metadata/annotations/orkestra.orkspace.io~1katalog-uid",
        ) == uid
    };
    let held = leases.until(&name, "is held", LIMIT, is_ours).await?;
    let holder = held["spec"]["holderIdentity"].clone();

    // If another client changes or deletes the claim, the operator restores it and continues.
    let forge = json!({ "spec": { "holderIdentity": "nobody/there" } });
    leases.patch(&name, &forge).await?;
    leases
        .until(&name, "is held again", LIMIT, |lease| {
            lease["spec"]["holderIdentity"] == holder
        })
        .await?;
    leases.delete(&name).await?;
    leases.until(&name, "exists again", LIMIT, is_ours).await?;
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    let maps = scenario.objects("configmaps");
    maps.until_equal("north-pond", "/data/by", json!("waters"), LIMIT)
        .await?;

    scenario.objects("katalogs").delete("waters").await?;
    leases.until_gone(&name, LIMIT).await?;
    leases.delete(&own).await?;
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_permission_to_claim_nothing_runs_and_the_katalog_says_why() -> Result<()> {
    let mut scenario = Scenario::new("unclaimed").await?;
    let text = katalog(&scenario, "waters")?;
    scenario.grant(&text).await?;
    scenario.install(&waters::crds()?).await?;
    let binding = format!("claims-{}", scenario.identity.user());
    scenario.kubectl(&["delete", "rolebinding", &binding, "--namespace", CLAIMS])?;
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    scenario.start().await?;
    scenario.apply(&text)?;
    let refused = scenario.katalog_is("waters", "False", "Forbidden").await?;
    let message = condition(&refused, "Ready").map_or("", |ready| waters::text(ready, "/message"));
    ensure!(
        message.contains("leases") && message.contains(CLAIMS),
        "{message}"
    );
    // The operator never ran, so there are no resources to release.
    scenario.objects("katalogs").delete("waters").await?;
    let katalogs = scenario.objects("katalogs");
    katalogs.until_gone("waters", LIMIT).await?;
    let pond = scenario.objects("ponds").fetch("north").await?;
    assert_eq!(pond["metadata"].get("finalizers"), None);
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_our_own_crds_the_log_names_the_command_and_retries_become_rare() -> Result<()> {
    let options = Options {
        without_controllers: true,
        ..Options::default()
    };
    let private = Private::start(options, "bare.example.org")?;
    let mark = private.cluster.mark()?;
    let log = private.cluster.folder().join("controller.log");
    let listen = format!("127.0.0.1:{}", free_port()?);
    let admin = private.cluster.admin();
    let arguments = ["controller", "--leader-elect=false", "--listen", &listen];
    let command = Private::ork(admin.kubeconfig_path(), &arguments);
    let mut controller = spawn_guarded(&command, &log)?;
    let command = "ork crds | kubectl apply -f -";
    eventually("the log names the command", LIMIT, async || {
        Ok(controller.log().contains(command).then_some(()))
    })
    .await?;
    let times = eventually("Katalogs were listed five times", LIMIT, async || {
        let events = private.cluster.audit_since(mark)?;
        let tries = events
            .iter()
            .filter(|event| (&*event.resource, &*event.verb) == ("katalogs", "list"));
        let times: Vec<jiff::Timestamp> = tries.map(|event| event.timestamp).collect();
        Ok((times.len() > 4).then_some(times))
    })
    .await?;
    // Each wait is about twice as long as the previous one.
    let (first, fourth) = (
        times[1].duration_since(times[0]),
        times[4].duration_since(times[3]),
    );
    ensure!(fourth > first * 2, "{times:?}");
    ensure!(controller.status()?.is_none(), "{}", controller.log());
    Ok(())
}
