//! `Chart.yaml`.

use std::collections::BTreeSet;

use orkestra_object::value::Node;
use orkestra_template::go::parse_version;

use crate::error::Error;
use crate::value::{Elem, Entries, Table, Value};
use crate::yaml;

/// The contents of `Chart.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `v1` or `v2`; the default is `v1`.
    pub api_version: String,
    /// The chart's name, or its alias as a dependency.
    pub name: String,
    /// The chart's version.
    pub version: String,
    /// The version of the application that the chart installs.
    pub app_version: String,
    /// A constraint on the version of Kubernetes; empty for none.
    pub kube_version: String,
    /// `application`, `library` or empty.
    pub kind: String,
    /// One sentence.
    pub description: String,
    /// Whether the chart is no longer maintained.
    pub deprecated: bool,
    /// The charts that this one needs.
    pub dependencies: Vec<Dependency>,
    home: String,
    icon: String,
    condition: String,
    tags: String,
    sources: Vec<String>,
    keywords: Vec<String>,
    maintainers: Vec<[String; 3]>,
    annotations: Option<Vec<(String, String)>>,
}

/// One entry of `dependencies`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    /// The chart's name.
    pub name: String,
    /// A constraint on its version.
    pub version: String,
    /// The repository.
    pub repository: String,
    /// Paths in the values, separated by commas; the first that is a boolean decides.
    pub condition: String,
    /// Names in the values under `tags`.
    pub tags: Vec<String>,
    /// The name in this chart, in place of its own.
    pub alias: String,
    /// Values of the dependency that become values of the chart.
    pub(crate) imports: Vec<Import>,
}

/// One entry of `import-values`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) child: String,
    /// `.` for the chart's values themselves.
    pub(crate) parent: String,
}

/// Reads fields of one map and names the file in errors.
struct FieldReader<'a> {
    file: &'a str,
    map: &'a Node,
}

impl FieldReader<'_> {
    fn wrong(&self, field: &str, expected: &str, found: &Node) -> Error {
        let found = found.type_name();
        Error::file(
            self.file,
            format!("`{field}`: expected {expected}, found {found}"),
        )
    }

    fn text(&self, field: &str) -> Result<String, Error> {
        match self.map.get(field) {
            None | Some(Node::Null) => Ok(String::new()),
            Some(scalar) => match yaml::scalar_text(scalar) {
                Some(text) => Ok(text.trim().to_owned()),
                None => Err(self.wrong(field, "a string", scalar)),
            },
        }
    }

    fn flag(&self, field: &str) -> Result<bool, Error> {
        match self.map.get(field) {
            None | Some(Node::Null) => Ok(false),
            Some(Node::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong(field, "a boolean", other)),
        }
    }

    fn list(&self, field: &str) -> Result<&[Node], Error> {
        match self.map.get(field) {
            None | Some(Node::Null) => Ok(&[]),
            Some(Node::List(items)) => Ok(items),
            Some(other) => Err(self.wrong(field, "a list", other)),
        }
    }

    fn texts(&self, field: &str) -> Result<Vec<String>, Error> {
        let items = self.list(field)?.iter();
        let wrong = |item: &Node| self.wrong(field, "strings", item);
        let text = |item: &Node| yaml::scalar_text(item).ok_or_else(|| wrong(item));
        items.map(text).collect()
    }

    fn maps(&self, field: &str) -> Result<Vec<FieldReader<'_>>, Error> {
        let mut readers = Vec::new();
        for map in self.list(field)? {
            if map.as_map().is_none() {
                return Err(self.wrong(field, "maps", map));
            }
            let file = self.file;
            readers.push(FieldReader { file, map });
        }
        Ok(readers)
    }
}

