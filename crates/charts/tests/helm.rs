//! Compares charts rendered by helm and here: the documents must be equal as YAML, in the same order. A chart that helm rejects
//! must be rejected here too. Such a case is marked with `fails`, so that a mistake in a case does not count as agreement.
//!
//! `cases/*.txt` contain the charts, `helm.json` the output of helm. With `HELM` set to the path of helm, the committed
//! results are compared with its output, and with `UPDATE=1` they are written: `make helm-cases`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails where something is missing"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use orkestra_charts::{Budget, Capabilities, Chart, Release, Rendered, read_values, render};
use orkestra_object::value::Node;
use serde_json::{Value, json};

const CHART: &str = "apiVersion: v2\nname: c\nversion: 0.1.0\n";

/// One chart, its values and the options of `helm template`.
struct Case {
    name: String,
    options: Vec<String>,
    /// True if helm and this crate must both reject the chart.
    fails: bool,
    files: BTreeMap<String, String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Returns the cases: `=== name options`, then `-- path --` before the content of each file.
fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut paths: Vec<_> = fs::read_dir(folder().join("cases"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        let mut file: Option<String> = None;
        for line in fs::read_to_string(&path).unwrap().split_inclusive('\n') {
            if let Some(head) = line.strip_prefix("=== ") {
                let mut words: Vec<String> = head.split_whitespace().map(str::to_owned).collect();
                let fails = words.last().is_some_and(|word| word == "fails");
                words.truncate(words.len() - usize::from(fails && words.len() > 1));
                cases.push(Case {
                    name: words.remove(0),
                    options: words,
                    fails,
                    files: BTreeMap::new(),
                });
                file = None;
            } else if let Some(name) = line
                .strip_prefix("-- ")
                .and_then(|l| l.trim_end().strip_suffix(" --"))
            {
                file = Some(name.to_owned());
                cases
                    .last_mut()
                    .unwrap()
                    .files
                    .insert(name.to_owned(), String::new());
            } else if let Some(name) = &file {
                cases
                    .last_mut()
                    .unwrap()
                    .files
                    .get_mut(name)
                    .unwrap()
                    .push_str(line);
            }
        }
    }
    for case in &mut cases {
        case.files
            .entry("Chart.yaml".into())
            .or_insert_with(|| CHART.into());
    }
    let mut names: Vec<_> = cases.iter().map(|case| &case.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "two cases have the same name");
    cases
}

/// Returns the documents in order, each with its source; documents without content are omitted.
fn sources(documents: impl IntoIterator<Item = (String, Node)>) -> Value {
    let documents = documents
        .into_iter()
        .filter(|(_, object)| *object != Node::Null);
    documents
        .map(|(source, object)| json!({"source": source, "object": object}))
        .collect()
}

/// Returns the output of this crate: the documents, or the error.
fn ours(case: &Case) -> Result<Value, String> {
    let mut release = Release::new("rel");
    let mut capabilities = Capabilities::default();
    let (mut hooks, mut definitions) = (true, false);
    let mut options = case.options.iter();
    while let Some(option) = options.next() {
        match &option[..] {
            "--namespace" => release.namespace.clone_from(options.next().unwrap()),
            "--is-upgrade" => release.is_upgrade = true,
            "--kube-version" => capabilities.kube_version = format!("v{}", options.next().unwrap()),
            "--api-versions" => capabilities
                .api_versions
                .push(options.next().unwrap().clone()),
            "--no-hooks" => hooks = false,
            "--include-crds" => definitions = true,
            other => panic!("{}: unknown option {other}", case.name),
        }
    }
    let files = case
        .files
        .iter()
        .filter(|(path, _)| !path.starts_with("user"));
    let rendered = Chart::from_files(files.map(|(path, text)| (path.clone(), text.clone())))
        .and_then(|chart| {
            let mut values = Node::Null;
            for (_, text) in case
                .files
                .iter()
                .filter(|(path, _)| path.starts_with("user"))
            {
                let read = read_values(text)?;
                match &mut values {
                    Node::Null => values = read,
                    values => orkestra_charts::merge_values(values, &read),
                }
            }
            render(&chart, &values, &release, &capabilities, &Budget::default())
        })
        .map_err(|error| error.to_string())?;
    let Rendered {
        documents,
        hooks: hook_documents,
        definitions: files,
        ..
    } = rendered;
    let crds = files
        .into_iter()
        .filter(|_| definitions)
        .map(|file| (file.path, yaml(&String::from_utf8(file.data).unwrap())));
    let hooks = hook_documents.into_iter().filter(|_| hooks);
    let rest = documents
        .into_iter()
        .chain(hooks)
        .map(|d| (d.source, d.object));
    Ok(sources(crds.chain(rest)))
}

fn yaml(text: &str) -> Node {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
    };
    let blank = text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim().starts_with('#'));
    if blank {
        return Node::Null;
    }
    serde_saphyr::from_str_with_options(text, options).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Returns the output of helm.
