//! 200 custom resources, half of which change all the time while Orkestra is upgraded and its controller is replaced.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use testbed::{Mark, Signal};
use tokio::task::JoinHandle;

use super::site::{ACCOUNT, Site};
use crate::scenario::{LIMIT, Objects, input, is_ready};
use crate::waters;

const GROUP: &str = "waters.example.org";
const CHANGED: usize = 100;
const STILL: usize = 99;
/// The resource whose child another client changes.
const DRIFTED: &str = "drifted";
/// Returns the time within which a new leader corrects drift after it has acquired the Lease, if `HANDOVER_SECONDS` sets it, as
/// `make helm-install` does. In the suite other tests run at the same time, and it is enough that drift is corrected: drift that the
/// new leader missed would stay until the next resync, later than the limit of the wait.
fn limit() -> Result<Option<SignedDuration>> {
    let set = std::env::var("HANDOVER_SECONDS").ok();
    set.map(|text| Ok(SignedDuration::from_secs(text.parse()?)))
        .transpose()
}

const KATALOG: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "waters", "namespace": "default" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "waters.example.org", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "operatorBox": { "onReconcile": { "configMaps": [
            { "name": "{{ .metadata.name }}", "data": { "depth": "{{ .spec.depth }}" } }
        ] } }
    } } }
}"#;

/// Custom resources and their children, and the task that changes them.
pub(crate) struct Churn {
    ponds: Objects,
    maps: Objects,
    still: Vec<String>,
    mark: Mark,
    is_over: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    writer: JoinHandle<Result<u64>>,
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{prefix}-{number}"))
        .collect()
}

/// Changes every resource in rounds until `is_over` is true. Returns the number of complete rounds, which is the last depth.
async fn change(ponds: Objects, is_over: Arc<AtomicBool>, rounds: Arc<AtomicU64>) -> Result<u64> {
    let names = names("changed", CHANGED);
    loop {
        let depth = rounds.load(Ordering::SeqCst) + 1;
        for name in &names {
            let patch = json!({ "spec": { "depth": depth } });
            ponds.patch(name, &patch).await?;
        }
        rounds.store(depth, Ordering::SeqCst);
        if is_over.load(Ordering::SeqCst) {
            return Ok(depth);
        }
    }
}

