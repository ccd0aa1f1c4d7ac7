//! Values, types, and intended differences from Go.

use super::*;
use serde_json::{Value, json};
use std::borrow::Cow;

fn root() -> Node {
    node!({
        "metadata": {"name": "web", "labels": {"app.io/tier": "db"}},
        "spec": {"image": "nginx", "replicas": 3, "big": u64::MAX, "whole": 1e6, "list": ["a", 1, null], "on": true,
            "port": "8080", "no": null, "text": "  Padded  ", "region": "EU_West"},
        "children": {"deployment": {"status": {"readyReplicas": 2}}},
    })
}

#[test]
fn one_expression_alone_keeps_its_type() {
    let cases = [
        ("{{ .spec.replicas }}", json!(3)),
        ("{{ .spec.big }}", json!(u64::MAX)),
        ("{{ .spec.on }}", json!(true)),
        ("{{ .spec.list }}", json!(["a", 1, null])),
        ("{{ .metadata.labels }}", json!({"app.io/tier": "db"})),
        ("{{ .spec.nope }}", json!(null)),
        ("{{- .spec.replicas -}}", json!(3)),
        (" \n{{- .spec.replicas -}} ", json!(3)),
        ("{{/* why */}}{{ .spec.replicas }}", json!(3)),
        ("{{ .spec.nope | default 5 }}", json!(5)),
        ("{{ eq 1 1 }}", json!(true)),
        ("{{ 1.5 }}", json!(1.5)),
        ("{{ split \"a,b\" \",\" }}", json!(["a", "b"])),
        // Everything else is text.
        (" {{ .spec.replicas }}", json!(" 3")),
        ("{{ .spec.replicas }}\n", json!("3\n")),
        ("{{ .spec.replicas }}{{ .spec.on }}", json!("3true")),
        ("{{ if true }}{{ .spec.replicas }}{{ end }}", json!("3")),
        ("{{ $x := .spec.replicas }}", json!("")),
        ("{{ $x := .spec.replicas }}{{ $x }}", json!("3")),
        ("  kept as it is ", json!("  kept as it is ")),
        ("", json!("")),
    ];
    for (source, expected) in cases {
        assert_eq!(
            value(source, &root()).unwrap().to_json(),
            expected,
            "{source}"
        );
    }
}

#[test]
fn what_is_missing_is_empty_wherever_it_is() {
    for source in [
        "{{ .nope }}",
        "{{ .nope.deep.deeper }}",
        "{{ .spec.replicas.deep }}",
        "{{ .spec.no.deep }}",
        "{{ .spec.list.deep }}",
        "{{ (get . \"nope\").deep }}",
        "{{ index .spec.list 99 }}",
        "{{ index .spec.nope 0 }}",
        "{{ index .metadata.labels \"nope\" }}",
        "{{ index .metadata.labels .nope }}",
        "{{ get .children.service \"status\" \"x\" }}",
        "{{ get .spec.list \"0\" }}",
        "{{ get .spec .nope }}",
        "{{ toLower .nope }}",
        "{{ trimSpace .nope }}",
        "{{ replace .nope \"a\" \"b\" }}",
        "{{ join .nope \",\" }}",
        "{{ toString .nope }}",
        "{{ ternary .nope 1 .nope }}",
        "{{ default .nope .nope }}",
        "{{ with .nope }}x{{ end }}",
        "{{ range .nope }}x{{ end }}",
        "{{ $x := .nope }}{{ $x.y.z }}",
        "{{ printf .nope }}",
    ] {
        assert_eq!(text(source, &root()).as_deref(), Ok(""), "{source}");
    }
}

