//! Text of a value: short ones, which most are, take no memory of their own.

use std::{cmp::Ordering, fmt, ops::Deref};

/// The longest text in bytes that is held in place: what is left of a [`super::Node`] beside its marks.
const SHORT: usize = 22;

/// Text that never changes; reads as a [`str`].
#[derive(Clone)]
pub struct Text(Form);

#[derive(Clone)]
enum Form {
    /// The first `length` bytes; the others are zero.
    Short {
        length: u8,
        bytes: [u8; SHORT],
    },
    Long(Box<str>),
}

impl Text {
    fn short(text: &str) -> Option<Self> {
        let mut bytes = [0; SHORT];
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        let length = u8::try_from(text.len()).ok()?;
        Some(Self(Form::Short { length, bytes }))
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Form::Short { .. } => 0,
            Form::Long(text) => text.len(),
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            // They come from a text: to look whether they are one costs less than it takes to find them on the heap.
            Form::Short { length, bytes } => bytes
                .get(..usize::from(*length))
                .and_then(|bytes| str::from_utf8(bytes).ok())
                .unwrap_or_default(),
            Form::Long(text) => text,
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::short(text).unwrap_or_else(|| Self(Form::Long(text.into())))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::short(&text).unwrap_or_else(|| Self(Form::Long(text.into_boxed_str())))
    }
}

/// A text has one form, so that equal ones are of the same.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (
                Form::Short { length, bytes },
                Form::Short {
                    length: l,
                    bytes: b,
                },
            ) => (length, bytes) == (l, b),
            (Form::Long(one), Form::Long(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Node, *};

    #[test]
    fn a_text_of_any_length_reads_as_it_was_written() {
        for length in 0..=2 * SHORT {
            for letter in ["a", "é", "鯉"] {
                let written = letter.repeat(length);
                let text = Text::from(&*written);
                assert_eq!(*text, *written);
                assert_eq!(text, Text::from(written.clone()));
                let held = if written.len() > SHORT {
                    written.len()
                } else {
                    0
                };
                assert_eq!(text.heap_bytes(), held, "{written}");
            }
        }
    }

    #[test]
    fn texts_are_ordered_as_strings_whatever_holds_them() {
        let (short, long) = ("b".to_owned(), "a".repeat(SHORT + 1));
        for (one, other) in [(&short, &long), (&long, &short), (&short, &short)] {
            let texts = (Text::from(&**one), Text::from(&**other));
            assert_eq!(texts.0.cmp(&texts.1), one.cmp(other));
            assert_eq!(texts.0 == texts.1, one == other);
        }
    }

    #[test]
    fn a_node_is_no_larger_for_it() {
        assert_eq!(size_of::<Node>(), size_of::<(usize, Box<str>)>());
    }
}
