//! Values, types, and where we differ from Go on purpose.

use super::*;
use serde_json::{Value, json};
use std::borrow::Cow;

fn root() -> Node {
    node(json!({
        "metadata": {"name": "web", "labels": {"app.io/tier": "db"}},
        "spec": {"image": "nginx", "replicas": 3, "big": u64::MAX, "whole": 1e6, "list": ["a", 1, null], "on": true,
            "port": "8080", "no": null, "text": "  Padded  ", "region": "EU_West"},
        "children": {"deployment": {"status": {"readyReplicas": 2}}},
    }))
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
        // Go refuses to compare integers with floats.
        (
            "{{ eq 1 1.0 }}{{ lt 1 1.5 }}{{ gt 2.5 .spec.replicas }}",
            "truetruefalse",
        ),
        // Go overflows.
        ("{{ 18446744073709551615 }}", "18446744073709551615"),
        // Go writes 1e+06, but for the verb that asks for it.
        (
            "{{ .spec.whole }} {{ printf \"%v\" .spec.whole }} {{ toString .spec.whole }}",
            "1000000 1000000 1000000",
        ),
        ("{{ printf \"%g\" .spec.whole }}", "1e+06"),
        // Go wants a comment to start at the brace.
        ("a{{ /* b */ }}c", "ac"),
        // Go's own len fails on numbers.
        ("{{ len 5 }}", "0"),
    ];
    for (source, expected) in cases {
        assert_eq!(text(source, &root()).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn notes_follow_their_rules_beyond_the_examples() {
    let cases: &[(&str, Value)] = &[
        // default: fallback first, unless only the second is a constant; a piped value is the value
        ("{{ default \"x\" .spec.image }}", json!("nginx")),
        ("{{ default \"x\" .spec.nope }}", json!("x")),
        ("{{ default .spec.image \"x\" }}", json!("nginx")),
        ("{{ default .spec.nope \"x\" }}", json!("x")),
        ("{{ default .spec.image .spec.nope }}", json!("nginx")),
        ("{{ .spec.replicas | default 9 }}", json!(3)),
        ("{{ 0 | default 9 }}", json!(9)),
        ("{{ false | default true }}", json!(true)),
        ("{{ \"x\" | default .spec.image }}", json!("x")),
        // ternary
        ("{{ ternary .spec.on 1 2 }}", json!(1)),
        ("{{ ternary \"true\" 1 2 }}", json!(1)),
        ("{{ ternary \" false \" 1 2 }}", json!(2)),
        ("{{ ternary 0 1 2 }}", json!(2)),
        ("{{ ternary .spec.replicas 1 2 }}", json!(1)),
        ("{{ ternary .spec.nope 1 2 }}", json!(2)),
        ("{{ ternary .spec.list 1 2 }}", json!(1)),
        ("{{ 2 | ternary .spec.nope 1 }}", json!(2)),
        // get
        (
            "{{ get .children.deployment \"status\" \"readyReplicas\" }}",
            json!(2),
        ),
        ("{{ get .metadata.labels \"app.io/tier\" }}", json!("db")),
        ("{{ get . \"spec\" \"image\" }}", json!("nginx")),
        ("{{ get $ \"spec\" \"image\" }}", json!("nginx")),
        ("{{ (get . \"metadata\").name }}", json!("web")),
        // index
        ("{{ index . \"spec\" \"list\" 1 }}", json!(1)),
        ("{{ index .spec.list .nope }}", json!(null)),
        // toInt, toString
        ("{{ toInt \" 42 \" }}", json!(42)),
        ("{{ toInt \"-4.9\" }}", json!(-4)),
        ("{{ toInt 4.9 }}", json!(4)),
        ("{{ toInt true }}", json!(1)),
        (
            "{{ toInt \"9007199254740993\" }}",
            json!(9_007_199_254_740_993_i64),
        ),
        ("{{ toInt \"1e3\" }}", json!(1000)),
        ("{{ toInt .spec.port }}", json!(8080)),
        ("{{ toString .spec.replicas }}", json!("3")),
        ("{{ toString .spec.list }}", json!("[a 1 <nil>]")),
        ("{{ toString true }}", json!("true")),
        // texts
        ("{{ toLower .spec.region }}", json!("eu_west")),
        (
            "{{ replace (toLower .spec.region) \"_\" \"-\" }}",
            json!("eu-west"),
        ),
        ("{{ replace \"abc\" \"\" \"-\" }}", json!("-a-b-c-")),
        ("{{ replace \"aaa\" \"aa\" \"b\" }}", json!("ba")),
        ("{{ trimSpace .spec.text }}", json!("Padded")),
        ("{{ split \"\" \",\" }}", json!([])),
        ("{{ split \"a,,b\" \",\" }}", json!(["a", "", "b"])),
        ("{{ split \"aé\" \"\" }}", json!(["a", "é"])),
        ("{{ join .spec.list \", \" }}", json!("a, 1, ")),
        ("{{ join (split \"a b c\" \" \") \"\" }}", json!("abc")),
        // and, or
        ("{{ and .spec.image .spec.replicas }}", json!(3)),
        (
            "{{ and .spec.image .spec.nope .spec.replicas }}",
            json!(null),
        ),
        ("{{ or .spec.nope 0 }}", json!(0)),
        ("{{ or true (toInt \"junk\") }}", json!(true)),
        ("{{ and false (toInt \"junk\") }}", json!(false)),
        ("{{ 5 | or .spec.nope }}", json!(5)),
        ("{{ 5 | or .spec.image }}", json!("nginx")),
    ];
    for (source, expected) in cases {
        let given = value(source, &root()).map(|node| node.to_json());
        assert_eq!(given.as_ref(), Ok(expected), "{source}");
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
        let value = template.eval(&data, &mut Budget::default()).unwrap();
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
    let text = |data: &Data<'_>| template.render_text(data, &mut Budget::default()).unwrap();
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
fn a_template_tells_what_it_is() {
    let plain = template("a } b");
    assert_eq!(plain.literal(), Some("a } b"));
    assert!(!plain.is_single_expression());
    let single = template("{{ .a }}");
    assert_eq!(single.literal(), None);
    assert!(single.is_single_expression());
    assert_eq!(template("x{{ .a }}").literal(), None);
}
