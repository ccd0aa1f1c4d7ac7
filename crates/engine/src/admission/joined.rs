//! One validation of a policy for several rules, whose message lists every rule that is violated.
//!
//! ```text
//!  rule ── variable `holds0` ──► validation: holds0 && holds1 && …
//!      └── variable `says0`, empty if the rule holds ──► messageExpression: those that are not, joined by `; `
//! ```
//!
//! The API server refuses with the message of the first validation that fails, so one for each rule would show the violations one
//! after the other. A variable has a cost limit of its own, as a validation has.

use serde_json::{Value, json};

use orkestra_plan::{CelRule, cel::quoted};

/// The longest message that the API server shows, in bytes; a longer one is replaced by `message`.
///
/// Source: apiserver, `MaxEvaluatedMessageExpressionSizeBytes`.
const MESSAGE_BYTES: usize = 5 * 1024;
/// The characters that are left of a longer one: a character has at most four bytes, and the ellipsis three.
const MESSAGE_CHARACTERS: usize = (MESSAGE_BYTES - 3) / 4;
/// The longest text beside the expression of the message, in bytes.
const TEXT_BYTES: usize = 1024;

/// Returns the variables and the validations that refuse an object which violates any of `rules`.
pub(crate) fn validation(rules: &[&CelRule]) -> (Vec<Value>, Vec<Value>) {
    let names = |word: &str| -> Vec<String> {
        let numbered = (0..rules.len()).map(|at| format!("variables.{word}{at}"));
        numbered.collect()
    };
    let (holds, says) = (names("holds"), names("says"));
    let variable =
        |name: String, expression: String| json!({ "name": name, "expression": expression });
    let mut variables = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let CelRule {
            expression,
            message,
            message_expression,
            on_scale: _,
        } = *rule;
        let said = match message_expression {
            Some(said) => format!("({said})"),
            None => quoted(message),
        };
        variables.push(variable(format!("holds{at}"), expression.to_string()));
        variables.push(variable(
            format!("says{at}"),
            format!("{} ? \"\" : {said}", holds[at]),
        ));
    }
    let all = format!(
        "[{}].filter(said, said != \"\").join(\"; \")",
        says.join(", ")
    );
    variables.push(variable("all".to_owned(), all));
    let all = "variables.all";
    let message_expression = format!(
        "bytes({all}).size() <= {MESSAGE_BYTES} ? {all} : {all}.substring(0, {MESSAGE_CHARACTERS}) + \"…\""
    );
    let validation = json!({
        "expression": holds.join(" && "),
        "message": text(rules),
        "messageExpression": message_expression,
        "reason": "Invalid",
    });
    (variables, vec![validation])
}

/// Returns the message for an object whose violations cannot be listed.
fn text(rules: &[&CelRule]) -> String {
    let mut text = "not all of these rules hold: ".to_owned();
    for (at, rule) in rules.iter().enumerate() {
        let separator = if at == 0 { "" } else { "; " };
        if text.len() + separator.len() + rule.message.len() > TEXT_BYTES {
            text.push_str(separator);
            text.push('…');
            break;
        }
        text.push_str(separator);
        text.push_str(&rule.message);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use orkestra_plan::OnScale;

    #[test]
    fn the_text_beside_the_expression_is_short() {
        let rule = |length: usize| CelRule {
            expression: "true".into(),
            message: format!("spec.a: {}", "x".repeat(length)).into(),
            message_expression: None,
            on_scale: OnScale::default(),
        };
        let rules: Vec<CelRule> = (0..9).map(|_| rule(400)).collect();
        let all: Vec<&CelRule> = rules.iter().collect();
        let text = text(&all);
        assert!(
            text.len() <= TEXT_BYTES + 6 && text.ends_with("; …"),
            "{text}"
        );
        let long = rule(4000);
        assert_eq!(super::text(&[&long]), "not all of these rules hold: …");
    }
}
