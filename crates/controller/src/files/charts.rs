//! Charts that `setup.helm` names: read from a folder or an archive, or fetched from a repository or a registry, rendered in memory,
//! and applied. A chart that is fetched is fetched once for each declaration, not when a newer version is published.
//!
//! Hooks do not run, and nothing is uninstalled: the objects are applied like manifests. Random values of a chart differ from
//! process to process, as with `helm template`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use orkestra_charts::{
    Budget, Capabilities, Chart, Release, Rendered, archive::Limits, merge_values, read_values,
    render,
};
use orkestra_cluster::requests::Cluster;
use orkestra_compiler::compose::Lock;
use orkestra_language::{
    api::HelmChart,
    diagnostics::{Code, Diagnostic, FieldPath},
};
use orkestra_object::value::{self, Map, Node};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    FileError, Notice,
    manifest::{MANAGER, Manifest, apply_in, manifests, wait_for},
};
use orkestra_loader::{
    compose::{ChartReference, Fetch},
    files::beside,
};

/// The largest total size of a chart's files.
const MOST_BYTES: u64 = 32 << 20;
/// The largest number of files of a chart.
const MOST_FILES: usize = 10_000;
/// The default namespace of a release.
const NAMESPACE: &str = "default";

/// A chart that an entry names.
#[derive(Clone, Debug)]
pub(crate) struct NamedChart {
    /// Its declaration.
    pub(crate) declared: HelmChart,
    /// The file that names the chart, to which its path is relative.
    pub(crate) katalog: PathBuf,
    /// The files with values.
    pub(crate) values: Vec<Manifest>,
    /// The lock that must have the chart, if the document that names it requires one.
    pub(crate) lock: Option<Lock>,
}

/// The chart, and the namespace and the name of its release.
pub(crate) type ChartKey = (String, String, String);

/// The time and the randomness of charts.
pub(crate) struct RenderEnvironment {
    pub(crate) now: jiff::Timestamp,
    pub(crate) seed: [u8; 32],
}

/// A chart as read: its files or its archive, and its values.
struct Contents {
    files: BTreeMap<String, Vec<u8>>,
    archive: Option<Vec<u8>>,
    values: Node,
}

impl NamedChart {
    /// Returns what identifies the release among all of `ork run`.
    pub(crate) fn key(&self) -> ChartKey {
        let chart = match self.reference() {
            Some(_) => self.declared.chart.clone(),
            None => self.path().display().to_string(),
        };
        (chart, self.namespace().to_owned(), self.release())
    }

    fn path(&self) -> PathBuf {
        beside(&self.katalog, &self.declared.chart)
    }

