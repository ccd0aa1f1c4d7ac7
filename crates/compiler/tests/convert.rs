//! Conversion of documents to the current spelling. One file in `inputs/convert` is one case; the `.out` file with the same name
//! has the expected result. The properties that hold for all documents are checked for every YAML file of the repository.
//!
//! `UPDATE=1 cargo test -p orkestra-compiler --test convert` writes the expected files again.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, too, fail by panicking"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{env, fs};

use orkestra_compiler::{compile, scope::Library};
use orkestra_language::diagnostics::{Code, Diagnostic};
use orkestra_language::document::{
    Converted, DocumentKind, KatalogDocument, MotifDocument, Source, convert, parse_stream,
    read_katalog, read_motif,
};
use orkestra_plan::{KatalogRef, definitions::Schemas, describe};
use proptest::prelude::*;
use serde_json::Value;

fn core() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Adds every YAML file in a folder and below it.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                walk(&path, files);
            }
        } else if path.extension().is_some_and(|end| end == "yaml") {
            files.push(path);
        }
    }
}

/// Returns every YAML file of the repository that may contain a document and can be parsed, with its text and its conversion.
fn all() -> &'static [(String, String, Converted)] {
    static ALL: LazyLock<Vec<(String, String, Converted)>> = LazyLock::new(convert_all);
    &ALL
}

fn convert_all() -> Vec<(String, String, Converted)> {
    let mut files = Vec::new();
    walk(&core().join("../.."), &mut files);
    files.sort();
    let converted = files.iter().filter_map(|path| {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).ok()?;
        let kinds = ["kind: Katalog", "kind: Motif", "kind: Komposer", "\"kind\""];
        if !kinds.iter().any(|kind| text.contains(kind)) {
            return None;
        }
        let converted = convert(&name, &text).ok()?;
        Some((name, text, converted))
    });
    converted.collect()
}

