//! The namespaces that custom resources may choose, as plain values.

use super::{list, map};
use crate::{LabelRequirementPlan, LabelSelector, TargetsPlan};
use orkestra_object::value::Node;

pub(crate) fn targets(plan: &TargetsPlan) -> Node {
    let TargetsPlan { names, selectors } = plan;
    let texts = |texts: &[Box<str>]| list(texts.iter().map(|text| Node::from(&**text)));
    let selector = |selector: &LabelSelector| {
        let LabelSelector {
            labels,
            requirements,
        } = selector;
        let labels = labels
            .iter()
            .map(|(key, value)| (&**key, Node::from(&**value)));
        let requirements = requirements.iter().map(|requirement| {
            let LabelRequirementPlan {
                key,
                operator,
                values,
            } = requirement;
            map([
                ("key", Node::from(&**key)),
                ("operator", Node::from(format!("{operator:?}"))),
                ("values", texts(values)),
            ])
        });
        map([
            ("labels", map(labels)),
            ("requirements", list(requirements)),
        ])
    };
    map([
        ("names", texts(names)),
        ("selectors", list(selectors.iter().map(selector))),
    ])
}
