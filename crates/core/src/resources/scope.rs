//! A place in a Katalog: what is read there becomes trees, and what is wrong there becomes diagnostics.

mod metadata;
mod problems;
mod values;

use std::sync::Arc;

use crate::{
    api::names,
    diagnostics::{Code, Diagnostic, FieldPath, Severity},
    plan::{Lexicon, Origin},
    template::{TemplateError, kro_expression},
    value::BadPath,
};

pub(crate) use problems::Problems;

/// A rule for names: what is wrong with a text.
type Check = fn(&str) -> Result<(), String>;

/// A place in a Katalog, or in a document that it takes something from.
#[derive(Clone)]
pub(crate) struct At<'a> {
    problems: &'a Problems,
    /// What names stand for here, where that is known already.
    lexicon: Option<&'a Lexicon<'a>>,
    /// The other document; none is the Katalog itself.
    origin: Option<Arc<Origin>>,
    /// Whether several parts of the Katalog lead here: what is wrong is told once.
    shared: bool,
    path: FieldPath,
    /// Whether problems are those of the key that leads here.
    is_key: bool,
    /// Whether this is inside an object of kro, whose own expressions are text to us.
    of_kro: bool,
}

impl<'a> At<'a> {
    /// The document itself.
    pub(crate) fn root(problems: &'a Problems) -> Self {
        Self {
            problems,
            lexicon: None,
            origin: None,
            shared: false,
            path: FieldPath::root(),
            is_key: false,
            of_kro: false,
        }
    }

    /// The Katalog itself.
    pub(crate) fn katalog(&self) -> Self {
        Self {
            origin: None,
            path: FieldPath::root(),
            ..self.clone()
        }
    }

    /// The root of another document.
    pub(crate) fn document(&self, origin: &Arc<Origin>) -> Self {
        Self {
            origin: Some(Arc::clone(origin)),
            shared: true,
            path: FieldPath::root(),
            ..self.clone()
        }
    }

    /// The same place, which is looked at for several parts of the Katalog.
    pub(crate) fn shared(&self) -> Self {
        Self {
            shared: true,
            ..self.clone()
        }
    }

    /// The same place, where names stand for what `lexicon` says.
    pub(crate) fn with<'b>(&self, lexicon: &'b Lexicon<'b>) -> At<'b>
    where
        'a: 'b,
    {
        At {
            lexicon: Some(lexicon),
            ..self.clone()
        }
    }

