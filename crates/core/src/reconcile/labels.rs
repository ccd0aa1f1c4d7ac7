//! Labels and annotations that a plan sets on its custom resources.

use std::collections::BTreeMap;

use super::{failure::Failure, reason::Reason, record::CrRecord, render::Frame};
use crate::{
    api::{apply_set, names},
    plan::{MetadataKey, OperatorPlan},
    template::{Data, EvalBudget},
    value::Node,
};

/// Labels and annotations by key.
pub type Labels = BTreeMap<MetadataKey, Box<str>>;

/// The labels and annotations that a custom resource shall have. One that cannot be rendered stays as it is, which is reported.
pub(super) fn labels(
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
pub(super) fn set_of(plan: &OperatorPlan, cr: &CrRecord) -> String {
    let (key, resource) = (&cr.id.key, &plan.resource);
    let namespace = key.namespace.as_deref();
    apply_set::id(&key.name, namespace, &resource.kind, &resource.group)
}

/// The labels and annotations of a plan that a custom resource has.
pub fn current_labels(plan: &OperatorPlan, cr: &CrRecord) -> Labels {
    let keys = plan.labels.iter();
    keys.filter_map(|(key, _)| Some((key.clone(), current_value(cr, key)?)))
        .collect()
}

fn current_value(cr: &CrRecord, key: &MetadataKey) -> Option<Box<str>> {
    cr.view
        .at(&key.path())
        .and_then(Node::as_str)
        .map(Box::from)
}
