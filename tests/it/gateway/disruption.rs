//! Conversions that the API server itself requests, for garbage collection, namespace deletion and watches, while the certificate
//! or the leader changes.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use futures::AsyncBufRead;
use serde_json::{Value, json};
use testbed::{eventually, free_port};

use super::{
    Gate,
    alone::{self, Service},
    conversion,
};
use crate::scenario::{LIMIT, Objects, pause};

fn daily(gate: &Gate) -> Value {
    json!({
        "apiVersion": format!("{}/v1", gate.scenario.group), "kind": "Cron",
        "metadata": { "name": "daily" }, "spec": { "schedule": "5 4 * * 1" },
    })
}

/// Waits until conversion works, and creates `daily` in v1.
async fn until_written(gate: &Gate) -> Result<()> {
    conversion::until_converted(gate).await?;
    let old = conversion::crons(gate, "v1");
    eventually("a resource is written in v1", LIMIT, async || {
        Ok(old.create(&daily(gate)).await.ok())
    })
    .await?;
    Ok(())
}

/// A namespace with a custom resource, another one with a child, and watches in both versions.
struct Busy<W> {
    namespace: String,
    watches: [W; 2],
}

async fn busy(gate: &Gate) -> Result<Busy<impl AsyncBufRead + Unpin + use<>>> {
    Ok(Busy {
        namespace: alone::doomed(gate, &daily(gate)).await?,
        watches: [
            alone::watch(gate, "v1").await?,
            alone::watch(gate, "v2").await?,
        ],
    })
}

impl<W: AsyncBufRead + Unpin> Busy<W> {
    /// Deletes the namespace and the owner, and changes a resource. Checks that both watches report the change, and that the child
    /// and the namespace are deleted.
    async fn ensure_it_works(self, gate: &Gate) -> Result<()> {
        let namespaces = Objects::at(&gate.scenario.client, "/api/v1/namespaces");
        namespaces.delete(&self.namespace).await?;
        let (old, new) = (conversion::crons(gate, "v1"), conversion::crons(gate, "v2"));
        new.patch("daily", &json!({ "spec": { "keep": "seen" } }))
            .await?;
        let expected = [("v1", "\"5 4 * * 1\""), ("v2", "\"minute\":\"5\"")];
        for (lines, seen) in self.watches.into_iter().zip(expected) {
            alone::until_seen(gate, lines, seen).await?;
        }
        old.delete("hourly").await?;
        let children = gate.scenario.objects("configmaps");
        children.until_gone("owned", LIMIT).await?;
        namespaces.until_gone(&self.namespace, LIMIT).await
    }
}

/// Reads in both versions until `ended` is true; returns the number of reads.
async fn read_on(gate: &Gate, ended: &AtomicBool) -> Result<u32> {
    let mut count = 0;
    while !ended.load(Ordering::Relaxed) {
        for version in ["v1", "v2"] {
            let read = conversion::crons(gate, version).fetch("daily").await;
            read.with_context(|| format!("after {count} reads, in {version}"))?;
            count += 1;
        }
        pause(Duration::from_millis(20)).await;
    }
    Ok(count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn collection_deletion_and_watches_work_while_the_certificate_is_replaced() -> Result<()> {
    let arguments = &["--webhooks-cert-life=24s"];
    let crds = &[conversion::CRD];
    let gate = Gate::start_with("gateturn", crds, conversion::KATALOG, arguments).await?;
    gate.run(conversion::KATALOG).await?;
    until_written(&gate).await?;
    let secrets = gate.scenario.objects_in(&gate.home(), "secrets");
    let first = secrets.fetch("orkestra-tls").await?["data"].clone();
    let ended = AtomicBool::new(false);
    let work = async {
        let replaced = async {
            // The gateway first stores the next certificate, and serves it later.
            let is_prepared = |secret: &Value| secret["data"] != first;
            secrets
                .until("orkestra-tls", "is prepared", LIMIT, is_prepared)
                .await?;
            let before = busy(&gate).await?;
            before.ensure_it_works(&gate).await?;
            let after = busy(&gate).await?;
            let is_replaced = |secret: &Value| secret["data"]["tls.crt"] != first["tls.crt"];
            secrets
                .until("orkestra-tls", "is replaced", LIMIT, is_replaced)
                .await?;
            after.ensure_it_works(&gate).await
        };
        let replaced = replaced.await;
        ended.store(true, Ordering::Relaxed);
        replaced
    };
    let (done, count) = tokio::join!(work, read_on(&gate, &ended));
    done?;
    let count = count?;
    ensure!(count > 100, "only {count} reads");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn collection_deletion_and_watches_work_while_nobody_leads() -> Result<()> {
    let gate = Gate::prepared("gatelead", &[conversion::CRD], &[conversion::KATALOG]).await?;
    gate.let_elect()?;
    let ports = [free_port()?, free_port()?];
    let _service = Service::start(gate.port, ports.to_vec()).await?;
    let space = gate.scenario.namespace.clone();
    let arguments = ["controller", "--leader-elect-resource-namespace", &space];
    let mut first = alone::start(&gate, ("first", ports[0]), &arguments).await?;
    let mut second = alone::start(&gate, ("second", ports[1]), &arguments).await?;
    gate.until_reviewed().await?;
    gate.run(conversion::KATALOG).await?;
    until_written(&gate).await?;
    let busy = busy(&gate).await?;
    let leader = async || {
        let lease = gate.scenario.objects("leases").fetch("orkestra").await?;
        let holder = lease["spec"]["holderIdentity"].as_str();
        anyhow::Ok(holder.unwrap_or_default().to_owned())
    };
    let before = leader().await?;
    if before.starts_with("first") {
        first.kill()?;
    } else {
        ensure!(before.starts_with("second"), "{before}");
        second.kill()?;
    }
    for version in ["v1", "v2"] {
        // One request may fail, if its connection led to the killed replica.
        eventually("the resource can be read", LIMIT, async || {
            Ok(conversion::crons(&gate, version).fetch("daily").await.ok())
        })
        .await?;
    }
    ensure!(leader().await? == before, "the other replica already leads");
    busy.ensure_it_works(&gate).await?;
    // The other replica becomes the leader once the Lease has expired.
    eventually("the other replica leads", LIMIT, async || {
        let now = leader().await?;
        Ok((!now.is_empty() && now != before).then_some(()))
    })
    .await
}
