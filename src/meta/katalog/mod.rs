//! One Katalog of the cluster, in a task of its own, so that none disturbs another.
//!
//! ```text
//!  object ── judge ──► candidate ── accept: finalizer, revision, `operated` written ──► supervisor runs it
//!               │                                                                            │
//!               └─ refused ──► the last good revision stays, or is loaded                    │
//!  report: status ◄── verdict, operators' statuses, releases ◄───────────────────────────────┘
//! ```
//!
//! The loop is level-triggered: whatever wakes it, it looks at everything again, and does nothing when nothing differs.

mod act;
mod clear;
mod declared;
mod judge;
mod judgement;
mod known;
mod object;
mod releases;
mod report;
mod taken;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kube::api::DynamicObject;
use orkestra_core::{
    api::OperatedKind,
    plan::{GroupKind, KatalogRef, Plan},
    reconcile::crd::CrdRecord,
};
use orkestra_ground::Backoff;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use self::{judge::Judged, object::Document, taken::Asked};
use super::{
    calls::{CallError, Resource},
    claims::Seniority,
    directory::{OperatorView, Publisher},
    ledger::Wanted,
    motifs::Motifs,
    release::{Progress, ReleaseError, Released},
    revisions::Revisions,
    status::Verdict,
    supervisor::{Snapshot, Supervisor},
};
use crate::runtime::context::Context;

pub(crate) use self::{
    judge::{disabled, kinds_of},
    known::{kinds_named, known, whole_schemas},
    object::KatalogObject,
};

/// The delay after a failure.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30));

/// What the Katalogs of one process share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Client, clock, entropy.
    pub(crate) context: Arc<Context>,
    /// Runs the operators.
    pub(crate) supervisor: Arc<Supervisor>,
    /// What Katalogs import by name.
    pub(crate) motifs: Motifs,
    /// Shows them to readers.
    pub(crate) publisher: Publisher,
    /// Whether all Katalogs that were there at the start are known.
    pub(crate) synced: watch::Sender<bool>,
}

/// The newest state of a Katalog's object; none when it is gone.
pub(crate) type Latest = Option<Arc<KatalogObject>>;

/// One Katalog.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub(crate) struct Katalog {
    shared: Arc<Shared>,
    reference: KatalogRef,
    uid: String,
    resource: Resource,
    revisions: Revisions,
    /// The newest state known, be it from the watch or an answer to a write of ours.
    object: Arc<KatalogObject>,
    gone: bool,
    /// Whether this process leads, as of this turn; one that does not writes nothing.
    leads: bool,
    /// Whether this process as the leader has stored what runs, and seen to what its predecessor left.
    confirmed: bool,
    /// Whether it was acted upon at least once.
    settled: bool,
    /// What was judged last.
    document: Arc<Document>,
    /// What the verdict is about; none before it was judged by the whole schemas.
    judged: Option<Subject>,
    /// The generation that the verdict is about.
    observed: Option<i64>,
    verdict: Verdict,
    /// Compiled and not running yet.
    candidate: Option<Judged>,
    running: Option<Running>,
    /// What the supervisor was told last.
    claimed: Option<Wanted>,
    /// Kinds that were written into the status as operated.
    recorded: BTreeSet<GroupKind>,
    /// Kinds that accepted revisions of this Katalog declared, as far as that was looked at.
    declared: BTreeSet<GroupKind>,
    /// What the deletion waits for.
    waits: Option<String>,
    /// Why the last turn failed.
    trouble: Option<String>,
    /// Whether what goes with the Katalog is gone.
    cleared: bool,
    /// Whether stored revisions were looked through for a good one.
    looked: bool,
    /// Whether it was asked which revision worked when this process took over.
    resumed: bool,
    /// Whether that revision's operators are coming up, which the newest one waits for.
    resuming: bool,
    operated: BTreeMap<GroupKind, OperatedKind>,
    /// Kinds of `operated` to be let go.
    releasing: BTreeMap<OperatedKind, Release>,
    releases: JoinSet<(OperatedKind, Result<Released, ReleaseError>)>,
    views: Vec<OperatorView>,
    failures: u32,
    report: report::Progress,
    /// What Events were published of: operators that are degraded, and a refusal.
    degraded: BTreeSet<String>,
    refused: Option<(Option<i64>, String)>,
}

/// What a verdict is about.
#[derive(Debug, PartialEq)]
struct Subject {
    generation: Option<i64>,
    /// The CRDs of the kinds that the document and its Motifs name.
    crds: Vec<Arc<CrdRecord>>,
    /// The Motifs that it takes.
    motifs: Asked,
}

/// The revision that the operators run, or are to run as soon as they can.
#[derive(Debug)]
struct Running {
    revision: Arc<str>,
    /// Hash of the document, to know it again.
    hash: String,
    plan: Arc<Plan>,
    disabled: Vec<String>,
}

/// How far the release of a kind has come.
#[derive(Debug, Default)]
struct Release {
    under_way: bool,
    failures: u32,
    problem: Option<String>,
    retry_at: Option<Instant>,
    progress: Progress,
}