#[test]
fn we_differ_from_go_where_it_fails_for_a_missing_value_or_rounds() {
    let cases = [
        // Go fails: a nil operand, an index out of range, a path through nil.
        (
            "{{ lt .nope 1 }}{{ gt .nope 1 }}{{ le .nope 0 }}{{ ge 0 .nope }}{{ lt .nope .nope }}",
            "truefalsetruetruefalse",
        ),
        ("{{ lt .nope \"a\" }}{{ le \"\" .nope }}", "truetrue"),
        ("{{ toInt .nope }}{{ len .nope }}", "00"),
        ("x{{ index .spec.list 99 }}y", "xy"),
        // Go cannot compare integers with floats.
        (
            "{{ eq 1 1.0 }}{{ lt 1 1.5 }}{{ gt 2.5 .spec.replicas }}",
            "truetruefalse",
        ),
        // Go overflows.
        ("{{ 18446744073709551615 }}", "18446744073709551615"),
        // Go prints 1e+06; here, only the verb `%g` does.
        (
            "{{ .spec.whole }} {{ printf \"%v\" .spec.whole }} {{ toString .spec.whole }}",
            "1000000 1000000 1000000",
        ),
        ("{{ printf \"%g\" .spec.whole }}", "1e+06"),
        // Go requires a comment to start at the brace.
        ("a{{ /* b */ }}c", "ac"),
        // Go's own len fails on numbers.
        ("{{ len 5 }}", "0"),
    ];
    for (source, expected) in cases {
        assert_eq!(text(source, &root()).as_deref(), Ok(expected), "{source}");
    }
}

