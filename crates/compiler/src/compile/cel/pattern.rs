//! Regular expressions that have the same meaning in CEL and in the evaluator.

/// The greatest count of a repetition that CEL's engine accepts.
const MOST_REPEATED: usize = 1000;

/// True if the pattern has only parts with one meaning: literal ASCII text, escaped punctuation, `.`, plain classes, groups,
/// alternatives, anchors and repetitions. Classes such as `\d` are not among them: they differ beyond ASCII.
///
/// Source: the syntax of RE2, and that of the `regex` crate.
pub(crate) fn is_common(pattern: &str) -> bool {
    let mut rest = pattern.as_bytes();
    let mut can_repeat = false;
    while let [first, next @ ..] = rest {
        let (after, repeats) = match first {
            b'\\' => match next {
                [escaped, after @ ..]
                    if escaped.is_ascii_punctuation() && *escaped != b'<' && *escaped != b'>' =>
                {
                    (after, true)
                }
                _ => return false,
            },
            b'[' => match class(next) {
                Some(after) => (after, true),
                None => return false,
            },
            b'(' => match next {
                [b'?', b':', after @ ..] => (after, false),
                [b'?', ..] => return false,
                _ => (next, false),
            },
            b'*' | b'+' | b'?' if can_repeat => (lazy(next), false),
            b'{' if can_repeat => match count(next) {
                Some(after) => (lazy(after), false),
                None => return false,
            },
            b'|' | b'^' | b'$' => (next, false),
            other if is_literal(*other) => (next, true),
            _ => return false,
        };
        (rest, can_repeat) = (after, repeats);
    }
    true
}

/// True if a byte stands for itself, or is `.` or the end of a group.
fn is_literal(byte: u8) -> bool {
    (byte.is_ascii_graphic() && !b"*+?{}]".contains(&byte)) || byte == b' '
}

/// Skips the mark of a lazy repetition.
fn lazy(rest: &[u8]) -> &[u8] {
    match rest {
        [b'?', after @ ..] => after,
        rest => rest,
    }
}

/// Returns the rest after the end of a class of letters, digits and a few other characters.
fn class(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.strip_prefix(b"^").unwrap_or(rest);
    let end = rest.iter().position(|byte| *byte == b']')?;
    let (inside, after) = rest.split_at(end);
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:/@,=+ ".contains(byte);
    let inner = inside.strip_prefix(b"-");
    let inner = inner.or_else(|| inside.strip_suffix(b"-"));
    let inner = inner.unwrap_or(inside);
    if inner.is_empty() {
        return None;
    }
    let mut at = 0;
    while at < inner.len() {
        let step = match inner.get(at..at + 3) {
            Some([from, b'-', to]) => {
                let same = |test: fn(&u8) -> bool| test(from) && test(to);
                let alike = same(u8::is_ascii_digit)
                    || same(u8::is_ascii_lowercase)
                    || same(u8::is_ascii_uppercase);
                if !alike || from > to {
                    return None;
                }
                3
            }
            _ => 1,
        };
        if step == 1 && !is_plain(&inner[at]) {
            return None;
        }
        at += step;
    }
    after.strip_prefix(b"]")
}

/// Returns the rest after the end of `{n}`, `{n,}` or `{n,m}`.
fn count(rest: &[u8]) -> Option<&[u8]> {
    let end = rest.iter().position(|byte| *byte == b'}')?;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    let (from, to) = text.split_once(',').unwrap_or((text, text));
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<usize>()
            .ok()
            .filter(|n| is_number && *n <= MOST_REPEATED)
    };
    let from = number(from)?;
    if !to.is_empty() && number(to)? < from {
        return None;
    }
    Some(&rest[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::is_common;

    #[test]
    fn patterns_of_one_meaning_are_common_and_others_are_not() {
        for common in [
            "",
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            r"^v[0-9]+\.[0-9]+\.[0-9]+$",
            "a|b",
            "^(?:x|y){2,3}$",
            "a.c",
            "x{2}",
            "[^a-z]+?",
            r"^https?://[a-z.]+/$",
        ] {
            assert!(is_common(common), "{common}");
        }
        for other in [
            r"\d+",
            r"\w",
            r"\bx",
            "(?i)x",
            "[[:alpha:]]",
            "[a&&b]",
            "x{,3}",
            "x{2000}",
            "é",
            "[é]",
            "*",
            "a**",
            "(?P<n>x)",
            "[z-a]",
            "]",
            r"\pL",
            r"\<x",
            "[a-Z]",
            "[]a]",
        ] {
            assert!(!is_common(other), "{other}");
        }
    }
}
