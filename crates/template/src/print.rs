//! Values as text, in Go's form: `[a b]`, `map[k:v]`, and numbers exact.

use super::budget::EvalBudget;
use super::error::EvalFailure;
use orkestra_object::value::Node;

/// Prints a value: null as nothing, everything else as [`verb_v`].
pub(crate) fn print(
    out: &mut String,
    node: &Node,
    budget: &mut EvalBudget,
) -> Result<(), EvalFailure> {
    match node {
        Node::Null => Ok(()),
        node => verb_v(out, node, budget),
    }
}

/// Prints a value as Go's `%v` does, except that floats are exact and have no exponent.
///
/// A null is printed as `<nil>`, also within lists and maps.
///
/// Source: Go's package fmt, "Printing".
pub(crate) fn verb_v(
    out: &mut String,
    node: &Node,
    budget: &mut EvalBudget,
) -> Result<(), EvalFailure> {
    match node {
        Node::Null => append(out, "<nil>", budget),
        Node::Bool(true) => append(out, "true", budget),
        Node::Bool(false) => append(out, "false", budget),
        Node::Str(text) => append(out, text, budget),
        Node::Int(_) | Node::UInt(_) | Node::Float(_) => append(out, &node.to_text(), budget),
        Node::List(items) => {
            budget.enter()?;
            append(out, "[", budget)?;
            for (at, item) in items.iter().enumerate() {
                budget.step(1)?;
                append(out, if at == 0 { "" } else { " " }, budget)?;
                verb_v(out, item, budget)?;
            }
            budget.leave();
            append(out, "]", budget)
        }
        Node::Map(map) => {
            budget.enter()?;
            append(out, "map[", budget)?;
            for (at, (key, item)) in map.iter().enumerate() {
                budget.step(1)?;
                append(out, if at == 0 { "" } else { " " }, budget)?;
                append(out, key, budget)?;
                append(out, ":", budget)?;
                verb_v(out, item, budget)?;
            }
            budget.leave();
            append(out, "]", budget)
        }
    }
}

/// Charges for a text and appends it. The result may have at most 1 MiB.
pub(crate) fn append(
    out: &mut String,
    text: &str,
    budget: &mut EvalBudget,
) -> Result<(), EvalFailure> {
    budget.longer(out.len(), text.len())?;
    out.push_str(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(value: &serde_json::Value) -> String {
        let mut out = String::new();
        print(&mut out, &Node::from(value), &mut EvalBudget::default()).unwrap();
        out
    }

    #[test]
    fn trees_print_as_in_go_and_numbers_exactly() {
        let cases = [
            (json!(null), ""),
            (json!(true), "true"),
            (json!([]), "[]"),
            (json!({}), "map[]"),
            (json!(["a", 1, null, [true]]), "[a 1 <nil> [true]]"),
            (json!({"b": 1, "a": {"c": "x"}}), "map[a:map[c:x] b:1]"),
            (json!(1e6), "1000000"),
            (json!([1_234_567.5]), "[1234567.5]"),
        ];
        for (value, text) in cases {
            assert_eq!(printed(&value), text);
        }
    }
}
