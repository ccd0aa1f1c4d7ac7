//! Renders a chart and values to documents.

use std::collections::BTreeMap;
use std::rc::Rc;

use orkestra_object::value::Node;
use orkestra_template::go::{EvalFailure, parse_version, satisfies};
use orkestra_template::{Entropy, EvalErrorKind};

use crate::archive::File;
use crate::chart::Chart;
use crate::dependencies::Member;
use crate::engine::Engine;
use crate::error::Error;
use crate::manifests::{self, Document};
use crate::value::Object;
use crate::value::{Elem, Entries, Table, Value};
use crate::values::as_table;
use crate::{Budget, Capabilities, Release, schema};

/// The result of rendering a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The documents in installation order, without hooks.
    pub documents: Vec<Document>,
    /// The hooks, in the same order.
    pub hooks: Vec<Document>,
    /// The files in `crds/` of the chart and of its dependencies, unchanged. Templates in them are not rendered.
    pub definitions: Vec<File>,
    /// The text of the chart's own `NOTES.txt`.
    pub notes: Option<String>,
}

/// Renders a chart with values, which override its own.
///
/// # Errors
/// A template is malformed or fails, with its position; values are invalid; the chart requires another version of
/// Kubernetes; the budget is exhausted.
pub fn render(
    chart: &Chart,
    values: &Node,
    release: &Release,
    capabilities: &Capabilities,
    budget: &Budget,
) -> Result<Rendered, Error> {
    let given = match values {
        Node::Null => Rc::default(),
        values => as_table(&Value::from_node(values)).ok_or_else(|| {
            Error::Values(format!("values are a map, not a {}", values.type_name()))
        })?,
    };
    check_dependencies(chart)?;
    let mut root = Member::of(chart);
    root.resolve(&given)?;
    check_kube_version(chart, capabilities)?;
    let values = root.coalesced(&given, false)?;
    schema::check(&root, &values)?;
    let entropy = release.seed.map(Entropy::seeded);
    let mut engine = Engine::new(budget, entropy.as_ref(), release.now);
    let mut templates = BTreeMap::new();
    let shared = Shared {
        release: release_value(release),
        capabilities: Rc::new(capabilities.clone()),
    };
    collect(
        &root,
        Some(&values),
        &root.metadata.name,
        &shared,
        &mut templates,
    );
    let mut rendered = Rendered::default();
    definitions(&root, &root.metadata.name, &mut rendered.definitions);
    let notes = format!("{}/templates/NOTES.txt", root.metadata.name);
    let mut files = Vec::new();
    for (path, text) in run(&mut engine, &templates)? {
        if path == notes {
            rendered.notes = Some(text);
        } else if !path.ends_with("NOTES.txt") {
            files.push((path, text));
        }
    }
    (rendered.documents, rendered.hooks) = manifests::sort(files)?;
    Ok(rendered)
}

/// Parses all templates, then renders all except partials. Both in helm's order: a definition nearer to the chart's folder
/// replaces one further away.
fn run(
    engine: &mut Engine<'_>,
    templates: &BTreeMap<String, TemplateSource<'_>>,
) -> Result<Vec<(String, String)>, Error> {
    let mut order: Vec<&String> = templates.keys().collect();
    order.sort_by_key(|path| (path.matches('/').count(), *path));
    order.reverse();
    for path in &order {
        let source = &templates[*path];
        let added = engine.add(path, &String::from_utf8_lossy(source.text));
        added.map_err(|(at, message)| Error::Template {
            at,
            message,
            budget: false,
            called_from: Vec::new(),
        })?;
    }
    let mut rendered = Vec::new();
    for path in order {
        let source = &templates[path];
        if path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with('_'))
        {
            continue;
        }
        let template = Value::object([
            ("BasePath", Value::text(&source.base)),
            ("Name", Value::text(path)),
        ]);
        source.dot.borrow_mut().insert("Template".into(), template);
        let dot = Value::Map(Rc::clone(&source.dot), Elem::Any);
        let text = engine.render(path, dot);
        let text = text.map_err(|failure| located(engine, path, &failure))?;
        rendered.push((path.clone(), text));
    }
    rendered.sort_unstable();
    Ok(rendered)
}

