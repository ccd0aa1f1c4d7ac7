//! Texts: case, words, lines.

use orkestra_template::go::EvalFailure;

use super::strings::is_space;
use super::{Function, arg, built, function, int, string};
use crate::engine::Engine;
use crate::value::Value;

pub(crate) static TABLE: &[Function] = &[
    function("title", 1, |engine, args| {
        built(title(&string(&args[0])?), engine)
    }),
    function("untitle", 1, |engine, args| {
        let text = string(&args[0])?;
        built(each_word(&text, |c| c.to_lowercase().collect()), engine)
    }),
    function("swapcase", 1, |engine, args| {
        built(swap_case(&string(&args[0])?), engine)
    }),
    function("snakecase", 1, |engine, args| {
        built(connected(&string(&args[0])?, '_'), engine)
    }),
    function("kebabcase", 1, |engine, args| {
        built(connected(&string(&args[0])?, '-'), engine)
    }),
    function("camelcase", 1, |engine, args| {
        built(pascal(&string(&args[0])?), engine)
    }),
    function("nospace", 1, |engine, args| {
        built(
            string(&args[0])?
                .chars()
                .filter(|c| !is_space(*c))
                .collect(),
            engine,
        )
    }),
    function("initials", 1, |engine, args| {
        let text = string(&args[0])?;
        let words = text.split(is_space).filter_map(|word| word.chars().next());
        built(words.collect(), engine)
    }),
    function("wrap", 2, |engine, args| {
        wrap(engine, int(&args[0])?, "\n", &string(&args[1])?, false)
    }),
    function("wrapWith", 3, |engine, args| {
        wrap(
            engine,
            int(&args[0])?,
            &string(&args[1])?,
            &string(&args[2])?,
            true,
        )
    }),
    function("abbrev", 2, |engine, args| {
        let (width, text) = (int(arg(args, 0))?, string(&args[1])?);
        built(abbreviated(0, width, &text), engine)
    }),
    function("abbrevboth", 3, |engine, args| {
        let (left, right, text) = (int(&args[0])?, int(&args[1])?, string(&args[2])?);
        if right < 4 || left > 0 && right < 7 {
            return Ok(Value::text(text));
        }
        built(abbreviated(left, right, &text), engine)
    }),
    function("shuffle", 1, |engine, args| {
        let mut chars: Vec<char> = string(&args[0])?.chars().collect();
        for at in (1..chars.len()).rev() {
            let drawn = engine.random(8)?;
            let drawn = drawn.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
            let other = usize::try_from(drawn % (at as u64 + 1)).unwrap_or(at);
            chars.swap(at, other);
        }
        built(chars.into_iter().collect(), engine)
    }),
];

/// Converts each letter after a character that is not a letter to upper case.
///
/// Source: Go's `strings.Title`.
fn title(text: &str) -> String {
    let separates = |c: char| match c {
        '_' => false,
        c if c.is_ascii() => !c.is_ascii_alphanumeric(),
        c if c.is_alphanumeric() => false,
        c => is_space(c),
    };
    let mut before = ' ';
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if separates(before) {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
        before = c;
    }
    out
}

/// Changes the first letter of each word.
fn each_word(text: &str, change: fn(char) -> String) -> String {
    let mut starts = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if starts && !is_space(c) {
            out.push_str(&change(c));
        } else {
            out.push(c);
        }
        starts = is_space(c);
    }
    out
}

fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    out
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || is_space(c)
}

/// Converts to `PascalCase`.
///
/// Source: github.com/huandu/xstrings, `ToPascalCase`.
fn pascal(text: &str) -> String {
    let mut out: String = text.chars().take_while(|c| is_connector(*c)).collect();
    let mut rest = text.chars().skip_while(|c| is_connector(*c));
    let Some(first) = rest.next() else {
        return out;
    };
    let mut lowering = first.is_uppercase();
    let mut held: char = first.to_uppercase().next().unwrap_or(first);
    for c in rest {
        let mut next = c;
        if is_connector(c) && is_connector(held) {
            out.push(held);
            held = c;
            continue;
        }
        if is_connector(held) {
            lowering = c.is_uppercase();
            next = c.to_uppercase().next().unwrap_or(c);
        } else {
            if lowering {
                if c.is_uppercase() {
                    next = c.to_lowercase().next().unwrap_or(c);
                } else {
                    lowering = false;
                }
            }
            out.push(held);
        }
        held = next;
    }
    out.push(held);
    out
}

/// The kinds of words in an identifier.
#[derive(Clone, Copy, PartialEq)]
enum Word {
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c)
}

