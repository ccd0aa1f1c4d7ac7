//! Text for a terminal that others may have written: names, messages, the content of artifacts.
//!
//! A terminal obeys control characters: they move the cursor, rewrite earlier lines, set the title or the clipboard. Formatting
//! characters show text in another order than it has. Both are shown as their code instead.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The styles that commands use: reset, bold, dim, italic, underlined and their ends, and foreground colours. Hidden text and
/// backgrounds, which can hide text, are none of them.
const STYLES: [&str; 24] = [
    "", "0", "1", "2", "3", "4", "22", "23", "24", "31", "32", "33", "34", "35", "36", "39", "90",
    "91", "92", "93", "94", "95", "96", "97",
];

/// Returns a text with control and formatting characters as `\u{…}`. Line breaks, tabs and the styles of commands stay.
///
/// ```
/// use orkestra_ground::terminal::cleaned;
///
/// assert_eq!(cleaned("\u{1b}[31mred\u{1b}[0m"), "\u{1b}[31mred\u{1b}[0m");
/// assert_eq!(cleaned("a\u{1b}[2Kb"), "a\\u{1b}[2Kb");
/// ```
pub fn cleaned(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_active) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = style(rest).unwrap_or(0).max(line_break(rest));
        if kept > 0 {
            out.push_str(&rest[..kept]);
            rest = &rest[kept..];
            continue;
        }
        let mut characters = rest.chars();
        if let Some(active) = characters.next() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(active));
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The length of the style that a text begins with.
///
/// Source: ECMA-48, 8.3.117 (SGR).
fn style(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let is_known = parameters[..end]
        .split(';')
        .all(|one| STYLES.contains(&one));
    (is_known && parameters[end..].starts_with('m')).then_some(end + 3)
}

/// The length of the line break with a carriage return that a text begins with.
fn line_break(text: &str) -> usize {
    if text.starts_with("\r\n") { 2 } else { 0 }
}

/// True for a character that changes how others are shown, or where.
///
/// Source: Unicode 16, "Bidirectional control characters", default ignorable format characters; UTR #36, 2.4.
fn is_active(character: char) -> bool {
    let is_plain = matches!(character, '\n' | '\t');
    (character.is_control() && !is_plain)
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_as_its_code() {
        for (text, shown) in [
            ("a\u{1b}]0;title\u{7}b", "a\\u{1b}]0;title\\u{7}b"),
            ("a\u{1b}]52;c;aGk=\u{1b}\\b", "a\\u{1b}]52;c;aGk=\\u{1b}\\b"),
            ("a\u{1b}[8mhidden", "a\\u{1b}[8mhidden"),
            ("a\u{1b}[1;30;40mhidden", "a\\u{1b}[1;30;40mhidden"),
            ("a\u{1b}[31", "a\\u{1b}[31"),
            ("a\u{1b}[38;5;0mb", "a\\u{1b}[38;5;0mb"),
            ("a\u{9b}2Jb\u{85}", "a\\u{9b}2Jb\\u{85}"),
            ("verified\rrefused", "verified\\u{d}refused"),
            ("a\u{8}\u{7f}\u{0}", "a\\u{8}\\u{7f}\\u{0}"),
            ("\u{202e}gpj.exe\u{2066}", "\\u{202e}gpj.exe\\u{2066}"),
            (
                "pay\u{200b}pal\u{feff}\u{e0041}",
                "pay\\u{200b}pal\\u{feff}\\u{e0041}",
            ),
        ] {
            assert_eq!(cleaned(text), shown);
            assert_eq!(cleaned(shown), shown, "a cleaned text stays");
        }
    }

    #[test]
    fn text_for_people_stays() {
        for text in [
            "",
            "a\n\tb\r\nc",
            "\u{1b}[1m\u{1b}[91merror\u{1b}[0m: é 池 \u{200d}🏳",
            "\u{1b}[1;4mUsage\u{1b}[m",
        ] {
            assert!(
                matches!(cleaned(text), Cow::Borrowed(_)) || cleaned(text) == text,
                "{text}"
            );
        }
    }
}
