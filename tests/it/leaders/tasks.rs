//! Every task is ended once: it is reported, what was decided follows, and the neighbours go on.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use orkestra_ground::tasks::{OnTaskEnd, Task};
use serde_json::{Value, json};
use testbed::eventually;

use super::replicas::{Replica, Replicas};
use crate::scenario::LIMIT;
use crate::waters;

/// How long a neighbour's change may take, on a machine that compiles and runs other tests meanwhile.
const NEIGHBOUR: Duration = Duration::from_secs(5);

/// The fault that ends the heartbeat of the workers.
const HEARTBEAT: &str = "heartbeat workers";
/// How often the heartbeat is ended in a row: with the delays between restarts it is silent for 51 s, and `/livez` fails after 20.
const HEARTBEATS: usize = 8;

/// Tasks that run all the time and are restarted in place, with what they are of.
const KEPT: [(Task, &str); 16] = [
    (Task::Publisher, "waters/pond"),
    (Task::Waiter, "waters/pond"),
    (Task::Autoscaler, "waters/pond"),
    (Task::Worker, "waters/pond"),
    (Task::Watch, "ConfigMap"),
    (Task::Watch, "CustomResourceDefinition"),
    (Task::Watch, "Pond"),
    (Task::Katalog, "waters"),
    (Task::Feed, ""),
    (Task::Motifs, ""),
    (Task::Duty, ""),
    (Task::Claims, ""),
    (Task::Elector, ""),
    (Task::LeaseWatcher, ""),
    (Task::EventSender, ""),
    (Task::Signals, ""),
];

/// Tasks that are ended in a way of their own below.
const OTHERS: [Task; 8] = [
    Task::Driver,
    Task::OperatorRestart,
    Task::OperatorStop,
    Task::Release,
    Task::Connection,
    Task::HttpConnection,
    Task::HttpServer,
    Task::Heartbeat,
];

/// Tasks of the webhooks, which end in `tests/it/gateway/ends.rs`.
const OF_WEBHOOKS: [Task; 3] = [
    Task::Review,
    Task::WebhookCertificate,
    Task::WebhookConfigurations,
];

/// Tasks that do not run in this scenario, or are no tasks of tokio; how they start is that of the others, and the unit tests of
/// `crates/ground/src/tasks` show what follows.
const ELSEWHERE: [Task; 18] = [
    Task::OperatorUnderTest,
    Task::Sources,
    Task::SourceFetch,
    Task::SourceConnection,
    Task::Webhooks,
    Task::Plans,
    Task::ForwardedRequest,
    Task::ExternalCall,
    Task::ExternalConnection,
    Task::ExternalRoots,
    Task::Files,
    Task::Notices,
    Task::Probe,
    Task::ConnectionReturn,
    Task::FlowPause,
    Task::HttpCertificate,
    Task::ElectorThread,
    Task::Watchdog,
];

async fn count(replica: &Replica, metric: &str, task: Task) -> Result<u64> {
    let answer = replica.ask("/metrics").await?;
    let series = format!("{metric}{{task=\"{}\"}} ", task.name());
    let value = answer.lines().find_map(|line| line.strip_prefix(&series));
    Ok(value.unwrap_or("0").parse()?)
}

/// Ends a task and waits until that is counted and logged, and the restart too where there is one.
async fn end(replica: &Replica, task: Task, of: &str) -> Result<()> {
    let failures = count(replica, "orkestra_task_failures_total", task).await?;
    let restarts = count(replica, "orkestra_task_restarts_total", task).await?;
    replica.strike(&[&format!("{} {of}", task.name())]).await?;
    eventually("the failure is counted", LIMIT, async || {
        let now = count(replica, "orkestra_task_failures_total", task).await?;
        ensure!(now > failures, "{task:?} {of}: {now}");
        if task.at_end() == OnTaskEnd::Restart {
            let now = count(replica, "orkestra_task_restarts_total", task).await?;
            ensure!(now > restarts, "{task:?} {of}: {now} restarts");
        }
        Ok(Some(()))
    })
    .await?;
    let log = replica.log();
    let is_it = |line: &&str| line.contains("task failed") && line.contains(task.name());
    let line = log.lines().find(is_it);
    let line = line.with_context(|| format!("nothing is logged of {task:?}"))?;
    ensure!(line.contains("a fault on purpose"), "{line}");
    Ok(())
}

