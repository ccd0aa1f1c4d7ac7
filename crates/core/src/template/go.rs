//! Go's text/template for other value systems: the syntax and the control flow of this module's templates, with the
//! functions and the values of a [`Machine`].
//!
//! ```text
//!  text ── parse(find) ──► Unit: definitions ── run(definition, machine, dot) ──► text
//!                                                        │ ▲
//!                               values, functions, fields ▼ │ `template`, `include`
//!                                                     Machine
//! ```
//!
//! A Katalog's templates know nothing of this: `define`, `template`, `block` and methods exist in this dialect alone,
//! and a machine has its own functions. What both share is the lexer, the parser, the tree, the walker and the
//! [`Budget`].

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::ast::{Block, Expr};
use super::eval::{Eval, GoHost};
use super::{Budget, EvalError, TemplateError, parse};
use crate::value::{Key, Node};

pub use super::error::Failure;

/// The dialect with functions of type `F`.
pub(super) struct Go<F>(PhantomData<F>);

impl<F> fmt::Debug for Go<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Go")
    }
}

/// What a call calls.
#[derive(Debug)]
pub(super) enum Callee<F: fmt::Debug + Clone + 'static> {
    /// A function of the machine.
    Function(F),
    /// `and` and `or`: they stop at the first argument that is empty, or that is not.
    Until { empty: bool },
    /// The last field of a chain, which is given arguments.
    Method(Box<Expr<Go<F>>>),
}

/// `template`.
#[derive(Debug)]
pub(super) struct Invocation<F: fmt::Debug + Clone + 'static> {
    pub(super) at: u32,
    pub(super) name: Box<str>,
    pub(super) dot: Option<Expr<Go<F>>>,
}

/// What the parser asks, and what it finds.
pub(super) struct GoContext<'s, F: fmt::Debug + Clone + 'static> {
    pub(super) find: &'s dyn Fn(&str) -> Option<F>,
    pub(super) definitions: Vec<Definition<F>>,
    /// Whether the parser is inside of a definition.
    pub(super) defining: bool,
}

/// A named template.
#[derive(Debug)]
pub(super) struct Definition<F: fmt::Debug + Clone + 'static> {
    pub(super) name: Box<str>,
    pub(super) at: u32,
    pub(super) body: Block<Go<F>>,
}

/// A source and the named templates in it. A clone is a reference.
#[derive(Debug)]
pub struct Unit<F: fmt::Debug + Clone + 'static>(Arc<Inner<F>>);

#[derive(Debug)]
struct Inner<F: fmt::Debug + Clone + 'static> {
    source: Box<str>,
    /// The first is the source's own, the text outside of all definitions.
    definitions: Vec<Definition<F>>,
}

impl<F: fmt::Debug + Clone + 'static> Clone for Unit<F> {
    fn clone(&self) -> Self {
        Unit(Arc::clone(&self.0))
    }
}

impl<F: fmt::Debug + Clone + 'static> Unit<F> {
    /// Parses a source whose own template has a name; `find` knows the functions by theirs.
    ///
    /// # Errors
    /// What is wrong with the syntax, functions that `find` does not know, variables that are not declared, two
    /// definitions of one name; in the order of the source.
    pub fn parse(
        name: &str,
        source: &str,
        find: &dyn Fn(&str) -> Option<F>,
    ) -> Result<Unit<F>, Vec<TemplateError>> {
        let context = GoContext {
            find,
            definitions: Vec::new(),
            defining: false,
        };
        let (body, context) = parse::parse_in::<Go<F>>(source, context)?;
        let own = Definition {
            name: name.into(),
            at: 0,
            body,
        };
        let unit = Inner {
            source: source.into(),
            definitions: [own].into_iter().chain(context.definitions).collect(),
        };
        for (position, definition) in unit.definitions.iter().enumerate() {
            let twice = |other: &Definition<F>| {
                other.name == definition.name && !unit.is_blank(other) && !unit.is_blank(definition)
            };
            if unit.definitions[..position].iter().any(twice) {
                let at = definition.at as usize;
                let message = format!("multiple definition of template {:?}", definition.name);
                return Err(vec![parse::syntax_error(at, &message)]);
            }
        }
        Ok(Unit(Arc::new(unit)))
    }

    /// The text that was parsed.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The names of the definitions, by position; the first is the source's own.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0
            .definitions
            .iter()
            .map(|definition| &*definition.name)
    }

    /// Whether a definition has nothing but white space, and so replaces no other of its name.
    pub fn is_blank(&self, definition: usize) -> bool {
        let definition = self.0.definitions.get(definition);
        definition.is_none_or(|definition| self.0.is_blank(definition))
    }

    /// The line and the column of a byte of the source, both from 1; the column counts characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.source().get(..offset).unwrap_or(self.source());
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        (line, before[start..].chars().count() + 1)
    }
}

