//! Rules as plain values.

use super::{gate, leaf, list, map, place};
use crate::{Completion, CompletionTarget, Moments, Normalized, RulesPlan, ValidationRulePlan};
use orkestra_object::value::Node;

/// Describes the mutation and validation of a custom resource.
pub(crate) fn rules(plan: &RulesPlan) -> Node {
    let RulesPlan {
        normalize,
        persist,
        audit,
        mutation,
        late,
        validation,
    } = plan;
    let always = [
        ("normalize", list(normalize.iter().map(normalized))),
        ("persist", Node::from(*persist)),
        ("mutation", list(mutation.iter().map(completion))),
        ("late", Node::from(*late)),
        ("validation", list(validation.iter().map(demand))),
    ];
    // Omitted if it has no effect, so that plans keep their hash.
    let audit = audit.then_some(("audit", Node::Bool(true)));
    map(always.into_iter().chain(audit))
}

fn normalized(one: &Normalized) -> Node {
    let Normalized {
        path,
        value,
        is_known,
        moments,
    } = one;
    let normalized = [
        ("path", Node::from(path.to_string())),
        ("value", leaf(value)),
        ("known", Node::from(*is_known)),
    ];
    map(normalized.into_iter().chain(only(moments)))
}

fn completion(one: &Completion) -> Node {
    let Completion {
        import,
        target,
        value,
        always,
        gate: when,
        moments,
        cel: _,
    } = one;
    let target = match target {
        CompletionTarget::Path(path) => Node::from(path.to_string()),
        CompletionTarget::Rendered(path) => leaf(path),
    };
    let completion = [
        ("field", target),
        ("value", leaf(value)),
        ("always", Node::from(*always)),
        ("gate", gate(when)),
    ];
    let completion = completion.into_iter().chain(place("import", *import));
    map(completion.chain(only(moments)))
}

fn demand(one: &ValidationRulePlan) -> Node {
    let ValidationRulePlan {
        import,
        label,
        test,
        present,
        message,
        warns,
        gate: when,
        moments,
        cel: _,
    } = one;
    let demand = [
        ("label", Node::from(&**label)),
        ("test", gate(test)),
        ("optional", Node::from(!present.is_empty())),
        ("message", leaf(message)),
        ("warns", Node::from(*warns)),
        ("gate", gate(when)),
    ];
    let demand = demand.into_iter().chain(place("import", *import));
    map(demand.chain(only(moments)))
}

/// Describes the moments of a rule as far as it does not apply in passes; passes depend on nothing else.
fn only(moments: &Moments) -> Option<(&'static str, Node)> {
    let never = moments.not_in_passes.is_some();
    never.then_some(("passes", Node::Bool(false)))
}
