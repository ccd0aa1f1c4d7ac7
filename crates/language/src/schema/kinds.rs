//! Sets of possible kinds of values.

use std::{fmt, ops};

use orkestra_object::value::Node;

/// A set of kinds of values. Null is in no set and fits all: a missing value is valid everywhere.
///
/// Texts are classified by what they parse as, since a numeric field accepts the text of a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Kinds(u16);

impl Kinds {
    /// No kind: only null is possible.
    pub const NONE: Kinds = Kinds(0);
    /// Booleans.
    pub const BOOL: Kinds = Kinds(1);
    /// Whole numbers.
    pub const INT: Kinds = Kinds(1 << 1);
    /// Other numbers.
    pub const FLOAT: Kinds = Kinds(1 << 2);
    /// Text that is empty or white space.
    pub const BLANK: Kinds = Kinds(1 << 3);
    /// Text that parses as an integer.
    pub const INT_TEXT: Kinds = Kinds(1 << 4);
    /// Text that parses as another number.
    pub const FLOAT_TEXT: Kinds = Kinds(1 << 5);
    /// Text that parses as a boolean.
    pub const BOOL_TEXT: Kinds = Kinds(1 << 6);
    /// Any other text.
    pub const WORDS: Kinds = Kinds(1 << 7);
    /// Lists.
    pub const LIST: Kinds = Kinds(1 << 8);
    /// Maps.
    pub const MAP: Kinds = Kinds(1 << 9);

    /// All numbers.
    pub const NUMBER: Kinds = Kinds(Self::INT.0 | Self::FLOAT.0);
    /// All texts.
    pub const TEXT: Kinds = Kinds(
        Self::BLANK.0 | Self::INT_TEXT.0 | Self::FLOAT_TEXT.0 | Self::BOOL_TEXT.0 | Self::WORDS.0,
    );
    /// All kinds: nothing is known.
    pub const ANY: Kinds =
        Kinds(Self::BOOL.0 | Self::NUMBER.0 | Self::TEXT.0 | Self::LIST.0 | Self::MAP.0);

    /// Returns the kind of a value.
    pub fn of(node: &Node) -> Kinds {
        match node {
            Node::Null => Self::NONE,
            Node::Bool(_) => Self::BOOL,
            Node::Int(_) | Node::UInt(_) => Self::INT,
            // JSON has only one number type.
            Node::Float(number) if number.fract() == 0.0 => Self::INT,
            Node::Float(_) => Self::FLOAT,
            Node::Str(text) => Self::of_text(text),
            Node::List(_) => Self::LIST,
            Node::Map(_) => Self::MAP,
        }
    }

