//! One compilation: the only road from the text of a document to a plan, for files and for objects of the cluster.
//!
//! ```text
//!  document ── read ──► merge ──────► resolve ──────────────► compile ──► compare ──► Ended: a plan, or problems
//!                       │   ▲ sources  │   ▲ Motifs, files,     ▲           │
//!                       ▼   │          ▼   │ schemas            │           │ not approved: once more, with what runs
//!                       Need, Waiting  Need ┘                   └── merge ◄─┘
//! ```
//!
//! [`Compilation`] decides everything: what is needed, in which order, when something is missing, and which revisions of sources
//! and Motifs are approved. It does no I/O: a driver answers its requests, as long as [`Compilation::step`] returns some. A source
//! that is not there yet leaves it waiting, which is a state and no error.
//!
//! A plan is compared with the revision in force until nothing more is held back, so that no plan is returned that was not
//! compared.

mod approval;
mod compiling;
mod document;
mod essence;
mod inputs;
mod kinds;
mod merging;
mod resolving;
mod result;
#[cfg(test)]
mod tests;
mod weakened;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, mem};

use crate::compose::{Base, Declared, ResolvedComposition, SourceRequest};
use orkestra_language::diagnostics::Diagnostics;
use orkestra_language::document::{DocumentKind, KatalogDocument, Source};
use orkestra_plan::{Declaring, GroupKind, KatalogRef, policy::ChildPolicy};

pub use approval::{RevisionInForce, Unapproved, motif_digest};
pub use compiling::beside;
pub use essence::{essence, restored_spec};
pub use inputs::{InputAnswer, InputRequest, MotifAnswer, SourceAnswer, UnreadFile, UsedMotifs};
pub use kinds::kinds_named;
pub use result::{
    CompilationResult, CompiledKatalog, MissingSource, MissingSources, RefusedDocument, UsedInputs,
};

use approval::Approvals;
use inputs::KnownInputs;
use merging::Merging;
use resolving::Resolving;

/// The namespace of Katalogs from files, in labels of children and in paths of the HTTP API.
const FILES_NAMESPACE: &str = "default";

/// Where a document is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentSite {
    /// A file: relative references start from its path.
    File(std::path::PathBuf),
    /// An object of the cluster: it refers to other objects of its namespace by name, and to no files.
    Cluster(KatalogRef),
}

impl DocumentSite {
    fn base(&self) -> Base {
        match self {
            Self::File(path) => Base::File(path.display().to_string()),
            Self::Cluster(katalog) => Base::Cluster {
                namespace: katalog.namespace.clone(),
            },
        }
    }

    fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    fn katalog(&self, document: &KatalogDocument) -> KatalogRef {
        match self {
            Self::File(_) => KatalogRef::new(FILES_NAMESPACE.to_owned(), document.name.clone()),
            Self::Cluster(katalog) => katalog.clone(),
        }
    }
}

/// Formats the path of the file, or the namespace and name of the object.
impl fmt::Display for DocumentSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Cluster(katalog) => katalog.fmt(f),
        }
    }
}

/// The rules of the installation that runs the plan.
#[derive(Debug, Clone, Default)]
pub struct CompilationRules {
    /// Whether sources need not be locked, even if a composition requires it.
    pub ignores_locks: bool,
    /// The sensitive children that are permitted.
    pub children: ChildPolicy,
    /// Whether rules apply at admission where a Katalog does not say; none to leave that open.
    pub admission: Option<bool>,
    /// Whether the installation applies the definitions that `schema` of entries generates.
    pub manages_definitions: bool,
    /// The revision that runs: what a composition needs beyond it must be approved.
    pub in_force: Option<RevisionInForce>,
    /// The approved digests, beside those that the document approves.
    pub approved: BTreeSet<String>,
}

/// What follows from the inputs that are known.
#[derive(Debug)]
pub enum CompilationStep {
    /// These inputs are needed: answer them, and step again. Schemas are needed last, after everything else is known.
    Need(Vec<InputRequest>),
    /// It waits for sources that are not there yet: answer them once they are, and step again.
    Waiting(MissingSources),
    /// It has ended.
    Ended(Box<CompilationResult>),
}

/// The compilation of one document. The same inputs give the same result, in any order of the answers.
///
/// ```
/// use orkestra_compiler::{compilation::*};
/// use orkestra_plan::{definitions::Schemas};
/// use orkestra_language::{document::parse_stream};
///
/// let text = "
/// apiVersion: orkestra.orkspace.io/v1
/// kind: Katalog
/// metadata: { name: ponds }
/// spec:
///   crds:
///     pond:
///       apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
///       operatorBox:
///         onReconcile:
///           configMaps: [{ data: { depth: '{{ .spec.depth }}' } }]
/// ";
/// let source = parse_stream("katalog.yaml", text).sources.remove(0);
/// let mut compilation = Compilation::new(source, DocumentSite::File("katalog.yaml".into()));
/// let ended = compilation.run(|request| match request {
///     InputRequest::Schemas(kinds) => Some(InputAnswer::Schemas(kinds.clone(), Schemas::default())),
///     _ => None,
/// });
/// let CompilationStep::Ended(result) = ended else { panic!("something is missing") };
/// let CompilationResult::Compiled(compiled) = *result else { panic!("it has problems") };
/// assert_eq!(compiled.plan.operators[0].name, "pond");
/// ```
#[derive(Debug)]
pub struct Compilation {
    source: Source,
    site: DocumentSite,
    rules: CompilationRules,
    inputs: KnownInputs,
    /// The revisions that are held back.
    held: Vec<Unapproved>,
    /// The sources that it is composed from, as far as known.
    requests: Vec<SourceRequest>,
    /// The kinds that the document, its sources and its Motifs name.
    kinds: BTreeSet<GroupKind>,
    state: State,
}

