//! Places in a Katalog: they compile values to trees, resolve names and report problems.
//!
//! ```text
//!  At ── values, metadata ──► Leaf, ObjectTree
//!   ├── Symbols: notes, and the profiles of all documents
//!   └── Problems: diagnostics, with their places
//!  Library: Motifs and included files, by the references that name them
//! ```

mod fields;
pub(crate) mod library;
mod metadata;
mod problems;
pub(crate) mod profiles;
mod symbols;
mod values;

use std::sync::Arc;

use orkestra_language::{
    api::names,
    diagnostics::{Code, Diagnostic, FieldPath, Severity},
    tree::Origin,
};
use orkestra_object::value::BadPath;
use orkestra_plan::{PlaceRef, PlanPlace};
use orkestra_template::{TemplateError, kro_expression};

pub(crate) use fields::Fields;
pub use library::{Library, Reference, ReferenceKind, beside, is_of_registry};
pub use problems::Problems;
pub(crate) use profiles::{ResolvedBlock, resolve_profile};
pub use profiles::{built_in_profiles, profiles_markdown};
pub use symbols::Symbols;

/// A rule for names; the error says what is wrong with a text.
type Check = fn(&str) -> Result<(), String>;

/// A place in a Katalog, or in a document that it imports.
#[derive(Clone)]
pub struct At<'a> {
    problems: &'a Problems,
    /// The symbols, once they are known.
    symbols: Option<&'a Symbols<'a>>,
    /// The other document; `None` is the Katalog itself.
    origin: Option<Arc<Origin>>,
    /// The Katalog of a composition that the entry comes from; `None` if the Katalog is not composed.
    home: Option<Arc<Origin>>,
    /// True if several parts of the Katalog lead here: each problem is reported once.
    shared: bool,
    path: FieldPath,
    /// True if problems concern the key of this field.
    is_key: bool,
    /// True inside an object of kro, whose expressions are plain text to us.
    of_kro: bool,
}

impl<'a> At<'a> {
    /// Returns the root of the document.
    pub fn root(problems: &'a Problems) -> Self {
        Self {
            problems,
            symbols: None,
            origin: None,
            home: None,
            shared: false,
            path: FieldPath::root(),
            is_key: false,
            of_kro: false,
        }
    }

    /// Returns the root of a Katalog of a composition.
    pub(crate) fn composed(&self, home: &Arc<Origin>) -> Self {
        Self {
            origin: Some(Arc::clone(home)),
            home: Some(Arc::clone(home)),
            path: FieldPath::root(),
            ..self.clone()
        }
    }

    /// Returns the root of the Katalog; in a composition, of the Katalog that the place belongs to.
    pub(crate) fn katalog(&self) -> Self {
        Self {
            origin: self.home.clone(),
            path: FieldPath::root(),
            ..self.clone()
        }
    }

    /// Returns the root of another document.
    pub(crate) fn document(&self, origin: &Arc<Origin>) -> Self {
        Self {
            origin: Some(Arc::clone(origin)),
            shared: true,
            path: FieldPath::root(),
            ..self.clone()
        }
    }

    /// Returns the same place, shared by several parts of the Katalog.
    pub(crate) fn shared(&self) -> Self {
        Self {
            shared: true,
            ..self.clone()
        }
    }

    /// Returns the same place with the names in `symbols`.
    pub fn with<'b>(&self, symbols: &'b Symbols<'b>) -> At<'b>
    where
        'a: 'b,
    {
        At {
            symbols: Some(symbols),
            ..self.clone()
        }
    }

