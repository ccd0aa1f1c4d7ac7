//! Values during an evaluation.

use std::sync::Arc;

use super::Data;
use super::budget::EvalBudget;
use super::error::EvalFailure;
use orkestra_object::value::{Key, Node};

/// A value that stays borrowed from the data as long as possible.
#[derive(Clone, Debug)]
pub(crate) enum Value<'d> {
    /// The root data, which is not a single node.
    Root,
    /// A part of the data.
    Data(&'d Node),
    /// A constant of the template, or a value with several owners.
    Shared(Arc<Node>),
    /// A computed value.
    Own(Node),
}

/// The value of a missing path.
pub(crate) static NULL: Node = Node::Null;

impl<'d> Value<'d> {
    /// Returns null, the value of a missing path.
    pub(crate) fn null() -> Value<'d> {
        Value::Data(&NULL)
    }

    /// Returns the value as a node. The root data must be settled first.
    pub(crate) fn node(&self) -> &Node {
        match self {
            Value::Root => &NULL,
            Value::Data(node) => node,
            Value::Shared(node) => node,
            Value::Own(node) => node,
        }
    }

    /// Returns the value under one key; null if there is none.
    pub(crate) fn field(
        self,
        key: &str,
        data: &Data<'d>,
        budget: &mut EvalBudget,
    ) -> Result<Self, EvalFailure> {
        if let Value::Root = self {
            return Ok(data.get(key).map_or(Value::null(), Value::Data));
        }
        self.part(|node| node.get(key), budget)
    }

    /// Returns the value at a path of keys.
    pub(crate) fn fields(
        self,
        keys: &[Key],
        data: &Data<'d>,
        budget: &mut EvalBudget,
    ) -> Result<Self, EvalFailure> {
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

    /// Returns a part of the value: borrowed if the value is, else a copy that is charged to the budget.
    pub(crate) fn part(
        self,
        find: impl for<'n> FnOnce(&'n Node) -> Option<&'n Node>,
        budget: &mut EvalBudget,
    ) -> Result<Self, EvalFailure> {
        let copy = |found: Option<&Node>, budget: &mut EvalBudget| match found {
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

    /// Returns the value in a form that is cheap to clone.
    pub(crate) fn shared(self) -> Self {
        match self {
            Value::Own(node) => Value::Shared(Arc::new(node)),
            value => value,
        }
    }
}

/// Charges for a copy of a node and returns it.
pub(crate) fn copied(node: &Node, budget: &mut EvalBudget) -> Result<Node, EvalFailure> {
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
