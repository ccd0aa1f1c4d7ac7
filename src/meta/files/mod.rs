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

mod apply;
mod load;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use orkestra_core::{
    api::OperatedKind,
    diagnostics::{Diagnostic, Diagnostics},
    plan::{GroupKind, KatalogRef, Plan, Schemas},
    reasons::KatalogReason,
    reconcile::inventory::Declared,
};
use orkestra_ground::tasks::{self, Task};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use self::apply::AppliedObject;
pub(crate) use self::apply::{apply_manifest, manifests, wait_for};
use self::{apply::Applied, load::Loaded};
use super::{
    calls::CallError,
    claims::{Seniority, Standing},
    directory::{KatalogView, OperatorView},
    katalog::{Shared, any_changed, group_kind, kinds_of, known, whole_schemas},
    ledger::Wanted,
    release::{Progress, release_kind},
    status::{self, Facts, Operating, Verdict},
    supervisor::Holding,
};
use crate::compose::{Fetch, Paced};

/// Katalog files to run.
#[derive(Debug)]
pub struct Files {
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
    /// A revision runs.
    Runs {
        /// The Katalog.
        katalog: KatalogRef,
        /// Its revision.
        revision: String,
        /// Names of its operators.
        operators: Vec<String>,
    },
}

/// Why files cannot run.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The files have errors.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// A Katalog in the cluster has a kind that they declare.
    #[error(
        "Katalog {katalog} in the cluster has {kind}: two operators would undo each other's changes; remove the entry from one Katalog"
    )]
    Claimed {
        /// The kind.
        kind: GroupKind,
        /// The Katalog in the cluster.
        katalog: KatalogRef,
    },
    /// Another installation has a kind that they declare.
    #[error(
        "Katalog {holder} has {kind}: two operators would undo each other's changes; stop that one, or remove the entry from one Katalog"
    )]
    Held {
        /// The kind.
        kind: GroupKind,
        /// The Katalog, and its installation.
        holder: String,
    },
    /// The API server refused, or did not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A CRD was applied and is not served.
    #[error("{0} was applied, but the API server does not serve it after {seconds} s", seconds = .1.as_secs())]
    NotServed(String, Duration),
    /// An object that `setup` waits for is missing or not ready.
    #[error("`setup` waits for {0}, which is not {1} after {2:?}")]
    NotReady(String, &'static str, Duration),
}

impl FileError {
    /// True if the cluster is unreachable, which no change of the files fixes.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_unreachable())
    }
}

/// Compiles Katalog and Komposer files without a cluster: `schemas` holds the CRDs known beside those that the files name,
/// and `fetch` fetches the sources of compositions.
///
/// Returns a plan for each Katalog, in order, and warnings.
///
/// # Errors
/// [`FileError::Read`], or [`FileError::Invalid`] with every problem of every file.
pub async fn compile_files(
    paths: &[PathBuf],
    schemas: &Schemas,
    fetch: &dyn Fetch,
) -> Result<(Vec<Arc<Plan>>, Vec<Diagnostic>), FileError> {
    let contents = load::read(paths).await?;
    let (loaded, warnings) = load::compile(load::parse(&contents), schemas, fetch).await?;
    Ok((
        loaded.into_iter().map(|katalog| katalog.plan).collect(),
        warnings,
    ))
}

/// The running state of the files.
#[derive(Default)]
struct State {
    /// The hash of all contents at the last check.
    seen: Option<String>,
    running: Vec<Loaded>,
    applied: Applied,
    views: BTreeMap<KatalogRef, Vec<OperatorView>>,
    refused: Option<String>,
}

impl Files {
    /// Runs the files until `shutdown`.
    ///
    /// # Errors
    /// The files cannot run when they are first read.
    pub(crate) async fn follow(
        self,
        shared: &Arc<Shared>,
        shutdown: &CancellationToken,
    ) -> Result<(), FileError> {
        let mut state = State::default();
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
            state.publish(shared);
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
        shared: &Arc<Shared>,
        state: &mut State,
        releases: &mut JoinSet<()>,
        fetch: &dyn Fetch,
    ) -> Result<(), FileError> {
        let contents = load::read(&self.paths).await?;
        let hash = load::contents_hash(&contents, fetch).await;
        if state.seen.replace(hash.clone()) == Some(hash) {
            return Ok(());
        }
        let parsed = load::parse(&contents);
        let crds = known(&shared.context.crds, &load::kinds_in(&parsed, fetch).await);
        let schemas = whole_schemas(&shared.context.wire, &crds).await;
        let (loaded, warnings) = load::compile(parsed, &schemas, fetch).await?;
        if !warnings.is_empty() {
            self.tell(Notice::Warned(warnings));
        }
        let kinds: BTreeSet<_> = loaded
            .iter()
            .flat_map(|katalog| kinds_of(&katalog.plan))
            .collect();
        // Kinds that these files have claimed already, in this process or in one that was killed, continue.
        let standings = Arc::clone(&shared.supervisor.standings().borrow());
        let mut free = kinds;
        free.retain(|kind| !matches!(standings.of(kind), Some(Standing::Ours(_))));
        for kind in &free {
            if let Some(Standing::Foreign(holder)) = standings.of(kind) {
                let (kind, holder) = (kind.clone(), holder.to_string());
                return Err(FileError::Held { kind, holder });
            }
        }
        if let Some((kind, katalog)) =
            load::claimed_in_cluster(shared.context.wire.client(), &free).await?
        {
            return Err(FileError::Claimed { kind, katalog });
        }
        for katalog in &loaded {
            state
                .applied
                .apply(shared.context.wire.client(), katalog, &self.notices)
                .await?;
        }
        self.run(shared, state, loaded, releases);
        Ok(())
    }