impl Katalog {
    /// Judges the object and registers what it claims; nothing runs and nothing is written yet.
    pub(crate) fn new(shared: &Arc<Shared>, object: &Arc<KatalogObject>) -> Self {
        let reference = object.reference();
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let client = shared.context.wire.client();
        let operated = object.status.operated.iter();
        let operated = operated.map(|kind| (group_kind(kind), kind.clone()));
        let mut katalog = Self {
            resource: Resource::katalogs(client),
            revisions: Revisions::new(client, &reference, &uid),
            shared: Arc::clone(shared),
            reference,
            uid,
            document: Arc::default(),
            gone: false,
            leads: shared.context.leadership.standing().leads,
            confirmed: false,
            settled: false,
            judged: None,
            observed: None,
            verdict: Verdict::Pending(None),
            candidate: None,
            running: None,
            claimed: None,
            recorded: BTreeSet::new(),
            declared: BTreeSet::new(),
            waits: None,
            trouble: None,
            cleared: false,
            looked: false,
            resumed: false,
            resuming: false,
            operated: operated.collect(),
            object: Arc::clone(object),
            releasing: BTreeMap::new(),
            releases: JoinSet::new(),
            views: Vec::new(),
            failures: 0,
            report: report::Progress::default(),
            degraded: BTreeSet::new(),
            refused: None,
        };
        katalog.judge();
        katalog.claim();
        katalog.publish();
        katalog
    }

    /// Follows the object until it is gone and everything of it released, or until the feed ends.
    pub(crate) async fn run(mut self, mut objects: watch::Receiver<Latest>) {
        let mut snapshot = self.shared.supervisor.snapshot();
        let mut crds = self.shared.context.crds.changed();
        let mut motifs = self.shared.motifs.changed();
        let mut standing = self.shared.context.leadership.changed();
        let mut reach = self.shared.context.wire.reach().view();
        let mut returns = reach.borrow().returns;
        snapshot.mark_changed();
        loop {
            match objects.borrow_and_update().clone() {
                Some(object) => self.see(object),
                None => self.gone = true,
            }
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
            self.stand(leads);
            // While nothing can be written readers are told all the same.
            let retry = if is_up { self.act().await } else { None };
            self.settled = true;
            self.look_at_operators(&mut snapshot);
            if self.is_over() {
                self.shared.supervisor.forget(&self.reference);
                break;
            }
            // What an operator said before it was looked at here wakes nobody.
            let ready = retry.is_none() && is_up && self.has_unrecorded();
            let again = ready.then(Instant::now);
            let due = [retry, again, self.report().await, self.next_release()]
                .into_iter()
                .flatten()
                .min();
            tokio::select! {
                changed = objects.changed() => if changed.is_err() { break },
                // To wait for it marks it as seen; it is looked at above.
                _ = snapshot.changed() => snapshot.mark_changed(),
                Ok(()) = crds.changed() => {}
                Ok(()) = motifs.changed() => {}
                Ok(()) = standing.changed() => {}
                Ok(()) = reach.changed() => {}
                () = any_changed(self.views.iter_mut()) => {}
                Some(done) = self.releases.join_next() => self.note_release(done),
                () = sleep_until(due.unwrap_or_else(far)), if due.is_some() => {}
            }
        }
        self.shared.publisher.remove(&self.reference);
        self.shared.context.accepted.forget(&self.reference);
    }

    /// The API server is back: what failed before says nothing of now.
    fn start_over(&mut self) {
        self.failures = 0;
        self.report.forgive();
        for release in self.releasing.values_mut() {
            release.retry_at = None;
        }
    }

    /// Takes in a state of the object, unless a newer one is known.
    fn see(&mut self, object: Arc<KatalogObject>) {
        // Of the same state what the feed holds too is kept, and of equal documents one.
        if object.is_older_than(&self.object) && !object.rewound {
            return;
        }
        if *object.document == *self.document {
            self.document = Arc::clone(&object.document);
        }
        self.object = object;
    }

    /// Takes in an answer to a write of ours.
    fn see_answer(&mut self, answer: DynamicObject) {
        self.see(Arc::new(KatalogObject::new(answer)));
    }

    /// Reads the object again, after somebody else was faster.
    async fn look_again(&mut self) -> Result<(), CallError> {
        match self
            .resource
            .get(Some(&self.reference.namespace), &self.reference.name)
            .await?
        {
            Some(object) if object.metadata.uid.as_deref() == Some(&self.uid) => {
                self.see_answer(object);
            }
            _ => self.gone = true,
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

    fn is_deleting(&self) -> bool {
        self.gone || self.object.metadata.deletion_timestamp.is_some()
    }

    fn is_over(&self) -> bool {
        // What is left to do is the leader's.
        let done = self.operated.is_empty() || !self.leads;
        self.gone && done && self.releases.is_empty()
    }

    /// Leads or follows from now on.
    fn stand(&mut self, leads: bool) {
        if std::mem::replace(&mut self.leads, leads) == leads {
            return;
        }
        self.confirmed = false;
        self.failures = 0;
        self.report = report::Progress::default();
        self.releasing.retain(|_, release| release.under_way);
    }

    fn seniority(&self) -> Seniority {
        let at = self
            .object
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(jiff::Timestamp::MAX, |time| time.0);
        Seniority::Created {
            at,
            uid: self.uid.clone(),
        }
    }

    /// When to try again after `failures` failures in a row.
    fn after(&self, failures: u32) -> Instant {
        let entropy = &self.shared.context.entropy;
        Instant::now() + RETRY.jittered(failures.saturating_sub(1), entropy, 0.2)
    }
}

/// The kind without plural and version.
pub(crate) fn group_kind(kind: &OperatedKind) -> GroupKind {
    GroupKind {
        group: kind.group.as_str().into(),
        kind: kind.kind.as_str().into(),
    }
}

/// Ends when an operator says something that was not looked at.
pub(crate) async fn any_changed(views: impl Iterator<Item = &mut OperatorView>) {
    let changes = views.map(|view| {
        Box::pin(async {
            if view.status.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    });
    let changes: Vec<_> = changes.collect();
    if changes.is_empty() {
        std::future::pending::<()>().await;
    } else {
        futures::future::select_all(changes).await;
    }
}

/// An instant that is never waited for.
fn far() -> Instant {
    Instant::now() + RETRY.longest
}
