//! What one dialect of Go's templates has apart from others: which functions it knows, and which statements.
//!
//! Lexer, parser, tree and walker are the same for all. A dialect without a statement or a kind of expression has
//! [`Infallible`](std::convert::Infallible) in its place, so that no code for it exists.

use std::fmt::Debug;

use super::TemplateError;
use super::ast::{Expr, Stmt};
use super::functions::Functions;
use super::parse::{Marks, Operand, Parser, Token};

/// A dialect, as the parser and the tree see it.
pub(super) trait Dialect: Sized + 'static {
    /// A function that a template calls, resolved when it is parsed.
    type Function: Debug;
    /// An expression that a user named, called without arguments.
    type Named: Debug;
    /// A statement that other dialects do not have.
    type Stmt: Debug;
    /// What the parser asks while it reads a source, and what it collects.
    type Context<'s>;

    /// A call of a function by its name; `piped` says that a pipeline adds an argument.
    ///
    /// # Errors
    /// An unknown function.
    fn call(
        parser: &mut Parser<'_, Self>,
        name: Token,
        operands: Vec<Operand<Self>>,
        piped: bool,
    ) -> Result<Expr<Self>, TemplateError>;

    /// An expression that is given arguments, from its first token to a byte.
    ///
    /// # Errors
    /// The expression takes none.
    fn apply(
        parser: &mut Parser<'_, Self>,
        place: (Token, usize),
        expr: Expr<Self>,
        operands: Vec<Operand<Self>>,
        piped: bool,
    ) -> Result<Expr<Self>, TemplateError>;

    /// A word that is no constant, as an operand.
    ///
    /// # Errors
    /// The word cannot stand there.
    fn word(parser: &mut Parser<'_, Self>, token: Token) -> Result<Operand<Self>, TemplateError>;

    /// A `template`, whose word is read.
    fn invocation(parser: &mut Parser<'_, Self>) -> Option<Stmt<Self>>;

    /// A `define` or `block`, whose word is read, up to its `end`.
    fn definition(
        parser: &mut Parser<'_, Self>,
        word: &str,
        opened: (usize, usize),
    ) -> Option<Stmt<Self>>;
}

/// The dialect of Katalogs: notes, one text without named templates.
#[derive(Debug)]
pub(super) enum Katalog {}

/// What a Katalog's template is parsed with, and what is noted of it.
pub(super) struct KatalogContext<'s> {
    /// The notes of the user.
    pub(super) functions: &'s Functions,
    /// What is odd and works all the same.
    pub(super) warnings: Vec<TemplateError>,
    /// What its notes mean for the whole template.
    pub(super) marks: Marks,
}
