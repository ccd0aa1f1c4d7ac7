//! Showing that nothing more happens. A test never waits for a time and then looks: it makes a later change, waits until that has
//! been handled, and looks then (a barrier).
//!
//! ```text
//!  until_settled ─► the writes of what went before have ended
//!  until_handled ─► a requested pass has ended: all earlier events of its kind were delivered, and their passes too
//!  until_idle    ─► no custom resource is due, and no pass runs: the requests of all passes so far are in the audit log
//!  until_at_rest ─► moreover, nothing is scheduled: without a change or a resync no pass follows
//! ```

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::{AuditEvent, eventually};

use super::{LIMIT, Metrics, Objects, Scenario};
use crate::waters;

/// The time without a write after which the writes count as ended: Kubernetes' own controllers react within it. If they take
/// longer, the barrier of the test that follows is still valid.
const REACTION: Duration = Duration::from_secs(2);

/// The gauges of work that is due or under way.
const WORK: &[&str] = &["orkestra_queue_depth", "orkestra_workers_active"];
/// The same, and of work that is scheduled for later.
const PLANNED: &[&str] = &[
    "orkestra_queue_depth",
    "orkestra_workers_active",
    "orkestra_queue_delayed",
];

/// The annotation that requests a pass.
const RECONCILE: &str = "orkestra.orkspace.io/reconcile";

/// Returns a merge patch that requests a pass, and the request, which no other call returns.
pub(crate) fn request() -> (serde_json::Value, String) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let request = format!("barrier-{}", LAST.fetch_add(1, Ordering::Relaxed));
    let patch = json!({ "metadata": { "annotations": { RECONCILE: request } } });
    (patch, request)
}

/// Waits until there is a time of length `window` without a write. `begin` marks its start, and returns the function that reads the
/// writes since then.
pub(crate) async fn until_no_writes<R: Fn() -> Result<Vec<AuditEvent>>>(
    (window, limit): (Duration, Duration),
    begin: impl Fn() -> Result<R>,
) -> Result<()> {
    eventually("the writes end", limit, async || {
        let since = begin()?;
        tokio::time::sleep(window).await;
        let writes = since()?;
        let lines = waters::lines(&writes);
        ensure!(writes.is_empty(), "still written:\n{lines}");
        Ok(Some(()))
    })
    .await
}

/// Waits until a value is the same at both ends of a time of length `window`: what repeats itself within it would not be.
pub(crate) async fn until_unchanged<T: PartialEq + Debug>(
    what: &str,
    window: Duration,
    mut read: impl AsyncFnMut() -> Result<T>,
) -> Result<()> {
    eventually(what, LIMIT, async || {
        let before = read().await?;
        tokio::time::sleep(window).await;
        let after = read().await?;
        ensure!(before == after, "{before:?}, and then {after:?}");
        Ok(Some(()))
    })
    .await
}

impl Scenario {
    /// Waits until the controller has written nothing but Events for a while. The wait ends later on a busy machine, but it does
    /// not fail: a controller that never stops writing fails it.
    pub(crate) async fn until_settled(&self) -> Result<()> {
        until_no_writes((REACTION, LIMIT), || {
            let mark = Self::mark()?;
            Ok(move || self.writes_since(mark))
        })
        .await
    }

    /// Waits until the controller has sent no request but watches for a time of that length, as it does if nothing is repeated.
    pub(crate) async fn until_no_requests(&self, times: (Duration, Duration)) -> Result<()> {
        until_no_writes(times, || {
            let mark = Self::mark()?;
            Ok(move || {
                let mut requests = self.requests_since(mark)?;
                requests.retain(|request| request.verb != "watch");
                Ok(requests)
            })
        })
        .await
    }

    /// Waits until no custom resource is due and no pass runs, and returns the metrics of that moment. The audit log then contains
    /// all requests of the passes that they count.
    pub(crate) async fn until_idle(&self) -> Result<Metrics> {
        self.until_still(WORK, &[]).await
    }

    /// Waits until an operator is idle and no retry and no timer of it is due later, and returns the metrics of that moment.
    pub(crate) async fn until_at_rest(&self, operator: &str) -> Result<Metrics> {
        self.until_still(PLANNED, &[("crd", operator)]).await
    }

    /// Waits until these gauges are 0 in two consecutive responses without a pass in between: a custom resource is neither due nor
    /// in a pass while a worker takes it.
    async fn until_still(&self, gauges: &[&str], labels: &[(&str, &str)]) -> Result<Metrics> {
        let mut last = None;
        eventually("no pass is due or runs", LIMIT, async || {
            let metrics = self.metrics().await?;
            let all = gauges.iter().flat_map(|name| metrics.series(name, labels));
            let busy: Vec<_> = all.filter(|one| !one.ends_with(" 0")).collect();
            let passes = metrics.series("orkestra_reconcile_total", labels);
            let is_still = busy.is_empty() && last.as_ref() == Some(&passes);
            last = busy.is_empty().then_some(passes);
            ensure!(busy.is_empty(), "{busy:?}");
            Ok(is_still.then_some(metrics))
        })
        .await
    }

    /// Requests a pass of a custom resource, and waits until its status repeats the request and no pass runs. All earlier events of
    /// its kind have then been handled, since a watch delivers them in order. Returns the metrics of that moment.
    pub(crate) async fn until_handled(&self, resources: &Objects, name: &str) -> Result<Metrics> {
        let (patch, request) = request();
        resources.patch(name, &patch).await?;
        let at = "/status/lastHandledReconcileAt";
        resources
            .until_equal(name, at, json!(request), LIMIT)
            .await?;
        self.until_idle().await
    }

    /// Does the same for a kind whose CRD does not keep the request in the status: the passes of its operator are counted instead.
    pub(crate) async fn until_passed(
        &self,
        operator: &str,
        resources: &Objects,
        name: &str,
    ) -> Result<Metrics> {
        let before = self.until_idle().await?.passes(operator)?;
        resources.patch(name, &request().0).await?;
        self.until_passes(operator, before + 1.0).await
    }

    /// Waits until an operator has had that many passes and is idle, and returns the metrics of that moment.
    pub(crate) async fn until_passes(&self, operator: &str, passes: f64) -> Result<Metrics> {
        let what = format!("{operator} has {passes} passes");
        eventually(&what, LIMIT, async || {
            let now = self.passes(operator).await?;
            ensure!(now > passes - 0.5, "it has {now}");
            Ok(Some(()))
        })
        .await?;
        self.until_idle().await
    }
}
