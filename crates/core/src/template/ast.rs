//! What a template is compiled to: small immutable trees without text of their own.

use std::sync::Arc;

use super::dialect::{Dialect, Katalog};
use crate::value::{Key, Node};

/// Statements in order.
pub(super) type Block<D = Katalog> = Box<[Stmt<D>]>;

/// One piece of a template.
#[derive(Debug)]
pub(super) enum Stmt<D: Dialect = Katalog> {
    /// Text of the source, from one byte to another.
    Text(u32, u32),
    /// The text of a value.
    Print(Expr<D>),
    /// A new variable: it takes the next slot.
    Declare(Expr<D>),
    /// Another value for the variable in a slot.
    Assign(u16, Expr<D>),
    /// The first arm whose test is true.
    If(Box<Branches<D>>),
    /// As `If`, and the test's value is the dot of the arm.
    With(Box<Branches<D>>),
    /// Once for each item.
    Range(Box<Loop<D>>),
    /// Ends the innermost loop.
    Break,
    /// Ends the innermost loop's iteration.
    Continue,
    /// A statement that only this dialect has.
    Own(D::Stmt),
}

/// `if … else if … else …`.
#[derive(Debug)]
pub(super) struct Branches<D: Dialect = Katalog> {
    pub(super) arms: Box<[Arm<D>]>,
    pub(super) otherwise: Block<D>,
}

/// A test and what follows from it.
#[derive(Debug)]
pub(super) struct Arm<D: Dialect = Katalog> {
    pub(super) test: Expr<D>,
    /// Where the test's value goes besides.
    pub(super) store: Store,
    pub(super) body: Block<D>,
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
pub(super) struct Loop<D: Dialect = Katalog> {
    pub(super) over: Expr<D>,
    pub(super) vars: LoopVars,
    pub(super) body: Block<D>,
    pub(super) otherwise: Block<D>,
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
pub(super) struct Expr<D: Dialect = Katalog> {
    pub(super) at: u32,
    pub(super) kind: Kind<D>,
}

/// The kinds of expressions.
#[derive(Debug)]
pub(super) enum Kind<D: Dialect = Katalog> {
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
    Within(Box<(Expr<D>, Box<[Key]>)>),
    /// A function and its arguments.
    Call(Box<CallExpr<D>>),
    /// A named expression of a user.
    Function(D::Named),
    /// Stages; the value of one is the last argument of the next, and all but the first are calls.
    Pipe(Box<[Expr<D>]>),
}

/// A function and its arguments, without the one that a pipeline adds.
#[derive(Debug)]
pub(super) struct CallExpr<D: Dialect = Katalog> {
    pub(super) note: D::Function,
    pub(super) args: Box<[Expr<D>]>,
}

impl<D: Dialect> Expr<D> {
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
        assert!(size_of::<Expr<Katalog>>() <= 32);
        assert!(size_of::<Stmt<Katalog>>() <= 40);
    }
}
