//! The paths that a plan reads of the custom resource and of its children.
//! The sources of template data are in `sources`.

mod added;
mod calls;
mod children;
mod roots;
mod sources;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet};

use orkestra_language::{
    api::names,
    diagnostics::{Code, Severity, nearest, nearest_or_all},
};
use orkestra_object::value::{Key, Path, PathStep};
use orkestra_plan::{
    CHANGES, ChildAlias, ChildPlan, ConditionPlan, EXTERNAL, ForEachPlan, GroupKind, ImportPlan,
    Leaf, OLD, OPERATION, Operand, OperatorPlan, PlaceRef, REPLICAS, Reads,
    for_each::ITEM,
    kinds,
    roots::CR_ROOTS,
    walk::{Expression, Purpose},
};
use {calls::Calls, children::KnownChildren, sources::RootRead};

pub(crate) use sources::types;
pub(crate) use unreadable::Unreadable;

/// Roots of the language that are not implemented yet.
const LATER_ROOTS: [&str; 2] = ["request", "value"];
/// Root of an import's inputs, inside of Motifs.
const INPUTS: &str = "inputs";

/// Everything that templates and conditions of an operator read, and the names below `.children` that they use.
#[derive(Default)]
pub(crate) struct PlanReads {
    /// The reads, without those covered by others.
    pub(crate) reads: Reads,
    /// Names below `.children`.
    pub(crate) aliases: BTreeSet<ChildAlias>,
    /// Invalid reads.
    pub(crate) unreadable: Vec<Unreadable>,
    /// Reads below the entries of sources, by root and name of the entry.
    entries: BTreeMap<(&'static str, Key), Vec<Path>>,
    /// Reads of objects below `.children` that the operator does not create, by kind.
    watched: BTreeMap<GroupKind, Vec<Path>>,
}

/// Collects the reads of the expressions of `plan`. `all` is true if it has all children of an operator, so that no other
/// can be read.
pub(crate) fn gather(plan: &OperatorPlan, all: bool) -> PlanReads {
    let known = KnownChildren::new(plan, all);
    let mut gathered = PlanReads::default();
    for kind in known.kinds() {
        gathered.reads.children.entry(kind.clone()).or_default();
    }
    plan.visit(&mut |expression, place| {
        let around = ReadScope {
            plan,
            known: &known,
            inputs: place.import.and_then(|import| plan.imports.get(import)),
            each: place.each,
            in_rules: place.in_rules,
            calls: Calls {
                plan,
                import: place.import,
                made: place.made,
            },
        };
        match expression {
            // Its reads were checked when it was compiled.
            _ if place.purpose == Purpose::Key => {}
            Expression::Leaf(leaf) if place.purpose == Purpose::Cross => {
                gathered.choice(leaf, around);
            }
            Expression::Leaf(leaf) => gathered.leaf(leaf, around),
            Expression::Condition(condition) => gathered.condition(condition, around),
            Expression::Body(_) => {}
            Expression::ForEach(each) => {
                let place = ReadPosition {
                    at: each.path.field("field"),
                    source: None,
                };
                gathered.add(&each.field, place, around);
            }
        }
    });
    gathered.reads.cr.extend(plan.rules.touched());
    gathered.keep_for_passes(&plan.children);
    gathered.reads.cr = without_covered(std::mem::take(&mut gathered.reads.cr));
    gathered.reads.unique.sort();
    gathered.reads.unique.dedup();
    for paths in gathered.reads.children.values_mut() {
        *paths = without_covered(std::mem::take(paths));
    }
    gathered
}

/// Annotations of a Secret with generated values: its age, and the names it was issued for.
const LASTING: [&str; 2] = [names::ANNOTATION_GENERATED_AT, names::ANNOTATION_ISSUED_FOR];

fn annotation(name: &str) -> Path {
    let steps = ["metadata", "annotations", name];
    steps
        .into_iter()
        .map(|step| PathStep::Field(Key::from(step)))
        .collect()
}

/// The data that can be read beside the custom resource: the children, the inputs of a Motif, the element of a list, and
/// the responses to calls.
#[derive(Clone, Copy)]
pub(crate) struct ReadScope<'a> {
    plan: &'a OperatorPlan,
    known: &'a KnownChildren,
    inputs: Option<&'a ImportPlan>,
    each: Option<&'a ForEachPlan>,
    /// True in the rules of admission.
    in_rules: bool,
    calls: Calls<'a>,
}

/// The place of a read: a field and, for a template, its text.
#[derive(Clone, Copy)]
pub(crate) struct ReadPosition<'a> {
    at: PlaceRef<'a>,
    source: Option<&'a str>,
}

