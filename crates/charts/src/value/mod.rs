//! Values of chart templates, with the properties that Go's templates distinguish and Katalogs do not.
//!
//! Maps are shared and changed in place (`set`, `merge`), `int`, `int64` and `float64` are three types, texts may contain
//! bytes that are not UTF-8, and some values are objects with methods.

pub(crate) mod object;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orkestra_object::value::{Key, Map, Node};

pub(crate) use object::Object;

/// The entries of a map, in key order.
pub(crate) type Entries = BTreeMap<Rc<str>, Value>;

/// A value. Clones are cheap, and a clone of a map is the same map.
#[derive(Clone, Debug, Default)]
pub(crate) enum Value {
    /// `nil`, and missing values.
    #[default]
    Nil,
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `int64`
    Int64(i64),
    /// `float64`
    Float(f64),
    /// `string`
    Str(Rc<str>),
    /// A `string` that is not UTF-8, or a `[]byte`.
    Bytes(Rc<[u8]>, Raw),
    /// A slice.
    List(Rc<Items>, Elem),
    /// A map with string keys.
    Map(Rc<Table>, Elem),
    /// A value with its own fields and methods.
    Object(Object),
}

/// The elements of a slice.
///
/// A template can nest values to any depth, so neither this nor [`Table`] is dropped recursively.
#[derive(Debug, Default)]
pub(crate) struct Items(Vec<Value>);

impl Items {
    /// Creates a slice of these elements.
    pub(crate) fn new(items: Vec<Value>) -> Rc<Items> {
        Rc::new(Items(items))
    }
}

impl Deref for Items {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        release(std::mem::take(&mut self.0));
    }
}

/// The entries of a map, shared by all its clones.
#[derive(Debug, Default)]
pub(crate) struct Table(RefCell<Entries>);

impl Table {
    /// Creates a map of these entries.
    pub(crate) fn new(entries: Entries) -> Rc<Table> {
        Rc::new(Table(RefCell::new(entries)))
    }
}

impl Deref for Table {
    type Target = RefCell<Entries>;

    fn deref(&self) -> &RefCell<Entries> {
        &self.0
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        release(std::mem::take(self.0.get_mut()).into_values().collect());
    }
}

/// Drops values iteratively, without recursion.
fn release(mut values: Vec<Value>) {
    while let Some(value) = values.pop() {
        match value {
            Value::List(items, _) => {
                if let Some(mut items) = Rc::into_inner(items) {
                    values.append(&mut items.0);
                }
            }
            Value::Map(table, _) => {
                if let Some(mut table) = Rc::into_inner(table) {
                    values.extend(std::mem::take(table.0.get_mut()).into_values());
                }
            }
            _ => {}
        }
    }
}

/// The Go type of raw bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Raw {
    /// `string`
    Text,
    /// `[]byte`
    Slice,
}

/// The type of a slice's or a map's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Elem {
    /// `interface {}`
    Any,
    /// `string`
    Text,
    /// `int`
    Int,
    /// `[]interface {}`
    List,
}

impl Elem {
    /// Returns the Go type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Elem::Any => "interface {}",
            Elem::Text => "string",
            Elem::Int => "int",
            Elem::List => "[]interface {}",
        }
    }
}

impl Value {
    /// Creates a text.
    pub(crate) fn text(text: impl AsRef<str>) -> Value {
        Value::Str(Rc::from(text.as_ref()))
    }

    /// Creates a text from bytes, which need not be UTF-8.
    pub(crate) fn bytes(bytes: &[u8]) -> Value {
        match std::str::from_utf8(bytes) {
            Ok(text) => Value::text(text),
            Err(_) => Value::Bytes(Rc::from(bytes), Raw::Text),
        }
    }

    /// Creates a list of `interface {}`.
    pub(crate) fn list(items: Vec<Value>) -> Value {
        Value::List(Items::new(items), Elem::Any)
    }

    /// Creates a list of texts.
    pub(crate) fn texts<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> Value {
        let items = items.into_iter().map(Value::text).collect();
        Value::List(Items::new(items), Elem::Text)
    }

    /// Creates a map of `interface {}`.
    pub(crate) fn map(entries: Entries) -> Value {
        Value::Map(Table::new(entries), Elem::Any)
    }

