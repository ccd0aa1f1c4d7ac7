//! The task that takes part in leader election.

use std::{sync::Arc, time::Duration};

use crate::{gate::Gate, reach::Reach};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use orkestra_ground::{
    Clock, Entropy, Moment, chain,
    tasks::{self, Ends, Task},
};
use prometheus::IntGauge;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Election, ElectionStep, LeaderStatus, Leadership, Timing, lease,
    watch::{LeaseChange, SPREAD, Watcher, bounded},
};

/// Field manager of the Lease.
const MANAGER: &str = "orkestra";

/// The parameters of a candidate.
#[derive(Clone, Debug)]
pub struct CandidateConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The durations.
    pub timing: Timing,
    /// The gate that permits writes while the process leads.
    pub gate: Gate,
    /// Receives the outcome.
    pub leadership: Leadership,
}

impl CandidateConfig {
    /// A candidate with a unique identity: `host`, and a random part.
    pub fn new(namespace: String, name: String, host: &str, entropy: &Entropy) -> Self {
        let gate = Gate::default();
        let identity = identity(host, entropy);
        Self {
            namespace,
            name,
            timing: Timing::default(),
            leadership: Leadership::candidate(identity, gate.clone()),
            gate,
        }
    }
}

/// `<host>_<random>`: a restarted process has another identity.
pub fn identity(host: &str, entropy: &Entropy) -> Arc<str> {
    format!("{host}_{:016x}", entropy.bits()).into()
}

/// The longest sleep of the elector. Timers stop while the machine is suspended: the elector reads its own clock after each
/// sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A participant in leader election.
pub(crate) struct Candidate {
    candidacy: CandidateConfig,
    leases: Api<Lease>,
    election: Election,
    /// The newest known state, for the next write.
    lease: Option<Lease>,
    /// Whether the Lease cannot be watched at the moment.
    blind: bool,
    /// The cause, if it is permanent.
    watch_problem: Option<Arc<str>>,
    /// Why the Lease cannot be written.
    problem: Option<Arc<str>>,
    /// Makes the watch start again.
    anew: Arc<Notify>,
    clock: Clock,
    entropy: Entropy,
    /// Receives the report that etcd was restored to an older state, which the Lease shows first.
    reach: Reach,
    gauge: IntGauge,
}

impl Candidate {
    pub(crate) fn new(
        client: Client,
        candidacy: CandidateConfig,
        (clock, entropy): (Clock, Entropy),
        reach: Reach,
        gauge: IntGauge,
    ) -> Self {
        let leases = Api::namespaced(client, &candidacy.namespace);
        let identity = Arc::clone(candidacy.leadership.identity());
        Self {
            election: Election::new(identity, candidacy.timing),
            candidacy,
            leases,
            lease: None,
            blind: false,
            watch_problem: None,
            problem: None,
            anew: Arc::default(),
            clock,
            entropy,
            reach,
            gauge,
        }
    }

    /// The current time of the gate's clock.
    fn moment(&self) -> Moment {
        self.candidacy.gate.clock().now()
    }

    /// Runs until `stopped` receives whether to release the lease.
    pub(crate) async fn run(&mut self, stopped: &mut oneshot::Receiver<bool>) {
        let (changes, mut news) = mpsc::channel(16);
        let watcher = Watcher {
            leases: self.leases.clone(),
            name: self.candidacy.name.clone(),
            timing: self.candidacy.timing,
            entropy: self.entropy.clone(),
            changes,
            anew: Arc::clone(&self.anew),
        };
        // The watcher lists again after each restart.
        let watcher =
            tasks::named(Task::LeaseWatcher, "")
                .keep(Ends::freely(), watcher, |watcher| Box::pin(watcher.run()));
        let _watcher = AbortOnDropHandle::new(watcher);
        let release = loop {
            let now = self.moment();
            let next = self.election.next(now);
            self.publish();
            let ElectionStep::Wait(until) = next else {
                self.attempt(next == ElectionStep::Acquire).await;
                continue;
            };
            let rest = until.map_or(LONGEST_SLEEP, |until| until.duration_since(now));
            let rest = rest.min(LONGEST_SLEEP);
            tokio::select! {
                biased;
                ended = &mut *stopped => break ended.unwrap_or(false),
                Some(heard) = news.recv() => self.hear(heard).await,
                () = sleep(rest) => {}
            }
        };
        self.resign(release).await;
    }

