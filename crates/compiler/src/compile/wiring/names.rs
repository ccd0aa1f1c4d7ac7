//! Compares names as they are written in the Katalog, without evaluating templates.

use orkestra_language::diagnostics::nearest;
use orkestra_object::value::Node;

/// Shorter parts of names differ on purpose: `db` and `dc`, `v1` and `v2`.
const SHORTEST: usize = 4;

/// Normalizes the spelling of templates in a text: `{{.metadata.name}}-x` is `{{ .metadata.name }}-x`.
pub(crate) fn normalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim();
    while let Some((before, behind)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((inside, after)) = behind.split_once("}}") else {
            out.push_str("{{");
            rest = behind;
            break;
        };
        let inside = inside.trim_matches(|c: char| c == '-' || c.is_whitespace());
        out.push_str("{{ ");
        out.push_str(inside);
        out.push_str(" }}");
        rest = after;
    }
    out.push_str(rest);
    out
}

/// True if two normalised names differ by a misspelling in one part between hyphens.
pub(crate) fn is_slip(one: &str, other: &str) -> bool {
    let (left, right) = (parts(one), parts(other));
    if left.len() != right.len() {
        return false;
    }
    let mut differing = left.iter().zip(&right).filter(|(a, b)| a != b);
    let (Some((a, b)), None) = (differing.next(), differing.next()) else {
        return false;
    };
    let is_word = |part: &str| {
        part.len() >= SHORTEST && !part.contains(|c: char| c == '{' || c.is_ascii_digit())
    };
    is_word(a) && is_word(b) && nearest(a, [*b]).is_some()
}

/// Returns the template of a normalised name that begins with the name of the custom resource.
pub(crate) fn template_of(name: &str) -> Option<&str> {
    let end = name.find("}}")? + "}}".len();
    let template = &name[..end];
    (template == "{{ .metadata.name }}").then_some(template)
}

/// Returns the parts of a name between hyphens, outside of templates.
fn parts(name: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in name.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            '-' if depth == 0 => {
                parts.push(&name[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&name[start..]);
    parts
}

/// True if a map anywhere in `node` has the key `field`.
pub(crate) fn mentions(node: &Node, field: &str) -> bool {
    match node {
        Node::Map(entries) => entries
            .iter()
            .any(|(key, below)| &**key == field || mentions(below, field)),
        Node::List(items) => items.iter().any(|item| mentions(item, field)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_templates_have_one_spelling() {
        for text in [
            "{{.metadata.name}}-db",
            "{{  .metadata.name }}-db ",
            "{{- .metadata.name -}}-db",
        ] {
            assert_eq!(normalised(text), "{{ .metadata.name }}-db");
        }
        assert_eq!(normalised("a{{ b"), "a{{ b");
    }

    #[test]
    fn a_slip_is_one_misspelt_part() {
        for (one, other) in [
            ("{{ .metadata.name }}-confg", "{{ .metadata.name }}-config"),
            ("db-credentails", "db-credentials"),
        ] {
            assert!(is_slip(one, other), "{one}");
        }
        for (one, other) in [
            ("{{ .metadata.name }}-db", "{{ .metadata.name }}-dc"),
            ("cache-1", "cache-2"),
            ("web-blue1", "web-blue2"),
            ("{{ .spec.config }}", "{{ .spec.confg }}"),
            ("web-config", "web-config"),
            ("web-config", "api-confg"),
            ("web", "web-config"),
        ] {
            assert!(!is_slip(one, other), "{one}");
        }
    }
}
