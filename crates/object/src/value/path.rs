//! Paths into a tree.

use std::cmp::Ordering;
use std::fmt;

use super::Key;

/// The most steps of a parsed path: trees of Kubernetes are far shallower, and trees that are built along a path are walked
/// recursively.
const MOST_STEPS: usize = 128;
/// The highest index of a parsed path, so that setting it cannot exhaust the memory.
const HIGHEST_INDEX: usize = 65_535;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathStep {
    /// A key of a map; on a list, a number selects an item.
    Field(Key),
    /// An item of a list, from 0.
    Index(usize),
}

impl PathStep {
    /// The list item that this step can select, if any.
    pub(crate) fn index(&self) -> Option<usize> {
        match self {
            PathStep::Index(index) => Some(*index),
            PathStep::Field(key) if key.bytes().all(|b| b.is_ascii_digit()) => key.parse().ok(),
            PathStep::Field(_) => None,
        }
    }

    /// The item or the key that this step selects, for comparison: equal for steps to the same place.
    fn place(&self) -> (Option<usize>, &str) {
        match (self.index(), self) {
            (None, PathStep::Field(key)) => (None, key),
            (index, _) => (index, ""),
        }
    }

    fn same_place(&self, other: &PathStep) -> bool {
        self == other || (self.index().is_some() && self.index() == other.index())
    }
}

/// The position of a value in a tree: the keys and indexes from the root. The empty path is the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<PathStep>);

/// Why a text is not a valid path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPath {
    /// The problem.
    pub what: &'static str,
    /// The position of the problem, in bytes from 0.
    pub at: usize,
}

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl Path {
    /// The path of the root.
    pub fn root() -> Path {
        Path::default()
    }

    /// The path of nested keys.
    pub fn of_fields<K: Into<Key>>(keys: impl IntoIterator<Item = K>) -> Path {
        keys.into_iter()
            .map(|key| PathStep::Field(key.into()))
            .collect()
    }

    /// Parses a path: `spec.a[0].b`, `spec.a.0.b`, `metadata.labels["a.b/c"]`.
    ///
    /// A leading dot is optional; an empty text or a single dot is the root. Inside quotes (double or single) a backslash escapes
    /// the next character. At most 128 steps, no index above 65,535.
    ///
    /// # Errors
    /// The problem and its position.
    pub fn parse(text: &str) -> Result<Path, BadPath> {
        let mut path = Path::root();
        let mut rest = text.strip_prefix('.').unwrap_or(text);
        let mut first = true;
        while !rest.is_empty() {
            let at = text.len() - rest.len();
            let bad = |what| BadPath { what, at };
            if path.0.len() == MOST_STEPS {
                return Err(bad("too many steps"));
            }
            let (step, after) = if let Some(bracket) = rest.strip_prefix('[') {
                parse_bracket(bracket).map_err(bad)?
            } else {
                let name = match rest.strip_prefix('.') {
                    Some(after) if !first => after,
                    None if first => rest,
                    _ => return Err(bad("expected `.` or `[`")),
                };
                parse_name(name).map_err(bad)?
            };
            path.0.push(step);
            rest = after;
            first = false;
        }
        Ok(path)
    }

    /// Returns the steps from the root.
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// True if this is the root.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a key.
    pub fn push_field(&mut self, key: impl Into<Key>) {
        self.0.push(PathStep::Field(key.into()));
    }

    /// Appends an index.
    pub fn push_index(&mut self, index: usize) {
        self.0.push(PathStep::Index(index));
    }

    /// An order in which the paths below a path follow it directly; `a.0` and `a[0]` are the same place.
    pub fn order_of_places(&self, other: &Path) -> Ordering {
        let places = self.0.iter().map(PathStep::place);
        places.cmp(other.0.iter().map(PathStep::place))
    }

    /// True if this path is `prefix` or below it. `a.0` and `a[0]` are the same place.
    pub fn starts_with(&self, prefix: &Path) -> bool {
        self.0.len() >= prefix.0.len() && self.0.iter().zip(&prefix.0).all(|(a, b)| a.same_place(b))
    }

    /// True if a change at one of the paths may change the value at the other: one is below the other, or they are the same.
    pub fn overlaps(&self, other: &Path) -> bool {
        self.starts_with(other) || other.starts_with(self)
    }
}

impl FromIterator<PathStep> for Path {
    fn from_iter<I: IntoIterator<Item = PathStep>>(steps: I) -> Path {
        Path(steps.into_iter().collect())
    }
}

/// Parses a plain name, up to the next dot or bracket.
fn parse_name(text: &str) -> Result<(PathStep, &str), &'static str> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    if name.is_empty() {
        return Err("a name is missing");
    }
    if name.contains([']', '"', '\'']) {
        return Err("a key with brackets or quotes is written as [\"key\"]");
    }
    Ok((PathStep::Field(Key::new(name)), after))
}

