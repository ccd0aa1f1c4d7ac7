//! Any text results in a template or errors, and no evaluation panics.

use super::*;
use orkestra_object::value::{Node, project};
use proptest::prelude::*;

fn root() -> Node {
    node!({
        "a": {"b": 1, "c": [1, "x", {"b": null}], "d": ""}, "b": "text é", "c": [[1, 2], ["x"], null],
        "d": -1.5, "e": true, "f": {}, "g": u64::MAX,
    })
}

/// Fragments that are likely to form a valid template, or an invalid one.
// Over 60 lines: a table of fragments.
fn source() -> impl Strategy<Value = String> {
    let pieces = [
        "{{",
        "}}",
        "{{- ",
        " -}}",
        "{{ ",
        " }}",
        "(",
        ")",
        " | ",
        " ",
        ".",
        ".a",
        ".b",
        ".a.c",
        "$",
        "$x",
        " := ",
        " = ",
        ", ",
        "if ",
        "else",
        "else if ",
        "end",
        "range ",
        "with ",
        "break",
        "continue",
        "\"s\"",
        "`r`",
        "'c'",
        "1",
        "-2",
        "3.5",
        "0x1f",
        "true",
        "nil",
        "and ",
        "or ",
        "not ",
        "eq ",
        "lt ",
        "printf ",
        "\"%5.2v|%[2]*d%q\"",
        "index ",
        "get ",
        "len ",
        "default ",
        "ternary ",
        "split ",
        "join ",
        "replace ",
        "toInt ",
        "toString ",
        "text",
        "\n",
        "/*",
        "*/",
        "é",
        "\\",
        "children.job",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24)
        .prop_map(|pieces| pieces.concat())
}

/// Valid templates, nested to some depth.
fn good() -> impl Strategy<Value = String> {
    let operand = prop::sample::select(vec![
        ".", "$", ".a", ".a.b", ".a.c", ".b", ".c", ".nope.x", "1", "0", "\"b\"", "\"\"", "nil",
        "1.5",
    ]);
    let expr = operand
        .prop_map(String::from)
        .prop_recursive(3, 12, 3, |inner| {
            let one = prop::sample::select(vec![
                "len",
                "not",
                "toString",
                "and",
                "or",
                "index",
                "get",
                "toInt",
                "printf \"%v %d\"",
            ]);
            let two = prop::sample::select(vec![
                "eq",
                "lt",
                "default",
                "and",
                "or",
                "index",
                "get",
                "join",
                "printf \"%5v\"",
            ]);
            prop_oneof![
                (one, inner.clone()).prop_map(|(note, a)| format!("({note} {a})")),
                (two, inner.clone(), inner.clone())
                    .prop_map(|(note, a, b)| format!("({note} {a} {b})")),
                inner.prop_map(|a| format!("({a} | default 1).b")),
            ]
        });
    expr.prop_map(|expr| format!("{{{{ {expr} }}}}"))
        .prop_recursive(4, 24, 3, |inner| {
            let head = prop::sample::select(vec![
                "if .a.b",
                "if $x",
                "with .a",
                "with $x := .a",
                "range .c",
                "range $x := .c",
                "range $i, $x := .a",
            ]);
            prop_oneof![
                (head, inner.clone(), inner.clone()).prop_map(|(head, a, b)| format!(
                    "{{{{ {head} }}}}{a}{{{{ $x }}}}{{{{ else }}}}{b}{{{{ end }}}}"
                )),
                (inner.clone(), inner.clone())
                    .prop_map(|(a, b)| format!("{a}{{{{ $x = .a }}}}{{{{ $x.b }}}}{b}")),
                inner.prop_map(|a| format!("-{a}{{{{ $x := . }}}}{{{{ $x.a.c }}}}")),
            ]
        })
        .prop_map(|body| format!("{{{{ $x := .b }}}}{body}"))
}

fn evaluate(source: &str) {
    let root = root();
    match Template::parse(source) {
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(error.offset + error.len <= source.len(), "{error:?}");
            }
        }
        Ok(template) => {
            let mut budget = EvalBudget {
                steps: 20_000,
                bytes: 100_000,
                depth: 50,
            };
            let _ = template.eval(&Data::of(&root), &mut budget);
            let _ = template.render_text(&Data::new(), &mut budget);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_text_gives_a_template_or_errors_and_never_a_panic(source in "\\PC*") {
        evaluate(&source);
        evaluate(&format!("{{{{{source}}}}}"));
    }

    #[test]
    fn any_pieces_of_templates_give_a_template_or_errors_and_never_a_panic(source in source()) {
        evaluate(&source);
    }

    #[test]
    fn any_format_prints_and_never_panics(format in "[%0-9+\\-# .*\\[\\]a-zA-Z]{0,12}") {
        let source = format!("{{{{ printf {format:?} 1 \"é\" .d .a .nope }}}}");
        let _ = text(&source, &root());
    }

    #[test]
    fn what_reads_lists_is_all_that_matters(source in good()) {
        let root = root();
        // A constant of a wrong type is rejected.
        let Ok(template) = Template::parse(&source) else {
            return Ok(());
        };
        let on = |root: &Node| template.render_text(&Data::of(root), &mut EvalBudget::default());
        if let Ok(expected) = on(&root) {
            let part = project(&root, template.reads());
            prop_assert_eq!(on(&part), Ok(expected), "{:?}", template.reads());
        }
    }
}
