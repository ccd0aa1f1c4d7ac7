//! `ork init` creates the files of a new Katalog.
//!
//! ```text
//!  Scaffold (a name) ───────────────► templates ─┐
//!  core::scaffold (existing files) ─► Draft ─────┴── write ──► a folder
//! ```

mod draft;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use orkestra_language::{
    api::names,
    diagnostics::Diagnostics,
    document::{DocumentKind, read_stream},
    reference,
};
use orkestra_plan::guess_plural;
use orkestra_scaffold::{self, camel_case};

use self::draft::is_listed;
pub use self::draft::{Origin, write_draft};
use crate::render::{RenderRequest, Show, render, to_yaml};
use orkestra_loader::files::definitions_yaml;

/// The Katalog.
const KATALOG: &str = "katalog.yaml";
/// The CRD of its kind.
const CRD: &str = "crd.yaml";
/// The first custom resource.
const SAMPLE: &str = "samples/basic.yaml";
/// The templates for a Katalog that starts from a name. They use `[[ ]]`, because Katalogs use `{{ }}`.
const TEMPLATES: [(&str, &str); 2] = [
    (KATALOG, include_str!("templates/katalog.yaml")),
    (SAMPLE, include_str!("templates/sample.yaml")),
];
/// The templates of the files in every folder.
const COMMON: [(&str, &str); 2] = [
    ("README.md", include_str!("templates/README.md")),
    ("check.sh", include_str!("templates/check.sh")),
];
/// The schema that the first line of the Katalog names, for editors.
const SCHEMA: &str = "katalog.schema.json";
/// The file that the test compares with, rendered from the other files.
const EXPECTED: &str = "expected/basic.yaml";
/// The default API group. Source: RFC 2606, names reserved for documentation.
const GROUP: &str = "example.org";
/// The maximum length of a name, because names of children are derived from it.
const NAME_BYTES: usize = 40;

/// The names of a new Katalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffold {
    name: String,
    kind: String,
    group: String,
}