/// Parses the text after an opening bracket: an index or a quoted key, and the closing bracket.
fn parse_bracket(text: &str) -> Result<(PathStep, &str), &'static str> {
    const UNCLOSED: &str = "bracket without end";
    let quote = text.chars().next().ok_or(UNCLOSED)?;
    if quote != '"' && quote != '\'' {
        let (digits, after) = text.split_once(']').ok_or(UNCLOSED)?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err("expected an index or a quoted key");
        }
        return match digits.parse() {
            Ok(index) if index <= HIGHEST_INDEX => Ok((PathStep::Index(index), after)),
            _ => Err("index above 65535"),
        };
    }
    let mut key = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => key.push(chars.next().ok_or("quoted key without end")?.1),
            c if c == quote => {
                let after = text[at + 1..].strip_prefix(']').ok_or(UNCLOSED)?;
                return Ok((PathStep::Field(Key::from(key)), after));
            }
            c => key.push(c),
        }
    }
    Err("quoted key without end")
}

impl fmt::Display for Path {
    /// In a form that [`Path::parse`] accepts: `spec.ports[0].name`, `metadata.labels["a.b/c"]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Index(index) => write!(f, "[{index}]")?,
                PathStep::Field(key) if is_plain(key) => {
                    let dot = if at == 0 { "" } else { "." };
                    write!(f, "{dot}{key}")?;
                }
                PathStep::Field(key) => {
                    let key = key.replace('\\', "\\\\").replace('"', "\\\"");
                    write!(f, "[\"{key}\"]")?;
                }
            }
        }
        Ok(())
    }
}

/// True if a key needs no quotes in a path.
fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && !key.contains(|c: char| {
            matches!(c, '.' | '[' | ']' | '"' | '\'' | '\\') || c.is_whitespace() || c.is_control()
        })
}

/// Returns a key as one token of a JSON pointer, without its slash.
///
/// Source: RFC 6901, section 3.
pub fn pointer_token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(text: &str) -> Vec<String> {
        Path::parse(text)
            .unwrap()
            .steps()
            .iter()
            .map(|step| match step {
                PathStep::Field(key) => key.to_string(),
                PathStep::Index(index) => format!("#{index}"),
            })
            .collect()
    }

    #[test]
    fn every_spelling_of_a_path_is_read() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            (".", &[]),
            ("spec", &["spec"]),
            (".spec.a", &["spec", "a"]),
            ("spec.a[0].b", &["spec", "a", "#0", "b"]),
            ("spec.a.0.b", &["spec", "a", "0", "b"]),
            ("a[1][2]", &["a", "#1", "#2"]),
            (
                r#"metadata.labels["a.b/c"]"#,
                &["metadata", "labels", "a.b/c"],
            ),
            ("m['x y'].z", &["m", "x y", "z"]),
            (r#"["a\"b\\c"]"#, &[r#"a"b\c"#]),
            (".[\"a\"]", &["a"]),
            ("a-b.c/d", &["a-b", "c/d"]),
        ];
        for (text, expected) in cases {
            assert_eq!(fields(text), *expected, "{text}");
        }
    }

    #[test]
    fn malformed_paths_say_what_is_wrong_and_where() {
        let cases = [
            ("a..b", "a name is missing at byte 1"),
            ("a.", "a name is missing at byte 1"),
            ("..a", "expected `.` or `[` at byte 1"),
            ("a[0]b", "expected `.` or `[` at byte 4"),
            ("a[", "bracket without end at byte 1"),
            ("a[1", "bracket without end at byte 1"),
            ("a[x]", "expected an index or a quoted key at byte 1"),
            ("a[]", "expected an index or a quoted key at byte 1"),
            ("a[\"b]", "quoted key without end at byte 1"),
            ("a[\"b\"", "bracket without end at byte 1"),
            ("a[65536]", "index above 65535 at byte 1"),
            (
                "a]b",
                "a key with brackets or quotes is written as [\"key\"] at byte 0",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(
                Path::parse(text).unwrap_err().to_string(),
                message,
                "{text}"
            );
        }
        assert!(Path::parse(&"a.".repeat(10_000)).is_err());
    }

    #[test]
    fn a_path_starts_with_its_parents_and_itself() {
        let path = Path::parse("spec.list[0].b").unwrap();
        for prefix in ["", "spec", "spec.list", "spec.list.0", "spec.list[0].b"] {
            assert!(path.starts_with(&Path::parse(prefix).unwrap()), "{prefix}");
        }
        for other in ["sp", "spec.list[1]", "spec.list[0].b.c", "list"] {
            assert!(!path.starts_with(&Path::parse(other).unwrap()), "{other}");
        }
    }

    proptest! {
        #[test]
        fn what_is_displayed_is_read_back(keys in prop::collection::vec(".*", 0..6), index in 0usize..9) {
            let mut path = Path::root();
            for key in &keys {
                path.push_field(key.as_str());
                path.push_index(index);
            }
            prop_assert_eq!(Path::parse(&path.to_string()).unwrap(), path);
        }

        #[test]
        fn any_text_gives_a_path_or_a_message(text in ".*") {
            if let Ok(path) = Path::parse(&text) {
                prop_assert_eq!(Path::parse(&path.to_string()).unwrap(), path);
            }
        }
    }
}
