//! The inputs of a pass beside the custom resource and its children: it requests reads, and is called again with the answers.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    calls::{self, Request},
    cleanup::Cleanup,
    cross::CrossRead,
    data_source::{self, FIXED, PassInput, SELECTED, fill_from},
    gate::GateEffects,
    hold_reason,
    prepare::{self, Prepared},
    record::Observed,
    related::RelatedRead,
    step::{Failure, StepResult as PassStep},
    unique,
};
use crate::{
    plan::{
        ChildKey, EXTERNAL, GroupKind, Moment, Number, OLD, OPERATION, OperatorPlan, Stage,
        introspection::Introspection,
    },
    template::Data,
    value::{Key, Map, Node, Path, PathStep},
};

/// Data that a pass needs and that its records do not hold. Equal reads have one answer in a pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// An object of another owner, which a child copies, refers to or is created in. It comes without metadata; a Namespace
    /// comes with its labels.
    Object(ChildKey),
    /// An external call; [`answered`](super::calls::answered) creates its answer.
    Call(Box<Request>),
    /// A certificate signed by its own authority: a map of [`CERTIFICATE_PARTS`] to text in PEM.
    Certificate(Certificate),
    /// The key of another custom resource of the operator that has this text at this path.
    Same(Path, Box<str>),
    /// The parts of a custom resource of another operator that the plan reads.
    Cross(CrossRead),
    /// The status and metrics of the operator that an entry of `cross` names.
    Operator(Key),
    /// The objects from which an addition to a child is made: a list of their records.
    Related(RelatedRead),
    /// The latest Event of the custom resource for the entry of `observe.events` of that name.
    Event(Key),
    /// The objects of that kind that lead to the custom resource by `observe.watch`: a map by name of their records.
    Watched(GroupKind),
    /// Data about the operator itself and its process.
    Introspection(Introspection),
}

impl Read {
    /// True if its answer may change and its readers must be queued then. Each pass makes its calls again, and an Event
    /// triggers a pass itself. Figures of the operator change with each pass, so that they trigger none; its state triggers
    /// a pass of all.
    pub fn may_change(&self) -> bool {
        !matches!(
            self,
            Self::Call(_) | Self::Event(_) | Self::Watched(_) | Self::Introspection(_)
        )
    }
}

/// The subject of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Certificate {
    /// The Secret that holds it: each gets its own.
    pub holder: ChildKey,
    /// The common name, at most 64 characters.
    pub common_name: Option<String>,
    /// DNS names, including wildcards, and addresses.
    pub hosts: Vec<String>,
    /// The start of its validity.
    pub not_before: Timestamp,
    /// The end of its validity.
    pub not_after: Timestamp,
}

/// The parts of a certificate: chain, private key and the authority's certificate. Source: Kubernetes, "TLS Secrets".
pub const CERTIFICATE_PARTS: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// The result of a read. It is kept for the whole pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The requested data.
    Ready(Arc<Node>),
    /// It does not exist.
    Absent,
    /// It is unknown whether it exists, with the reason.
    Unavailable(Box<str>),
}

/// The maximum number of read rounds in a pass; further reads are unavailable.
pub const ROUNDS: usize = 8;

/// The answers of a pass so far.
pub type Answers = BTreeMap<Read, Answer>;

/// The data for templates and conditions of a pass beside the custom resource's own fields and its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sources {
    /// The custom resource as templates see it, if it differs from the one read: normalized and completed.
    pub cr: Option<Node>,
    /// The result of preparing it.
    pub prepared: Prepared,
    /// The moment at which rules are evaluated.
    pub moment: Moment,
    /// `.old` and `.operation` of rules; null in passes.
    pub written: (Node, Node),
    /// Further roots that the plan reads: `.cross`, `.events`, `.health`, `.metrics`, `.ork` and `._normalizeChanges`.
    pub roots: BTreeMap<&'static str, Node>,
    /// The additions to children, by child and key.
    pub added: BTreeMap<(ChildKey, &'static str), Node>,
    /// The data that cannot be read at the moment: the path from the root, such as `cross.db`, and the reason. A condition
    /// that reads it neither creates nor deletes.
    pub unavailable: Vec<(Path, Box<str>)>,
    /// `.external`, for the Katalog and for the Motif of each import.
    pub external: BTreeMap<Option<usize>, Node>,
    /// Objects below `.children` that the operator does not create, by kind: a map by name.
    pub watched: BTreeMap<GroupKind, Node>,
    /// When the result of a condition evaluated so far changes.
    pub wake: Option<Timestamp>,
    /// The comparisons that they could not make.
    pub doubts: Vec<Failure>,
    /// The state of the custom resource if the conditions of its cleanup hold.
    pub cleanup: Option<Cleanup>,
    /// Whether other custom resources have the same text at the paths that `unique` checks.
    pub same: BTreeMap<Path, Answer>,
}

