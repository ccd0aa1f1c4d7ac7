//! What a pass reads beside the custom resource and its children: it asks, and is called again with the answers.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    calls::{self, Request},
    cross::{self, CrossRead},
    enrich, events,
    gate::Turns,
    held,
    prepare::{self, Prepared},
    record::Observed,
    related::RelatedRead,
    step::{Failure, Step as PassStep},
    unique, watched,
};
use crate::{
    plan::{CHANGES, ChildKey, EVENTS, EXTERNAL, GroupKind, Number, OperatorPlan, Stage},
    template::Data,
    value::{Key, Node, Path, Step},
};

/// Something that a pass must know and that its records do not tell. Equal reads have one answer in a pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// An object that somebody else made: what a child copies, refers to or lives in. All but its metadata is there; of a
    /// Namespace the labels are.
    Object(ChildKey),
    /// A call to the outside; [`answered`](super::calls::answered) makes its answer.
    Call(Box<Request>),
    /// A certificate that an authority of its own signs: a map of [`CERTIFICATE_PARTS`] to text in PEM.
    Certificate(Certificate),
    /// Another custom resource of the operator that has this text at this path: its key.
    Same(Path, Box<str>),
    /// A custom resource of another operator: the parts of it that the plan reads.
    Cross(CrossRead),
    /// What the operator that an entry of `cross` names says of itself and measures.
    Operator(Key),
    /// The objects that something is added to a child from: a list of what is kept of each.
    Related(RelatedRead),
    /// The latest Event of the custom resource that the entry of `observe.events` of that name means.
    Event(Key),
    /// The objects of that kind that the custom resource is told of by `observe.watch`: a map by name of what is kept of each.
    Watched(GroupKind),
}

impl Read {
    /// Whether its answer may become another, so that whoever read it has a pass. A call is made anew by each pass, and an
    /// Event leads to a pass itself.
    pub fn may_change(&self) -> bool {
        !matches!(self, Self::Call(_) | Self::Event(_) | Self::Watched(_))
    }
}

/// What a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Certificate {
    /// The Secret that it is made for: each gets one of its own.
    pub holder: ChildKey,
    /// The common name, at most 64 characters.
    pub common_name: Option<String>,
    /// DNS names, wildcards too, and addresses.
    pub hosts: Vec<String>,
    /// When it begins to be valid.
    pub not_before: Timestamp,
    /// When it ceases to be.
    pub not_after: Timestamp,
}

/// The parts of a certificate: chain, private key and the authority's certificate. Source: Kubernetes, "TLS Secrets".
pub const CERTIFICATE_PARTS: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// What came of a read. It is kept for the pass, whatever it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The thing itself.
    Ready(Arc<Node>),
    /// There is none.
    Absent,
    /// It cannot be told whether there is one: why.
    Unavailable(Box<str>),
}

/// How often a pass asks at most; what it asks for then is unavailable.
pub const ROUNDS: usize = 8;

/// The answers of a pass so far.
pub type Answers = BTreeMap<Read, Answer>;

/// What templates and conditions of a pass see beside the custom resource's own fields and its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sources {
    /// The custom resource as templates see it, where that is not as it was read: normalized and completed.
    pub cr: Option<Node>,
    /// What came of preparing it.
    pub prepared: Prepared,
    /// `._normalizeChanges`: what `normalize` changed; null where no template may read it.
    pub audit: Node,
    /// `.cross`: custom resources of other operators, by name; null where the plan reads none.
    pub cross: Node,
    /// `.events`: the latest Events, by name; null where the plan reads none.
    pub events: Node,
    /// What is added to children, by child and key.
    pub added: BTreeMap<(ChildKey, &'static str), Node>,
    /// What cannot be read at the moment: the path from the root, such as `cross.db`, and why. A condition that reads it
    /// neither creates nor deletes.
    pub unavailable: Vec<(Path, Box<str>)>,
    /// `.external`, as the Katalog sees it and as the Motif of each import does.
    pub external: BTreeMap<Option<usize>, Node>,
    /// Objects below `.children` that the operator does not create, by kind: a map by name.
    pub watched: BTreeMap<GroupKind, Node>,
    /// When one of the conditions turns that were asked until now.
    pub wake: Option<Timestamp>,
    /// What they could not compare.
    pub doubts: Vec<Failure>,
    /// Whether others have what the custom resource has at the paths where `unique` asks for it.
    pub same: BTreeMap<Path, Answer>,
}

