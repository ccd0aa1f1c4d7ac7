//! Drafts a Katalog for a chart, as far as its templates read only values.
//!
//! ```text
//!  templates/*.yaml ── actions become marks ──► YAML ── marks become our templates ──► custom
//!  values.yaml ── values in use ──► schema of the spec, sample
//! ```

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    CustomKind, Draft,
    definition::definition,
    fields::SpecFields,
    input::{Error, Input, objects},
    is_plain, literal, text,
};

/// The start of a mark. A digit for each digit of its number and `z` follow.
const MARK: &str = "orkValue";

/// Drafts a Katalog for a chart, given as files by their names in the chart's folder.
///
/// A template file is converted if every action is a path below `.Values`, or one of the release. The others are reported:
/// `helm template` renders them, and [`from_manifests`](super::from_manifests) converts the result.
///
/// # Errors
/// [`Error`] if there is no chart, or none of its templates is converted.
pub fn from_helm(
    files: &[Input],
    name: Option<&str>,
    kind: Option<&str>,
    group: &str,
) -> Result<Draft, Error> {
    let mut chart = Chart::read(files)?;
    let children = chart.children(files);
    let way = format!(
        "`helm template {0} CHART | ork init {0} --from-manifests -` converts the objects that helm renders",
        chart.name
    );
    if children.is_empty() {
        let message = format!("no template of the chart can be converted: {way}");
        return Err(Error::Nothing(message));
    }
    if !chart.left.is_empty() {
        chart.left.push(format!("for these files: {way}"));
    }
    let name = name.unwrap_or(&chart.name).to_owned();
    let kind = CustomKind::made_up(&name, kind, group);
    let mut sample = json!({
        "apiVersion": format!("{}/{}", kind.group, kind.version),
        "kind": kind.kind,
        "metadata": { "name": format!("my-{name}"), "namespace": "default" },
    });
    if !chart.fields.is_empty() {
        sample["spec"] = chart.fields.values();
    }
    Ok(Draft {
        crd: definition(&kind, &chart.fields.schema(), &Map::new()),
        operator_box: json!({ "onReconcile": { "custom": children } }),
        entry: Value::Null,
        sample,
        left: chart.left,
        name,
        kind,
    })
}

fn is_template(name: &str) -> bool {
    let is_yaml = name
        .rsplit('.')
        .next()
        .is_some_and(|end| ["yaml", "yml"].contains(&end));
    name.starts_with("templates/") && is_yaml
}

struct Chart {
    values: Value,
    about: Value,
    name: String,
    fields: SpecFields,
    left: Vec<String>,
}

impl Chart {
    /// Reads `Chart.yaml` and `values.yaml`.
    fn read(files: &[Input]) -> Result<Self, Error> {
        let document = |name: &str| {
            let file = files.iter().find(|file| file.name == name);
            let file = file.map(std::slice::from_ref).unwrap_or_default();
            Ok::<_, Error>(objects(file)?.into_iter().next().unwrap_or_default())
        };
        let about = document("Chart.yaml")?;
        let name = text(&about, &["name"]).unwrap_or_default().to_owned();
        if name.is_empty() {
            let message = "the folder has no Chart.yaml with a `name`: it is not a chart";
            return Err(Error::Nothing(message.to_owned()));
        }
        Ok(Self {
            values: document("values.yaml")?,
            about,
            name,
            fields: SpecFields::default(),
            left: Vec::new(),
        })
    }

    /// Converts the templates, and reports those that it leaves out.
    fn children(&mut self, files: &[Input]) -> Vec<Value> {
        let mut children = Vec::new();
        for file in files.iter().filter(|file| is_template(&file.name)) {
            let fields = self.fields.clone();
            match self.file(file) {
                Ok(found) => children.extend(found),
                Err(why) => {
                    self.fields = fields;
                    self.left.push(format!("{}: {why}", file.name));
                }
            }
        }
        children
    }