    /// Lets the supervisor run the loaded Katalogs, and releases kinds that are no longer declared.
    fn run(
        &self,
        shared: &Arc<Shared>,
        state: &mut State,
        loaded: Vec<Loaded>,
        releases: &mut JoinSet<()>,
    ) {
        let kinds: BTreeSet<_> = (loaded.iter())
            .flat_map(|katalog| kinds_of(&katalog.plan))
            .collect();
        for (place, katalog) in loaded.iter().enumerate() {
            for operator in &katalog.plan.operators {
                let accepted = &shared.context.accepted;
                let kind = operator.resource.group_kind();
                accepted.add(&katalog.reference, kind, Declared::of(operator));
            }
            let wanted = Wanted {
                uid: uid_of(&katalog.reference),
                seniority: Seniority::Given(place),
                recorded: kinds_of(&katalog.plan),
                claims: kinds_of(&katalog.plan),
                plan: Some(Arc::clone(&katalog.plan)),
                revision: katalog.revision.as_str().into(),
                storage: katalog.storage.clone(),
                stored: true,
                leftovers: (shared.supervisor.leftovers(&katalog.reference).into_iter())
                    .chain(dropped(&state.running, &katalog.reference))
                    .filter(|kind| !kinds.contains(kind))
                    .collect(),
            };
            shared.supervisor.want(&katalog.reference, wanted);
            self.tell(Notice::Runs {
                katalog: katalog.reference.clone(),
                revision: katalog.revision.clone(),
                operators: katalog
                    .plan
                    .operators
                    .iter()
                    .map(|operator| operator.name.clone())
                    .collect(),
            });
        }
        let before = std::mem::replace(&mut state.running, loaded);
        for old in before.iter().filter(|old| {
            state
                .running
                .iter()
                .all(|new| new.reference != old.reference)
        }) {
            let leftovers = kinds_of(&old.plan);
            let leftovers = leftovers.into_iter().filter(|kind| !kinds.contains(kind));
            shared
                .supervisor
                .let_go(&old.reference, leftovers.collect());
            shared.publisher.remove(&old.reference);
        }
        for old in &before {
            for kind in operated(&old.plan) {
                if !kinds.contains(&group_kind(&kind)) {
                    let katalog = old.reference.clone();
                    let named = tasks::named(Task::Release, group_kind(&kind));
                    named.start_in(releases, release(Arc::clone(shared), katalog, kind));
                }
            }
        }
        state.refused = None;
    }

    /// Reports an error; the last good revision stays. A failure of the cluster alone is retried at the next check.
    fn refuse(&self, state: &mut State, error: FileError) {
        if !matches!(error, FileError::Invalid(_)) {
            state.seen = None;
        }
        let text = error.to_string();
        if state.refused.replace(text.clone()) != Some(text) {
            self.tell(Notice::Refused(error));
        }
    }

    fn tell(&self, notice: Notice) {
        // There may be no receiver.
        let _ = self.notices.send(notice);
    }
}

impl State {
    /// Publishes the Katalogs for readers.
    fn publish(&mut self, shared: &Shared) {
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
            let facts = Facts {
                generation: None,
                verdict: &verdict,
                revision: Some(&katalog.revision),
                operators: &operators,
                disabled: &katalog.disabled,
                stopped: &katalog.plan.stopped,
                operated: &[],
                releasing: &BTreeMap::new(),
                waits: None,
                trouble: None,
            };
            let ready = status::readiness(&facts);
            drop(operators);
            shared.publisher.put(KatalogView {
                reference: katalog.reference.clone(),
                about: katalog.about.clone(),
                plan: Some(Arc::clone(&katalog.plan)),
                ready,
                revision: Some(katalog.revision.clone()),
                operators: views.to_vec(),
                disabled: katalog.disabled.clone(),
                settled: true,
            });
        }
    }
}

/// Returns the value used as the uid of a Katalog from a file.
fn uid_of(katalog: &KatalogRef) -> String {
    katalog.to_string()
}

/// Returns the kinds of a Katalog in `running`.
fn dropped(running: &[Loaded], katalog: &KatalogRef) -> BTreeSet<GroupKind> {
    let old = running.iter().filter(|old| old.reference == *katalog);
    old.flat_map(|old| kinds_of(&old.plan)).collect()
}

/// Returns the kinds that a plan operates, for their release.
fn operated(plan: &Plan) -> Vec<OperatedKind> {
    plan.operators
        .iter()
        .map(|operator| super::release::operated(operator))
        .collect()
}

/// Releases a kind once its operator has stopped, unless it is wanted again.
async fn release(shared: Arc<Shared>, katalog: KatalogRef, kind: OperatedKind) {
    let left = group_kind(&kind);
    release_left(&shared, &uid_of(&katalog), &kind).await;
    shared.supervisor.released(&katalog, &left);
}

async fn release_left(shared: &Shared, uid: &str, kind: &OperatedKind) {
    let held = group_kind(kind);
    let mut snapshot = shared.supervisor.snapshot();
    loop {
        match shared.supervisor.hold(&held, uid) {
            Holding::Claimed(_) => return,
            Holding::Busy | Holding::Unclaimed(_) => {
                if snapshot.changed().await.is_err() {
                    return;
                }
            }
            Holding::Held(_held) => {
                let client = shared.context.wire.client();
                match release_kind(client, kind, &Progress::default()).await {
                    Ok(released) => {
                        tracing::info!(
                            kind = kind.kind,
                            resources = released.resources,
                            children = released.children,
                            "kind released"
                        );
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(kind = kind.kind, error = %error, "cannot release kind");
                        tokio::time::sleep(Duration::from_secs(10)).await;
                    }
                }
            }
        }
    }
}
