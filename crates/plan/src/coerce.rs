//! The types of fields. A rendered value is converted to the type of its field, in the same way for literals at compile time and
//! for expressions in a pass.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

use super::Whole;
use orkestra_object::value::Node;

/// Highest port number.
const MAX_PORT: i64 = 65_535;

/// The type of a field: [`Coerce::apply`]. Coercion trims and leaves the field out if the result is empty, except for
/// `Native`, `Text`, `Base64` and `Auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coerce {
    /// The expression's own type; null leaves the field out.
    Native,
    /// Text; a number becomes its digits. Never trimmed, never left out.
    Text,
    /// As `Native`, but other values become text: a text field of a manifest.
    AsText,
    /// Text, left out if empty.
    OptionalText,
    /// An integer.
    Int,
    /// A port number; 0 leaves the field out, as empty text does.
    Port,
    /// A decimal number.
    Float,
    /// `true` or `false`.
    Bool,
    /// An integer if the text is one, else text: for ports, percentages, quantities, which are not always integers.
    IntOrText,
    /// Base64 of the text: Secret data.
    Base64,
    /// The type that the text looks like: an integer, a number, a boolean, else text.
    Auto,
    /// One of these words, ignoring case; other text stays unchanged.
    Word(&'static [&'static str]),
    /// A value with parts.
    Whole(Whole),
}

/// The reason why a value does not fit a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeMismatch {
    /// The field takes another type.
    #[error("{found} is not {expected}")]
    Type {
        /// The type that the field takes.
        expected: &'static str,
        /// The value, truncated.
        found: String,
    },
    /// A port number out of range.
    #[error("{0} is not a port: ports are 1 to 65535")]
    Port(i64),
}

impl Coerce {
    /// Converts `value` to the type of the field; `None` leaves the field out.
    ///
    /// # Errors
    /// [`TypeMismatch`] if it cannot be converted.
    pub fn apply(self, value: Node) -> Result<Option<Node>, TypeMismatch> {
        match self {
            Self::Native => Ok(Some(value).filter(|node| *node != Node::Null)),
            Self::Text => Ok(Some(into_text(value))),
            Self::AsText => Ok((value != Node::Null).then(|| into_text(value))),
            Self::OptionalText => Ok(trimmed(&value).map(Node::from)),
            Self::Int => number(&value, "an integer", parse_integer),
            Self::Port => port(&value),
            Self::Float => number(&value, "a number", any_number),
            Self::Bool => number(&value, "true or false", boolean),
            Self::IntOrText => Ok(trimmed(&value)
                .map(|text| parse_integer(&text).unwrap_or_else(|| Node::from(text)))),
            Self::Base64 => Ok(Some(Node::from(BASE64.encode(&*value.to_text())))),
            Self::Auto => Ok(Some(looks_like(value)).filter(|node| *node != Node::Null)),
            Self::Word(words) => Ok(trimmed(&value).map(|text| {
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(&text));
                word.map_or_else(|| Node::from(text.as_str()), |word| Node::from(*word))
            })),
            Self::Whole(whole) => {
                let found = quoted(&value.to_text());
                whole.apply(value).ok_or(TypeMismatch::Type {
                    expected: whole.describe(),
                    found,
                })
            }
        }
    }
}

