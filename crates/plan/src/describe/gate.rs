//! Gates as plain values.

use super::{leaf, list, map, of_template};
use crate::{
    CleanupPlan, ConditionPlan, EmitPlan, Gate, HoldPlan, JsonType, Leaf, Members, Operand,
    OperandRelation, Order, OwnCondition, Pattern, Question, RequeuePlan, StatusPlan, Test, Window,
};
use orkestra_language::window::Daily;
use orkestra_object::value::Node;

/// Describes a gate.
pub fn gate(gate: &Gate) -> Node {
    let Gate { all, any } = gate;
    let any = (!any.is_empty()).then(|| ("or", list(any.iter().map(condition))));
    map([("when", list(all.iter().map(condition)))]
        .into_iter()
        .chain(any))
}

/// Describes the gates of a whole operator, and its other parts that are present only if declared.
pub(crate) fn parts(
    hold: &HoldPlan,
    requeue: &[RequeuePlan],
    status: &StatusPlan,
) -> Vec<(&'static str, Node)> {
    let HoldPlan {
        enqueue,
        reconcile,
        children,
        on_false: _,
    } = hold;
    let StatusPlan {
        conditions: _,
        own,
        ready_when,
        fields: _,
    } = status;
    let gates = [
        ("enqueueGate", enqueue),
        ("reconcileGate", reconcile),
        ("boxGate", children),
        ("readyWhen", ready_when),
    ];
    let gates = gates.into_iter().filter(|(_, gate)| !gate.is_empty());
    let mut parts: Vec<_> = gates.map(|(name, of)| (name, gate(of))).collect();
    let rule = |RequeuePlan { after, gate }: &RequeuePlan| {
        map([("after", leaf(after)), ("gate", self::gate(gate))])
    };
    match requeue {
        [] => {}
        [one] => parts.push(("requeue", rule(one))),
        several => parts.push(("requeue", list(several.iter().map(rule)))),
    }
    if !own.is_empty() {
        parts.push(("ownConditions", list(own.iter().map(own_condition))));
    }
    parts
}

/// Describes the declared Events and the cleanup, if declared.
pub(crate) fn reports(
    emits: &[EmitPlan],
    cleanup: Option<&CleanupPlan>,
) -> Vec<(&'static str, Node)> {
    let mut parts = Vec::new();
    if !emits.is_empty() {
        parts.push(("emits", map(emits.iter().map(emit))));
    }
    if let Some(CleanupPlan {
        gate,
        after,
        path: _,
    }) = cleanup
    {
        let after = orkestra_language::api::duration::format(*after);
        let cleanup = [("gate", self::gate(gate)), ("after", Node::from(after))];
        parts.push(("cleanup", map(cleanup)));
    }
    parts
}

fn emit(plan: &EmitPlan) -> (&str, Node) {
    let EmitPlan {
        name,
        warns,
        on,
        reason,
        message,
        gate,
    } = plan;
    let event = map([
        ("warns", Node::from(*warns)),
        ("on", Node::from(format!("{on:?}"))),
        ("reason", leaf(reason)),
        ("message", leaf(message)),
        ("gate", self::gate(gate)),
    ]);
    (name, event)
}

fn own_condition(condition: &OwnCondition) -> Node {
    let OwnCondition {
        name,
        status,
        reason,
        message,
        gate,
        path: _,
    } = condition;
    let optional = |of: &Option<Leaf>| of.as_ref().map(leaf).unwrap_or_default();
    map([
        ("type", Node::from(&**name)),
        ("status", optional(status)),
        ("reason", optional(reason)),
        ("message", optional(message)),
        ("gate", self::gate(gate)),
    ])
}

fn condition(condition: &ConditionPlan) -> Node {
    let ConditionPlan {
        asks,
        negate,
        path: _,
    } = condition;
    let negate = negate.then_some(("negate", Node::from(true)));

    match asks {
        Question::Value(operand, tests) => {
            let operand = match operand {
                Operand::Path(path) => Node::from(path.to_string()),
                Operand::Template(template) => of_template("$template", template),
            };
            let tests = tests.iter().map(test);
            map([("field", operand)].into_iter().chain(tests).chain(negate))
        }
        Question::Time(windows) => map([("time", list(windows.iter().map(window)))]
            .into_iter()
            .chain(negate)),
    }
}

fn test(test: &Test) -> (&'static str, Node) {
    let Test { relation, not } = test;
    let (name, right) = relation_of(relation);
    (if *not { opposite(name) } else { name }, right)
}

/// Returns the field of conditions for a relation, or for its opposite.
pub fn relation(relation: &OperandRelation, not: bool) -> &'static str {
    let (name, _) = relation_of(relation);
    if not { opposite(name) } else { name }
}

fn relation_of(relation: &OperandRelation) -> (&'static str, Node) {
    let yes = Node::from(true);
    match relation {
        OperandRelation::Exists => ("exists", yes),
        OperandRelation::Unique => ("unique", yes),
        OperandRelation::Unchanged => ("unchanged", yes),
        OperandRelation::Equals(right, of) => {
            let name = format!("{of:?}");
            (
                "equals",
                map([("to", leaf(right)), ("as", Node::from(name))]),
            )
        }
        OperandRelation::Contains(right) => ("contains", leaf(right)),
        OperandRelation::Prefix(right) => ("prefix", leaf(right)),
        OperandRelation::Suffix(right) => ("suffix", leaf(right)),
        OperandRelation::Matches(Pattern::Fixed(regex)) => ("regex", Node::from(regex.as_str())),
        OperandRelation::Matches(Pattern::Rendered(right)) => ("regex", leaf(right)),
        OperandRelation::Is(order, right) => (
            match order {
                Order::Greater => "gt",
                Order::GreaterOrEqual => "gte",
                Order::Less => "lt",
                Order::LessOrEqual => "lte",
            },
            leaf(right),
        ),
        OperandRelation::Between(bounds) => ("between", members(bounds)),
        OperandRelation::In(values, of) => {
            let name = format!("{of:?}");
            (
                "in",
                map([("of", members(values)), ("as", Node::from(name))]),
            )
        }
        OperandRelation::Type(of) => {
            let name = JsonType::ALL.iter().find(|(_, known)| known == of);
            ("typeOf", Node::from(name.map_or("", |(name, _)| name)))
        }
    }
}

fn opposite(name: &'static str) -> &'static str {
    match name {
        "exists" => "notExists",
        "contains" => "notContains",
        "prefix" => "notPrefix",
        "suffix" => "notSuffix",
        "between" => "notBetween",
        "in" => "notIn",
        _ => "notEquals",
    }
}

fn members(members: &Members) -> Node {
    match members {
        Members::Each(leaves) => list(leaves.iter().map(leaf)),
        Members::Split(of) => leaf(of),
    }
}

fn window(window: &Window) -> Node {
    let optional = |of: &Option<Leaf>| of.as_ref().map(leaf).unwrap_or_default();
    match window {
        Window::Daily(Daily { after, before }) => {
            let text = |time: &Option<jiff::civil::Time>| {
                time.map(|time| Node::from(time.to_string()))
                    .unwrap_or_default()
            };
            map([("after", text(after)), ("before", text(before))])
        }
        Window::Rendered(after, before) => {
            map([("after", optional(after)), ("before", optional(before))])
        }
        Window::Days(days) => map([("days", Node::from(i64::from(days.bits())))]),
        Window::Cron(schedule, length) => map([
            ("cron", leaf(schedule)),
            (
                "for",
                Node::from(orkestra_language::api::duration::format(*length)),
            ),
        ]),
    }
}
