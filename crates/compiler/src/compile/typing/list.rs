//! The list of all expressions and their types, printed by `ork validate --types`.

use crate::scope::At;
use orkestra_language::{diagnostics::FieldPath, document};
use orkestra_template::TypedExpression;

/// An expression of a Katalog and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The file, if it is not the Katalog's own: a Motif's.
    pub file: Option<Box<str>>,
    /// The field that contains it.
    pub path: FieldPath,
    /// Its start in the field's text, in bytes.
    pub text_offset: usize,
    /// Its line in the file, from 1; set by [`Typed::locate`].
    pub line: Option<u32>,
    /// Its column in characters, from 1.
    pub column: Option<u32>,
    /// Its text: `.spec.replicas | default 3`.
    pub source: String,
    /// The name of its type: `integer`, `list of text`, `one of dev, prod`, `anything`.
    pub type_name: String,
    /// The type of the field, if the expression is its whole text.
    pub wanted: Option<String>,
}

impl Typed {
    pub(crate) fn new(
        place: &At<'_>,
        expression: &TypedExpression,
        wanted: Option<String>,
    ) -> Self {
        let mut typed = Self {
            file: None,
            path: place.path().clone(),
            text_offset: expression.offset,
            line: None,
            column: None,
            source: expression.source.clone(),
            type_name: expression.type_name.clone(),
            wanted,
        };
        if let Some(origin) = place.origin() {
            let (file, tree) = origin.owner(place.path());
            typed.locate(tree);
            typed.file = Some(file.into());
        }
        typed
    }

    /// Sets line and column from the Katalog's tree, unless it is in another file: then they are set already.
    pub fn locate(&mut self, tree: &document::Tree) {
        if self.file.is_some() {
            return;
        }
        let span = tree.locate_in_text(&self.path, self.text_offset);
        self.line = span.map(|span| span.line);
        self.column = span.map(|span| span.column);
    }
}