    /// Creates a map of the given entries.
    pub(crate) fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
        Value::map(entries.collect())
    }

    /// Converts a value as `sigs.k8s.io/yaml` does for `interface {}`: every number is a `float64`.
    pub(crate) fn from_node(node: &Node) -> Value {
        match node {
            Node::Null => Value::Nil,
            Node::Bool(b) => Value::Bool(*b),
            #[expect(clippy::cast_precision_loss, reason = "as encoding/json does")]
            Node::Int(n) => Value::Float(*n as f64),
            #[expect(clippy::cast_precision_loss, reason = "as encoding/json does")]
            Node::UInt(n) => Value::Float(*n as f64),
            Node::Float(n) => Value::Float(*n),
            Node::Str(text) => Value::text(text),
            Node::List(items) => Value::list(items.iter().map(Value::from_node).collect()),
            Node::Map(map) => Value::map(
                map.iter()
                    .map(|(key, item)| (key.as_str().into(), Value::from_node(item)))
                    .collect(),
            ),
        }
    }

    /// Converts the value to data, with integers as integers, like its JSON. Objects become their JSON.
    pub(crate) fn to_node(&self) -> Node {
        self.to_node_with(whole)
    }

    /// Converts the value to data as [`Value::to_node`], without going through JSON: floats stay floats.
    pub(crate) fn to_native_node(&self) -> Node {
        self.to_node_with(Node::Float)
    }

    fn to_node_with(&self, float: fn(f64) -> Node) -> Node {
        match self {
            Value::Nil => Node::Null,
            Value::Bool(b) => Node::Bool(*b),
            Value::Int(n) | Value::Int64(n) => Node::Int(*n),
            Value::Float(n) => float(*n),
            Value::Str(text) => Node::from(&**text),
            Value::Bytes(bytes, Raw::Text) => Node::from(&*String::from_utf8_lossy(bytes)),
            Value::Bytes(bytes, Raw::Slice) => Node::from(base64_text(bytes)),
            Value::List(items, _) => Node::from(
                items
                    .iter()
                    .map(|item| item.to_node_with(float))
                    .collect::<Vec<_>>(),
            ),
            Value::Map(map, _) => {
                let map = map.borrow();
                let entries = map
                    .iter()
                    .map(|(key, item)| (Key::new(key), item.to_node_with(float)));
                Node::Map(entries.collect::<Map>())
            }
            Value::Object(object) => {
                (object.data()).map_or(Node::Null, |value| value.to_node_with(float))
            }
        }
    }

    /// Returns the text, if this is text in UTF-8.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the entries, if this is a map.
    pub(crate) fn as_map(&self) -> Option<&Rc<Table>> {
        match self {
            Value::Map(map, _) => Some(map),
            _ => None,
        }
    }

    /// True for nil.
    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// True if a condition treats this as false, and `default` as missing.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Value::Nil => true,
            Value::Bool(b) => !b,
            Value::Int(n) | Value::Int64(n) => *n == 0,
            Value::Float(n) => *n == 0.0,
            Value::Str(text) => text.is_empty(),
            Value::Bytes(bytes, _) => bytes.is_empty(),
            Value::List(items, _) => items.is_empty(),
            Value::Map(map, _) => map.borrow().is_empty(),
            Value::Object(object) => object.is_empty(),
        }
    }

    /// Returns the Go type, as in `%T` and messages.
    pub(crate) fn type_name(&self) -> String {
        match self {
            Value::Nil => "<nil>".into(),
            Value::Bool(_) => "bool".into(),
            Value::Int(_) => "int".into(),
            Value::Int64(_) => "int64".into(),
            Value::Float(_) => "float64".into(),
            Value::Str(_) | Value::Bytes(_, Raw::Text) => "string".into(),
            Value::Bytes(_, Raw::Slice) => "[]uint8".into(),
            Value::List(_, elem) => format!("[]{}", elem.name()),
            Value::Map(_, elem) => format!("map[string]{}", elem.name()),
            Value::Object(object) => object.type_name().into(),
        }
    }

    /// Returns the Go kind, as in `kindOf`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "invalid",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Int64(_) => "int64",
            Value::Float(_) => "float64",
            Value::Str(_) | Value::Bytes(_, Raw::Text) => "string",
            Value::Bytes(_, Raw::Slice) | Value::List(..) => "slice",
            Value::Map(..) => "map",
            Value::Object(object) => object.kind(),
        }
    }

    /// Implements Go's `reflect.DeepEqual`.
    pub(crate) fn deep_equal(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Bytes(a, x), Value::Bytes(b, y)) => a == b && x == y,
            (Value::List(a, x), Value::List(b, y)) => {
                let equal = || a.iter().zip(b.iter()).all(|(a, b)| a.deep_equal(b));
                x == y && a.len() == b.len() && equal()
            }
            (Value::Map(a, x), Value::Map(b, y)) => {
                let (a, b) = (a.borrow(), b.borrow());
                let mut pairs = a.iter().zip(b.iter());
                let equal = pairs.all(|((k, v), (l, w))| k == l && v.deep_equal(w));
                x == y && a.len() == b.len() && equal
            }
            (Value::Object(a), Value::Object(b)) => a.same(b),
            _ => false,
        }
    }

    /// Returns a copy that shares no map with this.
    pub(crate) fn deep_copy(&self) -> Value {
        match self {
            Value::List(items, elem) => {
                let items = items.iter().map(Value::deep_copy).collect();
                Value::List(Items::new(items), *elem)
            }
            Value::Map(map, elem) => {
                let copy = map.borrow();
                let copy = copy.iter().map(|(k, v)| (Rc::clone(k), v.deep_copy()));
                Value::Map(Table::new(copy.collect()), *elem)
            }
            value => value.clone(),
        }
    }

    /// Returns the approximate size in bytes and subtracts the number of values, including this one, from `most`; `None` if
    /// there are more than `most` values or `depth` levels. Maps can contain themselves.
    pub(crate) fn measure(&self, most: &mut u64, depth: u32) -> Option<u64> {
        *most = most.checked_sub(1)?;
        let deeper = depth.checked_sub(1)?;
        match self {
            Value::Str(text) => Some(text.len() as u64),
            Value::Bytes(bytes, _) => Some(bytes.len() as u64),
            Value::List(items, _) => items.iter().try_fold(16, |sum: u64, item| {
                Some(sum.saturating_add(item.measure(most, deeper)?))
            }),
            Value::Map(map, _) => map.borrow().iter().try_fold(16, |sum: u64, (key, item)| {
                let own = key.len() as u64 + item.measure(most, deeper)?;
                Some(sum.saturating_add(own))
            }),
            _ => Some(8),
        }
    }
}

/// Converts a number as the YAML of its JSON: to an integer if it is whole and fits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "checked: whole and in range"
)]
fn whole(n: f64) -> Node {
    if n.fract() == 0.0 && n.abs() < 9_223_372_036_854_775_808.0 {
        return Node::Int(n as i64);
    }
    Node::Float(n)
}

/// Encodes in base 64 with the standard alphabet and padding.
pub(crate) fn base64_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
