//! Drafts of `ork init --from-…`. This module reads the files; core converts them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use orkestra_core::{
    diagnostics::Code,
    scaffold::{self, Draft, Input},
};

use super::{CRD, Error, GROUP, KATALOG, Names, SAMPLE, Scaffold, check_name, write_all};
use crate::files::find;

/// The source of a Katalog; `-` is standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file with a `CustomResourceDefinition`.
    Crd(PathBuf),
    /// A file or a folder with manifests.
    Manifests(PathBuf),
    /// A file with a `ResourceGraphDefinition` of kro.
    Kro(PathBuf),
    /// The folder of a Helm chart.
    Helm(PathBuf),
}

impl Origin {
    /// Reads and converts the source. `kind` and `group` are those of the custom resource; with several CRDs, `kind` selects
    /// one.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Convert`], and [`Error::Name`] for a name, kind or group that Kubernetes does not permit.
    pub fn convert(
        &self,
        name: Option<&str>,
        kind: Option<&str>,
        group: Option<&str>,
    ) -> Result<Draft, Error> {
        let mut draft = match self {
            Self::Crd(path) => scaffold::from_crd(&inputs(path)?, name, kind)?,
            Self::Manifests(path) => {
                scaffold::from_manifests(&inputs(path)?, name, kind, group.unwrap_or(GROUP))?
            }
            Self::Kro(path) => scaffold::from_kro(&inputs(path)?, name)?,
            Self::Helm(path) => {
                scaffold::from_helm(&chart(path)?, name, kind, group.unwrap_or(GROUP))?
            }
        };
        if name.is_none() {
            draft.name = super::shortened(&draft.name);
        }
        if matches!(self, Self::Crd(_) | Self::Kro(_)) {
            // The author has chosen the kind, so only the name is checked.
            check_name(&draft.name)?;
        } else {
            Scaffold::new(&draft.name, Some(&draft.kind.kind), Some(&draft.kind.group))?;
        }
        Ok(draft)
    }
}

/// Creates `folder`, writes the files of a draft into it, and returns their paths relative to it.
///
/// # Errors
/// [`Error::NotEmpty`] when the folder has files; [`Error::Write`]; [`Error::Unfinished`] when all files but the expected
/// objects are written, and the Katalog needs changes before it can run.
pub async fn write_draft(draft: &Draft, folder: &Path) -> Result<Vec<&'static str>, Error> {
    let names = Names {
        name: draft.name.clone(),
        kind: draft.kind.kind.clone(),
        group: draft.kind.group.clone(),
        plural: draft.kind.plural.clone(),
        singular: draft.kind.singular.clone(),
    };
    let files = vec![
        (KATALOG, draft.katalog_text()?),
        (CRD, draft.crd_text()?),
        (SAMPLE, draft.sample_text()?),
    ];
    let written = write_all(folder, &names, files).await;
    written.map_err(|why| match why {
        Error::Refused(problems) => Error::Unfinished(problems),
        other => other,
    })
}

/// Reads a file, or the YAML files of a folder.
fn inputs(path: &Path) -> Result<Vec<Input>, Error> {
    let found = find(path, &mut BTreeSet::new());
    let inputs = found.into_iter().map(|file| match file {
        Ok(file) => Ok(Input {
            name: file.name,
            text: file.text,
        }),
        Err(problem) if problem.code == Code::NoDocument => Err(Error::Read {
            path: path.to_owned(),
            why: "no YAML files found".to_owned(),
        }),
        Err(problem) => Err(Error::Read {
            path: path.to_owned(),
            why: problem.message,
        }),
    });
    inputs.collect()
}

/// Reads the files of a chart, with their paths relative to its folder. Subcharts are not included.
fn chart(folder: &Path) -> Result<Vec<Input>, Error> {
    let found = ["Chart.yaml", "values.yaml", "templates"]
        .into_iter()
        .map(|name| folder.join(name))
        .filter(|path| path.exists());
    let mut files = Vec::new();
    for path in found {
        for mut input in inputs(&path)? {
            let name = Path::new(&input.name).strip_prefix(folder).ok();
            input.name = name.map_or_else(
                || input.name.clone(),
                |name| name.to_string_lossy().replace('\\', "/"),
            );
            files.push(input);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