    /// The same place, where names stand for what they do at `other`.
    pub(crate) fn as_at<'b>(&self, other: &At<'b>) -> At<'b>
    where
        'a: 'b,
    {
        At {
            lexicon: other.lexicon,
            ..self.clone()
        }
    }

    /// The same place, inside an object of the API version `api_version`.
    pub(crate) fn inside(&self, api_version: &str) -> Self {
        Self {
            of_kro: api_version.trim().starts_with("kro.run/"),
            ..self.clone()
        }
    }

    /// What names stand for here.
    pub(crate) fn lexicon(&self) -> Option<&'a Lexicon<'a>> {
        self.lexicon
    }

    /// Whether both places are in one document.
    pub(crate) fn is_beside(&self, other: &At<'_>) -> bool {
        let name = |at: &At<'_>| at.origin.as_ref().map(|origin| origin.name.clone());
        name(self) == name(other)
    }

    /// The document that this is in; none is the Katalog itself.
    pub(crate) fn origin(&self) -> Option<&Arc<Origin>> {
        self.origin.as_ref()
    }

    /// The field `name` of the map here.
    pub(crate) fn field(&self, name: &str) -> Self {
        Self {
            path: self.path.field(name),
            is_key: false,
            ..self.clone()
        }
    }

    /// The item `index` of the list here.
    pub(crate) fn index(&self, index: usize) -> Self {
        Self {
            path: self.path.index(index),
            is_key: false,
            ..self.clone()
        }
    }

    /// The same place, with what is wrong there reported to `problems`.
    pub(crate) fn quietly<'b>(&self, problems: &'b Problems) -> At<'b>
    where
        'a: 'b,
    {
        At {
            problems,
            ..self.clone()
        }
    }

    /// The key of the field `name` of the map here: what is reported there stands at the key, not at its value.
    pub(crate) fn key(&self, name: &str) -> Self {
        Self {
            is_key: true,
            ..self.field(name)
        }
    }

    /// The field `name` beside the one here.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        Self {
            path: self.path.sibling(name),
            is_key: false,
            ..self.clone()
        }
    }

    /// The place.
    pub(crate) fn path(&self) -> &FieldPath {
        &self.path
    }

    /// The place as text; of another document, after its name.
    pub(crate) fn text(&self) -> Box<str> {
        let text: Box<str> = match &self.origin {
            Some(origin) => format!("{}: {}", origin.name, self.path).into(),
            None => self.path.to_string().into(),
        };
        let location = (self.origin.clone(), self.path.clone());
        self.problems.keep(&text, location);
        text
    }

    /// A place that was read before, by its text.
    pub(crate) fn place(&self, text: &str) -> At<'a> {
        self.problems.place(text)
    }

    /// Reports a problem that refuses the Katalog.
    pub(crate) fn error(&self, code: Code, message: impl Into<String>) {
        self.report(Diagnostic::error(code, self.path.clone(), message));
    }

    /// Reports a problem that refuses the Katalog, at a byte of the text here if that is known.
    pub(crate) fn error_in_text(
        &self,
        code: Code,
        offset: Option<usize>,
        message: String,
        hint: Option<String>,
    ) {
        self.in_text((Severity::Error, code), offset, message, hint);
    }

    /// The same of whatever severity.
    pub(crate) fn in_text(
        &self,
        (severity, code): (Severity, Code),
        offset: Option<usize>,
        message: String,
        hint: Option<String>,
    ) {
        let new = match severity {
            Severity::Error => Diagnostic::error,
            Severity::Warning => Diagnostic::warning,
        };
        let mut diagnostic = new(code, self.path.clone(), message);
        (diagnostic.text_offset, diagnostic.hint) = (offset, hint);
        self.report(diagnostic);
    }

    /// Reports a problem that refuses the Katalog, and what to do about it.
    pub(crate) fn error_hint(
        &self,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.report(Diagnostic::error(code, self.path.clone(), message).hint(hint));
    }

    /// Reports that `path`, which stands in the text here as `written`, is no path.
    pub(crate) fn bad_path(&self, written: &str, path: &str, why: &BadPath) {
        let offset = written.find(path).map(|start| start + why.at);
        let message = format!("`{path}` is no path: {}", why.what);
        self.error_in_text(Code::BadPath, offset, message, None);
    }

    /// Reports a name that is not legal as `check` says.
    pub(crate) fn bad_name(&self, name: &str, why: String, check: Check) {
        let mut diagnostic = Diagnostic::error(Code::BadName, self.path.clone(), why);
        diagnostic.hint = match kro_expression(name) {
            Some(found) => found.hint,
            None => names::instead(name, check),
        };
        self.report(diagnostic);
    }

    /// Reports what the author should know.
    pub(crate) fn warn(&self, code: Code, message: impl Into<String>) {
        self.report(Diagnostic::warning(code, self.path.clone(), message));
    }

    /// Reports what was found about another document, with its places.
    pub(crate) fn pass_on(&self, found: &[Diagnostic]) {
        for diagnostic in found {
            self.shared().report(diagnostic.clone());
        }
    }

    fn report(&self, mut diagnostic: Diagnostic) {
        diagnostic.at_key |= self.is_key;
        if let Some(origin) = self.origin.as_ref().filter(|_| diagnostic.file.is_none()) {
            diagnostic.locate(&origin.tree, Some(&origin.file));
        }
        if self.shared && !self.problems.is_new(&diagnostic) {
            return;
        }
        self.problems.add(diagnostic);
    }

    /// Reports what the author should know, and what to do about it.
    pub(crate) fn warn_hint(
        &self,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.report(Diagnostic::warning(code, self.path.clone(), message).hint(hint));
    }

    /// Reports what is found in the text here.
    pub(crate) fn report_in_text(&self, severity: Severity, found: TemplateError) {
        let offset = Some(found.offset);
        self.in_text((severity, found.code), offset, found.message, found.hint);
    }

    /// How many problems there are so far.
    pub(crate) fn count(&self) -> usize {
        self.problems.count()
    }

    /// Makes warnings of the problems but for the first `count`.
    pub(crate) fn demote_from(&self, count: usize) {
        self.problems.demote_from(count);
    }
}
