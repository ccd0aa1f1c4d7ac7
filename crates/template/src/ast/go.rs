//! The parts of the tree that only Go's own syntax has: named templates, methods, and functions that the caller resolves.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

use super::{Block, Dialect, Expr};

/// The dialect with functions of type `F`.
pub(crate) struct Go<F>(PhantomData<F>);

impl<F> fmt::Debug for Go<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Go")
    }
}

/// The target of a call.
#[derive(Debug)]
pub(crate) enum Callee<F: fmt::Debug + Clone + 'static> {
    /// A function of the machine.
    Function(F),
    /// `and` and `or`. They stop at the first empty or the first non-empty argument.
    Until { empty: bool },
    /// The last field of a chain, called with arguments.
    Method(Box<Expr<Go<F>>>),
}

/// `template`.
#[derive(Debug)]
pub(crate) struct Invocation<F: fmt::Debug + Clone + 'static> {
    pub(crate) at: u32,
    pub(crate) name: Box<str>,
    pub(crate) dot: Option<Expr<Go<F>>>,
}

/// A named template.
#[derive(Debug)]
pub(crate) struct Definition<F: fmt::Debug + Clone + 'static> {
    pub(crate) name: Box<str>,
    pub(crate) at: u32,
    pub(crate) body: Block<Go<F>>,
}

impl<F: fmt::Debug + Clone + 'static> Dialect for Go<F> {
    type Function = Callee<F>;
    type Named = Infallible;
    type Stmt = Invocation<F>;
}
