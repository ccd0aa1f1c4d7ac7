//! What is wrong with a template, and what went wrong in an evaluation.

use crate::diagnostics::Code;

/// Something wrong with the source, found before any evaluation. Also the form of warnings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// Where it starts in the source, in bytes from 0.
    pub offset: usize,
    /// How many bytes of the source it concerns; 0 where something is missing.
    pub len: usize,
    /// Which kind of problem it is.
    pub code: Code,
    /// What is wrong, without position.
    pub message: String,
    /// What to write instead, if that can be told.
    pub hint: Option<String>,
}

/// Why an evaluation gave no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    /// Where the failing expression starts in the source, in bytes from 0.
    pub offset: usize,
    /// What kind of failure it is.
    pub kind: EvalErrorKind,
    /// What went wrong, without position. Values of the data are not quoted: they may be secret.
    pub message: String,
}

impl EvalError {
    /// The error of a note of the user, where that is called. Of notes that call each other the innermost is named.
    #[cold]
    pub(super) fn in_note(self, note: &str, at: u32) -> EvalError {
        const IN: &str = "in the note `";
        let message = if self.message.starts_with(IN) {
            self.message
        } else {
            format!("{IN}{note}`: {}", self.message)
        };
        EvalError {
            offset: at as usize,
            kind: self.kind,
            message,
        }
    }
}

/// The kinds of [`EvalError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalErrorKind {
    /// The budget is spent.
    Budget,
    /// A note refuses its arguments' values: text that is no number, a division by zero.
    Function,
    /// A value is of the wrong type.
    Type,
}

/// An error that does not know its place yet.
#[derive(Debug)]
pub struct Failure {
    kind: EvalErrorKind,
    message: String,
}

impl Failure {
    /// An error of a kind.
    pub fn new(kind: EvalErrorKind, message: impl Into<String>) -> Failure {
        Failure {
            kind,
            message: message.into(),
        }
    }

    /// A value is of the wrong type.
    pub fn wrong_type(message: impl Into<String>) -> Failure {
        Failure::new(EvalErrorKind::Type, message)
    }

    /// A value is of the right type, but will not do.
    pub fn refused(message: impl Into<String>) -> Failure {
        Failure::new(EvalErrorKind::Function, message)
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> EvalErrorKind {
        self.kind
    }

    pub(super) fn is_type(&self) -> bool {
        self.kind == EvalErrorKind::Type
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error, at its place.
    #[cold]
    pub(super) fn at(self, offset: u32) -> EvalError {
        EvalError {
            offset: offset as usize,
            kind: self.kind,
            message: self.message,
        }
    }
}
