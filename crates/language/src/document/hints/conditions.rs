//! Conditions written as expressions: `spec.tier == "gold"`.

/// Operators of expressions, longer ones first, and the equivalent fields.
const OPERATORS: [(&str, &str); 8] = [
    ("==", "equals"),
    ("!=", "notEquals"),
    (">=", "greaterThanOrEqual"),
    ("<=", "lessThanOrEqual"),
    ("=~", "regex"),
    (">", "greaterThan"),
    ("<", "lessThan"),
    ("=", "equals"),
];

/// Returns the condition fields for an expression; `None` if it has more than one comparison.
pub(crate) fn meant(text: &str) -> Option<String> {
    let text = text.trim_matches(['{', '}', '$', ' ']);
    if text.contains("&&") || text.contains("||") {
        return None;
    }
    let found = OPERATORS.iter().find_map(|(operator, field)| {
        let (left, right) = text.split_once(operator)?;
        Some((left, *field, right))
    });
    let Some((left, operator, right)) = found else {
        let (path, word) = match text.strip_prefix('!') {
            Some(rest) => (path(rest)?, "notExists"),
            None => (path(text)?, "exists"),
        };
        return Some(format!("field: {path}, {word}: true"));
    };
    let (path, value) = (path(left)?, right.trim());
    Some(match (operator, value.trim_matches(['"', '\''])) {
        ("equals", "" | "null" | "nil") => format!("field: {path}, notExists: true"),
        ("notEquals", "" | "null" | "nil") => format!("field: {path}, exists: true"),
        _ => format!("field: {path}, {operator}: {value}"),
    })
}

/// Returns a path in the form that conditions use.
fn path(text: &str) -> Option<&str> {
    let text = text.trim_matches(['{', '}', '$', ' ']);
    let text = text
        .strip_prefix("schema.")
        .unwrap_or(text)
        .trim_start_matches('.');
    let is_path = |c: char| c.is_ascii_alphanumeric() || "._-[]".contains(c);
    (!text.is_empty() && text.chars().all(is_path)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_fields_and_operators() {
        for (text, fields) in [
            (
                "spec.tier == \"gold\"",
                Some("field: spec.tier, equals: \"gold\""),
            ),
            (
                ".spec.debug == true",
                Some("field: spec.debug, equals: true"),
            ),
            (
                "spec.title != \"\"",
                Some("field: spec.title, exists: true"),
            ),
            (
                "spec.replicas >= 3",
                Some("field: spec.replicas, greaterThanOrEqual: 3"),
            ),
            ("{{ .spec.debug }}", Some("field: spec.debug, exists: true")),
            (
                "${schema.spec.ingress.enabled}",
                Some("field: spec.ingress.enabled, exists: true"),
            ),
            ("!spec.paused", Some("field: spec.paused, notExists: true")),
            ("spec.a == 1 && spec.b == 2", None),
            ("len(spec.hosts) > 0", None),
        ] {
            assert_eq!(meant(text).as_deref(), fields, "{text}");
        }
    }
}
