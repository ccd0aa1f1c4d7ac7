//! The same engine with Katalogs from files: `ork run`.
//!
//! ```text
//!  files ── read ──► documents ── compile ──► not claimed in the cluster? ──► setup, crdFile, crFiles applied ──► run
//!    ▲                    │
//!    └── each second ◄────┴─ an error: reported, and the last good revision stays
//! ```
//!
//! Revisions live in memory only. When the process ends, finalizers stay on the custom resources: the next run continues with
//! them, and `ork release` removes them.
//!
//! One file: the state of the files and its transitions.

mod apply;
mod charts;
mod error;
mod load;
mod manifest;
mod release;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use orkestra_compiler::compose::SourceRecord;
use orkestra_engine::reconcile::inventory::DeclaredKinds;
use orkestra_ground::tasks::{self, Task};
use orkestra_language::{diagnostics::Diagnostic, reasons::KatalogReason};
use orkestra_plan::{GroupKind, KatalogRef, Plan, definitions::Schemas};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use self::manifest::{apply_manifest, manifests, wait_for};
use self::{
    apply::Applied,
    charts::RenderEnvironment,
    load::LoadedKatalog,
    release::{dropped, operated, release},
};
pub use self::{error::FileError, manifest::AppliedObject};
use super::{
    claims::{ClaimState, Seniority},
    directory::{KatalogView, OperatorView, SourceView, any_changed},
    katalog::{ControllerContext, kinds_of},
    known::{known, whole_schemas},
    ledger::WantedKatalog,
    release::group_kind,
    status::{
        self, Enforces, Operating, OperatorLine, ReportedState, ReportedStates, StatusInputs,
        Verdict,
    },
};
use orkestra_loader::compose::{Fetch, Paced};

/// Katalog files to run.
#[derive(Debug)]
pub struct KatalogFiles {
    /// The files, in the order of their claims.
    pub paths: Vec<PathBuf>,
    /// The interval at which they are checked.
    pub poll: Duration,
    /// Receives notices; it may have no receiver.
    pub notices: mpsc::UnboundedSender<Notice>,
    /// Fetches the sources of compositions.
    pub fetch: Arc<dyn Fetch>,
}

/// An event of running files.
#[derive(Debug)]
pub enum Notice {
    /// A new revision has errors; the last good one stays.
    Refused(FileError),
    /// A revision has warnings.
    Warned(Vec<Diagnostic>),
    /// A manifest was applied.
    Applied(AppliedObject),
    /// A revision is loaded: its operators run it as soon as they can.
    Loaded {
        /// The Katalog.
        katalog: KatalogRef,
        /// Its revision.
        revision: String,
        /// Names of its operators.
        operators: Vec<String>,
    },
    /// The state of an operator changed: what it runs or waits for, with the remedy.
    Operator(String),
}

/// Compiles Katalog and Komposer files without a cluster: `schemas` holds the CRDs known beside those that the files name,
/// and `fetch` fetches the sources of compositions. With `manages_definitions`, the plans are those of a controller that applies the
/// definitions which `schema` of entries generates.
///
/// Returns a plan for each Katalog, in order, and warnings.
///
/// # Errors
/// [`FileError::Read`], or [`FileError::Invalid`] with every problem of every file.
pub async fn compile_files(
    paths: &[PathBuf],
    schemas: &Schemas,
    fetch: &dyn Fetch,
    manages_definitions: bool,
) -> Result<(Vec<Arc<Plan>>, Vec<Diagnostic>), FileError> {
    let contents = load::read(paths).await?;
    let gathered = load::gather(&contents, fetch, manages_definitions).await;
    let (loaded, warnings) = gathered.compile(schemas, fetch).await?;
    Ok((
        loaded.into_iter().map(|katalog| katalog.plan).collect(),
        warnings,
    ))
}

/// The running state of the files.
#[derive(Default)]
struct FilesState {
    /// The hash of all contents at the last check.
    seen: Option<String>,
    running: Vec<LoadedKatalog>,
    applied: Applied,
    views: BTreeMap<KatalogRef, Vec<OperatorView>>,
    refused: Option<String>,
    /// The states of operators that were reported.
    reported: BTreeMap<KatalogRef, ReportedStates>,
}