/// A template, and the JSON of its value.
const RULES: &[(&str, &str)] = &[
    // default: fallback first, unless only the second is a constant; a piped value is always the value
    ("{{ default \"x\" .spec.image }}", r#""nginx""#),
    ("{{ default \"x\" .spec.nope }}", r#""x""#),
    ("{{ default .spec.image \"x\" }}", r#""nginx""#),
    ("{{ default .spec.nope \"x\" }}", r#""x""#),
    ("{{ default .spec.image .spec.nope }}", r#""nginx""#),
    ("{{ .spec.replicas | default 9 }}", "3"),
    ("{{ 0 | default 9 }}", "9"),
    ("{{ false | default true }}", "true"),
    ("{{ \"x\" | default .spec.image }}", r#""x""#),
    // ternary
    ("{{ ternary .spec.on 1 2 }}", "1"),
    ("{{ ternary \"true\" 1 2 }}", "1"),
    ("{{ ternary \" false \" 1 2 }}", "2"),
    ("{{ ternary 0 1 2 }}", "2"),
    ("{{ ternary .spec.replicas 1 2 }}", "1"),
    ("{{ ternary .spec.nope 1 2 }}", "2"),
    ("{{ ternary .spec.list 1 2 }}", "1"),
    ("{{ 2 | ternary .spec.nope 1 }}", "2"),
    // get
    (
        "{{ get .children.deployment \"status\" \"readyReplicas\" }}",
        "2",
    ),
    ("{{ get .metadata.labels \"app.io/tier\" }}", r#""db""#),
    ("{{ get . \"spec\" \"image\" }}", r#""nginx""#),
    ("{{ get $ \"spec\" \"image\" }}", r#""nginx""#),
    ("{{ (get . \"metadata\").name }}", r#""web""#),
    // index
    ("{{ index . \"spec\" \"list\" 1 }}", "1"),
    ("{{ index .spec.list .nope }}", "null"),
    // toInt, toString
    ("{{ toInt \" 42 \" }}", "42"),
    ("{{ toInt \"-4.9\" }}", "-4"),
    ("{{ toInt 4.9 }}", "4"),
    ("{{ toInt true }}", "1"),
    ("{{ toInt \"9007199254740993\" }}", "9007199254740993"),
    ("{{ toInt \"1e3\" }}", "1000"),
    ("{{ toInt .spec.port }}", "8080"),
    ("{{ toString .spec.replicas }}", r#""3""#),
    ("{{ toString .spec.list }}", r#""[a 1 <nil>]""#),
    ("{{ toString true }}", r#""true""#),
    // texts
    ("{{ toLower .spec.region }}", r#""eu_west""#),
    (
        "{{ replace (toLower .spec.region) \"_\" \"-\" }}",
        r#""eu-west""#,
    ),
    ("{{ replace \"abc\" \"\" \"-\" }}", r#""-a-b-c-""#),
    ("{{ replace \"aaa\" \"aa\" \"b\" }}", r#""ba""#),
    ("{{ trimSpace .spec.text }}", r#""Padded""#),
    ("{{ split \"\" \",\" }}", "[]"),
    ("{{ split \"a,,b\" \",\" }}", r#"["a", "", "b"]"#),
    ("{{ split \"aé\" \"\" }}", r#"["a", "é"]"#),
    ("{{ join .spec.list \", \" }}", r#""a, 1, ""#),
    ("{{ join (split \"a b c\" \" \") \"\" }}", r#""abc""#),
    // and, or
    ("{{ and .spec.image .spec.replicas }}", "3"),
    ("{{ and .spec.image .spec.nope .spec.replicas }}", "null"),
    ("{{ or .spec.nope 0 }}", "0"),
    ("{{ or true (toInt \"junk\") }}", "true"),
    ("{{ and false (toInt \"junk\") }}", "false"),
    ("{{ 5 | or .spec.nope }}", "5"),
    ("{{ 5 | or .spec.image }}", r#""nginx""#),
];

#[test]
fn notes_follow_their_rules_beyond_the_examples() {
    for (source, expected) in RULES {
        let expected: Value = serde_json::from_str(expected).unwrap();
        let given = value(source, &root()).map(|node| node.to_json());
        assert_eq!(given, Ok(expected), "{source}");
    }
}

#[test]
fn a_value_of_the_data_is_borrowed_and_not_copied() {
    let root = root();
    let data = Data::of(&root);
    for source in [
        "{{ .spec.list }}",
        "{{ .spec.nope | default .spec.list }}",
        "{{ get . \"spec\" \"list\" }}",
        "{{ ternary true .spec.list 0 }}",
    ] {
        let template = template(source);
        let value = template.eval(&data, &mut EvalBudget::default()).unwrap();
        assert!(matches!(value, Cow::Borrowed(_)), "{source}");
    }
}

#[test]
fn the_dot_alone_is_all_of_the_data() {
    let root = root();
    assert_eq!(value("{{ . }}", &root), Ok(root.clone()));
    assert_eq!(
        value("{{ with . }}{{ .spec.image }}{{ end }}", &root),
        Ok(Node::from("nginx"))
    );
    assert_eq!(
        text("{{ range $k, $v := . }}{{ $k }} {{ end }}", &root).as_deref(),
        Ok("children metadata spec ")
    );
    assert_eq!(
        text("{{ $x := . }}{{ $x.spec.image }}", &root).as_deref(),
        Ok("nginx")
    );
    assert_eq!(
        text("{{ len . }}{{ if . }}y{{ end }}", &root).as_deref(),
        Ok("3y")
    );
    assert_eq!(
        text("{{ if . }}y{{ else }}n{{ end }}", &Node::Null).as_deref(),
        Ok("n")
    );
}

#[test]
fn data_can_be_extended_and_a_name_replaced() {
    let (one, two) = (Node::Int(1), Node::Int(2));
    let base = Data::new().with("item", &one).with("spec", &one);
    let more = base.clone().with("item", &two);
    let template = template("{{ .item }}{{ .spec }}");
    let text = |data: &Data<'_>| {
        template
            .render_text(data, &mut EvalBudget::default())
            .unwrap()
    };
    assert_eq!((text(&base).as_str(), text(&more).as_str()), ("11", "21"));
    assert_eq!(more.get("item"), Some(&two));
}

#[test]
fn equal_sources_are_one_template() {
    let source = "{{ .spec.shared }}-{{ .spec.once }}";
    let (a, b) = (template(source), template(source));
    assert!(std::ptr::eq(a.source(), b.source()));
    assert_eq!(a, b);
}

#[test]
fn a_template_shows_what_it_is() {
    let plain = template("a } b");
    assert_eq!(plain.literal(), Some("a } b"));
    assert!(!plain.is_single_expression());
    let single = template("{{ .a }}");
    assert_eq!(single.literal(), None);
    assert!(single.is_single_expression());
    assert_eq!(template("x{{ .a }}").literal(), None);
}
