//! An outage of the API server: operators pause and report it, and continue after its return without a storm of requests.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use orkestra_ground::tasks::Task;
use serde_json::json;
use testbed::{AuditEvent, eventually};

use crate::scenario::{LIMIT, Scenario, input, pause};
use crate::waters;

const PONDS: usize = 20;
/// The minimum duration of the outage.
const AWAY: Duration = Duration::from_secs(22);
/// The maximum number of failed reconcile passes: those that ran when the outage began and before it was noticed. By default an
/// operator has three workers.
const LOST: f64 = 12.0;

async fn errors(scenario: &Scenario) -> Result<f64> {
    let failed = [("result", "error")];
    scenario.metric("orkestra_reconcile_total", &failed).await
}

/// Returns the status codes of requests with a verb, by resource.
fn reads(requests: &[AuditEvent], verb: &str) -> BTreeMap<String, Vec<u16>> {
    let mut reads: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for request in requests.iter().filter(|request| request.verb == verb) {
        let resource = format!("{}.{}", request.resource, request.group);
        reads.entry(resource).or_default().push(request.code);
    }
    reads
}

/// Checks pages, probes and metrics while the API server is unreachable.
async fn ensure_truth(scenario: &Scenario) -> Result<()> {
    eventually("the outage is reported", LIMIT, async || {
        let page = scenario.page("/katalog").await?;
        Ok((page["apiServer"]["reachable"] == false).then_some(()))
    })
    .await?;
    let ready = scenario.http("/readyz").await?;
    ensure!(
        ready.starts_with("HTTP/1.1 503") && ready.contains("the API server cannot be reached"),
        "{ready}"
    );
    ensure!(scenario.http("/livez").await?.starts_with("HTTP/1.1 200"));
    let gauge = scenario
        .metric("orkestra_api_server_reachable", &[])
        .await?;
    ensure!(gauge < 0.5, "{gauge}");
    eventually("each operator reports why it waits", LIMIT, async || {
        let page = scenario.page("/katalog").await?;
        let rows = page["crds"].as_array().context("no operators")?;
        let all = rows.iter().all(|row| {
            row["state"] == "degraded" && waters::text(row, "/reason").starts_with("Unavailable: ")
        });
        ensure!(all && rows.len() == 2, "{rows:#?}");
        Ok(Some(()))
    })
    .await
}

