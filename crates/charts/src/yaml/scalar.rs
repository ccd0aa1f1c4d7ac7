//! Writes scalars like yaml.v2: quotes and line folding.

use super::resolve::is_other;

/// Longer lines are folded.
const WIDTH: usize = 80;

/// Writes a float like yaml.v2 after a JSON round trip: digits if it fits in 64 bits, else Go's `%g`.
pub(crate) fn float(n: f64) -> String {
    const MOST: f64 = 18_446_744_073_709_551_615.0;
    if n.fract() == 0.0 && (0.0..MOST).contains(&n) {
        return format!("{n}");
    }
    shortest(n)
}

/// Writes a float with Go's `%g`.
pub(crate) fn shortest(n: f64) -> String {
    let text = format!("{n:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{n}"),
    }
}

/// Writes a text that may have several lines, indented by `indent`; the first begins at `column`.
pub(crate) fn scalar(text: &str, indent: usize, column: usize) -> String {
    let look = Look::at(text);
    if text.contains('\n') && look.block_allowed {
        return literal(text, indent);
    }
    let quoted = text.contains('\n') || is_other(text);
    if !quoted && look.plain_allowed {
        return folded(text, indent, column, false);
    }
    if !quoted && look.single_allowed {
        return format!(
            "'{}'",
            folded(&text.replace('\'', "''"), indent, column + 1, true)
        );
    }
    double(text, Some((indent, column)))
}

/// Writes a text on one line, as for keys.
pub(crate) fn inline(text: &str) -> String {
    let look = Look::at(text);
    if text.contains('\n') || is_other(text) {
        return double(text, None);
    }
    if look.plain_allowed && !text.is_empty() {
        return text.to_owned();
    }
    if look.single_allowed {
        return format!("'{}'", text.replace('\'', "''"));
    }
    double(text, None)
}

/// The emitter's analysis of a text.
///
/// Source: yaml.v2, `yaml_emitter_analyze_scalar`.
struct Look {
    plain_allowed: bool,
    single_allowed: bool,
    block_allowed: bool,
}

impl Look {
    fn at(text: &str) -> Look {
        let chars: Vec<char> = text.chars().collect();
        let is_break = |c: char| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let blank = |at: usize| {
            chars
                .get(at)
                .is_none_or(|c| *c == ' ' || *c == '\t' || is_break(*c))
        };
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut breaks, mut break_space, mut space_break) =
            (false, false, false, false);
        let (mut after_space, mut after_break) = (false, false);
        for (at, c) in chars.iter().enumerate() {
            let followed = blank(at + 1);
            indicators |= match c {
                '#' if at > 0 => blank(at - 1),
                ':' => followed,
                '?' | '-' if at == 0 => followed,
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
                | '@' | '`' | '#' => at == 0,
                _ => false,
            };
            special |= !is_printable(*c);
            if *c == ' ' {
                break_space |= after_break;
                (after_space, after_break) = (true, false);
            } else if is_break(*c) {
                breaks = true;
                space_break |= after_space;
                (after_space, after_break) = (false, true);
            } else {
                (after_space, after_break) = (false, false);
            }
        }
        let edge = |c: Option<&char>| c.is_some_and(|c| *c == ' ' || is_break(*c));
        let (first, last) = (chars.first(), chars.last());
        let outside = edge(first) || edge(last);
        let unsafe_text = space_break || special;
        Look {
            plain_allowed: !(indicators || outside || break_space || unsafe_text || breaks),
            single_allowed: !(break_space || unsafe_text),
            block_allowed: !(last == Some(&' ') || unsafe_text || chars.is_empty()),
        }
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
}

/// Folds text that is too long: a single space between words may become a line break.
fn folded(text: &str, indent: usize, column: usize, quoted: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let (mut column, mut spaces) = (column, false);
    for (at, c) in chars.iter().enumerate() {
        let inside = !quoted || at > 0 && at + 1 < chars.len();
        if *c == ' ' {
            let next_is_space = chars.get(at + 1) == Some(&' ');
            if !spaces && column > WIDTH && inside && !next_is_space {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                column = indent;
            } else {
                out.push(' ');
                column += 1;
            }
            spaces = true;
        } else {
            out.push(*c);
            column += 1;
            spaces = false;
        }
    }
    out
}

/// Writes `|` and the lines.
fn literal(text: &str, indent: usize) -> String {
    let mut out = String::from("|");
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    let body = text.trim_end_matches('\n');
    match text.len() - body.len() {
        0 => out.push('-'),
        1 if !body.is_empty() => {}
        _ => out.push('+'),
    }
    let indent = " ".repeat(indent);
    for line in text.split_inclusive('\n') {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        if line != "\n" {
            out.push_str(&indent);
        }
        out.push_str(line);
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes a text in double quotes, folded where lines may break.
fn double(text: &str, place: Option<(usize, usize)>) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::from("\"");
    let mut column = place.map_or(0, |(_, column)| column + 1);
    let mut spaces = false;
    for (at, c) in chars.iter().enumerate() {
        let before = out.len();
        match c {
            ' ' => {
                let breaks =
                    place.filter(|_| !spaces && column > WIDTH && at > 0 && at + 1 < chars.len());
                match breaks {
                    Some((indent, _)) => {
                        out.push('\n');
                        out.push_str(&" ".repeat(indent));
                        if chars.get(at + 1) == Some(&' ') {
                            out.push('\\');
                        }
                        column = 0;
                    }
                    None => out.push(' '),
                }
                spaces = true;
                column += out.len() - before - usize::from(breaks.is_some());
                continue;
            }
            '\0' => out.push_str("\\0"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\x1b' => out.push_str("\\e"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            c if is_printable(*c) => out.push(*c),
            c if u32::from(*c) <= 0xff => out.push_str(&format!("\\x{:02X}", u32::from(*c))),
            c if u32::from(*c) <= 0xffff => out.push_str(&format!("\\u{:04X}", u32::from(*c))),
            c => out.push_str(&format!("\\U{:08X}", u32::from(*c))),
        }
        column += out[before..].chars().count();
        spaces = false;
    }
    out.push('"');
    out
}
