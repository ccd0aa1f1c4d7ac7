//! What a composition asks for: one request for each source.
//!
//! One file: each kind of source has its request and its identity, side by side.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::OciReference;
use crate::scope::beside;
use orkestra_language::api::duration::Span;
use orkestra_language::api::sources::{
    AnySource, ConfigMapSource, FileSource, GitSource, HelmSource, KatalogSelector, KatalogSource,
    RegistrySource, SourceCredentials, Sources, UrlSource, Verify,
};
use orkestra_language::diagnostics::{Code, Diagnostic, FieldPath};
use orkestra_language::tree::Tree;
use orkestra_object::value::{self, Node};

/// The default of `ref` and of `branch`.
const MAIN: &str = "main";
/// The default of `path` in Git repositories, and the Katalog of an artifact.
pub(crate) const KATALOG: &str = "katalog.yaml";
/// The Komposer of an artifact.
pub(crate) const KOMPOSER: &str = "komposer.yaml";

/// One source to fetch.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceRequest {
    /// The identity: the same for equal sources, without credentials. The key of [`super::Artifacts`], of `komposer.lock` and
    /// of the status.
    pub id: String,
    /// What to fetch.
    pub kind: RequestKind,
    /// The document that declares it: relative paths are relative to it.
    pub base: Base,
    /// Credentials.
    pub auth: Option<SourceCredentials>,
    /// Required signatures.
    pub verify: Option<Verify>,
    /// How often to check for a new revision: its own, or that of the whole composition; `None` is the default.
    pub interval: Option<Span>,
    /// Where it is declared.
    pub place: DeclarationSite,
}

/// What to fetch.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestKind {
    /// An artifact of a registry.
    Registry {
        /// The reference as declared, see [`OciReference::parse`]; a variable `$NAME` is not expanded yet.
        url: String,
        /// True if its `komposer.yaml` is wanted instead of its Katalogs.
        use_komposer: bool,
    },
    /// A file on disk.
    File {
        /// Its path, from here.
        path: String,
    },
    /// A file of a server.
    Url {
        /// The HTTPS URL, or `$NAME` for a variable with a path or URL.
        url: String,
    },
    /// Files of a Git repository.
    Git {
        /// The URL of the repository; it may contain `$NAME`.
        url: String,
        /// Branch, tag or commit.
        reference: String,
        /// The file, or the folder whose YAML files are wanted.
        path: String,
    },
    /// The documents that a chart renders.
    Helm {
        /// The chart repository; it may contain `$NAME`.
        repo: String,
        /// The chart.
        chart: String,
        /// The version or range.
        version: Option<String>,
        /// The chart's folder in a Git repository.
        path: Option<String>,
        /// Files with values, as declared.
        value_files: Vec<String>,
        /// Values.
        values: Option<Node>,
    },
    /// Keys of a `ConfigMap`.
    ConfigMap {
        /// Its name, in the namespace of the composition.
        name: String,
        /// The key; `None` means all that end in `.yaml`.
        key: Option<String>,
    },
    /// Katalogs of the namespace of the composition.
    Katalogs {
        /// The name.
        name: Option<String>,
        /// The labels, if no name is given.
        selector: Option<KatalogSelector>,
    },
}

/// The document that declares a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Base {
    /// A file on disk: its path.
    File(String),
    /// A file of an artifact.
    Artifact {
        /// The identity of the artifact's request.
        id: String,
        /// The file's name in it.
        name: String,
    },
    /// An object of the cluster in this namespace: it has no files.
    Cluster {
        /// The namespace.
        namespace: String,
    },
}

/// A place in a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclarationSite {
    /// The document's name in messages; `None` for an object of the cluster.
    pub file: Option<String>,
    /// The field.
    pub path: FieldPath,
    /// Line and column, from 1.
    pub position: Option<(u32, u32)>,
}

impl SourceRequest {
    /// Returns an error about this source, at its place: it could not be fetched, or is refused.
    pub fn problem(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        let mut problem = Diagnostic::error(code, self.place.path.clone(), message);
        problem.file.clone_from(&self.place.file);
        problem.line = self.place.position.map(|(line, _)| line);
        problem.column = self.place.position.map(|(_, column)| column);
        problem
    }

    /// Returns the request with `$NAME` and `${NAME}` replaced in URLs; the identity stays.
    ///
    /// # Errors
    /// The name of the first variable that `lookup` does not have.
    pub fn expanded(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut request = self.clone();
        match &mut request.kind {
            RequestKind::Registry { url, .. } | RequestKind::Git { url, .. } => {
                *url = expand(url, &lookup)?;
            }
            RequestKind::Helm { repo, .. } => *repo = expand(repo, &lookup)?,
            RequestKind::Url { url } => {
                let expanded = expand(url, &lookup)?;
                request.kind = match &self.base {
                    Base::File(file) if !expanded.contains("://") => RequestKind::File {
                        path: beside(file, &expanded),
                    },
                    _ => RequestKind::Url { url: expanded },
                };
            }
            RequestKind::File { .. }
            | RequestKind::ConfigMap { .. }
            | RequestKind::Katalogs { .. } => {}
        }
        Ok(request)
    }

