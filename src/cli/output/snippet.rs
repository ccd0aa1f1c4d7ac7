//! One problem as compilers print it: the message, the position, the source line with the cause underlined, and the help.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use orkestra_language::diagnostics::{Diagnostic, Severity};

/// Renders a problem. `source` is the text of its file, empty if it is unavailable.
pub(crate) fn render(problem: &Diagnostic, source: &str) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(one_line(&problem.message))
        .id(problem.code.to_string());
    let mut group = Group::with_title(title);
    let file = one_line(problem.file.as_deref().unwrap_or("the object"));
    let place = problem.line.zip(problem.column);
    match place.and_then(|(line, column)| Some((line, column, line_of(source, line)?))) {
        Some((number, column, line)) => {
            let line = printable(line);
            let start = byte_of(&line, column);
            let marked = start..start + token(&line, start);
            let number = usize::try_from(number).unwrap_or_default();
            group = group.element(
                Snippet::source(line)
                    .path(file)
                    .line_start(number)
                    .annotation(AnnotationKind::Primary.span(marked)),
            );
        }
        None if problem.file.is_some() => group = group.element(origin(file, place)),
        None => {}
    }
    if !problem.path.is_root() {
        group = group.element(Level::NOTE.message(one_line(&problem.path.to_string())));
    }
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(one_line(hint)));
    }
    Renderer::styled().render(&[group]) + "\n"
}

fn origin(file: String, place: Option<(u32, u32)>) -> Origin<'static> {
    let number = |n| usize::try_from(n).unwrap_or_default();
    match place {
        Some((line, column)) => Origin::path(file)
            .line(number(line))
            .char_column(number(column)),
        None => Origin::path(file),
    }
}

/// Returns the line of that number, from 1, without its line ending.
fn line_of(source: &str, number: u32) -> Option<&str> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    let line = source.split('\n').nth(index)?;
    Some(line.strip_suffix('\r').unwrap_or(line))
}

/// Replaces control characters of a user's file before they reach the terminal. Each stays one character, so that columns match.
fn printable(line: &str) -> String {
    let shown = |c: char| match c {
        '\t' => '\t',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    line.chars().map(shown).collect()
}

/// Makes text of a user's file safe for a message: one line without control characters.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Returns the byte offset of the character in that column, from 1, or the end of a shorter line.
fn byte_of(line: &str, column: u32) -> usize {
    let before = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    line.char_indices()
        .nth(before)
        .map_or(line.len(), |(byte, _)| byte)
}

/// Returns the length in bytes of the key, the value or the part of a template that begins at byte `start`.
///
/// It looks only at the line, so it works for text that could not be parsed too.
fn token(line: &str, start: usize) -> usize {
    let (before, rest) = line.split_at(start);
    let Some(first) = rest.chars().next() else {
        return 0;
    };
    let in_template = match (before.rfind("{{"), before.rfind("}}")) {
        (Some(open), Some(close)) => open > close,
        (open, _) => open.is_some(),
    };
    if let Some(inside) = rest.strip_prefix("{{") {
        return inside
            .find("}}")
            .map_or(rest.trim_end().len(), |end| end + 4);
    }
    if in_template {
        return match first {
            '"' | '`' | '\'' => quoted(rest, first),
            c if is_word(c) => run(rest, is_word),
            c => c.len_utf8(),
        };
    }
    match first {
        '"' | '\'' => quoted(rest, first),
        '{' | '[' | '}' | ']' | ',' => 1,
        '|' | '>' => run(rest, |c| !c.is_whitespace()),
        '-' if rest == "-" || rest.starts_with("- ") => 1,
        _ => plain(rest, is_in_flow(before)),
    }
    .max(first.len_utf8())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '$')
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// Returns the length of a quoted text with its quotes, up to the end of the line if it continues on the next one.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => _ = chars.next(),
            '\'' if quote == '\'' && chars.peek().is_some_and(|(_, c)| *c == '\'') => {
                chars.next();
            }
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.trim_end().len()
}

/// Returns the length of an unquoted key or value: up to `: `, a comment, or the end; inside `[ ]` and `{ }` also up to a comma or
/// the closing bracket. A template is always included whole.
fn plain(text: &str, in_flow: bool) -> usize {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(inside) = rest.strip_prefix("{{") {
            at += inside.find("}}").map_or(rest.len(), |end| end + 4);
            continue;
        }
        let after = rest[c.len_utf8()..].chars().next();
        let is_end = match c {
            ':' => after.is_none_or(|after| after.is_whitespace() || (in_flow && after == ',')),
            ',' | ']' | '}' => in_flow,
            c => c.is_whitespace() && after == Some('#'),
        };
        if is_end {
            break;
        }
        at += c.len_utf8();
    }
    text[..at].trim_end().len()
}

/// True if a bracket is open on the line.
fn is_in_flow(before: &str) -> bool {
    let plain = before.replace("{{", "").replace("}}", "");
    let count = |brackets: [char; 2]| plain.matches(brackets).count();
    count(['[', '{']) > count([']', '}'])
}

#[cfg(test)]
mod tests {
    use orkestra_language::diagnostics::{Code, FieldPath};

