//! Replacements for the parser's messages.

use super::super::SyntaxError;
use crate::diagnostics::Code;

/// The start of a parser message and its replacement: code, message, fix.
type ParserMessage = (&'static str, Code, &'static str, &'static str);

/// A tab in a position where only spaces are permitted.
pub(crate) const TABS: ParserMessage = (
    "tabs disallowed",
    Code::Syntax,
    "a tab indents the line",
    "indent with spaces",
);

const SAID: &[ParserMessage] = &[
    (
        "recursion limit exceeded",
        Code::TooLarge,
        "values are nested too deeply",
        "",
    ),
    (
        "budget breached: Depth",
        Code::TooLarge,
        "values are nested too deeply",
        "",
    ),
    (
        "budget breached",
        Code::TooLarge,
        "there are too many values",
        "",
    ),
    (
        "alias replay",
        Code::TooLarge,
        "aliases expand to too many values",
        "",
    ),
    (
        "recursive references",
        Code::Syntax,
        "an alias is used inside its own anchor",
        "",
    ),
    (
        "non-finite float",
        Code::Syntax,
        "infinity and NaN are not valid values",
        "",
    ),
    (
        "expected string scalar",
        Code::Syntax,
        "a key is text, not a list or a map",
        "",
    ),
    (
        "alias references unknown anchor",
        Code::Syntax,
        "there is no anchor of this name before it",
        "write `&name` before the value that the alias `*name` refers to",
    ),
    (
        "invalid trailing content after single-quoted",
        Code::Syntax,
        "there is text behind the closing quote",
        "inside of single quotes write an apostrophe twice: `''`",
    ),
    (
        "invalid trailing content after double-quoted",
        Code::Syntax,
        "there is text behind the closing quote",
        "inside of double quotes write a quote as `\\\"`; items in braces or brackets have a `,` between them",
    ),
    (
        "while parsing a quoted scalar, found unknown escape",
        Code::Syntax,
        "unknown escape sequence in double quotes",
        "use single quotes, or write the backslash twice",
    ),
    (
        "invalid indentation in multiline quoted",
        Code::Syntax,
        "the quoted string continues with too little indentation",
        "close the quote, or indent the line",
    ),
    (
        "unclosed quote",
        Code::Syntax,
        "the quote is not closed",
        "add the closing quote",
    ),
    (
        "simple key expected ':'",
        Code::Syntax,
        "the `:` after a key is missing",
        "write `key: value`; indent text of several lines further than its key",
    ),
    (
        "unclosed bracket '['",
        Code::Syntax,
        "the list is not closed",
        "add the `]`",
    ),
    (
        "unclosed bracket '{'",
        Code::Syntax,
        "the map is not closed",
        "add the `}`",
    ),
    (
        "mapping values are not allowed",
        Code::Syntax,
        "unexpected `:`",
        "put text that holds `: ` in quotes",
    ),
    (
        "while parsing a block mapping, did not find expected key",
        Code::Syntax,
        "the indentation of the line matches no enclosing block",
        "the fields of one map begin in one column",
    ),
    (
        "while parsing a block collection, did not find expected '-'",
        Code::Syntax,
        "the indentation of the line matches no enclosing block",
        "the fields of one item begin in one column, right of the `- `",
    ),
    (
        "while parsing a flow mapping, did not find expected",
        Code::Syntax,
        "a `,` or `}` is missing",
        "put text that holds `,`, `{`, `}` or quotes in quotes",
    ),
    (
        "while parsing a flow sequence, expected",
        Code::Syntax,
        "a `,` or `]` is missing",
        "put text that holds `,`, `[`, `]` or quotes in quotes",
    ),
    TABS,
    (
        "YAML merge value must be",
        Code::Syntax,
        "`<<` takes a map, or a list of maps",
        "",
    ),
];

/// Replaces the parser's message: without its position, which a diagnostic shows already, and without the options of its
/// interface.
pub(crate) fn say(message: &str) -> SyntaxError {
    let error = |code, message: String, hint: &str| SyntaxError {
        code,
        message,
        hint: Some(hint.to_owned()).filter(|hint| !hint.is_empty()),
        span: None,
    };
    let first = message.lines().next().unwrap_or(message);
    if let Some(rest) = first.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(", set ").next().unwrap_or(rest);
        let hint = match key {
            "apiVersion" | "kind" => "a further document begins with a line `---`",
            _ => "keep one of the two",
        };
        return error(Code::Syntax, format!("duplicate key `{key}`"), hint);
    }
    if let Some((_, code, ours, hint)) = SAID.iter().find(|(theirs, ..)| first.starts_with(theirs))
    {
        return error(*code, (*ours).to_owned(), hint);
    }
    if let Some(rest) = first.strip_prefix("unexpected character: `") {
        let message = format!(
            "no value begins with {:?}",
            rest.chars().next().unwrap_or(' ')
        );
        return error(Code::Syntax, message, "put the value in quotes");
    }
    let plain = first.split(" at line ").next().unwrap_or(first);
    error(
        Code::Syntax,
        plain.trim_end_matches([',', ':']).to_owned(),
        "",
    )
}
