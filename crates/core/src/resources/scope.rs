//! A place in a Katalog: what is read there becomes trees, and what is wrong there becomes diagnostics.

mod metadata;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use crate::{
    api::{
        names,
        scalar::{Scalar, Text},
    },
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, MOST_PROBLEMS, Severity, nearest},
    plan::{Coerce, Fields, Leaf, Lexicon, Origin, Tree},
    template::{Template, TemplateError},
    value::{BadPath, Node},
};

/// A rule for names: what is wrong with a text.
type Check = fn(&str) -> Result<(), String>;

/// A document, none for the Katalog itself, and a path in it.
type Location = (Option<Arc<Origin>>, FieldPath);

/// What is wrong with a Katalog, gathered while it is read.
#[derive(Default)]
pub(crate) struct Problems {
    found: RefCell<Diagnostics>,
    errors: Cell<usize>,
    /// The first problem that is not told, since there are too many.
    left_out: RefCell<Option<Diagnostic>>,
    /// The places that plans name, by their text.
    places: RefCell<HashMap<Box<str>, Location>>,
    /// What was told of places that are looked at more than once.
    told: RefCell<HashSet<String>>,
}

impl Problems {
    /// What was found, in the order it was found.
    pub(crate) fn into_inner(self) -> Diagnostics {
        let mut found = self.found.into_inner();
        found.extend(self.left_out.into_inner().map(Diagnostic::left_out));
        found
    }

    /// Whether further errors are not told.
    fn is_full(&self) -> bool {
        self.errors.get() >= MOST_PROBLEMS
    }

    fn add(&self, problem: Diagnostic) {
        let mut found = self.found.borrow_mut();
        let full = match problem.severity {
            Severity::Error => self.is_full(),
            Severity::Warning => found.0.len() >= MOST_PROBLEMS,
        };
        if full {
            self.left_out.borrow_mut().get_or_insert(problem);
            return;
        }
        if problem.severity == Severity::Error {
            self.errors.set(self.errors.get() + 1);
        }
        found.push(problem);
    }

