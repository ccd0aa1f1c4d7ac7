//! Every note with arbitrary arguments.

use proptest::prelude::*;

use super::*;
use crate::Entropy;
use crate::notes::all;
use orkestra_object::value::Node;

/// Generates texts: valid inputs of at least one note, and invalid ones.
fn texts() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "",
        " ",
        "0",
        "-1",
        "7",
        "1.5",
        "true",
        "a,b",
        "{{",
        "é日本",
        "\u{1f41f}",
        "* * * * *",
        "*/5 1-3 ? jan,feb mon",
        "@daily",
        "0 0 30 2 *",
        "2026-05-08",
        "2026-05-08T12:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "-9999-01-01",
        "Mon Jan _2 15:04:05.999 MST 2006 -07:00 002 __2",
        "1h30m",
        "-2w",
        "1000y",
        "22:00",
        "6:00",
        "v1.2.3-rc.1+b",
        "^1.2 || >=2.x, !=3",
        "1 - 2",
        "10.0.0.0/8",
        "::/0",
        "10.0.0.1",
        "fd00::1",
        "https://www.a.io/x?y",
        "git@h.io:o/r.git",
        "h.io:5000/a:1@sha256:f",
        "a@b.io",
        "a.io/b",
        "[1, {\"a\": null}]",
        "250m",
        "1.5Gi",
        "-1e-9",
        "1e30",
        "Available",
        "minor",
        "http",
        "aGVsbG8=",
        "%[3]*.[2]*d %q %!",
    ]);
    prop_oneof![3 => known.prop_map(String::from), 1 => "\\PC{0,12}"]
}

fn values() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        Just(Node::Null),
        any::<bool>().prop_map(Node::Bool),
        prop_oneof![any::<i64>(), -3..70_000_i64].prop_map(Node::Int),
        any::<u64>().prop_map(Node::from),
        prop_oneof![any::<f64>(), Just(f64::NAN), -9.0..9.0].prop_map(Node::Float),
        texts().prop_map(Node::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keys = prop::sample::select(vec![
            "metadata",
            "spec",
            "status",
            "labels",
            "conditions",
            "type",
            "containers",
            "template",
            "ports",
            "name",
            "_pods",
            "_endpoints",
            "ip",
            "port",
            "hour",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Node::from),
            prop::collection::btree_map(keys, inner, 0..5).prop_map(|map| {
                let entries = map.into_iter().map(|(key, node)| (key.into(), node));
                Node::Map(entries.collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_note_gives_a_value_or_an_error_for_any_arguments(
        args in prop::collection::vec(values(), 5),
        now in -377_705_023_201_i64..253_402_207_200,
    ) {
        let root = Node::object([
            ("a", args[0].clone()), ("b", args[1].clone()), ("c", args[2].clone()), ("d", args[3].clone()), ("e", args[4].clone()),
        ]);
        let entropy = Entropy::seeded([7; 32]);
        let data = Data::of(&root).at(jiff::Timestamp::from_second(now).unwrap()).random(&entropy);
        for note in all() {
            let names = [".a", ".b", ".c", ".d", ".e"];
            for given in note.min_args..=note.max_args.unwrap_or(5).min(5) {
                let source = format!("{{{{ {} {} }}}}", note.name, names[..given].join(" "));
                let template = Template::parse(&source).unwrap();
                let mut budget = EvalBudget { steps: 20_000, bytes: 200_000, depth: 50 };
                let _ = template.eval(&data, &mut budget);
                let _ = template.render_text(&data, &mut budget);
            }
        }
    }
}
