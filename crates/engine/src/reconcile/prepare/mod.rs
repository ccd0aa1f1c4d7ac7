//! Prepares the custom resource for a pass: normalization, completion and validation.
//!
//! ```text
//!  as read ── normalize ──► canonical ── mutation ──► complete ── validation ──► refused, with every reason; or accepted
//!                 │ differences in fields that no one else holds: a patch of the resource itself
//! ```
//!
//! Mutation always comes before validation: Kubernetes uses that order in admission, too.

mod normalize;

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    failure::Failure,
    gate::is_given,
    gate_effects::GateEffects,
    inputs::Inputs,
    patch::is_unchanged,
    prepared::Prepared,
    reason::Reason,
    record::Observed,
    render::{RenderError, Renderer, Setting},
    template_data::TemplateData,
    view::PassView,
};
use orkestra_object::value::{Node, Path, PathStep, set};
use orkestra_plan::{
    CHANGES, Completion, CompletionTarget, Moment, OperatorPlan, ValidationRulePlan, target_of,
};
use orkestra_template::EvalBudget;

/// Evaluates rules: their input except the custom resource itself.
#[derive(Clone, Copy)]
struct Rules<'a> {
    plan: &'a OperatorPlan,
    view: &'a PassView<'a>,
}

/// Normalizes the custom resource, and completes it with these rules: sets [`TemplateData::cr`] and [`TemplateData::prepared`].
pub(crate) fn complete(
    plan: &OperatorPlan,
    observed: &Observed,
    now: Timestamp,
    mutation: &[Completion],
    sources: &mut TemplateData,
) {
    if plan.rules.normalize.is_empty() && mutation.is_empty() {
        return;
    }
    let mut prepared = Prepared::default();
    let mut cr = observed.cr.view.clone();
    let mut audit = Node::Null;
    let effects = evaluate(
        (plan, observed, now),
        sources,
        &mut prepared,
        |rules, prepared| match rules.normalize(&cr, observed.cr.holds.as_deref()) {
            Ok(normalized) => {
                cr = normalized.cr;
                audit = normalized.audit;
                prepared.changes = normalized.changes;
                prepared.normalization = normalized.reported;
            }
            Err(error) => prepared.failures.push(error.into()),
        },
    );
    sources.heard(&effects);
    if audit != Node::Null {
        sources.roots.insert(CHANGES, audit);
    }
    let effects = evaluate(
        (plan, observed, now),
        sources,
        &mut prepared,
        |rules, prepared| {
            let before = cr.clone();
            let now = mutation.iter();
            for rule in now.filter(|rule| rule.moments.includes(rules.moment())) {
                match rules.completion(rule, &cr) {
                    Ok(Some((path, value))) => {
                        set(&mut cr, &path, value.clone());
                        prepared.changes.push((path, value));
                    }
                    Ok(None) => {}
                    Err(error) => prepared.fail(error.into()),
                }
            }
            prepared.completed = differing(&before, &cr, &prepared.changes);
        },
    );
    sources.heard(&effects);
    sources.cr = (!prepared.changes.is_empty()).then_some(cr);
    sources.prepared = prepared;
}

/// Validates the completed custom resource. Without a successful completion it is skipped.
pub(crate) fn validate(
    plan: &OperatorPlan,
    observed: &Observed,
    now: Timestamp,
    sources: &mut TemplateData,
) {
    if plan.rules.validation.is_empty() || !sources.prepared.failures.is_empty() {
        return;
    }
    let mut prepared = std::mem::take(&mut sources.prepared);
    let cr = sources.cr.as_ref().unwrap_or(&observed.cr.view);
    let effects = evaluate(
        (plan, observed, now),
        sources,
        &mut prepared,
        |rules, prepared| {
            let now = plan.rules.validation.iter();
            for rule in now.filter(|rule| rule.moments.includes(rules.moment())) {
                match rules.demand(rule, cr) {
                    Ok(None) => {}
                    Ok(Some(message)) if rule.warns => {
                        prepared.warnings.push(format!("{}: {message}", rule.label));
                    }
                    Ok(Some(message)) => prepared.fail(Failure {
                        reason: Reason::ValidationFailed,
                        at: rule.label.to_string(),
                        message,
                    }),
                    Err(error) => prepared.fail(error.into()),
                }
            }
        },
    );
    sources.heard(&effects);
    sources.prepared = prepared;
}

