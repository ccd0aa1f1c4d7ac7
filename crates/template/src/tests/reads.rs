//! The paths that a template reads: the list is complete.

use super::*;
use orkestra_object::value::{Path, project};
use serde_json::json;

fn reads(source: &str) -> Vec<String> {
    template(source)
        .reads()
        .iter()
        .map(Path::to_string)
        .collect()
}

// Over 60 lines: a table of templates and the paths that they read.
#[test]
fn paths_are_found_in_every_place() {
    let cases: &[(&str, &[&str])] = &[
        ("no action", &[]),
        ("{{ .spec.image }}", &["spec.image"]),
        ("{{ $.spec.image }}", &["spec.image"]),
        (
            "{{ .spec.b }}{{ .spec.a }}{{ .spec.b }}",
            &["spec.a", "spec.b"],
        ),
        ("{{ . }}", &[""]),
        ("{{ $ }}", &[""]),
        ("{{ len . }}", &[""]),
        (
            "{{ toLower .spec.a | replace \"a\" .spec.b }}",
            &["spec.a", "spec.b"],
        ),
        ("{{ index .spec.list $.spec.i }}", &["spec.i", "spec.list"]),
        ("{{ index .spec.list 0 }}", &["spec.list"]),
        ("{{ (index .spec.list 0).name }}", &["spec.list"]),
        (
            "{{ index .metadata.labels \"a.b/c\" }}",
            &["metadata.labels[\"a.b/c\"]"],
        ),
        (
            "{{ get .children.deployment \"status\" \"readyReplicas\" }}",
            &["children.deployment.status.readyReplicas"],
        ),
        (
            "{{ get .children .spec.kind \"status\" }}",
            &["children", "spec.kind"],
        ),
        ("{{ get . \"spec\" \"a\" }}", &["spec.a"]),
        ("{{ \"a\" | get .spec }}", &["spec"]),
        ("{{ (get .a \"b\").c.d }}", &["a.b.c.d"]),
        ("{{ (default .a .b).c }}", &["a", "b"]),
        (
            "{{ if .a }}{{ .b }}{{ else if .c }}{{ .d }}{{ else }}{{ .e }}{{ end }}",
            &["a", "b", "c", "d", "e"],
        ),
        (
            "{{ with .spec.a }}{{ .b }}{{ $.c }}{{ else }}{{ .d }}{{ end }}",
            &["c", "d", "spec.a", "spec.a.b"],
        ),
        ("{{ with $x := .a }}{{ $x.b }}{{ end }}", &["a", "a.b"]),
        (
            "{{ range .spec.list }}{{ .name }}{{ $.x }}{{ else }}{{ .y }}{{ end }}",
            &["spec.list", "x", "y"],
        ),
        ("{{ range $i, $e := .l }}{{ $e.name }}{{ end }}", &["l"]),
        ("{{ $s := .spec }}{{ $s.image }}", &["spec.image"]),
        (
            "{{ $s := .spec }}{{ if .x }}{{ $s = .status }}{{ end }}{{ $s.a }}",
            &["spec.a", "status", "x"],
        ),
        ("{{ $unused := .spec }}x", &[]),
        ("{{ $s := . }}{{ with .a }}{{ $s.b }}{{ end }}", &["a", "b"]),
        ("{{ with . }}{{ .a }}{{ end }}", &["", "a"]),
        ("{{ and .a (or .b .c) }}", &["a", "b", "c"]),
        ("{{ printf \"%s\" .a.b }}", &["a.b"]),
        ("{{ eq (len .a) .b }}", &["a", "b"]),
    ];
    for (source, expected) in cases {
        assert_eq!(reads(source), *expected, "{source}");
    }
}

#[test]
fn every_case_of_the_go_table_is_the_same_on_what_it_reads() {
    #[derive(serde::Deserialize)]
    struct Table {
        data: Node,
        cases: Vec<std::collections::BTreeMap<String, serde_json::Value>>,
    }
    let table: Table = serde_json::from_str(include_str!("go.json")).unwrap();
    for case in table.cases {
        let source = case["template"].as_str().unwrap();
        let Ok(template) = Template::parse(source) else {
            continue;
        };
        let part = project(&table.data, template.reads());
        let on = |root: &Node| template.render_text(&Data::of(root), &mut EvalBudget::default());
        if let Ok(expected) = on(&table.data) {
            assert_eq!(on(&part), Ok(expected), "{source}: {:?}", reads(source));
        }
    }
}

#[test]
fn a_path_that_is_not_read_does_not_matter() {
    let root = node!({"spec": {"a": {"b": 1, "c": 2}, "d": 3}});
    let template = template("{{ .spec.a.b }}");
    assert_eq!(
        project(&root, template.reads()).to_json(),
        json!({"spec": {"a": {"b": 1}}})
    );
}

#[test]
fn a_numeric_index_may_look_into_a_text_and_so_reads_all_of_it() {
    let root = node!({"b": "text"});
    let template = template("{{ index .b 1 }}");
    let part = project(&root, template.reads());
    let value = template.eval(&Data::of(&part), &mut EvalBudget::default());
    assert_eq!(value.unwrap().into_owned(), Node::Int(101));
}