#[test]
fn every_case_becomes_what_stands_beside_it() {
    let mut files = Vec::new();
    walk(&core().join("tests/inputs/convert"), &mut files);
    let mut wrong = String::new();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let converted = convert(name, &fs::read_to_string(&path).unwrap()).unwrap();
        let mut got = converted.text;
        for problem in converted.left {
            writeln!(got, "\n== left: {problem}").unwrap();
        }
        let beside = path.with_extension("out");
        if env::var_os("UPDATE").is_some() {
            fs::write(&beside, &got).unwrap();
        } else if fs::read_to_string(&beside).unwrap_or_default() != got {
            writeln!(wrong, "== {name}\n{got}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Returns the meaning of a document, and its problems other than the spelling. Positions are left out, because they differ.
fn meaning(source: &Source) -> String {
    let others = |problems: Vec<Diagnostic>| {
        let is_spelling =
            |problem: &Diagnostic| matches!(problem.code, Code::OtherSpelling | Code::ApiVersion);
        let others = problems.into_iter().filter(|problem| !is_spelling(problem));
        let mut lines: Vec<String> = others
            .map(|problem| format!("{}: {}\n", problem.path, problem.message))
            .collect();
        lines.sort();
        lines.concat()
    };
    let plan = |document: &KatalogDocument| {
        let katalog = KatalogRef::new("default".to_owned(), document.name.clone());
        let compiled = compile::katalog(
            &katalog,
            &document.spec,
            &Schemas::default(),
            &Library::default(),
        );
        compiled.map_or_else(
            |problems| others(problems.0),
            |(plan, warnings)| {
                let operators = plan.operators.iter();
                let operators = operators.map(|operator| {
                    let operator = operator.as_ref();
                    format!(
                        "{} {} {} {:?} {:?}\n",
                        operator.name,
                        operator.hash,
                        operator.workers,
                        operator.resync,
                        describe::operator(operator),
                    )
                });
                operators.collect::<String>() + &others(warnings)
            },
        )
    };
    match DocumentKind::of(source) {
        Some(DocumentKind::Motif) => read_motif(source).map_or_else(
            |problems| others(problems.0),
            |(document, warnings): (MotifDocument, _)| {
                format!("{:?}\n{}", document.spec, others(warnings))
            },
        ),
        _ => read_katalog(source).map_or_else(
            |problems| others(problems.0),
            |(document, warnings)| {
                format!(
                    "{:?}\n{}\n{}",
                    document.spec,
                    plan(&document),
                    others(warnings)
                )
            },
        ),
    }
}

#[test]
fn a_converted_document_means_what_it_meant() {
    let mut changed = 0;
    for (name, text, converted) in all() {
        if converted.text == *text {
            continue;
        }
        changed += 1;
        let (before, after) = (
            parse_stream("f.yaml", text),
            parse_stream("f.yaml", &converted.text),
        );
        assert!(after.problems.is_empty(), "{name}: {}", after.problems);
        let meanings = |stream: orkestra_language::document::Stream| {
            stream.sources.iter().map(meaning).collect::<Vec<String>>()
        };
        assert_eq!(meanings(before), meanings(after), "{name}");
    }
    assert!(changed > 20, "{changed} files had something to convert");
}

#[test]
fn converting_again_changes_nothing() {
    for (name, _, converted) in all() {
        let again = convert(name, &converted.text).unwrap();
        assert_eq!(again.text, converted.text, "{name}");
        assert_eq!(again.left, converted.left, "{name}");
    }
}

/// Files that keep an old spelling, with the reason for each.
const KEPT: &[&str] = &[
    // an item with an anchor cannot be converted to the value of a key
    "anchors-that-stay.yaml",
];

#[test]
fn no_old_spelling_is_left_but_what_is_set_twice() {
    for (name, _, converted) in all() {
        let is_twice =
            |problem: &Diagnostic| matches!(problem.code, Code::TwoSpellings | Code::SetTwice);
        let is_kept = KEPT.iter().any(|kept| name.ends_with(kept));
        if is_kept || converted.left.iter().any(is_twice) {
            continue;
        }
        assert!(converted.left.is_empty(), "{name}: {:?}", converted.left);
        for source in parse_stream("f.yaml", &converted.text).sources {
            let said = match DocumentKind::of(&source) {
                Some(DocumentKind::Katalog) => read_katalog(&source).map(|(_, warnings)| warnings),
                Some(DocumentKind::Motif) => read_motif(&source).map(|(_, warnings)| warnings),
                _ => continue,
            };
            let said = said.unwrap_or_else(|problems| problems.0);
            let old = said
                .iter()
                .find(|problem| problem.code == Code::OtherSpelling);
            assert!(old.is_none(), "{name}: {old:?}");
        }
    }
}

/// Returns the lines that begin with `#`, without their indentation, sorted.
fn comments(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    let mut comments: Vec<&str> = lines.filter(|line| line.starts_with('#')).collect();
    comments.sort_unstable();
    comments
}

#[test]
fn every_comment_survives() {
    for (name, text, converted) in all() {
        let after = comments(&converted.text);
        for comment in comments(text) {
            assert!(after.contains(&comment), "{name}: {comment}");
        }
    }
}

/// Returns the text with a comment before every line that may be an entry.
fn commented(text: &str) -> String {
    let mut result = String::new();
    for (number, line) in text.lines().enumerate() {
        let content = line.trim_start();
        let key = content.trim_start_matches("- ").split(": ").next().unwrap();
        let is_key = key
            .trim_end_matches(':')
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c));
        if is_key && content.contains(':') {
            let indent = &line[..line.len() - content.len()];
            writeln!(result, "{indent}# comment {number}").unwrap();
        }
        writeln!(result, "{line}").unwrap();
    }
    result
}

#[test]
fn comments_on_every_line_change_nothing_and_survive() {
    let mut looked_at = 0;
    for (name, text, converted) in all() {
        let with = commented(text);
        let Ok(result) = convert(name, &with) else {
            continue;
        };
        looked_at += usize::from(converted.text != *text);
        assert_eq!(
            result.left.len(),
            converted.left.len(),
            "{name}: {:?}",
            result.left
        );
        let after = comments(&result.text);
        for comment in comments(&with) {
            assert!(after.contains(&comment), "{name}: {comment}");
        }
    }
    assert!(looked_at > 20, "{looked_at}");
}

/// Returns the path at which a schema refuses a value.
fn refusal(value: &Value, schema: &Value, path: &str) -> Option<String> {
    let is_word = schema["type"] == "string";
    if is_word && !(value.is_string() || value.is_null()) {
        return Some(format!("{path}: {value}"));
    }
    let items = value.as_array().into_iter().flatten();
    let items = items.map(|item| (item, &schema["items"], path.to_owned()));
    let entries = value.as_object().into_iter().flatten();
    let entries = entries.map(|(key, value)| {
        let own = &schema["properties"][key];
        let schema = if own.is_null() {
            &schema["additionalProperties"]
        } else {
            own
        };
        (value, schema, format!("{path}.{key}"))
    });
    items
        .chain(entries)
        .find_map(|(value, schema, path)| refusal(value, schema, &path))
}

#[test]
fn the_definitions_admit_every_document_that_loads() {
    let definitions = orkestra_language::api::crds();
    let schema =
        |index: usize| &definitions[index]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut admitted = 0;
    for (name, text, converted) in all() {
        for source in [text, &converted.text]
            .iter()
            .flat_map(|text| parse_stream("f", text).sources)
        {
            let schema = match DocumentKind::of(&source) {
                Some(DocumentKind::Katalog) if read_katalog(&source).is_ok() => schema(0),
                Some(DocumentKind::Motif) if read_motif(&source).is_ok() => schema(1),
                _ => continue,
            };
            let spec = source.tree.to_json()["spec"].take();
            let spec_schema = &schema["properties"]["spec"];
            assert_eq!(refusal(&spec, spec_schema, "spec"), None, "{name}");
            admitted += 1;
        }
    }
    assert!(admitted > 100, "{admitted}");
}

#[test]
fn line_ends_stay() {
    for (name, text, converted) in all() {
        if text.contains('\r') {
            continue;
        }
        let result = convert(name, &text.replace('\n', "\r\n")).unwrap();
        assert_eq!(result.text, converted.text.replace('\n', "\r\n"), "{name}");
    }
}

#[test]
fn a_text_that_is_no_yaml_is_an_error_with_a_place() {
    let text = "kind: Katalog\nspec: {crds: {}}\n---\nkind: Katalog\nspec: [\n";
    let problems = convert("f.yaml", text).unwrap_err();
    assert!(problems.to_string().starts_with("f.yaml:"), "{problems}");
}

proptest! {
    #[test]
    fn any_damage_to_a_case_gives_a_text_or_diagnostics(
        case in 0usize..9, at in 0.0f64..1.0, cut in 0usize..40, paste in "[ \\n:{}\\[\\]\"'&*!|>#-]{0,6}",
    ) {
        let mut files = Vec::new();
        walk(&core().join("tests/inputs/convert"), &mut files);
        files.sort();
        let mut text = fs::read_to_string(&files[case % files.len()]).unwrap();
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
        if let Ok(converted) = convert("damaged.yaml", &text) {
            prop_assert!(convert("damaged.yaml", &converted.text).is_ok());
        }
    }
}
