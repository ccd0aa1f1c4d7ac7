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
//! Templates of Katalogs do not have these features: `define`, `template`, `block` and methods exist only in this dialect,
//! and a machine has its own functions. The dialects share the lexer, the parser, the tree, the walker and the [`EvalBudget`].

use std::fmt;
use std::sync::Arc;

use super::ast::go::{Definition, Go};
use super::eval::{Eval, GoHost};
use super::parse::{self, GoContext};
use super::{EvalBudget, EvalError, TemplateError};
use orkestra_object::value::Node;

pub use super::error::EvalFailure;
pub use super::eval::{LoopItems, Machine};

/// A source and its named templates. A clone is a reference.
#[derive(Debug)]
pub struct Unit<F: fmt::Debug + Clone + 'static>(Arc<Inner<F>>);

#[derive(Debug)]
struct Inner<F: fmt::Debug + Clone + 'static> {
    source: Box<str>,
    /// The first is the source's own: the text outside of all definitions.
    definitions: Vec<Definition<F>>,
}

impl<F: fmt::Debug + Clone + 'static> Clone for Unit<F> {
    fn clone(&self) -> Self {
        Unit(Arc::clone(&self.0))
    }
}

impl<F: fmt::Debug + Clone + 'static> Unit<F> {
    /// Parses a source. `name` is the name of its own template; `find` resolves functions by name.
    ///
    /// # Errors
    /// Syntax errors, functions that `find` does not resolve, undeclared variables and duplicate definitions, in the order
    /// of the source.
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

    /// Returns the source text.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Iterates over the names of the definitions, by position; the first is the source's own.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0
            .definitions
            .iter()
            .map(|definition| &*definition.name)
    }

    /// True if a definition contains only white space, and so does not replace another of its name.
    pub fn is_blank(&self, definition: usize) -> bool {
        let definition = self.0.definitions.get(definition);
        definition.is_none_or(|definition| self.0.is_blank(definition))
    }

    /// Returns the line and the column of a byte of the source, both from 1; the column counts characters.
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

/// Parses a version as Masterminds/semver does: with or without a `v`, minor and patch optional.
pub fn parse_version(text: &str) -> Option<semver::Version> {
    super::notes::semver::parse(text)
}

/// Returns whether a version satisfies a constraint of Masterminds/semver; `None` if the constraint is malformed.
pub fn satisfies(constraint: &str, version: &semver::Version) -> Option<bool> {
    super::notes::semver::check(constraint, version)
}

/// Formats a time, in UTC, in a layout of Go's package time.
pub fn format_time(
    time: jiff::Timestamp,
    layout: &str,
    budget: &mut EvalBudget,
) -> Result<String, EvalFailure> {
    let mut out = String::new();
    let (utc, time) = (
        jiff::tz::Offset::UTC,
        jiff::tz::Offset::UTC.to_datetime(time),
    );
    super::notes::time::layout::format(&mut out, time, utc, layout, budget)?;
    Ok(out)
}

/// Returns the text of Go's `fmt.Sprintf`. The flag of each argument is true if its integers are of Go's type `int`; other
/// integers, and those within lists and maps, are `int64`.
pub fn sprintf(
    format: &str,
    args: &[(&Node, bool)],
    budget: &mut EvalBudget,
) -> Result<String, EvalFailure> {
    super::notes::format::go_text(Some(format), args, false, budget)
}

/// Returns the text of Go's `fmt.Sprint`, or of `fmt.Sprintln` if `line` is true.
pub fn sprint(
    args: &[(&Node, bool)],
    line: bool,
    budget: &mut EvalBudget,
) -> Result<String, EvalFailure> {
    super::notes::format::go_text(None, args, line, budget)
}

/// Formats a duration in nanoseconds as Go's package time does: `1h2m3s`.
pub fn duration_text(nanos: i128) -> String {
    super::notes::time::go_text(nanos)
}

/// Runs a definition of a unit and appends its text. `$` and the first `.` are `dot`.
///
/// # Errors
/// A failure of the machine or an exhausted budget, with its byte offset in the source.
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