/// Returns the value's text without surrounding white space; `None` if that is empty.
fn trimmed(value: &Node) -> Option<String> {
    let text = value.to_text();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn into_text(value: Node) -> Node {
    if let Node::Str(_) = value {
        value
    } else {
        Node::from(&*value.to_text())
    }
}

fn number(
    value: &Node,
    expected: &'static str,
    read: fn(&str) -> Option<Node>,
) -> Result<Option<Node>, TypeMismatch> {
    let Some(text) = trimmed(value) else {
        return Ok(None);
    };
    match read(&text) {
        Some(node) => Ok(Some(node)),
        None => Err(TypeMismatch::Type {
            expected,
            found: quoted(&text),
        }),
    }
}

fn port(value: &Node) -> Result<Option<Node>, TypeMismatch> {
    match number(value, "a port's number", parse_integer)? {
        Some(Node::Int(0)) => Ok(None),
        Some(Node::Int(port)) if !(0..=MAX_PORT).contains(&port) => Err(TypeMismatch::Port(port)),
        Some(Node::UInt(_)) => Err(TypeMismatch::Port(i64::MAX)),
        other => Ok(other),
    }
}

/// Parses an integer, also one written as `3.0`: JSON has one type of number.
fn parse_integer(text: &str) -> Option<Node> {
    let digits = match text.split_once('.') {
        Some((digits, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => {
            digits
        }
        _ => text,
    };
    let digits = digits
        .strip_prefix('+')
        .filter(|rest| !rest.starts_with(['+', '-']))
        .unwrap_or(digits);
    digits
        .parse::<i64>()
        .map(Node::from)
        .or_else(|_| digits.parse::<u64>().map(Node::from))
        .ok()
}

fn any_number(text: &str) -> Option<Node> {
    let is_numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    parse_integer(text).or_else(|| {
        text.parse::<f64>()
            .ok()
            .filter(|n| is_numeric && n.is_finite())
            .map(Node::from)
    })
}

fn boolean(text: &str) -> Option<Node> {
    match text {
        "true" => Some(Node::Bool(true)),
        "false" => Some(Node::Bool(false)),
        _ => None,
    }
}

fn looks_like(value: Node) -> Node {
    let Node::Str(text) = &value else {
        return value;
    };
    let text = text.trim();
    any_number(text).or_else(|| boolean(text)).unwrap_or(value)
}

/// Quotes a value for a message.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(coerce: Coerce, text: &str) -> Result<Option<Node>, TypeMismatch> {
        coerce.apply(Node::from(text))
    }

    #[test]
    fn numbers_are_read_from_trimmed_text_and_stay_exact() {
        assert_eq!(text(Coerce::Int, " 3\n"), Ok(Some(Node::Int(3))));
        assert_eq!(text(Coerce::Int, "3.0"), Ok(Some(Node::Int(3))));
        assert_eq!(
            text(Coerce::Int, "18446744073709551615"),
            Ok(Some(Node::UInt(u64::MAX)))
        );
        assert_eq!(text(Coerce::Float, "2.5"), Ok(Some(Node::Float(2.5))));
        assert_eq!(Coerce::Int.apply(Node::Float(3.0)), Ok(Some(Node::Int(3))));
        for bad in ["three", "2.5", "1e3", "--1", "+-1", "true"] {
            assert!(text(Coerce::Int, bad).is_err(), "{bad}");
        }
        for bad in ["inf", "nan", "x"] {
            assert!(text(Coerce::Float, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_empty_leaves_the_field_out() {
        for coerce in [
            Coerce::Int,
            Coerce::Port,
            Coerce::Float,
            Coerce::Bool,
            Coerce::IntOrText,
            Coerce::OptionalText,
        ] {
            assert_eq!(text(coerce, " "), Ok(None), "{coerce:?}");
            assert_eq!(coerce.apply(Node::Null), Ok(None), "{coerce:?}");
        }
        assert_eq!(Coerce::Native.apply(Node::Null), Ok(None));
        assert_eq!(text(Coerce::Text, " "), Ok(Some(Node::from(" "))));
        assert_eq!(text(Coerce::Base64, ""), Ok(Some(Node::from(""))));
    }

    #[test]
    fn words_are_written_in_any_case() {
        let policy = Coerce::Word(&["Allow", "Forbid"]);
        assert_eq!(text(policy, " forbid"), Ok(Some(Node::from("Forbid"))));
        assert_eq!(text(policy, "never"), Ok(Some(Node::from("never"))));
        assert_eq!(text(policy, ""), Ok(None));
    }

    #[test]
    fn port_zero_is_no_port() {
        assert_eq!(text(Coerce::Port, "0"), Ok(None));
        assert_eq!(text(Coerce::Port, "8080"), Ok(Some(Node::Int(8080))));
        assert_eq!(text(Coerce::Port, "65536"), Err(TypeMismatch::Port(65_536)));
        assert_eq!(
            text(Coerce::Port, "-1").unwrap_err().to_string(),
            "-1 is not a port: ports are 1 to 65535"
        );
    }

    #[test]
    fn a_mismatch_says_what_is_expected_and_shows_a_part() {
        let mismatch = text(Coerce::Bool, &"y".repeat(50)).unwrap_err();
        assert_eq!(
            mismatch.to_string(),
            format!("`{}…` is not true or false", "y".repeat(40))
        );
    }

    #[test]
    fn text_is_kept_as_it_is_and_integers_become_digits() {
        assert_eq!(text(Coerce::Text, " a\n"), Ok(Some(Node::from(" a\n"))));
        assert_eq!(
            Coerce::Text.apply(Node::Int(1_000_000)),
            Ok(Some(Node::from("1000000")))
        );
        assert_eq!(text(Coerce::IntOrText, "25%"), Ok(Some(Node::from("25%"))));
        assert_eq!(text(Coerce::IntOrText, "25"), Ok(Some(Node::Int(25))));
        assert_eq!(text(Coerce::Auto, "2.5"), Ok(Some(Node::Float(2.5))));
        assert_eq!(
            text(Coerce::Auto, "running"),
            Ok(Some(Node::from("running")))
        );
    }

    #[test]
    fn secret_data_is_encoded_with_padding() {
        assert_eq!(text(Coerce::Base64, "fo\n"), Ok(Some(Node::from("Zm8K"))));
        assert_eq!(text(Coerce::Base64, "ÿ"), Ok(Some(Node::from("w78="))));
    }
}
