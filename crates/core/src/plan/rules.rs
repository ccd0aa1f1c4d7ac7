//! `normalize`, `mutation` and `validation`: rules that change and check a custom resource before anything else.

mod message;
mod order;
mod values;

use super::{
    CelRule, Coerce, CrdVersion, Gate, ImportPlan, Leaf, Library, Moments, OperatorPlan, admission,
    conditions,
    imports::{self, Imported},
    library::{Content, Part},
    walk::{Expression, Place, Purpose, visit_gate},
};
use crate::{
    api::{
        CrdEntry,
        rules::{Mutation, MutationRule, RuleAction, Validation, ValidationRule},
    },
    diagnostics::Code,
    resources::scope::At,
    value::{Key, Path, Step},
};

pub(crate) use order::{are_late, calls, each_read};
pub(crate) use values::target_of;

/// Rules that change and check a custom resource before anything else is decided.
#[derive(Debug, Default)]
pub struct RulesPlan {
    /// Normalized values of the spec, sorted by path; no path is below another. All read the custom resource as observed.
    pub normalize: Box<[Normalized]>,
    /// True if they are written to the custom resource itself (`persist`).
    pub persist: bool,
    /// True if templates read their changes (`audit`).
    pub audit: bool,
    /// Mutation rules, in order; each sees the changes of those before.
    pub mutation: Box<[Completion]>,
    /// True if mutation depends on responses to calls, so that it runs after the gates.
    pub late: bool,
    /// Validation rules, in order.
    pub validation: Box<[Demand]>,
}

/// A normalized value of the spec.
#[derive(Debug)]
pub struct Normalized {
    /// The path from the custom resource's root, without list items.
    pub path: Path,
    /// The value.
    pub value: Leaf,
    /// True if the definition has the field; others are never written.
    pub is_known: bool,
    /// The moments at which it applies.
    pub moments: Moments,
}

/// A mutation rule.
#[derive(Debug)]
pub struct Completion {
    /// The import that declares it, as an index into [`OperatorPlan::imports`]; `None` for the Katalog.
    pub import: Option<usize>,
    /// The field to set.
    pub target: Target,
    /// The value.
    pub value: Leaf,
    /// True if it is always set (`override`); otherwise only if the field is absent.
    pub always: bool,
    /// The gate of the rule.
    pub gate: Gate,
    /// The moments at which it applies.
    pub moments: Moments,
}

/// The field that a [`Completion`] sets.
#[derive(Debug)]
pub enum Target {
    /// The path from the custom resource's root.
    Path(Path),
    /// A template for the path.
    Rendered(Leaf),
}

/// A validation rule.
#[derive(Debug)]
pub struct Demand {
    /// The import that declares it, as an index into [`OperatorPlan::imports`]; `None` for the Katalog.
    pub import: Option<usize>,
    /// Its label in messages: its name, or its field.
    pub label: Box<str>,
    /// The condition to meet.
    pub test: Gate,
    /// If closed, the rule passes: the field is absent (`optional`).
    pub present: Gate,
    /// The message if it fails.
    pub message: Leaf,
    /// True if a failure is a warning; otherwise the custom resource is refused.
    pub warns: bool,
    /// The gate of the rule.
    pub gate: Gate,
    /// The moments at which it applies.
    pub moments: Moments,
    /// The rule as CEL says it, or why it cannot.
    pub cel: Result<CelRule, Box<str>>,
}

