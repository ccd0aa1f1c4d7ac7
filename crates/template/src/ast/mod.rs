//! The compiled form of a template: small immutable trees that hold no text of their own.

pub(crate) mod go;

use std::fmt::Debug;
use std::sync::Arc;

use orkestra_object::value::{Key, Node};

/// A dialect of Go templates, as the tree sees it: its functions and statements.
///
/// Lexer, parser, tree and walker are shared. A dialect without statements or expressions of its own uses
/// [`Infallible`](std::convert::Infallible), so that no code is generated for them.
pub(crate) trait Dialect: Sized + 'static {
    /// A function that a template calls, resolved during parsing.
    type Function: Debug;
    /// An expression named by the user and called without arguments.
    type Named: Debug;
    /// A statement that only this dialect has.
    type Stmt: Debug;
}

/// The dialect of Katalogs: notes, and no named templates.
#[derive(Debug)]
pub(crate) enum Katalog {}

/// Statements in order.
pub(crate) type Block<D = Katalog> = Box<[Stmt<D>]>;

/// One piece of a template.
#[derive(Debug)]
pub(crate) enum Stmt<D: Dialect = Katalog> {
    /// A byte range of the source text, as start and end.
    Text(u32, u32),
    /// The text of a value.
    Print(Expr<D>),
    /// Declares a variable, in the next slot.
    Declare(Expr<D>),
    /// Assigns a new value to the variable in a slot.
    Assign(u16, Expr<D>),
    /// The first arm whose test is true.
    If(Box<Branches<D>>),
    /// Like `If`, but the value of the test becomes the dot of the arm.
    With(Box<Branches<D>>),
    /// Runs the body once per item.
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
pub(crate) struct Branches<D: Dialect = Katalog> {
    pub(crate) arms: Box<[Arm<D>]>,
    pub(crate) otherwise: Block<D>,
}

/// A test and its body.
#[derive(Debug)]
pub(crate) struct Arm<D: Dialect = Katalog> {
    pub(crate) test: Expr<D>,
    /// The variable that also receives the value of the test.
    pub(crate) store: Store,
    pub(crate) body: Block<D>,
}

/// The variable that receives the value of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Store {
    /// None.
    Nowhere,
    /// A new variable, in the next slot.
    Declare,
    /// The variable in this slot.
    Assign(u16),
}

/// A `range`.
#[derive(Debug)]
pub(crate) struct Loop<D: Dialect = Katalog> {
    pub(crate) over: Expr<D>,
    pub(crate) vars: LoopVars,
    pub(crate) body: Block<D>,
    pub(crate) otherwise: Block<D>,
}

/// The variables that a loop sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LoopVars {
    /// None.
    Nowhere,
    /// New variables in the next slots: the item, or the key and the item.
    Declare { with_key: bool },
    /// The variables in these slots.
    Assign { key: Option<u16>, item: u16 },
}

/// An expression and its offset in the source.
#[derive(Debug)]
pub(crate) struct Expr<D: Dialect = Katalog> {
    pub(crate) at: u32,
    pub(crate) kind: ExprKind<D>,
}

/// The kinds of expressions.
#[derive(Debug)]
pub(crate) enum ExprKind<D: Dialect = Katalog> {
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
    /// A named expression of the user.
    Function(D::Named),
    /// The stages of a pipeline. Each value is the last argument of the next stage; all stages but the first are calls.
    Pipe(Box<[Expr<D>]>),
}

/// A function and its arguments, without the argument that a pipeline adds.
#[derive(Debug)]
pub(crate) struct CallExpr<D: Dialect = Katalog> {
    pub(crate) note: D::Function,
    pub(crate) args: Box<[Expr<D>]>,
}

impl<D: Dialect> Expr<D> {
    /// Returns the constant, if the expression is one.
    pub(crate) fn literal(&self) -> Option<&Node> {
        match &self.kind {
            ExprKind::Literal(node) => Some(node),
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
