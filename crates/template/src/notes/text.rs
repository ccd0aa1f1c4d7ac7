//! Texts. The value is the first argument: `replace .spec.name "_" "-"`.

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use crate::print;
use orkestra_object::value::Node;

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "toLower",
        aliases: &["lower"],
        doc: "The text in lower case.",
        example: (r#"{{ toLower "EU-West" }}"#, "eu-west"),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(to_lower),
        ..PLAIN
    },
    BuiltInNote {
        name: "toUpper",
        aliases: &["upper"],
        doc: "The text in upper case.",
        example: (r#"{{ toUpper "eu" }}"#, "EU"),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(to_upper),
        ..PLAIN
    },
    BuiltInNote {
        name: "replace",
        doc: "The text with every occurrence of the second argument replaced by the third.",
        example: (r#"{{ replace "a_b_c" "_" "-" }}"#, "a-b-c"),
        min_args: 3,
        max_args: Some(3),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(replace),
        ..PLAIN
    },
    BuiltInNote {
        name: "split",
        doc: "The parts of the text between the separators; empty for an empty text.",
        example: (r#"{{ index (split "a,b" ",") 1 }}"#, "b"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text],
        result: NoteType::List,
        run: NoteBody::Eager(split),
        ..PLAIN
    },
    BuiltInNote {
        name: "join",
        doc: "The items of a list as one text, with the separator between them.",
        example: (r#"{{ join (split "a,b" ",") "+" }}"#, "a+b"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::List, NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(join),
        ..PLAIN
    },
    BuiltInNote {
        name: "concat",
        doc: "All arguments as one text, without separators.",
        example: (r#"{{ concat "*." "pond.example" }}"#, "*.pond.example"),
        min_args: 0,
        max_args: None,
        result: NoteType::Text,
        run: NoteBody::Eager(concat),
        ..PLAIN
    },
    BuiltInNote {
        name: "repeat",
        doc: "The text repeated the given number of times.",
        example: (r#"{{ repeat "ab" 2 }}"#, "abab"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text, NoteType::Int],
        result: NoteType::Text,
        run: NoteBody::Eager(repeat),
        ..PLAIN
    },
    BuiltInNote {
        name: "truncate",
        doc: "The text or, if it has more bytes than the second argument, its start and `...`, within that number of bytes.",
        example: (r#"{{ truncate "kubernetes" 8 }}"#, "kuber..."),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text, NoteType::Int],
        result: NoteType::Text,
        run: NoteBody::Eager(truncate),
        ..PLAIN
    },
    BuiltInNote {
        name: "camelToKebab",
        doc: "The text in lower case, with a hyphen before each word that starts with a capital letter.",
        example: (r#"{{ camelToKebab "HTTPProxyV2" }}"#, "http-proxy-v2"),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(camel_to_kebab),
        ..PLAIN
    },
];

fn to_lower<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    map_chars(call, str::to_ascii_lowercase, char::to_lowercase)
}

fn to_upper<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    map_chars(call, str::to_ascii_uppercase, char::to_uppercase)
}

/// Maps each character separately, as Go does. A character that would become several is left unchanged.
fn map_chars<'d, C: Iterator<Item = char>>(
    call: &mut NoteCall<'_, 'd>,
    ascii: fn(&str) -> String,
    map: fn(char) -> C,
) -> Result<Value<'d>, EvalFailure> {
    // A character in the other case may be a byte or two longer; the budget is charged for all of it.
    call.budget
        .text(call.args[0].node().as_str().map_or(0, str::len))?;
    if call.text(0).is_ascii() {
        return Ok(Node::from(ascii(call.text(0))).into());
    }
    let one = |c: char| {
        let mut mapped = map(c);
        match (mapped.next(), mapped.next()) {
            (Some(mapped), None) => mapped,
            _ => c,
        }
    };
    let mapped: String = call.text(0).chars().map(one).collect();
    Ok(Node::from(mapped).into())
}

fn replace<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (text, old, new) = (call.text(0), call.text(1), call.text(2));
    let count = text.matches(old).count();
    let length = (text.len() - count * old.len()).saturating_add(count.saturating_mul(new.len()));
    call.budget.text(length)?;
    let replaced = call.text(0).replace(call.text(1), call.text(2));
    Ok(Node::from(replaced).into())
}

fn split<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (text, separator) = (call.text(0), call.text(1));
    let count = match separator {
        "" => text.chars().count(),
        _ if text.is_empty() => 0,
        _ => text.matches(separator).count() + 1,
    };
    call.budget.items(count)?;
    call.budget.take(call.args[0].node().heap_bytes())?;
    let (text, separator) = (call.text(0), call.text(1));
    let items: Vec<Node> = match separator {
        // Split by characters, without the empty ends that `str::split` returns.
        "" => text
            .chars()
            .map(|c| Node::from(&*c.encode_utf8(&mut [0; 4])))
            .collect(),
        _ if text.is_empty() => Vec::new(),
        _ => text.split(separator).map(Node::from).collect(),
    };
    Ok(Node::from(items).into())
}

fn join<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let list = call.take(0);
    let mut out = String::new();
    for (at, item) in list.node().as_list().unwrap_or_default().iter().enumerate() {
        call.budget.step(2)?;
        if at > 0 {
            let separator = call.args[1].node().as_str().unwrap_or_default();
            print::append(&mut out, separator, call.budget)?;
        }
        print::print(&mut out, item, call.budget)?;
    }
    Ok(Node::from(out).into())
}

fn concat<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let mut out = String::new();
    for position in 0..call.len() {
        let part = call.take(position);
        print::print(&mut out, part.node(), call.budget)?;
    }
    Ok(Node::from(out).into())
}

fn repeat<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let count = match call.node(1) {
        Node::Int(n) if *n < 0 => {
            return Err(EvalFailure::refused("`repeat` was given a negative number"));
        }
        _ => call.count(1),
    };
    let length = call.text(0).len().saturating_mul(count);
    call.budget.text(length)?;
    Ok(match length {
        0 => Node::from("").into(),
        _ => Node::from(call.text(0).repeat(count)).into(),
    })
}

fn truncate<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    const DOTS: &str = "...";
    let most = call.count(1);
    let text = call.text(0);
    if text.len() <= most {
        return Ok(match call.node(0) {
            Node::Null => Node::from("").into(),
            _ => call.take(0),
        });
    }
    let dots = if most > DOTS.len() { DOTS } else { "" };
    let kept = text.floor_char_boundary(most - dots.len());
    call.budget.text(kept + dots.len())?;
    Ok(Node::from([&call.text(0)[..kept], dots].concat()).into())
}

fn camel_to_kebab<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let bytes = call.text(0).as_bytes();
    let words = (1..bytes.len())
        .filter(|at| begins_word(bytes, *at))
        .count();
    let length = bytes.len() + words;
    call.budget.text(length)?;
    let text = call.text(0);
    let mut out = String::with_capacity(length);
    for (at, c) in text.char_indices() {
        if at > 0 && begins_word(text.as_bytes(), at) {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    Ok(Node::from(out).into())
}

/// True if a byte after the first is a capital that begins a word: after a lower-case letter, or the last of several
/// capitals.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let (before, after) = (
        bytes[at - 1],
        bytes.get(at + 1).copied().unwrap_or_default(),
    );
    bytes[at].is_ascii_uppercase()
        && (before.is_ascii_lowercase()
            || before.is_ascii_uppercase() && after.is_ascii_lowercase())
}
