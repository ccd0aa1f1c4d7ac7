//! Constants: numbers, characters, texts.
//!
//! Source: the Go language specification, "Integer literals" to "String literals"; text/template accepts a sign.

use orkestra_object::value::Node;

/// Parses a number: decimal, `0x`, `0o`, `0b`, a leading `0` for octal, `_` between digits, a point or an exponent.
pub(crate) fn number(text: &str) -> Result<Node, &'static str> {
    const MALFORMED: &str = "malformed number";
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let mut prefixes = ["0x", "0o", "0b"].iter().zip([16, 8, 2]);
    let prefix = prefixes.find_map(|(prefix, radix)| Some((lower.strip_prefix(prefix)?, radix)));
    let (digits, radix) = match prefix {
        // One underscore may follow the prefix.
        Some((rest, radix)) => (rest.strip_prefix('_').unwrap_or(rest), radix),
        None if lower.len() > 1 && lower.starts_with('0') && is_digits(&lower) => (&lower[1..], 8),
        None => (&*lower, 10),
    };
    if digits.starts_with('_') && lower.starts_with('_')
        || digits.ends_with('_')
        || digits.contains("__")
    {
        return Err(MALFORMED);
    }
    let plain = digits.replace('_', "");
    if radix == 10 && plain.contains(['.', 'e']) {
        let well_formed = plain
            .bytes()
            .all(|b| b.is_ascii_digit() || b".e+-".contains(&b));
        let n: f64 = plain.parse().map_err(|_| MALFORMED)?;
        if !well_formed {
            return Err(MALFORMED);
        }
        if !n.is_finite() {
            return Err("number out of range");
        }
        return Ok(Node::Float(if negative { -n } else { n }));
    }
    if plain.is_empty() || !plain.chars().all(|c| c.is_digit(radix)) {
        return Err(MALFORMED);
    }
    let n = u64::from_str_radix(&plain, radix).map_err(|_| "integer out of range")?;
    if !negative {
        return Ok(Node::from(n));
    }
    0i64.checked_sub_unsigned(n)
        .map(Node::Int)
        .ok_or("integer out of range")
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

/// Parses a character constant, including its quotes, to the number of the character.
pub(crate) fn character(text: &str) -> Result<Node, &'static str> {
    const ONE: &str = "a character constant holds one character; text takes double quotes";
    let inner = &text[1..text.len() - 1];
    let (code, rest) = if let Some(escape) = inner.strip_prefix('\\') {
        let (code, used) = unescape(escape, '\'', &mut Vec::new())?;
        (code, &escape[used..])
    } else {
        let mut chars = inner.chars();
        let first = chars.next().ok_or(ONE)?;
        (u32::from(first), chars.as_str())
    };
    if !rest.is_empty() {
        return Err(ONE);
    }
    Ok(Node::Int(i64::from(code)))
}

/// Parses a text in double quotes, including the quotes.
pub(crate) fn quoted(text: &str) -> Result<Node, &'static str> {
    let mut rest = &text[1..text.len() - 1];
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at + 1..];
        let (_, used) = unescape(escape, '"', &mut bytes)?;
        rest = &escape[used..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes)
        .map(Node::from)
        .map_err(|_| "the escapes in this text are not valid UTF-8")
}

/// Parses a text in back quotes, including the quotes. Carriage returns are dropped, as in Go.
pub(crate) fn raw(text: &str) -> Node {
    Node::from(text[1..text.len() - 1].replace('\r', ""))
}

/// Parses an escape after its backslash: returns the number and its length in the source, in bytes.
fn unescape(escape: &str, quote: char, bytes: &mut Vec<u8>) -> Result<(u32, usize), &'static str> {
    const UNKNOWN: &str = "unknown escape";
    let first = escape.chars().next().ok_or(UNKNOWN)?;
    let simple = match first {
        'a' => Some(7),
        'b' => Some(8),
        'f' => Some(12),
        'n' => Some(10),
        'r' => Some(13),
        't' => Some(9),
        'v' => Some(11),
        '\\' => Some(92),
        c if c == quote => Some(c as u8),
        _ => None,
    };
    if let Some(byte) = simple {
        bytes.push(byte);
        return Ok((u32::from(byte), 1));
    }
    let (skip, length, radix) = match first {
        'x' => (1, 2, 16),
        'u' => (1, 4, 16),
        'U' => (1, 8, 16),
        '0'..='7' => (0, 3, 8),
        _ => return Err(UNKNOWN),
    };
    let digits = escape.get(skip..skip + length).ok_or(UNKNOWN)?;
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(UNKNOWN);
    }
    let code = u32::from_str_radix(digits, radix).map_err(|_| UNKNOWN)?;
    if matches!(first, 'u' | 'U') {
        let c = char::from_u32(code).ok_or("the escape is not a valid character")?;
        bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        bytes.push(u8::try_from(code).map_err(|_| "octal escape above 255")?);
    }
    Ok((code, skip + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let cases = [
            ("0", Node::Int(0)),
            ("-12", Node::Int(-12)),
            ("+7", Node::Int(7)),
            ("0x1F", Node::Int(31)),
            ("0X_ff", Node::Int(255)),
            ("0b101", Node::Int(5)),
            ("0o17", Node::Int(15)),
            ("017", Node::Int(15)),
            ("1_000", Node::Int(1000)),
            ("9223372036854775808", Node::UInt(1 << 63)),
            ("-9223372036854775808", Node::Int(i64::MIN)),
            ("1.5", Node::Float(1.5)),
            (".5", Node::Float(0.5)),
            ("-1e3", Node::Float(-1000.0)),
            ("1E-2", Node::Float(0.01)),
        ];
        for (text, node) in cases {
            assert_eq!(number(text), Ok(node), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "08",
            "1_",
            "1__0",
            "0x",
            "0b2",
            "1e",
            "1a",
            "1.2.3",
            "3i",
            "0xg",
            "18446744073709551616",
            "-9223372036854775809",
            "1e999",
            "-",
            "+.",
            "1_e3_",
        ] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts_know_the_escapes_of_go() {
        let cases = [
            (r#""a\tb\n""#, "a\tb\n"),
            (r#""\"\\""#, "\"\\"),
            (r#""\x41\101\u00e9\U0001F600""#, "AAé😀"),
            (r#""\xc3\xa9""#, "é"),
            (r#""""#, ""),
        ];
        for (text, value) in cases {
            assert_eq!(quoted(text), Ok(Node::from(value)), "{text}");
        }
        for text in [
            r#""\'""#,
            r#""\q""#,
            r#""\x4""#,
            r#""\ud800""#,
            r#""\xff""#,
            r#""\400""#,
        ] {
            assert!(quoted(text).is_err(), "{text}");
        }
    }

    #[test]
    fn characters_are_numbers() {
        for (text, code) in [
            ("'a'", 97),
            (r"'\n'", 10),
            (r"'\''", 39),
            ("'é'", 233),
            (r"'\u00e9'", 233),
        ] {
            assert_eq!(character(text), Ok(Node::Int(code)), "{text}");
        }
        for text in ["''", "'ab'", r"'\na'", "'\\'"] {
            assert!(character(text).is_err(), "{text}");
        }
    }

    #[test]
    fn raw_texts_keep_backslashes_and_lose_carriage_returns() {
        assert_eq!(raw("`a\\n\r\nb`"), Node::from("a\\n\nb"));
    }
}
