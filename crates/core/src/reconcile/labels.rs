//! Labels that a plan sets on its custom resources.

use std::collections::BTreeMap;

use super::{
    reason::Reason,
    record::CrRecord,
    render::{Frame, Renderer},
    step::Failure,
};
use crate::{
    api::names,
    plan::{OperatorPlan, label_path},
    template::{Budget, Data},
    value::Node,
};

/// Labels by key.
pub type Labels = BTreeMap<Box<str>, Box<str>>;

/// Returns the wanted labels of a custom resource. A label that cannot be rendered stays as it is, which is reported.
pub(super) fn labels(
    plan: &OperatorPlan,
    cr: &CrRecord,
    data: &Data<'_>,
    frame: Frame<'_>,
) -> (Labels, Vec<Failure>) {
    let (mut labels, mut failures) = (Labels::new(), Vec::new());
    for (key, leaf) in &plan.labels {
        let mut budget = Budget::default();
        let mut renderer = Renderer {
            data,
            budget: &mut budget,
            frame,
        };
        let text = renderer.text(leaf).map_err(Failure::from);
        let legal = text.and_then(|text| match names::check_label_value(&text) {
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
                worn(cr, key)
            },
            Some,
        );
        labels.extend(value.map(|value| ((&**key).into(), value)));
    }
    (labels, failures)
}

/// Returns the plan's labels that a custom resource has.
pub fn worn_labels(plan: &OperatorPlan, cr: &CrRecord) -> Labels {
    let keys = plan.labels.iter();
    keys.filter_map(|(key, _)| Some(((&**key).into(), worn(cr, key)?)))
        .collect()
}

fn worn(cr: &CrRecord, key: &str) -> Option<Box<str>> {
    let path = label_path(key);
    cr.view.at(&path).and_then(Node::as_str).map(Box::from)
}