impl KatalogFiles {
    /// Runs the files until `shutdown`.
    ///
    /// # Errors
    /// The files cannot run when they are first read.
    pub(crate) async fn follow(
        self,
        shared: &Arc<ControllerContext>,
        shutdown: &CancellationToken,
    ) -> Result<(), FileError> {
        let mut state = FilesState::default();
        // The files are checked each second, and servers at the intervals of their sources.
        let fetch = Paced::new(Arc::clone(&self.fetch));
        let mut releases = JoinSet::new();
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            first = self.reload(shared, &mut state, &mut releases, &fetch) => first?,
        }
        shared.synced.send_replace(true);
        let mut snapshot = shared.supervisor.snapshot();
        snapshot.mark_changed();
        let mut poll = tokio::time::interval(self.poll);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if snapshot.has_changed().unwrap_or_default() {
                state.views = BTreeMap::clone(&snapshot.borrow_and_update());
            }
            for line in state.publish(shared) {
                self.report(Notice::Operator(line.text));
            }
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                // Awaiting a change marks it as seen; it is handled above.
                _ = snapshot.changed() => snapshot.mark_changed(),
                () = any_changed(state.views.values_mut().flatten()) => {}
                Some(_) = releases.join_next() => {}
                _ = poll.tick() => tokio::select! {
                    () = shutdown.cancelled() => return Ok(()),
                    reloaded = self.reload(shared, &mut state, &mut releases, &fetch) => if let Err(error) = reloaded {
                        self.refuse(&mut state, error);
                    }
                },
            }
        }
    }

    /// Reads the files and runs them if they changed.
    async fn reload(
        &self,
        shared: &Arc<ControllerContext>,
        state: &mut FilesState,
        releases: &mut JoinSet<()>,
        fetch: &dyn Fetch,
    ) -> Result<(), FileError> {
        let contents = load::read(&self.paths).await?;
        let gathered = load::gather(&contents, fetch, false).await;
        let hash = gathered.hash(&contents).await;
        if state.seen.replace(hash.clone()) == Some(hash) {
            return Ok(());
        }
        let crds = known(&shared.context.crds, &gathered.kinds());
        let schemas = whole_schemas(&shared.context.cluster, &crds).await;
        let (loaded, warnings) = gathered.compile(&schemas, fetch).await?;
        if !warnings.is_empty() {
            self.report(Notice::Warned(warnings));
        }
        let kinds: BTreeSet<_> = loaded
            .iter()
            .flat_map(|katalog| kinds_of(&katalog.plan))
            .collect();
        // Kinds that these files have claimed already, in this process or in one that was killed, continue.
        let standings = Arc::clone(&shared.supervisor.standings().borrow());
        let mut free = kinds;
        free.retain(|kind| !matches!(standings.of(kind), Some(ClaimState::Ours(_))));
        for kind in &free {
            if let Some(ClaimState::Foreign(holder)) = standings.of(kind) {
                let (kind, holder) = (kind.clone(), holder.to_string());
                return Err(FileError::Held { kind, holder });
            }
        }
        if let Some((kind, katalog)) =
            load::claimed_in_cluster(&shared.context.cluster, &free).await?
        {
            return Err(FileError::Claimed { kind, katalog });
        }
        let context = &shared.context;
        let (cluster, random) = (
            &context.cluster,
            RenderEnvironment {
                now: context.clock.now(),
                seed: context.entropy.seed(),
            },
        );
        for katalog in &loaded {
            let applied = &mut state.applied;
            applied
                .apply(cluster, fetch, katalog, &random, &self.notices)
                .await?;
        }
        self.run(shared, state, loaded, releases);
        Ok(())
    }

    /// Lets the supervisor run the loaded Katalogs, and releases kinds that are no longer declared.
    fn run(
        &self,
        shared: &Arc<ControllerContext>,
        state: &mut FilesState,
        loaded: Vec<LoadedKatalog>,
        releases: &mut JoinSet<()>,
    ) {
        let kinds: BTreeSet<_> = (loaded.iter())
            .flat_map(|katalog| kinds_of(&katalog.plan))
            .collect();
        for (place, katalog) in loaded.iter().enumerate() {
            for operator in &katalog.plan.operators {
                let accepted = &shared.context.accepted;
                let kind = operator.resource.group_kind();
                // Nothing records the revisions that an earlier process ran, whose children may be in any namespace.
                let declared = DeclaredKinds {
                    any_target: true,
                    ..DeclaredKinds::of(operator)
                };
                accepted.add(&katalog.reference, kind, declared);
            }
            let wanted = WantedKatalog {
                uid: uid_of(&katalog.reference),
                seniority: Seniority::Given(place),
                recorded: kinds_of(&katalog.plan),
                // Files are ranked by their order alone.
                operated: BTreeSet::new(),
                claims: kinds_of(&katalog.plan),
                plan: Some(Arc::clone(&katalog.plan)),
                revision: katalog.revision.as_str().into(),
                storage: katalog.storage.clone(),
                stored: true,
                suspended: katalog.suspended,
                leftovers: (shared.supervisor.leftovers(&katalog.reference).into_iter())
                    .chain(dropped(&state.running, &katalog.reference))
                    .filter(|kind| !kinds.contains(kind))
                    .collect(),
            };
            shared.supervisor.want(&katalog.reference, wanted);
            let operators = katalog.plan.operators.iter();
            self.report(Notice::Loaded {
                katalog: katalog.reference.clone(),
                revision: katalog.revision.clone(),
                operators: operators.map(|operator| operator.name.clone()).collect(),
            });
        }
        let before = std::mem::replace(&mut state.running, loaded);
        release_dropped(shared, (&before, &state.running), &kinds, releases);
        state.refused = None;
    }

    /// Reports an error; the last good revision stays. A failure of the cluster alone is retried at the next check.
    fn refuse(&self, state: &mut FilesState, error: FileError) {
        if !matches!(error, FileError::Invalid(_)) {
            state.seen = None;
        }
        let text = error.to_string();
        if state.refused.replace(text.clone()) != Some(text) {
            self.report(Notice::Refused(error));
        }
    }

    fn report(&self, notice: Notice) {
        // There may be no receiver.
        let _ = self.notices.send(notice);
    }
}

