//! One Katalog of the cluster, in its own task, so that Katalogs do not affect each other.
//!
//! ```text
//!  object ── judge ──► candidate ── accept: finalizer, revision, `operated` written ──► supervisor runs it
//!               │                                                                            │
//!               └─ refused ──► the last good revision stays, or is loaded                    │
//!  report: status ◄── verdict, operators' statuses, releases ◄───────────────────────────────┘
//! ```
//!
//! The loop is level-triggered: at every wake-up it checks everything again, and does nothing if nothing differs.

mod act;
mod announce;
mod clear;
mod composed;
mod definitions;
mod examine;
mod judge;
mod judgement;
mod operated;
mod releases;
mod report;
mod state;
mod stored;

use std::{sync::Arc, time::Duration};

use kube::api::DynamicObject;
use orkestra_ground::{Backoff, Entropy};
use orkestra_plan::KatalogRef;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use self::{
    announce::AnnouncedSubjects,
    definitions::AppliedDefinitions,
    judgement::Judgement,
    operated::OperatedKinds,
    releases::KindReleases,
    report::ReportProgress,
    state::{Existence, Lead, Resumption, Running},
};
use super::{
    calls::{RequestError, ServedResource},
    claims::Seniority,
    directory::{OperatorView, Publisher, any_changed},
    ledger::WantedKatalog,
    motifs::Motifs,
    object::KatalogObject,
    revisions::Revisions,
    sources::{KomposerSources, SourceContext},
    supervisor::{Snapshot, Supervisor},
};
use orkestra_operator::context::Context;

pub use self::examine::{Declares, Examined, examine_katalog, examine_motif, kinds_declared};
pub(crate) use self::{judge::kinds_of, stored::kinds_stored};

/// The delay after a failure.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30));

/// The shared state of the Katalogs of one process.
#[derive(Debug)]
pub(crate) struct ControllerContext {
    /// Client, clock, entropy.
    pub(crate) context: Arc<Context>,
    /// Whether this process writes nothing, whether it leads or not.
    pub(crate) observes: bool,
    /// Runs the operators.
    pub(crate) supervisor: Arc<Supervisor>,
    /// The Motifs that Katalogs import by name.
    pub(crate) motifs: Arc<Motifs>,
    /// What the sources of Komposers are read with.
    pub(crate) sources: Arc<SourceContext>,
    /// Publishes Katalogs for readers.
    pub(crate) publisher: Publisher,
    /// Whether all Katalogs that existed at the start are known.
    pub(crate) synced: watch::Sender<bool>,
}

/// The newest state of a Katalog's object; none if it is gone.
pub(crate) type Latest = Option<Arc<KatalogObject>>;

/// One Katalog.
#[derive(Debug)]
pub(crate) struct KatalogController {
    shared: Arc<ControllerContext>,
    reference: KatalogRef,
    uid: String,
    resource: ServedResource,
    revisions: Revisions,
    /// The newest known state, from the watch or from an answer to our write.
    object: Arc<KatalogObject>,
    existence: Existence,
    /// Whether this process leads, as of this iteration.
    lead: Lead,
    resumption: Resumption,
    /// Whether it was processed at least once.
    settled: bool,
    judgement: Judgement,
    /// Follows the sources that it is composed from; none while another process leads.
    sources: Option<KomposerSources>,
    running: Option<Running>,
    /// The last report to the supervisor.
    claimed: Option<WantedKatalog>,
    /// What the deletion waits for.
    waits: Option<String>,
    /// Why the last iteration failed.
    last_error: Option<String>,
    /// Whether stored revisions were searched for a good one.
    looked: bool,
    operated: OperatedKinds,
    definitions: AppliedDefinitions,
    /// The releases of those of `operated` that are no longer wanted.
    releases: KindReleases,
    views: Vec<OperatorView>,
    failures: u32,
    report: ReportProgress,
    announced: AnnouncedSubjects,
}

impl KatalogController {
    /// Publishes the object; nothing is compiled, runs or is written yet.
    pub(crate) fn new(shared: &Arc<ControllerContext>, object: &Arc<KatalogObject>) -> Self {
        let reference = object.reference();
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let cluster = &shared.context.cluster;
        let mut katalog = Self {
            resource: ServedResource::declaring(cluster, reference.kind),
            revisions: Revisions::new(cluster, &reference, &uid),
            shared: Arc::clone(shared),
            reference,
            uid,
            existence: Existence::Present,
            lead: Lead::of(!shared.observes && shared.context.leadership.standing().leads),
            resumption: Resumption::Unknown,
            settled: false,
            judgement: Judgement::pending(),
            sources: None,
            running: None,
            claimed: None,
            waits: None,
            last_error: None,
            looked: false,
            operated: OperatedKinds::of_status(&object.status.operated),
            object: Arc::clone(object),
            definitions: AppliedDefinitions::default(),
            releases: KindReleases::default(),
            views: Vec::new(),
            failures: 0,
            report: ReportProgress::default(),
            announced: AnnouncedSubjects::default(),
        };
        // Before its operators start.
        let rows = &katalog.object.status.operators;
        shared.context.rows.set(&katalog.reference, rows);
        katalog.publish();
        katalog
    }

    /// Compiles the object and registers its claims; nothing runs and nothing is written yet.
    pub(crate) async fn claim_first(&mut self) {
        if !self.is_deleting() {
            self.judge().await;
        }
        self.claim();
        self.publish();
    }