impl PlanReads {
    /// Keeps the fields of children that a pass itself reads: of generated Secrets, of pods that roll, and of workloads that
    /// are scaled.
    fn keep_for_passes(&mut self, children: &[ChildPlan]) {
        for child in children {
            let mut paths = Vec::new();
            if child.generated.is_some() {
                paths.extend(LASTING.map(annotation));
            }
            if child.rolls {
                paths.push(kinds::config_hash(&child.kind.kind));
            }
            if child.scale.is_some() {
                paths.push(Path::of_fields(REPLICAS));
                paths.push(annotation(names::ANNOTATION_SCALED_AT));
            }
            if !paths.is_empty() {
                let kept = self.reads.children.entry(child.kind.group_kind());
                kept.or_default().extend(paths);
            }
        }
    }

    fn leaf(&mut self, leaf: &Leaf, around: ReadScope<'_>) {
        let place = ReadPosition {
            at: leaf.path.here(),
            source: Some(leaf.template.source()),
        };
        leaf.template
            .reads()
            .iter()
            .for_each(|path| self.add(path, place, around));
    }

    fn condition(&mut self, condition: &ConditionPlan, around: ReadScope<'_>) {
        let unique = condition.unique();
        self.reads.unique.extend(unique.cloned());
        let place = |source| ReadPosition {
            at: condition.path.field("field"),
            source,
        };
        match condition.operand() {
            None => {}
            Some(Operand::Path(path)) => self.add(path, place(None), around),
            Some(Operand::Template(template)) => {
                let place = place(Some(template.source()));
                let reads = template.reads().iter();
                reads.for_each(|path| self.add(path, place, around));
            }
        }
        for leaf in condition.leaves() {
            self.leaf(leaf, around);
        }
    }

    fn add(&mut self, path: &Path, place: ReadPosition<'_>, around: ReadScope<'_>) {
        let ReadScope {
            plan, known, each, ..
        } = around;
        let Some((root, below)) = path.steps().split_first() else {
            return self.everything(around);
        };
        match root {
            PathStep::Field(name) if CR_ROOTS.contains(&&**name) || plan.roots.contains(name) => {
                self.reads.cr.push(path.clone());
            }
            PathStep::Field(name) if let Some((source, root)) = sources::of_root(name) => {
                source.add(RootRead { root, below, place }, around, self);
            }
            PathStep::Field(name) if &**name == INPUTS => self.input(below, place, around),
            PathStep::Field(name) if &**name == EXTERNAL => self.call(below, place, around.calls),
            PathStep::Field(_) if each.is_some_and(|each| each.is_read_by(path)) => {}
            PathStep::Field(name) if &**name == ITEM => {
                let message = "there is no `.item` here".to_owned();
                let hint = "only entries with `forEach` read `.item`";
                self.refuse(place, name, message, Some(hint.to_owned()));
            }
            PathStep::Field(name) if &**name == CHANGES && known.audits => {}
            PathStep::Field(name) if &**name == CHANGES => {
                let message = format!("there is no `.{CHANGES}` here");
                let hint = "add `audit: true` to `normalize`";
                self.refuse(place, name, message, Some(hint.to_owned()));
            }
            PathStep::Field(name) if [OLD, OPERATION].contains(&&**name) && around.in_rules => {}
            PathStep::Field(name) if [OLD, OPERATION].contains(&&**name) => {
                let message = format!("there is no `.{name}` here");
                let hint = "only rules of `validation` and `mutation`, and their calls, read it: at admission";
                self.refuse(place, name, message, Some(hint.to_owned()));
            }
            // A key that a custom resource may be enriched with: it is missing, and notes handle that.
            PathStep::Field(name) if orkestra_template::is_added_key(name) => {}
            PathStep::Field(name) if LATER_ROOTS.contains(&&**name) => {
                self.refuse(place, name, format!("`.{name}` is not supported yet"), None);
            }
            other => self.unknown_root(other, place, around),
        }
    }

    /// Adds the root of all data.
    fn everything(&mut self, around: ReadScope<'_>) {
        let roots = CR_ROOTS.map(Key::from).into_iter();
        let roots = roots.chain(around.plan.roots.iter().cloned());
        self.reads
            .cr
            .extend(roots.map(|root| Path::from_iter([PathStep::Field(root)])));
        sources::all().for_each(|source| source.add_all(around, self));
    }

    /// Records a read below an entry of a source.
    fn add_entry(&mut self, root: &'static str, name: &str, path: Path) {
        let reads = self.entries.entry((root, Key::from(name)));
        reads.or_default().push(path);
    }

