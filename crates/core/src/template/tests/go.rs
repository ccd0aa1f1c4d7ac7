//! Agreement with Go. The expectations in `go.json` are what text/template of Go 1.26 gives with
//! `missingkey=zero` and integers as int64, less each `<no value>`; `error` is set where Go refuses the
//! template or fails on it. `results.rs` has the places where we differ on purpose.

use super::*;

#[derive(serde::Deserialize)]
struct Table {
    data: Node,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    template: String,
    text: Option<String>,
    #[serde(default)]
    error: bool,
}

#[test]
fn every_case_gives_what_go_gives() {
    let table: Table = serde_json::from_str(include_str!("go.json")).unwrap();
    let data = Data::of(&table.data);
    assert!(table.cases.len() > 200);
    let mut wrong = Vec::new();
    for case in table.cases {
        let source = &case.template;
        let given = match Template::parse(source) {
            Ok(template) => template
                .render_text(&data, &mut Budget::default())
                .map_err(|error| format!("{error:?}")),
            Err(errors) => Err(format!("{errors:?}")),
        };
        match (given, case.text) {
            (Ok(text), Some(expected)) if text == expected => {}
            (Err(_), None) if case.error => {}
            (given, expected) => {
                wrong.push(format!("{source}\n  Go:   {expected:?}\n  ours: {given:?}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