    use super::*;

    fn plain_text(styled: &str) -> String {
        anstream::adapter::strip_str(styled).to_string()
    }

    fn at(line: u32, column: u32) -> Diagnostic {
        let path = FieldPath::root().field("spec").field("fish");
        let mut problem = Diagnostic::error(Code::UnknownField, path, "unknown field `fsih`");
        problem.file = Some("pond.yaml".to_owned());
        (problem.line, problem.column) = (Some(line), Some(column));
        problem.hint("did you mean `fish`?")
    }

    /// Returns the text that is underlined in the columns of a terminal.
    fn marked(source: &str, line: u32, column: u32) -> String {
        let text = plain_text(&render(&at(line, column), source));
        let lines: Vec<&str> = text.lines().collect();
        let below = lines.iter().position(|line| line.contains('^')).unwrap();
        let (line, marks) = (lines[below - 1], lines[below]);
        let wide = |c: char| if c == '鯉' { 2 } else { 1 };
        let mut column = 0;
        let mut found = String::new();
        for c in line.chars() {
            if marks.chars().nth(column) == Some('^') {
                found.push(c);
            }
            column += wide(c);
        }
        found
    }

    #[test]
    fn a_problem_is_shown_with_its_line_path_and_help() {
        let source = "spec:\n  fsih: 3 # carp\n";
        assert_eq!(
            plain_text(&render(&at(2, 3), source)),
            "error[ORK0010]: unknown field `fsih`
 --> pond.yaml:2:3
  |
2 |   fsih: 3 # carp
  |   ^^^^
  |
  = note: spec.fish
  = help: did you mean `fish`?
"
        );
    }

    #[test]
    fn without_the_text_or_without_a_place_the_file_is_named() {
        let text = plain_text(&render(&at(2, 3), ""));
        assert!(text.contains("--> pond.yaml:2:3\n"), "{text}");
        let mut problem = at(2, 3);
        (problem.line, problem.column) = (None, None);
        let text = plain_text(&render(&problem, "spec:\n"));
        assert!(text.contains("--> pond.yaml\n"), "{text}");
        problem.file = None;
        let text = plain_text(&render(&problem, ""));
        assert!(!text.contains("-->"), "{text}");
    }

    #[test]
    fn what_is_meant_is_underlined() {
        for (line, column, expected) in [
            ("  fish: carp pond # c", 3, "fish"),
            ("  fish: carp pond # c", 9, "carp pond"),
            ("  - { a: b, c: [x, y] }", 10, "b"),
            ("  - { a: b, c: [x, y] }", 20, "y"),
            ("a: \"say \\\"x\\\" \" # c", 4, "\"say \\\"x\\\" \""),
            ("a: 'it''s' # c", 4, "'it''s'"),
            ("a: '{{ .spec.fish }}'", 8, ".spec.fish"),
            ("a: '{{ fsih .x }}'", 8, "fsih"),
            ("a: '{{ f \"x y\" }}'", 10, "\"x y\""),
            ("a: pre-{{ .spec.fish }}", 8, "{{ .spec.fish }}"),
            ("a: pre-{{ .spec.fish }}:1 # c", 4, "pre-{{ .spec.fish }}:1"),
            ("a: |- # c", 4, "|-"),
            ("a: [", 4, "["),
            ("- - x", 1, "-"),
            ("http://x:1: y", 1, "http://x:1"),
        ] {
            assert_eq!(marked(line, 1, column), expected, "{line:?}");
        }
    }

    #[test]
    fn columns_hold_behind_tabs_wide_characters_and_windows_line_ends() {
        assert_eq!(marked("a: 1\r\n鯉: {b: carp}\r\n", 2, 8), "carp");
        assert_eq!(marked("# \u{feff}\n", 1, 3).chars().count(), 1);
        let text = plain_text(&render(&at(2, 10), "a: 1\r\n鯉: '{{ fsih }}'\r\n"));
        assert!(text.contains("pond.yaml:2:10\n"), "{text}");
        let text = plain_text(&render(&at(1, 4), "a:\tcarp\n"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[3].find("carp"), lines[4].find("^^^^"), "{text}");
    }

    #[test]
    fn a_byte_order_mark_has_no_column() {
        assert_eq!(marked("\u{feff}fish: 1\n", 1, 1), "fish");
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let mut problem = at(1, 3);
        problem.file = Some("a\u{1b}[31m.yaml".to_owned());
        problem.message = "bad \u{1b}]0;x\u{7}\nnew".to_owned();
        problem.hint = Some("\u{9b}31m".to_owned());
        problem.path = FieldPath::root().field("\u{1b}[2J");
        let source = "a: \u{1b}[31m \u{9b}1m \u{7f} \u{202e}x\n";
        let text = render(&problem, source);
        let text = plain_text(&text);
        assert!(
            !text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{text:?}"
        );
    }

    #[test]
    fn any_place_is_fine() {
        for source in ["", "\n", "é", "鯉: {{", "a: '", "a: {{ \"", "\u{0}"] {
            for line in 0..4 {
                for column in 0..9 {
                    render(&at(line, column), source);
                }
            }
        }
    }
}