impl Sources {
    /// Collects the data of a pass of `plan`, in this order:
    ///
    /// ```text
    ///  normalize, mutation ──► cross, enrich ──► gates ──► validation ──► calls of the box and its blocks
    ///                                              └─ if mutation waits for answers: mutation, cross, enrich ─┘
    /// ```
    ///
    /// Calls are made before the declarations that contain them.
    ///
    /// # Errors
    /// The reads that are not answered yet, or the pass, if it is already decided.
    pub(super) fn of(
        plan: &OperatorPlan,
        observed: &Observed,
        now: Timestamp,
    ) -> Result<Self, PassStep> {
        let rules = &plan.rules;
        let input = PassInput {
            plan,
            observed,
            now,
        };
        let mut sources = Self::begin(input)?;
        let early = if rules.late { &[] } else { &*rules.mutation };
        prepare::complete(plan, observed, now, early, &mut sources);
        if !rules.late || plan.holds_back() {
            fill_from(&SELECTED, input, &mut sources)?;
            hold_reason::evaluate_gates(plan, observed, &mut sources, now)?;
        }
        // Nothing more is read for a custom resource that is refused.
        if rules.late && !sources.is_refused() {
            sources = sources.anew(input)?;
            calls::make(plan, observed, &mut sources, Stage::Mutation, now)?;
            prepare::complete(plan, observed, now, &rules.mutation, &mut sources);
            fill_from(&SELECTED, input, &mut sources)?;
        }
        for stage in [Stage::Validation, Stage::Box] {
            if sources.is_refused() {
                break;
            }
            calls::make(plan, observed, &mut sources, stage, now)?;
            if stage == Stage::Validation {
                prepare::validate(plan, observed, now, &mut sources);
            }
        }
        Ok(sources)
    }

    /// Collects the data that need no template.
    fn begin(input: PassInput<'_>) -> Result<Self, Vec<Read>> {
        let PassInput { plan, observed, .. } = input;
        let mut sources = Self {
            same: unique::of(plan, observed)?,
            unavailable: unseen_children(plan, observed),
            ..Self::default()
        };
        fill_from(&FIXED, input, &mut sources)?;
        Ok(sources)
    }

    /// Drops the data read for the gates, which were selected by the custom resource before its completion.
    fn anew(self, input: PassInput<'_>) -> Result<Self, Vec<Read>> {
        Ok(Self {
            cr: self.cr,
            prepared: self.prepared,
            external: self.external,
            wake: self.wake,
            doubts: self.doubts,
            ..Self::begin(input)?
        })
    }

    /// Adds an entry to the root `root`, a map by name.
    pub(super) fn put(&mut self, root: &'static str, name: &Key, value: Node) {
        let map = self.roots.entry(root).or_default();
        if !matches!(map, Node::Map(_)) {
            *map = Node::Map(Map::default());
        }
        if let Node::Map(map) = map {
            map.insert(name.clone(), value);
        }
    }

    /// True if no child is created for the custom resource in its current form.
    pub(super) fn is_refused(&self) -> bool {
        !self.prepared.failures.is_empty()
    }

    /// Records the side results of conditions.
    pub(super) fn heard(&mut self, effects: &GateEffects) {
        self.wake = self.wake.into_iter().chain(effects.first()).min();
        for doubt in effects.doubts() {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }

    /// Returns the data for a custom resource that is being deleted: it, as far as it can be completed, and its children. No
    /// rule prevents its deletion.
    pub(super) fn at_the_end(plan: &OperatorPlan, observed: &Observed, now: Timestamp) -> Self {
        let mut sources = Self {
            unavailable: unseen_children(plan, observed),
            ..Self::default()
        };
        if !plan.calls.is_empty() {
            let external = std::iter::once(PathStep::Field(Key::from(EXTERNAL))).collect();
            let why = "no `external` call is made during deletion";
            sources.unavailable.push((external, why.into()));
        }
        prepare::complete(plan, observed, now, &plan.rules.mutation, &mut sources);
        let why = "during deletion only the custom resource and its children are read";
        data_source::hide_all(plan, &mut sources, why);
        sources
    }

    /// Returns the roots of the templates, without `.children`.
    pub(super) fn data<'a>(&'a self, observed: &'a Observed) -> Data<'a> {
        self.data_of(self.cr.as_ref().unwrap_or(&observed.cr.view))
    }

    /// Returns the same with `cr` as the custom resource.
    pub(super) fn data_of<'a>(&'a self, cr: &'a Node) -> Data<'a> {
        let roots = self.roots.iter();
        let data = roots.fold(Data::of(cr), |data, (root, value)| data.with(root, value));
        let data = match &self.written {
            (_, Node::Null) => data,
            (old, operation) => data.with(OLD, old).with(OPERATION, operation),
        };
        self.with_calls(data, None)
    }

    /// Returns `data` with the answers to the calls of an import, or of the Katalog.
    pub(super) fn with_calls<'a>(&'a self, data: Data<'a>, import: Option<usize>) -> Data<'a> {
        match self.external.get(&import) {
            Some(external) => data.with(EXTERNAL, external),
            None => data,
        }
    }

    /// Returns why one of `paths` cannot be read, if any.
    pub(super) fn why_not<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Option<String> {
        if self.unavailable.is_empty() {
            return None;
        }
        paths.into_iter().find_map(|path| {
            let touches =
                |(gone, _): &&(Path, Box<str>)| path.starts_with(gone) || gone.starts_with(path);
            let (gone, why) = self.unavailable.iter().find(touches)?;
            Some(format!("`.{gone}` cannot be read: {why}"))
        })
    }
}

/// Returns the names below `.children` of kinds that cannot be read, or of which a child is partly unreadable.
fn unseen_children(plan: &OperatorPlan, observed: &Observed) -> Vec<(Path, Box<str>)> {
    let is_unread = |kind: &GroupKind| {
        let mut children = observed.children.iter();
        children.any(|child| child.key.kind == *kind && child.record.unread().is_some())
    };
    let unseen = plan
        .children_names
        .iter()
        .filter(|alias| observed.unseen.contains(&alias.kind) || is_unread(&alias.kind));
    let path = |name: &Key| {
        Path::from_iter([
            PathStep::Field(Key::from("children")),
            PathStep::Field(name.clone()),
        ])
    };
    unseen
        .map(|alias| {
            let many = alias.number == Number::Plural;
            let what = if many { "the objects" } else { "the object" };
            let why = format!("{what} of kind {} cannot be read", alias.kind);
            (path(&alias.name), why.into())
        })
        .collect()
}
