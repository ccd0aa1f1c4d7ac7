//! Failure of tasks: each task is ended once. The failure is reported, the rule of the task is applied, and other operators
//! continue.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use orkestra_ground::tasks::{OnTaskEnd, Task};
use serde_json::{Value, json};
use testbed::eventually;

use super::replicas::{Replica, Replicas};
use crate::scenario::{LIMIT, task_count, within};
use crate::waters;

/// The maximum time of a change of the other operator, on a machine that compiles and runs other tests at the same time.
const NEIGHBOUR: Duration = Duration::from_secs(5);

/// The fault that ends the heartbeat of the workers.
const HEARTBEAT: &str = "heartbeat workers";
/// How often the heartbeat is ended in a row: with the delays between restarts it stops for 51 s, and `/livez` fails after 20 s.
const HEARTBEATS: usize = 8;

/// Tasks that run all the time and are restarted in place, with the subject of each.
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

/// Tasks that a function below ends in a special way.
const OTHERS: [Task; 10] = [
    Task::Driver,
    Task::OperatorRestart,
    Task::OperatorStop,
    Task::Release,
    Task::Connection,
    Task::HttpConnection,
    Task::HttpServer,
    Task::Heartbeat,
    Task::ElectorThread,
    Task::Watchdog,
];

/// Tasks that are ended by tests of the feature that they belong to, with the file of the test.
const IN_THEIR_SCENARIO: [(Task, &str); 9] = [
    (Task::Review, "tests/it/gateway/ends.rs"),
    (Task::WebhookCertificate, "tests/it/gateway/ends.rs"),
    (Task::WebhookConfigurations, "tests/it/gateway/ends.rs"),
    (Task::Webhooks, "tests/it/gateway/ends.rs"),
    (Task::Sources, "tests/it/komposer/mod.rs"),
    (Task::Files, "tests/it/files.rs"),
    (Task::Probe, "tests/it/outage.rs"),
    (Task::ExternalCall, "tests/it/external/ended.rs"),
    (Task::OutboundConnection, "tests/it/external/ended.rs"),
];

/// Tasks that no integration test ends, with the reason. They start like the others, and the unit tests of
/// `crates/ground/src/tasks` cover their failure.
const NOT_ENDED: [(Task, &str); 10] = [
    (
        Task::WebhookWithdrawal,
        "runs once after a process starts to lead, and the next process that leads repeats it",
    ),
    (
        Task::OperatorUnderTest,
        "belongs to `ork e2e`, which fails with it",
    ),
    (
        Task::ForwardedRequest,
        "belongs to one request of `ork e2e`, which fails with it",
    ),
    (
        Task::Compilation,
        "lives for a moment; without its result the revision is refused, and the last one stays",
    ),
    (
        Task::SourceFetch,
        "its error is returned to the task of the sources, as that of any failed fetch",
    ),
    (
        Task::ExternalRoots,
        "reads the machine's certificates for a moment; the call that waits for them fails",
    ),
    (
        Task::Notices,
        "prints the actions of `ork run`; nothing else depends on it",
    ),
    (
        Task::ConnectionReturn,
        "lives for a moment after a response; without it the next request opens a connection",
    ),
    (
        Task::FlowPause,
        "runs only during a pause that an API server has requested",
    ),
    (
        Task::HttpCertificate,
        "reads the files for a moment; without it the previous certificate stays until the next read",
    ),
];

async fn count(replica: &Replica, metric: &str, task: Task) -> Result<u64> {
    let answer = replica.ask("/metrics").await?;
    task_count(&answer, metric, task)
}

/// Ends a task, and waits until the failure is counted and logged, and the restart is counted if the task is restarted.
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
    let line = line.with_context(|| format!("no log line names {task:?}"))?;
    ensure!(line.contains("a fault on purpose"), "{line}");
    Ok(())
}