    /// Returns the children of a template file, or the reason why it is not converted.
    fn file(&mut self, file: &Input) -> Result<Vec<Value>, String> {
        let mut marks = BTreeMap::new();
        let text = self.marked(&file.text, &mut marks)?;
        let name = file.name.clone();
        let found = objects(&[Input { name, text }]).map_err(|why| why.to_string())?;
        let mut children = Vec::new();
        for object in found {
            if object["metadata"]["annotations"]["helm.sh/hook"].is_string() {
                return Err("its object is a hook of helm".to_owned());
            }
            if !object["kind"].is_string() || object["metadata"]["name"].as_str().is_none() {
                return Err("an object in it has no kind or name".to_owned());
            }
            let mut child = filled(&object, &marks)?;
            if let Some(metadata) = child.get_mut("metadata").and_then(Value::as_object_mut) {
                super::keep_child_metadata(metadata);
            }
            children.push(child);
        }
        Ok(children)
    }

    /// Returns the text with a mark for each action.
    fn marked(
        &mut self,
        text: &str,
        marks: &mut BTreeMap<String, String>,
    ) -> Result<String, String> {
        let mut made = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (action, behind) = after.split_once("}}").ok_or("an action has no end")?;
            made.push_str(before);
            let (action, behind) = match action.strip_suffix('-') {
                Some(action) => (action, behind.trim_start()),
                None => (action, behind),
            };
            let action = match action.strip_prefix('-') {
                Some(action) => {
                    made.truncate(made.trim_end().len());
                    action
                }
                None => action,
            };
            rest = behind;
            let action = action.trim();
            if action.starts_with("/*") && action.ends_with("*/") {
                continue;
            }
            let template = self.action(action)?;
            let mark = format!("{MARK}{}z", marks.len());
            made.push_str(&mark);
            marks.insert(mark, template);
        }
        made.push_str(rest);
        Ok(made)
    }

    /// Translates an action to our template language.
    fn action(&mut self, action: &str) -> Result<String, String> {
        let refused = || format!("`{{{{ {action} }}}}` is not a path of values");
        let path = action.strip_suffix("| quote").unwrap_or(action).trim();
        let of_chart = |field: &str| {
            let value = text(&self.about, &[field]).map(literal);
            value.ok_or_else(|| format!("Chart.yaml has no `{field}`"))
        };
        match path {
            ".Release.Name" => return Ok("{{ .metadata.name }}".to_owned()),
            ".Release.Namespace" => return Ok("{{ .metadata.namespace }}".to_owned()),
            ".Release.Service" => return Ok("Helm".to_owned()),
            ".Chart.Name" => return of_chart("name"),
            ".Chart.Version" => return of_chart("version"),
            ".Chart.AppVersion" => return of_chart("appVersion"),
            _ => {}
        }
        let keys: Vec<&str> = path
            .strip_prefix(".Values.")
            .ok_or_else(refused)?
            .split('.')
            .collect();
        if !keys.iter().all(|key| is_plain(key)) {
            return Err(refused());
        }
        let value = super::at(&self.values, &keys);
        let value = value.ok_or_else(|| format!("values.yaml has no `{}`", keys.join(".")))?;
        if value.is_object() || value.is_array() {
            return Err(format!("`{}` is not a single value", keys.join(".")));
        }
        let value = value.clone();
        self.fields.add(&keys, &value).ok_or_else(refused)
    }
}

/// Replaces the marks in a part of an object with their templates.
fn filled(node: &Value, marks: &BTreeMap<String, String>) -> Result<Value, String> {
    Ok(match node {
        Value::String(text) => json!(unmarked(text, marks)),
        Value::Object(map) => {
            let mut made = Map::new();
            for (key, below) in map {
                if key.contains(MARK) {
                    return Err("a key in it is computed from values".to_owned());
                }
                made.insert(key.clone(), filled(below, marks)?);
            }
            Value::Object(made)
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| filled(item, marks));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        other => other.clone(),
    })
}

fn unmarked(text: &str, marks: &BTreeMap<String, String>) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(MARK) {
        made.push_str(&literal(before));
        let found = after
            .split_once('z')
            .and_then(|(number, behind)| Some((marks.get(&format!("{MARK}{number}z"))?, behind)));
        if let Some((template, behind)) = found {
            made.push_str(template);
            rest = behind;
        } else {
            made.push_str(MARK);
            rest = after;
        }
    }
    made.push_str(&literal(rest));
    made
}
