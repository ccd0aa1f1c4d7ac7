//! The source of a fetch, as a Komposer names it.

use std::path::PathBuf;

use orkestra_object::value::Node;

use crate::policy::SignatureRequirement;

/// A source, as a Komposer names it.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A file of this machine.
    Path(PathBuf),
    /// A file over HTTPS.
    File {
        /// The URL; `$NAME` and `${NAME}` are replaced by permitted variables.
        url: String,
    },
    /// An artifact of a registry.
    Registry {
        /// The reference, in any spelling of [`orkestra_registry::Reference`].
        reference: String,
        /// Which document is meant, and where short names are.
        document: Document,
        /// The keys of its own `verify`; `None` leaves it to the policy.
        verify: Option<SignatureRequirement>,
    },
    /// A file or folder of a Git repository.
    Git {
        /// The URL.
        url: String,
        /// A branch, a tag or a commit; empty for the default branch.
        reference: String,
        /// The file or folder.
        path: String,
    },
    /// A Helm chart.
    Helm {
        /// `https://…` for a chart repository, `oci://…` for a registry, or the URL of a Git repository, which ends in `.git` or
        /// comes with a `path`.
        repo: String,
        /// The chart; in a Git repository the folder is `path`, or else has this name.
        chart: String,
        /// A version or a range; in a Git repository a branch, a tag or a commit. Empty for the latest.
        version: String,
        /// The folder of the chart in a Git repository.
        path: String,
        /// Values files, already read, in order.
        files: Vec<ValuesFile>,
        /// Values, which win over the files.
        values: Node,
        /// The keys of its own `verify`, for `oci://`; `None` leaves it to the policy.
        verify: Option<SignatureRequirement>,
    },
}

/// A values file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuesFile {
    /// In the chart.
    InChart(String),
    /// Read by the caller: the name for messages, and the text.
    Text(String, String),
    /// Over HTTPS.
    Url(String),
}

/// A document of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// `katalog.yaml`.
    Katalog,
    /// `komposer.yaml` (`useKomposer`).
    Komposer,
    /// `motif.yaml`.
    Motif,
}

impl Document {
    /// The file.
    pub fn file(self) -> &'static str {
        match self {
            Self::Katalog => "katalog.yaml",
            Self::Komposer => "komposer.yaml",
            Self::Motif => "motif.yaml",
        }
    }
}

/// What a lock file recorded about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The revision of its artifact.
    pub revision: String,
    /// The digest of its artifact.
    pub digest: String,
}
