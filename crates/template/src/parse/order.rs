//! Detects arguments in Sprig's order, where the value comes last because pipelines append it.
//!
//! Here the value comes first. A call in the other order is valid and does something else, so it gets a warning if the value
//! is a constant and the last argument is not.

use super::super::TemplateError;
use super::super::ast::Expr;
use super::super::notes::BuiltInNote;
use super::lexer::{self, Token};
use orkestra_language::diagnostics::Code;
use orkestra_object::value::Node;

/// Notes that Sprig also has, with the value as the last argument, and the number of arguments in both.
const VALUE_LAST: &[(&str, usize)] = &[
    ("contains", 2),
    ("hasPrefix", 2),
    ("hasSuffix", 2),
    ("join", 2),
    ("repeat", 2),
    ("replace", 3),
    ("split", 2),
    ("ternary", 3),
    ("trim", 2),
    ("trimPrefix", 2),
    ("trimSuffix", 2),
    ("truncate", 2),
];

/// Returns the corrected call, if the arguments are in Sprig's order.
pub(crate) fn meant(note: &BuiltInNote, args: &[Expr], piped: bool) -> Option<String> {
    let (_, count) = VALUE_LAST.iter().find(|(name, _)| *name == note.name)?;
    let (first, last) = (args.first()?.literal()?, args.last()?);
    if args.len() + usize::from(piped) != *count || !(piped || last.literal().is_none()) {
        return None;
    }
    // `contains "eu us" .spec.region` searches for the region in a list of words.
    let is_list = |text: &str| text.contains([' ', ',', ';', '|', '\n']);
    let is_value = match first {
        Node::Str(text) => note.name == "contains" && is_list(text),
        Node::Bool(_) => note.name == "ternary",
        _ => false,
    };
    if is_value {
        return None;
    }
    let value = if note.name == "ternary" {
        "CONDITION"
    } else {
        "VALUE"
    };
    let others = args.iter().take(count - 1).map(|arg| match arg.literal() {
        Some(Node::Str(text)) => format!("{text:?}"),
        Some(constant) => constant.to_text().into_owned(),
        None => "…".to_owned(),
    });
    let words = [note.name.to_owned(), value.to_owned()]
        .into_iter()
        .chain(others);
    Some(words.collect::<Vec<_>>().join(" "))
}

/// Returns the warning about such a call.
pub(crate) fn warning(name: Token, meant: &str, piped: bool) -> TemplateError {
    let message = if piped {
        "the piped value is the last argument, and this function takes the value first"
    } else {
        "the arguments are in Sprig's order: this function takes the value first"
    };
    TemplateError {
        code: Code::ArgumentOrder,
        hint: Some(format!("write `{meant}`")),
        ..lexer::error(name.at, name.end, message)
    }
}

/// Returns the warning about a `lookup` with Helm's arguments: an API version, a kind, a namespace and a name.
pub(crate) fn helms_lookup(
    note: &BuiltInNote,
    args: &[Expr],
    name: Token,
) -> Option<TemplateError> {
    let text = |at: usize| args.get(at)?.literal()?.as_str();
    let is_version = |text: &str| {
        let version = text.rsplit('/').next().unwrap_or_default();
        let rest = version.strip_prefix('v');
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let is_kind = |text: &str| text.starts_with(|first: char| first.is_ascii_uppercase());
    let is_helms =
        note.name == "lookup" && args.len() == 4 && is_version(text(0)?) && is_kind(text(1)?);
    is_helms.then(|| TemplateError {
        code: Code::ArgumentOrder,
        hint: Some(
            "templates read children as `.children`; custom resources of other operators need `cross`, copies of Secrets \
             `fromSecret`"
                .to_owned(),
        ),
        ..lexer::error(
            name.at,
            name.end,
            "this `lookup` chooses among its arguments and reads nothing from the cluster, as Helm's does",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Template, notes};

    #[test]
    fn the_notes_of_the_table_exist() {
        for (name, count) in VALUE_LAST {
            let note = notes::find(name).unwrap();
            assert_eq!(note.max_args, Some(*count), "{name}");
        }
    }

    #[test]
    fn sprigs_order_gets_the_call_as_it_should_be() {
        for (source, meant) in [
            (
                r#"{{ .spec.url | trimSuffix "/" }}"#,
                r#"trimSuffix VALUE "/""#,
            ),
            (
                r#"{{ trimPrefix "v" .spec.tag }}"#,
                r#"trimPrefix VALUE "v""#,
            ),
            (r#"{{ .a | replace "_" "-" }}"#, r#"replace VALUE "_" "-""#),
            (
                r#"{{ .a | ternary "x" "y" }}"#,
                r#"ternary CONDITION "x" "y""#,
            ),
            (
                r#"{{ if contains "eu" .spec.region }}{{ end }}"#,
                r#"contains VALUE "eu""#,
            ),
        ] {
            let template = Template::parse(source).unwrap();
            let [warning] = template.warnings() else {
                panic!("{source}: {:?}", template.warnings());
            };
            assert_eq!(warning.code, Code::ArgumentOrder);
            assert_eq!(warning.hint, Some(format!("write `{meant}`")));
        }
    }

    #[test]
    fn our_order_gets_no_warning() {
        for source in [
            r#"{{ replace .spec.name "_" "-" }}"#,
            r#"{{ contains "eu us" .spec.region }}"#,
            r"{{ ternary .spec.debug 1 2 }}",
            r"{{ ternary true .a .b }}",
            r"{{ trim .a }}",
            r"{{ .a | trim }}",
            r#"{{ trimSuffix "a.git" ".git" }}"#,
        ] {
            assert_eq!(Template::parse(source).unwrap().warnings(), [], "{source}");
        }
    }
}
