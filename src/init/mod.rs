//! The files that a new Katalog begins with: `ork init`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use minijinja::{Environment, context, syntax::SyntaxConfig};
use orkestra_core::{api::names, diagnostics::Diagnostics};

use crate::render::{Request, Show, render, to_yaml};

/// The templates by the files that they become. `[[ ]]` is ours: `{{ }}` is the language's.
const TEMPLATES: [(&str, &str); 5] = [
    ("katalog.yaml", include_str!("templates/katalog.yaml")),
    ("crd.yaml", include_str!("templates/crd.yaml")),
    ("samples/basic.yaml", include_str!("templates/sample.yaml")),
    ("README.md", include_str!("templates/README.md")),
    ("check.sh", include_str!("templates/check.sh")),
];
/// What the test compares with, rendered from the others.
const EXPECTED: &str = "expected/basic.yaml";
/// API group where none is named. Source: RFC 2606, names reserved for documentation.
const GROUP: &str = "example.org";
/// Longest name: names of children are made of it.
const NAME_BYTES: usize = 40;

/// What a new Katalog is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffold {
    name: String,
    kind: String,
    group: String,
}

/// Why the files of a new Katalog cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that Kubernetes does not allow.
    #[error("{what} `{text}`: {why}")]
    Name {
        /// What is named.
        what: &'static str,
        /// The name.
        text: String,
        /// Why not.
        why: String,
    },
    /// Something is there already, and nothing is overwritten.
    #[error("{} is there and not empty; choose another folder with --dir", .0.display())]
    NotEmpty(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A template of ours is wrong: a fault of Orkestra.
    #[error("a template of Orkestra's own cannot be filled in")]
    Template(#[from] minijinja::Error),
    /// The new Katalog is refused: a fault of Orkestra.
    #[error("the new Katalog is refused: {0}")]
    Refused(Diagnostics),
    /// What it makes cannot be written as YAML: a fault of Orkestra.
    #[error("what the new Katalog makes cannot be written")]
    Yaml(#[from] serde_saphyr::ser::Error),
}

impl Scaffold {
    /// A Katalog of that name. Without a kind it is the name in CamelCase: `frog-pond` gives `FrogPond`.
    ///
    /// # Errors
    /// [`Error::Name`] for a name, kind or group that Kubernetes does not allow.
    pub fn new(name: &str, kind: Option<&str>, group: Option<&str>) -> Result<Self, Error> {
        let refuse = |what, text: &str, why: String| {
            Err(Error::Name {
                what,
                text: text.to_owned(),
                why,
            })
        };
        if name.contains('.') || name.len() > NAME_BYTES {
            let why = format!("at most {NAME_BYTES} lower-case letters, digits and `-`");
            return refuse("the name", name, why);
        }
        if let Err(why) = names::check_dns1123_subdomain(name) {
            return refuse("the name", name, why);
        }
        let group = group.unwrap_or(GROUP);
        if let Err(why) = names::check_dns1123_subdomain(group) {
            return refuse("the group", group, why);
        }
        if !group.contains('.') {
            return refuse(
                "the group",
                group,
                "a domain with at least one dot".to_owned(),
            );
        }
        // API servers take definitions in these only with a note of Kubernetes' own reviewers. Source: KEP-1111.
        let is_kubernetes =
            |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
        if is_kubernetes("k8s.io") || is_kubernetes("kubernetes.io") {
            let why = "it is Kubernetes' own; take a domain of yours";
            return refuse("the group", group, why.to_owned());
        }
        let kind = kind.map_or_else(|| camel_case(name), str::to_owned);
        let is_kind = kind.starts_with(|c: char| c.is_ascii_uppercase())
            && kind.chars().all(|c| c.is_ascii_alphanumeric());
        if !is_kind || kind.len() > NAME_BYTES {
            let why = format!(
                "at most {NAME_BYTES} letters and digits, the first of them a capital letter; name one with --kind"
            );
            return refuse("the kind", &kind, why);
        }
        Ok(Self {
            name: name.to_owned(),
            kind,
            group: group.to_owned(),
        })
    }

    /// Writes the files into `folder`, which is made, and returns their paths in it.
    ///
    /// # Errors
    /// [`Error::NotEmpty`] where the folder holds anything; [`Error::Write`].
    pub async fn write(&self, folder: &Path) -> Result<Vec<&'static str>, Error> {
        if is_taken(folder) {
            return Err(Error::NotEmpty(folder.to_owned()));
        }
        let mut written = Vec::new();
        for (name, template) in TEMPLATES {
            write(folder, name, &self.fill_in(template)?)?;
            written.push(name);
        }
        make_executable(&folder.join("check.sh"))?;
        write(folder, EXPECTED, &expected(folder).await?)?;
        written.push(EXPECTED);
        Ok(written)
    }

    fn fill_in(&self, template: &str) -> Result<String, minijinja::Error> {
        let syntax = SyntaxConfig::builder()
            .variable_delimiters("[[", "]]")
            .block_delimiters("[%", "%]")
            .comment_delimiters("[#", "#]")
            .keep_trailing_newline(true)
            .build()?;
        let mut environment = Environment::new();
        environment.set_syntax(syntax);
        environment.add_filter("yaml", |text: &str| {
            serde_saphyr::to_string(&text)
                .map(|yaml| yaml.trim_end().to_owned())
                .unwrap_or_default()
        });
        let singular = self.kind.to_lowercase();
        environment.render_str(
            template,
            context! {
                name => &self.name, kind => &self.kind, group => &self.group,
                plural => plural(&singular), singular,
            },
        )
    }
}

/// What the samples make: the test compares with it.
async fn expected(folder: &Path) -> Result<String, Error> {
    let rendered = render(&Request {
        katalogs: vec![folder.join("katalog.yaml")],
        resources: vec![folder.join("samples/basic.yaml")],
        status: None,
        children: Vec::new(),
        calls: None,
        now: Timestamp::UNIX_EPOCH,
    })
    .await;
    if rendered.problems.has_errors() {
        return Err(Error::Refused(rendered.problems));
    }
    Ok(to_yaml(&rendered.passes, Show::default())?)
}

fn is_taken(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
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

fn camel_case(name: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    };
    name.split('-').map(capital).collect()
}

/// The plural of an English word, as far as a rule gives it; the author may know better.
fn plural(word: &str) -> String {
    let vowel = |c: char| "aeiou".contains(c);
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(vowel) => format!("{stem}ies"),
        _ if ["s", "x", "z", "ch", "sh"]
            .iter()
            .any(|end| word.ends_with(end)) =>
        {
            format!("{word}es")
        }
        _ => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::files::validate;

    #[tokio::test]
    async fn what_is_made_is_valid_and_renders_to_what_it_expects() {
        for (name, kind, group) in [
            ("frog-pond", None, None),
            ("null", None, Some("water.example")),
            ("on", Some("True"), Some("1.2")),
            ("3d", Some("Box"), None),
            ("city", None, None),
            ("a", None, None),
            ("x23456789-123456789-123456789-123456789", None, None),
        ] {
            let folder = TempDir::new().unwrap();
            let root = folder.path().join("deep").join(name);
            let written = Scaffold::new(name, kind, group)
                .unwrap()
                .write(&root)
                .await
                .unwrap();
            assert!(
                written.iter().all(|file| root.join(file).exists()),
                "{name}"
            );
            let found = validate(std::slice::from_ref(&root)).await;
            assert!(found.problems.is_empty(), "{name}: {}", found.problems);
            assert_eq!(found.katalogs.len(), 1, "{name}");
            let made = fs::read_to_string(root.join(EXPECTED)).unwrap();
            for part in ["kind: Deployment", "kind: Service", "replicas: 2"] {
                assert!(made.contains(part), "{name}: {made}");
            }
            for (file, _) in TEMPLATES {
                let text = fs::read_to_string(root.join(file)).unwrap();
                assert!(!text.contains("[["), "{file}: {text}");
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_overwritten() {
        let folder = TempDir::new().unwrap();
        let scaffold = Scaffold::new("pond", None, None).unwrap();
        scaffold.write(folder.path()).await.unwrap();
        fs::write(folder.path().join("katalog.yaml"), "mine").unwrap();
        let again = scaffold.write(folder.path()).await;
        assert!(matches!(again, Err(Error::NotEmpty(_))), "{again:?}");
        let file = folder.path().join("katalog.yaml");
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        assert!(scaffold.write(&file).await.is_err(), "a file is no folder");
    }

    #[test]
    fn names_that_kubernetes_refuses_are_told() {
        let long = "x".repeat(41);
        for (name, kind, group) in [
            ("Pond", None, None),
            ("", None, None),
            ("a.b", None, None),
            (&*long, None, None),
            ("-x", None, None),
            ("3d", None, None),
            ("pond", Some("pond"), None),
            ("pond", Some("Po nd"), None),
            ("pond", None, Some("nodots")),
            ("pond", None, Some("k8s.io")),
            ("pond", None, Some("water.kubernetes.io")),
            ("pond", None, Some("UPPER.example")),
        ] {
            let made = Scaffold::new(name, kind, group);
            assert!(
                matches!(made, Err(Error::Name { .. })),
                "{name} {kind:?} {group:?}"
            );
        }
    }

    #[test]
    fn plurals_follow_the_rule() {
        for (one, many) in [
            ("pond", "ponds"),
            ("city", "cities"),
            ("key", "keys"),
            ("box", "boxes"),
            ("branch", "branches"),
        ] {
            assert_eq!(plural(one), many);
        }
        assert_eq!(camel_case("frog-pond"), "FrogPond");
    }
}
