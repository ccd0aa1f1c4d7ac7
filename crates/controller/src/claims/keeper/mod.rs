//! Takes, keeps and drops this installation's claims on kinds.
//!
//! ```text
//!  Leases of `orkestra-claims` ── watch ──► Book (pure) ── actions ──► create, patch, delete: the leader only
//!                  needed kinds ──────────►  │
//!                                            └──► Standings, for the supervisor
//! ```
//!
//! An idle hour costs the watch and a dozen writes: the installation's own Lease is renewed every five minutes, for any
//! number of kinds.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::api::DynamicObject;
use orkestra_cluster::{requests::Cluster, watch::WatchProblem};
use orkestra_language::{api::names, reasons::KatalogReason};
use orkestra_plan::rbac::CLAIMS_NAMESPACE;
use serde_json::json;
use tokio::sync::watch;

use super::{
    book::{Action, ClaimRequest, ClaimTable, Gone, Standings},
    record::{self, LeaseContent, ObjectVersion},
};
use crate::{
    calls::{RequestError, ServedResource},
    watched::{ChangedObject, WatchedContent, Watches},
};
use orkestra_operator::{OperatorProblem, context::Context};

/// How many writes run concurrently.
const WRITES: usize = 8;
/// How often the clock is checked: timers do not count the time during which a machine sleeps.
const TICK: Duration = Duration::from_secs(10);

/// A Lease of the namespace: its name and record, if it is a claim or a heartbeat.
struct Lease(Option<(String, LeaseContent)>);

impl WatchedContent for Lease {
    fn new(object: DynamicObject) -> Self {
        Self(LeaseContent::read(&object))
    }
}

/// The name of a Lease, and its state after a request.
type LeaseResult = (String, Result<Option<LeaseContent>, RequestError>);

/// Keeps the claims of one installation.
pub(crate) struct Keeper {
    context: Arc<Context>,
    book: ClaimTable,
    leases: ServedResource,
    demand: watch::Receiver<Arc<ClaimRequest>>,
    standings: watch::Sender<Arc<Standings>>,
    /// Whether it only reads the claims.
    pub(crate) observes: bool,
}

impl Keeper {
    /// Creates the keeper for the claims of `installation`: it reads `demand` and publishes `standings`.
    pub(crate) fn new(
        context: Arc<Context>,
        installation: Arc<str>,
        demand: watch::Receiver<Arc<ClaimRequest>>,
        standings: watch::Sender<Arc<Standings>>,
    ) -> Self {
        Self {
            leases: ServedResource::leases(&context.cluster),
            book: ClaimTable::new(installation),
            context,
            demand,
            standings,
            observes: false,
        }
    }

    /// Keeps the claims; never returns. After a restart it lists again.
    pub(crate) async fn run(&mut self) {
        let namespace = Some(CLAIMS_NAMESPACE.to_owned());
        let mut watches: Watches<Lease> =
            Watches::start(&self.context.informers, &self.leases.served, [namespace]);
        let mut states = watches.states();
        let mut is_listed = false;
        let mut leadership = self.context.leadership.changed();
        loop {
            if let Some(problem) = watches.new_problem() {
                self.go_blind(problem);
            }
            if !is_listed && watches.was_synced(0) {
                is_listed = true;
                self.list(&watches);
            }
            let demand = ClaimRequest::clone(&self.demand.borrow_and_update());
            self.book.need(demand);
            leadership.mark_unchanged();
            let more = self.act().await;
            let due = if more {
                Duration::ZERO
            } else {
                self.until_due()
            };
            tokio::select! {
                Some(change) = watches.changed.recv() => {
                    // Changes before the list is complete are applied together with it.
                    if is_listed {
                        self.take_in(&watches, &change);
                    }
                }
                () = Watches::<Lease>::changed(&mut states) => {}
                Ok(()) = self.demand.changed() => {}
                Ok(()) = leadership.changed() => {}
                () = tokio::time::sleep(due) => {}
            }
        }
    }

