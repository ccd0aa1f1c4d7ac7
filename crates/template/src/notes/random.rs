//! Random texts, for values that are generated once and stored: passwords, keys, identifiers.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_object::value::{Node, hex_digits};

/// A note that draws as many elements as its argument says.
const DRAWS: BuiltInNote = BuiltInNote {
    params: &[NoteType::Int],
    result: NoteType::Text,
    random: true,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "randomAlphanumeric",
        doc: "The given number of random letters and digits.",
        example: ("{{ randomAlphanumeric 16 }}", "s0Ud47HQcFqDm3Sn"),
        run: NoteBody::Eager(alphanumeric),
        ..DRAWS
    },
    BuiltInNote {
        name: "randomHex",
        doc: "The given number of random bytes in hexadecimal, two digits for each.",
        example: ("{{ randomHex 8 }}", "08e00266fff0aacc"),
        run: NoteBody::Eager(hex),
        ..DRAWS
    },
    BuiltInNote {
        name: "randomBase64",
        doc: "The given number of random bytes in base64, in the URL-safe alphabet.",
        example: ("{{ randomBase64 12 }}", "l1Z0ygdkIXgumT6F"),
        run: NoteBody::Eager(base64),
        ..DRAWS
    },
    BuiltInNote {
        name: "uuidv4",
        doc: "A random UUID, version 4.",
        example: ("{{ uuidv4 }}", "20b73cd8-1b2b-4071-bee5-1e3a54958757"),
        min_args: 0,
        max_args: Some(0),
        params: &[],
        run: NoteBody::Eager(uuid),
        ..DRAWS
    },
];

/// Draws bytes at one step per two bytes, because each block of them needs a hash.
fn draw(call: &mut NoteCall<'_, '_>, count: usize) -> Result<Vec<u8>, EvalFailure> {
    call.budget.step(1 + count as u64 / 2)?;
    call.budget.text(count)?;
    let Some(entropy) = call.data.entropy() else {
        let name = call.note.name;
        let message = format!(
            "`{name}` returns a new value in each call, so it is permitted only where the value is generated once and kept"
        );
        return Err(EvalFailure::refused(message));
    };
    Ok(entropy.draw(count))
}

/// Returns the requested number.
fn wanted(call: &NoteCall<'_, '_>) -> Result<usize, EvalFailure> {
    match call.node(0) {
        Node::Int(n) if *n < 0 => {
            let message = format!("`{}` was given a negative number", call.note.name);
            Err(EvalFailure::refused(message))
        }
        _ => Ok(call.count(0)),
    }
}

fn alphanumeric<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    // Four times the number of characters. Bytes beyond are drawn again, so that all characters are equally likely.
    const BEYOND: u8 = 248;
    let count = wanted(call)?;
    call.budget.text(count)?;
    let mut out = String::with_capacity(count);
    while out.len() < count {
        let drawn = draw(call, count - out.len())?;
        let fair = drawn.into_iter().filter(|byte| *byte < BEYOND);
        out.extend(fair.map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])));
    }
    Ok(Node::from(out).into())
}

fn hex<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let count = wanted(call)?;
    call.budget.text(count.saturating_mul(2))?;
    let drawn = draw(call, count)?;
    Ok(Node::from(digits(&drawn)).into())
}

fn digits(bytes: &[u8]) -> String {
    hex_digits(bytes).map(char::from).collect()
}

fn base64<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let count = wanted(call)?;
    let length = base64::encoded_len(count, true);
    call.budget.text(length.unwrap_or(usize::MAX))?;
    let drawn = draw(call, count)?;
    Ok(Node::from(URL_SAFE.encode(drawn)).into())
}

/// Source: RFC 9562, section 5.4.
fn uuid<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    call.budget.text(36)?;
    let mut bytes = draw(call, 16)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = digits(&bytes);
    let groups = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    Ok(Node::from(groups.join("-")).into())
}
