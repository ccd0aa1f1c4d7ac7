//! Declarations of notes that are refused: recursion, and names that cannot be called or are declared twice.

use super::*;

/// Declared notes.
type Declared = &'static [(&'static str, &'static str)];

/// Recursive notes and the reported problems.
const CIRCLES: &[(Declared, &[&str])] = &[
    (
        &[("a", "{{ a }}")],
        &["0 expression error: `a` calls itself: a → a"],
    ),
    (
        &[("b", "{{ a }}"), ("a", "x{{ if .x }}{{ b }}{{ end }}")],
        &["0 expression error: `b` calls itself: b → a → b"],
    ),
    (
        &[
            ("lead", "{{ one }}"),
            ("one", "{{ two }}"),
            ("two", "{{ three | toUpper }}"),
            ("three", "{{ printf \"%s\" one }}"),
            ("aside", "{{ three }}"),
        ],
        &["1 expression error: `one` calls itself: one → two → three → one"],
    ),
    (
        &[("a", "{{ a }}"), ("b", "{{ c }}"), ("c", "{{ b }}")],
        &[
            "0 expression error: `a` calls itself: a → a",
            "1 expression error: `b` calls itself: b → c → b",
        ],
    ),
    (
        &[
            ("a", "{{ b }}{{ b }}{{ c }}"),
            ("b", "{{ c }}"),
            ("c", "{{ d }}"),
            ("d", "x"),
        ],
        &[],
    ),
];

#[test]
fn circles_are_found_however_long_and_reported_once() {
    for (declared, expected) in CIRCLES {
        assert_eq!(compile(declared).1, *expected, "{declared:?}");
    }
}

#[test]
fn a_circle_is_reported_at_the_call_that_closes_it() {
    let declared = [("a", "x {{ b }}"), ("b", "{{ a }}")];
    let declared: Vec<_> = declared.iter().map(source).collect();
    let (_, problems) = Functions::compile(&declared);
    let error = &problems[0].error;
    assert_eq!(
        (error.offset, error.len, error.code),
        (5, 1, Code::NoteCircle)
    );
}

#[test]
fn names_that_no_template_can_call_are_refused() {
    for name in [
        "", "2nd", "a-b", "a.b", "a b", "$x", ".x", "if", "end", "range", "true", "nil", "é!",
        "{{x}}",
    ] {
        let (functions, problems) = compile(&[(name, "x")]);
        assert_eq!(problems.len(), 1, "{name}");
        assert!(problems[0].starts_with("0 name error: "), "{problems:?}");
        assert!(functions.is_empty());
    }
    for name in ["_", "a2", "Tier", "größe", "item", "children"] {
        let functions = sound(&[(name, "x")]);
        let source = format!("{{{{ {name} }}}}");
        assert_eq!(
            value(&source, &functions, &Node::Null),
            Ok(Node::from("x")),
            "{name}"
        );
    }
}

#[test]
fn a_name_that_comes_twice_is_refused_and_the_first_one_counts() {
    let (functions, problems) = compile(&[("a", "1"), ("a", "2"), ("a", "{{ nope }}")]);
    assert_eq!(
        problems,
        [
            "1 name error: the function at position 0 is called `a` already",
            "2 name error: the function at position 0 is called `a` already",
        ]
    );
    assert_eq!(
        value("{{ a }}", &functions, &Node::Null),
        Ok(Node::from("1"))
    );
}

#[test]
fn who_calls_a_note_with_an_error_is_not_blamed_for_it() {
    let (functions, problems) = compile(&[("good", "{{ bad }}"), ("bad", "{{ nope .x }}{{ if }}")]);
    assert_eq!(
        problems,
        [
            "1 expression error: unknown function `nope`",
            "1 expression error: `if` without `end`",
            "1 expression error: expected an expression",
        ]
    );
    assert!(Template::parse_with("{{ bad }}", &functions).is_ok());
}