    /// Returns the identity without what changes from version to version.
    pub(crate) fn stable(&self) -> String {
        match &self.kind {
            RequestKind::Registry { url, .. } => match OciReference::parse(url) {
                Ok(reference) => reference.repository(),
                Err(_) => self.id.clone(),
            },
            RequestKind::File { path } => path.clone(),
            RequestKind::Git { url, .. } => url.clone(),
            RequestKind::Helm { repo, chart, .. } => format!("{repo}/{chart}"),
            _ => self.id.clone(),
        }
    }

    /// Returns what the source must have, for messages.
    pub(crate) fn wanted(&self) -> String {
        match &self.kind {
            RequestKind::Registry {
                use_komposer: true, ..
            } => format!("`{KOMPOSER}`"),
            RequestKind::Git { path, .. } => format!("`{path}`"),
            _ => "Katalog".to_owned(),
        }
    }

    /// True if a file of the artifact is one of the wanted documents; the others are for references between them. `names` are
    /// the names of all files.
    pub(crate) fn wants<'a>(&self, name: &str, mut names: impl Iterator<Item = &'a str>) -> bool {
        match &self.kind {
            RequestKind::Registry { use_komposer, .. } => {
                let wanted = if *use_komposer { KOMPOSER } else { KATALOG };
                let mut has_none = || !names.any(|name| name == KATALOG);
                name == wanted || (!use_komposer && is_yaml(name) && has_none())
            }
            RequestKind::Git { path, .. } => {
                let path = path.trim_start_matches("./").trim_end_matches('/');
                let below = name.strip_prefix(path);
                let is_below = path == "." || below.is_some_and(|rest| rest.starts_with('/'));
                name == path || (is_below && is_yaml(name))
            }
            _ => true,
        }
    }
}

impl fmt::Display for SourceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

fn is_yaml(name: &str) -> bool {
    [".yaml", ".yml", ".json"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Replaces `$NAME` and `${NAME}`.
fn expand(text: &str, lookup: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, behind) = if let Some(braced) = after
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
        {
            braced
        } else {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len()))
        };
        out.push_str(&lookup(name).ok_or_else(|| name.to_owned())?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// What all requests of a document share.
pub(crate) struct RequestContext<'a> {
    pub(crate) file: Option<&'a str>,
    pub(crate) tree: &'a Tree,
    pub(crate) base: &'a Base,
    pub(crate) interval: Option<Span>,
}

/// Returns the requests of a document, in the order in which they are merged.
pub(crate) fn requests(sources: &Sources, declaring: &RequestContext<'_>) -> Vec<SourceRequest> {
    let at = FieldPath::root().field("spec").field("sources");
    let mut requests = Vec::with_capacity(sources.len());
    for (list, index, source) in sources.each() {
        let at = at.field(list).index(index);
        let request = match source {
            AnySource::Registry(source) => {
                declaring.registry(&at, source, &mut requests);
                continue;
            }
            AnySource::File(source) => declaring.file(&at, source),
            AnySource::Helm(source) => declaring.helm(&at, source),
            AnySource::Git(source) => declaring.git(&at, source),
            AnySource::ConfigMap(source) => declaring.config_map(&at, source),
            AnySource::Katalogs(source) => declaring.katalogs(&at, source),
        };
        requests.push(request);
    }
    requests
}

