//! Reading of documents. One file in `inputs/document` is one case; the `.out` file with the same name has the expected result.
//!
//! `UPDATE=1 cargo test -p orkestra-compiler --test document` writes the expected files again.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, too, fail by panicking"
)]

#[path = "document/founding.rs"]
mod founding;
#[path = "document/shapes.rs"]
mod shapes;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use orkestra_language::document::{
    Document, Source, parse_stream, read_katalog, read_motif, read_stream,
};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/document")
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(inputs())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    files
}

fn outcome(file: &str, text: &str) -> String {
    let mut out = String::new();
    match read_stream(file, text) {
        Err(problems) => writeln!(out, "{problems}").unwrap(),
        Ok((documents, warnings)) => {
            for warning in warnings {
                writeln!(out, "{warning}").unwrap();
            }
            out.extend(documents.katalogs.iter().map(show));
            out.extend(documents.motifs.iter().map(show));
            out.extend(documents.komposers.iter().map(show));
        }
    }
    out
}

fn show<S: Serialize>(document: &Document<S>) -> String {
    let spec = serde_json::to_value(&document.spec).unwrap();
    let spec = serde_json::to_string_pretty(&spec).unwrap();
    let namespace = document.namespace.as_deref().unwrap_or("-");
    let (name, labels) = (&document.name, &document.labels);
    format!("{name} in {namespace}, {labels:?}\n{spec}\n")
}

#[test]
fn every_case_gives_what_stands_beside_it() {
    let update = env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for path in cases() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let got = outcome(name, &fs::read_to_string(&path).unwrap());
        let beside = path.with_extension("out");
        if update {
            fs::write(&beside, &got).unwrap();
        } else if fs::read_to_string(&beside).unwrap_or_default() != got {
            wrong.push(format!("== {name}\n{got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Translates a structural schema to plain JSON Schema.
fn plain(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else {
        return schema.clone();
    };
    let mut plain: serde_json::Map<String, Value> = serde_json::Map::new();
    for (key, value) in object {
        match key.as_str() {
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields = fields.map(|(name, field)| (name.clone(), self::plain(field)));
                plain.insert(key.clone(), Value::Object(fields.collect()));
            }
            "items" | "additionalProperties" => {
                plain.insert(key.clone(), self::plain(value));
            }
            "type" => {
                plain.insert(key.clone(), json!([value, "null"]));
            }
            "x-kubernetes-int-or-string" => {
                plain.insert("type".to_owned(), json!(["integer", "string", "null"]));
            }
            _ => {}
        }
    }
    Value::Object(plain)
}

/// Adds every YAML file in a folder and below it.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            walk(&path, files);
        } else if path.extension().is_some_and(|end| end == "yaml") {
            files.push(path);
        }
    }
}

/// The API server accepts every document that loads, except operators as a list, for which the author gets a warning.
#[test]
fn every_document_that_loads_is_valid_by_its_definition() {
    let definitions = orkestra_language::api::crds();
    let validator = |index: usize| {
        let schema = &definitions[index]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        jsonschema::draft202012::new(&plain(&schema["properties"]["spec"])).unwrap()
    };
    let validators = [("Katalog", validator(0)), ("Motif", validator(1))];
    let mut files = Vec::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        &mut files,
    );
    let (mut looked_at, mut wrong) = (0, Vec::new());
    for path in files {
        let name = path.display().to_string();
        let text = fs::read_to_string(&path).unwrap_or_default();
        for source in parse_stream(&name, &text).sources {
            let loads = read_katalog(&source).is_ok() || read_motif(&source).is_ok();
            let document = source.tree.to_json();
            let kind = validators
                .iter()
                .find(|(kind, _)| document["kind"] == *kind);
            let (true, Some((_, validator))) = (loads, kind) else {
                continue;
            };
            let mut spec = document["spec"].clone();
            if spec["crds"].is_array() {
                spec["crds"] = Value::Null;
            }
            looked_at += 1;
            let problems = validator.iter_errors(&spec);
            wrong.extend(problems.map(|one| format!("{name}: {}: {one}", one.instance_path())));
        }
    }
    assert!(looked_at > 300, "{looked_at}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_committed_definitions_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    let definitions = orkestra_language::api::crds();
    for definition in &definitions {
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap();
        let file = folder.join(format!("{plural}.yaml"));
        let generated = format!("---\n{}", serde_saphyr::to_string(definition).unwrap());
        if env::var_os("UPDATE").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &generated).unwrap();
        }
        let committed = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(committed, generated, "run this test with UPDATE=1");
    }
    // The folder also holds the Kustomization that lists the definitions.
    let files = fs::read_dir(&folder).unwrap();
    let yaml = files.filter(|file| {
        let path = file.as_ref().unwrap().path();
        path.extension().is_some_and(|end| end == "yaml")
    });
    assert_eq!(yaml.count(), definitions.len());
}

