//! Packs folders into artifacts: the checks before a push, and the summary of an artifact.
//!
//! ```text
//!  folder ── pack ──► files ── validate, in place and separately ──► Summary, Lifecycle ──► Artifact
//! ```

pub(crate) mod summary;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
};

use orkestra_compiler::scope::Library;
use orkestra_language::{
    diagnostics::Severity,
    document::{MotifDocument, parse_stream},
};
use orkestra_registry::artifact::{
    self, Artifact, File, Kind, Lifecycle, PackError, Summary, UnpackError, pack,
};

use orkestra_loader::{
    compose::Fetch,
    files::{self, Validated},
};

/// An artifact that is ready to be pushed.
#[derive(Debug)]
pub struct Prepared {
    /// Manifest, configuration and layers.
    pub artifact: Artifact,
    /// Its summary.
    pub summary: Summary,
    /// Its deprecation, if any.
    pub lifecycle: Option<Lifecycle>,
    /// The warnings of the checks.
    pub validated: Validated,
}

/// The reason why a folder is not pushed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, or cannot be part of an artifact.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The folder contains neither a Katalog nor a Motif, or both.
    #[error("{} must have either katalog.yaml or motif.yaml, and has {found}", folder.display())]
    Kind {
        /// The folder.
        folder: PathBuf,
        /// The contents that were found.
        found: &'static str,
    },
    /// The documents have errors.
    #[error("the documents have errors")]
    Invalid(Box<Validated>),
    /// A document needs a file outside the folder.
    #[error("a document needs files outside of the folder: {0}")]
    Outside(String),
    /// The files cannot be checked separately.
    #[error("cannot check the files in a folder of their own")]
    Alone(#[from] UnpackError),
    /// A temporary folder cannot be created.
    #[error("cannot create a temporary folder")]
    Temporary(#[from] io::Error),
}

/// The declarations in a folder.
pub struct Described {
    /// The result of the checks.
    pub validated: Validated,
    /// The summary; `None` if the documents have errors.
    pub summary: Option<(Summary, Option<Lifecycle>)>,
}

/// Checks a folder and packs it into an artifact.
///
/// Its documents must be valid in place, and in a folder with only the files of the artifact, because users who pull it have
/// no others.
///
/// # Errors
/// [`Error`].
pub async fn prepare(folder: &Path, fetch: &dyn Fetch) -> Result<Prepared, Error> {
    let packed = pack(folder)?;
    let kind = kind(folder, &packed)?;
    let Described { validated, summary } = describe(folder, kind, fetch).await;
    let Some((summary, lifecycle)) = summary else {
        return Err(Error::Invalid(Box::new(validated)));
    };
    check_alone(folder, &packed, kind, fetch).await?;
    Ok(Prepared {
        artifact: artifact::build(&packed, &summary, lifecycle.as_ref()),
        summary,
        lifecycle,
        validated,
    })
}

/// Returns the kind of a folder, by its files.
fn kind(folder: &Path, packed: &[File]) -> Result<Kind, Error> {
    let has = |kind: &Kind| packed.iter().any(|file| file.name == kind.file());
    let found: Vec<Kind> = Kind::ALL.into_iter().filter(has).collect();
    match found[..] {
        [kind] => Ok(kind),
        ref found => Err(Error::Kind {
            folder: folder.to_owned(),
            found: if found.is_empty() { "none" } else { "both" },
        }),
    }
}

/// Checks the documents of a folder and returns their summary.
pub async fn describe(folder: &Path, kind: Kind, fetch: &dyn Fetch) -> Described {
    let validated = files::validate_with(&[folder.to_owned()], fetch).await;
    if validated.problems.has_errors() {
        return Described {
            validated,
            summary: None,
        };
    }
    let summary = match kind {
        Kind::Katalog => {
            let file = folder.join(kind.file()).display().to_string();
            let is_it =
                |katalog: &&files::Compiled| katalog.document.file.as_deref() == Some(&*file);
            summary::of_katalogs(&validated.katalogs.iter().filter(is_it).collect::<Vec<_>>())
        }
        Kind::Motif => motif(folder, &validated).map(|motif| summary::of_motif(&motif)),
    };
    Described { validated, summary }
}

fn motif(folder: &Path, validated: &Validated) -> Option<MotifDocument> {
    let file = folder.join(Kind::Motif.file()).display().to_string();
    let sources = parse_stream(&file, validated.texts.get(&file)?).sources;
    files::motifs(&sources).into_iter().next()
}

/// Checks the files in a folder without any others.
async fn check_alone(
    folder: &Path,
    packed: &[File],
    kind: Kind,
    fetch: &dyn Fetch,
) -> Result<(), Error> {
    let fresh = tempfile::TempDir::new()?;
    let alone = fresh.path().join("files");
    artifact::write(&alone, packed)?;
    let Described { validated, summary } = describe(&alone, kind, fetch).await;
    if summary.is_none() {
        let error = validated
            .problems
            .0
            .iter()
            .find(|problem| problem.severity == Severity::Error);
        let message = error
            .map(|problem| problem.message.clone())
            .unwrap_or_default();
        let (temporary, own) = (alone.display().to_string(), folder.display().to_string());
        return Err(Error::Outside(message.replace(&temporary, &own)));
    }
    // On this machine an absolute path would be found from any folder.
    for katalog in &validated.katalogs {
        let spec = &katalog.document.spec;
        let named = Library::default()
            .missing(spec)
            .into_iter()
            .map(|reference| reference.text.into_string());
        let definitions = spec
            .crds
            .values()
            .filter_map(|entry| entry.crd_file.clone());
        if let Some(path) = named
            .chain(definitions)
            .find(|path| Path::new(path).is_absolute())
        {
            return Err(Error::Outside(path));
        }
    }
    Ok(())
}