/// The state of a compilation.
#[derive(Debug, Default)]
pub(crate) enum State {
    /// The document is to be read: at the start, or again with other revisions of sources and Motifs.
    #[default]
    Unread,
    /// Its sources are merged, as far as they are known.
    Merging(Box<Merging>),
    /// What it refers to is looked up; then it is compiled.
    Resolving(Box<Resolving>),
}

/// The end of a transition.
pub(crate) enum Moved {
    To(State),
    Need(State, Vec<InputRequest>),
    Waiting(State, MissingSources),
    Ended(CompilationResult),
}

impl Compilation {
    /// Creates the compilation of a document.
    pub fn new(source: Source, site: DocumentSite) -> Self {
        Self {
            source,
            site,
            rules: CompilationRules::default(),
            inputs: KnownInputs::default(),
            held: Vec::new(),
            requests: Vec::new(),
            kinds: BTreeSet::new(),
            state: State::default(),
        }
    }

    /// Sets the rules; by default everything is permitted, and nothing is compared.
    #[must_use]
    pub fn under(self, rules: CompilationRules) -> Self {
        Self { rules, ..self }
    }

    /// Takes an input, whether it was requested or not.
    pub fn answer(&mut self, answer: InputAnswer) {
        self.inputs.put(answer);
    }

    /// Continues until an input is missing, or to the end. Once it has ended, it ends in the same way again.
    pub fn step(&mut self) -> CompilationStep {
        loop {
            let moved = match mem::take(&mut self.state) {
                State::Unread => self.read(),
                State::Merging(merging) => self.merge(merging),
                State::Resolving(resolving) => self.resolve(resolving),
            };
            let (state, step) = match moved {
                Moved::To(state) => {
                    self.state = state;
                    continue;
                }
                Moved::Need(state, requests) => (state, CompilationStep::Need(requests)),
                Moved::Waiting(state, missing) => (state, CompilationStep::Waiting(missing)),
                Moved::Ended(result) => {
                    return CompilationStep::Ended(Box::new(result));
                }
            };
            self.state = state;
            return step;
        }
    }

    /// Steps with answers that are at hand, until `answer` has none.
    pub fn run(
        &mut self,
        mut answer: impl FnMut(&InputRequest) -> Option<InputAnswer>,
    ) -> CompilationStep {
        loop {
            let step = self.step();
            let CompilationStep::Need(requests) = &step else {
                return step;
            };
            let answers: Vec<InputAnswer> = requests.iter().map_while(&mut answer).collect();
            if answers.len() < requests.len() {
                return step;
            }
            for answer in answers {
                self.answer(answer);
            }
        }
    }

    /// Returns where the document is from.
    pub fn site(&self) -> &DocumentSite {
        &self.site
    }

    /// Returns what the document declares itself, without anything that it refers to.
    ///
    /// # Errors
    /// Its problems, as of [`Declared::read`].
    pub fn declared(&self) -> Result<Declared, Diagnostics> {
        Declared::read(&self.source, self.site.base())
    }

    /// Returns the warnings of the document itself, while it waits for sources.
    pub fn warnings(&self) -> Diagnostics {
        match &self.state {
            State::Merging(merging) => merging.warnings().clone(),
            State::Unread | State::Resolving(_) => Diagnostics::default(),
        }
    }

    /// Returns the sources that it is composed from, as far as they are known: those of nested compositions are known once these
    /// are.
    pub fn requests(&self) -> &[SourceRequest] {
        &self.requests
    }

    /// Returns the revisions that need permissions that are not approved: those that run were used instead.
    pub fn unapproved(&self) -> &[Unapproved] {
        &self.held
    }

    /// Returns the Motifs of the cluster that were requested.
    pub fn motifs(&self) -> UsedMotifs {
        self.inputs.objects()
    }

    /// Returns the kinds that the document, its sources and its Motifs name, as far as they are known.
    pub fn kinds(&self) -> &BTreeSet<GroupKind> {
        &self.kinds
    }

    /// Returns the document with its sources merged, while schemas are needed, and the composition that it is the result of.
    pub fn resolved(&self) -> Option<(&KatalogDocument, Option<&Arc<ResolvedComposition>>)> {
        match &self.state {
            State::Resolving(resolving) => resolving.katalog(),
            State::Unread | State::Merging(_) => None,
        }
    }

    /// Returns a hash of the inputs, without schemas.
    pub fn inputs_hash(&self) -> String {
        self.inputs.hash()
    }

    /// Reads the document.
    fn read(&mut self) -> Moved {
        self.kinds.extend(kinds_named(&self.source.tree.to_json()));
        match DocumentKind::of(&self.source) {
            Some(DocumentKind::Komposer) => self.read_komposer(),
            Some(DocumentKind::Motif) => self.read_motif(),
            _ => self.read_katalog(),
        }
    }

    /// Returns the kind of the document that declares the plan.
    fn declaring(&self) -> Declaring {
        match DocumentKind::of(&self.source) {
            Some(DocumentKind::Komposer) => Declaring::Komposer,
            _ => Declaring::Katalog,
        }
    }

    fn approvals(&self) -> Approvals<'_> {
        Approvals {
            in_force: self.rules.in_force.as_ref(),
            approved: &self.rules.approved,
            held: &self.held,
        }
    }
}

/// Returns the end of a document with problems.
fn invalid(problems: Diagnostics) -> Moved {
    Moved::Ended(CompilationResult::Refused(RefusedDocument::Invalid(
        problems,
    )))
}