/// Why the files of a new Katalog cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that Kubernetes does not permit.
    #[error("{what} `{text}`: {why}")]
    Name {
        /// The named item.
        what: &'static str,
        /// The name.
        text: String,
        /// The reason.
        why: String,
    },
    /// The folder has files, and nothing is overwritten.
    #[error("{} is not empty: choose another directory with --dir", .0.display())]
    NotEmpty(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A source file cannot be read.
    #[error("cannot read {}: {why}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The source files cannot be converted.
    #[error(transparent)]
    Convert(#[from] orkestra_scaffold::Error),
    /// The files are written, but the Katalog cannot run unchanged.
    #[error("the files are written, but the Katalog needs changes before it can run: {0}")]
    Unfinished(Diagnostics),
    /// A bug in Orkestra: the new Katalog is invalid.
    #[error("the new Katalog is invalid: {0}")]
    Refused(Diagnostics),
    /// A bug in Orkestra: the children of the sample cannot be written as YAML.
    #[error("cannot write the expected objects as YAML")]
    Yaml(#[from] serde_saphyr::ser::Error),
    /// A bug in Orkestra: the schema for editors cannot be written as JSON.
    #[error("cannot write the schema of Katalogs")]
    Schema(#[from] serde_json::Error),
}

impl Scaffold {
    /// A Katalog of that name. The default kind is the name in CamelCase: `frog-pond` gives `FrogPond`.
    ///
    /// # Errors
    /// [`Error::Name`] for a name, kind or group that Kubernetes does not permit.
    pub fn new(name: &str, kind: Option<&str>, group: Option<&str>) -> Result<Self, Error> {
        check_name(name)?;
        let group = group.unwrap_or(GROUP);
        if let Err(why) = names::check_dns1123_subdomain(group) {
            return refuse("the group", group, why);
        }
        if !group.contains('.') {
            return refuse(
                "the group",
                group,
                "expected a domain with at least one dot".to_owned(),
            );
        }
        // API servers accept CRDs in these groups only with an annotation by Kubernetes' reviewers. Source: KEP-1111.
        let is_kubernetes =
            |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
        if is_kubernetes("k8s.io") || is_kubernetes("kubernetes.io") {
            let why = "reserved for Kubernetes; use a domain that you own";
            return refuse("the group", group, why.to_owned());
        }
        let kind = kind.map_or_else(|| camel_case(name), str::to_owned);
        let is_kind = kind.starts_with(|c: char| c.is_ascii_uppercase())
            && kind.chars().all(|c| c.is_ascii_alphanumeric());
        if !is_kind || kind.len() > NAME_BYTES {
            let why = format!(
                "expected at most {NAME_BYTES} letters and digits, starting with a capital letter; set one with --kind"
            );
            return refuse("the kind", &kind, why);
        }
        Ok(Self {
            name: name.to_owned(),
            kind,
            group: group.to_owned(),
        })
    }

    /// Creates `folder`, writes the files into it, and returns their paths relative to it.
    ///
    /// # Errors
    /// [`Error::NotEmpty`] when the folder has files; [`Error::Write`].
    pub async fn write(&self, folder: &Path) -> Result<Vec<&'static str>, Error> {
        let names = self.names();
        let mut files = Vec::new();
        for (name, template) in TEMPLATES {
            files.push((name, fill_in(template, &names)));
        }
        files.insert(1, (CRD, generated(&files[0].1)?));
        write_all(folder, &names, files, &[]).await
    }

    fn names(&self) -> Names {
        let singular = self.kind.to_lowercase();
        Names {
            name: self.name.clone(),
            kind: self.kind.clone(),
            group: self.group.clone(),
            plural: guess_plural(&singular),
            singular,
        }
    }
}

/// Returns the definition that the Katalog declares with `schema`.
fn generated(katalog: &str) -> Result<String, Error> {
    let (documents, _) = read_stream(KATALOG, katalog).map_err(Error::Refused)?;
    let specs = documents.katalogs.iter().map(|document| &document.spec);
    let texts: Result<Vec<String>, _> = specs.map(definitions_yaml).collect();
    Ok(texts?.concat())
}

/// Checks that the name is valid for a Katalog and for the names of children that are derived from it.
fn check_name(name: &str) -> Result<(), Error> {
    if name.contains('.') || name.len() > NAME_BYTES {
        let why = format!("expected at most {NAME_BYTES} lower-case letters, digits and `-`");
        return refuse("the name", name, why);
    }
    names::check_dns1123_subdomain(name).or_else(|why| refuse("the name", name, why))
}

fn refuse<T>(what: &'static str, text: &str, why: String) -> Result<T, Error> {
    Err(Error::Name {
        what,
        text: text.to_owned(),
        why,
    })
}

/// Shortens a name to a valid name of a Katalog.
fn shortened(name: &str) -> String {
    let mut name = name.replace('.', "-");
    name.truncate(name.floor_char_boundary(NAME_BYTES));
    name.truncate(name.trim_end_matches('-').len());
    name
}

/// The variables of the templates.
#[derive(Debug)]
struct Names {
    /// The name of the Katalog.
    name: String,
    kind: String,
    group: String,
    plural: String,
    singular: String,
}

/// Derives the name of a Katalog from the name of its folder. Returns `None` if that is not possible.
pub fn name_of_folder(folder: &Path) -> Option<String> {
    let folder = std::path::absolute(folder).ok()?;
    let name = folder.file_name()?.to_str()?.to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut name = words.join("-");
    name.truncate(NAME_BYTES);
    let name = name.trim_end_matches('-');
    // The kind is derived from it, so it must start with a letter.
    name.starts_with(|c: char| c.is_ascii_lowercase())
        .then(|| name.to_owned())
}

fn fill_in(template: &str, names: &Names) -> String {
    let Names {
        name,
        kind,
        group,
        plural,
        singular,
    } = names;
    let names = [
        ("name", name),
        ("kind", kind),
        ("group", group),
        ("plural", plural),
        ("singular", singular),
    ];
    let mut text = template.to_owned();
    for (key, value) in names {
        let yaml = serde_saphyr::to_string(value).unwrap_or_default();
        text = text
            .replace(&format!("[[ {key} ]]"), value)
            .replace(&format!("[[ {key}|yaml ]]"), yaml.trim_end());
    }
    text
}

/// Writes the files of a Katalog, and the files that every folder has in addition.
///
/// `left` is the list of what is to be checked by hand.
async fn write_all(
    folder: &Path,
    names: &Names,
    mut files: Vec<(&'static str, String)>,
    left: &[String],
) -> Result<Vec<&'static str>, Error> {
    if is_taken(folder) {
        return Err(Error::NotEmpty(folder.to_owned()));
    }
    for (name, template) in COMMON {
        files.push((name, fill_in(template, names)));
    }
    let schema = reference::json_schema(DocumentKind::Katalog);
    files.push((SCHEMA, serde_json::to_string_pretty(&schema)? + "\n"));
    for (name, text) in &files {
        write(folder, name, text)?;
    }
    make_executable(&folder.join("check.sh"))?;
    write(folder, EXPECTED, &expected(folder, left).await?)?;
    let written = files.into_iter().map(|(name, _)| name);
    Ok(written.chain([EXPECTED]).collect())
}

/// Renders the children of the sample with the Katalog in the folder. Fields of the sample that `left` names may be invalid.
async fn expected(folder: &Path, left: &[String]) -> Result<String, Error> {
    let mut rendered = render(&RenderRequest {
        katalogs: vec![folder.join(KATALOG)],
        resources: vec![folder.join(SAMPLE)],
        status: None,
        children: Vec::new(),
        cross: Vec::new(),
        calls: None,
        now: Timestamp::UNIX_EPOCH,
        fetch: std::sync::Arc::new(orkestra_loader::compose::DiskFiles),
    })
    .await;
    let problems = &mut rendered.problems.0;
    problems.retain(|problem| !is_listed(left, problem));
    if rendered.problems.has_errors() {
        return Err(Error::Refused(rendered.problems));
    }
    Ok(to_yaml(&rendered.passes, Show::default())?)
}

fn is_taken(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        // Hidden files, such as those of Git, are ignored: none of them is ever overwritten.
        Ok(mut entries) => entries.any(|entry| {
            entry.is_ok_and(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        }),
        Err(why) => why.kind() != io::ErrorKind::NotFound,
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Error> {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(&path, text))
        .map_err(|source| Error::Write { path, source })
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), Error> {
    Ok(())
}

#[cfg(test)]
mod tests;