    /// Drops all claims after everything of this installation has stopped.
    pub(crate) async fn end(&mut self) {
        let actions = self.book.farewell();
        self.take_all(actions).await;
    }

    /// Executes due writes, and publishes the holders. True if more may be due now.
    async fn act(&mut self) -> bool {
        let now = self.context.clock.now();
        self.book.look_at_clock(now);
        self.report(now);
        let may_write = !self.observes && self.context.leadership.leads();
        if !may_write || !self.context.cluster.reach().is_up() {
            return false;
        }
        let actions = self.book.actions(now);
        if actions.is_empty() {
            return false;
        }
        self.take_all(actions).await;
        self.report(self.context.clock.now());
        true
    }

    fn report(&self, now: Timestamp) {
        let standings = self.book.standings(now);
        self.standings.send_if_modified(|reported| {
            let differs = **reported != standings;
            if differs {
                *reported = Arc::new(standings);
            }
            differs
        });
    }

    fn until_due(&self) -> Duration {
        let next = self.book.next(self.context.clock.now());
        next.map_or(TICK, |at| self.context.clock.until(at).min(TICK))
    }

    /// Records a complete list.
    fn list(&mut self, watches: &Watches<Lease>) {
        let leases = watches.all(0);
        let records = leases.iter().filter_map(|lease| lease.0.clone()).collect();
        self.book.replace(records, self.context.clock.now());
    }

    /// Records the current state of a Lease.
    fn take_in(&mut self, watches: &Watches<Lease>, change: &ChangedObject) {
        let lease = watches.get(change);
        match lease.and_then(|lease| lease.content.0.clone()) {
            Some((name, record)) => self.book.take_in(name, record, self.context.clock.now()),
            None => self.book.remove(&change.key.name),
        }
    }

    fn go_blind(&mut self, problem: WatchProblem) {
        let problem = unlisted(problem);
        tracing::warn!(message = problem.message, "cannot watch claims");
        self.book.go_blind(problem);
    }

    async fn take_all(&mut self, actions: Vec<Action>) {
        let now = self.context.clock.now();
        let writes: Vec<_> = actions
            .into_iter()
            .map(|action| self.take(action, now))
            .collect();
        let mut done = stream::iter(writes).buffer_unordered(WRITES);
        let mut results = Vec::new();
        while let Some(result) = done.next().await {
            results.push(result);
        }
        drop(done);
        for (name, result) in results {
            let now = self.context.clock.now();
            match result {
                Ok(Some(record)) => self.book.note_written(name, record, now),
                Ok(None) => self.book.remove(&name),
                Err(error) => {
                    tracing::warn!(lease = name, error = %error, "cannot write a claim");
                    self.book.note_failure(&name, problem(&error), now);
                }
            }
        }
    }

    /// Executes one write; returns the Lease afterwards, as another client wrote it if that was first.
    fn take(&self, action: Action, now: Timestamp) -> impl Future<Output = LeaseResult> + use<> {
        let leases = self.leases.clone();
        let cluster = self.context.cluster.clone();
        let installation = self.book.installation().to_owned();
        let reach = self.context.cluster.reach().clone();
        let version = Arc::clone(&self.context.version);
        async move {
            if let Action::TakeOver(name, _, _, gone) = &action
                && let Some(result) = refuted(&leases, name, gone).await
            {
                return result;
            }
            let claimed = |name: String, claimant, over: Option<ObjectVersion>| {
                let lease = record::claim(&name, (&installation, &claimant), now, over.as_ref());
                (name, lease, over)
            };
            let (name, lease, over) = match action {
                Action::Renew(over) => {
                    let lease = record::heartbeat((&installation, &version), now, over.as_ref());
                    let name = names::installation_lease(&installation);
                    (name, lease, over)
                }
                Action::Claim(name, claimant, over) => claimed(name, claimant, over),
                Action::TakeOver(name, claimant, over, _) => claimed(name, claimant, Some(over)),
                Action::Drop(name, state) => {
                    let dropped = leases
                        .delete_exactly(CLAIMS_NAMESPACE, &name, (&state.uid, &state.version))
                        .await;
                    let result = current_lease(&leases, &name, dropped.map(|()| None)).await;
                    return (name, result);
                }
            };
            let written = if over.is_none() {
                create(&cluster, &leases, &name, &lease).await
            } else {
                leases.merge(Some(CLAIMS_NAMESPACE), &name, &lease).await
            };
            let result = current_lease(&leases, &name, written.map(Some)).await;
            if let (Some(over), Ok(Some(record))) = (&over, &result)
                && record.state().is_behind(over)
            {
                tracing::warn!(
                    lease = name,
                    "the state of a claim is older than before (etcd restored from a backup?); listing all objects again"
                );
                reach.note_rewind();
            }
            (name, result)
        }
    }
}

