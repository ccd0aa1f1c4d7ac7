//! Agreement with Go. `go.json` is written by `hack/go-templates` (`make go-cases`): what Go's own text/template gives with
//! `missingkey=zero` and integers as int64, less each `<no value>`; `error` is set where Go refuses the template or fails
//! on it. Where we differ on purpose is a list of its own, which `docs/language.md` shows.

use super::*;

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

/// Functions of Go that are not notes yet: their cases wait for them.
const NOT_YET: [&str; 5] = ["print", "println", "html", "urlquery", "slice"];

fn waits(source: &str) -> bool {
    let mut words = source.split(|c: char| !c.is_alphanumeric());
    words.any(|word| NOT_YET.contains(&word))
}

#[test]
fn what_the_cases_wait_for_is_not_there_yet() {
    for name in NOT_YET {
        let source = format!("{{{{ {name} \"a\" }}}}");
        assert!(Template::parse(&source).is_err(), "take {name} off the list");
    }
}

/// What we give for a template, or why we refuse it.
fn ours(source: &str, data: &Data<'_>) -> Result<String, String> {
    let template = Template::parse(source).map_err(|errors| format!("{errors:?}"))?;
    let text = template.render_text(data, &mut Budget::default());
    text.map_err(|error| format!("{error:?}"))
}

#[test]
fn every_case_gives_what_go_gives() {
    let table = table();
    let data = Data::of(&table.data);
    assert!(table.cases.len() > 1000);
    let mut wrong = Vec::new();
    for case in table.cases {
        if waits(&case.template) {
            continue;
        }
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
        if waits(&difference.template) {
            continue;
        }
        let given = ours(&difference.template, &data);
        let source = &difference.template;
        match &difference.ours {
            Some(text) => assert_eq!(given.as_ref(), Ok(text), "{source}"),
            None => assert!(given.is_err(), "{source}: {given:?}"),
        }
    }
}

#[test]
fn the_differences_that_the_document_shows_are_these() {
    use std::fmt::Write as _;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/language.md");
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
    let text = std::fs::read_to_string(file).unwrap();
    let (begin, end) = ("<!-- differences -->\n", "<!-- end of differences -->");
    let (before, rest) = text.split_once(begin).unwrap();
    let (shown, after) = rest.split_once(end).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, format!("{before}{begin}{rows}{end}{after}")).unwrap();
    } else {
        assert_eq!(shown, rows, "run this test with UPDATE=1");
    }
}
