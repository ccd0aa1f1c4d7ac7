//! The order in which a pass evaluates rules, calls and gates.

use crate::{
    compile::{
        calls::DeclaredCalls,
        imports::{self, Imported},
    },
    scope::At,
};
use orkestra_language::api::{
    CrdEntry,
    rules::{Mutation, Validation},
};
use orkestra_object::value::{Path, PathStep};
use orkestra_plan::{CompletionTarget, EXTERNAL, OperatorPlan, Stage, walk::visit_completion};
use orkestra_plan::{rules::ROOTS, rules::root};

/// Returns the calls of the rules of the entry at `at`, and of the Motifs that it imports.
pub(crate) fn calls<'a>(
    at: &At<'a>,
    entry: &'a CrdEntry,
    imported: &'a [Imported<'a>],
) -> Vec<DeclaredCalls<'a>> {
    let mut calls = Vec::new();
    let (mutation, validation) = (entry.mutation.as_ref(), entry.validation.as_ref());
    calls.extend(of_rules(at, (mutation, validation), None));
    for index in imports::merge_order(imported) {
        let Imported {
            at: spec, motif, ..
        } = &imported[index];
        if let Some(admission) = &motif.admission {
            let at = spec.as_at(at).field("admission");
            let rules = (admission.mutation.as_ref(), admission.validation.as_ref());
            calls.extend(of_rules(&at, rules, Some(index)));
        }
    }
    calls
}

fn of_rules<'a>(
    at: &At<'a>,
    (mutation, validation): (Option<&'a Mutation>, Option<&'a Validation>),
    import: Option<usize>,
) -> impl Iterator<Item = DeclaredCalls<'a>> {
    let mutation = mutation.map(|rules| ("mutation", Stage::Mutation, &rules.external));
    let validation = validation.map(|rules| ("validation", Stage::Validation, &rules.external));
    let declared = [mutation, validation].into_iter().flatten();
    let of = |(field, stage, calls): (&str, Stage, &'a Vec<_>)| DeclaredCalls {
        at: at.field(field).field("external"),
        calls,
        stage,
        import,
    };
    let declared: Vec<_> = declared.map(of).collect();
    declared.into_iter()
}

/// True if mutation waits for responses to calls.
pub(crate) fn are_late(plan: &OperatorPlan) -> bool {
    let mut are_late = plan.calls.iter().any(|call| call.stage == Stage::Mutation);
    for one in &plan.rules.mutation {
        visit_completion(one, &mut |expression, place| {
            expression.each_read(&mut |path| {
                are_late |= reads_answers(plan, place.import, path);
            });
        });
    }
    are_late
}

/// True if the read of `import` at `path` depends on responses to calls, directly or by an input.
fn reads_answers(plan: &OperatorPlan, import: Option<usize>, path: &Path) -> bool {
    let field = |at: usize| match path.steps().get(at) {
        Some(PathStep::Field(name)) => Some(&**name),
        _ => None,
    };
    match (field(0), field(1)) {
        (Some(EXTERNAL), _) => true,
        // The root of all data.
        (None, _) => plan.calls_until(Stage::Mutation) > 0,
        (Some("inputs"), name) => {
            let import = import.and_then(|import| plan.imports.get(import));
            import.is_some_and(|import| {
                let mut reads = false;
                import.visit_values(name, &mut |outer, leaf| {
                    let mut paths = leaf.template.reads().iter();
                    reads |= paths.any(|path| reads_answers(plan, outer, path));
                });
                reads
            })
        }
        _ => false,
    }
}

/// True if rules complete a field at, above or below `path` late.
pub(crate) fn completed_late(plan: &OperatorPlan, path: &Path) -> bool {
    let mut rules = plan.rules.mutation.iter();
    plan.rules.late
        && rules.any(|rule| match &rule.target {
            CompletionTarget::Path(target) => target.overlaps(path),
            CompletionTarget::Rendered(_) => {
                let mut roots = ROOTS.iter().copied().map(root);
                roots.any(|root| root.overlaps(path))
            }
        })
}
