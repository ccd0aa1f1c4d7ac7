//! The template: what is parsed once and evaluated often.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::ast::{Block, Expr, Stmt};
use super::eval::{Eval, Notes};
use super::functions::{self, Functions};
use super::{Budget, Data, EvalError, TemplateError, intern, parse, reads};
use crate::value::{Node, Path};

/// A checked template. A clone is a reference, and so is another template of the same source that calls the same
/// notes.
#[derive(Clone)]
pub struct Template(Arc<Inner>);

/// What templates of one source and of the same notes share.
pub(super) struct Inner {
    pub(super) source: Box<str>,
    body: Block,
    warnings: Box<[TemplateError]>,
    reads: Box<[Path]>,
    /// What tells the notes of a user that it calls from others; nothing where it calls none.
    pub(super) functions: Option<Box<str>>,
    random: Option<usize>,
    clock: bool,
}

impl Template {
    /// Parses and checks a text. Text without `{{` is a template as well, and gives itself.
    ///
    /// # Errors
    /// Everything that is wrong and can be told without data, in the order of the source, at most 32:
    /// syntax, unknown notes, numbers of arguments, constants of a wrong type, undeclared variables,
    /// nesting beyond 100 levels.
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
    /// As [`Template::parse`], and a note of the user that is given arguments.
    pub fn parse_with(source: &str, functions: &Functions) -> Result<Template, Vec<TemplateError>> {
        if functions.is_empty() || !source.contains("{{") {
            return Template::parse(source);
        }
        Template::compile(source, functions)
    }

    /// The template that gives nothing.
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

    /// What is odd in the source and works all the same, such as a path without its dot.
    pub fn warnings(&self) -> &[TemplateError] {
        &self.0.warnings
    }

    /// The text that was parsed.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The text, if no action is in it. It is then the result of every evaluation, byte for byte.
    pub fn literal(&self) -> Option<&str> {
        let plain = !self.0.source.contains("{{");
        plain.then_some(&*self.0.source)
    }

    /// Whether the text is exactly one expression, which keeps its native type: `{{ .spec.replicas }}`.
    ///
    /// White space outside the braces makes it text, unless trim markers take it away.
    pub fn is_single_expression(&self) -> bool {
        self.single().is_some()
    }

    /// Every path of the root data that an evaluation may read, in order and each once. The empty path
    /// stands for all of it. What lies below a path in the list may be read as well.
    ///
    /// Too much may be in the list (arms of an `if` that are never taken), but never too little: an
    /// evaluation that succeeds on some data gives the same on [`project`](crate::value::project)ed data.
    pub fn reads(&self) -> &[Path] {
        &self.0.reads
    }

    /// Whether an evaluation draws random bytes, so that each gives something else: only good for values that
    /// are kept. Notes of a user that it calls count.
    pub(crate) fn is_random(&self) -> bool {
        self.0.random.is_some()
    }

    /// Where the first call in the source is that makes it random, in bytes from 0.
    pub(crate) fn random_offset(&self) -> Option<usize> {
        self.0.random
    }

    /// Whether an evaluation asks for the present time, so that another moment may give something else. Notes of
    /// a user that it calls count.
    pub(crate) fn reads_clock(&self) -> bool {
        self.0.clock
    }

    /// What tells the notes of a user that it calls, and those that these call, from others of the same names: a
    /// hash in hexadecimal digits. Nothing where it calls none.
    pub(crate) fn notes_hash(&self) -> Option<&str> {
        self.0.functions.as_deref()
    }

    /// The statements.
    pub(super) fn body(&self) -> &Block {
        &self.0.body
    }

    /// Evaluates the template: a single expression to a node of its native type, borrowed from the data
    /// where it can be, everything else to text, which is not trimmed.
    ///
    /// A missing path is null, and empty in text.
    ///
    /// # Errors
    /// [`EvalErrorKind`](super::EvalErrorKind) says which: the budget is spent, a note refuses a value, a
    /// value is of the wrong type.
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

    /// Evaluates the template to text, a single expression as well. Lists and maps have Go's form there,
    /// `[a b]` and `map[k:v]`.
    ///
    /// # Errors
    /// As [`Template::eval`].
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

    /// Runs an evaluation; the budget's depth is the same afterwards, also after an error.
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
