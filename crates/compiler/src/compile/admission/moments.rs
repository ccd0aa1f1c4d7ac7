//! Determines from the paths that rules and calls read whether they apply at admission, in reconcile passes, or in both.

use crate::scope::At;
use orkestra_language::{api::calls::Fires, diagnostics::Code};
use orkestra_object::value::{Key, Path, PathStep};
use orkestra_plan::{
    AdmissionPlan, CHANGES, Completion, CompletionTarget, EXTERNAL, Gate, Leaf, Moments, OLD,
    OPERATION, OperatorPlan, PlanPlace, Stage, ValidationRulePlan,
    roots::CR_ROOTS,
    walk::{Expression, visit_call},
};

/// Returns the moments that are declared.
pub(crate) fn fires(declared: Option<&Fires>) -> Moments {
    let declared = declared.cloned().unwrap_or_default();
    let because = |fires: Option<bool>, field: &str| {
        (fires == Some(false)).then(|| format!("`fires.{field}: false`").into())
    };
    Moments {
        not_at_admission: because(declared.admission, "admission"),
        not_in_passes: because(declared.reconcile, "reconcile"),
    }
}

/// Completes the moments of all rules and calls of `plan` from what they read, and reports those that never apply. `at` is
/// the entry.
pub(crate) fn complete(at: &At<'_>, plan: &mut OperatorPlan) {
    let (normalize, mutation, validation, calls) = {
        let mut settling = MomentContext::of(plan);
        (
            settling.normalize(),
            settling.mutation(),
            settling.validation(),
            std::mem::take(&mut settling.calls),
        )
    };
    for (one, moments) in plan.rules.normalize.iter_mut().zip(normalize) {
        one.moments = moments;
    }
    for (one, moments) in plan.rules.mutation.iter_mut().zip(mutation) {
        one.moments = moments;
    }
    for (one, moments) in plan.rules.validation.iter_mut().zip(validation) {
        one.moments = moments;
    }
    for (one, moments) in plan.calls.iter_mut().zip(calls) {
        one.moments = moments;
    }
    report(at, plan);
}

fn report(at: &At<'_>, plan: &OperatorPlan) {
    let AdmissionPlan {
        enabled,
        validation,
        mutation,
        ..
    } = &plan.admission;
    let report = |moments: &Moments, path: &PlanPlace, is_asked: bool, field: &str| {
        let Some(not_in_passes) = &moments.not_in_passes else {
            return;
        };
        let at = at.place(path);
        if let Some(not_at_admission) = &moments.not_at_admission {
            let message = format!(
                "the rule never applies: not in passes ({not_in_passes}), and not at admission ({not_at_admission})"
            );
            at.error(Code::NoEffect, message);
        } else if !is_asked {
            let message =
                format!("the rule never applies: it is for admission only ({not_in_passes})");
            let hint = format!("leave out `webhooks.{field}: false`");
            at.error_hint(Code::NoEffect, message, hint);
        } else if *enabled == Some(false) {
            let message =
                format!("the rule never applies: it is for admission only ({not_in_passes})");
            let hint = "set `security.webhooks.admission.enabled: true`";
            at.warn_hint(Code::NoEffect, message, hint);
        }
    };
    for one in &plan.rules.mutation {
        report(&one.moments, &one.value.path, *mutation, "mutation");
    }
    for one in &plan.rules.validation {
        if let Some(condition) = one.test.iter().next() {
            report(&one.moments, &condition.path, *validation, "validation");
        }
    }
}

/// The metadata that users set. The API server sets the rest after admission.
const OF_USERS: [&str; 7] = [
    "name",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "generateName",
];

/// True if the metadata of that name, or all of it, is not yet what passes see.
fn is_set_later(name: Option<&Key>) -> bool {
    name.is_none_or(|name| !OF_USERS.contains(&&**name))
}

/// What is known before a rule or a call.
struct MomentContext<'p> {
    plan: &'p OperatorPlan,
    /// Fields that rules set in passes only.
    late: Vec<Path>,
    /// The moments of the calls.
    calls: Vec<Moments>,
    /// The last stage whose calls are made before.
    stage: Stage,
}

impl<'p> MomentContext<'p> {
    fn of(plan: &'p OperatorPlan) -> Self {
        let mut settling = Self {
            plan,
            late: Vec::new(),
            calls: Vec::with_capacity(plan.calls.len()),
            stage: Stage::PreReconcile,
        };
        for call in &plan.calls {
            let mut moments = call.moments.clone();
            let at_admission = [Stage::Mutation, Stage::Validation].contains(&call.stage);
            if !at_admission {
                let why = "only calls of `mutation` and `validation` are made at admission";
                moments.not_at_admission.get_or_insert(why.into());
            }
            settling.stage = call.stage;
            visit_call(call, 0, &mut |expression, _| {
                expression.each_read(&mut |path| {
                    settling.read(call.import, path, &mut moments);
                });
            });
            settling.calls.push(moments);
        }
        settling
    }