/// Calls `work` with the input of rules at this point of the pass. Returns the side results of their conditions.
fn evaluate(
    (plan, observed, now): (&OperatorPlan, &Observed, Timestamp),
    sources: &TemplateData,
    prepared: &mut Prepared,
    work: impl FnOnce(Rules<'_>, &mut Prepared),
) -> GateEffects {
    let setting = Setting::of(plan, observed);
    let view = PassView::of(plan, (observed, sources), &setting, now);
    work(Rules { plan, view: &view }, prepared);
    setting.effects
}

impl Rules<'_> {
    /// Returns the moment of the evaluation.
    fn moment(&self) -> Moment {
        self.view.frame.sources.moment
    }

    /// Calls `work` with the input of expressions of `import` while the custom resource is `cr`.
    fn on<T>(
        &self,
        cr: &Node,
        import: Option<usize>,
        work: impl FnOnce(&mut Renderer<'_, '_>) -> Result<T, RenderError>,
    ) -> Result<T, RenderError> {
        let data = self.view.data_of(cr);
        let inputs;
        let around;
        let data = if import.is_some() {
            inputs = Inputs::of(self.plan, &data, self.view.frame);
            around = inputs.around(data);
            around.of(import)?
        } else {
            &data
        };
        work(&mut self.view.frame.renderer(data, &mut EvalBudget::default()))
    }

    /// Returns the field that a rule sets on `cr`, and its value; none if it does not apply.
    fn completion(
        &self,
        rule: &Completion,
        cr: &Node,
    ) -> Result<Option<(Path, Node)>, RenderError> {
        self.on(cr, rule.import, |renderer| {
            if !renderer.gate(&rule.gate)? {
                return Ok(None);
            }
            let path = match &rule.target {
                CompletionTarget::Path(path) => path.clone(),
                CompletionTarget::Rendered(leaf) => {
                    let text = renderer.text(leaf)?;
                    rendered_target(&text).map_err(|message| RenderError {
                        path: leaf.path.clone().into(),
                        message,
                        reason: Reason::TemplateFailed,
                    })?
                }
            };
            let there = cr.at(&path);
            if (!rule.always && there.is_some_and(is_given)) || !leads_somewhere(cr, &path) {
                return Ok(None);
            }
            let Some(value) = renderer.leaf(&rule.value)? else {
                return Ok(None);
            };
            let news =
                value != Node::Null && !there.is_some_and(|there| is_unchanged(there, &value));
            Ok(news.then_some((path, value)))
        })
    }

    /// Returns the message if a rule is violated.
    fn demand(&self, rule: &ValidationRulePlan, cr: &Node) -> Result<Option<String>, RenderError> {
        self.on(cr, rule.import, |renderer| {
            if !renderer.gate(&rule.gate)?
                || !renderer.gate(&rule.present)?
                || renderer.gate(&rule.test)?
            {
                return Ok(None);
            }
            renderer.text(&rule.message).map(Some)
        })
    }
}

/// Parses a rendered path.
fn rendered_target(text: &str) -> Result<Path, String> {
    let path = Path::parse(text).map_err(|why| format!("`{text}` is not a valid path: {why}"))?;
    target_of(&path).map_err(|(message, _)| message)?;
    Ok(path)
}

/// True if the list items on the way to `path` exist.
fn leads_somewhere(cr: &Node, path: &Path) -> bool {
    let mut node = cr;
    for (depth, step) in path.steps().iter().enumerate() {
        let one: Path = std::iter::once(step.clone()).collect();
        match node.at(&one) {
            Some(below) => node = below,
            None if matches!(node, Node::List(_)) => return false,
            None => return !path.steps()[depth..].iter().any(is_item),
        }
    }
    true
}

/// True if a step refers to an item of a list.
fn is_item(step: &PathStep) -> bool {
    match step {
        PathStep::Index(_) => true,
        PathStep::Field(key) => key.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Returns the paths of `changes` that differ, sorted.
fn differing(before: &Node, after: &Node, changes: &[(Path, Node)]) -> Vec<Path> {
    let paths: BTreeSet<&Path> = changes.iter().map(|(path, _)| path).collect();
    let differ = paths
        .into_iter()
        .filter(|path| before.at(path) != after.at(path));
    differ.cloned().collect()
}
