//! `normalize`, `mutation` and `validation`: rules that change and check a custom resource before anything else.
//!
//! One file: the three kinds of rules share their operands and their checks.

mod message;
mod order;
mod values;

use super::{
    admission, conditions,
    imports::{self, Imported},
};
use crate::scope::{At, Library, ReferenceKind, library::Content};
use orkestra_language::{
    api::{
        CrdEntry,
        rules::{Mutation, MutationRule, RuleAction, Validation, ValidationRule},
    },
    diagnostics::Code,
};
use orkestra_object::value::{Key, Path, PathStep};
use orkestra_plan::{
    Coerce, Completion, Gate, RulesPlan, ValidationRulePlan, definitions::CrdVersion,
};

pub(crate) use order::{are_late, calls, completed_late};

/// Compiles the rules of the entry at `at`, then those of the Motifs that it imports.
pub(crate) fn plan(
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
    validation: Vec<ValidationRulePlan>,
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
                "rules of `mutation` always come first: Kubernetes calls admission webhooks in that order, too",
                "remove it",
            );
        }
        let library = self.library;
        if let Some(text) = &declared.include
            && let Some(document) =
                library.open(&at.field("include"), ReferenceKind::Mutation, text)
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
                    let message = "`default` and `override` are mutually exclusive";
                    (message, "leave out one of the two")
                } else {
                    let message = "the rule sets no value: `default` or `override` is missing";
                    (message, "add one of the two")
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
            cel: Err("no schema of the kind is known".into()),
        })
    }

    fn validations(&mut self, at: &At<'_>, declared: Option<&Validation>, import: Option<usize>) {
        let Some(declared) = declared else { return };
        let library = self.library;
        if let Some(text) = &declared.include
            && let Some(document) =
                library.open(&at.field("include"), ReferenceKind::Validation, text)
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

fn demand(at: &At<'_>, rule: &ValidationRule, import: Option<usize>) -> Option<ValidationRulePlan> {
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
    let label = label(at, name.as_deref(), field);
    let message_at = at.field("message");
    let message = match message {
        None => {
            let names_field = *label != *field.trim_start_matches('.');
            let default = message::of(condition, names_field, immutable);
            at.leaf(&default, Coerce::Text)
        }
        Some(message) => {
            if message.trim().is_empty() {
                let hint = "state the requirement, as in `images come from registry.example`, or remove the field";
                message_at.error_hint(Code::Empty, "the value is empty", hint);
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
    Some(ValidationRulePlan {
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

/// Returns the label of a rule in messages: its name, else its field, else its place.
fn label(at: &At<'_>, name: Option<&str>, field: &str) -> Box<str> {
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    match name {
        Some(name) => name.into(),
        None if field.is_empty() || field.contains("{{") => at.text(),
        None => field.trim_start_matches('.').into(),
    }
}

/// Returns a path below a root of the custom resource.
fn below(root: &str, path: &Path) -> Path {
    let root = PathStep::Field(Key::from(root));
    std::iter::once(root)
        .chain(path.steps().iter().cloned())
        .collect()
}

/// Returns the path without its root.
fn relative(path: &Path) -> Path {
    path.steps().iter().skip(1).cloned().collect()
}
