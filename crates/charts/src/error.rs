//! What goes wrong with charts.

use std::fmt;

/// A place in a file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The file, from the chart's name on: `pond/templates/pump.yaml`. `<tpl>` stands for a text given to `tpl`.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Frame {
    /// The place of a byte of a file.
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

/// Why a chart cannot be loaded or rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An archive is malformed, or leaves its bounds.
    #[error("{0}")]
    Archive(#[from] crate::archive::ArchiveError),
    /// A file that a chart consists of is missing or malformed.
    #[error("{file}: {message}")]
    File {
        /// The file, from the chart's name on where that is known.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// Values are no map, or not what the chart's schema asks for.
    #[error("{0}")]
    Values(String),
    /// The chart asks for another version of Kubernetes.
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
        /// Where it failed.
        at: Frame,
        /// Why.
        message: String,
        /// Whether the budget ended it.
        budget: bool,
        /// Which templates called it, the innermost first.
        called_from: Vec<Frame>,
    },
}

impl Error {
    /// An error of a file.
    pub(crate) fn file(file: impl Into<String>, message: impl fmt::Display) -> Error {
        Error::File {
            file: file.into(),
            message: message.to_string(),
        }
    }
}