    fn normalize(&mut self) -> Vec<Moments> {
        self.stage = Stage::PreReconcile;
        let all = self.plan.rules.normalize.iter().map(|one| {
            let mut moments = one.moments.clone();
            self.leaf(None, &one.value, &mut moments);
            moments
        });
        let all: Vec<Moments> = all.collect();
        let of_passes = self.plan.rules.normalize.iter().zip(&all);
        let of_passes = of_passes.filter(|(_, moments)| moments.not_at_admission.is_some());
        self.late.extend(of_passes.map(|(one, _)| one.path.clone()));
        all
    }

    fn mutation(&mut self) -> Vec<Moments> {
        self.stage = Stage::Mutation;
        let mut all = Vec::new();
        for one in &self.plan.rules.mutation {
            let Completion {
                import,
                target,
                value,
                always: _,
                gate,
                moments,
                cel: _,
            } = one;
            let mut moments = moments.clone();
            self.leaf(*import, value, &mut moments);
            self.gate(*import, gate, &mut moments);
            let set = match target {
                CompletionTarget::Path(path) => path.clone(),
                CompletionTarget::Rendered(leaf) => {
                    self.leaf(*import, leaf, &mut moments);
                    Path::root()
                }
            };
            self.path(&set, &mut moments);
            if moments.not_at_admission.is_some() {
                self.late.push(set);
            }
            all.push(moments);
        }
        all
    }

    fn validation(&mut self) -> Vec<Moments> {
        self.stage = Stage::Validation;
        let all = self.plan.rules.validation.iter().map(|one| {
            let ValidationRulePlan {
                import,
                label: _,
                test,
                present,
                message,
                warns: _,
                gate,
                moments,
                cel: _,
            } = one;
            let mut moments = moments.clone();
            for gate in [test, present, gate] {
                self.gate(*import, gate, &mut moments);
            }
            self.leaf(*import, message, &mut moments);
            moments
        });
        all.collect()
    }

    fn leaf(&self, import: Option<usize>, leaf: &Leaf, moments: &mut Moments) {
        Expression::Leaf(leaf).each_read(&mut |path| {
            self.read(import, path, moments);
        });
    }

    fn gate(&self, import: Option<usize>, gate: &Gate, moments: &mut Moments) {
        for condition in gate.iter() {
            condition.visit_reads(&mut |path| self.read(import, path, moments));
            if condition.asks_old() {
                let why =
                    "`immutable` compares with the previous value, which only admission knows";
                moments.not_in_passes.get_or_insert(why.into());
            }
        }
    }

    /// Adds why something that reads `path` does not apply at one of the moments.
    fn read(&self, import: Option<usize>, path: &Path, moments: &mut Moments) {
        let field = |at: usize| match path.steps().get(at) {
            Some(PathStep::Field(name)) => Some(name),
            _ => None,
        };
        let mut not_at_admission = |why: String| {
            moments.not_at_admission.get_or_insert(why.into());
        };
        let Some(root) = field(0) else {
            return not_at_admission("it reads all data, such as `.children`".to_owned());
        };
        match &**root {
            OLD | OPERATION => {
                let why = format!("it reads `.{root}`, which only admission has");
                moments.not_in_passes.get_or_insert(why.into());
            }
            "inputs" => {
                let given = import.and_then(|import| self.plan.imports.get(import));
                let Some(given) = given else { return };
                given.visit_values(field(1).map(|name| &**name), &mut |outer, leaf| {
                    self.leaf(outer, leaf, moments);
                });
            }
            EXTERNAL => {
                if let Some(why) = self.why_unanswered(import, field(1)) {
                    not_at_admission(why);
                }
            }
            CHANGES => {}
            "status" => not_at_admission("it reads `.status`, which passes write".to_owned()),
            "metadata" if is_set_later(field(1)) => {
                let why = format!("it reads `.{path}`, parts of which the API server sets later");
                not_at_admission(why);
            }
            known if CR_ROOTS.contains(&known) || self.plan.roots.contains(root) => {
                self.path(path, moments);
            }
            other => not_at_admission(format!("it reads `.{other}`, which only passes have")),
        }
    }

    /// Adds why a rule about a field of the custom resource does not apply at admission.
    fn path(&self, path: &Path, moments: &mut Moments) {
        let mut late = self.late.iter();
        if late.any(|late| late.overlaps(path)) {
            let why = format!("a rule that applies in passes only sets `{path}`");
            moments.not_at_admission.get_or_insert(why.into());
        }
    }

    /// Returns why a call has no answer at admission.
    fn why_unanswered(&self, import: Option<usize>, name: Option<&Key>) -> Option<String> {
        let calls = self.plan.calls.iter().zip(&self.calls);
        let mut meant = calls.filter(|(call, _)| {
            call.import == import
                && call.stage <= self.stage
                && name.is_none_or(|name| call.name == *name)
        });
        let (call, moments) = meant.find(|(_, moments)| moments.not_at_admission.is_some())?;
        let why = moments.not_at_admission.as_deref().unwrap_or_default();
        Some(format!(
            "`.external.{}` is not called at admission: {why}",
            call.name
        ))
    }
}