    /// Returns the place to fetch the chart from; none for a chart on disk.
    fn reference(&self) -> Option<ChartReference<'_>> {
        ChartReference::of(&self.declared)
    }

    /// Returns a hash of everything that determines what is applied; an unreadable chart counts as empty.
    pub(crate) async fn hash(&self) -> String {
        let contents = self.read().await;
        contents.map_or_else(|_| String::new(), |contents| self.hash_of(&contents))
    }

    fn hash_of(&self, contents: &Contents) -> String {
        let HelmChart {
            repo,
            chart: _,
            release,
            namespace,
            version,
            value_files: _,
            values: _,
            create_namespace,
            wait: _,
        } = &self.declared;
        let mut text = format!(
            "{repo:?} {version:?} {release:?} {namespace:?} {create_namespace:?} {}",
            value::hash(&contents.values)
        );
        let archive = contents.archive.iter().map(|data| ("", data));
        let files = contents.files.iter();
        let files = files.map(|(path, data)| (path.as_str(), data));
        for (path, data) in files.chain(archive) {
            text.push_str(&value::hash_text(&format!("{path}\n{}", Lossy(data))));
        }
        value::hash_text(&text)
    }

    /// Reads the values, and the chart if it is on disk.
    async fn read(&self) -> Result<Contents, FileError> {
        let mut values = Node::Map(Map::default());
        for file in &self.values {
            let text = file.read().await?;
            merge_values(
                &mut values,
                &read_values(&text).map_err(|error| self.fails(error))?,
            );
        }
        if let Some(given) = &self.declared.values {
            merge_values(&mut values, given);
        }
        if self.reference().is_some() {
            return Ok(Contents {
                files: BTreeMap::new(),
                archive: None,
                values,
            });
        }
        let path = self.path();
        let is_folder = tokio::fs::metadata(&path)
            .await
            .map_err(|error| cannot_read(&path, error))?;
        let (files, archive) = if is_folder.is_dir() {
            (folder(&path).await?, None)
        } else {
            let data = tokio::fs::read(&path).await;
            let data = data.map_err(|error| cannot_read(&path, error))?;
            (BTreeMap::new(), Some(data))
        };
        Ok(Contents {
            files,
            archive,
            values,
        })
    }

    /// Renders the chart and applies its objects, unless `seen` is the hash of its contents. Returns that hash.
    pub(crate) async fn apply(
        &self,
        cluster: &Cluster,
        fetch: &dyn Fetch,
        random: &RenderEnvironment,
        seen: Option<&String>,
        notices: &mpsc::UnboundedSender<Notice>,
    ) -> Result<String, FileError> {
        let mut contents = self.read().await?;
        let hash = self.hash_of(&contents);
        if seen == Some(&hash) {
            return Ok(hash);
        }
        if let Some(reference) = self.reference() {
            let failed = |why| FileError::ChartNotFetched {
                chart: self.declared.chart.clone(),
                why,
            };
            let archive = fetch.chart(reference).await.map_err(failed)?;
            if let Some(lock) = &self.lock {
                let checked = lock.check_chart(&reference.id(), &archive);
                checked.map_err(failed)?;
            }
            contents.archive = Some(archive);
        }
        let rendered = self.rendered(contents, random)?;
        if !rendered.hooks.is_empty() {
            let _ = notices.send(Notice::Warned(vec![self.without_hooks(&rendered)]));
        }
        for object in self.objects(&rendered)? {
            let namespace = Some(self.namespace());
            let applied = apply_in(cluster, &object, MANAGER, namespace).await?;
            let _ = notices.send(Notice::Applied(applied));
        }
        wait_for(cluster, &self.declared.wait).await?;
        Ok(hash)
    }

    fn rendered(
        &self,
        contents: Contents,
        random: &RenderEnvironment,
    ) -> Result<Rendered, FileError> {
        let Contents {
            files,
            archive,
            values,
        } = contents;
        let chart = match archive {
            Some(data) => Chart::from_archive(&data, &Limits::default()),
            None => Chart::from_files(files),
        };
        let chart = chart.map_err(|error| self.fails(error))?;
        let release = Release {
            namespace: self.namespace().to_owned(),
            seed: Some(random.seed),
            now: random.now,
            ..Release::new(&self.release())
        };
        let capabilities = Capabilities::default();
        render(&chart, &values, &release, &capabilities, &Budget::default())
            .map_err(|error| self.fails(error))
    }

    /// Returns the objects in the order in which they are applied: the namespace, definitions, then everything else.
    fn objects(&self, rendered: &Rendered) -> Result<Vec<Value>, FileError> {
        let mut objects = Vec::new();
        if self.declared.create_namespace == Some(true) {
            let metadata = json!({ "name": self.namespace() });
            objects.push(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
        }
        for file in &rendered.definitions {
            let text = String::from_utf8_lossy(&file.data);
            objects.extend(manifests(Path::new(&file.path), &text)?);
        }
        for document in &rendered.documents {
            if document.object != Node::Null {
                objects.extend(manifests(Path::new(&document.source), &document.text)?);
            }
        }
        Ok(objects)
    }

    fn namespace(&self) -> &str {
        self.declared.namespace.as_deref().unwrap_or(NAMESPACE)
    }

    fn release(&self) -> String {
        let named = self.declared.release.clone();
        named.unwrap_or_else(|| {
            let chart = Path::new(&self.declared.chart);
            // The name of a fetched chart may contain dots.
            let name = match self.reference() {
                Some(_) => chart.file_name(),
                None => chart.file_stem(),
            };
            name.unwrap_or_default().to_string_lossy().into_owned()
        })
    }

    fn without_hooks(&self, rendered: &Rendered) -> Diagnostic {
        let count = rendered.hooks.len();
        let message = format!(
            "chart {}: {count} hook(s) are not run: `ork run` applies the other objects",
            self.declared.chart
        );
        Diagnostic::warning(Code::NoEffect, FieldPath::root(), message)
    }

    fn fails(&self, source: orkestra_charts::Error) -> FileError {
        FileError::Chart {
            chart: self.declared.chart.clone(),
            source: Box::new(source),
        }
    }
}

/// Reads all files of a folder, by their paths relative to it. Links are not followed.
async fn folder(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, FileError> {
    let (mut files, mut bytes) = (BTreeMap::new(), 0);
    let mut folders = vec![(root.to_owned(), String::new())];
    while let Some((path, prefix)) = folders.pop() {
        let failed = |error| cannot_read(&path, error);
        let mut entries = tokio::fs::read_dir(&path).await.map_err(failed)?;
        while let Some(entry) = entries.next_entry().await.map_err(failed)? {
            let kind = entry.file_type().await.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let relative = format!("{prefix}{name}");
            if kind.is_dir() {
                folders.push((entry.path(), format!("{relative}/")));
            } else if kind.is_file() {
                bytes += entry.metadata().await.map_err(failed)?.len();
                if bytes > MOST_BYTES || files.len() >= MOST_FILES {
                    let limit = format!("more than {MOST_BYTES} bytes or {MOST_FILES} files");
                    return Err(failed(std::io::Error::other(limit)));
                }
                let data = tokio::fs::read(entry.path()).await.map_err(failed)?;
                files.insert(relative, data);
            }
        }
    }
    Ok(files)
}

fn cannot_read(path: &Path, source: std::io::Error) -> FileError {
    FileError::Read {
        path: path.display().to_string(),
        source,
    }
}

/// Bytes as text for a hash: those that are not UTF-8 are escaped.
struct Lossy<'a>(&'a [u8]);

impl std::fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}
