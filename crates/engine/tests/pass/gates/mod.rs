//! Conditions, operator by operator.

mod time;

use orkestra_engine::reconcile::{
    reason::Reason,
    sources::{Answer, Read},
};
use orkestra_object::value::{Node, Path};
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{World, words},
};

/// Returns a world whose `ConfigMap` exists if its gate is open. `gate` is the lists in flow style.
fn world(gate: &str, spec: &Value) -> World {
    let declared =
        format!("onReconcile: {{ configMaps: [{{ name: a, onFalse: delete, {gate} }}] }}");
    World::new(&operator(&declared), pond(spec, &json!({})))
}

fn is_open(gate: &str, spec: &Value) -> bool {
    let cycle = world(gate, spec).decide();
    assert_eq!(cycle.failures, [], "{gate} {spec}");
    !cycle.intents.is_empty()
}

fn holds(condition: &str, spec: &Value) -> bool {
    is_open(&format!("when: [{{ {condition} }}]"), spec)
}

// Over 60 lines: a table of conditions.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn every_operator_in_both_forms() {
    let pond = json!({
        "water": "salt water", "depth": 7, "far": 9_007_199_254_740_993_i64, "share": 2.5, "clean": true, "none": "",
        "fish": ["cod", "eel"], "no": [], "map": {"a": 1}, "empty": {}, "text": "7.0", "waters": ["fresh", "salt water"],
    });
    // The condition, and whether it holds.
    let cases = [
        ("field: spec.water, equals: salt water", true),
        ("field: .spec.water, equals: ' salt water '", true),
        ("field: spec.water, equals: fresh", false),
        ("field: spec.water, operator: eq, value: salt water", true),
        ("field: spec.gone, equals: ''", true),
        ("field: spec.gone.deeper, equals: ''", true),
        ("field: spec.clean, equals: true", true),
        ("field: spec.clean, equals: 'true'", true),
        ("field: spec.water, notEquals: fresh", true),
        ("field: spec.water, operator: ne, value: salt water", false),
        ("field: spec.gone, notEquals: x", true),
        ("field: spec.gone, notEquals: ''", false),
        ("field: spec.water, contains: 't w'", true),
        ("field: spec.gone, contains: x", false),
        ("field: spec.water, notContains: fresh", true),
        (
            "field: spec.water, operator: notContains, value: salt",
            false,
        ),
        ("field: spec.water, prefix: salt", true),
        ("field: spec.water, hasPrefix: fresh", false),
        ("field: spec.water, operator: hasPrefix, value: salt", true),
        ("field: spec.water, notPrefix: salt", false),
        ("field: spec.water, suffix: water", true),
        ("field: spec.water, hasSuffix: water", true),
        (
            "field: spec.water, operator: notSuffix, value: water",
            false,
        ),
        ("field: spec.water, regex: '^salt.w'", true),
        ("field: spec.water, regex: 'lt\\s'", true),
        (
            "field: spec.water, operator: matches, value: '^water'",
            false,
        ),
        ("field: spec.gone, regex: '^$'", true),
        ("field: spec.water, exists: true", true),
        ("field: spec.none, exists: true", false),
        ("field: spec.no, exists: true", false),
        ("field: spec.empty, exists: true", false),
        ("field: spec.fish, exists: true", true),
        ("field: spec.none, exists: false", true),
        ("field: spec.depth, operator: exists", true),
        ("field: spec.gone, notExists: true", true),
        ("field: spec.gone, operator: notExists", true),
        ("field: spec.depth, greaterThan: 6", true),
        ("field: spec.depth, greaterThan: 7", false),
        ("field: spec.depth, operator: gt, value: 6.9", true),
        ("field: spec.depth, operator: greaterThan, value: '6'", true),
        ("field: spec.far, greaterThan: 9007199254740992", true),
        ("field: spec.far, lessThan: 9007199254740994", true),
        ("field: spec.share, lessThan: 2.50001", true),
        ("field: spec.gone, lessThan: 1", true),
        ("field: spec.gone, greaterThan: 0", false),
        ("field: spec.gone, greaterThan: -1", true),
        ("field: spec.depth, greaterThanOrEqual: 7", true),
        ("field: spec.depth, min: 8", false),
        ("field: spec.text, operator: gte, value: 7", true),
        ("field: spec.depth, lessThanOrEqual: 7", true),
        ("field: spec.depth, max: 6", false),
        ("field: spec.depth, operator: lte, value: 8", true),
        ("field: spec.depth, min: 1, max: 9", true),
        ("field: spec.depth, min: 1, max: 6", false),
        ("field: spec.depth, between: '7,9'", true),
        ("field: spec.depth, between: [1, 6]", false),
        (
            "field: spec.depth, operator: between, value: ' 1 , 7 '",
            true,
        ),
        ("field: spec.depth, notBetween: '1,6'", true),
        (
            "field: spec.depth, operator: notBetween, value: [1, 7]",
            false,
        ),
        ("field: spec.water, in: 'fresh, salt water'", true),
        ("field: spec.water, in: [fresh, salt water]", true),
        ("field: spec.water, in: [fresh]", false),
        ("field: spec.depth, in: [7]", true),
        ("field: spec.water, in: '{{ .spec.waters }}'", true),
        ("field: spec.water, in: ['{{ .spec.water }}']", true),
        (
            "field: spec.water, operator: notIn, value: [fresh, brackish]",
            true,
        ),
        ("field: spec.gone, notIn: [a]", true),
        ("field: spec.fish, operator: typeList", true),
        ("field: spec.map, operator: typeMap", true),
        ("field: spec.map, operator: typeList", false),
        ("field: spec.water, operator: typeString", true),
        ("field: spec.depth, operator: typeNumber", true),
        ("field: spec.text, operator: typeNumber", false),
        ("field: spec.clean, operator: typeBool", true),
        ("field: spec.gone, operator: typeNull", true),
        ("field: spec.map, operator: typeOf, value: map", true),
        (
            "field: '{{ .spec.depth }}', operator: typeOf, value: number",
            true,
        ),
        (
            "field: '{{ .spec.depth }}m', operator: typeOf, value: number",
            false,
        ),
        ("field: 'spec.fish[1]', equals: eel", true),
        ("field: spec.fish.0, equals: cod", true),
        ("field: 'spec.fish[2]', notExists: true", true),
        (
            "field: '{{ .spec.depth }}-{{ .spec.water }}', prefix: 7-salt",
            true,
        ),
        ("field: spec.water, equals: '{{ .spec.water }}'", true),
        ("field: spec.text, equals: 7, valueType: float", true),
        ("field: spec.text, equals: 7", false),
        ("field: spec.text, notEquals: 7, valueType: int", false),
        (
            "field: spec.far, equals: 9007199254740992, valueType: int",
            false,
        ),
        ("field: spec.gone, equals: 0, valueType: int", true),
        ("field: spec.gone, equals: false, valueType: bool", true),
        ("field: spec.clean, equals: true, valueType: bool", true),
        ("field: spec.text, in: [6, 7], valueType: float", true),
        ("field: spec.water, prefix: salt, suffix: water", true),
        ("field: spec.water, prefix: salt, suffix: air", false),
        (
            "field: spec.water, prefix: salt, suffix: air, negate: true",
            true,
        ),
        ("field: spec.water, equals: salt water, negate: true", false),
    ];
    let wrong: Vec<_> = cases
        .iter()
        .filter(|(condition, expected)| holds(condition, &pond) != *expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn all_of_when_and_one_of_or_must_hold() {
    let (yes, no) = (
        "{ field: spec.on, equals: 1 }",
        "{ field: spec.on, equals: 2 }",
    );
    let spec = json!({"on": 1});
    for (when, or, expected) in [
        (vec![], vec![], true),
        (vec![yes], vec![], true),
        (vec![yes, no], vec![], false),
        (vec![], vec![no, yes], true),
        (vec![], vec![no], false),
        (vec![yes], vec![no], false),
        (vec![yes], vec![no, yes], true),
        (vec![no], vec![yes], false),
    ] {
        for name in ["or", "anyOf"] {
            let gate = format!("when: [{}], {name}: [{}]", when.join(", "), or.join(", "));
            assert_eq!(is_open(&gate, &spec), expected, "{gate}");
        }
    }
    // In `or`, all operators of one condition must hold, too.
    let both = "or: [{ field: spec.on, min: 1, max: 0 }]";
    assert!(!is_open(both, &spec));
}

#[test]
fn what_is_no_number_does_not_hold_and_is_reported() {
    let spec = json!({"water": "a secret word"});
    for condition in [
        "field: spec.water, greaterThan: 1",
        "field: spec.water, lessThanOrEqual: 1",
        "field: spec.water, between: '0,9'",
        "field: spec.water, notBetween: '0,9'",
        "field: spec.water, equals: 1, valueType: int",
        "field: spec.water, notEquals: true, valueType: bool",
        "field: spec.depth, greaterThan: '{{ .spec.water }}'",
    ] {
        let gate = format!("when: [{{ {condition} }}]");
        let cycle = world(&gate, &spec).decide();
        assert_eq!(words(&cycle), Vec::<String>::new(), "{gate}");
        assert_eq!(cycle.failures, []);
        let [doubt] = &cycle.doubts[..] else {
            panic!("{gate}: {:?}", cycle.doubts)
        };
        assert_eq!(doubt.reason, Reason::NotCompared);
        assert!(doubt.at.ends_with("configMaps[0].when[0]"), "{}", doubt.at);
        assert!(!doubt.message.contains("secret"), "{}", doubt.message);
    }
}

#[test]
fn what_a_template_gives_must_be_what_the_operator_needs() {
    let spec = json!({"water": "a(", "open": "soon", "cron": "never"});
    for condition in [
        "field: spec.depth, regex: '{{ .spec.water }}'",
        "time: { after: '{{ .spec.open }}' }",
        "cron: '{{ .spec.cron }}', duration: 1h",
    ] {
        let cycle = world(&format!("when: [{{ {condition} }}]"), &spec).decide();
        assert_eq!(words(&cycle), ["keep ConfigMap east/a"], "{condition}");
        let [failure] = &cycle.failures[..] else {
            panic!("{condition}: {:?}", cycle.failures)
        };
        assert_eq!(failure.reason, Reason::WrongType);
    }
}

#[test]
fn unique_asks_what_others_have() {
    let gate = "when: [{ field: spec.host, operator: unique }]";
    let mut world = world(gate, &json!({"host": " pond.example "}));
    assert_eq!(words(&world.decide()), ["apply ConfigMap east/a"]);
    let read = Read::Same(Path::parse("spec.host").unwrap(), "pond.example".into());
    let other = Node::from("east/other");
    world
        .outside
        .insert(read.clone(), Answer::Ready(other.into()));
    assert_eq!(words(&world.decide()), Vec::<String>::new());
    world
        .outside
        .insert(read, Answer::Unavailable("why".into()));
    let cycle = world.decide();
    assert_eq!(words(&cycle), ["keep ConfigMap east/a"]);
    assert_eq!(cycle.failures[0].reason, Reason::Unavailable);
    // An empty value is not compared.
    let world = self::world(gate, &json!({}));
    assert_eq!(words(&world.decide()), ["apply ConfigMap east/a"]);
}
