//! The running Katalogs and operators, for readers: the HTTP pages, the command line, tests.
//!
//! ```text
//!  supervisor, Katalog controller ── publish ──► snapshot ──► Directory (any number of readers)
//!                                                              └ OperatorView::status: live, of each operator
//! ```
//!
//! A snapshot changes when Katalogs or operators are added or removed, or a Katalog's readiness changes. Counts change far
//! more often; they are read from each operator's own [`OperatorStatus`].

use std::{borrow::Cow, sync::Arc};

use orkestra_compiler::compose::SourceRecord;
use orkestra_language::api::{OperatorStatus as Row, SourceStatus};
use orkestra_plan::{Declaring, KatalogRef, OperatorPlan, Plan, Plans, Revised};
use tokio::sync::watch;

use orkestra_operator::OperatorStatus;

/// The Katalogs of this process, sorted by namespace and name. Clones are cheap and share the same state.
#[derive(Clone, Debug)]
pub struct Directory {
    snapshot: watch::Receiver<Arc<[KatalogView]>>,
}

/// The writer of a [`Directory`].
#[derive(Debug)]
pub struct Publisher {
    snapshot: watch::Sender<Arc<[KatalogView]>>,
}

/// One Katalog.
#[derive(Clone, Debug)]
pub struct KatalogView {
    /// Its namespace and name. Katalogs from files have namespace `default`.
    pub reference: KatalogRef,
    /// The kind of its document. The reference of a Komposer from a file is that of a Katalog.
    pub kind: Declaring,
    /// The sources that it is composed from, in the order in which they are merged.
    pub sources: Vec<SourceView>,
    /// Its descriptive metadata.
    pub about: KatalogInfo,
    /// The newest accepted revision; none until one was accepted.
    pub plan: Option<Arc<Plan>>,
    /// Its `Ready` condition.
    pub ready: Readiness,
    /// The name of the revision that is in force; none until one was accepted.
    pub revision: Option<String>,
    /// One for each enabled entry of the newest accepted revision, sorted by name.
    pub operators: Vec<OperatorView>,
    /// Entries with `enabled: false`, sorted.
    pub disabled: Vec<String>,
    /// Whether it was processed at least once, so that its operators are known.
    pub settled: bool,
    /// False while it may have an accepted revision that this process has not read: then nothing is known about what it declares.
    pub decided: bool,
    /// Whether its status says that policies of the API server apply rules of it.
    pub had_policies: bool,
}

/// Whether what an entry declares about a kind applies to it: its rules, protections and conversions. Decided by the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InForce {
    /// Its Katalog holds the kind.
    Yes,
    /// Another Katalog or installation holds the kind, the kind cannot be claimed, or its Katalog is suspended and never operated
    /// the kind.
    No,
    /// It is not known yet who holds the kind.
    Undecided,
}

/// One source of a composition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceView {
    /// Its state.
    pub status: SourceStatus,
    /// The entries of the newest accepted revision that come from it, sorted.
    pub operators: Vec<String>,
}

/// The descriptive metadata of a Katalog; missing fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KatalogInfo {
    /// A one-sentence description.
    pub description: String,
    /// Its own version, not an API version.
    pub version: String,
    /// Its author.
    pub author: String,
    /// Its license.
    pub license: String,
}

/// A `Ready` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether it holds; none means `Unknown`.
    pub status: Option<bool>,
    /// CamelCase, from a fixed set.
    pub reason: Cow<'static, str>,
    /// A human-readable message.
    pub message: String,
}

/// One entry of a Katalog.
#[derive(Clone, Debug)]
pub struct OperatorView {
    /// The plan of the newest accepted revision. Its status says which plan runs.
    pub wanted: Revised,
    /// Its live status. An entry that was not started because of a conflict stays `Waiting`.
    pub status: watch::Receiver<OperatorStatus>,
    /// The Katalog that holds this kind, as `namespace/name`, if it is not this one.
    pub conflict: Option<String>,
    /// Whether what it declares is in force.
    pub in_force: InForce,
    /// The row that the leading process wrote for it, if another process leads and has written one.
    pub reported: Option<Arc<Row>>,
}

