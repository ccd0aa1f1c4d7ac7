//! Comparison with Go. `hack/go-templates` (`make go-cases`) writes `go.json`: the output of Go's own text/template with
//! `missingkey=zero` and integers as int64, without each `<no value>`; `error` is set if Go rejects the template or fails on
//! it. The intended differences are in a separate list, which `docs/reference/language.md` shows.

use std::fmt::Write as _;

use super::*;
use crate::budget::MOST_OUTPUT;

#[derive(serde::Deserialize)]
struct Table {
    data: Node,
    cases: Vec<Case>,
    differences: Vec<Difference>,
}

#[derive(serde::Deserialize)]
struct Case {
    topic: String,
    template: String,
    text: Option<String>,
    #[serde(default)]
    error: bool,
}

#[derive(serde::Deserialize)]
struct Difference {
    template: String,
    text: Option<String>,
    ours: Option<String>,
    why: String,
}

fn table() -> Table {
    serde_json::from_str(include_str!("go.json")).unwrap()
}

/// Returns our output for a template, or our error.
fn ours(source: &str, data: &Data<'_>) -> Result<String, String> {
    let template = Template::parse(source).map_err(|errors| format!("{errors:?}"))?;
    let text = template.render_text(data, &mut EvalBudget::default());
    text.map_err(|error| format!("{error:?}"))
}

#[test]
fn every_case_gives_what_go_gives() {
    let table = table();
    let data = Data::of(&table.data);
    assert!(table.cases.len() > 1000);
    let mut wrong = Vec::new();
    for case in table.cases {
        match (ours(&case.template, &data), case.text) {
            (Ok(text), Some(expected)) if text == expected => {}
            (Err(_), None) if case.error => {}
            (given, expected) => wrong.push(format!(
                "{}: {}\n  Go:   {expected:?}\n  ours: {given:?}",
                case.topic, case.template
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_difference_is_as_it_is_listed() {
    let table = table();
    let data = Data::of(&table.data);
    assert!(!table.differences.is_empty());
    for difference in table.differences {
        let given = ours(&difference.template, &data);
        let source = &difference.template;
        match &difference.ours {
            Some(text) => assert_eq!(given.as_ref(), Ok(text), "{source}"),
            None => assert!(given.is_err(), "{source}: {given:?}"),
        }
    }
}

/// Compares a part of docs/reference/language.md, between two comments, with the expected text; with `UPDATE=1` writes it.
fn shown(name: &str, expected: &str) {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/language.md"
    );
    let text = std::fs::read_to_string(file).unwrap();
    let (begin, end) = (
        format!("<!-- {name} -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let (before, rest) = text.split_once(&begin).unwrap();
    let (shown, after) = rest.split_once(&end).unwrap();
    if shown == expected {
        return;
    }
    assert!(
        std::env::var_os("UPDATE").is_some(),
        "the {name} of docs/reference/language.md are stale: UPDATE=1 cargo test -p orkestra-template --lib language -- --test-threads=1"
    );
    std::fs::write(file, format!("{before}{begin}{expected}{end}{after}")).unwrap();
}

#[test]
fn the_language_page_shows_the_differences() {
    let cell = |text: &Option<String>| match text {
        Some(text) if text.is_empty() => "nothing".to_owned(),
        Some(text) => format!("`{}`", text.replace('|', "\\|")),
        None => "an error".to_owned(),
    };
    let mut rows = "| template | Go | Orkestra | why |\n|---|---|---|---|\n".to_owned();
    for row in table().differences {
        let template = row.template.replace('|', "\\|");
        let (go, ours) = (cell(&row.text), cell(&row.ours));
        writeln!(rows, "| `{template}` | {go} | {ours} | {} |", row.why).unwrap();
    }
    shown("differences", &rows);
}

#[test]
fn the_language_page_shows_the_budget() {
    let EvalBudget {
        steps,
        bytes,
        depth,
    } = EvalBudget::default();
    let rows = format!(
        "| budget | limit | used by |\n|---|---|---|\n\
         | steps | {steps} | each expression, statement and loop iteration; each item that a function processes, and each 16 bytes of \
         its text arguments |\n\
         | bytes | {} MiB | all intermediate and final values; in addition, each text is limited to {} MiB |\n\
         | levels | {depth} | nested calls and blocks, and nested lists and maps that are printed |\n",
        bytes >> 20,
        MOST_OUTPUT >> 20
    );
    shown("budget", &rows);
}
