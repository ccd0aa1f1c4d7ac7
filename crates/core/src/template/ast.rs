//! What a template is compiled to: small immutable trees without text of their own.

use std::sync::Arc;

use super::functions::Function;
use super::notes::Note;
use crate::value::{Key, Node};

/// Statements in order.
pub(super) type Block = Box<[Stmt]>;

/// One piece of a template.
#[derive(Debug)]
pub(super) enum Stmt {
    /// Text of the source, from one byte to another.
    Text(u32, u32),
    /// The text of a value.
    Print(Expr),
    /// A new variable: it takes the next slot.
    Declare(Expr),
    /// Another value for the variable in a slot.
    Assign(u16, Expr),
    /// The first arm whose test is true.
    If(Box<Branches>),
    /// As `If`, and the test's value is the dot of the arm.
    With(Box<Branches>),
    /// Once for each item.
    Range(Box<Loop>),
    /// Ends the innermost loop.
    Break,
    /// Ends the innermost loop's iteration.
    Continue,
}

/// `if … else if … else …`.
#[derive(Debug)]
pub(super) struct Branches {
    pub(super) arms: Box<[Arm]>,
    pub(super) otherwise: Block,
}

/// A test and what follows from it.
#[derive(Debug)]
pub(super) struct Arm {
    pub(super) test: Expr,
    /// Where the test's value goes besides.
    pub(super) store: Store,
    pub(super) body: Block,
}

/// Which variable takes the value of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Store {
    /// None.
    Nowhere,
    /// A new one, in the next slot.
    Declare,
    /// The one in this slot.
    Assign(u16),
}

/// A `range`.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) over: Expr,
    pub(super) vars: LoopVars,
    pub(super) body: Block,
    pub(super) otherwise: Block,
}

/// Which variables take what a loop gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LoopVars {
    /// None.
    Nowhere,
    /// New ones in the next slots: the item, or the key and the item.
    Declare { with_key: bool },
    /// Those in these slots.
    Assign { key: Option<u16>, item: u16 },
}

/// An expression and where it starts in the source.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) at: u32,
    pub(super) kind: Kind,
}

/// The kinds of expressions.
#[derive(Debug)]
pub(super) enum Kind {
    /// A constant.
    Literal(Arc<Node>),
    /// `.`
    Dot,
    /// `$`
    Root,
    /// The variable in a slot.
    Var(u16),
    /// `.a.b`
    Field(Box<[Key]>),
    /// `$.a.b`, `$x.a.b`, `(…).a.b`
    Within(Box<(Expr, Box<[Key]>)>),
    /// A note and its arguments.
    Call(Box<CallExpr>),
    /// A note of a user.
    Function(Arc<Function>),
    /// Stages; the value of one is the last argument of the next, and all but the first are calls.
    Pipe(Box<[Expr]>),
}

/// A note and its arguments, without the one that a pipeline adds.
#[derive(Debug)]
pub(super) struct CallExpr {
    pub(super) note: &'static Note,
    pub(super) args: Box<[Expr]>,
}

impl Expr {
    /// The constant, if this is one.
    pub(super) fn literal(&self) -> Option<&Node> {
        match &self.kind {
            Kind::Literal(node) => Some(node),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_takes_tens_of_bytes() {
        assert!(size_of::<Expr>() <= 32);
        assert!(size_of::<Stmt>() <= 40);
    }
}
