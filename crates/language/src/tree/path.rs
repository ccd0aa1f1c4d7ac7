//! Paths to fields in a document.

use std::{fmt, sync::Arc};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A key of a map.
    Field(Arc<str>),
    /// An index into a list, from 0.
    Index(usize),
}

/// The path of a field from the root of a document: `spec.crds.website.operatorBox`.
///
/// Keys with characters other than letters, digits, `-` and `_` are displayed in quotes: `metadata.labels."app.example/name"`.
///
/// Cheap to clone: a Katalog has thousands of paths, most of them with the same prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Arc<[Segment]>);

impl FieldPath {
    /// The document itself.
    pub fn root() -> Self {
        FieldPath::default()
    }

    /// The field `name` in the map at this path.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.with(Segment::Field(name.into()))
    }

    /// Item `index`, from 0, of the list at this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// The field `name` next to the one at this path.
    #[must_use]
    pub fn sibling(&self, name: &str) -> Self {
        let parent = &self.0[..self.0.len().saturating_sub(1)];
        joined(parent, Segment::Field(name.into()))
    }

    /// Returns the steps from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Returns the path without its last step; `None` for the document itself.
    pub fn parent(&self) -> Option<Self> {
        let (_, parents) = self.0.split_last()?;
        Some(FieldPath(parents.into()))
    }

    /// True if this is the document itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses the output of `Display`. If the text is not valid, returns the part before the error.
    pub fn parse(text: &str) -> Self {
        let (mut segments, mut rest) = (Vec::new(), text);
        while let Some((segment, behind)) = segment(rest) {
            segments.push(segment);
            rest = behind.strip_prefix('.').unwrap_or(behind);
        }
        FieldPath(segments.into())
    }

    fn with(&self, segment: Segment) -> Self {
        joined(&self.0, segment)
    }
}

fn joined(parents: &[Segment], last: Segment) -> FieldPath {
    FieldPath(parents.iter().cloned().chain([last]).collect())
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Field(name) => {
                    if position > 0 {
                        f.write_str(".")?;
                    }
                    if is_plain(name) {
                        f.write_str(name)?;
                    } else {
                        write!(f, "{name:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Parses the first step of a displayed path; returns it with the rest.
fn segment(text: &str) -> Option<(Segment, &str)> {
    if let Some(inside) = text.strip_prefix('[') {
        let (index, behind) = inside.split_once(']')?;
        return Some((Segment::Index(index.parse().ok()?), behind));
    }
    if text.starts_with('"') {
        let mut texts = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = texts.next()?.ok()?;
        return Some((Segment::Field(name.into()), &text[texts.byte_offset()..]));
    }
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, behind) = text.split_at(end);
    is_plain(name).then(|| (Segment::Field(name.into()), behind))
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_with_dots_indices_and_quotes() {
        let path = FieldPath::root()
            .field("spec")
            .field("list")
            .index(2)
            .field("a.b/c");
        assert_eq!(path.to_string(), "spec.list[2].\"a.b/c\"");
        assert_eq!(FieldPath::root().to_string(), "");
        for path in [
            FieldPath::root(),
            path.clone(),
            path.index(0).index(1).field("").field("é-\"'\t"),
        ] {
            assert_eq!(FieldPath::parse(&path.to_string()), path);
        }
        assert_eq!(FieldPath::parse("a.b!.c"), FieldPath::root().field("a"));
    }
}