/// A change of the lake is followed at once, whatever happens to the pond's operator.
async fn ensure_neighbour(replicas: &Replicas, round: &mut u32) -> Result<()> {
    *round += 1;
    let scenario = &replicas.scenario;
    let colour = format!("c{round}");
    let started = Instant::now();
    let change = json!({ "spec": { "colour": colour } });
    scenario.objects("lakes").patch("deep", &change).await?;
    let maps = scenario.objects("configmaps");
    maps.until_equal("stones", "/data/colour", json!(colour), LIMIT)
        .await?;
    let took = started.elapsed();
    ensure!(took < NEIGHBOUR, "the neighbour took {took:?}");
    Ok(())
}

/// The pond's operator works.
async fn ensure_pond(replicas: &Replicas, round: u32) -> Result<()> {
    let colour = format!("p{round}");
    replicas.paint(&colour).await?;
    replicas.until_painted(&colour).await
}

/// Waits until the pond's operator is reported as failed, and the lake's is not.
async fn until_reported(replicas: &Replicas) -> Result<()> {
    let scenario = &replicas.scenario;
    let katalog = scenario
        .katalog_is("waters", "False", "OperatorFailed")
        .await?;
    let [pond, lake] = ["pond", "lake"].map(|name| waters::row(&katalog, name).cloned());
    let pond = pond.context("no row of the pond")?;
    ensure!(pond["reason"] == "OperatorFailed", "{pond}");
    let message = waters::text(&pond, "/message");
    ensure!(message.contains("a fault on purpose"), "{message}");
    ensure!(lake.context("no row of the lake")?["state"] == "Running");
    Ok(())
}

