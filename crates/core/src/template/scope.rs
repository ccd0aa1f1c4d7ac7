//! Values while an evaluation runs.

use std::sync::Arc;

use super::Data;
use super::budget::Budget;
use super::error::Failure;
use crate::value::{Key, Node};

/// A value that is borrowed from the data as long as that is possible.
#[derive(Clone, Debug)]
pub(super) enum Value<'d> {
    /// The root data, which is no single node.
    Root,
    /// A part of the data.
    Data(&'d Node),
    /// A constant of the template, or a value that several hold.
    Shared(Arc<Node>),
    /// A value that was made.
    Own(Node),
}

/// What missing values are.
pub(super) static NULL: Node = Node::Null;

impl<'d> Value<'d> {
    /// What is missing.
    pub(super) fn null() -> Value<'d> {
        Value::Data(&NULL)
    }

    /// The value as a node; the root data is to be settled before.
    pub(super) fn node(&self) -> &Node {
        match self {
            Value::Root => &NULL,
            Value::Data(node) => node,
            Value::Shared(node) => node,
            Value::Own(node) => node,
        }
    }

    /// The value behind one key; null where there is none.
    pub(super) fn field(
        self,
        key: &str,
        data: &Data<'d>,
        budget: &mut Budget,
    ) -> Result<Self, Failure> {
        if let Value::Root = self {
            return Ok(data.get(key).map_or(Value::null(), Value::Data));
        }
        self.part(|node| node.get(key), budget)
    }

    /// The value behind some keys.
    pub(super) fn fields(
        self,
        keys: &[Key],
        data: &Data<'d>,
        budget: &mut Budget,
    ) -> Result<Self, Failure> {
        let (start, keys) = match (self, keys) {
            (Value::Root, [first, rest @ ..]) => {
                (data.get(first).map_or(Value::null(), Value::Data), rest)
            }
            (value, keys) => (value, keys),
        };
        if keys.is_empty() {
            return Ok(start);
        }
        start.part(
            |node| keys.iter().try_fold(node, |node, key| node.get(key)),
            budget,
        )
    }

    /// A part of the value: borrowed if the value is, else copied at the budget's cost.
    pub(super) fn part(
        self,
        find: impl for<'n> FnOnce(&'n Node) -> Option<&'n Node>,
        budget: &mut Budget,
    ) -> Result<Self, Failure> {
        let copy = |found: Option<&Node>, budget: &mut Budget| match found {
            Some(node) => copied(node, budget).map(Value::Own),
            None => Ok(Value::null()),
        };
        match self {
            Value::Root => Ok(Value::null()),
            Value::Data(node) => Ok(find(node).map_or(Value::null(), Value::Data)),
            Value::Shared(node) => copy(find(&node), budget),
            Value::Own(node) => copy(find(&node), budget),
        }
    }

    /// The same value in a form that is cheap to clone.
    pub(super) fn shared(self) -> Self {
        match self {
            Value::Own(node) => Value::Shared(Arc::new(node)),
            value => value,
        }
    }
}

/// A copy of a node, paid for before it is made.
pub(super) fn copied(node: &Node, budget: &mut Budget) -> Result<Node, Failure> {
    budget.take(size_of::<Node>() + node.heap_bytes())?;
    Ok(node.clone())
}

impl From<Node> for Value<'_> {
    fn from(node: Node) -> Self {
        Value::Own(node)
    }
}

impl From<bool> for Value<'_> {
    fn from(b: bool) -> Self {
        Value::Own(Node::Bool(b))
    }
}

impl From<i64> for Value<'_> {
    fn from(n: i64) -> Self {
        Value::Own(Node::Int(n))
    }
}
