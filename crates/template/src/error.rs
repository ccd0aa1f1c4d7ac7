//! Errors of parsing and of evaluation.

use orkestra_language::diagnostics::Code;

/// A problem in the source, found before evaluation. Also used for warnings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// The start in the source, in bytes from 0.
    pub offset: usize,
    /// The length in bytes; 0 if something is missing.
    pub len: usize,
    /// The kind of problem.
    pub code: Code,
    /// The message, without position.
    pub message: String,
    /// What to write instead, if known.
    pub hint: Option<String>,
}

/// The reason why an evaluation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    /// The start of the failing expression in the source, in bytes from 0.
    pub offset: usize,
    /// The kind of failure.
    pub kind: EvalErrorKind,
    /// The message, without position. Values of the data are not quoted because they may be secret.
    pub message: String,
}

impl EvalError {
    /// The error of a user's note, at the position of its call. With nested notes, the message names the innermost.
    #[cold]
    pub(crate) fn in_note(self, note: &str, at: u32) -> EvalError {
        const IN: &str = "in the function `";
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
    /// The budget is exhausted.
    Budget,
    /// A note rejects the values of its arguments: text that is not a number, a division by zero.
    Function,
    /// A value is of the wrong type.
    Type,
}

/// An error without a position.
#[derive(Debug)]
pub struct EvalFailure {
    kind: EvalErrorKind,
    message: String,
}

impl EvalFailure {
    /// Creates an error of a kind.
    pub fn new(kind: EvalErrorKind, message: impl Into<String>) -> EvalFailure {
        EvalFailure {
            kind,
            message: message.into(),
        }
    }

    /// Creates an error for a value of the wrong type.
    pub fn wrong_type(message: impl Into<String>) -> EvalFailure {
        EvalFailure::new(EvalErrorKind::Type, message)
    }

    /// Creates an error for a value of the right type that is not valid.
    pub fn refused(message: impl Into<String>) -> EvalFailure {
        EvalFailure::new(EvalErrorKind::Function, message)
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> EvalErrorKind {
        self.kind
    }

    pub(crate) fn is_type(&self) -> bool {
        self.kind == EvalErrorKind::Type
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Adds the position.
    #[cold]
    pub(crate) fn at(self, offset: u32) -> EvalError {
        EvalError {
            offset: offset as usize,
            kind: self.kind,
            message: self.message,
        }
    }
}
