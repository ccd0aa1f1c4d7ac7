//! Messages and positions of errors in templates.

use super::*;
use crate::EvalErrorKind;

/// A source, the part of it that the error points at (not checked if empty), the message, the hint.
const ERRORS: &[(&str, &str, &str, Option<&str>)] = &[
    (
        "{{ tolower .a }}",
        "tolower",
        "unknown function `tolower`",
        Some("did you mean `toLower`?"),
    ),
    (
        "x {{ frobnicate }}",
        "frobnicate",
        "unknown function `frobnicate`",
        None,
    ),
    (
        "{{ replace .a \"b\" }}",
        "replace",
        "`replace` takes 3 arguments, not 2",
        Some("for example `{{ replace \"a_b_c\" \"_\" \"-\" }}`"),
    ),
    (
        "{{ .a | ternary 1 }}",
        "ternary",
        "`ternary` takes 3 arguments, not 2",
        Some("for example `{{ ternary true \"on\" \"off\" }} {{ ternary \"false\" 1 2 }}`"),
    ),
    (
        "{{ eq .a }}",
        "eq",
        "`eq` takes at least 2 arguments, not 1",
        Some("for example `{{ eq \"b\" \"a\" \"b\" }} {{ eq 1 2 }}`"),
    ),
    (
        "{{ toLower 5 }}",
        "",
        "`toLower` expects text as argument 1, not integer",
        None,
    ),
    (
        "{{ get .a 0 }}",
        "",
        "`get` expects text as argument 2, not integer",
        None,
    ),
    (
        "{{ $x }}",
        "$x",
        "undeclared variable `$x`",
        Some("declare it before: `{{ $x := … }}`"),
    ),
    (
        "{{ .labels.my-app }}",
        "-",
        "unexpected character '-'",
        Some("a key that is no plain name is read with `get`: `get .parent \"my-app\"`"),
    ),
    (
        "{{ foo.bar }}",
        "foo.bar",
        "unknown function `foo`",
        Some("a path begins with a dot: `.foo.bar`"),
    ),
    (
        "{{ 'text' }}",
        "'text'",
        "a character constant holds one character; text takes double quotes",
        None,
    ),
    ("{{ if .a }}b", "{{ if .a }}", "`if` without `end`", None),
    (
        "{{ end }}",
        "{{ end }}",
        "`end` without an `if`, `with` or `range`",
        None,
    ),
    (
        "{{ define \"a\" }}b{{ end }}",
        "{{ define \"a\" }}",
        "`define` is not supported: a template is one text",
        None,
    ),
    (
        "{{ block \"a\" . }}b{{ end }}",
        "{{ block \"a\" . }}",
        "`block` is not supported: a template is one text",
        None,
    ),
    (
        "{{ template \"a\" }}",
        "{{ template \"a\" }}",
        "`template` is not supported: a template is one text",
        None,
    ),
    ("{{ .a", "{{", "unterminated action: expected `}}`", None),
    ("{{ }}", "{{ }}", "an action without an expression", None),
    (
        "{{ .a .b }}",
        ".a .b",
        "`.a…` is not a function, so it takes no arguments",
        None,
    ),
];

#[test]
fn errors_say_what_is_wrong_where_and_what_to_write_instead() {
    for (source, part, message, hint) in ERRORS {
        let errors = errors(source);
        assert_eq!(errors.len(), 1, "{source}: {errors:?}");
        let error = &errors[0];
        assert_eq!(error.message, *message, "{source}");
        assert_eq!(error.hint.as_deref(), *hint, "{source}");
        if !part.is_empty() {
            assert_eq!(
                &source[error.offset..error.offset + error.len],
                *part,
                "{source}"
            );
        }
    }
}

#[test]
fn all_errors_are_reported_at_once_and_in_order() {
    let source =
        "{{ nope .a }}\n{{ if .x | }}{{ \"open }}{{ $y }}{{ end }}{{ end }}\n{{ toLower }}";
    let messages: Vec<String> = errors(source).into_iter().map(|e| e.message).collect();
    assert_eq!(
        messages,
        [
            "unknown function `nope`",
            "expected an expression",
            "unterminated quoted text",
            "undeclared variable `$y`",
            "`end` without an `if`, `with` or `range`",
            "`toLower` takes 1 argument, not 0",
        ]
    );
}