impl Sources {
    /// What a pass of `plan` sees, in the order in which it is asked:
    ///
    /// ```text
    ///  normalize, mutation ──► cross, enrich ──► gates ──► validation ──► calls of the box and its blocks
    ///                                              └─ where mutation waits for answers: mutation, cross, enrich ─┘
    /// ```
    ///
    /// Calls come before what they are declared with.
    ///
    /// # Errors
    /// What is not answered yet, or the pass, where it is decided already.
    pub(super) fn of(
        plan: &OperatorPlan,
        observed: &Observed,
        now: Timestamp,
    ) -> Result<Self, PassStep> {
        let rules = &plan.rules;
        let mut sources = Self::begin(plan, observed)?;
        let early = if rules.late { &[] } else { &*rules.mutation };
        prepare::complete(plan, observed, now, early, &mut sources);
        if !rules.late || plan.holds_back() {
            sources.see(plan, observed, now)?;
            held::look(plan, observed, &mut sources, now)?;
        }
        // Nothing is asked of others for a custom resource that is refused.
        if rules.late && !sources.is_refused() {
            sources = sources.anew(plan, observed)?;
            calls::make(plan, observed, &mut sources, Stage::Mutation, now)?;
            prepare::complete(plan, observed, now, &rules.mutation, &mut sources);
            sources.see(plan, observed, now)?;
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

    /// What is known without asking a template.
    fn begin(plan: &OperatorPlan, observed: &Observed) -> Result<Self, Vec<Read>> {
        let mut sources = Self {
            same: unique::of(plan, observed)?,
            unavailable: unseen_children(plan, observed),
            ..Self::default()
        };
        events::fill(plan, observed, &mut sources)?;
        watched::fill(plan, observed, &mut sources)?;
        Ok(sources)
    }

    /// Without what was read for the gates, which another custom resource than the completed one chose.
    fn anew(self, plan: &OperatorPlan, observed: &Observed) -> Result<Self, Vec<Read>> {
        Ok(Self {
            cr: self.cr,
            prepared: self.prepared,
            external: self.external,
            wake: self.wake,
            doubts: self.doubts,
            ..Self::begin(plan, observed)?
        })
    }

    /// Adds what the custom resource, as it is by now, leads to.
    fn see(
        &mut self,
        plan: &OperatorPlan,
        observed: &Observed,
        now: Timestamp,
    ) -> Result<(), Vec<Read>> {
        cross::fill(plan, observed, now, self)?;
        enrich::fill(plan, observed, now, self)
    }

    /// Whether nothing is made for the custom resource, as it is.
    pub(super) fn is_refused(&self) -> bool {
        !self.prepared.failures.is_empty()
    }

    /// Remembers what conditions said beside their answers.
    pub(super) fn heard(&mut self, turns: &Turns) {
        self.wake = self.wake.into_iter().chain(turns.first()).min();
        for doubt in turns.doubts() {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }

    /// What is seen of a custom resource that is being deleted: it, as far as it can be completed, and its children. No
    /// rule keeps it from going.
    pub(super) fn at_the_end(plan: &OperatorPlan, observed: &Observed, now: Timestamp) -> Self {
        let mut sources = Self {
            unavailable: unseen_children(plan, observed),
            ..Self::default()
        };
        if !plan.calls.is_empty() {
            let external = std::iter::once(Step::Field(Key::from(EXTERNAL))).collect();
            let why = "no call is made at the end";
            sources.unavailable.push((external, why.into()));
        }
        prepare::complete(plan, observed, now, &plan.rules.mutation, &mut sources);
        for entry in &plan.cross {
            let why = "nothing of others is read at the end".to_owned();
            cross::hide(&mut sources, entry, why);
        }
        for entry in &plan.observe.events {
            events::hide(&mut sources, entry, "nothing of others is read at the end");
        }
        watched::hide_all(plan, &mut sources, "nothing of others is read at the end");
        sources
    }

    /// The roots of the templates, without `.children`.
    pub(super) fn data<'a>(&'a self, observed: &'a Observed) -> Data<'a> {
        self.data_of(self.cr.as_ref().unwrap_or(&observed.cr.view))
    }

    /// The same with `cr` for the custom resource.
    pub(super) fn data_of<'a>(&'a self, cr: &'a Node) -> Data<'a> {
        let data = match &self.cross {
            Node::Null => Data::of(cr),
            cross => Data::of(cr).with("cross", cross),
        };
        let data = match &self.audit {
            Node::Null => data,
            audit => data.with(CHANGES, audit),
        };
        let data = match &self.events {
            Node::Null => data,
            events => data.with(EVENTS, events),
        };
        self.with_calls(data, None)
    }

    /// `data` with the answers to the calls of an import, or of the Katalog.
    pub(super) fn with_calls<'a>(&'a self, data: Data<'a>, import: Option<usize>) -> Data<'a> {
        match self.external.get(&import) {
            Some(external) => data.with(EXTERNAL, external),
            None => data,
        }
    }

    /// Why one of `paths` cannot be read, if one of them cannot.
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

/// Names below `.children` of kinds that cannot be looked at, or of which a child cannot be read.
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
            Step::Field(Key::from("children")),
            Step::Field(name.clone()),
        ])
    };
    unseen
        .map(|alias| {
            let many = alias.number == Number::Plural;
            let what = if many { "the objects" } else { "the object" };
            let why = format!("{what} of kind {} cannot be looked at", alias.kind);
            (path(&alias.name), why.into())
        })
        .collect()
}