impl RequestContext<'_> {
    fn request(&self, at: &FieldPath, id: String, kind: RequestKind) -> SourceRequest {
        let span = self.tree.locate(at);
        SourceRequest {
            id,
            kind,
            base: self.base.clone(),
            auth: None,
            verify: None,
            interval: self.interval,
            place: DeclarationSite {
                file: self.file.map(str::to_owned),
                path: at.clone(),
                position: span.map(|span| (span.line, span.column)),
            },
        }
    }

    fn registry(&self, at: &FieldPath, source: &RegistrySource, requests: &mut Vec<SourceRequest>) {
        let url = source.url.trim();
        if source.katalog.is_empty() {
            let use_komposer = source.use_komposer == Some(true);
            let mut id = match OciReference::parse(url) {
                Ok(reference) => reference.to_string(),
                Err(_) => format!("oci://{}", url.trim_start_matches("oci://")),
            };
            if use_komposer {
                id.push_str("#komposer");
            }
            let kind = RequestKind::Registry {
                url: url.to_owned(),
                use_komposer,
            };
            requests.push(SourceRequest {
                auth: source.auth.clone(),
                verify: source.verify.clone(),
                interval: source.interval.or(self.interval),
                ..self.request(at, id, kind)
            });
            return;
        }
        for (name, katalog) in &source.katalog {
            let git = GitSource {
                url: url.to_owned(),
                ref_: katalog.branch.clone(),
                path: Some(format!("{name}/{KATALOG}")),
                auth: source.auth.clone(),
                interval: source.interval,
            };
            requests.push(self.git(at, &git));
        }
    }

    fn file(&self, at: &FieldPath, source: &FileSource) -> SourceRequest {
        let (url, auth, interval) = match source {
            FileSource::Path(url) => (url, None, None),
            FileSource::Url(UrlSource {
                url,
                auth,
                interval,
            }) => (url, auth.clone(), *interval),
        };
        let url = url.trim();
        let (id, kind) = match self.base {
            _ if url.contains("://") || url.starts_with('$') => {
                let url = url.to_owned();
                (url.clone(), RequestKind::Url { url })
            }
            Base::File(file) => {
                let id = beside("", url);
                let path = beside(file, url);
                (id, RequestKind::File { path })
            }
            Base::Artifact { id, name } => {
                let path = beside(name, url);
                (format!("{id}//{path}"), RequestKind::File { path })
            }
            Base::Cluster { .. } => {
                let path = beside("", url);
                (path.clone(), RequestKind::File { path })
            }
        };
        SourceRequest {
            auth,
            interval: interval.or(self.interval),
            ..self.request(at, id, kind)
        }
    }

    fn git(&self, at: &FieldPath, source: &GitSource) -> SourceRequest {
        let GitSource {
            url,
            ref_,
            path,
            auth,
            interval,
        } = source;
        let url = url.trim();
        let reference = ref_.as_deref().unwrap_or(MAIN).trim();
        let path = path.as_deref().unwrap_or(KATALOG).trim();
        let id = format!("git+{url}@{reference}//{path}");
        let kind = RequestKind::Git {
            url: url.to_owned(),
            reference: reference.to_owned(),
            path: path.to_owned(),
        };
        SourceRequest {
            auth: auth.clone(),
            interval: interval.or(self.interval),
            ..self.request(at, id, kind)
        }
    }

    fn helm(&self, at: &FieldPath, source: &HelmSource) -> SourceRequest {
        let HelmSource {
            repo,
            chart,
            version,
            path,
            value_files,
            values,
            auth,
            interval,
            verify,
        } = source;
        let mut id = format!(
            "helm+{}/{}@{}",
            repo.trim().trim_end_matches('/'),
            chart.trim(),
            version.as_deref().unwrap_or("*").trim()
        );
        if let Some(path) = path {
            id.push_str("//");
            id.push_str(path);
        }
        if values.is_some() || !value_files.is_empty() {
            // Two releases of one chart are two sources.
            let files = value_files.iter().map(|file| Node::from(&**file)).collect();
            let given = Node::List(files);
            let all = [given, values.clone().unwrap_or_default()];
            let mut hash = value::hash(&Node::List(all.into()));
            hash.truncate(8);
            id.push_str("#values-");
            id.push_str(&hash);
        }
        let kind = RequestKind::Helm {
            repo: repo.trim().to_owned(),
            chart: chart.trim().to_owned(),
            version: version.clone(),
            path: path.clone(),
            value_files: value_files.clone(),
            values: values.clone(),
        };
        SourceRequest {
            auth: auth.clone(),
            verify: verify.clone(),
            interval: interval.or(self.interval),
            ..self.request(at, id, kind)
        }
    }

    fn config_map(&self, at: &FieldPath, source: &ConfigMapSource) -> SourceRequest {
        let ConfigMapSource { name, key } = source;
        let mut id = format!("configmap/{name}");
        if let Some(key) = key {
            id.push('/');
            id.push_str(key);
        }
        let kind = RequestKind::ConfigMap {
            name: name.clone(),
            key: key.clone(),
        };
        self.request(at, id, kind)
    }

    fn katalogs(&self, at: &FieldPath, source: &KatalogSource) -> SourceRequest {
        let KatalogSource {
            name,
            label_selector,
        } = source;
        let id = match (name, label_selector) {
            (Some(name), _) => format!("katalog/{name}"),
            (None, selector) => format!("katalogs?{}", selector_text(selector.as_ref())),
        };
        let kind = RequestKind::Katalogs {
            name: name.clone(),
            selector: label_selector.clone().filter(|_| name.is_none()),
        };
        self.request(at, id, kind)
    }
}

/// Returns a selector as a text with a fixed order.
fn selector_text(selector: Option<&KatalogSelector>) -> String {
    let Some(KatalogSelector {
        match_labels,
        match_expressions,
    }) = selector
    else {
        return String::new();
    };
    let labels: &BTreeMap<String, String> = match_labels;
    let mut texts: Vec<String> = (labels.iter())
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let mut expressions: Vec<String> = (match_expressions.iter())
        .map(|one| format!("{} {:?} ({})", one.key, one.operator, one.values.join(",")))
        .collect();
    expressions.sort();
    texts.extend(expressions);
    texts.join(",")
}