    /// A place that was read before, by its [`At::text`].
    pub(crate) fn place(&self, text: &str) -> At<'_> {
        let (origin, path) = self.places.borrow().get(text).cloned().unwrap_or_default();
        At {
            shared: origin.is_some(),
            origin,
            path,
            ..At::root(self)
        }
    }
}

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
        self.problems
            .places
            .borrow_mut()
            .insert(text.clone(), (self.origin.clone(), self.path.clone()));
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
        let mut diagnostic = Diagnostic::error(code, self.path.clone(), message);
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
        diagnostic.hint = names::instead(name, check);
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
        let problems = self.problems;
        if self.shared {
            let text = format!("{diagnostic} {:?}", diagnostic.text_offset);
            if !problems.told.borrow_mut().insert(text) {
                return;
            }
        }
        problems.add(diagnostic);
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
        let new = match severity {
            Severity::Error => Diagnostic::error,
            Severity::Warning => Diagnostic::warning,
        };
        let mut diagnostic = new(found.code, self.path.clone(), found.message);
        (diagnostic.text_offset, diagnostic.hint) = (Some(found.offset), found.hint);
        self.report(diagnostic);
    }

    /// How many problems there are so far.
    pub(crate) fn count(&self) -> usize {
        self.problems.found.borrow().0.len()
    }

    /// Makes warnings of the problems but for the first `count`.
    pub(crate) fn demote_from(&self, count: usize) {
        for problem in self.problems.found.borrow_mut().0.iter_mut().skip(count) {
            problem.severity = Severity::Warning;
        }
    }

    /// Parses a template; nothing if it has errors, which are reported, or if nobody would be told of them.
    pub(crate) fn template(&self, text: &str) -> Option<Template> {
        if self.problems.is_full() {
            return None;
        }
        let parsed = match self.lexicon {
            Some(lexicon) => Template::parse_with(text, &lexicon.functions),
            None => Template::parse(text),
        };
        match parsed {
            Ok(template) => {
                for warning in template.warnings() {
                    self.report_in_text(Severity::Warning, warning.clone());
                }
                Some(template)
            }
            Err(errors) => {
                for error in errors {
                    self.report_in_text(Severity::Error, error);
                }
                None
            }
        }
    }

    /// A leaf for the text here, literal or not.
    pub(crate) fn leaf(&self, text: &str, coerce: Coerce) -> Option<Leaf> {
        Some(Leaf {
            template: self.template(text)?,
            coerce,
            path: self.text(),
        })
    }

    /// A leaf for the scalar here, which the caller gives what it takes.
    pub(crate) fn scalar_leaf(&self, scalar: &Scalar) -> Option<Leaf> {
        self.leaf(&scalar.to_string(), Coerce::Native)
    }

    /// The value of the text here; nothing if it is left out or wrong, which is reported.
    pub(crate) fn value(&self, text: &str, coerce: Coerce) -> Option<Tree> {
        let leaf = self.leaf(text, coerce)?;
        match leaf.template.literal() {
            Some(literal) => self.fixed(Node::from(literal), coerce),
            None => Some(Tree::Leaf(leaf)),
        }
    }

    /// The value of the scalar here; nothing if it is left out or wrong, which is reported.
    pub(crate) fn scalar(&self, scalar: &Scalar, coerce: Coerce) -> Option<Tree> {
        match scalar.as_str() {
            Some(text) => self.value(text, coerce),
            None => self.fixed(scalar.node().clone(), coerce),
        }
    }

    fn fixed(&self, node: Node, coerce: Coerce) -> Option<Tree> {
        match coerce.apply(node) {
            Ok(node) => node.map(Tree::Fixed),
            Err(misfit) => {
                self.error(Code::WrongValue, misfit.to_string());
                None
            }
        }
    }

    /// The field `name`, a text, if it is declared.
    pub(crate) fn text_field(&self, name: &str, text: Option<&Text>) -> Option<Tree> {
        self.field(name).value(text?, Coerce::OptionalText)
    }

    /// The field `name`, a text that is not empty.
    pub(crate) fn required(&self, name: &str, text: &Text) -> Option<Tree> {
        self.field(name).required_here(text)
    }

    /// The text here, which is not empty.
    pub(crate) fn required_here(&self, text: &Text) -> Option<Tree> {
        if text.trim().is_empty() {
            self.error(Code::Empty, "this is empty");
        }
        self.value(text, Coerce::OptionalText)
    }

    /// The field `name`, a scalar, if it is declared.
    pub(crate) fn scalar_field(
        &self,
        name: &str,
        scalar: Option<&Scalar>,
        coerce: Coerce,
    ) -> Option<Tree> {
        self.field(name).scalar(scalar?, coerce)
    }

    /// The field `name`, one of `words` in any case, or a template for it.
    pub(crate) fn word_field(
        &self,
        name: &str,
        text: Option<&Text>,
        words: &[&str],
    ) -> Option<Tree> {
        let at = self.field(name);
        let leaf = at.leaf(text?, Coerce::OptionalText)?;
        let Some(literal) = leaf.template.literal() else {
            return Some(Tree::Leaf(leaf));
        };
        let literal = literal.trim();
        let word = words.iter().find(|word| word.eq_ignore_ascii_case(literal));
        if word.is_none() && !literal.is_empty() {
            let message = format!("`{literal}` is none of {}", words.join(", "));
            match nearest(literal, words.iter().copied()) {
                Some(near) => {
                    at.error_hint(
                        Code::UnknownWord,
                        message,
                        format!("did you mean `{near}`?"),
                    );
                }
                None => at.error(Code::UnknownWord, message),
            }
        }
        word.map(|word| Tree::Fixed(Node::from(*word)))
    }

    /// A tree as a manifest has it: every text in it may be a template, which keeps the expression's own type.
    pub(crate) fn manifest(&self, node: &Node) -> Option<Tree> {
        match node {
            Node::Str(text) => self.value(text, Coerce::Native),
            Node::List(items) => Some(Tree::list(
                items
                    .iter()
                    .enumerate()
                    .filter_map(|(at, item)| self.index(at).manifest(item))
                    .collect(),
            )),
            Node::Map(entries) => {
                let mut fields = Fields::default();
                for (key, value) in entries.iter() {
                    self.key(key).literal_key(key);
                    fields.put(key, self.field(key).manifest(value));
                }
                Some(fields.into_tree())
            }
            _ => Some(Tree::Fixed(node.clone())),
        }
    }

    /// Refuses a key that is written as a template.
    fn literal_key(&self, key: &str) {
        if key.contains("{{") {
            self.error_hint(
                Code::NotATemplate,
                "a key is not a template",
                "write the key out; only values are rendered",
            );
        }
    }

    /// The texts by key here.
    pub(crate) fn texts(&self, texts: &BTreeMap<String, Text>, coerce: Coerce) -> Fields {
        let mut fields = Fields::default();
        for (key, text) in texts {
            self.key(key).literal_key(key);
            fields.put(key, self.field(key).value(text, coerce));
        }
        fields
    }
}
