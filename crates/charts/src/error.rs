//! Errors of charts.

use std::fmt;

/// A position in a file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The file, starting with the chart's name: `pond/templates/pump.yaml`. `<tpl>` stands for a text given to `tpl`.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Frame {
    /// Returns the position of a byte of a file.
    pub(crate) fn new(file: &str, source: &str, offset: usize) -> Frame {
        let before = source.get(..offset).unwrap_or(source);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        Frame {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Frame { file, line, column } = self;
        write!(f, "{file}:{line}:{column}")
    }
}

/// The reason why a chart cannot be loaded or rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An archive is malformed, or exceeds its limits.
    #[error("{0}")]
    Archive(#[from] crate::archive::ArchiveError),
    /// A file of a chart is missing or malformed.
    #[error("{file}: {message}")]
    File {
        /// The file, starting with the chart's name if it is known.
        file: String,
        /// The message.
        message: String,
    },
    /// Values are not a map, or violate the chart's schema.
    #[error("{0}")]
    Values(String),
    /// The chart requires another version of Kubernetes.
    #[error("chart `{chart}` requires kubeVersion {wanted}, the cluster has {found}")]
    KubeVersion {
        /// The chart.
        chart: String,
        /// Its constraint.
        wanted: String,
        /// The version of the capabilities.
        found: String,
    },
    /// A template is malformed or fails.
    #[error("{at}: {message}")]
    Template {
        /// The position.
        at: Frame,
        /// The message.
        message: String,
        /// True if the budget was exhausted.
        budget: bool,
        /// The calling templates, the innermost first.
        called_from: Vec<Frame>,
    },
}

impl Error {
    /// Creates an error of a file.
    pub(crate) fn file(file: impl Into<String>, message: impl fmt::Display) -> Error {
        Error::File {
            file: file.into(),
            message: message.to_string(),
        }
    }
}
