//! Escaping: a value cannot affect anything outside its field.

use base64::{Engine, engine::general_purpose::STANDARD};
use orkestra_object::value::Node;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{World, key, rendered},
};

const SHOWING: &str = "onReconcile:
  configMaps: [{ name: c, data: { whole: '{{ .spec.text }}', part: 'a {{ .spec.text }} b' }, annotations: { example.org/text: '{{ .spec.text }}' } }]
  secrets: [{ name: s, data: { whole: '{{ .spec.text }}', part: 'a {{ .spec.text }} b' } }]
  deployments: [{ name: d, image: pump, env: { A: '{{ .spec.text }}' }, args: ['{{ .spec.text }}'] }]";

/// Checks that the children contain the text unchanged, and nothing else.
fn check(text: &str) {
    let cycle = World::new(
        &operator(SHOWING),
        pond(&json!({ "text": text }), &json!({})),
    )
    .decide();
    assert_eq!(cycle.failures, [], "{text:?}");
    let object = |kind: &str, name: &str| rendered(&cycle, &key(kind, name)).object.to_json();
    let within = format!("a {text} b");
    let config = object("ConfigMap", "c");
    assert_eq!(config["data"], json!({ "whole": text, "part": within }));
    assert_eq!(config["metadata"]["annotations"]["example.org/text"], *text);
    let secret = object("Secret", "s");
    let decoded = |name: &str| {
        STANDARD
            .decode(secret["data"][name].as_str().unwrap())
            .unwrap()
    };
    assert_eq!(decoded("whole"), text.as_bytes());
    assert_eq!(decoded("part"), within.as_bytes());
    assert_eq!(secret["data"].as_object().unwrap().len(), 2);
    let container =
        object("Deployment.apps", "d")["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(container["env"], json!([{ "name": "A", "value": text }]));
    assert_eq!(container["args"], json!([text]));
}

#[test]
fn texts_that_mean_something_elsewhere_mean_nothing_here() {
    for text in [
        "\"quoted\"",
        "it's",
        "a\nb: c",
        "---\nkind: Secret",
        "}}{{ .metadata.uid }}",
        "{{ .spec.text }}",
        "{{",
        "0644",
        "null",
        "yes",
        "true",
        "~",
        "1e3",
        "1.0",
        "0x10",
        "1_000",
        "- a",
        "#",
        "!!binary x",
        "&a *a",
        "<no value>",
        "$HOME ${HOME}",
        "\\n \\",
        "\u{0}\u{7}\u{1b}",
        "\r\n",
        "\u{2028}\u{feff}",
        "žluťoučký 鯉 🦀",
        " ",
        "",
        "  padded\t",
    ] {
        check(text);
    }
}

#[test]
fn values_that_are_no_text_are_shown_as_text_and_numbers_exactly() {
    let plan = operator(SHOWING);
    for (value, text) in [
        (json!(1_000_000), "1000000"),
        (json!(10_000_000_000_000_000_u64), "10000000000000000"),
        (json!(u64::MAX), "18446744073709551615"),
        (json!(0.1), "0.1"),
        (json!(false), "false"),
        (json!(null), ""),
        (json!(["a", 1]), "[\"a\",1]"),
        (json!({ "b": 1, "a": "\"" }), "{\"a\":\"\\\"\",\"b\":1}"),
    ] {
        let cycle = World::new(&plan, pond(&json!({ "text": value }), &json!({}))).decide();
        let object = |kind: &str, name: &str| rendered(&cycle, &key(kind, name)).object.to_json();
        assert_eq!(object("ConfigMap", "c")["data"]["whole"], *text, "{value}");
        assert_eq!(
            object("Secret", "s")["data"]["whole"],
            STANDARD.encode(text),
            "{value}"
        );
    }
}

#[test]
fn a_missing_value_is_empty_text() {
    let cycle = World::new(&operator(SHOWING), pond(&json!({}), &json!({}))).decide();
    let object = rendered(&cycle, &key("ConfigMap", "c")).object.to_json();
    assert_eq!(object["data"], json!({ "whole": "", "part": "a  b" }));
}

#[test]
fn a_list_for_arguments_keeps_its_items_whole() {
    let plan = operator(
        "onReconcile: { deployments: [{ name: d, image: pump, args: '{{ .spec.args }}' }] }",
    );
    let args = json!(["--a=\"b c\"", "x\ny", "{{ .spec }}", "- z"]);
    let cycle = World::new(&plan, pond(&json!({ "args": args }), &json!({}))).decide();
    let object = rendered(&cycle, &key("Deployment.apps", "d"))
        .object
        .to_json();
    assert_eq!(
        object["spec"]["template"]["spec"]["containers"][0]["args"],
        args
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_stays_in_its_field(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn an_expression_of_any_type_keeps_its_value_in_an_object(value in any_value()) {
        let plan = operator("onReconcile: { custom: [{ apiVersion: water.example/v1, kind: Fish, metadata: { name: c }, spec: { it: '{{ .spec.it }}' } }] }");
        let cycle = World::new(&plan, pond(&json!({ "it": value }), &json!({}))).decide();
        prop_assert_eq!(&cycle.failures, &[]);
        let found = rendered(&cycle, &key("Fish.water.example", "c")).object.get("spec").unwrap().get("it").cloned();
        prop_assert_eq!(found, Some(Node::from(&value)));
    }
}