impl Churn {
    /// Installs the CRD, starts the controller, applies the Katalog, and creates the resources. Orkestra must be installed.
    pub(crate) async fn begin(site: &mut Site) -> Result<Self> {
        site.file("katalog.yaml", KATALOG)?;
        let folder = site.cluster.folder().to_owned();
        site.grant(folder.to_str().context("a path is not text")?)?;
        let definitions = input("kinds/crds.yaml")?.replace("GROUP", GROUP);
        site.kubectl(&["apply", "-f", "-"], Some(&definitions))?;
        site.launch().await?;
        site.kubectl(&["apply", "-f", "-"], Some(KATALOG))?;
        let katalogs = site.objects_at("/apis/orkestra.orkspace.io/v1/namespaces/default/katalogs");
        katalogs.until_ready("waters").await?;
        let ponds = site.objects_at(&format!("/apis/{GROUP}/v1alpha1/namespaces/default/ponds"));
        let maps = site.objects_at("/api/v1/namespaces/default/configmaps");
        let still = names("still", STILL);
        let mut all = names("changed", CHANGED);
        all.extend(still.iter().cloned().chain([DRIFTED.to_owned()]));
        for name in &all {
            let pond = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Pond", "metadata": { "name": name }, "spec": { "depth": 0 } });
            ponds.create(&pond).await?;
        }
        for name in &all {
            maps.until_equal(name, "/data/depth", json!("0"), LIMIT)
                .await?;
            ponds.until_ready(name).await?;
        }
        let mark = site.cluster.mark()?;
        let (is_over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let writer = tokio::spawn(change(ponds.clone(), is_over.clone(), Arc::clone(&rounds)));
        Ok(Self {
            ponds,
            maps,
            still,
            mark,
            is_over,
            rounds,
            writer,
        })
    }

    /// Waits until every resource has changed once more.
    pub(crate) async fn round(&self) -> Result<()> {
        let before = self.rounds.load(Ordering::SeqCst);
        testbed::eventually("a round of changes ends", LIMIT, async || {
            Ok((self.rounds.load(Ordering::SeqCst) > before + 1).then_some(()))
        })
        .await
    }

    /// Replaces the controller as a rolling update does: the new process is ready before the old one ends. Checks that a child that
    /// is changed in between is corrected soon after the new process leads. Returns the time that it took.
    pub(crate) async fn hand_over(&self, site: &mut Site) -> Result<SignedDuration> {
        let leases = site.objects("leases");
        let before = leases.fetch("orkestra").await?;
        let mut old = site.launch_beside().await?;
        self.round().await?;
        old.signal(Signal::Term)?;
        let status = old.wait(Duration::from_secs(30))?;
        ensure!(status.success(), "the old controller ended with {status}");
        let drifted = Timestamp::now();
        self.maps
            .patch(DRIFTED, &json!({ "data": { "depth": "changed" } }))
            .await?;
        self.maps
            .until_equal(DRIFTED, "/data/depth", json!("0"), LIMIT)
            .await?;
        let is_new = |lease: &Value| {
            let holder = |lease| waters::text(lease, "/spec/holderIdentity").to_owned();
            holder(lease) != holder(&before) && !holder(lease).is_empty()
        };
        let lease = leases
            .until("orkestra", "has a new holder", LIMIT, is_new)
            .await?;
        let acquired: Timestamp = waters::text(&lease, "/spec/acquireTime").parse()?;
        let corrected = self.corrected(site, drifted)?;
        let took = corrected.duration_since(acquired.max(drifted));
        let is_soon = limit()?.is_none_or(|limit| took < limit);
        ensure!(is_soon, "drift was corrected after {took:#}");
        self.round().await?;
        Ok(took)
    }

    /// Returns the time at which a controller wrote the changed child.
    fn corrected(&self, site: &Site, after: Timestamp) -> Result<Timestamp> {
        let events = site.cluster.audit_since(self.mark)?;
        let mut writes = events.iter().filter(|event| {
            let is_child = event.resource == "configmaps" && event.name == DRIFTED;
            is_child && event.is_write() && event.user == ACCOUNT && event.timestamp >= after
        });
        let write = writes
            .next()
            .context("no controller wrote the changed child")?;
        Ok(write.timestamp)
    }

    /// Stops the changes. Checks that every last change is applied, that unchanged resources and their children were not written,
    /// and that the Katalog is ready.
    pub(crate) async fn end(self, site: &Site) -> Result<()> {
        self.is_over.store(true, Ordering::SeqCst);
        let depth = self.writer.await??;
        for name in names("changed", CHANGED) {
            self.maps
                .until_equal(&name, "/data/depth", json!(depth.to_string()), LIMIT)
                .await?;
            self.ponds.until_ready(&name).await?;
        }
        for name in &self.still {
            assert_eq!(self.maps.fetch(name).await?["data"]["depth"], "0");
        }
        let writes: Vec<_> = site
            .cluster
            .audit_since(self.mark)?
            .into_iter()
            .filter(|event| event.is_write() && self.still.contains(&event.name))
            .collect();
        ensure!(writes.is_empty(), "{writes:?}");
        let katalogs = site.objects_at("/apis/orkestra.orkspace.io/v1/namespaces/default/katalogs");
        let ready = katalogs
            .until("waters", "is ready", LIMIT, is_ready)
            .await?;
        ensure!(
            ready["status"]["observedGeneration"] == ready["metadata"]["generation"],
            "{ready}"
        );
        Ok(())
    }
}