impl<F: fmt::Debug + Clone + 'static> Inner<F> {
    fn is_blank(&self, definition: &Definition<F>) -> bool {
        definition.body.iter().all(|stmt| match stmt {
            super::ast::Stmt::Text(from, to) => {
                let text = self.source.get(*from as usize..*to as usize);
                text.is_none_or(|text| text.trim().is_empty())
            }
            _ => false,
        })
    }
}

/// The values and the functions that a template of this dialect runs on.
///
/// A method that fails stops the template; where that was is added by the caller.
pub trait Machine {
    /// A function, found when a source was parsed.
    type Function: fmt::Debug + Clone + 'static;
    /// A value. Clones are cheap.
    type Value: Clone;

    /// What is left to spend.
    fn budget(&mut self) -> &mut Budget;
    /// A constant.
    fn literal(&mut self, node: &Node) -> Result<Self::Value, Failure>;
    /// The value that stands for nothing, such as the dot of a `template` without one.
    fn nothing(&self) -> Self::Value;
    /// Whether a condition takes the value for true.
    fn is_true(&self, value: &Self::Value) -> bool;
    /// The value behind keys.
    fn fields(&mut self, base: Self::Value, keys: &[Key]) -> Result<Self::Value, Failure>;
    /// The result of a method.
    fn method(
        &mut self,
        base: Self::Value,
        name: &Key,
        args: Vec<Self::Value>,
    ) -> Result<Self::Value, Failure>;
    /// The result of a function.
    fn call(
        &mut self,
        function: &Self::Function,
        args: Vec<Self::Value>,
    ) -> Result<Self::Value, Failure>;
    /// Appends the text of a value.
    fn print(&mut self, out: &mut String, value: &Self::Value) -> Result<(), Failure>;
    /// Appends text of the source.
    fn append(&mut self, out: &mut String, text: &str) -> Result<(), Failure>;
    /// Appends the text of a named template.
    fn invoke(&mut self, out: &mut String, name: &str, dot: Self::Value) -> Result<(), Failure>;
    /// What a `range` goes over: keys and items, in order. `with_key` says that the loop has a variable for keys.
    fn items(&mut self, over: &Self::Value, with_key: bool) -> Result<Turns<Self::Value>, Failure>;
}

/// The keys and the items of a loop, in order.
pub type Turns<V> = Vec<(V, V)>;

/// Reads a version as Masterminds/semver does: with or without a `v`, minor and patch optional.
pub fn parse_version(text: &str) -> Option<semver::Version> {
    super::notes::semver::parse(text)
}

/// Whether a version satisfies a constraint of Masterminds/semver; nothing where the constraint is malformed.
pub fn satisfies(constraint: &str, version: &semver::Version) -> Option<bool> {
    super::notes::semver::check(constraint, version)
}

/// Writes a moment, in UTC, in a layout of Go's package time.
pub fn format_time(
    time: jiff::Timestamp,
    layout: &str,
    budget: &mut Budget,
) -> Result<String, Failure> {
    let mut out = String::new();
    let (utc, time) = (
        jiff::tz::Offset::UTC,
        jiff::tz::Offset::UTC.to_datetime(time),
    );
    super::notes::time::layout::format(&mut out, time, utc, layout, budget)?;
    Ok(out)
}

/// The text of Go's `fmt.Sprintf`. Each argument says whether its integers are of Go's type `int`; those of others, and
/// within lists and maps, are `int64`.
pub fn sprintf(
    format: &str,
    args: &[(&Node, bool)],
    budget: &mut Budget,
) -> Result<String, Failure> {
    super::notes::format::go_text(Some(format), args, false, budget)
}

/// The text of Go's `fmt.Sprint`, or of `fmt.Sprintln` with a `line`.
pub fn sprint(args: &[(&Node, bool)], line: bool, budget: &mut Budget) -> Result<String, Failure> {
    super::notes::format::go_text(None, args, line, budget)
}

/// A duration in nanoseconds as Go's package time prints it: `1h2m3s`.
pub fn duration_text(nanos: i128) -> String {
    super::notes::time::go_text(nanos)
}

/// Runs a definition of a unit and appends its text. `$` and the first `.` are `dot`.
///
/// # Errors
/// What the machine refuses, or a spent budget, with the byte of the source where it happened.
pub fn run<M: Machine>(
    unit: &Unit<M::Function>,
    definition: usize,
    machine: &mut M,
    dot: M::Value,
    out: &mut String,
) -> Result<(), EvalError> {
    let Some(definition) = unit.0.definitions.get(definition) else {
        return Ok(());
    };
    let host = GoHost::new(machine, dot);
    let eval = Eval::new(unit.source(), host).onto(std::mem::take(out));
    let (text, result) = eval.run(&definition.body);
    *out = text;
    result
}