#[test]
fn every_task_is_ended_by_a_test_or_says_why_not() {
    let kept = KEPT.iter().map(|(task, _)| *task);
    let named: BTreeSet<_> = kept
        .chain(OTHERS)
        .chain(OF_WEBHOOKS)
        .chain(ELSEWHERE)
        .collect();
    assert_eq!(named, Task::ALL.iter().copied().collect());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_task_that_ends_is_reported_and_follows_its_rule_while_the_neighbours_continue()
-> Result<()> {
    let replicas = Replicas::new("tasks").await?;
    let mut first = replicas.launch("first", &[]).await?;
    replicas.let_elect(&first)?;
    first.until_leads(true).await?;
    let scenario = &replicas.scenario;
    let bed = json!({ "bed": "stones", "colour": "blue" });
    waters::lake(scenario, "deep", &bed).await?;
    waters::pond(scenario, "north", &json!({ "colour": "green" })).await?;
    scenario.objects("ponds").until_ready("north").await?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let (pid, mut round) = (first.process.pid(), 0);
    first.strike(&[HEARTBEAT; HEARTBEATS]).await?;
    tokio::try_join!(
        liveness_fails_and_recovers(&first),
        tasks_are_restarted_in_place(&replicas, &first, &mut round),
    )?;
    end(&first, Task::Heartbeat, "leader election").await?;

    // An operator whose driver fails again and again, and whose restart fails too.
    first
        .strike(&[
            "operator-restart pond",
            "driver pond",
            "driver pond",
            "driver pond",
        ])
        .await?;
    the_operator_fails_and_runs_again(&replicas, &mut round).await?;
    for (task, least) in [(Task::Driver, 3), (Task::OperatorRestart, 1)] {
        let failures = count(&first, "orkestra_task_failures_total", task).await?;
        ensure!(failures >= least, "{task:?}: {failures}");
    }
    // An operator that does not even start is not one whose predecessor has not stopped.
    first
        .strike(&["operator-start pond", "driver pond"])
        .await?;
    the_operator_fails_and_runs_again(&replicas, &mut round).await?;

    an_entry_goes_although_its_tasks_end(&replicas, &first, &mut round).await?;

    ensure!(first.ask("/livez").await?.starts_with("HTTP/1.1 200"));
    ensure!(first.process.status()?.is_none() && first.process.pid() == pid);
    the_process_ends_in_order_without_its_http_server(&mut first).await
}

/// Waits until `/livez` reports the heartbeat, which is ended again and again, and until it succeeds once the heartbeat runs.
async fn liveness_fails_and_recovers(first: &Replica) -> Result<()> {
    eventually("/livez reports the silence", LIMIT, async || {
        let answer = first.ask("/livez").await?;
        ensure!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        ensure!(answer.contains("made no progress for"), "{answer}");
        Ok(Some(()))
    })
    .await?;
    eventually("/livez succeeds again", LIMIT, async || {
        let answer = first.ask("/livez").await?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        Ok(Some(()))
    })
    .await?;
    let failures = count(first, "orkestra_task_failures_total", Task::Heartbeat).await?;
    ensure!(usize::try_from(failures)? == HEARTBEATS, "{failures}");
    Ok(())
}

/// Ends each of the tasks that are restarted in place, and checks that both operators go on.
async fn tasks_are_restarted_in_place(
    replicas: &Replicas,
    first: &Replica,
    round: &mut u32,
) -> Result<()> {
    for (task, of) in KEPT {
        end(first, task, of)
            .await
            .with_context(|| format!("{task:?} {of}"))?;
        ensure_neighbour(replicas, round)
            .await
            .with_context(|| format!("{task:?} {of}"))?;
        ensure_pond(replicas, *round)
            .await
            .with_context(|| format!("{task:?} {of}"))?;
    }
    for task in [Task::Connection, Task::HttpConnection] {
        end(first, task, "")
            .await
            .with_context(|| format!("{task:?}"))?;
        ensure_neighbour(replicas, round).await?;
    }
    Ok(())
}

/// Waits until the pond's operator is reported as failed and runs again; the lake's goes on meanwhile.
async fn the_operator_fails_and_runs_again(replicas: &Replicas, round: &mut u32) -> Result<()> {
    until_reported(replicas).await?;
    ensure_neighbour(replicas, round).await?;
    replicas
        .scenario
        .katalog_is("waters", "True", "Running")
        .await?;
    ensure_pond(replicas, *round).await
}

/// Removes an entry, and checks that neither the end of its stop nor that of its release keeps the kind.
async fn an_entry_goes_although_its_tasks_end(
    replicas: &Replicas,
    first: &Replica,
    round: &mut u32,
) -> Result<()> {
    let scenario = &replicas.scenario;
    first
        .strike(&["operator-stop pond", "release Pond"])
        .await?;
    let katalogs = scenario.objects("katalogs");
    let declared = katalogs.fetch("waters").await?["spec"]["crds"]["pond"].clone();
    let without = json!({ "spec": { "crds": { "pond": null } } });
    katalogs.patch("waters", &without).await?;
    let ponds = scenario.objects("ponds");
    let released = |pond: &Value| pond["metadata"]["finalizers"].is_null();
    ponds.until("north", "is released", LIMIT, released).await?;
    for task in [Task::OperatorStop, Task::Release] {
        let failures = count(first, "orkestra_task_failures_total", task).await?;
        ensure!(failures >= 1, "{task:?}: {failures}");
    }
    ensure_neighbour(replicas, round).await?;
    let again = json!({ "spec": { "crds": { "pond": declared } } });
    katalogs.patch("waters", &again).await?;
    ensure_pond(replicas, *round).await?;
    Ok(())
}

/// Ends the HTTP server, without which the process cannot be observed, and checks that it ends in order and releases the lease.
async fn the_process_ends_in_order_without_its_http_server(first: &mut Replica) -> Result<()> {
    first.strike(&["http-server"]).await?;
    let status = first.process.wait(super::END)?;
    ensure!(!status.success(), "{status}");
    let log = first.log();
    ensure!(log.contains("task http-server ended"), "{log}");
    ensure!(log.contains("released the lease"), "{log}");
    Ok(())
}
