//! Unreadable parts of an object, with the cause. They are stored in the object's tree, under a key that no API object has.

use std::fmt;

use super::{Key, Map, Node, Path, node::DUPLICATE};

/// An unreadable part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path of the part; the root is the whole object.
    pub path: Path,
    /// Why it is unreadable.
    pub cause: Cause,
}

/// Why a part of an object is unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is nested too deeply.
    TooDeep,
    /// A number is out of range, such as `1e400`.
    Number,
    /// A text is not valid Unicode.
    Text,
    /// A key occurs twice, so its value is ambiguous.
    Duplicate,
    /// The object is larger than the limit.
    TooLarge,
    /// It is not JSON.
    Syntax,
}

impl Cause {
    const ALL: [Self; 6] = [
        Self::TooDeep,
        Self::Number,
        Self::Text,
        Self::Duplicate,
        Self::TooLarge,
        Self::Syntax,
    ];

    /// The cause's name, from a fixed set.
    pub fn name(self) -> &'static str {
        match self {
            Self::TooDeep => "depth",
            Self::Number => "number",
            Self::Text => "text",
            Self::Duplicate => "duplicate",
            Self::TooLarge => "size",
            Self::Syntax => "syntax",
        }
    }

    /// Classifies an error of `serde_json`. Its messages are never quoted: they may contain values.
    pub fn of(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
        if begins(&["recursion limit exceeded"]) {
            Self::TooDeep
        } else if begins(&["number out of range"]) {
            Self::Number
        } else if begins(&[
            "invalid unicode",
            "lone leading surrogate",
            "unexpected end of hex escape",
        ]) {
            Self::Text
        } else if begins(&[DUPLICATE]) {
            Self::Duplicate
        } else {
            Self::Syntax
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str("the object")?;
        } else {
            write!(f, "`{}`", self.path)?;
        }
        f.write_str(match self.cause {
            Cause::TooDeep => " is nested more than 128 levels deep",
            Cause::Number => " holds a number that is out of range",
            Cause::Text => " holds text that is not valid Unicode",
            Cause::Duplicate => " holds the same key twice",
            Cause::TooLarge => " is larger than 16 MiB",
            Cause::Syntax => " is not valid JSON",
        })
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// The key in the tree of a partly unreadable object.
    pub const MARK: &str = "\u{0}faults";

    /// The most faults that are listed; further ones are combined into one fault of the whole object.
    pub(crate) const MOST: usize = 16;

    /// Returns the faults of a partly unreadable object; empty for most objects.
    pub fn all_of(object: &Node) -> Vec<Self> {
        object.get(Self::MARK).map(Self::read).unwrap_or_default()
    }

    /// Reads the value under [`Fault::MARK`].
    pub fn read(marks: &Node) -> Vec<Self> {
        let read = |mark: &Node| {
            let name = mark.get("cause")?.as_str()?;
            let cause = Cause::ALL.into_iter().find(|cause| cause.name() == name)?;
            // A path that cannot be written as text stands for the whole object.
            let path = Path::parse(mark.get("path")?.as_str()?).unwrap_or_default();
            Some(Self { path, cause })
        };
        let marks = marks.as_list().unwrap_or_default();
        marks.iter().filter_map(read).collect()
    }

    /// Returns the first fault outside `metadata.managedFields`, for callers that do not use managed fields.
    pub fn first_beside_managed_fields(faults: Vec<Self>) -> Option<Self> {
        let managed = Path::of_fields(["metadata", "managedFields"]);
        let mut faults = faults.into_iter();
        faults.find(|fault| !fault.path.starts_with(&managed))
    }

    /// Marks `object` as partly unreadable. An object that is not a map is replaced by one.
    pub fn mark(object: &mut Node, faults: &[Self]) {
        if faults.is_empty() {
            return;
        }
        let mark = |fault: &Self| {
            Node::object([
                ("path", Node::from(fault.path.to_string())),
                ("cause", Node::from(fault.cause.name())),
            ])
        };
        let mut marks: Vec<Node> = faults.iter().take(Self::MOST).map(mark).collect();
        // Faults that are not listed may be anywhere.
        if let Some(more) = faults.get(Self::MOST) {
            let anywhere = Self {
                path: Path::root(),
                cause: more.cause,
            };
            marks.push(mark(&anywhere));
        }
        if !matches!(object, Node::Map(_)) {
            *object = Node::Map(Map::default());
        }
        if let Node::Map(fields) = object {
            fields.insert(Key::from(Self::MARK), Node::from(marks));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_back_from_the_tree_that_they_are_marked_in() {
        let faults: Vec<Fault> = [
            "",
            "spec",
            "metadata.annotations[\"a.b/c\"]",
            "spec.list[3].x",
        ]
        .iter()
        .zip(Cause::ALL)
        .map(|(path, cause)| Fault {
            path: Path::parse(path).unwrap(),
            cause,
        })
        .collect();
        let mut object = Node::object([("spec", Node::from("x"))]);
        assert_eq!(Fault::all_of(&object), []);
        Fault::mark(&mut object, &faults);
        assert_eq!(Fault::all_of(&object), faults);
        assert_eq!(
            faults[1].to_string(),
            "`spec` holds a number that is out of range"
        );
    }

    #[test]
    fn the_cause_is_read_from_what_serde_json_says() {
        let cause = |text: &[u8]| Cause::of(&serde_json::from_slice::<Node>(text).unwrap_err());
        let deep = [b"[".repeat(200), b"]".repeat(200)].concat();
        assert_eq!(cause(&deep), Cause::TooDeep);
        assert_eq!(cause(b"1e400"), Cause::Number);
        assert_eq!(cause(b"-1e400"), Cause::Number);
        for text in [
            &b"\"\\ud800\""[..],
            b"\"\\ud800x\"",
            b"\"\\udc00\"",
            b"\"\xff\"",
        ] {
            assert_eq!(
                cause(text),
                Cause::Text,
                "{}",
                String::from_utf8_lossy(text)
            );
        }
        assert_eq!(cause(b"{x}"), Cause::Syntax);
    }
}