impl RulesPlan {
    /// True if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.normalize.is_empty() && self.mutation.is_empty() && self.validation.is_empty()
    }

    /// Returns the paths of the custom resource that rules compare or set, whether templates read them or not.
    pub(crate) fn touched(&self) -> impl Iterator<Item = Path> {
        let normalized = self.normalize.iter().map(|one| one.path.clone());
        let completed = self.mutation.iter().flat_map(|one| match &one.target {
            Target::Path(path) => vec![up_to_list(path)],
            Target::Rendered(_) => values::ROOTS.iter().copied().map(values::root).collect(),
        });
        normalized.chain(completed)
    }

    /// Returns the paths of the custom resource that rules set.
    pub(crate) fn made(&self) -> impl Iterator<Item = &Path> {
        let normalized = self.normalize.iter().map(|one| &one.path);
        let completed = self.mutation.iter().filter_map(|one| match &one.target {
            Target::Path(path) => Some(path),
            Target::Rendered(_) => None,
        });
        normalized.chain(completed)
    }

    /// Returns the fields of the custom resource that depend on the state of the cluster, such as those made from its
    /// status or its children.
    pub(crate) fn live(&self, imports: &[ImportPlan]) -> Vec<Path> {
        let mut live: Vec<Path> = Vec::new();
        for one in &self.normalize {
            let mut reads = one.value.template.reads().iter();
            if !reads.all(|path| conditions::is_intent(path, None)) {
                live.push(one.path.clone());
            }
        }
        for one in &self.mutation {
            let import = one.import.and_then(|import| imports.get(import));
            let mut is_intent = true;
            let mut look = |path: &Path| {
                let mut known = live.iter();
                is_intent &= conditions::is_intent(path, import)
                    && !known.any(|known| known.starts_with(path) || path.starts_with(known));
            };
            one.value.template.reads().iter().for_each(&mut look);
            for condition in one.gate.iter() {
                condition.visit_reads(&mut look);
            }
            let target = match &one.target {
                Target::Path(path) => path.clone(),
                Target::Rendered(leaf) => {
                    leaf.template.reads().iter().for_each(&mut look);
                    Path::root()
                }
            };
            if !is_intent {
                live.push(target);
            }
        }
        live
    }

    /// Calls `visit` with every expression of `normalize`.
    pub(crate) fn visit_normalize<'a>(&'a self, visit: &mut dyn FnMut(Expression<'a>, Place<'a>)) {
        for one in &self.normalize {
            visit(Expression::Leaf(&one.value), Place::of(Purpose::Prepared));
        }
    }

    /// Calls `visit` with every expression of `mutation`.
    pub(crate) fn visit_mutation<'a>(&'a self, visit: &mut dyn FnMut(Expression<'a>, Place<'a>)) {
        for one in &self.mutation {
            let place = Place::of(Purpose::Prepared).inside(one.import);
            if let Target::Rendered(leaf) = &one.target {
                visit(Expression::Leaf(leaf), place);
            }
            visit(Expression::Leaf(&one.value), place);
            visit_gate(&one.gate, (one.import, None), visit);
        }
    }

    /// Calls `visit` with every expression of `validation`.
    pub(crate) fn visit_validation<'a>(&'a self, visit: &mut dyn FnMut(Expression<'a>, Place<'a>)) {
        for one in &self.validation {
            for gate in [&one.test, &one.gate] {
                visit_gate(gate, (one.import, None), visit);
            }
            let place = Place::of(Purpose::Status).inside(one.import);
            visit(Expression::Leaf(&one.message), place);
        }
    }
}

/// Returns the path up to the first list item: a list is read whole, since its length matters.
fn up_to_list(path: &Path) -> Path {
    let is_item = |step: &Step| match step {
        Step::Index(_) => true,
        Step::Field(key) => key.bytes().all(|byte| byte.is_ascii_digit()),
    };
    let steps = path.steps().iter().take_while(|step| !is_item(step));
    steps.cloned().collect()
}

/// Compiles the rules of the entry at `at`, then those of the Motifs that it imports.
pub(crate) fn compile(
    at: &At<'_>,
    entry: &CrdEntry,
    imported: &[Imported<'_>],
    version: Option<&CrdVersion>,
    library: &Library,
) -> RulesPlan {
    let in_box = entry.operator_box.as_ref();
    let in_box = in_box.and_then(|declared| declared.normalize.as_ref());
    let box_at = at.field("operatorBox");
    let places = [(at, entry.normalize.as_ref()), (&box_at, in_box)];
    let declared = places
        .into_iter()
        .filter_map(|(at, normalize)| Some((at.field("normalize"), normalize?)));
    let values::Forms {
        fields: normalize,
        persist,
        audit,
    } = values::normalize(declared, version);
    let mut rules = Rules {
        version,
        library,
        mutation: Vec::new(),
        validation: Vec::new(),
    };
    rules.mutations(&at.field("mutation"), entry.mutation.as_ref(), None);
    rules.validations(&at.field("validation"), entry.validation.as_ref(), None);
    rules.motifs(at, imported);
    RulesPlan {
        normalize,
        audit,
        persist,
        late: false,
        mutation: rules.mutation.into(),
        validation: rules.validation.into(),
    }
}

/// Compiles the rules of a Motif that is checked alone, and of those that it imports.
pub(crate) fn of_motifs(at: &At<'_>, imported: &[Imported<'_>], library: &Library) -> RulesPlan {
    let mut rules = Rules {
        version: None,
        library,
        mutation: Vec::new(),
        validation: Vec::new(),
    };
    rules.motifs(at, imported);
    RulesPlan {
        mutation: rules.mutation.into(),
        validation: rules.validation.into(),
        ..RulesPlan::default()
    }
}

struct Rules<'a> {
    version: Option<&'a CrdVersion>,
    library: &'a Library,
    mutation: Vec<Completion>,
    validation: Vec<Demand>,
}