    /// Publishes the standing: to the gate first.
    fn publish(&mut self) {
        let now = self.moment();
        let until = self.election.leads_until(now);
        self.candidacy.gate.set(until);
        let standing = LeaderStatus {
            leads: until.is_some(),
            leader: self.election.leader(now),
            heard: self.election.has_heard(),
            problem: self.problem.clone().or_else(|| self.watch_problem.clone()),
        };
        self.gauge.set(i64::from(standing.leads));
        let before = self.candidacy.leadership.standing();
        let turned = self.candidacy.leadership.publish(standing.clone());
        let identity = &**self.candidacy.leadership.identity();
        match (turned, standing.leads) {
            (true, true) => tracing::info!(identity, "this process is the leader"),
            (true, false) => {
                tracing::warn!(
                    identity,
                    leader = standing.leader.as_deref(),
                    "lost the lease; this process is now a follower and writes nothing"
                );
            }
            (false, false) if before.leader != standing.leader => {
                tracing::info!(
                    leader = standing.leader.as_deref(),
                    "this process is a follower"
                );
            }
            _ => {}
        }
    }

    async fn hear(&mut self, news: LeaseChange) {
        if !matches!(news, LeaseChange::Trouble(_)) {
            self.watch_problem = None;
            self.blind = false;
        }
        match news {
            LeaseChange::Is(lease) => self.see(*lease),
            LeaseChange::Gone(lease) => {
                let known = self.lease.as_ref();
                if known.is_some_and(|known| known.metadata.uid == lease.metadata.uid) {
                    self.miss();
                }
            }
            LeaseChange::Absent if self.lease.is_none() => self.miss(),
            // It was created after the read, or deleted since.
            LeaseChange::Absent | LeaseChange::Older => self.look_again().await,
            LeaseChange::Trouble(error) => {
                if !std::mem::replace(&mut self.blind, true) {
                    tracing::warn!(error = %chain(&error), "cannot watch the Lease");
                }
                self.watch_problem = self.blame(&error, "watch");
            }
        }
    }

    /// Records that there is no Lease.
    fn miss(&mut self) {
        self.lease = None;
        let now = self.moment();
        self.election.see(None, now);
    }

    /// Records the Lease from a read that was made after everything that is known. If it is in an older state, etcd was restored
    /// from a backup: the known state is dropped, or every write would be refused because of a state that no longer exists.
    fn see_read(&mut self, lease: Lease) {
        let known = self.lease.as_ref().map(lease::version);
        let state = lease::version(&lease);
        if let Some(known) = known.filter(|known| state.is_behind(known)) {
            tracing::warn!(%known, %state, "the state of the Lease is older than before (etcd restored from a backup?); listing all objects again");
            self.lease = None;
            self.reach.note_rewind();
        }
        self.see(lease);
    }

    /// Records a state of the Lease, unless a newer one is known.
    fn see(&mut self, lease: Lease) {
        let known = self.lease.as_ref();
        let is_news =
            known.is_none_or(|known| lease::version(&lease).is_newer_than(&lease::version(known)));
        if is_news {
            let record = lease::record(&lease);
            self.lease = Some(lease);
            let now = self.moment();
            self.election.see(Some(record), now);
        }
    }