/// Reads the Lease of an installation that counts as gone, before its claim `name` is taken. Returns the result in place of the
/// write if the installation has renewed it, or if that is unknown.
async fn refuted(leases: &ServedResource, name: &str, gone: &Gone) -> Option<LeaseResult> {
    let found = match leases.get(Some(CLAIMS_NAMESPACE), &gone.lease).await {
        Ok(found) => found.and_then(|lease| Some(LeaseContent::read(&lease)?.1)),
        Err(error) => return Some((name.to_owned(), Err(error))),
    };
    (!gone.is_confirmed_by(found.as_ref())).then(|| (gone.lease.clone(), Ok(found)))
}

/// Creates a Lease, and its namespace if that is missing and may be created.
async fn create(
    cluster: &Cluster,
    leases: &ServedResource,
    name: &str,
    lease: &serde_json::Value,
) -> Result<DynamicObject, RequestError> {
    match leases.create(CLAIMS_NAMESPACE, name, lease).await {
        Err(error) if error.is_not_found() => {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": CLAIMS_NAMESPACE } });
            let made = ServedResource::namespaces(cluster)
                .create_in(None, CLAIMS_NAMESPACE, &namespace)
                .await;
            match made {
                Err(refused) if !refused.is_already_there() => Err(refused),
                _ => leases.create(CLAIMS_NAMESPACE, name, lease).await,
            }
        }
        answer => answer,
    }
}

/// Returns the Lease after a write; reads it again if another client was first.
async fn current_lease(
    leases: &ServedResource,
    name: &str,
    written: Result<Option<DynamicObject>, RequestError>,
) -> Result<Option<LeaseContent>, RequestError> {
    let lease = match written {
        Err(error) if error.is_not_found() => None,
        Err(error) if error.is_conflict() || error.is_already_there() => {
            leases.get(Some(CLAIMS_NAMESPACE), name).await?
        }
        answer => answer?,
    };
    Ok(lease.and_then(|lease| Some(LeaseContent::read(&lease)?.1)))
}

fn problem(error: &RequestError) -> OperatorProblem {
    let reason = if error.is_forbidden() {
        KatalogReason::Forbidden
    } else {
        KatalogReason::Unavailable
    };
    let mut message = format!("cannot claim the kind: {error}");
    if error.is_forbidden() {
        message.push_str("; `ork generate rbac` prints the Role and the Namespace");
    }
    OperatorProblem { reason, message }
}

/// Returns why the claims are not known.
fn unlisted(problem: WatchProblem) -> OperatorProblem {
    let (reason, why) = match problem {
        WatchProblem::Forbidden { message } => (KatalogReason::Forbidden, message),
        WatchProblem::Unavailable { message, .. } => (KatalogReason::Unavailable, message),
        WatchProblem::NotServed => (
            KatalogReason::Unavailable,
            "the API server does not serve them".to_owned(),
        ),
    };
    let message = format!(
        "cannot list leases.coordination.k8s.io in namespace {CLAIMS_NAMESPACE}, which hold the claims on kinds: {why}"
    );
    OperatorProblem { reason, message }
}

#[cfg(test)]
mod tests;
