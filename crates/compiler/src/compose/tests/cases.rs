//! Merges of compositions: each file in `tests/inputs/compose` is a case.
//!
//! A file has sections that begin with `==> NAME`: `komposer.yaml` is the composition, `ID | FILE` is a file of the artifact
//! with that identity, `result` is the result. `UPDATE=1` writes the result.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{KOMPOSER, artifact, compiled, compiled_with, merged};
use crate::compose::{Artifacts, Fetched, Merged, ResolvedComposition};
use orkestra_plan::definitions::Schemas;

struct Case {
    title: String,
    komposer: String,
    artifacts: Artifacts,
    result: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/compose")
}

fn parse(text: &str) -> Case {
    let (title, rest) = text.split_once("==> ").unwrap();
    let mut case = Case {
        title: title.to_owned(),
        komposer: String::new(),
        artifacts: Artifacts::new(),
        result: String::new(),
    };
    let mut files: BTreeMap<String, Vec<Fetched>> = BTreeMap::new();
    for section in rest.split("\n==> ") {
        let (head, body) = section.split_once('\n').unwrap_or((section, ""));
        let body = format!("{}\n", body.trim_end_matches('\n'));
        let head = head.trim_end();
        match head.split_once(" | ") {
            Some((id, name)) => files.entry(id.to_owned()).or_default().push(Fetched {
                name: name.to_owned(),
                text: body,
            }),
            None if head == KOMPOSER && case.komposer.is_empty() => case.komposer = body,
            None if head == "result" => case.result = body,
            // A document of a file on disk.
            None => files.entry(head.to_owned()).or_default().push(Fetched {
                name: String::new(),
                text: body,
            }),
        }
    }
    for (id, documents) in files {
        case.artifacts
            .insert(id.clone(), Arc::new(artifact(&id, documents)));
    }
    case
}

/// Returns the result of a case as text.
fn result(case: &Case) -> String {
    let merged = match merged(&case.komposer, &case.artifacts) {
        Ok(merged) => merged,
        Err(problems) => return format!("{problems}\n"),
    };
    let mut text = String::new();
    let (resolved, warnings) = match merged {
        Merged::Need(requests) => {
            for request in requests {
                writeln!(text, "needs {request}").unwrap();
            }
            return text;
        }
        Merged::NeedLock => return "needs the lock file\n".to_owned(),
        Merged::Done(resolved, warnings) => (resolved, warnings),
    };
    for warning in warnings {
        writeln!(text, "{warning}").unwrap();
    }
    match compiled(&resolved) {
        Ok((plan, warnings)) => {
            for warning in warnings {
                writeln!(text, "{warning}").unwrap();
            }
            let names: Vec<_> = plan
                .operators
                .iter()
                .map(|operator| &*operator.name)
                .collect();
            writeln!(text, "operators: {}", names.join(", ")).unwrap();
        }
        Err(problems) => writeln!(text, "{problems}").unwrap(),
    }
    text.push_str(&resolved.to_yaml(true));
    text
}

fn cases() -> Vec<(PathBuf, Case)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| {
            let text = std::fs::read_to_string(&file).unwrap();
            (file, parse(&text))
        })
        .collect()
}

#[test]
fn every_case_has_its_result() {
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 20, "{}", cases.len());
    for (file, case) in &cases {
        let result = result(case);
        if result == case.result {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            let text = std::fs::read_to_string(file).unwrap();
            let kept = text.split("\n==> result").next().unwrap();
            std::fs::write(file, format!("{}\n\n==> result\n{result}", kept.trim_end())).unwrap();
        } else {
            wrong.push(format!(
                "{} ({}):\n{result}",
                file.display(),
                case.title.trim()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_merge_is_deterministic_and_its_stored_form_means_the_same() {
    let mut stored = 0;
    for (file, case) in cases() {
        let Ok(Merged::Done(first, warnings)) = merged(&case.komposer, &case.artifacts) else {
            continue;
        };
        let Ok(Merged::Done(second, again)) = merged(&case.komposer, &case.artifacts) else {
            panic!("{}", file.display());
        };
        assert_eq!(warnings, again);
        assert_eq!(first.to_json(), second.to_json());
        let (back, _) = ResolvedComposition::from_json(&first.to_json()).unwrap();
        assert_eq!(back.to_json(), first.to_json(), "{}", file.display());
        assert_eq!(back.sources, first.sources);
        // The stored form has no definitions: on a cluster they come from the API server.
        let mut schemas = Schemas::default();
        first.add_schemas(&mut schemas);
        let both = [&*first, &back].map(|resolved| compiled_with(resolved, &schemas));
        let [Ok((before, _)), Ok((after, _))] = &both else {
            assert_eq!(both[0].is_ok(), both[1].is_ok(), "{}", file.display());
            continue;
        };
        assert!(
            orkestra_plan::diff(before, after).is_empty(),
            "{}",
            file.display()
        );
        stored += 1;
    }
    assert!(stored >= 8, "{stored}");
}

#[test]
fn every_problem_has_a_file_of_a_source_or_of_the_komposer() {
    let mut problems = 0;
    for (path, case) in cases() {
        let mut files: Vec<String> = vec![KOMPOSER.to_owned()];
        for artifact in case.artifacts.values() {
            files.extend(
                artifact
                    .documents
                    .iter()
                    .map(|file| artifact.file(&file.name)),
            );
        }
        let found = match merged(&case.komposer, &case.artifacts) {
            Err(found) => found,
            Ok(Merged::Done(resolved, _)) => match compiled(&resolved) {
                Err(found) => found,
                Ok(_) => continue,
            },
            Ok(Merged::Need(_) | Merged::NeedLock) => continue,
        };
        for problem in &found {
            let file = problem.file.as_ref();
            assert!(
                file.is_some_and(|file| files.contains(file)),
                "{}: {problem}",
                path.display()
            );
            assert!(problem.line.is_some(), "{}: {problem}", path.display());
            problems += 1;
        }
    }
    assert!(problems >= 10, "{problems}");
}