#[test]
fn an_unreadable_opening_still_needs_its_end_and_nothing_follows_from_it() {
    assert_eq!(errors("{{ if .a-b }}x{{ else }}y{{ end }}").len(), 1);
    assert_eq!(errors("{{- range ? }}x{{ end }}").len(), 1);
    assert_eq!(errors("{{ if }}x{{ else }}y{{ end }}").len(), 1);
    assert_eq!(
        errors("{{ with nope }}{{ range $x }}{{ end }}{{ end }}").len(),
        2
    );
}

#[test]
fn a_root_name_without_its_dot_is_the_path_and_a_warning() {
    let root = node!({"children": {"job": {"n": 7}}, "metadata": {"name": "web"}});
    let template = template("{{ get children.job \"n\" }}");
    assert_eq!(
        value("{{ get children.job \"n\" }}", &root),
        Ok(Node::Int(7))
    );
    assert_eq!(value("{{ metadata.name }}", &root), Ok(Node::from("web")));
    let [warning] = template.warnings() else {
        panic!("{:?}", template.warnings())
    };
    assert_eq!((warning.offset, warning.len), (7, 12));
    assert_eq!(warning.hint.as_deref(), Some("write `.children.job`"));
    assert_eq!(template.reads()[0].to_string(), "children.job.n");
    assert!(
        Template::parse("{{ .children.job }}")
            .unwrap()
            .warnings()
            .is_empty()
    );
}

#[test]
fn a_note_glued_to_its_path_is_read_as_spaced_and_a_warning() {
    let root = node!({"children": {"job": {"l": [1, 2]}}});
    let source = "{{ if eq (len.children.job.l) 2 }}two{{ end }}";
    assert_eq!(value(source, &root), Ok(Node::from("two")));
    let template = template("{{ len.children.job.l }}");
    let [warning] = template.warnings() else {
        panic!("{:?}", template.warnings())
    };
    assert_eq!((warning.offset, warning.len), (3, 18));
    assert_eq!(
        warning.message,
        "a space is missing between `len` and `.children.job.l`; it is read as `len .children.job.l`"
    );
    assert_eq!(warning.hint.as_deref(), Some("write `len .children.job.l`"));
    assert_eq!(template.reads()[0].to_string(), "children.job.l");
}

// Over 60 lines: a table of templates and their errors.
#[test]
fn failures_have_a_kind_and_a_place_and_keep_values_to_themselves() {
    use EvalErrorKind::{Function, Type};
    let root = node!({"secret": "hunter2", "n": 5, "l": [1], "m": {}});
    let cases = [
        (
            "a {{ toLower .n }}",
            13,
            Type,
            "`toLower` expects text as argument 1, not integer",
        ),
        (
            "{{ toInt .secret }}",
            3,
            Function,
            "`toInt` was given text that is not a number",
        ),
        (
            "{{ eq .n .secret }}",
            3,
            Type,
            "`eq` cannot compare integer with text",
        ),
        (
            "{{ lt .m 1 }}",
            3,
            Type,
            "`lt` cannot compare map with integer",
        ),
        (
            "{{ index .l \"a\" }}",
            3,
            Type,
            "`index` cannot look into a value of type list with one of type text",
        ),
        (
            "{{ index .l -1 }}",
            3,
            Function,
            "`index` was given a negative index",
        ),
        (
            "{{ join .secret \",\" }}",
            8,
            Type,
            "`join` expects a list as argument 1, not text",
        ),
        (
            "{{ range .secret }}{{ end }}",
            9,
            Type,
            "`range` goes over a list, a map or an integer, not text",
        ),
        (
            "{{ toInt .m }}",
            3,
            Type,
            "`toInt` expects a number, a boolean or text as argument 1, not map",
        ),
    ];
    for (source, offset, kind, message) in cases {
        let error = text(source, &root).unwrap_err();
        assert_eq!((error.offset, error.kind), (offset, kind), "{source}");
        assert_eq!(error.to_string(), message, "{source}");
        assert!(!error.message.contains("hunter2"));
    }
}
