//! The template: parsed once and evaluated often.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::TemplateError;
use super::ast::{Block, Expr, Stmt};
use orkestra_object::value::Path;

/// A checked template. A clone is a reference, and so is another template with the same source and the same notes.
///
/// ```
/// use orkestra_template::{Data, EvalBudget, Template};
/// use orkestra_object::value::Node;
/// use serde_json::json;
///
/// let pond = Node::from(&json!({ "spec": { "depth": 3 } }));
/// let (data, mut budget) = (Data::of(&pond), EvalBudget::default());
///
/// // A single expression keeps its type; everything else becomes text.
/// let depth = Template::parse("{{ .spec.depth }}").map_err(|errors| format!("{errors:?}"))?;
/// assert_eq!(depth.eval(&data, &mut budget)?.to_json(), json!(3));
/// let text = Template::parse("depth: {{ .spec.depth }} m").map_err(|errors| format!("{errors:?}"))?;
/// assert_eq!(text.render_text(&data, &mut budget)?, "depth: 3 m");
///
/// // Errors have a position in the source.
/// let errors = Template::parse("{{ upper }").unwrap_err();
/// assert_eq!(errors.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Template(pub(crate) Arc<Inner>);

/// The part that templates with the same source and notes share.
pub(crate) struct Inner {
    pub(crate) source: Box<str>,
    pub(crate) body: Block,
    pub(crate) warnings: Box<[TemplateError]>,
    pub(crate) reads: Box<[Path]>,
    /// A digest of the user's notes that it calls; `None` if it calls none.
    pub(crate) functions: Option<Box<str>>,
    pub(crate) random: Option<usize>,
    pub(crate) clock: bool,
}

impl Template {
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
    /// succeeds on some data has the same result on [`project`](orkestra_object::value::project)ed data.
    pub fn reads(&self) -> &[Path] {
        &self.0.reads
    }

    /// True if an evaluation draws random bytes, so that each result differs. Use it only for values that are stored. The
    /// user's notes that it calls count.
    pub fn is_random(&self) -> bool {
        self.0.random.is_some()
    }

    /// Returns the offset of the first call that makes it random, in bytes from 0.
    pub fn random_offset(&self) -> Option<usize> {
        self.0.random
    }

    /// True if an evaluation reads the present time, so that the result may change with time. The user's notes that it calls
    /// count.
    pub fn reads_clock(&self) -> bool {
        self.0.clock
    }

    /// Returns a digest, in hexadecimal digits, that distinguishes the user's notes that it calls, directly or indirectly,
    /// from others of the same names. `None` if it calls none.
    pub fn notes_hash(&self) -> Option<&str> {
        self.0.functions.as_deref()
    }

    /// Returns the statements.
    pub(crate) fn body(&self) -> &Block {
        &self.0.body
    }

    /// Returns the expression, if the text is exactly one.
    pub(crate) fn single(&self) -> Option<&Expr> {
        match &*self.0.body {
            [Stmt::Print(expr)] => Some(expr),
            _ => None,
        }
    }
}

impl PartialEq for Inner {
    fn eq(&self, other: &Inner) -> bool {
        self.source == other.source && self.functions == other.functions
    }
}

impl Eq for Inner {}

/// As the source hashes, by which a template is looked up before it is parsed.
impl Hash for Inner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Template) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Template {}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.0.source).finish()
    }
}
