//! Requests to the API server: all watches share few connections, children are written in waves, and the metrics are correct.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario, input};
use crate::waters;

/// Returns the number of established connections of the process to that port. Source: proc(5), /proc/net/tcp.
fn connections(pid: u32, port: u16) -> Result<usize> {
    let folder = Path::new("/proc").join(pid.to_string());
    let mut sockets = HashSet::new();
    for entry in std::fs::read_dir(folder.join("fd"))? {
        // The descriptor was closed meanwhile.
        let Ok(target) = std::fs::read_link(entry?.path()) else {
            continue;
        };
        let target = target.to_string_lossy().into_owned();
        let inode = target.strip_prefix("socket:[").map(str::to_owned);
        sockets.extend(inode.and_then(|inode| Some(inode.strip_suffix(']')?.to_owned())));
    }
    let mut count = 0;
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(folder.join("net").join(table))?;
        for line in text.lines().skip(1) {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let (far, state, inode) = (columns[2], columns[3], columns[9]);
            let is_there = far.ends_with(&format!(":{port:04X}")) && state == "01";
            count += usize::from(is_there && sockets.contains(inode));
        }
    }
    Ok(count)
}

/// Starts a controller with eleven kinds of children, and a ready Pond.
async fn running(pond: &str) -> Result<Scenario> {
    let katalog = input("quiet/katalog.yaml")?;
    let mut scenario = Scenario::new("flow").await?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    let spec = json!({ "colour": "green", "image": "registry.example/pond:3", "replicas": 1, "port": 8080 });
    waters::pond(&scenario, pond, &spec).await?;
    scenario.objects("ponds").until_ready(pond).await?;
    Ok(scenario)
}

#[tokio::test]
async fn watches_of_a_dozen_kinds_share_a_connection() -> Result<()> {
    let scenario = running("shared").await?;
    let server = scenario.identity.config()?.cluster_url;
    let port = server.port_u16().context("a server without a port")?;
    let pid = scenario.pid().context("no controller runs")?;
    let count = connections(pid, port)?;
    // One for watches and one for requests; a second of each for those that were sent while the first was being established.
    ensure!((2..=4).contains(&count), "{count} connections");
    Ok(())
}

/// Returns the wave in which children of a kind are written, by the kind's plural.
fn wave(resource: &str) -> usize {
    match resource {
        "serviceaccounts" => 0,
        "secrets" | "configmaps" | "services" | "networkpolicies" | "persistentvolumeclaims" => 1,
        _ => 2,
    }
}

#[tokio::test]
async fn what_pods_use_is_there_before_what_makes_pods() -> Result<()> {
    let mark = Scenario::mark()?;
    let scenario = running("ordered").await?;
    let mut writes = scenario.writes_since(mark)?;
    // Leave out the Pond itself, its Katalog, and the revisions and Events about them.
    writes.retain(|write| {
        let resource = write.resource.as_str();
        let ours = ["ponds", "katalogs", "controllerrevisions", "events"];
        write.namespace == scenario.namespace && !ours.contains(&resource)
    });
    // Sort by the time at which the API server received them.
    writes.sort_by_key(|write| write.timestamp);
    let waves: Vec<usize> = writes.iter().map(|write| wave(&write.resource)).collect();
    ensure!(
        waves.is_sorted() && waves.contains(&0) && waves.contains(&1) && waves.contains(&2),
        "{}",
        waters::lines(&writes)
    );
    Ok(())
}

#[tokio::test]
async fn passes_and_requests_are_reported_as_they_are() -> Result<()> {
    let scenario = running("told").await?;
    eventually("each pass is counted with a cause", LIMIT, async || {
        let labels = [("crd", "pond")];
        let reported = scenario.metric("orkestra_passes_total", &labels).await?;
        let passes = scenario.passes("pond").await?;
        // The counts are floats, so they are compared with a tolerance.
        Ok((passes > 0.5 && (reported - passes).abs() < 0.5).then_some(()))
    })
    .await?;
    let wrote = [("crd", "pond"), ("cause", "changed"), ("wrote", "yes")];
    ensure!(scenario.metric("orkestra_passes_total", &wrote).await? > 0.5);
    eventually("no request is in flight", LIMIT, async || {
        let name = "orkestra_requests_in_flight";
        Ok((scenario.metric(name, &[]).await? < 0.5).then_some(()))
    })
    .await?;
    ensure!(scenario.metric("orkestra_requests_limit", &[]).await? > 3.5);
    let waited = scenario.metric("orkestra_requests_wait_seconds_count", &[]);
    // At least one request for each of the eleven children.
    ensure!(waited.await? > 10.5);
    let delayed = scenario.series("orkestra_queue_oldest_seconds", &[("crd", "pond")]);
    ensure!(delayed.await?.len() == 1);
    Ok(())
}
