//! A chart in memory, and its assembly from files.

use std::collections::BTreeMap;

use orkestra_object::value::Node;

use crate::archive::{self, File, Limits};
use crate::error::Error;
use crate::ignore::Rules;
use crate::metadata::Metadata;
use crate::values;

/// The maximum nesting of charts.
const MOST_LEVELS: usize = 8;

/// A chart with its dependencies, loaded and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub(crate) metadata: Metadata,
    pub(crate) values: Node,
    pub(crate) schema: Option<Node>,
    pub(crate) templates: Vec<File>,
    pub(crate) files: Vec<File>,
    pub(crate) dependencies: Vec<Chart>,
}

impl Chart {
    /// Loads a chart from the files of its folder, by their relative paths. Dependencies are in `charts/`, as folders or
    /// archives.
    ///
    /// `.helmignore` excludes files, as in helm.
    ///
    /// # Errors
    /// `Chart.yaml`, another file that must be read, or a dependency is missing or malformed.
    pub fn from_files<P: Into<String>, D: Into<Vec<u8>>>(
        files: impl IntoIterator<Item = (P, D)>,
    ) -> Result<Chart, Error> {
        let mut files: BTreeMap<String, Vec<u8>> = files
            .into_iter()
            .map(|(path, data)| (path.into(), data.into()))
            .collect();
        let rules = match files.get(".helmignore") {
            Some(data) => Rules::parse(&text(".helmignore", data)?)?,
            None => Rules::default(),
        };
        files.retain(|path, _| !rules.ignores(path));
        Chart::load(files, &mut Limits::default(), 0)
    }

    /// Loads a chart from an archive, a `.tgz`.
    ///
    /// # Errors
    /// The errors of [`Chart::from_files`] and of [`archive::unpack`].
    pub fn from_archive(bytes: &[u8], limits: &Limits) -> Result<Chart, Error> {
        let mut limits = limits.clone();
        Chart::load_archive(bytes, &mut limits, 0)
    }

    /// Returns the contents of `Chart.yaml`.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the default values.
    pub fn values(&self) -> &Node {
        &self.values
    }

    fn load_archive(bytes: &[u8], limits: &mut Limits, level: usize) -> Result<Chart, Error> {
        let unpacked = archive::unpack(bytes, limits)?;
        // Charts inside charts share the same limits.
        limits.bytes -= unpacked
            .iter()
            .map(|file| file.data.len() as u64)
            .sum::<u64>()
            .min(limits.bytes);
        limits.files -= unpacked.len().min(limits.files);
        let inner = unpacked.into_iter().filter_map(|file| {
            let (_, path) = file.path.split_once('/')?;
            Some((path.to_owned(), file.data))
        });
        Chart::load(inner.collect(), limits, level)
    }

    fn load(
        files: BTreeMap<String, Vec<u8>>,
        limits: &mut Limits,
        level: usize,
    ) -> Result<Chart, Error> {
        if level > MOST_LEVELS {
            let message = format!("charts are nested deeper than {MOST_LEVELS} levels");
            return Err(Error::file("charts", message));
        }
        let manifest = files.get("Chart.yaml");
        let manifest = manifest.ok_or_else(|| Error::file("Chart.yaml", "the file is missing"))?;
        let mut chart = Chart {
            metadata: Metadata::read("Chart.yaml", &text("Chart.yaml", manifest)?)?,
            values: Node::Map(orkestra_object::value::Map::default()),
            schema: None,
            templates: Vec::new(),
            files: Vec::new(),
            dependencies: Vec::new(),
        };
        let mut packed: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
        for (path, data) in files {
            match path.as_str() {
                "Chart.yaml" | "Chart.lock" => {}
                "values.yaml" => {
                    chart.values = values::read_values(&text(&path, &data)?)
                        .map_err(|e| in_file(&path, &e))?;
                }
                "values.schema.json" => {
                    let read = serde_json::from_slice(&data);
                    chart.schema = Some(read.map_err(|error| Error::file(path, error))?);
                }
                "requirements.yaml" => {
                    chart
                        .metadata
                        .read_requirements(&path, &text(&path, &data)?)?;
                    if chart.metadata.api_version == "v1" {
                        chart.files.push(File { path, data });
                    }
                }
                "requirements.lock" if chart.metadata.api_version != "v1" => {}
                name if name.starts_with("templates/") => chart.templates.push(File { path, data }),
                name if name.starts_with("charts/") && !name.ends_with(".prov") => {
                    let rest = &name["charts/".len()..];
                    let (name, inner) = rest.split_once('/').unwrap_or((rest, ""));
                    let files = packed.entry(name.to_owned()).or_default();
                    files.insert(inner.to_owned(), data);
                }
                _ => chart.files.push(File { path, data }),
            }
        }
        for (name, files) in packed {
            if name.starts_with(['_', '.']) {
                continue;
            }
            let loaded = Chart::load_dependency(&name, files, limits, level + 1);
            let loaded = loaded.map_err(|error| in_file(&format!("charts/{name}"), &error))?;
            chart.dependencies.push(loaded);
        }
        Ok(chart)
    }

    /// Loads an entry of `charts/`: a packed chart, or the files of a folder.
    fn load_dependency(
        name: &str,
        mut files: BTreeMap<String, Vec<u8>>,
        limits: &mut Limits,
        level: usize,
    ) -> Result<Chart, Error> {
        match files.remove("") {
            Some(data) if name.ends_with(".tgz") => Chart::load_archive(&data, limits, level),
            Some(_) => Chart::load(BTreeMap::new(), limits, level),
            None if name.ends_with(".tgz") => {
                let message = "expected a packed chart, found a folder";
                Err(Error::file("", message))
            }
            None => Chart::load(files, limits, level),
        }
    }

    /// Collects the CRDs in `crds/`, with their paths starting with the chart's name.
    pub(crate) fn definitions(&self, path: &str, found: &mut Vec<File>) {
        let is_manifest = |name: &str| {
            [".yaml", ".yml", ".json"]
                .iter()
                .any(|ending| name.ends_with(ending))
        };
        let files = self.files.iter();
        for file in files.filter(|f| f.path.starts_with("crds/") && is_manifest(&f.path)) {
            found.push(File {
                path: format!("{path}/{}", file.path),
                data: file.data.clone(),
            });
        }
    }
}

/// Returns an error of a file inside another.
fn in_file(file: &str, error: &Error) -> Error {
    match error {
        Error::File {
            file: inner,
            message,
        } => {
            let separator = if inner.is_empty() { "" } else { "/" };
            Error::file(format!("{file}{separator}{inner}"), message)
        }
        other => Error::file(file, other),
    }
}

/// Returns the text of a file that must be UTF-8; a byte order mark is dropped.
fn text(path: &str, data: &[u8]) -> Result<String, Error> {
    let text = std::str::from_utf8(data).map_err(|_| Error::file(path, "the file is not UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())
}