    /// Returns the same place with the symbols of `other`.
    pub(crate) fn as_at<'b>(&self, other: &At<'b>) -> At<'b>
    where
        'a: 'b,
    {
        At {
            symbols: other.symbols,
            ..self.clone()
        }
    }

    /// Returns the same place, inside an object of the API version `api_version`.
    pub(crate) fn inside(&self, api_version: &str) -> Self {
        Self {
            of_kro: api_version.trim().starts_with("kro.run/"),
            ..self.clone()
        }
    }

    /// Returns the symbols.
    pub(crate) fn symbols(&self) -> Option<&'a Symbols<'a>> {
        self.symbols
    }

    /// True if both places are in one document.
    pub(crate) fn is_beside(&self, other: &At<'_>) -> bool {
        let name = |at: &At<'_>| at.origin.as_ref().map(|origin| origin.name.clone());
        name(self) == name(other)
    }

    /// True if the place is in the Katalog, not in a document that it imports.
    pub(crate) fn is_own(&self) -> bool {
        let name = |origin: &Option<Arc<Origin>>| origin.as_ref().map(|origin| origin.name.clone());
        name(&self.origin) == name(&self.home)
    }

    /// Returns the document of the place; `None` is the Katalog itself.
    pub(crate) fn origin(&self) -> Option<&Arc<Origin>> {
        self.origin.as_ref()
    }

    /// Returns the field `name` of the map here.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        Self {
            path: self.path.field(name),
            is_key: false,
            ..self.clone()
        }
    }

    /// Returns the item `index` of the list here.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self {
            path: self.path.index(index),
            is_key: false,
            ..self.clone()
        }
    }

    /// Returns the same place, but reports to `problems`.
    pub(crate) fn quietly<'b>(&self, problems: &'b Problems) -> At<'b>
    where
        'a: 'b,
    {
        At {
            problems,
            ..self.clone()
        }
    }

    /// Returns the key of the field `name` of the map here: problems are reported at the key, not at its value.
    pub(crate) fn key(&self, name: &str) -> Self {
        Self {
            is_key: true,
            ..self.field(name)
        }
    }

    /// Returns the sibling field `name`.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        Self {
            path: self.path.sibling(name),
            is_key: false,
            ..self.clone()
        }
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &FieldPath {
        &self.path
    }

    /// Returns the place as text; in another document, after its name.
    pub(crate) fn text(&self) -> Box<str> {
        match &self.origin {
            Some(origin) => format!("{}: {}", origin.name, self.path).into(),
            None => self.path.to_string().into(),
        }
    }

    /// Returns the place for a plan, and keeps its position for [`At::place`].
    pub(crate) fn kept(&self) -> PlanPlace {
        let place = PlanPlace::new(self.text());
        let location = (self.origin.clone(), self.path.clone());
        self.problems.keep(&place, location);
        place
    }

    /// Returns the position of a place in a plan that the same compilation made.
    pub(crate) fn place<'p>(&self, place: impl Into<PlaceRef<'p>>) -> At<'a> {
        self.problems.place(place)
    }

    /// Reports an error.
    pub(crate) fn error(&self, code: Code, message: impl Into<String>) {
        self.report(Diagnostic::error(code, self.path.clone(), message));
    }

    /// Reports an error, at a byte offset of the text here if it is known.
    pub(crate) fn error_in_text(
        &self,
        code: Code,
        offset: Option<usize>,
        message: String,
        hint: Option<String>,
    ) {
        self.in_text((Severity::Error, code), offset, message, hint);
    }

    /// Reports a problem of the given severity, at a byte offset of the text here if it is known.
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

    /// Reports an error with a hint.
    pub(crate) fn error_hint(
        &self,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.report(Diagnostic::error(code, self.path.clone(), message).hint(hint));
    }

    /// Reports that `path`, a part of the text `written` here, is not a valid path.
    pub(crate) fn bad_path(&self, written: &str, path: &str, why: &BadPath) {
        let offset = written.find(path).map(|start| start + why.at);
        let message = format!("`{path}` is not a valid path: {}", why.what);
        self.error_in_text(Code::BadPath, offset, message, None);
    }

    /// Reports a name that is invalid according to `check`.
    pub(crate) fn bad_name(&self, name: &str, why: String, check: Check) {
        let mut diagnostic = Diagnostic::error(Code::BadName, self.path.clone(), why);
        diagnostic.hint = match kro_expression(name) {
            Some(found) => found.hint,
            None => names::instead(name, check),
        };
        self.report(diagnostic);
    }

    /// Reports a warning.
    pub(crate) fn warn(&self, code: Code, message: impl Into<String>) {
        self.report(Diagnostic::warning(code, self.path.clone(), message));
    }

    /// Reports the problems of another document, with their places.
    pub(crate) fn pass_on(&self, found: &[Diagnostic]) {
        for diagnostic in found {
            self.shared().report(diagnostic.clone());
        }
    }

    fn report(&self, mut diagnostic: Diagnostic) {
        diagnostic.at_key |= self.is_key;
        if let Some(origin) = self.origin.as_ref().filter(|_| diagnostic.file.is_none()) {
            diagnostic.locate_in(origin);
        }
        if self.shared && !self.problems.is_new(&diagnostic) {
            return;
        }
        self.problems.add(diagnostic);
    }

    /// Reports a warning with a hint.
    pub(crate) fn warn_hint(
        &self,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.report(Diagnostic::warning(code, self.path.clone(), message).hint(hint));
    }

    /// Reports a problem in the text here.
    pub(crate) fn report_in_text(&self, severity: Severity, found: TemplateError) {
        let offset = Some(found.offset);
        self.in_text((severity, found.code), offset, found.message, found.hint);
    }

    /// Returns the number of problems so far.
    pub(crate) fn count(&self) -> usize {
        self.problems.count()
    }

    /// Turns all problems except the first `count` into warnings.
    pub(crate) fn demote_from(&self, count: usize) {
        self.problems.demote_from(count);
    }
}
