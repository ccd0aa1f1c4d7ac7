//! Values with their positions in a file, and paths to fields, for diagnostics.

mod origin;
mod path;

use serde_json::{Map, Number, Value};

pub use origin::{Layer, Origin};
pub use path::{FieldPath, Segment};

/// A range in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileSpan {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The start, in bytes of the file.
    pub offset: u32,
    /// The length in bytes.
    pub len: u32,
}

/// A value with its position. Anchors and merge keys are expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The value's position; `None` if it came from JSON.
    pub span: Option<FileSpan>,
    /// The value.
    pub value: TreeValue,
    /// The parts of a text that the file contains literally, in order.
    pub verbatim: Box<[Verbatim]>,
}

/// A part of a text that the file contains literally, on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verbatim {
    /// The start, in bytes of the text.
    pub start: u32,
    /// The position in the file.
    pub span: FileSpan,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum TreeValue {
    /// No value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above [`i64::MAX`].
    UInt(u64),
    /// Any other number; always finite.
    Float(f64),
    /// Text.
    Str(String),
    /// A list of values.
    List(Vec<Tree>),
    /// Values by key, in the order of the file.
    Map(Vec<(TreeKey, Tree)>),
}

/// A key with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeKey {
    /// The key.
    pub name: String,
    /// The key's position; `None` if it came from JSON.
    pub span: Option<FileSpan>,
}

impl TreeKey {
    /// A key without a position.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            span: None,
        }
    }
}

impl Tree {
    /// A value without a position.
    pub fn new(value: TreeValue) -> Self {
        Tree {
            span: None,
            value,
            verbatim: Box::default(),
        }
    }

    /// A map without a position.
    pub fn map(entries: Vec<(TreeKey, Tree)>) -> Self {
        Tree::new(TreeValue::Map(entries))
    }

    /// Converts a value, without positions. Recursive: the caller limits the depth.
    pub fn from_json(value: &Value) -> Self {
        Tree::new(match value {
            Value::Null => TreeValue::Null,
            Value::Bool(flag) => TreeValue::Bool(*flag),
            Value::Number(number) => from_number(number),
            Value::String(text) => TreeValue::Str(text.clone()),
            Value::Array(items) => TreeValue::List(items.iter().map(Tree::from_json).collect()),
            Value::Object(map) => TreeValue::Map(
                map.iter()
                    .map(|(name, value)| (TreeKey::new(name), Tree::from_json(value)))
                    .collect(),
            ),
        })
    }

    /// Converts the value to JSON. Of two equal keys the later is used; parsing refuses them.
    pub fn to_json(&self) -> Value {
        match &self.value {
            TreeValue::Null => Value::Null,
            TreeValue::Bool(flag) => Value::Bool(*flag),
            TreeValue::Int(number) => Value::from(*number),
            TreeValue::UInt(number) => Value::from(*number),
            TreeValue::Float(number) => Value::from(*number),
            TreeValue::Str(text) => Value::String(text.clone()),
            TreeValue::List(items) => Value::Array(items.iter().map(Tree::to_json).collect()),
            TreeValue::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| (key.name.clone(), value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// True if there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self.value, TreeValue::Null)
    }

    /// Returns the text, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            TreeValue::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the entries, if this is a map.
    pub fn as_map(&self) -> Option<&[(TreeKey, Tree)]> {
        match &self.value {
            TreeValue::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the value of a key, if this is a map that has it.
    pub fn get(&self, name: &str) -> Option<&Tree> {
        self.entry(name).map(|(_, value)| value)
    }

    /// Returns the type for messages: `a list`.
    pub fn describe(&self) -> &'static str {
        match &self.value {
            TreeValue::Null => "nothing",
            TreeValue::Bool(_) => "a boolean",
            TreeValue::Int(_) | TreeValue::UInt(_) => "an integer",
            TreeValue::Float(_) => "a number",
            TreeValue::Str(_) => "text",
            TreeValue::List(_) => "a list",
            TreeValue::Map(_) => "a map",
        }
    }

    /// Returns the position of the field at `path`, or of its nearest existing ancestor.
    ///
    /// The position of a map or a list is that of its key.
    pub fn locate(&self, path: &FieldPath) -> Option<FileSpan> {
        let mut tree = self;
        let mut span = self.span;
        for segment in path.segments() {
            let Some((key, next)) = tree.step(segment) else {
                break;
            };
            let own = match next.value {
                TreeValue::Map(_) | TreeValue::List(_) | TreeValue::Null => key.or(next.span),
                _ => next.span.or(key),
            };
            span = own.or(span);
            tree = next;
        }
        span
    }

    /// Returns the position of the key of the field at `path`, or else of the field.
    pub fn locate_key(&self, path: &FieldPath) -> Option<FileSpan> {
        let (last, parents) = path.segments().split_last()?;
        let parent = parents
            .iter()
            .try_fold(self, |tree, segment| Some(tree.step(segment)?.1));
        let key = parent.and_then(|parent| parent.step(last)?.0);
        key.or_else(|| self.locate(path))
    }

    /// Returns the position of byte `offset` of the text at `path`.
    ///
    /// Exact if the file contains that part of the text literally; else the start of the text.
    pub fn locate_in_text(&self, path: &FieldPath, offset: usize) -> Option<FileSpan> {
        let start = self.locate(path)?;
        let exact = self.at(path).and_then(|tree| tree.span_in_text(offset));
        Some(exact.unwrap_or(start))
    }

    fn at(&self, path: &FieldPath) -> Option<&Tree> {
        path.segments()
            .iter()
            .try_fold(self, |tree, segment| Some(tree.step(segment)?.1))
    }

    fn span_in_text(&self, offset: usize) -> Option<FileSpan> {
        let text = self.as_str()?;
        let at = u32::try_from(offset).ok()?;
        let later = self.verbatim.partition_point(|part| part.start <= at);
        let Verbatim { start, span } = *self.verbatim.get(later.checked_sub(1)?)?;
        if at - start > span.len {
            return None;
        }
        let before = text.get(usize::try_from(start).ok()?..offset)?;
        Some(FileSpan {
            column: span.column + u32::try_from(before.chars().count()).ok()?,
            offset: span.offset + (at - start),
            len: 0,
            ..span
        })
    }

    fn step(&self, segment: &Segment) -> Option<(Option<FileSpan>, &Tree)> {
        match (segment, &self.value) {
            (Segment::Field(name), _) => {
                let (key, value) = self.entry(name)?;
                Some((key.span, value))
            }
            (Segment::Index(index), TreeValue::List(items)) => {
                let item = items.get(*index)?;
                Some((item.span, item))
            }
            (Segment::Index(_), _) => None,
        }
    }

    fn entry(&self, name: &str) -> Option<&(TreeKey, Tree)> {
        self.as_map()?.iter().find(|(key, _)| key.name == name)
    }
}

fn from_number(number: &Number) -> TreeValue {
    if let Some(int) = number.as_i64() {
        TreeValue::Int(int)
    } else if let Some(uint) = number.as_u64() {
        TreeValue::UInt(uint)
    } else {
        TreeValue::Float(number.as_f64().unwrap_or_default())
    }
}
