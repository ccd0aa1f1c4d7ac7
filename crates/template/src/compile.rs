//! Makes templates from their sources.

use super::ast::Block;
use super::functions::{self, Functions};
use super::template::Inner;
use super::{Template, TemplateError, parse, reads};
use orkestra_object::value::intern::Interner;

/// The live templates. Those of one source that call the same functions of a user are one.
static SHARED: Interner<Inner> = Interner::new();

impl Template {
    /// Parses and checks a text. Text without `{{` is also a template; its result is the text itself.
    ///
    /// # Errors
    /// All errors that can be found without data, in the order of the source, at most 32: syntax, unknown notes, numbers of
    /// arguments, constants of a wrong type, undeclared variables, nesting beyond 100 levels.
    ///
    /// Source: Go's text/template, without `define`, `template` and `block`.
    pub fn parse(source: &str) -> Result<Template, Vec<TemplateError>> {
        if let Some(known) = SHARED.find(source, |known| {
            *known.source == *source && known.functions.is_none()
        }) {
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
    pub(crate) fn empty() -> Template {
        Template(SHARED.share(Inner {
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
        Ok(Template(SHARED.share(Inner {
            source: source.into(),
            reads: reads::reads(&parsed.body),
            body: parsed.body,
            warnings: parsed.warnings.into(),
            functions: functions::digest(&parsed.marks.calls),
            random: parsed.marks.random,
            clock: parsed.marks.clock,
        })))
    }
}