impl Publisher {
    /// Creates a directory without Katalogs, and its writer.
    pub fn new() -> (Self, Directory) {
        let (sender, receiver) = watch::channel(Arc::from(Vec::new()));
        (Self { snapshot: sender }, Directory { snapshot: receiver })
    }

    /// Adds a Katalog, or replaces the one of that name. Readers are notified only if more than counts differs.
    pub fn put(&self, katalog: KatalogView) {
        self.snapshot.send_if_modified(|snapshot| {
            let mut katalogs = snapshot.to_vec();
            match katalogs.binary_search_by(|other| other.reference.cmp(&katalog.reference)) {
                Ok(at) if katalogs[at].is_same(&katalog) => return false,
                Ok(at) => katalogs[at] = katalog,
                Err(at) => katalogs.insert(at, katalog),
            }
            *snapshot = katalogs.into();
            true
        });
    }

    /// Removes a Katalog.
    pub fn remove(&self, reference: &KatalogRef) {
        self.snapshot.send_if_modified(|snapshot| {
            let kept: Vec<_> = snapshot
                .iter()
                .filter(|katalog| katalog.reference != *reference)
                .cloned()
                .collect();
            let modified = kept.len() != snapshot.len();
            *snapshot = kept.into();
            modified
        });
    }
}

impl Directory {
    /// Creates a directory that never changes, for tests of readers.
    pub fn fixed(katalogs: Vec<KatalogView>) -> Self {
        let (publisher, directory) = Publisher::new();
        for katalog in katalogs {
            publisher.put(katalog);
        }
        directory
    }

    /// Returns all Katalogs, sorted by namespace and name.
    pub fn katalogs(&self) -> Arc<[KatalogView]> {
        self.snapshot.borrow().clone()
    }

    /// Returns one Katalog.
    pub fn katalog(&self, reference: &KatalogRef) -> Option<KatalogView> {
        self.snapshot
            .borrow()
            .iter()
            .find(|katalog| katalog.reference == *reference)
            .cloned()
    }

    /// Returns once each Katalog was processed and each operator has filled its caches, or reports what prevents it.
    pub async fn warm(mut self) {
        loop {
            let katalogs = self.snapshot.borrow_and_update().clone();
            let mut cold: Vec<OperatorView> = katalogs
                .iter()
                .flat_map(|katalog| katalog.operators.iter().cloned())
                .collect();
            cold.retain_mut(|operator| !operator.is_settled());
            if cold.is_empty() && katalogs.iter().all(|katalog| katalog.settled) {
                return;
            }
            tokio::select! {
                alive = self.changed() => if !alive { return },
                () = any_changed(cold.iter_mut()) => {}
            }
        }
    }

    /// Waits until the snapshot changes after the last call of this method on this clone; false if it will not change again
    /// because the runtime has ended.
    pub async fn changed(&mut self) -> bool {
        self.snapshot.changed().await.is_ok()
    }
}

impl KatalogInfo {
    /// Reads it from a Katalog's document: below `metadata`, or below `spec.info`, since the API server would drop unknown
    /// metadata.
    pub fn read(document: &serde_json::Value) -> Self {
        let text = |field: &str| {
            let places = [format!("/metadata/{field}"), format!("/spec/info/{field}")];
            places
                .iter()
                .find_map(|place| document.pointer(place)?.as_str())
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            description: text("description"),
            version: text("version"),
            author: text("author"),
            license: text("license"),
        }
    }
}

impl SourceView {
    /// Returns the sources of `rows` with their entries of a composition.
    pub fn of(rows: &[SourceStatus], records: &[SourceRecord]) -> Vec<Self> {
        let view = |row: &SourceStatus| {
            let record = records.iter().find(|record| record.source == row.source);
            Self {
                status: row.clone(),
                operators: record.map_or_else(Vec::new, |record| record.operators.clone()),
            }
        };
        rows.iter().map(view).collect()
    }
}

