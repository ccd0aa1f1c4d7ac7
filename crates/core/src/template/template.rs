//! The template: parsed once and evaluated often.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::ast::{Block, Expr, Stmt};
use super::eval::{Eval, Notes};
use super::functions::{self, Functions};
use super::{Budget, Data, EvalError, TemplateError, intern, parse, reads};
use crate::value::{Node, Path};

/// A checked template. A clone is a reference, and so is another template with the same source and the same notes.
#[derive(Clone)]
pub struct Template(Arc<Inner>);

/// The part that templates with the same source and notes share.
pub(super) struct Inner {
    pub(super) source: Box<str>,
    body: Block,
    warnings: Box<[TemplateError]>,
    reads: Box<[Path]>,
    /// A digest of the user's notes that it calls; `None` if it calls none.
    pub(super) functions: Option<Box<str>>,
    random: Option<usize>,
    clock: bool,
}

impl Template {
    /// Parses and checks a text. Text without `{{` is also a template; its result is the text itself.
    ///
    /// # Errors
    /// All errors that can be found without data, in the order of the source, at most 32: syntax, unknown notes, numbers of
    /// arguments, constants of a wrong type, undeclared variables, nesting beyond 100 levels.
    ///
    /// Source: Go's text/template, without `define`, `template` and `block`.
    pub fn parse(source: &str) -> Result<Template, Vec<TemplateError>> {
        if let Some(known) = intern::find(source) {
            return Ok(Template(known));
        }
        Template::compile(source, &Functions::default())
    }

    /// Parses and checks a text that may call notes of a user by their bare names. They hide built-in notes.
    ///
    /// # Errors
    /// The errors of [`Template::parse`], and a user's note that is called with arguments.
    pub fn parse_with(source: &str, functions: &Functions) -> Result<Template, Vec<TemplateError>> {
        if functions.is_empty() || !source.contains("{{") {
            return Template::parse(source);
        }
        Template::compile(source, functions)
    }

    /// Returns the template with an empty result.
    pub(super) fn empty() -> Template {
        Template(intern::share(Inner {
            source: Box::default(),
            body: Block::default(),
            warnings: Box::default(),
            reads: Box::default(),
            functions: None,
            random: None,
            clock: false,
        }))
    }

    fn compile(source: &str, functions: &Functions) -> Result<Template, Vec<TemplateError>> {
        let parsed = parse::parse(source, functions)?;
        Ok(Template(intern::share(Inner {
            source: source.into(),
            reads: reads::reads(&parsed.body),
            body: parsed.body,
            warnings: parsed.warnings.into(),
            functions: functions::digest(&parsed.marks.calls),
            random: parsed.marks.random,
            clock: parsed.marks.clock,
        })))
    }

    /// Returns warnings: source that is valid but probably a mistake, such as a path without its dot.
    pub fn warnings(&self) -> &[TemplateError] {
        &self.0.warnings
    }

    /// Returns the source text.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Returns the text, if it contains no action. It is then the result of every evaluation, byte for byte.
    pub fn literal(&self) -> Option<&str> {
        let plain = !self.0.source.contains("{{");
        plain.then_some(&*self.0.source)
    }

    /// True if the text is exactly one expression, which keeps its native type: `{{ .spec.replicas }}`.
    ///
    /// White space outside the braces makes it text, unless trim markers remove it.
    pub fn is_single_expression(&self) -> bool {
        self.single().is_some()
    }

    /// Returns every path of the root data that an evaluation may read, sorted and without duplicates. The empty path stands
    /// for all of it. Everything below a listed path may be read as well.
    ///
    /// The list may contain too much (arms of an `if` that are never taken) but never too little: an evaluation that
    /// succeeds on some data has the same result on [`project`](crate::value::project)ed data.
    pub fn reads(&self) -> &[Path] {
        &self.0.reads
    }

    /// True if an evaluation draws random bytes, so that each result differs. Use it only for values that are stored. The
    /// user's notes that it calls count.
    pub(crate) fn is_random(&self) -> bool {
        self.0.random.is_some()
    }

    /// Returns the offset of the first call that makes it random, in bytes from 0.
    pub(crate) fn random_offset(&self) -> Option<usize> {
        self.0.random
    }

    /// True if an evaluation reads the present time, so that the result may change with time. The user's notes that it calls
    /// count.
    pub(crate) fn reads_clock(&self) -> bool {
        self.0.clock
    }

    /// Returns a digest, in hexadecimal digits, that distinguishes the user's notes that it calls, directly or indirectly,
    /// from others of the same names. `None` if it calls none.
    pub(crate) fn notes_hash(&self) -> Option<&str> {
        self.0.functions.as_deref()
    }

    /// Returns the statements.
    pub(super) fn body(&self) -> &Block {
        &self.0.body
    }

    /// Evaluates the template. A single expression results in a node of its native type, borrowed from the data if possible;
    /// everything else in text, which is not trimmed.
    ///
    /// A missing path is null, and empty in text.
    ///
    /// # Errors
    /// An exhausted budget, a value that a note rejects, or a value of the wrong type; see
    /// [`EvalErrorKind`](super::EvalErrorKind).
    pub fn eval<'d>(
        &self,
        data: &Data<'d>,
        budget: &mut Budget,
    ) -> Result<Cow<'d, Node>, EvalError> {
        if let Some(expr) = self.single() {
            return self.within(data, budget, |eval| eval.single(expr));
        }
        let text = self.within(data, budget, |eval| eval.text(&self.0.body))?;
        Ok(Cow::Owned(Node::from(text)))
    }

    /// Evaluates the template to text, also for a single expression. Lists and maps are printed in Go's form, `[a b]` and
    /// `map[k:v]`.
    ///
    /// # Errors
    /// The errors of [`Template::eval`].
    pub fn render_text(&self, data: &Data<'_>, budget: &mut Budget) -> Result<String, EvalError> {
        match self.single() {
            Some(expr) => self.within(data, budget, |eval| eval.single_text(expr)),
            None => self.within(data, budget, |eval| eval.text(&self.0.body)),
        }
    }

    fn single(&self) -> Option<&Expr> {
        match &*self.0.body {
            [Stmt::Print(expr)] => Some(expr),
            _ => None,
        }
    }

    /// Runs an evaluation and restores the budget's depth, also after an error.
    fn within<'e, 'd, T>(
        &'e self,
        data: &'e Data<'d>,
        budget: &'e mut Budget,
        run: impl for<'r> FnOnce(Eval<'r, Notes<'r, 'd>>) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        let depth = budget.depth;
        let result = run(Eval::new(&self.0.source, Notes::new(data, budget)));
        budget.depth = depth;
        result
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Template) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.source == other.0.source && self.0.functions == other.0.functions
    }
}

impl Eq for Template {}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.0.source).finish()
    }
}
