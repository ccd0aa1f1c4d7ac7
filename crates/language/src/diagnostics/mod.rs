//! Problems of documents and their positions.
//!
//! Checks collect every problem they find as a [`Diagnostic`]: always with a path, and with a position if the document is
//! from a file. The command line, the Katalog's status and the tests show the same diagnostics.

mod codes;
mod explain;
mod nearest;

use std::fmt;

use serde::{Serialize, Serializer};

pub use codes::Code;
pub use explain::{Explanation, markdown};
pub use nearest::nearest;
pub use nearest::{did_you_mean, nearest_or_all};

pub use crate::tree::{FieldPath, Segment};
use crate::tree::{FileSpan, Origin, Tree};

/// The maximum number of errors, and of warnings, reported per document. More are of no use to a reader, and each takes time to
/// find and locate.
pub const MOST_PROBLEMS: usize = 250;

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document is rejected.
    Error,
    /// The document is accepted, but probably has a mistake.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// One problem of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The kind of problem.
    pub code: Code,
    /// The file, as the user named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The field: `spec.crds.website.operatorBox.onCreate.deployments[0].replicas`.
    #[serde(serialize_with = "path_as_text")]
    pub path: FieldPath,
    /// The byte in the field's text, for errors inside templates. [`Diagnostics::locate`] turns it into a line and a column.
    #[serde(skip)]
    pub text_offset: Option<usize>,
    /// True if the problem is the field's key, not its value. [`Diagnostics::locate`] uses it.
    #[serde(skip)]
    pub at_key: bool,
    /// The message.
    pub message: String,
    /// The fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

fn path_as_text<S: Serializer>(path: &FieldPath, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(path)
}

impl Diagnostic {
    /// Creates an error, which rejects the document.
    pub fn error(code: Code, path: FieldPath, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            code,
            file: None,
            line: None,
            column: None,
            path,
            text_offset: None,
            at_key: false,
            message: message.into(),
            hint: None,
        }
    }

    /// Creates a warning.
    pub fn warning(code: Code, path: FieldPath, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, path, message)
        }
    }

    /// Adds a hint with the fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the byte in the field's text.
    #[must_use]
    pub fn at_text(mut self, offset: usize) -> Self {
        self.text_offset = Some(offset);
        self
    }

    /// Sets `file` and the position in `tree` if they are missing.
    pub fn locate(&mut self, tree: &Tree, file: Option<&str>) {
        if self.file.is_none() {
            self.file = file.map(str::to_owned);
        } else if self.file.as_deref() != file {
            return;
        }
        if self.line.is_none() {
            let span = match self.text_offset {
                Some(offset) => tree.locate_in_text(&self.path, offset),
                None if self.at_key => tree.locate_key(&self.path),
                None => tree.locate(&self.path),
            };
            self.line = span.map(|span| span.line);
            self.column = span.map(|span| span.column);
        }
    }

    /// Sets the file and the position of the field in a document with overrides, if they are missing.
    pub fn locate_in(&mut self, origin: &Origin) {
        let (file, tree) = origin.owner(&self.path);
        self.locate(tree, Some(file));
    }

    /// Returns a problem that represents this one and all that are omitted.
    #[must_use]
    pub fn left_out(self) -> Self {
        Diagnostic {
            code: Code::TooLarge,
            message: format!(
                "there are more than {MOST_PROBLEMS} problems; the others are not shown"
            ),
            hint: Some("fix the reported problems and validate again".to_owned()),
            ..self
        }
    }

    /// Sets the position.
    #[must_use]
    pub fn at(mut self, span: Option<FileSpan>) -> Self {
        if let Some(span) = span {
            self.line = Some(span.line);
            self.column = Some(span.column);
        }
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line, self.column) {
            (Some(file), Some(line), Some(column)) => write!(f, "{file}:{line}:{column}: ")?,
            (Some(file), _, _) => write!(f, "{file}: ")?,
            (None, Some(line), Some(column)) => write!(f, "{line}:{column}: ")?,
            (None, _, _) => {}
        }
        write!(f, "{}[{}]: ", self.severity, self.code)?;
        if !self.path.is_root() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

/// Problems, in the order they were found. As an error type, it contains at least one error.
///
/// Displays as one line each: `file:line:column: error[ORK0012]: path: message (hint: ...)`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Adds a problem.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds problems.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.0.extend(diagnostics);
    }

    /// True if a problem is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }

    /// True if there are no problems.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the problems, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Sets `file` and the position in `tree` for every problem without them, and sorts by position. Problems in other files
    /// come last.
    ///
    /// A path that the document does not have gets the position of its nearest ancestor.
    pub fn locate(&mut self, tree: &Tree, file: Option<&str>) {
        for diagnostic in &mut self.0 {
            diagnostic.locate(tree, file);
        }
        self.0.sort_by_cached_key(|d| {
            let elsewhere = d.file.as_deref() != file;
            (elsewhere.then(|| d.file.clone()), d.line, d.column)
        });
    }

    /// Removes excess errors and warnings, and adds a final problem in their place.
    pub fn cap(&mut self) {
        let (mut errors, mut warnings) = (0, 0);
        let mut left_out = None;
        for problem in std::mem::take(&mut self.0) {
            let reported = match problem.severity {
                Severity::Error => &mut errors,
                Severity::Warning => &mut warnings,
            };
            *reported += 1;
            if *reported <= MOST_PROBLEMS {
                self.0.push(problem);
            } else if left_out.is_none() {
                left_out = Some(problem.left_out());
            }
        }
        self.0.extend(left_out);
    }

    /// Returns `Ok` with the warnings if there are no errors.
    ///
    /// # Errors
    /// All problems, including warnings, if one is an error.
    pub fn into_result(self) -> Result<Vec<Diagnostic>, Diagnostics> {
        if self.has_errors() {
            Err(self)
        } else {
            Ok(self.0)
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Diagnostics(vec![diagnostic])
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(iter: I) -> Self {
        Diagnostics(iter.into_iter().collect())
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_prints_on_one_line() {
        let mut one = Diagnostic::error(Code::NoEffect, FieldPath::root().field("spec"), "too wet")
            .hint("drain it");
        assert_eq!(
            one.to_string(),
            "error[ORK0012]: spec: too wet (hint: drain it)"
        );
        one.file = Some("pond.yaml".into());
        assert_eq!(
            one.to_string(),
            "pond.yaml: error[ORK0012]: spec: too wet (hint: drain it)"
        );
        (one.line, one.column) = (Some(3), Some(7));
        let two = Diagnostic::warning(Code::Empty, FieldPath::root(), "fish");
        let both = Diagnostics(vec![one, two]);
        assert_eq!(
            both.to_string(),
            "pond.yaml:3:7: error[ORK0012]: spec: too wet (hint: drain it)\nwarning[ORK0022]: fish"
        );
        assert!(both.into_result().is_err());
    }
}
