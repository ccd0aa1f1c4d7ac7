//! `.cross`: custom resources of other operators.

use super::{RootRead, TemplateSource};
use crate::compile::{
    known_schemas::KnownSchemas,
    reads::{PlanReads, ReadPosition, ReadScope, without_covered},
};
use orkestra_language::{
    diagnostics::{Code, nearest_or_all},
    schema::{Kinds, Type},
};
use orkestra_object::value::{Node, Path, PathStep};
use orkestra_plan::{
    EXTERNAL, Leaf, OperatorPlan,
    cross::{CROSS, CrossPlan, CrossTarget, FOUND, HEALTH, METRICS},
    roots::{CHILDREN, CR_ROOTS},
};

/// Fields below `.cross.<as>`: the resource and the facts about it.
const FIELDS: [&str; 8] = {
    let [api_version, kind, metadata, spec, status] = CR_ROOTS;
    [
        api_version,
        kind,
        metadata,
        spec,
        status,
        FOUND,
        HEALTH,
        METRICS,
    ]
};

/// `.cross`.
pub(crate) struct CrossReads;

impl TemplateSource for CrossReads {
    fn roots(&self) -> &'static [&'static str] {
        &[CROSS]
    }

    fn add(&self, read: RootRead<'_>, around: ReadScope<'_>, gathered: &mut PlanReads) {
        let Some(name) = read.name() else {
            return self.add_all(around, gathered);
        };
        if !is_entry(around, &name) {
            if around.known.all {
                unknown(&name, read, around, gathered);
            }
            return;
        }
        let rest = &read.below[1..];
        if let Some(PathStep::Field(field)) = rest.first()
            && !FIELDS.contains(&&**field)
        {
            let hint = nearest_or_all(field, &format!(".{CROSS}.{name}."), FIELDS);
            let message = format!("there is no `{field}` in `.{CROSS}.{name}`");
            return gathered.unreadable(Code::UnknownData, read.place, field, message, Some(hint));
        }
        gathered.add_entry(CROSS, &name, rest.iter().cloned().collect());
    }

    fn add_all(&self, around: ReadScope<'_>, gathered: &mut PlanReads) {
        for entry in &around.plan.cross {
            gathered.add_entry(CROSS, &entry.name, Path::root());
        }
    }

    fn root_type<'s>(
        &self,
        _root: &'static str,
        known: KnownSchemas<'s>,
        plan: &OperatorPlan,
    ) -> Type<'s> {
        let entries = plan.cross.iter();
        Type::of_names(entries.map(|entry| (entry.name.to_string(), entry_type(known, entry))))
    }

    fn settle(&self, gathered: &mut PlanReads, plan: &mut OperatorPlan) {
        for entry in &mut plan.cross {
            set_reads(entry, gathered.take_entry(CROSS, &entry.name));
        }
    }
}

fn is_entry(around: ReadScope<'_>, name: &str) -> bool {
    (around.plan.cross.iter()).any(|entry| &*entry.name == name)
}

/// Reports a name that no entry has.
fn unknown(name: &str, read: RootRead<'_>, around: ReadScope<'_>, gathered: &mut PlanReads) {
    let names = || around.plan.cross.iter().map(|entry| &*entry.name);
    let hint = if around.plan.cross.is_empty() {
        "the operatorBox declares no `cross`".to_owned()
    } else {
        nearest_or_all(name, &format!(".{CROSS}."), names())
    };
    let message = format!("no entry of `cross` is called `{name}`");
    let text = format!("{CROSS}.{name}");
    gathered.unreadable(Code::UnknownCross, read.place, &text, message, Some(hint));
}

/// Sets the reads of an entry: fields of the resource, and facts about it.
fn set_reads(entry: &mut CrossPlan, read: Vec<Path>) {
    let whole = read.iter().any(Path::is_empty);
    let starts_with = |path: &Path, name: &str| matches!(path.steps().first(), Some(PathStep::Field(root)) if &**root == name);
    entry.reads_health = whole || read.iter().any(|path| starts_with(path, HEALTH));
    entry.reads_metrics = whole || read.iter().any(|path| starts_with(path, METRICS));
    let is_fact = |path: &Path| {
        [FOUND, HEALTH, METRICS]
            .iter()
            .any(|field| starts_with(path, field))
    };
    let of_resource = read.into_iter().filter(|path| !is_fact(path));
    // The whole resource counts as its known parts: nothing else can be kept of it.
    let of_resource = of_resource.flat_map(|path| {
        if path.is_empty() {
            CR_ROOTS
                .map(|root| Path::from_iter([PathStep::Field(root.into())]))
                .to_vec()
        } else {
            vec![path]
        }
    });
    entry.reads = without_covered(of_resource.collect());
}

fn entry_type<'s>(known: KnownSchemas<'s>, entry: &CrossPlan) -> Type<'s> {
    let schema = match &entry.target {
        CrossTarget::Own(_, kind) => known.kind(kind),
        CrossTarget::Other(_) | CrossTarget::Labels(_) => None,
    };
    let roots = CR_ROOTS.map(|root| (root.to_owned(), known.root(schema, root)));
    let found = Type::of(Kinds::of(&Node::from("true")));
    Type::of_names(roots.into_iter().chain([(FOUND.to_owned(), found)]))
}

impl PlanReads {
    /// Checks a selector of a resource: it may read the custom resource and earlier entries.
    pub(crate) fn choice(&mut self, leaf: &Leaf, around: ReadScope<'_>) {
        let place = ReadPosition {
            at: leaf.path.here(),
            source: Some(leaf.template.source()),
        };
        for path in leaf.template.reads() {
            match path.steps() {
                [PathStep::Field(root), ..] if [CHILDREN, EXTERNAL].contains(&&**root) => {
                    let message = format!("`.{root}` is not available at this point");
                    let hint = "`.metadata`, `.spec`, `.status`, and entries of `cross` above this one can be read here";
                    let hint = Some(hint.to_owned());
                    self.unreadable(Code::UnknownData, place, root, message, hint);
                }
                // Compilation already checked that the entry is declared earlier.
                [PathStep::Field(root), PathStep::Field(name), ..]
                    if &**root == CROSS && !is_entry(around, name) => {}
                [PathStep::Field(root), PathStep::Index(_), ..] if &**root == CROSS => {}
                _ => self.add(path, place, around),
            }
        }
    }
}