/// Lets the supervisor forget Katalogs that are gone, and releases kinds that no Katalog declares any more.
fn release_dropped(
    shared: &Arc<ControllerContext>,
    (before, running): (&[LoadedKatalog], &[LoadedKatalog]),
    kinds: &BTreeSet<GroupKind>,
    releases: &mut JoinSet<()>,
) {
    let is_gone = |old: &&LoadedKatalog| running.iter().all(|new| new.reference != old.reference);
    for old in before.iter().filter(is_gone) {
        let leftovers = kinds_of(&old.plan);
        let leftovers = leftovers.into_iter().filter(|kind| !kinds.contains(kind));
        shared
            .supervisor
            .release(&old.reference, leftovers.collect());
        shared.publisher.remove(&old.reference);
    }
    for old in before {
        for kind in operated(&old.plan) {
            if !kinds.contains(&group_kind(&kind)) {
                let katalog = old.reference.clone();
                let named = tasks::named(Task::Release, group_kind(&kind));
                named.start_in(releases, release(Arc::clone(shared), katalog, kind));
            }
        }
    }
}

impl FilesState {
    // Over 60 lines: two values of many fields.
    /// Publishes the Katalogs for readers; returns a line for each state of an operator that differs.
    fn publish(&mut self, shared: &ControllerContext) -> Vec<OperatorLine> {
        let mut lines = Vec::new();
        (self.reported).retain(|reference, _| self.views.contains_key(reference));
        for katalog in &self.running {
            let views = self
                .views
                .get_mut(&katalog.reference)
                .map(Vec::as_mut_slice)
                .unwrap_or_default();
            let statuses: Vec<_> = views
                .iter_mut()
                .map(|view| view.status.borrow_and_update().clone())
                .collect();
            let operating = |(view, status)| {
                let view: &OperatorView = view;
                Operating {
                    wanted: &view.wanted,
                    status,
                    conflict: view.conflict.is_some(),
                }
            };
            let operators: Vec<_> = views.iter().zip(statuses).map(operating).collect();
            let verdict = match &self.refused {
                None => Verdict::Accepted,
                Some(why) => Verdict::Refused {
                    reason: KatalogReason::InvalidRevision,
                    message: why.clone(),
                },
            };
            let inputs = StatusInputs {
                suspended: katalog.suspended,
                generation: None,
                verdict: &verdict,
                revision: Some(&katalog.revision),
                operators: &operators,
                disabled: &katalog.disabled,
                stopped: &katalog.plan.stopped,
                operated: &[],
                releasing: &BTreeMap::new(),
                sources: &[],
                source_problem: None,
                unenforced: &[],
                enforces: Enforces::default(),
                waits: None,
                deletion_problem: None,
            };
            let ready = status::readiness(&inputs);
            let states = ReportedState::of_all(&operators);
            let reported = self.reported.entry(katalog.reference.clone()).or_default();
            lines.extend(reported.changes(states));
            drop(operators);
            let rows: Vec<_> = katalog.sources.iter().map(SourceRecord::row).collect();
            shared.publisher.put(KatalogView {
                reference: katalog.reference.clone(),
                kind: katalog.kind,
                sources: SourceView::of(&rows, &katalog.sources),
                about: katalog.about.clone(),
                plan: Some(Arc::clone(&katalog.plan)),
                ready,
                revision: Some(katalog.revision.clone()),
                operators: views.to_vec(),
                disabled: katalog.disabled.clone(),
                settled: true,
                decided: true,
                had_policies: false,
            });
        }
        lines
    }
}

/// Returns the value used as the uid of a Katalog from a file.
fn uid_of(katalog: &KatalogRef) -> String {
    katalog.to_string()
}