    /// Writes this candidate into the Lease, if it is unchanged.
    async fn attempt(&mut self, acquires: bool) {
        let CandidateConfig {
            namespace,
            name,
            timing,
            leadership,
            ..
        } = &self.candidacy;
        let started = self.moment();
        let identity = leadership.identity();
        let known = self.lease.clone();
        let base = known
            .clone()
            .unwrap_or_else(|| lease::fresh(namespace, name));
        let wanted = lease::held_by(&base, identity, timing.lease, self.clock.now());
        let written = self.write(known.is_some(), &wanted).await;
        let now = self.moment();
        let rest = self.entropy.shorten(timing.retry, SPREAD);
        match written {
            Ok(lease) => {
                self.problem = None;
                self.election.won(lease::record(&lease), started);
                self.lease = Some(lease);
            }
            Err(error) if is_conflict(&error, known.is_some()) => {
                tracing::debug!(acquires, %error, "another process has updated the Lease");
                self.election.conflicted(now, rest);
                self.look_again().await;
                // The watch should have reported this.
                self.anew.notify_one();
            }
            Err(error) => {
                let verb = if known.is_some() { "update" } else { "create" };
                tracing::warn!(verb, error = %chain(&error), "cannot write the Lease");
                self.problem = self.blame(&error, verb);
                self.election.failed(now, rest);
            }
        }
    }

    async fn write(&self, exists: bool, lease: &Lease) -> Result<Lease, kube::Error> {
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        let within = self.candidacy.timing.renew;
        if exists {
            let name = &self.candidacy.name;
            bounded(within, self.leases.replace(name, &params, lease)).await
        } else {
            bounded(within, self.leases.create(&params, lease)).await
        }
    }

    /// Reads the Lease after it was found to differ from the known state.
    async fn look_again(&mut self) {
        let asked = self.leases.get_opt(&self.candidacy.name);
        match bounded(self.candidacy.timing.renew, asked).await {
            Ok(Some(lease)) => self.see_read(lease),
            Ok(None) => self.miss(),
            Err(error) => {
                tracing::warn!(error = %chain(&error), "cannot read the Lease");
                self.problem = self.blame(&error, "get");
                let rest = self.entropy.shorten(self.candidacy.timing.retry, SPREAD);
                let now = self.moment();
                self.election.failed(now, rest);
            }
        }
    }

    /// The message for a permanent error; `None` for other errors.
    fn blame(&self, error: &kube::Error, verb: &str) -> Option<Arc<str>> {
        let kube::Error::Api(status) = error else {
            return None;
        };
        if !matches!(status.code, 400..=499) || matches!(status.code, 408 | 409 | 410 | 429) {
            return None;
        }
        let CandidateConfig {
            namespace, name, ..
        } = &self.candidacy;
        let problem = format!(
            "cannot {verb} Lease {namespace}/{name}: {}; grant the permissions that `ork generate rbac` prints, or run a single process with \
             --leader-elect=false",
            status.message
        );
        Some(problem.into())
    }

    /// Stops leading; releases the lease, if `release` is set and it is held.
    async fn resign(&mut self, release: bool) {
        let held = self.election.leads_until(self.moment()).is_some();
        self.candidacy.gate.set(None);
        self.candidacy.leadership.publish(LeaderStatus {
            heard: self.election.has_heard(),
            ..LeaderStatus::default()
        });
        self.gauge.set(0);
        let Some(lease) = self.lease.take().filter(|_| held) else {
            return;
        };
        if !release {
            tracing::warn!(
                "the lease is not released and will expire: a write may still be in flight"
            );
            return;
        }
        let given = lease::released(&lease, self.clock.now());
        match self.write(true, &given).await {
            Ok(_) => tracing::info!("released the lease"),
            Err(error) => {
                tracing::warn!(error = %chain(&error), "cannot release the lease; it will expire");
            }
        }
    }
}

/// True if another candidate wrote first: the Lease has changed, exists already, or was deleted.
fn is_conflict(error: &kube::Error, existed: bool) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 || (existed && status.code == 404))
}
