//! The differences between dialects of Go templates: their functions and statements.
//!
//! Lexer, parser, tree and walker are shared. A dialect without statements or expressions of its own uses
//! [`Infallible`](std::convert::Infallible), so that no code is generated for them.

use std::fmt::Debug;

use super::TemplateError;
use super::ast::{Expr, Stmt};
use super::functions::Functions;
use super::parse::{NotableCalls, Operand, Parser, Token};

/// A dialect, as seen by the parser and the tree.
pub(super) trait Dialect: Sized + 'static {
    /// A function that a template calls, resolved during parsing.
    type Function: Debug;
    /// An expression named by the user and called without arguments.
    type Named: Debug;
    /// A statement that only this dialect has.
    type Stmt: Debug;
    /// The input and output of the parser that is specific to the dialect.
    type Context<'s>;

    /// Resolves a call of a function by name. `piped` is true if a pipeline adds an argument.
    ///
    /// # Errors
    /// An unknown function.
    fn call(
        parser: &mut Parser<'_, Self>,
        name: Token,
        operands: Vec<Operand<Self>>,
        piped: bool,
    ) -> Result<Expr<Self>, TemplateError>;

    /// Handles an expression that is given arguments, from its first token to a byte.
    ///
    /// # Errors
    /// The expression takes no arguments.
    fn apply(
        parser: &mut Parser<'_, Self>,
        place: (Token, usize),
        expr: Expr<Self>,
        operands: Vec<Operand<Self>>,
        piped: bool,
    ) -> Result<Expr<Self>, TemplateError>;

    /// Handles a word that is not a constant, as an operand.
    ///
    /// # Errors
    /// The word is not valid in this position.
    fn word(parser: &mut Parser<'_, Self>, token: Token) -> Result<Operand<Self>, TemplateError>;

    /// Parses the rest of a `template`, after its keyword.
    fn invocation(parser: &mut Parser<'_, Self>) -> Option<Stmt<Self>>;

    /// Parses the rest of a `define` or `block`, after its keyword and up to its `end`.
    fn definition(
        parser: &mut Parser<'_, Self>,
        word: &str,
        opened: (usize, usize),
    ) -> Option<Stmt<Self>>;
}

/// The dialect of Katalogs: notes, and no named templates.
#[derive(Debug)]
pub(super) enum Katalog {}

/// The parser's input and output for a template of a Katalog.
pub(super) struct KatalogContext<'s> {
    /// The notes of the user.
    pub(super) functions: &'s Functions,
    /// Warnings: valid source that is probably a mistake.
    pub(super) warnings: Vec<TemplateError>,
    /// Properties of the whole template that follow from the notes it calls.
    pub(super) marks: NotableCalls,
}