#[test]
fn the_definitions_are_the_same_a_hundred_times() {
    let printed = || serde_json::to_string(&orkestra_language::api::crds()).unwrap();
    let first = printed();
    for turn in 1..100 {
        assert!(printed() == first, "the definitions differ in turn {turn}");
    }
}

#[test]
fn an_object_reads_as_the_file_does() {
    for path in cases() {
        let text = fs::read_to_string(&path).unwrap();
        for source in parse_stream("case.yaml", &text).sources {
            let object = Source::from_object(&source.tree.to_json()).unwrap();
            match (read_katalog(&source), read_katalog(&object)) {
                (Ok((file, _)), Ok((object, _))) => assert_eq!(file.spec, object.spec),
                (Err(file), Err(object)) => assert_eq!(messages(&file), messages(&object)),
                (file, object) => panic!("{}: {file:?} {object:?}", path.display()),
            }
        }
    }
}

/// Returns the messages without positions, sorted, because objects have no order of keys.
fn messages(problems: &Diagnostics) -> Vec<String> {
    let one = |problem: &Diagnostic| format!("{} {}", problem.path, problem.message);
    let mut all: Vec<String> = problems.iter().map(one).collect();
    all.sort();
    all
}

#[test]
fn a_spec_that_is_written_out_reads_back() {
    let text = fs::read_to_string(inputs().join("forms.yaml")).unwrap();
    let (documents, _) = read_stream("forms.yaml", &text).unwrap();
    let object = json!({
        "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "again" },
        "spec": documents.katalogs[0].spec,
    });
    let (again, warnings) = read_katalog(&Source::from_object(&object).unwrap()).unwrap();
    assert_eq!(again.spec, documents.katalogs[0].spec);
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn an_error_inside_a_template_gets_its_own_column() {
    let text = "plain: a {{ .x }}\nquoted: \"a {{ .x }}\"\nsingle: 'a {{ .x }}'\nescaped: \"\\t{{ .x }}\"\nblock: |\n  a {{ .x }}\n";
    let source = parse_stream("t.yaml", text).sources.remove(0);
    let at = |field: &str, offset| {
        let path = FieldPath::root().field(field);
        let span = source.tree.locate_in_text(&path, offset).unwrap();
        (span.line, span.column)
    };
    assert_eq!(at("plain", 5), (1, 13));
    assert_eq!(at("quoted", 5), (2, 15));
    assert_eq!(at("single", 5), (3, 15));
    assert_eq!(at("escaped", 4), (4, 10));
    assert_eq!(at("block", 5), (6, 8));
    assert_eq!(at("block", 11), (6, 3));
    assert_eq!(at("plain", 999), (1, 8));
}

#[test]
fn diagnostics_of_others_are_located_at_the_nearest_ancestor() {
    let text = fs::read_to_string(inputs().join("forms.yaml")).unwrap();
    let (documents, _) = read_stream("forms.yaml", &text).unwrap();
    let document = &documents.katalogs[0];
    let entry = FieldPath::root()
        .field("spec")
        .field("crds")
        .field("pond.v1");
    let deployment = entry
        .field("operatorBox")
        .field("onCreate")
        .field("deployments")
        .index(0);
    let mut problems: Diagnostics = [
        Diagnostic::error(Code::OutOfRange, deployment.field("port"), "closed").at_text(3),
        Diagnostic::error(
            Code::UnknownField,
            entry.field("nowhere").field("deep"),
            "lost",
        ),
    ]
    .into_iter()
    .collect();
    problems.locate(&document.tree, document.file.as_deref());
    let shown = problems.to_string();
    let port = text
        .lines()
        .position(|line| line.contains("port: \"{{"))
        .unwrap()
        + 1;
    assert!(
        shown.contains(&format!("forms.yaml:{port}:25: error[ORK0015]: ")),
        "{shown}"
    );
    assert!(
        shown.contains("forms.yaml:15:5: error[ORK0010]: spec.crds.\"pond.v1\".nowhere.deep: lost"),
        "{shown}"
    );
}

fn refused_quickly(text: &str) -> String {
    let start = Instant::now();
    let problems = read_stream("bomb.yaml", text).unwrap_err();
    let took = start.elapsed();
    // An unoptimised parser is ten times slower, and test machines are shared. Without limits these texts take hours.
    let limit = if cfg!(debug_assertions) { 10_000 } else { 100 };
    assert!(took < Duration::from_millis(limit), "{took:?}");
    problems.to_string()
}

#[test]
fn deep_nesting_is_refused_without_a_crash() {
    for text in [
        "[".repeat(10_000),
        "{a: ".repeat(10_000),
        "- ".repeat(10_000),
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        (0..10_000).fold(String::new(), |text, n| {
            text + &" ".repeat(n % 200) + "a:\n"
        }),
    ] {
        assert!(refused_quickly(&text).contains("error"));
    }
    let deep = (0..100).fold(json!(1), |value, _| json!([value]));
    assert!(Source::from_object(&deep).is_err());
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..20 {
        let alias = format!("*a{}", n - 1);
        writeln!(bomb, "a{n}: &a{n} [{}]", [alias.as_str(); 10].join(", ")).unwrap();
    }
    assert!(refused_quickly(&bomb).contains("error"));
    let mut merges = "a0: &a0 {x: 1}\n".to_owned();
    for n in 1..30 {
        let alias = format!("*a{}", n - 1);
        writeln!(
            merges,
            "a{n}: &a{n} {{k{n}: {alias}, l{n}: {alias}, <<: {alias}}}"
        )
        .unwrap();
    }
    assert!(refused_quickly(&merges).contains("error"));
    assert!(refused_quickly("a: &a [*a]").contains("error"));
}

#[test]
fn texts_that_are_too_long_are_refused() {
    assert!(refused_quickly(&" ".repeat(5 << 20)).contains("too many"));
    assert!(refused_quickly(&"---\na\n".repeat(2000)).contains("too many"));
}

proptest! {
    #[test]
    fn any_text_gives_documents_or_diagnostics(text in "\\PC{0,200}") {
        let _ = read_stream("any.yaml", &text).map_err(|problems| problems.to_string());
    }

    #[test]
    fn any_damage_to_a_sample_gives_documents_or_diagnostics(
        case in 0usize..20, at in 0.0f64..1.0, cut in 0usize..40, paste in "[ \\n:{}\\[\\]\"'&*!|>#-]{0,6}",
    ) {
        let cases = cases();
        let mut text = fs::read_to_string(&cases[case % cases.len()]).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let mut start = (text.len() as f64 * at) as usize;
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = (start + cut).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        text.replace_range(start..end, &paste);
        let _ = read_stream("damaged.yaml", &text).map_err(|problems| problems.to_string());
    }
}
