//! Drafts of `ork init --from-…`. This module reads the files; core converts them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use orkestra_charts::{Budget, Capabilities, Chart, Release, render};
use orkestra_language::diagnostics::{Code, Diagnostic, Segment};
use orkestra_object::value::Node;
use orkestra_scaffold::{self, Draft, Input};

use super::{CRD, Error, GROUP, KATALOG, Names, SAMPLE, Scaffold, check_name, write_all};
use orkestra_loader::files::find;

/// The most files of a chart that are read.
const MOST_FILES: usize = 10_000;
/// The start of what a draft lists about its sample; a field and the reason follow.
const SAMPLE_LEFT: &str = "the sample: ";
/// The largest file of a chart that is read.
const MOST_BYTES: u64 = 4 << 20;

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
            Self::Crd(path) => orkestra_scaffold::from_crd(&inputs(path)?, name, kind)?,
            Self::Manifests(path) => orkestra_scaffold::from_manifests(
                &inputs(path)?,
                name,
                kind,
                group.unwrap_or(GROUP),
            )?,
            Self::Kro(path) => orkestra_scaffold::from_kro(&inputs(path)?, name)?,
            Self::Helm(path) => from_chart(path, name, kind, group.unwrap_or(GROUP))?,
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
/// objects are written, and the Katalog needs changes before it can run. A field of the sample that the draft names as one to
/// check by hand is no such change: the Katalog runs without the sample.
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
    let written = write_all(folder, &names, files, &draft.left).await;
    written.map_err(|why| match why {
        Error::Refused(problems) => Error::Unfinished(problems),
        other => other,
    })
}

/// True if a problem is that the definition refuses a field of the sample, and `left` names the field: only the author can
/// choose its value.
pub(crate) fn is_listed(left: &[String], problem: &Diagnostic) -> bool {
    if problem.code != Code::RefusedResource {
        return false;
    }
    // The list names the items of a list like the list.
    let fields = problem.path.segments().iter();
    let fields = fields.filter_map(|segment| match segment {
        Segment::Field(name) => Some(name.to_string()),
        Segment::Index(_) => None,
    });
    let path = fields.collect::<Vec<_>>().join(".");
    let hint = problem.hint.as_deref().unwrap_or_default();
    let is_rule = hint.starts_with("rule: ");
    let samples = left.iter().filter_map(|one| one.strip_prefix(SAMPLE_LEFT));
    let mut samples = samples.filter_map(|one| one.split_once(' '));
    samples.any(|(field, why)| {
        if why == "has validation rules" {
            // A rule may refuse a field below its own.
            let below = path.strip_prefix(field);
            is_rule && below.is_some_and(|below| below.is_empty() || below.starts_with('.'))
        } else {
            !is_rule && path == field
        }
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

/// Converts a chart: by its templates, as far as they read nothing but values; if most of them do more, by the objects that they
/// render with the chart's own values.
fn from_chart(
    folder: &Path,
    name: Option<&str>,
    kind: Option<&str>,
    group: &str,
) -> Result<Draft, Error> {
    let files = chart(folder)?;
    let direct = orkestra_scaffold::from_helm(&files, name, kind, group);
    let templates = files.iter().filter(|file| {
        file.name.starts_with("templates/") && !file.name.starts_with("templates/tests/")
    });
    let is_complete = |draft: &Draft| {
        let children = draft.operator_box["onReconcile"]["custom"].as_array();
        2 * children.map_or(0, Vec::len) >= templates.clone().count()
    };
    match direct {
        Ok(draft) if is_complete(&draft) => return Ok(draft),
        Ok(_) | Err(orkestra_scaffold::Error::Nothing(_)) if folder.join("Chart.yaml").exists() => {
        }
        other => return Ok(other?),
    }
    match rendered(folder, name) {
        Ok((objects, left)) => {
            // The objects are named after the release, which has the name of the chart.
            let chart = files.iter().find(|file| file.name == "Chart.yaml");
            let chart = chart.and_then(|file| name_in(&file.text));
            let name = name.or(chart);
            let mut draft = orkestra_scaffold::from_manifests(&objects, name, kind, group)?;
            draft.left.splice(0..0, left);
            Ok(draft)
        }
        // What the templates alone give is better than nothing.
        Err(why) => {
            let mut draft = direct?;
            draft.left.push(why);
            Ok(draft)
        }
    }
}

/// Returns the name in a `Chart.yaml`.
fn name_in(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix("name:"))?;
    Some(line.trim().trim_matches(['"', '\'']))
}

/// Renders a chart with its own values. Returns the objects, and what is to be checked.
fn rendered(folder: &Path, name: Option<&str>) -> Result<(Vec<Input>, Vec<String>), String> {
    let files = whole_chart(folder)?;
    let fails = |why: orkestra_charts::Error| format!("the chart cannot be rendered: {why}");
    let chart = Chart::from_files(files).map_err(fails)?;
    let release = Release::new(name.unwrap_or(&chart.metadata().name));
    let (capabilities, budget) = (Capabilities::default(), Budget::default());
    let rendered = render(&chart, &Node::Null, &release, &capabilities, &budget).map_err(fails)?;
    let mut left = vec![
        "the templates of the chart compute more than values: they are rendered with the chart's own values, and images, replicas, ports, environment variables, hosts and sizes of the result are fields of the spec".to_owned(),
    ];
    if !rendered.hooks.is_empty() {
        left.push(format!(
            "{} hook(s) of the chart are omitted",
            rendered.hooks.len()
        ));
    }
    if !rendered.definitions.is_empty() {
        let count = rendered.definitions.len();
        left.push(format!(
            "{count} file(s) in crds/ are omitted: apply them before the Katalog"
        ));
    }
    let documents = rendered.documents.into_iter();
    let documents = documents.filter(|document| document.object != Node::Null);
    let inputs = documents.map(|document| Input {
        name: document.source,
        text: document.text,
    });
    Ok((inputs.collect(), left))
}

/// Reads all files of a chart, with its subcharts.
fn whole_chart(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    let fails =
        |path: &Path, why: &std::io::Error| format!("cannot read {}: {why}", path.display());
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).map_err(|why| fails(&at, &why))? {
            let path = entry.map_err(|why| fails(&at, &why))?.path();
            let about = fs::symlink_metadata(&path).map_err(|why| fails(&path, &why))?;
            if about.is_dir() {
                folders.push(path);
            } else if about.is_file() && files.len() < MOST_FILES && about.len() <= MOST_BYTES {
                let data = fs::read(&path).map_err(|why| fails(&path, &why))?;
                let name = path.strip_prefix(folder).unwrap_or(&path);
                files.insert(name.to_string_lossy().replace('\\', "/"), data);
            }
        }
    }
    Ok(files)
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