/// Splits an identifier into words: `HTTPStatus2` into `HTTP`, `Status`, `2`.
///
/// Source: github.com/huandu/xstrings, `nextWord`.
fn words(text: &str) -> Vec<(Word, String)> {
    let chars: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let run = |from: usize, is: &dyn Fn(char) -> bool| {
            from + chars[from..].iter().take_while(|c| is(**c)).count()
        };
        let lower = |c: char| c.is_alphabetic() && !c.is_uppercase();
        let other = |c: char| {
            !(is_connector(c) || c.is_alphabetic() || c.is_numeric() || is_punctuation(c))
        };
        let (word, end) = match chars[at] {
            c if is_connector(c) => (Word::Connector, run(at, &is_connector)),
            c if is_punctuation(c) => (Word::Punctuation, run(at, &is_punctuation)),
            c if c.is_uppercase() => {
                let uppers = run(at, &|c| c.is_uppercase());
                let follows = chars.get(uppers).copied().is_some_and(lower);
                match uppers - at {
                    1 => (Word::Upper, run(uppers, &lower)),
                    _ if follows => (Word::Upper, uppers - 1),
                    _ => (Word::Upper, uppers),
                }
            }
            c if c.is_alphabetic() => (Word::Letters, run(at, &lower)),
            c if c.is_numeric() => (Word::Number, run(at, &|c| c.is_numeric())),
            _ => (Word::Other, run(at, &other)),
        };
        words.push((word, chars[at..end].iter().collect()));
        at = end;
    }
    words
}

/// Joins the words of an identifier in lower case with a connector.
///
/// Source: github.com/huandu/xstrings, `camelCaseToLowerCase`.
fn connected(text: &str, connector: char) -> String {
    let mut out = String::new();
    let write = |out: &mut String, (kind, word): &(Word, String)| match kind {
        Word::Connector => out.extend(word.chars().map(|_| connector)),
        Word::Upper => out.push_str(&word.to_lowercase()),
        _ => out.push_str(word),
    };
    let words = words(text);
    let joins = |word: Option<&(Word, String)>| {
        word.is_some_and(|(kind, _)| !matches!(kind, Word::Connector | Word::Punctuation))
    };
    let follows = |word: Option<&(Word, String)>| {
        word.is_some_and(|(kind, _)| matches!(kind, Word::Letters | Word::Number))
    };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        write(&mut out, word);
        at += 1;
        let next = words.get(at);
        match (word.0, next) {
            (_, None) => break,
            (Word::Number, _) => {
                while follows(words.get(at)) {
                    write(&mut out, &words[at]);
                    at += 1;
                }
                if joins(words.get(at)) {
                    out.push(connector);
                }
            }
            (Word::Connector | Word::Punctuation, _) => {}
            (_, Some((Word::Number, _))) if words.get(at + 1).is_none() => {}
            // A number belongs to the previous word, unless the next word begins in lower case.
            (_, Some((Word::Number, _))) if words[at + 1].0 != Word::Letters => {
                write(&mut out, &words[at]);
                at += 1;
                if joins(words.get(at)) {
                    out.push(connector);
                }
            }
            (_, Some((Word::Number, _))) => out.push(connector),
            (_, next) if joins(next) => out.push(connector),
            _ => {}
        }
    }
    out
}

/// Wraps lines at `width` bytes, at spaces, or within longer words.
///
/// Source: github.com/Masterminds/goutils, `WrapCustom`; `wrap` keeps long words whole.
fn wrap(
    engine: &mut Engine<'_>,
    width: i64,
    line: &str,
    text: &str,
    cut_words: bool,
) -> Result<Value, EvalFailure> {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let line = if line.is_empty() { "\n" } else { line };
    engine.text(
        text.len()
            .saturating_add((text.len() / width + 1).saturating_mul(line.len())),
    )?;
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = Vec::new();
    let mut at = 0;
    while bytes.len() - at > width {
        if bytes[at] == b' ' {
            at += 1;
            continue;
        }
        let last_space = bytes[at..=at + width].iter().rposition(|b| *b == b' ');
        let (end, next) = match last_space {
            Some(space) => (at + space, at + space + 1),
            None if cut_words => (at + width, at + width),
            None => match bytes[at + width..].iter().position(|b| *b == b' ') {
                Some(space) => (at + width + space, at + width + space + 1),
                None => break,
            },
        };
        out.extend_from_slice(&bytes[at..end]);
        out.extend_from_slice(line.as_bytes());
        at = next;
    }
    out.extend_from_slice(&bytes[at..]);
    Ok(Value::bytes(&out))
}

/// Truncates a text to a width, with an ellipsis in place of removed text.
///
/// Source: github.com/Masterminds/goutils, `AbbreviateFull`.
fn abbreviated(offset: i64, width: i64, text: &str) -> String {
    let Some(width) = usize::try_from(width).ok().filter(|width| *width >= 4) else {
        return text.to_owned();
    };
    if text.len() <= width {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut offset = usize::try_from(offset).unwrap_or(0).min(bytes.len());
    if bytes.len() - offset < width - 3 {
        offset = bytes.len() - (width - 3);
    }
    if offset <= 4 {
        return lossy(&bytes[..width - 3]) + "...";
    }
    if offset + width - 3 < bytes.len() {
        let rest = lossy(&bytes[offset..]);
        let width = i64::try_from(width - 3).unwrap_or(4);
        return "...".to_owned() + &abbreviated(0, width, &rest);
    }
    "...".to_owned() + &lossy(&bytes[bytes.len() - (width - 3)..])
}
