//! Compiles messages of rules to CEL.

use super::{
    CelContext,
    side::{CelType, path_of},
};
use orkestra_plan::cel::quoted;
use orkestra_template::Template;

/// Texts with control characters: the API server drops warnings that have any.
///
/// Source: apimachinery, `NewWarningHeader`.
const CONTROL: &str = r"[\x00-\x1f\x7f-\x{9f}]";

impl CelContext<'_> {
    /// Returns the message of a rule as text, with `…` for each part that depends on the object; and its expression, if CEL
    /// can say all of it and it does.
    pub(crate) fn message(&self, label: &str, template: &Template) -> (String, Option<String>) {
        let (mut text, mut parts) = (String::new(), Vec::new());
        let mut rest = template.source();
        let mut is_said = true;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((inner, next)) = after.split_once("}}") else {
                break;
            };
            add(&mut text, &mut parts, before);
            text.push('…');
            match self.part(template, inner) {
                Some(part) => parts.push(part),
                None => is_said = false,
            }
            rest = next;
        }
        add(&mut text, &mut parts, rest);
        let head = one_line(&format!("{label}: "));
        let is_fixed = template.literal().is_some();
        let said = (is_said && !is_fixed)
            .then(|| format!("{} + ({}).trim()", quoted(&head), parts.join(" + ")));
        (format!("{head}{}", one_line(text.trim())), said)
    }

    /// Returns the text of a part.
    fn part(&self, template: &Template, inner: &str) -> Option<String> {
        let side = self.side(&path_of(template, inner)?).ok()?;
        let value = match side.kind {
            CelType::Text => format!(
                "({0}.matches({1}) ? \"…\" : {0})",
                side.value,
                quoted(CONTROL)
            ),
            CelType::Int | CelType::Bool => format!("string({})", side.value),
            CelType::Number | CelType::List | CelType::Map => return None,
        };
        Some(format!("({} ? {value} : \"\")", side.present))
    }
}

fn add(text: &mut String, parts: &mut Vec<String>, literal: &str) {
    text.push_str(literal);
    if !literal.is_empty() {
        parts.push(quoted(&one_line(literal)));
    }
}

/// Policies refuse messages with line breaks.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