    fn of_text(text: &str) -> Kinds {
        match text.trim() {
            "" => Self::BLANK,
            text if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") => {
                Self::BOOL_TEXT
            }
            text if !text.ends_with(|c: char| c.is_ascii_digit()) => Self::WORDS,
            text => match text.parse::<f64>() {
                Ok(number) if number.fract() == 0.0 => Self::INT_TEXT,
                Ok(_) => Self::FLOAT_TEXT,
                Err(_) => Self::WORDS,
            },
        }
    }

    /// Returns the possible kinds of a text that contains `piece`.
    pub fn of_text_with(piece: &str) -> Kinds {
        let all = |allowed: fn(char) -> bool| piece.trim().chars().all(allowed);
        let mut may = Self::WORDS;
        if piece.trim().is_empty() {
            may = may | Self::BLANK;
        }
        if all(|c| c.is_ascii_digit() || "+-.".contains(c)) {
            may = may | Self::INT_TEXT;
        }
        if all(|c| c.is_ascii_digit() || "+-.eE".contains(c)) {
            may = may | Self::FLOAT_TEXT;
        }
        if all(|c| "truefalsTRUEFALS".contains(c)) {
            may = may | Self::BOOL_TEXT;
        }
        may
    }

    /// Returns the kinds of the values after formatting as text.
    #[must_use]
    pub fn as_text(self) -> Kinds {
        if self.meets(Self::LIST | Self::MAP) {
            return Self::TEXT;
        }
        let mut text = Self::NONE;
        for (kind, sample) in Self::samples() {
            if self.meets(kind) {
                text = text | Self::of(&Node::from(&*sample.to_text()));
            }
        }
        text
    }

    /// Returns these kinds except for `other`.
    #[must_use]
    pub fn without(self, other: Kinds) -> Kinds {
        Kinds(self.0 & !other.0)
    }

    /// Returns one value of each kind.
    pub fn samples() -> [(Kinds, Node); 10] {
        [
            (Self::BOOL, Node::Bool(true)),
            (Self::INT, Node::Int(1)),
            (Self::FLOAT, Node::Float(1.5)),
            (Self::BLANK, Node::from("")),
            (Self::INT_TEXT, Node::from("1")),
            (Self::FLOAT_TEXT, Node::from("1.5")),
            (Self::BOOL_TEXT, Node::from("true")),
            (Self::WORDS, Node::from("some words")),
            (Self::LIST, Node::List(Box::default())),
            (Self::MAP, Node::Map(orkestra_object::value::Map::default())),
        ]
    }

    /// Returns the kinds whose sample passes.
    pub fn that(passes: impl Fn(Node) -> bool) -> Kinds {
        let mut kinds = Self::NONE;
        for (kind, sample) in Self::samples() {
            if passes(sample) {
                kinds = kinds | kind;
            }
        }
        kinds
    }

    /// True if the sets have a kind in common.
    pub fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    /// True if the set is not empty, and is a subset of `other`.
    pub fn within(self, other: Kinds) -> bool {
        self != Self::NONE && self.0 & !other.0 == 0
    }
}

impl ops::BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

impl ops::BitAnd for Kinds {
    type Output = Kinds;

    fn bitand(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }
}

/// In words: `integer`, `text`, `integer or text`, `anything`.
impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return f.write_str("anything");
        }
        let number = if self.meets(Self::FLOAT) {
            "number"
        } else {
            "integer"
        };
        let parts = [
            (Self::BOOL, "boolean"),
            (Self::NUMBER, number),
            (Self::TEXT, "text"),
            (Self::LIST, "list"),
            (Self::MAP, "map"),
        ];
        let words = parts.iter().filter(|(kinds, _)| self.meets(*kinds));
        let words: Vec<&str> = words.map(|(_, word)| *word).collect();
        f.write_str(&match words.as_slice() {
            [] => "nothing".to_owned(),
            words => words.join(" or "),
        })
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({:#b})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_of_their_kind_and_make_everything() {
        for (kind, sample) in Kinds::samples() {
            assert_eq!(Kinds::of(&sample), kind);
        }
        assert_eq!(Kinds::that(|_| true), Kinds::ANY);
    }

    #[test]
    fn a_text_reads_as_what_its_certain_pieces_allow() {
        for (piece, number, boolean) in [
            ("-x", false, false),
            ("3", true, false),
            (" ", true, true),
            ("tr", false, true),
            ("1.5", true, false),
        ] {
            let may = Kinds::of_text_with(piece);
            assert_eq!(may.meets(Kinds::INT_TEXT), number, "{piece}");
            assert_eq!(may.meets(Kinds::BOOL_TEXT), boolean, "{piece}");
            assert!(may.meets(Kinds::WORDS));
        }
    }

    #[test]
    fn kinds_are_described_in_words() {
        for (kinds, words) in [
            (Kinds::INT, "integer"),
            (Kinds::NUMBER, "number"),
            (Kinds::INT | Kinds::TEXT, "integer or text"),
            (Kinds::WORDS, "text"),
            (Kinds::ANY, "anything"),
            (Kinds::NONE, "nothing"),
        ] {
            assert_eq!(kinds.to_string(), words);
        }
    }
}
