//! Compares rules with operations, and expected values with actual ones.

use super::{Op, Verb};
use orkestra_language::api::simulate::{OpRule, OpVerb};
use orkestra_object::value::{MASK, Node};

pub(crate) fn words(rule: &OpRule) -> String {
    let verb = match rule.verb {
        Some(OpVerb::Create) => "create ",
        Some(OpVerb::Apply) => "apply ",
        Some(OpVerb::Update) => "update ",
        Some(OpVerb::Delete) => "delete ",
        Some(OpVerb::Patch) => "patch ",
        None => "operation on ",
    };
    let resource = rule.resource.as_deref().unwrap_or_default();
    let object = match (&rule.namespace, &rule.name) {
        (Some(namespace), Some(name)) => format!(" {namespace}/{name}"),
        (None, Some(name)) => format!(" {name}"),
        (Some(namespace), None) => format!(" in namespace {namespace}"),
        (None, None) => String::new(),
    };
    let cycle = rule.cycle.map(|cycle| format!(" in cycle {cycle}"));
    format!("{verb}{resource}{object}{}", cycle.unwrap_or_default())
}

pub(crate) fn matches(rule: &OpRule, cycle: usize, op: &Op) -> bool {
    let verb = match rule.verb {
        None => true,
        Some(OpVerb::Create) => op.verb == Verb::Create,
        Some(OpVerb::Apply) => matches!(op.verb, Verb::Create | Verb::Update),
        Some(OpVerb::Update) => op.verb == Verb::Update,
        Some(OpVerb::Delete) => op.verb == Verb::Delete,
        Some(OpVerb::Patch) => matches!(op.verb, Verb::Update | Verb::Patch),
    };
    let is = |given: &Option<String>, is: Option<&str>| {
        given.as_deref().is_none_or(|given| Some(given) == is)
    };
    verb && rule
        .cycle
        .is_none_or(|wanted| usize::try_from(wanted) == Ok(cycle))
        && rule
            .resource
            .as_deref()
            .is_none_or(|resource| is_resource(resource, op))
        && is(&rule.name, Some(&op.object.name))
        && is(&rule.namespace, op.object.namespace.as_deref())
}

/// True if a rule's `resource` matches the object of an operation: the plural, with or without its group, and the status
/// subresource only or as well.
fn is_resource(wanted: &str, op: &Op) -> bool {
    let (wanted, is_status) = match wanted.strip_suffix("/status") {
        Some(wanted) => (wanted, true),
        None => (wanted, false),
    };
    let is_plural = match wanted.split_once('.') {
        Some((plural, group)) => plural == op.resource && group == op.group,
        None => wanted == op.resource,
    };
    is_plural && (!is_status || op.is_status)
}

/// Adds what differs: of maps the expected fields count, of lists all items.
pub fn compare(expected: &Node, seen: &Node, at: &str, is_hidden: bool, diff: &mut Vec<String>) {
    match (expected, seen) {
        (Node::Map(fields), Node::Map(_) | Node::Null) if !fields.is_empty() => {
            for (key, expected) in fields.iter() {
                let nothing = Node::Null;
                let seen = seen.get(key).unwrap_or(&nothing);
                compare(expected, seen, &format!("{at}.{key}"), is_hidden, diff);
            }
        }
        (Node::List(expected), Node::List(seen)) if expected.len() == seen.len() => {
            for (index, (expected, seen)) in expected.iter().zip(seen.iter()).enumerate() {
                compare(expected, seen, &format!("{at}[{index}]"), is_hidden, diff);
            }
        }
        _ if is_same(expected, seen) => {}
        _ => {
            diff.push(format!("- {at}: {}", shown(expected)));
            let seen = match seen {
                Node::Null => "nothing".to_owned(),
                _ if is_hidden => MASK.to_owned(),
                seen => shown(seen),
            };
            diff.push(format!("+ {at}: {seen}"));
        }
    }
}

/// True if two values are equal in any notation: `2` and `"2"`.
fn is_same(expected: &Node, seen: &Node) -> bool {
    let is_scalar = |node: &Node| !matches!(node, Node::Map(_) | Node::List(_) | Node::Null);
    expected == seen
        || (is_scalar(expected) && is_scalar(seen) && expected.to_text() == seen.to_text())
}

fn shown(node: &Node) -> String {
    match node {
        Node::Map(_) | Node::List(_) => node.to_json().to_string(),
        node if node.as_str().is_some_and(|text| text.contains('\n')) => node.to_json().to_string(),
        node => node.to_text().into_owned(),
    }
}