impl Rules<'_> {
    fn motifs(&mut self, at: &At<'_>, imported: &[Imported<'_>]) {
        for index in imports::merge_order(imported) {
            let Imported {
                at: spec, motif, ..
            } = &imported[index];
            let Some(admission) = &motif.admission else {
                continue;
            };
            let at = spec.as_at(at).field("admission");
            let import = Some(index);
            self.mutations(&at.field("mutation"), admission.mutation.as_ref(), import);
            let validation = admission.validation.as_ref();
            self.validations(&at.field("validation"), validation, import);
        }
    }

    fn mutations(&mut self, at: &At<'_>, declared: Option<&Mutation>, import: Option<usize>) {
        let Some(declared) = declared else { return };
        if declared.mutate_first == Some(false) {
            at.field("mutateFirst").warn_hint(
                Code::NoEffect,
                "rules of `mutation` always come first: at admission Kubernetes asks in that order, too",
                "leave it out",
            );
        }
        let library = self.library;
        if let Some(text) = &declared.include
            && let Some(document) = library.open(&at.field("include"), Part::Mutation, text)
            && let Content::Mutation(rules) = &document.content
        {
            let at = at.document(&document.origin).field("rules").as_at(at);
            self.mutation_list(&at, rules, import);
        }
        self.mutation_list(&at.field("rules"), &declared.rules, import);
    }

    fn mutation_list(&mut self, at: &At<'_>, rules: &[MutationRule], import: Option<usize>) {
        for (index, rule) in rules.iter().enumerate() {
            let one = self.completion(&at.index(index), rule, import);
            self.mutation.extend(one);
        }
    }

    fn completion(
        &self,
        at: &At<'_>,
        rule: &MutationRule,
        import: Option<usize>,
    ) -> Option<Completion> {
        let MutationRule {
            name: _,
            field,
            default,
            override_,
            value_type,
            fires,
            gates,
        } = rule;
        let gate = conditions::gate(at, &gates.when, &gates.or);
        let target = values::target(&at.field("field"), field, self.version);
        let (name, scalar, always) = match (default, override_) {
            (Some(value), None) => ("default", value, false),
            (None, Some(value)) => ("override", value, true),
            (given, _) => {
                let (message, hint) = if given.is_some() {
                    let message = "`default` and `override` exclude each other";
                    (message, "leave out one of the two")
                } else {
                    let message = "a rule sets something: `default` or `override` is missing";
                    (message, "add the one that is meant")
                };
                at.error_hint(Code::Exclusive, message, hint);
                return None;
            }
        };
        let coerce = values::coerce(*value_type, target.as_ref(), self.version);
        let value = values::value(&at.field(name), scalar, coerce);
        Some(Completion {
            import,
            target: target?,
            value: value?,
            always,
            gate,
            moments: admission::fires(fires.as_ref()),
        })
    }

    fn validations(&mut self, at: &At<'_>, declared: Option<&Validation>, import: Option<usize>) {
        let Some(declared) = declared else { return };
        let library = self.library;
        if let Some(text) = &declared.include
            && let Some(document) = library.open(&at.field("include"), Part::Validation, text)
            && let Content::Validation(rules) = &document.content
        {
            let at = at.document(&document.origin).field("rules").as_at(at);
            self.validation_list(&at, rules, import);
        }
        self.validation_list(&at.field("rules"), &declared.rules, import);
    }

    fn validation_list(&mut self, at: &At<'_>, rules: &[ValidationRule], import: Option<usize>) {
        for (index, rule) in rules.iter().enumerate() {
            let one = demand(&at.index(index), rule, import);
            self.validation.extend(one);
        }
    }
}

fn demand(at: &At<'_>, rule: &ValidationRule, import: Option<usize>) -> Option<Demand> {
    let ValidationRule {
        name,
        condition,
        message,
        action,
        optional,
        immutable,
        fires,
        gates,
    } = rule;
    let gate = conditions::gate(at, &gates.when, &gates.or);
    let immutable = *immutable == Some(true);
    let test = conditions::demand(at, condition, immutable);
    let field = condition.field.as_deref().unwrap_or_default().trim();
    let named = name
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let label: Box<str> = match named {
        Some(name) => name.into(),
        None if field.is_empty() || field.contains("{{") => at.text(),
        None => field.trim_start_matches('.').into(),
    };
    let message_at = at.field("message");
    let message = match message {
        None => {
            let names_field = *label != *field.trim_start_matches('.');
            at.leaf(
                &message::of(condition, names_field, immutable),
                Coerce::Text,
            )
        }
        Some(message) => {
            if message.trim().is_empty() {
                let hint = "say what must be so, as in `images come from registry.example`, or leave it out";
                message_at.error_hint(Code::Empty, "this is empty", hint);
            }
            message_at.leaf(message, Coerce::Text)
        }
    };
    let present = if *optional == Some(true) {
        conditions::presence(&test)
    } else {
        Gate::default()
    };
    if test.is_empty() {
        return None;
    }
    Some(Demand {
        import,
        label,
        test,
        present,
        message: message?,
        warns: *action == Some(RuleAction::Warn),
        gate,
        moments: admission::fires(fires.as_ref()),
        cel: Err("no schema of the kind is known".into()),
    })
}

/// Returns a path below a root of the custom resource.
fn below(root: &str, path: &Path) -> Path {
    let root = Step::Field(Key::from(root));
    std::iter::once(root)
        .chain(path.steps().iter().cloned())
        .collect()
}

/// Returns the path without its root.
fn relative(path: &Path) -> Path {
    path.steps().iter().skip(1).cloned().collect()
}

impl OperatorPlan {
    /// Returns the fields of the spec that are written to the custom resource if they differ.
    pub fn persisted(&self) -> impl Iterator<Item = &Path> {
        let all = self.rules.persist.then_some(&self.rules.normalize);
        let known = all.into_iter().flatten().filter(|one| one.is_known);
        known.map(|one| &one.path)
    }
}
