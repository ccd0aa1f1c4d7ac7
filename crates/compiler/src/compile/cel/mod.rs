//! Compiles rules to CEL expressions with exactly the semantics of the evaluator.
//!
//! ```text
//!  Demand ── paths of known types, literal values ──► Ok(expression, message)   a policy of the API server
//!         └─ anything else ─────────────────────────► Err(why)                  the webhook
//! ```
//!
//! The API server validates an object against its schema before it evaluates policies, so the type of a value is that of its
//! schema, and an absent value is the only other case. The webhook evaluates every rule whose result may differ in CEL: texts that
//! are compared as numbers, decimals that are compared as text, lists and maps, and patterns whose syntax differs between engines.

mod completion;
mod message;
mod pattern;
pub(crate) mod side;
mod test;

use super::known_schemas::KnownSchemas;
use orkestra_language::schema::Schema;
use orkestra_object::value::{Path, PathStep};
use orkestra_plan::{
    CelRule, CompletionTarget, ConditionPlan, Gate, OLD, OnScale, Operand, OperatorPlan, Question,
    ResourceType, RulesPlan, ValidationRulePlan,
};

/// The result for a rule: the reason if CEL cannot say it.
type CelResult<T> = Result<T, String>;

/// Completes the rules of `plan` with their expressions.
pub(crate) fn complete(
    plan: &mut OperatorPlan,
    known: KnownSchemas<'_>,
    resource: Option<&ResourceType>,
) {
    let schema = resource.and_then(|resource| known.kind(resource));
    let context = schema.map(|schema| CelContext {
        schema,
        rules: &plan.rules,
        replicas: plan.admission.replicas.as_ref(),
        on_scale: false,
    });
    // A `Scale` has neither the labels of the object nor the marks of a child.
    let is_selected = !plan.watched.labels.is_empty() || plan.watched.built_in;
    let context = context.as_ref().ok_or("no schema of the kind is known");
    let whole = why_no_policy(plan).map_or(context, Err);
    let rules = plan.rules.validation.iter();
    let said: Vec<_> = rules
        .map(|rule| {
            let said = whole.map_err(str::to_owned);
            let said = said.and_then(|context| {
                let mut said = context.demand(rule)?;
                said.on_scale = context.on_scale(rule, is_selected);
                Ok(said)
            });
            said.map_err(String::into_boxed_str)
        })
        .collect();
    let patches = completion::patches(plan, context);
    for (rule, said) in plan.rules.validation.iter_mut().zip(said) {
        rule.cel = said;
    }
    for (rule, patch) in plan.rules.mutation.iter_mut().zip(patches) {
        rule.cel = patch;
    }
}

/// Returns why no rule of the operator can be a policy, if so.
fn why_no_policy(plan: &OperatorPlan) -> Option<&'static str> {
    let other = |operation: &orkestra_language::api::Operation| {
        *operation == orkestra_language::api::Operation::Delete
    };
    if plan.admission.operations.iter().any(other) {
        return Some("`webhooks.operations` includes `DELETE`, for which a policy has no object");
    }
    why_not_selected(plan)
}

/// Returns why policies cannot match the objects that the operator reconciles, if so.
fn why_not_selected(plan: &OperatorPlan) -> Option<&'static str> {
    let has_fields = !plan.watched.fields.is_empty();
    has_fields.then_some("`fieldSelector` selects the custom resources")
}

/// What is known while a rule is translated.
struct CelContext<'s> {
    /// The schema of whole objects.
    schema: Schema<'s>,
    rules: &'s RulesPlan,
    /// The path that the subresource `scale` writes.
    replicas: Option<&'s Path>,
    /// Whether `object` is of the kind `Scale`.
    on_scale: bool,
}

