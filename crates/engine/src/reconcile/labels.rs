//! Labels and annotations that a plan sets on its custom resources.

use std::collections::BTreeMap;

use super::{failure::Failure, reason::Reason, record::CrRecord, render::Frame};
use orkestra_language::api::{apply_set, names};
use orkestra_object::value::Node;
use orkestra_plan::{MetadataKey, OperatorPlan};
use orkestra_template::{Data, EvalBudget};

/// Labels and annotations by key.
pub type Labels = BTreeMap<MetadataKey, Box<str>>;

/// The labels and annotations that a custom resource shall have. One that cannot be rendered stays as it is, which is reported.
pub(crate) fn labels(
    plan: &OperatorPlan,
    cr: &CrRecord,
    data: &Data<'_>,
    frame: Frame<'_>,
) -> (Labels, Vec<Failure>) {
    let (mut labels, mut failures) = (Labels::new(), Vec::new());
    for (key, leaf) in &plan.labels {
        let mut budget = EvalBudget::default();
        let mut renderer = frame.renderer(data, &mut budget);
        let text = if *key.key() == *apply_set::LABEL_ID {
            Ok(set_of(plan, cr))
        } else {
            renderer.text(leaf).map_err(Failure::from)
        };
        let check = |text: &str| match key {
            MetadataKey::Label(_) => names::check_label_value(text),
            MetadataKey::Annotation(_) => Ok(()),
        };
        let legal = text.and_then(|text| match check(&text) {
            Ok(()) => Ok(text.into()),
            Err(message) => Err(Failure {
                reason: Reason::InvalidName,
                at: leaf.path.to_string(),
                message,
            }),
        });
        let value = legal.map_or_else(
            |failure| {
                failures.push(failure);
                current_value(cr, key)
            },
            Some,
        );
        labels.extend(value.map(|value| (key.clone(), value)));
    }
    (labels, failures)
}

/// Returns the identifier of the `ApplySet` whose parent is the custom resource.
pub(crate) fn set_of(plan: &OperatorPlan, cr: &CrRecord) -> String {
    let (key, resource) = (&cr.id.key, &plan.resource);
    let namespace = key.namespace.as_deref();
    apply_set::id(&key.name, namespace, &resource.kind, &resource.group)
}

/// True if a custom resource has exactly these labels and annotations, of those that are set.
pub fn are_current(wanted: &Labels, cr: &CrRecord) -> bool {
    let mut wanted = wanted.iter();
    wanted.all(|(key, value)| current_value(cr, key).as_ref() == Some(value))
}

/// The labels and annotations of a plan and of earlier answers of its hooks that a custom resource has.
pub fn current_labels(plan: &OperatorPlan, cr: &CrRecord) -> Labels {
    let keys = plan.labels.iter().map(|(key, _)| key);
    let of_hooks = (!plan.hooks.is_empty()).then_some(&cr.inventory.labels);
    keys.chain(of_hooks.into_iter().flatten())
        .filter_map(|key| Some((key.clone(), current_value(cr, key)?)))
        .collect()
}

fn current_value(cr: &CrRecord, key: &MetadataKey) -> Option<Box<str>> {
    cr.view
        .at(&key.path())
        .and_then(Node::as_str)
        .map(Box::from)
}