    // Over 60 lines: one loop over everything that wakes the Katalog.
    /// Follows the object until it is gone and everything of it is released, or until the feed ends.
    pub(crate) async fn run(mut self: Box<Self>, mut objects: watch::Receiver<Latest>) {
        let mut snapshot = self.shared.supervisor.snapshot();
        let mut crds = self.shared.context.crds.changed();
        let mut motifs = self.shared.motifs.changed();
        let mut standing = self.shared.context.leadership.changed();
        let mut enforcement = self.shared.context.enforcement.changed();
        let mut reach = self.shared.context.cluster.reach().view();
        let mut returns = reach.borrow().returns;
        snapshot.mark_changed();
        loop {
            let latest = objects.borrow_and_update().clone();
            self.take_latest(latest);
            crds.mark_unchanged();
            motifs.mark_unchanged();
            let (is_up, back) = {
                let view = reach.borrow_and_update();
                (view.is_up, view.returns)
            };
            if back > returns {
                returns = back;
                self.start_over();
            }
            let leads = standing.borrow_and_update().leads;
            self.stand(leads && !self.shared.observes);
            // Readers are updated even while nothing can be written.
            // Large and rare, as is the report: boxed, so that they take memory only while they run.
            let retry = if is_up {
                Box::pin(self.act()).await
            } else {
                None
            };
            self.follow_sources();
            self.settled = true;
            self.look_at_operators(&mut snapshot);
            if self.is_over() {
                self.shared.supervisor.forget(&self.reference);
                break;
            }
            // A status from before the operator was first checked here triggers no wake-up.
            let ready = retry.is_none() && is_up && self.has_unrecorded();
            let again = ready.then(Instant::now);
            let reported = Box::pin(self.report()).await;
            let later = [self.definitions.next_check(), self.next_release()];
            let due = [retry, again, reported]
                .into_iter()
                .chain(later)
                .flatten()
                .min();
            tokio::select! {
                changed = objects.changed() => if changed.is_err() { break },
                // Awaiting a change marks it as seen; it is handled above.
                _ = snapshot.changed() => snapshot.mark_changed(),
                Ok(()) = crds.changed() => {}
                Ok(()) = motifs.changed() => {}
                Ok(()) = standing.changed() => {}
                () = enforcement.next() => {}
                Ok(()) = reach.changed() => {}
                () = any_changed(self.views.iter_mut()) => {}
                () = composed::changed(self.sources.as_mut()) => {}
                Some(ended) = self.releases.next_ended() => self.note_release(ended),
                () = sleep_until(due.unwrap_or_else(far)), if due.is_some() => {}
            }
        }
        self.shared.publisher.remove(&self.reference);
        self.shared.context.accepted.forget(&self.reference);
        self.shared.context.rows.forget(&self.reference);
    }

    /// Resets failures after the API server became reachable: earlier failures do not count.
    fn start_over(&mut self) {
        self.failures = 0;
        self.report.forgive();
        self.releases.retry_now();
    }

    /// Takes what the feed has of the object: nothing once it is deleted.
    fn take_latest(&mut self, latest: Latest) {
        match latest {
            Some(object) => self.see(object),
            None => self.existence = Existence::Gone,
        }
    }

    /// Takes a state of the object, unless a newer one is known.
    fn see(&mut self, object: Arc<KatalogObject>) {
        // Of equal states, keep the one that the feed holds too; of equal documents, keep one.
        if object.is_older_than(&self.object) && !object.rewound {
            return;
        }
        self.judgement.share_document(&object.document);
        let rows = &object.status.operators;
        self.shared.context.rows.set(&self.reference, rows);
        self.object = object;
    }

    /// Takes an answer to our write.
    fn see_answer(&mut self, answer: DynamicObject) {
        self.see(Arc::new(KatalogObject::new(answer)));
    }

    /// Reads the object again, after another client changed it first.
    async fn look_again(&mut self) -> Result<(), RequestError> {
        match self
            .resource
            .get(Some(&self.reference.namespace), &self.reference.name)
            .await?
        {
            Some(object) if object.metadata.uid.as_deref() == Some(&self.uid) => {
                self.see_answer(object);
            }
            _ => self.existence = Existence::Gone,
        }
        Ok(())
    }

    fn look_at_operators(&mut self, snapshot: &mut watch::Receiver<Snapshot>) {
        if snapshot.has_changed().unwrap_or_default() {
            self.views = snapshot
                .borrow_and_update()
                .get(&self.reference)
                .cloned()
                .unwrap_or_default();
        }
    }

    fn is_gone(&self) -> bool {
        self.existence == Existence::Gone
    }

    fn is_deleting(&self) -> bool {
        self.is_gone() || self.object.metadata.deletion_timestamp.is_some()
    }

    fn is_over(&self) -> bool {
        // The leader does the rest.
        let done = self.operated.is_empty() || !self.lead.is_leader();
        self.is_gone() && done && self.releases.are_over()
    }

    /// Switches between leading and following.
    fn stand(&mut self, leads: bool) {
        if self.lead.is_leader() == leads {
            return;
        }
        self.lead = Lead::of(leads);
        self.resumption = Resumption::Unknown;
        self.sources = None;
        self.failures = 0;
        self.report = ReportProgress::default();
        self.releases.drop_waiting();
    }

    fn seniority(&self) -> Seniority {
        let at = self
            .object
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(jiff::Timestamp::MAX, |time| time.0);
        Seniority::Created(at)
    }
}

/// Returns when to retry after `failures` failures in a row.
fn retry_at(failures: u32, entropy: &Entropy) -> Instant {
    Instant::now() + RETRY.jittered(failures.saturating_sub(1), entropy, 0.2)
}

/// Returns an instant that is never reached.
fn far() -> Instant {
    Instant::now() + RETRY.longest
}