impl CelContext<'_> {
    /// Returns the rule, which CEL can express, for writes of the subresource `scale`.
    fn on_scale(&self, rule: &ValidationRulePlan, is_selected: bool) -> OnScale {
        let Some(replicas) = self.replicas else {
            return OnScale::Unaffected;
        };
        let mut reads_it = false;
        for condition in [&rule.gate, &rule.test].into_iter().flat_map(Gate::iter) {
            condition.visit_reads(&mut |path| {
                let path = of_object(path);
                reads_it |= path.overlaps(replicas);
            });
        }
        if !reads_it {
            return OnScale::Unaffected;
        }
        let context = CelContext {
            on_scale: true,
            ..*self
        };
        match context.demand(rule) {
            Ok(said) if !is_selected => OnScale::Rule(Box::new(said)),
            _ => OnScale::Webhook,
        }
    }

    fn demand(&self, rule: &ValidationRulePlan) -> CelResult<CelRule> {
        let ValidationRulePlan {
            import,
            label,
            test,
            present,
            message,
            warns: _,
            gate,
            moments: _,
            cel: _,
        } = rule;
        if import.is_some() {
            return Err("a Motif declares it, and inputs of Motifs may be templates".to_owned());
        }
        let mut parts = Vec::new();
        for gate in [gate, present].into_iter().filter(|gate| !gate.is_empty()) {
            parts.push(format!("!({})", self.gate(gate)?));
        }
        parts.push(format!("({})", self.gate(test)?));
        let (message, message_expression) = self.message(label, &message.template);
        Ok(CelRule {
            expression: parts.join(" || ").into(),
            message: message.into(),
            message_expression: message_expression.map(String::into_boxed_str),
            on_scale: OnScale::default(),
        })
    }

    fn gate(&self, gate: &Gate) -> CelResult<String> {
        let conditions = |list: &[ConditionPlan]| {
            let said = list.iter().map(|condition| self.condition(condition));
            said.collect::<CelResult<Vec<String>>>()
        };
        let mut all = conditions(&gate.all)?;
        let any = conditions(&gate.any)?;
        match &any[..] {
            [] => {}
            [one] => all.push(one.clone()),
            _ => all.push(format!("({})", any.join(" || "))),
        }
        Ok(if all.is_empty() {
            "true".to_owned()
        } else {
            all.join(" && ")
        })
    }

    fn condition(&self, condition: &ConditionPlan) -> CelResult<String> {
        let Question::Value(operand, tests) = &condition.asks else {
            return Err("it depends on the time".to_owned());
        };
        let path = match operand {
            Operand::Path(path) => path.clone(),
            Operand::Template(template) => side::plain_path(template)
                .ok_or_else(|| format!("`{}` is computed", template.source()))?,
        };
        let left = self.side(&path)?;
        let tests = tests.iter().map(|test| self.test(&left, test));
        let tests = tests.collect::<CelResult<Vec<String>>>()?.join(" && ");
        Ok(if condition.negate {
            format!("!({tests})")
        } else {
            format!("({tests})")
        })
    }

    /// Refuses paths that other rules set: passes see them completed, and policies as they are stored.
    fn check_unset(&self, path: &Path) -> CelResult<()> {
        let normalized = self.rules.normalize.iter().map(|one| one.path.clone());
        let completed = self.rules.mutation.iter().map(|one| match &one.target {
            CompletionTarget::Path(path) => path.clone(),
            CompletionTarget::Rendered(_) => Path::root(),
        });
        let mut set = normalized.chain(completed);
        if set.any(|set| set.overlaps(path)) {
            return Err(format!(
                "`{path}` is set by a rule of `mutation` or `normalize`, which a policy does not see while the webhook is unreachable"
            ));
        }
        Ok(())
    }
}

/// Returns a path of template data as a path of the object that it is of, the present or the old one.
fn of_object(path: &Path) -> Path {
    let is_old = matches!(path.steps().first(), Some(PathStep::Field(name)) if **name == *OLD);
    let steps = path.steps().iter().skip(usize::from(is_old));
    steps.cloned().collect()
}

/// Returns the fields that a path names, if none of its steps is an item of a list.
fn fields(path: &Path) -> CelResult<Vec<&str>> {
    let steps = path.steps().iter();
    let fields: Option<_> = steps
        .map(|step| match step {
            PathStep::Field(key) => Some(&**key),
            PathStep::Index(_) => None,
        })
        .collect();
    fields.ok_or_else(|| format!("`{path}` is an item of a list"))
}