impl Metadata {
    /// Parses the file.
    pub(crate) fn read(file: &str, text: &str) -> Result<Metadata, Error> {
        let node = yaml::read(text).map_err(|error| Error::file(file, error))?;
        let reader = FieldReader { file, map: &node };
        let annotations = match node.get("annotations") {
            Some(Node::Map(map)) => Some(
                map.iter()
                    .map(|(key, value)| match yaml::scalar_text(value) {
                        Some(text) => Ok((key.to_string(), text)),
                        None => Err(reader.wrong("annotations", "strings", value)),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            _ => None,
        };
        let maintainers = reader.maps("maintainers")?;
        let maintainer = |reader: &FieldReader<'_>| {
            Ok([
                reader.text("name")?,
                reader.text("email")?,
                reader.text("url")?,
            ])
        };
        let api_version = reader.text("apiVersion")?;
        let metadata = Metadata {
            api_version: if api_version.is_empty() {
                "v1".into()
            } else {
                api_version
            },
            name: reader.text("name")?,
            version: reader.text("version")?,
            app_version: reader.text("appVersion")?,
            kube_version: reader.text("kubeVersion")?,
            kind: reader.text("type")?,
            description: reader.text("description")?,
            deprecated: reader.flag("deprecated")?,
            dependencies: dependencies(&reader)?,
            home: reader.text("home")?,
            icon: reader.text("icon")?,
            condition: reader.text("condition")?,
            tags: reader.text("tags")?,
            sources: reader.texts("sources")?,
            keywords: reader.texts("keywords")?,
            maintainers: maintainers
                .iter()
                .map(maintainer)
                .collect::<Result<_, Error>>()?,
            annotations,
        };
        metadata.validate(file)?;
        Ok(metadata)
    }

    /// Adds the dependencies of a version 1 chart, which are in a separate file.
    pub(crate) fn read_requirements(&mut self, file: &str, text: &str) -> Result<(), Error> {
        let node = yaml::read(text).map_err(|error| Error::file(file, error))?;
        let reader = FieldReader { file, map: &node };
        let read = dependencies(&reader)?;
        if !read.is_empty() {
            self.dependencies = read;
        }
        self.validate(file)
    }

    fn validate(&self, file: &str) -> Result<(), Error> {
        let fail = |message: String| Err(Error::file(file, message));
        match &self.api_version[..] {
            "v1" | "v2" => {}
            other => {
                return fail(format!(
                    "apiVersion {other:?} is not supported; expected v1 or v2"
                ));
            }
        }
        if self.name.is_empty() {
            return fail("`name` is required".into());
        }
        if matches!(&self.name[..], "." | "..") || self.name.contains(['/', '\\']) {
            return fail(format!("{:?} is not a valid chart name", self.name));
        }
        if parse_version(&self.version).is_none() {
            return fail(format!("`version` {:?} is not a version", self.version));
        }
        if !matches!(&self.kind[..], "" | "application" | "library") {
            return fail(format!(
                "`type` is {:?}; expected application or library",
                self.kind
            ));
        }
        let mut names = BTreeSet::new();
        for dependency in &self.dependencies {
            let name = dependency.local_name();
            if name.is_empty() || name.contains(['/', '\\', '.']) && !dependency.alias.is_empty() {
                return fail(format!(
                    "{name:?} is not a valid name or alias of a dependency"
                ));
            }
            if !names.insert(name) {
                return fail(format!(
                    "more than one dependency with name or alias {name:?}"
                ));
            }
        }
        Ok(())
    }

    /// True if only other charts use the chart.
    pub(crate) fn is_library(&self) -> bool {
        self.kind == "library"
    }

    /// `.Chart`
    pub(crate) fn value(&self, is_root: bool) -> Value {
        let text = |text: &String| Value::text(text);
        let texts = |texts: &[String]| Value::list(texts.iter().map(text).collect());
        let maintainer = |[name, email, url]: &[String; 3]| {
            Value::object([
                ("Name", text(name)),
                ("Email", text(email)),
                ("URL", text(url)),
            ])
        };
        // A map without entries; helm has a nil map there.
        let annotations = self.annotations.iter().flatten();
        let annotations: Entries = annotations
            .map(|(key, value)| (key.as_str().into(), text(value)))
            .collect();
        Value::object([
            ("APIVersion", text(&self.api_version)),
            (
                "Annotations",
                Value::Map(Table::new(annotations), Elem::Text),
            ),
            ("AppVersion", text(&self.app_version)),
            ("Condition", text(&self.condition)),
            (
                "Dependencies",
                Value::list(self.dependencies.iter().map(Dependency::value).collect()),
            ),
            ("Deprecated", Value::Bool(self.deprecated)),
            ("Description", text(&self.description)),
            ("Home", text(&self.home)),
            ("Icon", text(&self.icon)),
            ("IsRoot", Value::Bool(is_root)),
            ("Keywords", texts(&self.keywords)),
            ("KubeVersion", text(&self.kube_version)),
            (
                "Maintainers",
                Value::list(self.maintainers.iter().map(maintainer).collect()),
            ),
            ("Name", text(&self.name)),
            ("Sources", texts(&self.sources)),
            ("Tags", text(&self.tags)),
            ("Type", text(&self.kind)),
            ("Version", text(&self.version)),
        ])
    }
}

impl Dependency {
    /// Returns the name of the chart in the values.
    pub(crate) fn local_name(&self) -> &str {
        if self.alias.is_empty() {
            &self.name
        } else {
            &self.alias
        }
    }

    fn value(&self) -> Value {
        let import = |import: &Import| {
            Value::object([
                ("child", Value::text(&import.child)),
                ("parent", Value::text(&import.parent)),
            ])
        };
        Value::object([
            ("Alias", Value::text(&self.alias)),
            ("Condition", Value::text(&self.condition)),
            ("Enabled", Value::Bool(true)),
            (
                "ImportValues",
                Value::list(self.imports.iter().map(import).collect()),
            ),
            ("Name", Value::text(self.local_name())),
            ("Repository", Value::text(&self.repository)),
            (
                "Tags",
                Value::list(self.tags.iter().map(Value::text).collect()),
            ),
            ("Version", Value::text(&self.version)),
        ])
    }
}

fn dependencies(reader: &FieldReader<'_>) -> Result<Vec<Dependency>, Error> {
    let read = |reader: FieldReader<'_>| {
        let imports = reader.list("import-values")?.iter();
        let import = |import: &Node| match import {
            Node::Str(name) => Ok(Import {
                child: format!("exports.{name}"),
                parent: ".".into(),
            }),
            map @ Node::Map(_) => {
                let part = |name: &str| map.get(name).map(|node| node.to_text().into_owned());
                Ok(Import {
                    child: part("child").unwrap_or_default(),
                    parent: part("parent").unwrap_or_default(),
                })
            }
            other => Err(reader.wrong("import-values", "strings or maps", other)),
        };
        Ok(Dependency {
            name: reader.text("name")?,
            version: reader.text("version")?,
            repository: reader.text("repository")?,
            condition: reader.text("condition")?,
            tags: reader.texts("tags")?,
            alias: reader.text("alias")?,
            imports: imports.map(import).collect::<Result<_, Error>>()?,
        })
    };
    reader.maps("dependencies")?.into_iter().map(read).collect()
}