/// Checks that the lake's operator handles a change at once, regardless of the state of the pond's operator.
async fn ensure_neighbour(replicas: &Replicas, round: &mut u32) -> Result<()> {
    let scenario = &replicas.scenario;
    let (lakes, maps) = (scenario.objects("lakes"), scenario.objects("configmaps"));
    let mut count = *round;
    let took = within("a change of the lake", NEIGHBOUR, async || {
        count += 1;
        let colour = format!("c{count}");
        let started = Instant::now();
        let change = json!({ "spec": { "colour": colour } });
        lakes.patch("deep", &change).await?;
        maps.until_equal("stones", "/data/colour", json!(colour), LIMIT)
            .await?;
        Ok(started.elapsed())
    })
    .await;
    *round = count;
    took.map(drop)
}

/// Checks that the pond's operator handles a change.
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
    let named: BTreeSet<_> = (KEPT.iter().chain(&IN_THEIR_SCENARIO).chain(&NOT_ENDED))
        .map(|(task, _)| *task)
        .chain(OTHERS)
        .collect();
    assert_eq!(named, Task::ALL.iter().copied().collect());
    // A test file names each task that it ends.
    for (task, file) in IN_THEIR_SCENARIO {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(
            text.contains(&format!("Task::{task:?}")),
            "{task:?}, {file}"
        );
    }
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

    // The driver of an operator fails repeatedly, and its restart fails, too.
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
    // An operator that fails to start is not mistaken for one that waits for its predecessor to stop.
    first
        .strike(&["operator-start pond", "driver pond"])
        .await?;
    the_operator_fails_and_runs_again(&replicas, &mut round).await?;

    an_entry_goes_although_its_tasks_end(&replicas, &first, &mut round).await?;

    a_process_without_its_elector_ends(&replicas, &mut round).await?;
    ensure!(first.ask("/livez").await?.starts_with("HTTP/1.1 200"));
    ensure!(first.process.status()?.is_none() && first.process.pid() == pid);
    the_process_ends_in_order_without_its_http_server(&mut first).await
}

/// Waits until `/livez` fails because the heartbeat is ended repeatedly, and until it succeeds because the heartbeat runs again.
async fn liveness_fails_and_recovers(first: &Replica) -> Result<()> {
    eventually("/livez reports the failure", LIMIT, async || {
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

/// Ends each of the tasks that are restarted in place, and checks that both operators continue.
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

/// Waits until the pond's operator is reported as failed and runs again, and checks that the lake's operator continues meanwhile.
async fn the_operator_fails_and_runs_again(replicas: &Replicas, round: &mut u32) -> Result<()> {
    until_reported(replicas).await?;
    ensure_neighbour(replicas, round).await?;
    replicas
        .scenario
        .katalog_is("waters", "True", "Running")
        .await?;
    ensure_pond(replicas, *round).await
}

/// Removes an entry while the tasks that stop its operator and release its resources are ended. Checks that the resources are
/// released, and that the entry can be added again.
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

/// Starts a second process whose threads fail at once. Checks that it exits and logs the reason, and that the leader continues.
async fn a_process_without_its_elector_ends(replicas: &Replicas, round: &mut u32) -> Result<()> {
    let threads = [Task::Watchdog.name(), Task::ElectorThread.name()];
    let mut second = replicas.spawn("second", &[], &threads).await?;
    let status = second.process.wait(LIMIT)?;
    let log = second.log();
    ensure!(!status.success(), "{status}");
    ensure!(log.contains("task elector-thread ended"), "{log}");
    for thread in threads {
        let is_it = |line: &str| line.contains("task failed") && line.contains(thread);
        ensure!(
            log.lines().any(is_it),
            "the log does not name {thread}: {log}"
        );
    }
    ensure_neighbour(replicas, round).await
}

/// Ends the HTTP server, without which the process cannot be observed. Checks that the process shuts down and releases the Lease.
async fn the_process_ends_in_order_without_its_http_server(first: &mut Replica) -> Result<()> {
    first.strike(&["http-server"]).await?;
    let status = first.process.wait(super::END)?;
    ensure!(!status.success(), "{status}");
    let log = first.log();
    ensure!(log.contains("task http-server ended"), "{log}");
    ensure!(log.contains("released the lease"), "{log}");
    Ok(())
}