/// Checks that there is at most one list per kind, and only if the resource version of its watch was too old. Lists of one object
/// compare the API server's state with the cache: one per watch and attempt. One list reads the object that was written last.
fn ensure_no_storm(requests: &[AuditEvent]) -> Result<()> {
    let is_comparison =
        |request: &&AuditEvent| request.verb == "list" && request.uri.ends_with("?limit=1");
    let (compared, requests): (Vec<_>, Vec<_>) = requests.iter().partition(is_comparison);
    let is_look = |request: &&&AuditEvent| {
        request.verb == "list" && request.uri.contains("=metadata.name%3D")
    };
    let (looks, requests): (Vec<_>, Vec<_>) = requests.iter().partition(is_look);
    ensure!(looks.len() == 1, "{} lists of the last write", looks.len());
    let requests: Vec<AuditEvent> = requests.into_iter().copied().cloned().collect();
    let (lists, watches) = (reads(&requests, "list"), reads(&requests, "watch"));
    let begun: usize = watches.values().map(Vec::len).sum();
    ensure!(
        compared.len() <= 2 * begun,
        "{} comparisons for {begun} watches",
        compared.len()
    );
    println!("after the return: lists {lists:?}, watches {watches:?}");
    ensure!(watches.len() >= 7, "{watches:?}");
    for (kind, codes) in &lists {
        // Two watches: the one that was refused, and the one that started after the list.
        let begun = watches.get(kind).map_or(0, Vec::len);
        ensure!(
            codes.len() == 1 && begun >= 2,
            "{kind}: {} lists for {begun} watches",
            codes.len()
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_killed_api_server_pauses_everything_and_its_return_is_no_storm() -> Result<()>
{
    let mut scenario = Scenario::on_its_own("outage").await?;
    let cluster = scenario.cluster;
    let katalog = input("failure/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.accept_faults();
    scenario.start().await?;
    scenario.apply(&katalog)?;
    let ponds = scenario.objects("ponds");
    green_ponds_are_ready(&scenario).await?;

    // The outage starts while passes run: half of the Ponds have just changed.
    for number in 0..PONDS / 2 {
        let change = json!({ "spec": { "colour": "blue" } });
        ponds.patch(&format!("p{number:02}"), &change).await?;
    }
    cluster.stop_api_server()?;
    ensure_truth(&scenario).await?;
    // The restarted task that probes the API server must notice its return.
    scenario.restart_task(Task::Probe).await?;
    let passes = scenario.passes("pond").await?;
    pause(AWAY).await;
    ensure_truth(&scenario).await?;
    ensure!(
        (scenario.passes("pond").await? - passes).abs() < 0.5,
        "Ponds were reconciled during the outage"
    );

    let mark = cluster.mark()?;
    cluster.start_api_server()?;
    // A change right after the return is handled.
    ponds
        .patch("p19", &json!({ "spec": { "colour": "red" } }))
        .await?;
    every_pond_has_its_colour(&scenario).await?;
    eventually("all pages report health", LIMIT, async || {
        let page = scenario.page("/katalog").await?;
        let well = page["apiServer"]["reachable"] == true && page["healthy"] == true;
        Ok((well && scenario.http("/readyz").await?.starts_with("HTTP/1.1 200")).then_some(()))
    })
    .await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::until_counted(&scenario).await?;

    ensure_no_storm(&scenario.requests_since(mark)?)?;
    let failed = errors(&scenario).await?;
    ensure!(failed <= LOST, "{failed} passes failed");
    ensure_no_idle_write(&scenario.writes_since(mark)?)?;
    cluster.check()?;
    scenario.check_running()
}

/// Creates the Ponds, and waits until all are ready and counted without a failed pass.
async fn green_ponds_are_ready(scenario: &Scenario) -> Result<()> {
    let ponds = scenario.objects("ponds");
    for number in 0..PONDS {
        waters::pond(
            scenario,
            &format!("p{number:02}"),
            &json!({ "colour": "green" }),
        )
        .await?;
    }
    for number in 0..PONDS {
        ponds.until_ready(&format!("p{number:02}")).await?;
    }
    waters::until_counted(scenario).await?;
    ensure!(errors(scenario).await? < 0.5, "a pass failed before");
    Ok(())
}

/// Waits until each Pond's child and status have the colour that was set last.
async fn every_pond_has_its_colour(scenario: &Scenario) -> Result<()> {
    let (ponds, maps) = (scenario.objects("ponds"), scenario.objects("configmaps"));
    for number in 0..PONDS {
        let colour = match number {
            0..10 => "blue",
            19 => "red",
            _ => "green",
        };
        maps.until_equal(
            &format!("p{number:02}-pond"),
            "/data/colour",
            json!(colour),
            LIMIT,
        )
        .await?;
        let shown = ponds
            .until_equal(
                &format!("p{number:02}"),
                "/status/colour",
                json!(colour),
                LIMIT,
            )
            .await;
        shown?;
    }
    Ok(())
}

/// Checks that no Pond that was not changed, and no child of one, was written.
fn ensure_no_idle_write(writes: &[AuditEvent]) -> Result<()> {
    let idle: Vec<_> = writes
        .iter()
        .filter(|write| (10..19).any(|number| write.name.starts_with(&format!("p{number}"))))
        .cloned()
        .collect();
    ensure!(
        idle.is_empty(),
        "writes without a change:\n{}",
        waters::lines(&idle)
    );
    Ok(())
}
