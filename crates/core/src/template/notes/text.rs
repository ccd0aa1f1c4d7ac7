//! Texts. The value comes first: `replace .spec.name "_" "-"`.

use super::{Call, Note, PLAIN, Run, Type, Value};
use crate::template::error::Failure;
use crate::template::print;
use crate::value::Node;

pub(super) static NOTES: &[Note] = &[
    Note {
        name: "toLower",
        aliases: &["lower"],
        doc: "The text in lower case.",
        example: (r#"{{ toLower "EU-West" }}"#, "eu-west"),
        min_args: 1,
        max_args: Some(1),
        params: &[Type::Text],
        result: Type::Text,
        run: Run::Eager(to_lower),
        ..PLAIN
    },
    Note {
        name: "toUpper",
        aliases: &["upper"],
        doc: "The text in upper case.",
        example: (r#"{{ toUpper "eu" }}"#, "EU"),
        min_args: 1,
        max_args: Some(1),
        params: &[Type::Text],
        result: Type::Text,
        run: Run::Eager(to_upper),
        ..PLAIN
    },
    Note {
        name: "trimSpace",
        doc: "The text without white space at its ends.",
        example: (r#"{{ trimSpace " a b " }}"#, "a b"),
        min_args: 1,
        max_args: Some(1),
        params: &[Type::Text],
        result: Type::Text,
        run: Run::Eager(trim_space),
        ..PLAIN
    },
    Note {
        name: "replace",
        doc: "The text with every occurrence of the second argument replaced by the third.",
        example: (r#"{{ replace "a_b_c" "_" "-" }}"#, "a-b-c"),
        min_args: 3,
        max_args: Some(3),
        params: &[Type::Text],
        result: Type::Text,
        run: Run::Eager(replace),
        ..PLAIN
    },
    Note {
        name: "split",
        doc: "The parts of the text between the separators; none of an empty text.",
        example: (r#"{{ index (split "a,b" ",") 1 }}"#, "b"),
        min_args: 2,
        max_args: Some(2),
        params: &[Type::Text],
        result: Type::List,
        run: Run::Eager(split),
        ..PLAIN
    },
    Note {
        name: "join",
        doc: "The items of a list as one text, with the separator between them.",
        example: (r#"{{ join (split "a,b" ",") "+" }}"#, "a+b"),
        min_args: 2,
        max_args: Some(2),
        params: &[Type::List, Type::Text],
        result: Type::Text,
        run: Run::Eager(join),
        ..PLAIN
    },
];

fn to_lower<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    map_chars(call, str::to_ascii_lowercase, char::to_lowercase)
}

fn to_upper<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    map_chars(call, str::to_ascii_uppercase, char::to_uppercase)
}

/// Maps each character by itself, as Go does; characters that would become several stay as they are.
fn map_chars<'d, C: Iterator<Item = char>>(
    call: &mut Call<'_, 'd>,
    ascii: fn(&str) -> String,
    map: fn(char) -> C,
) -> Result<Value<'d>, Failure> {
    // A character in the other case may take a byte or two more: paid for in full.
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

fn trim_space<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let trimmed = call.text(0).trim();
    if trimmed.len() == call.text(0).len() {
        return Ok(match call.node(0) {
            Node::Null => Node::from("").into(),
            _ => call.take(0),
        });
    }
    let length = trimmed.len();
    call.budget.text(length)?;
    Ok(Node::from(call.text(0).trim()).into())
}

fn replace<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let (text, old, new) = (call.text(0), call.text(1), call.text(2));
    let count = text.matches(old).count();
    let length = (text.len() - count * old.len()).saturating_add(count.saturating_mul(new.len()));
    call.budget.text(length)?;
    let replaced = call.text(0).replace(call.text(1), call.text(2));
    Ok(Node::from(replaced).into())
}

fn split<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
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
        // Each character by itself, without the empty ends that `str::split` gives.
        "" => text
            .chars()
            .map(|c| Node::from(&*c.encode_utf8(&mut [0; 4])))
            .collect(),
        _ if text.is_empty() => Vec::new(),
        _ => text.split(separator).map(Node::from).collect(),
    };
    Ok(Node::from(items).into())
}

fn join<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
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
