//! Encodings, digests, generated names, and tables.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha2::{Digest, Sha256};

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use crate::print;
use orkestra_object::value::Node;

/// Decodes the standard alphabet, with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A note from text to text.
const TEXT: BuiltInNote = BuiltInNote {
    params: &[NoteType::Text],
    result: NoteType::Text,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "toBase64",
        doc: "The text encoded in base64.",
        example: (r#"{{ toBase64 "db:5432" }}"#, "ZGI6NTQzMg=="),
        run: NoteBody::Eager(to_base64),
        ..TEXT
    },
    BuiltInNote {
        name: "fromBase64",
        doc: "The text decoded from base64.",
        example: (r#"{{ fromBase64 "ZGI6NTQzMg==" }}"#, "db:5432"),
        run: NoteBody::Eager(from_base64),
        ..TEXT
    },
    BuiltInNote {
        name: "sha256sum",
        doc: "The first eight hexadecimal digits of the text's SHA-256: a checksum that changes with the text.",
        example: (r#"{{ sha256sum "hello" }}"#, "2cf24dba"),
        run: NoteBody::Eager(sha256sum),
        ..TEXT
    },
    BuiltInNote {
        name: "slugify",
        doc: "The text as part of a name: in lower case, with one hyphen in place of other characters than letters and digits, and none at the ends.",
        example: (r#"{{ slugify "Eu West / 1" }}"#, "eu-west-1"),
        run: NoteBody::Eager(slugify),
        ..TEXT
    },
    BuiltInNote {
        name: "truncateName",
        doc: "The text truncated to a number of bytes, without an ellipsis.",
        example: (r#"{{ truncateName "abcdef" 3 }}"#, "abc"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text, NoteType::Int],
        run: NoteBody::Eager(truncate_name),
        ..TEXT
    },
    BuiltInNote {
        name: "repoSlug",
        doc: "The last part of a repository URL, without `.git`, as a slug.",
        example: (
            r#"{{ repoSlug "git@host.example:o/My_App.git" }}"#,
            "my-app",
        ),
        run: NoteBody::Eager(repo_slug),
        ..TEXT
    },
    BuiltInNote {
        name: "lookup",
        doc: "The value that follows the first key equal to the first argument as text; keys and values alternate.",
        example: (r#"{{ lookup "b" "a" 1 "b" 2 }}"#, "2"),
        max_args: None,
        run: NoteBody::Eager(lookup),
        ..PLAIN
    },
];

fn to_base64<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let length = base64::encoded_len(call.text(0).len(), true);
    call.budget.text(length.unwrap_or(usize::MAX))?;
    Ok(Node::from(STANDARD.encode(call.text(0))).into())
}

fn from_base64<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let length = call.text(0).len();
    // Line breaks are removed before decoding.
    call.budget.text(length)?;
    call.budget.text(base64::decoded_len_estimate(length))?;
    let mut encoded = call.text(0).to_owned();
    encoded.retain(|c| !c.is_ascii_whitespace());
    // The text is not quoted because it may be secret.
    let refused = |what| EvalFailure::refused(format!("`fromBase64` was given {what}"));
    let bytes = LENIENT
        .decode(encoded)
        .map_err(|_| refused("text that is no base64"))?;
    let text = String::from_utf8(bytes).map_err(|_| refused("base64 of what is no text"))?;
    Ok(Node::from(text).into())
}

fn sha256sum<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    call.budget.text(8)?;
    let digest = Sha256::digest(call.text(0));
    let first = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    Ok(Node::from(format!("{first:08x}")).into())
}

fn slugify<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let length = call.text(0).len();
    call.budget.text(length)?;
    Ok(Node::from(slug(call.text(0))).into())
}

/// The result is no longer than the text.
fn slug(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        if !word.is_empty() && !out.is_empty() {
            out.push('-');
        }
        out.extend(word.chars().map(|c| c.to_ascii_lowercase()));
    }
    out
}

fn truncate_name<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let end = call.text(0).floor_char_boundary(call.count(1));
    call.budget.text(end)?;
    Ok(Node::from(&call.text(0)[..end]).into())
}

fn repo_slug<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let length = call.text(0).len();
    call.budget.text(length)?;
    let text = call.text(0).trim().trim_end_matches('/');
    let last = text.rsplit(['/', ':']).next().unwrap_or_default();
    Ok(Node::from(slug(last.strip_suffix(".git").unwrap_or(last))).into())
}

fn lookup<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let wanted = call.take(0);
    let mut wanted_text = String::new();
    print::print(&mut wanted_text, wanted.node(), call.budget)?;
    for position in (1..call.len().saturating_sub(1)).step_by(2) {
        let key = call.take(position);
        let mut text = String::new();
        print::print(&mut text, key.node(), call.budget)?;
        if text == wanted_text {
            return Ok(call.take(position + 1));
        }
    }
    Ok(Node::from("").into())
}