/// Returns a failure with its position.
fn located(engine: &mut Engine<'_>, path: &str, failure: &EvalFailure) -> Error {
    let mut trace = engine.take_trace().into_iter();
    let at = trace
        .next()
        .unwrap_or_else(|| crate::Frame::new(path, "", 0));
    Error::Template {
        at,
        message: failure.message().to_owned(),
        budget: failure.kind() == EvalErrorKind::Budget,
        called_from: trace.collect(),
    }
}

/// A template and its data.
struct TemplateSource<'c> {
    text: &'c [u8],
    dot: Rc<Table>,
    base: String,
}

/// The data shared by all charts.
struct Shared {
    release: Value,
    capabilities: Rc<Capabilities>,
}

/// Collects the templates of a chart and of its dependencies; returns the data for the chart's own templates.
fn collect<'c>(
    member: &Member<'c>,
    values: Option<&Rc<Table>>,
    path: &str,
    shared: &Shared,
    templates: &mut BTreeMap<String, TemplateSource<'c>>,
) -> Rc<Table> {
    let is_root = !path.contains('/');
    let files = member.chart.files.iter();
    let files = files.map(|file| (Rc::from(&*file.path), Rc::from(&*file.data)));
    let values = values.cloned().unwrap_or_default();
    let subcharts: Rc<Table> = Rc::default();
    let capabilities = Object::Capabilities(Rc::clone(&shared.capabilities));
    let dot = Table::new(Entries::from([
        ("Capabilities".into(), Value::Object(capabilities)),
        ("Chart".into(), member.metadata.value(is_root)),
        (
            "Files".into(),
            Value::Object(Object::Files(Rc::new(files.collect()))),
        ),
        ("Release".into(), shared.release.clone()),
        (
            "Subcharts".into(),
            Value::Map(Rc::clone(&subcharts), Elem::Any),
        ),
        ("Values".into(), Value::Map(Rc::clone(&values), Elem::Any)),
    ]));
    for dependency in &member.dependencies {
        let name = &dependency.metadata.name;
        let own = values.borrow().get(&**name).and_then(as_table);
        let path = format!("{path}/charts/{name}");
        let inner = collect(dependency, own.as_ref(), &path, shared, templates);
        let inner = Value::Map(inner, Elem::Any);
        subcharts.borrow_mut().insert(name.as_str().into(), inner);
    }
    for file in &member.chart.templates {
        let is_partial = file
            .path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with('_'));
        if member.metadata.is_library() && !is_partial {
            continue;
        }
        let source = TemplateSource {
            text: &file.data,
            dot: Rc::clone(&dot),
            base: format!("{path}/templates"),
        };
        templates.insert(format!("{path}/{}", file.path), source);
    }
    dot
}

fn definitions(member: &Member<'_>, path: &str, found: &mut Vec<File>) {
    member.chart.definitions(path, found);
    for dependency in &member.dependencies {
        let path = format!("{path}/charts/{}", dependency.metadata.name);
        definitions(dependency, &path, found);
    }
}

fn release_value(release: &Release) -> Value {
    Value::object([
        ("IsInstall", Value::Bool(!release.is_upgrade)),
        ("IsUpgrade", Value::Bool(release.is_upgrade)),
        ("Name", Value::text(&release.name)),
        ("Namespace", Value::text(&release.namespace)),
        ("Revision", Value::Int(release.revision)),
        ("Service", Value::text("Helm")),
    ])
}

/// Fails if a chart lacks charts that it lists as dependencies.
fn check_dependencies(chart: &Chart) -> Result<(), Error> {
    let has = |name: &str| {
        chart
            .dependencies
            .iter()
            .any(|other| other.metadata.name == name)
    };
    let names = chart
        .metadata
        .dependencies
        .iter()
        .map(|dependency| &*dependency.name);
    let missing: Vec<&str> = names.filter(|name| !has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "dependencies are missing in `charts/`: {}",
        missing.join(", ")
    );
    Err(Error::file(
        format!("{}/Chart.yaml", chart.metadata.name),
        message,
    ))
}

fn check_kube_version(chart: &Chart, capabilities: &Capabilities) -> Result<(), Error> {
    let wanted = &chart.metadata.kube_version;
    if wanted.is_empty() {
        return Ok(());
    }
    let version = parse_version(&capabilities.normal_version());
    let fits = version.and_then(|version| satisfies(wanted, &version));
    if fits == Some(true) {
        return Ok(());
    }
    Err(Error::KubeVersion {
        chart: chart.metadata.name.clone(),
        wanted: wanted.clone(),
        found: capabilities.kube_version.clone(),
    })
}