fn helms(helm: &str, case: &Case) -> Value {
    let folder = env::temp_dir().join(format!(
        "orkestra-helm-{}-{}",
        std::process::id(),
        case.name
    ));
    let chart = folder.join("chart");
    let mut values = Vec::new();
    for (path, text) in &case.files {
        let target = if path.starts_with("user") {
            folder.join(path)
        } else {
            chart.join(path)
        };
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(&target, text).unwrap();
        if path.starts_with("user") {
            values.extend(["-f".to_owned(), target.to_str().unwrap().to_owned()]);
        }
    }
    let output = Command::new(helm)
        .args(["template", "rel"])
        .arg(&chart)
        .args(values)
        .args(&case.options)
        .env("HELM_NAMESPACE", "default")
        .env("TZ", "UTC")
        .output()
        .unwrap();
    fs::remove_dir_all(&folder).unwrap();
    if !output.status.success() {
        let message = String::from_utf8(output.stderr).unwrap();
        let message = message.replace(folder.to_str().unwrap(), "");
        let mut lines = message
            .lines()
            .skip_while(|line| !line.starts_with("Error:"));
        return json!({"error": lines.next().unwrap_or_default()});
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let mut documents = Vec::new();
    for document in format!("\n{text}").split("\n---\n").skip(1) {
        let head = document.lines().next().unwrap_or_default();
        let source = head.strip_prefix("# Source: ").unwrap_or_default();
        documents.push((source.to_owned(), yaml(document)));
    }
    json!({"documents": sources(documents)})
}

/// Returns the committed results of helm, or those of its output where `HELM` is set, by the names of the cases.
fn results_of_helm(cases: &[Case]) -> BTreeMap<String, Value> {
    let path = folder().join("helm.json");
    let committed: BTreeMap<String, Value> =
        serde_json::from_str(&fs::read_to_string(&path).unwrap_or("{}".into())).unwrap();
    let mut expected = committed.clone();
    if let Ok(helm) = env::var("HELM") {
        expected = cases
            .iter()
            .map(|case| (case.name.clone(), helms(&helm, case)))
            .collect();
        if env::var_os("UPDATE").is_some() {
            fs::write(
                &path,
                serde_json::to_string_pretty(&expected).unwrap() + "\n",
            )
            .unwrap();
        } else {
            assert!(
                expected == committed,
                "tests/helm.json is stale: make helm-cases"
            );
        }
    }
    expected
}

/// Cases with different output, each described in `docs/guides/charts.md`.
const DIFFERENCES: &[&str] = &["printf-go-syntax"];

#[test]
fn charts_render_as_with_helm() {
    let cases = cases();
    let expected = results_of_helm(&cases);
    assert!(cases.len() >= 60, "{} cases", cases.len());
    assert_eq!(
        cases.len(),
        expected.len(),
        "tests/helm.json is stale: make helm-cases"
    );
    let mut wrong = Vec::new();
    for case in &cases {
        let expected = &expected[&case.name];
        let refused = expected.get("documents").is_none();
        if refused != case.fails {
            wrong.push(format!(
                "{}: `fails` is wrong: helm returns {expected}",
                case.name
            ));
        }
        let equal = match (ours(case), expected.get("documents")) {
            (Ok(ours), Some(theirs)) if ours == *theirs => true,
            (Err(_), None) => true,
            (ours, theirs) => {
                if !DIFFERENCES.contains(&&case.name[..]) {
                    wrong.push(difference(&case.name, &ours, theirs, expected));
                }
                false
            }
        };
        let listed = DIFFERENCES.contains(&&case.name[..]);
        assert!(
            !(equal && listed),
            "{} is listed as different but is equal",
            case.name
        );
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// Returns the first documents that differ, and the first values in them.
fn difference(
    name: &str,
    ours: &Result<Value, String>,
    theirs: Option<&Value>,
    expected: &Value,
) -> String {
    let (ours, theirs) = match (ours, theirs) {
        (Err(error), _) => return format!("{name}: ours fails: {error}"),
        (Ok(ours), None) => {
            return format!("{name}: helm fails: {}; here: {ours}", expected["error"]);
        }
        (Ok(ours), Some(theirs)) => (ours, theirs),
    };
    let mut found = Vec::new();
    compare("", ours, theirs, &mut found);
    format!("{name}:\n  {}", found.join("\n  "))
}

fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (a, b) if a == b => {}
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                compare(&format!("{path}.{key}"), &ours[key], &theirs[key], found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{at}]"), a, b, found);
            }
        }
        (Value::String(a), Value::String(b)) if a.contains('\n') && b.contains('\n') => {
            let mut lines = a.lines().zip(b.lines()).filter(|(a, b)| a != b);
            let first = lines.next();
            found.push(format!("{path}: first line, ours and helm's: {first:?}"));
        }
        (a, b) => found.push(format!("{path}: ours {a}, helm's {b}")),
    }
}