impl KatalogView {
    fn is_same(&self, other: &Self) -> bool {
        let Self {
            reference,
            kind,
            sources,
            about,
            plan,
            ready,
            revision,
            operators,
            disabled,
            settled,
            decided,
            had_policies,
        } = self;
        let same_plan = plan.as_ref().map(Arc::as_ptr) == other.plan.as_ref().map(Arc::as_ptr);
        let same_operators = operators.len() == other.operators.len()
            && operators
                .iter()
                .zip(&other.operators)
                .all(|(a, b)| a.is_same(b));
        same_plan
            && same_operators
            && (reference, kind, sources, about)
                == (&other.reference, &other.kind, &other.sources, &other.about)
            && (ready, revision, disabled) == (&other.ready, &other.revision, &other.disabled)
            && (settled, decided, had_policies)
                == (&other.settled, &other.decided, &other.had_policies)
    }

    /// Returns the identity of the source that an entry comes from; none for an entry that the document declares itself.
    pub fn source_of(&self, entry: &str) -> Option<&str> {
        let has = |source: &&SourceView| source.operators.iter().any(|name| name == entry);
        self.sources
            .iter()
            .find(has)
            .map(|source| &*source.status.source)
    }

    /// Returns the operator of that entry.
    pub fn operator(&self, name: &str) -> Option<&OperatorView> {
        self.operators
            .iter()
            .find(|operator| operator.name() == name)
    }
}

impl OperatorView {
    fn is_same(&self, other: &Self) -> bool {
        self.wanted == other.wanted
            && self.status.same_channel(&other.status)
            && self.conflict == other.conflict
            && self.in_force == other.in_force
            && self.reported == other.reported
    }

    /// Returns the name of the entry.
    pub fn name(&self) -> &str {
        &self.wanted.plan.name
    }

    /// Returns its effective plan according to its status: the running one, or the wanted one if none runs.
    pub fn plan<'a>(&'a self, status: &'a OperatorStatus) -> &'a Arc<OperatorPlan> {
        let effective = status.plans.as_ref().map(Plans::effective);
        &effective.unwrap_or(&self.wanted).plan
    }

    /// True if it runs the wanted plan, or cannot until the cluster changes.
    pub(crate) fn is_settled(&mut self) -> bool {
        let status = self.status.borrow_and_update();
        status.runs(&self.wanted) || self.conflict.is_some() || status.is_blocked
    }
}

/// Returns when an operator has a status that was not seen yet.
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

#[cfg(test)]
mod tests {
    use orkestra_language::reasons::KatalogReason;
    use tokio::sync::watch;

    use super::{super::testing, *};
    use orkestra_operator::OperatorProblem;

    /// A race after a restart: the watch of a kind that only the newest revision declares is refused before the other watches have
    /// synced. The problem is reported, and the operator keeps the revision that works.
    #[test]
    fn an_operator_that_reports_a_problem_while_its_caches_fill_has_not_settled() {
        let plan = testing::operator("Pond");
        let revision = "r-1".into();
        let wanted = Revised { plan, revision };
        let status = OperatorStatus {
            plans: Some(Plans::new(wanted.clone())),
            problems: vec![OperatorProblem {
                reason: KatalogReason::Forbidden,
                message: "list of another revision's kind".to_owned(),
            }],
            ..OperatorStatus::default()
        };
        let (sender, status) = watch::channel(status);
        let mut view = OperatorView {
            wanted: wanted.clone(),
            status,
            conflict: None,
            in_force: InForce::Yes,
            reported: None,
        };
        assert!(!view.is_settled());
        sender.send_modify(|status| status.is_blocked = true);
        assert!(view.is_settled());
        sender.send_modify(|status| {
            status.is_blocked = false;
            let mut plans = Plans::new(wanted.clone());
            plans.run(wanted);
            status.plans = Some(plans);
        });
        assert!(view.is_settled());
    }
}