    /// Returns the reads below an entry of a source.
    fn take_entry(&mut self, root: &'static str, name: &Key) -> Vec<Path> {
        let reads = self.entries.remove(&(root, name.clone()));
        reads.unwrap_or_default()
    }

    /// Sets the reads of the entries of all sources in `plan`.
    pub(crate) fn settle(&mut self, plan: &mut OperatorPlan) {
        sources::all().for_each(|source| source.settle(self, plan));
    }

    /// Refuses a root that templates do not have, and suggests another.
    fn unknown_root(&mut self, root: &PathStep, place: ReadPosition<'_>, around: ReadScope<'_>) {
        let name = match root {
            PathStep::Field(name) => name.to_string(),
            PathStep::Index(index) => index.to_string(),
        };
        let meant = match &*name {
            "Name" | "name" => Some("metadata.name"),
            "Namespace" | "namespace" => Some("metadata.namespace"),
            other => {
                let inside = around.inputs.map(|_| INPUTS);
                let each = around.each.map(ForEachPlan::names).into_iter().flatten();
                let roots = CR_ROOTS.into_iter().chain(sources::roots());
                let roots = roots.chain(inside);
                nearest(other, roots.chain(each))
            }
        };
        let hint = match (roots::instead(&name), meant) {
            (Some(instead), _) => instead.to_owned(),
            (None, Some(meant)) => format!("did you mean `.{meant}`?"),
            (None, None) => format!(
                "templates read `.metadata`, `.spec`, `.status` and `.children`; a field of the spec is `.spec.{name}`"
            ),
        };
        self.refuse(place, &name, format!("there is no `.{name}`"), Some(hint));
    }

    /// Handles `.inputs`: given values are read where they are given.
    fn input(&mut self, below: &[PathStep], place: ReadPosition<'_>, around: ReadScope<'_>) {
        let Some(import) = around.inputs else {
            let hint = "only the templates of a Motif's resources and status, and what it gives to Motifs that it imports, \
                        read `.inputs`";
            let message = "there is no `.inputs` here";
            return self.unreadable(
                Code::InputsOutside,
                place,
                INPUTS,
                message.to_owned(),
                Some(hint.to_owned()),
            );
        };
        let Some(PathStep::Field(name)) = below.first() else {
            return;
        };
        let names = || import.inputs.iter().map(|input| &*input.name);
        if names().any(|known| known == &**name) {
            return self.calls_of_input((import, name), place, around.calls);
        }
        let hint = if import.inputs.is_empty() {
            "it declares no inputs".to_owned()
        } else {
            nearest_or_all(name, ".inputs.", names())
        };
        let message = format!("`{}` has no input `{name}`", import.motif);
        let read = format!("{INPUTS}.{name}");
        self.unreadable(Code::UnknownInput, place, &read, message, Some(hint));
    }

    /// Reports that `read`, as in the source text, is invalid.
    fn refuse(
        &mut self,
        place: ReadPosition<'_>,
        read: &str,
        message: String,
        hint: Option<String>,
    ) {
        let is_later = LATER_ROOTS.contains(&read);
        let code = if is_later {
            Code::NotSupportedYet
        } else {
            Code::UnknownData
        };
        self.unreadable(code, place, read, message, hint);
    }

    fn unreadable(
        &mut self,
        code: Code,
        place: ReadPosition<'_>,
        read: &str,
        message: String,
        hint: Option<String>,
    ) {
        let offset = place.source.and_then(|source| {
            offset_of(source, &format!(".{read}")).or_else(|| offset_of(source, read))
        });
        let message = match (place.source, offset) {
            (Some(_), None) => format!("{message}; a function that is called here reads it"),
            _ => message,
        };
        self.unreadable.push(Unreadable {
            severity: Severity::Error,
            code,
            place: place.at.place.clone(),
            field: place.at.field,
            offset,
            message,
            hint,
        });
    }
}

/// Returns the offset of `read` in a template's source, ignoring matches that start a longer name.
fn offset_of(source: &str, read: &str) -> Option<usize> {
    let is_whole = |at: &usize| {
        let rest = &source[at + read.len()..];
        !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
    };
    let mut found = source.match_indices(read).map(|(at, _)| at);
    found.find(is_whole)
}

/// Returns the paths, sorted, without those covered by others.
fn without_covered(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort_by(Path::order_of_places);
    let mut kept: Vec<Path> = Vec::new();
    for path in paths {
        if !kept.last().is_some_and(|known| path.starts_with(known)) {
            kept.push(path);
        }
    }
    kept.sort();
    kept
}
