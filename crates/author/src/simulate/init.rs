//! `ork simulate init` writes a Simulate, with expectations from the results of a simulation.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use orkestra_engine::reconcile::simulate::{Op, Verb};
use orkestra_language::{api::names, diagnostics::Diagnostics};
use orkestra_object::value::{Key, Map, Node};

use super::{SimulateOptions, Simulated, SimulationReport, load, run};

/// The first line of the block of expectations.
const EXPECT: &str = "  expect:";
/// Fields of the status that every operator writes. `conditions` are expected by type.
const AUTOMATIC: [&str; 2] = ["conditions", "observedGeneration"];

/// The inputs of `ork simulate init`.
#[derive(Debug, Clone)]
pub struct Init {
    /// The file.
    pub file: PathBuf,
    /// The Katalog, relative to the file.
    pub katalog: String,
    /// The custom resources, relative to the file.
    pub resources: Vec<String>,
    /// The CRDs, relative to the file.
    pub definitions: Vec<String>,
    /// Whether to replace the expectations of an existing file.
    pub force: bool,
    /// Whether to return the text without writing it.
    pub dry_run: bool,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The file exists.
    #[error("{} exists; `--force` replaces its expectations", .0.display())]
    Exists(PathBuf),
    /// The file exists, and the position of its expectations is unclear.
    #[error("{} has several documents, or an `expect` that is not a block; edit it by hand", .0.display())]
    Unclear(PathBuf),
    /// The simulation has errors.
    #[error("the simulation has errors")]
    Invalid(Box<Simulated>),
    /// The file cannot be read or written.
    #[error("cannot access {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// The results cannot be written as YAML.
    #[error("cannot write the expectations as YAML")]
    Yaml(#[from] serde_saphyr::ser::Error),
}

/// Simulates an existing file, or a new one with the given inputs, and writes the results as its expectations. Returns the text of
/// the file.
///
/// # Errors
/// [`InitError`]; the file is unchanged.
pub async fn init(wanted: &Init) -> Result<String, InitError> {
    let file = &wanted.file;
    let is_there = file.exists();
    if is_there && !wanted.force && !wanted.dry_run {
        return Err(InitError::Exists(file.clone()));
    }
    let failed = |error| InitError::Io(file.clone(), error);
    let head = if is_there && wanted.force {
        let text = fs::read_to_string(file).map_err(failed)?;
        head_of(&text).ok_or_else(|| InitError::Unclear(file.clone()))?
    } else {
        wanted.head()
    };
    let mut simulated = Simulated::default();
    let suite = match load::of_text(file, &head, &mut simulated) {
        Some(loaded) => run::run(&loaded, &SimulateOptions::default(), &mut simulated).await,
        None => None,
    };
    let Some(suite) = suite else {
        return Err(InitError::Invalid(Box::new(simulated)));
    };
    let text = format!("{head}{}", expectations(&suite)?);
    if !wanted.dry_run {
        fs::write(file, &text).map_err(failed)?;
    }
    Ok(text)
}

impl Init {
    /// The document without expectations.
    fn head(&self) -> String {
        let file = std::path::absolute(&self.file).unwrap_or_else(|_| self.file.clone());
        let folder = file.parent().and_then(Path::file_name);
        let name = folder.and_then(|name| name.to_str()).map(str::to_lowercase);
        let name = name.filter(|name| names::check_dns1123_subdomain(name).is_ok());
        let name = name.unwrap_or_else(|| "simulate".to_owned());
        let mut text = format!(
            "# A test of the operator: `ork simulate` runs it, cycle by cycle. `ork simulate init --force` rewrites `expect`.\n\
             apiVersion: {}\nkind: Simulate\nmetadata:\n  name: {name}\nspec:\n  katalog: {}\n",
            names::API_VERSION,
            quoted(&self.katalog)
        );
        for (one, several, files) in [
            ("crd", "crdFiles", &self.definitions),
            ("cr", "crFiles", &self.resources),
        ] {
            // Writing to a String cannot fail.
            let _ = match &files[..] {
                [] => Ok(()),
                [file] => writeln!(text, "  {one}: {}", quoted(file)),
                files => {
                    let files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
                    writeln!(text, "  {several}: [{}]", files.join(", "))
                }
            };
        }
        text
    }
}

/// Returns the text before `expect`, which must be the last block; `None` if that is unclear.
fn head_of(text: &str) -> Option<String> {
    if text.lines().any(|line| line.trim_end() == "---") {
        return None;
    }
    let mut head = String::new();
    for line in text.lines() {
        if line.trim_end() == EXPECT {
            return Some(head);
        }
        if line.starts_with(EXPECT) {
            return None;
        }
        head.push_str(line);
        head.push('\n');
    }
    Some(head)
}

/// Quotes text for YAML, if it is not a plain scalar.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "./-_".contains(c));
    if is_plain && text.parse::<f64>().is_err() {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

/// Renders the block of expectations.
fn expectations(suite: &SimulationReport) -> Result<String, InitError> {
    let faults = suite.run.cycles.iter().flat_map(|cycle| &cycle.faults);
    let is_well = faults.count() == 0;
    let mut text = format!("{EXPECT}\n");
    if is_well {
        text.push_str("    noErrors: true\n");
    }
    if let Some(cycle) = suite.steady_at() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    steadyAt: {cycle}");
    }
    let several = suite.subjects.len() > 1;
    let ops = ops(suite, None);
    if !several {
        text.push_str(&block(&ops, 4));
        text.push_str(&state(suite, 0, 4)?);
        return Ok(text);
    }
    // Each operator gets a separate block, with its own status.
    let mut text = format!("{EXPECT}\n    crds:\n");
    for (index, subject) in suite.subjects.iter().enumerate() {
        let _ = writeln!(text, "      {}:", quoted(&subject.entry));
        let own =
            |fault: &&orkestra_engine::reconcile::simulate::SimulatedFault| fault.subject == index;
        let faults = suite.run.cycles.iter().flat_map(|cycle| &cycle.faults);
        if faults.filter(own).count() == 0 {
            text.push_str("        noErrors: true\n");
        }
        if let Some(cycle) = suite.run.steady_at(&[index]) {
            let _ = writeln!(text, "        steadyAt: {cycle}");
        }
        text.push_str(&block(&self::ops(suite, Some(index)), 8));
        text.push_str(&state(suite, index, 8)?);
    }
    Ok(text)
}

/// Renders the operations on children, one line each.
fn ops(suite: &SimulationReport, subject: Option<usize>) -> Vec<String> {
    let cycles = suite.run.cycles.iter().zip(1..);
    let all = cycles.flat_map(|(cycle, number)| cycle.ops.iter().map(move |op| (number, op)));
    let own = all.filter(|(_, op)| {
        op.verb != Verb::Patch && subject.is_none_or(|subject| op.subject == subject)
    });
    own.map(|(number, op)| line(suite, number, op)).collect()
}

/// Renders an operation as an expectation, with its namespace if it differs from that of the custom resource.
fn line(suite: &SimulationReport, cycle: usize, op: &Op) -> String {
    let (verb, resource) = (op.verb.name(), quoted(&op.resource));
    let name = quoted(&op.object.name);
    let cr = suite.run.resources.get(op.subject);
    let own = cr.and_then(|cr| cr.meta_text("namespace"));
    let other = op.object.namespace.as_deref();
    let other = other.filter(|namespace| Some(*namespace) != own);
    let namespace = other.map(|namespace| format!(", namespace: {}", quoted(namespace)));
    let namespace = namespace.unwrap_or_default();
    format!("{{ cycle: {cycle}, verb: {verb}, resource: {resource}{namespace}, name: {name} }}")
}

fn block(ops: &[String], indent: usize) -> String {
    if ops.is_empty() {
        return String::new();
    }
    let margin = " ".repeat(indent);
    let mut text = format!("{margin}ops:\n");
    for op in ops {
        let _ = writeln!(text, "{margin}  - {op}");
    }
    text
}

/// Renders the conditions that every operator writes, and the status fields that the Katalog declares.
fn state(suite: &SimulationReport, subject: usize, indent: usize) -> Result<String, InitError> {
    let margin = " ".repeat(indent);
    let mut text = String::new();
    let status = suite
        .run
        .resources
        .get(subject)
        .and_then(|cr| cr.get("status"));
    let Some(Node::Map(status)) = status else {
        return Ok(text);
    };
    let conditions = status
        .get("conditions")
        .and_then(Node::as_list)
        .unwrap_or_default();
    let said = |name| {
        let of = move |one: &&Node| one.get("type").and_then(Node::as_str) == Some("Ready");
        conditions
            .iter()
            .find(of)
            .and_then(|one| one.get(name)?.as_str())
    };
    if let (Some(ready), Some(reason)) = (said("status"), said("reason")) {
        let _ = writeln!(
            text,
            "{margin}conditions:\n{margin}  - {{ type: Ready, status: {}, reason: {reason} }}",
            quoted_status(ready)
        );
    }
    let declared = status
        .iter()
        .filter(|(key, _)| !AUTOMATIC.contains(&key.as_str()));
    let declared: Map = declared
        .map(|(key, node)| (Key::clone(key), node.clone()))
        .collect();
    if declared.is_empty() {
        return Ok(text);
    }
    let value = BTreeMap::from([("status", Node::Map(declared).to_json())]);
    for line in serde_saphyr::to_string(&value)?.lines() {
        let _ = writeln!(text, "{margin}{line}");
    }
    Ok(text)
}

/// Quotes the status of a condition. Unquoted, YAML reads it as a boolean.
fn quoted_status(status: &str) -> String {
    format!("\"{status}\"")
}

impl InitError {
    /// The problems of the files, if they are the reason.
    pub fn problems(&self) -> Option<&Diagnostics> {
        match self {
            Self::Invalid(simulated) => Some(&simulated.problems),
            _ => None,
        }
    }
}
