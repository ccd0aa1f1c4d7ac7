//! Leader election: one process reconciles, the others follow and take over, and a process that has lost the Lease writes nothing.

mod proxy;
mod replicas;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{AuditEvent, ControlPlane, Signal, eventually};

use self::proxy::Proxy;
use self::replicas::{LEASE, Replicas};
use crate::scenario::{LIMIT, Objects, Scenario, input, pause};
use crate::waters;

/// The time within which a process must shut down.
const END: Duration = Duration::from_secs(30);

fn holder(lease: &Value) -> &str {
    waters::text(lease, "/spec/holderIdentity")
}

/// Waits until the process that was started with a name holds the Lease.
async fn until_held(replicas: &Replicas, name: &str) -> Result<Value> {
    let prefix = format!("{name}_");
    let leases = replicas.leases();
    leases
        .until(LEASE, &format!("is held by {name}"), LIMIT, |lease| {
            holder(lease).starts_with(&prefix)
        })
        .await
}

fn transitions(lease: &Value) -> i64 {
    lease["spec"]["leaseTransitions"]
        .as_i64()
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_follower_has_full_caches_says_who_leads_and_writes_nothing() -> Result<()> {
    let mark = Scenario::mark()?;
    let (replicas, first, second) = Replicas::two("follows").await?;
    let lease = until_held(&replicas, "first").await?;
    let healthy = |page: &Value| {
        let crds = page["crds"].as_array().cloned().unwrap_or_default();
        crds.len() == 2
            && crds.iter().all(|one| {
                one["state"] == "healthy" && one["resourceCount"] == 1 && one["readyCount"] == 1
            })
    };
    let reported = eventually(
        "the follower reports the leader's state",
        LIMIT,
        async || {
            let page = second.page("/katalog").await?;
            ensure!(healthy(&page), "{page}");
            Ok(Some(page))
        },
    )
    .await?;
    assert_eq!(reported["isKonductor"], false);
    assert_eq!(reported["leader"], holder(&lease));
    assert_ne!(reported["identity"], reported["leader"]);
    assert_eq!(reported["katalogs"][0]["ready"], true, "{reported}");
    assert_eq!(reported["OrkReady"], true);
    let health = second.page("/katalog/pond/health").await?;
    assert_eq!(
        (&health["isKonductor"], &health["totalReconciles"]),
        (&json!(false), &Value::Null)
    );
    let leads = first.page("/katalog").await?;
    assert_eq!(
        (&leads["isKonductor"], &leads["leader"]),
        (&json!(true), &reported["leader"])
    );
    for (replica, expected) in [(&first, "1"), (&second, "0")] {
        assert_eq!(replica.metric("orkestra_leader", "").await?, expected);
    }
    // Shared records are counted for the operator that requested them first, which may differ between processes: compare totals.
    // Other tests create and delete objects of kinds that both processes watch in the whole cluster, so readings may differ.
    eventually("both have the same number of records", LIMIT, async || {
        let records = second.total("orkestra_cache_records").await?;
        let leader = first.total("orkestra_cache_records").await?;
        ensure!(records > 0 && records == leader, "{records} and {leader}");
        Ok(Some(()))
    })
    .await?;
    let writes = second.requests(mark)?;
    let writes: Vec<_> = writes.into_iter().filter(AuditEvent::is_write).collect();
    ensure!(writes.is_empty(), "{}", waters::lines(&writes));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_ends_hands_over_after_its_last_write_and_the_next_change_is_handled()
-> Result<()> {
    let (replicas, mut first, second) = Replicas::two("handover").await?;
    let before = until_held(&replicas, "first").await?;
    let mark = Scenario::mark()?;
    first.process.signal(Signal::Term)?;
    // The first process would handle a change that reaches its operator before that has stopped.
    eventually("the first stopped the operator", LIMIT, async || {
        let log = first.log();
        let mut lines = log.lines();
        let stopped = lines.any(|line| line.contains("operator stopped") && line.contains("pond"));
        Ok(stopped.then_some(()))
    })
    .await?;
    replicas.paint("amber").await?;
    replicas.until_painted("amber").await?;
    let after = until_held(&replicas, "second").await?;
    assert_eq!(transitions(&after), transitions(&before) + 1);
    ensure!(first.process.wait(END)?.success());
    ensure!(first.log().contains("released the lease"));

    let released = *first.terms(mark)?.last().context("not released")?;
    let taken = *second.terms(mark)?.first().context("not acquired")?;
    let last = first.writes(mark)?.last().map(|one| one.timestamp);
    ensure!(
        last.is_none_or(|last| last < released),
        "the first process wrote after it released the Lease"
    );
    let writes = second.writes(mark)?;
    ensure!(!writes.is_empty(), "the second process wrote nothing");
    ensure!(
        writes.iter().all(|one| one.timestamp > taken),
        "written before the Lease was acquired at {taken}:\n{}",
        waters::lines(&writes)
    );
    let lists: Vec<_> = (second.requests(mark)?.into_iter())
        .filter(|one| one.verb == "list" && one.resource != "controllerrevisions")
        .collect();
    ensure!(
        lists.is_empty(),
        "the caches of the second process were not filled:\n{}",
        waters::lines(&lists)
    );
    println!(
        "from the release to the acquisition: {:?}, to the first write: {:?}",
        taken.duration_since(released),
        writes[0].timestamp.duration_since(released)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_dies_is_followed_when_its_lease_has_run_out() -> Result<()> {
    let (replicas, mut first, second) = Replicas::two("dies").await?;
    let before = until_held(&replicas, "first").await?;
    let mark = Scenario::mark()?;
    let killed = jiff::Timestamp::now();
    first.process.kill()?;
    replicas.paint("amber").await?;
    replicas.until_painted("amber").await?;
    let after = until_held(&replicas, "second").await?;
    assert_eq!(transitions(&after), transitions(&before) + 1);
    let taken = *second.terms(mark)?.first().context("not acquired")?;
    let writes = second.writes(mark)?;
    let write = writes.first().context("nothing was written")?;
    println!(
        "from the kill to the acquisition: {:?}, to the first write: {:?}",
        taken.duration_since(killed),
        write.timestamp.duration_since(killed)
    );
    second.until_ready().await
}

/// Returns true if the client aborted a request before the body was complete: such a request changes nothing. Source: apiserver,
/// which answers 400 if a body ends early, 504 or 499 to a client that has disconnected, and 500 with an error of Go if the stream
/// or the connection ended while the body was read (`limitedReadBody`; `StreamError` and `errClientDisconnected` of `net/http`).
fn is_cut_off(request: &AuditEvent) -> bool {
    let AuditEvent { code, message, .. } = request;
    matches!(code, 400 | 499 | 504)
        || (*code == 500
            && (message.starts_with("stream error: ") || message == "client disconnected"))
}

/// Changes the colours of ponds until `ended` is true; returns the number of changes.
async fn churn(ponds: Objects, ended: Arc<AtomicBool>) -> Result<u64> {
    let mut round = 0;
    while !ended.load(Ordering::SeqCst) {
        round += 1;
        let name = format!("p{}", round % 8);
        let change = json!({ "spec": { "colour": format!("c{round}") } });
        ponds.patch(&name, &change).await?;
        pause(Duration::from_millis(20)).await;
    }
    Ok(round)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stood_still_beyond_its_lease_writes_nothing_when_it_wakes() -> Result<()> {
    let (replicas, mut first, mut second) = Replicas::two("stands").await?;
    let scenario = &replicas.scenario;
    let ponds = scenario.objects("ponds");
    for one in 0..8 {
        waters::pond(scenario, &format!("p{one}"), &json!({ "colour": "c0" })).await?;
    }
    let ended = Arc::new(AtomicBool::new(false));
    let churning = tokio::spawn(churn(ponds.clone(), Arc::clone(&ended)));
    let mark = Scenario::mark()?;
    eventually("the leader has written", LIMIT, async || {
        Ok((first.writes(mark)?.len() > 20).then_some(()))
    })
    .await?;
    first.process.signal(Signal::Stop)?;
    until_held(&replicas, "second").await?;
    eventually("the other process has written", LIMIT, async || {
        Ok((second.writes(mark)?.len() > 20).then_some(()))
    })
    .await?;
    first.process.signal(Signal::Cont)?;
    let page = first.until_leads(false).await?;
    eventually("the first process reports the leader", LIMIT, async || {
        let page = first.page("/katalog").await?;
        let leader = page["leader"].as_str().unwrap_or_default();
        Ok(leader.starts_with("second_").then_some(()))
    })
    .await?;
    // Requests that the paused process had started have ended.
    first.until_idle().await?;
    ended.store(true, Ordering::SeqCst);
    churning.await??;
    let taken = *second.terms(mark)?.first().context("not acquired")?;
    let late: Vec<_> = (first.writes(mark)?.into_iter())
        .filter(|one| one.timestamp > taken && !is_cut_off(one))
        .collect();
    ensure!(
        late.is_empty(),
        "{page}: the first process wrote after {taken}:\n{}",
        waters::lines(&late)
    );
    ensure!(first.log().contains("lost the lease"));

    // The same process, with filled caches, takes over again.
    second.process.signal(Signal::Term)?;
    until_held(&replicas, "first").await?;
    replicas.paint("amber").await?;
    replicas.until_painted("amber").await?;
    let maps = scenario.objects("configmaps");
    for one in 0..8 {
        let pond = ponds.fetch(&format!("p{one}")).await?;
        let colour = pond["spec"]["colour"].clone();
        maps.until_equal(&format!("p{one}-pond"), "/data/colour", colour, LIMIT)
            .await?;
    }
    ensure!(first.process.status()?.is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_lease_is_stolen_rests_until_it_is_free() -> Result<()> {
    let replicas = Replicas::new("stolen").await?;
    let first = replicas.launch("first", &[]).await?;
    replicas.let_elect(&first)?;
    first.until_leads(true).await?;
    let scenario = &replicas.scenario;
    waters::lake(scenario, "deep", &json!({ "bed": "stones" })).await?;
    waters::pond(scenario, "north", &json!({ "colour": "green" })).await?;
    replicas.until_painted("green").await?;
    scenario.katalog_is("waters", "True", "Running").await?;

    let mark = Scenario::mark()?;
    let leases = replicas.leases();
    let theft = json!({ "spec": { "holderIdentity": "thief", "leaseDurationSeconds": 6 } });
    leases.patch(LEASE, &theft).await?;
    let page = first.until_leads(false).await?;
    assert_eq!(page["leader"], "thief");
    let noticed = Scenario::mark()?;
    replicas.paint("amber").await?;
    replicas.until_painted("amber").await?;
    let lease = until_held(&replicas, "first").await?;
    ensure!(transitions(&lease) > 0, "{lease}");
    let taken = *first.terms(mark)?.last().context("not acquired")?;
    let first_term = first.terms(noticed)?;
    let taken = first_term.first().copied().unwrap_or(taken);
    // Events wait for other requests, so an Event about a reconcile pass before the theft may be written after it.
    let early: Vec<_> = (first.writes(noticed)?.into_iter())
        .filter(|one| one.timestamp < taken && one.resource != "events")
        .collect();
    ensure!(early.is_empty(), "{}", waters::lines(&early));

    // A deleted Lease is created again.
    leases.delete(LEASE).await?;
    until_held(&replicas, "first").await?;
    replicas.paint("blue").await?;
    replicas.until_painted("blue").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_permissions_on_leases_a_process_is_not_ready_and_names_the_permission()
-> Result<()> {
    let replicas = Replicas::new("unelected").await?;
    let mark = Scenario::mark()?;
    let first = replicas.launch("first", &[]).await?;
    eventually("the missing permission is reported", LIMIT, async || {
        let answer = first.readiness().await?;
        ensure!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        Ok(answer.contains("cannot watch Lease").then_some(()))
    })
    .await?;
    let page = first.page("/katalog").await?;
    ensure!(
        page["electionProblem"]
            .as_str()
            .is_some_and(|text| text.contains("ork generate rbac")),
        "{page}"
    );
    ensure!(
        first.log().contains("cannot watch the Lease"),
        "{}",
        first.log()
    );
    let writes = first.writes(mark)?;
    ensure!(writes.is_empty(), "{}", waters::lines(&writes));
    replicas.let_elect(&first)?;
    first.until_leads(true).await?;
    first.until_ready().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_is_bounded_and_names_what_has_not_ended() -> Result<()> {
    let mut scenario = Scenario::new("bounded").await?;
    let katalog = input("depends/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.apply(&katalog)?;
    let cluster = ControlPlane::shared();
    let proxy = Proxy::start(&cluster.url()).await?;
    let config = scenario
        .identity
        .kubeconfig()
        .replace(&cluster.url(), &proxy.url);
    let config = scenario.file("proxied.kubeconfig", &config)?;
    scenario.arguments = vec!["--shutdown-timeout".to_owned(), "3s".to_owned()];
    scenario.environment = vec![("KUBECONFIG", config.display().to_string())];
    scenario.start().await?;
    waters::lake(&scenario, "deep", &json!({ "bed": "stones" })).await?;
    scenario.objects("lakes").until_ready("deep").await?;
    scenario.katalog_is("waters", "True", "Running").await?;

    // Watches still deliver events; requests get no response.
    proxy.hold_requests();
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    eventually("a write is in progress", LIMIT, async || {
        let active = scenario.metric("orkestra_workers_active", &[("crd", "pond")]);
        Ok((active.await? > 0.0).then_some(()))
    })
    .await?;
    scenario.terminate()?;
    let log = scenario.log();
    let line = log
        .lines()
        .find(|line| line.contains("did not stop in time"));
    let line = line.with_context(|| format!("no task is named in\n{log}"))?;
    let name = format!("{}/north", scenario.namespace);
    ensure!(line.contains("pond") && line.contains(&name), "{line}");
    Ok(())
}
