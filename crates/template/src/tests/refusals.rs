//! Rejected arguments of notes, random bytes, and sizes.

use super::notes::root;
use super::*;
use crate::{Entropy, EvalErrorKind};
use EvalErrorKind::{Function, Type};

/// A template, the kind of its failure, and the message, not compared if empty.
const ERRORS: &[(&str, EvalErrorKind, &str)] = &[
    ("{{ div 1 0 }}", Function, "`div` cannot divide by zero"),
    ("{{ div 1 .nope }}", Function, "`div` cannot divide by zero"),
    ("{{ div 1 0.0 }}", Function, "`div` cannot divide by zero"),
    ("{{ mod 5 0.5 }}", Function, "`mod` cannot divide by zero"),
    (
        "{{ add .spec.text 1 }}",
        Type,
        "`add` expects a number as argument 1, not text",
    ),
    ("{{ add \"inf\" 1 }}", Type, ""),
    (
        "{{ mul 1e308 10 }}",
        Function,
        "`mul` gives a number that is too large",
    ),
    (
        "{{ toInt .spec.text }}",
        Function,
        "`toInt` was given text that is not a number",
    ),
    (
        "{{ toInt \"NaN\" }}",
        Function,
        "`toInt` was given text that is not a number",
    ),
    (
        "{{ toInt 1e300 }}",
        Function,
        "`toInt` was given a number that is no 64-bit integer",
    ),
    (
        "{{ toFloat \"\" }}",
        Function,
        "`toFloat` was given text that is not a number",
    ),
    (
        "{{ toBool .spec.text }}",
        Function,
        "`toBool` was given text that is neither true nor false",
    ),
    (
        "{{ toBool .spec.list }}",
        Type,
        "`toBool` expects a boolean, a number or text as argument 1, not list",
    ),
    (
        "{{ toList 5 }}",
        Type,
        "`toList` expects text or a list as argument 1, not integer",
    ),
    (
        "{{ boolTernary .spec.n 1 2 }}",
        Type,
        "`boolTernary` expects a boolean as argument 1, not integer",
    ),
    (
        "{{ repeat \"a\" -1 }}",
        Function,
        "`repeat` was given a negative number",
    ),
    (
        "{{ repeat \"a\" 2000000 }}",
        EvalErrorKind::Budget,
        "the template makes a text of more than 1 MiB",
    ),
    (
        "{{ fromBase64 .spec.text }}",
        Function,
        "`fromBase64` was given text that is no base64",
    ),
    (
        "{{ fromBase64 \"//8=\" }}",
        Function,
        "`fromBase64` was given base64 of what is no text",
    ),
    (
        "{{ slice .spec.text 3 2 }}",
        Function,
        "`slice` was given positions that go backwards",
    ),
    (
        "{{ slice .spec.text -1 }}",
        Function,
        "`slice` was given a negative index",
    ),
    (
        "{{ slice .spec.text 0 1 2 }}",
        Function,
        "`slice` takes two positions of a text, not three",
    ),
    (
        "{{ slice .spec.map 0 }}",
        Type,
        "`slice` expects text or a list as argument 1, not map",
    ),
    (
        "{{ randomHex 4 }}",
        Function,
        "`randomHex` returns a new value in each call, so it is permitted only where the value is generated once and kept",
    ),
];

#[test]
fn what_makes_no_sense_is_refused_without_telling_the_value() {
    let root = root();
    for (source, kind, message) in ERRORS {
        let template = match Template::parse(source) {
            Ok(template) => template,
            // A constant of a wrong type is reported by the parser.
            Err(errors) => {
                assert_eq!(*kind, Type, "{source}: {errors:?}");
                continue;
            }
        };
        let error = template
            .eval(&Data::of(&root), &mut EvalBudget::default())
            .unwrap_err();
        assert_eq!(error.kind, *kind, "{source}: {error}");
        if !message.is_empty() {
            assert_eq!(error.message, *message, "{source}");
        }
        assert!(!error.message.contains("Größe"), "{source}");
    }
}

#[test]
fn random_notes_have_the_shapes_that_they_promise() {
    let entropy = Entropy::seeded([3; 32]);
    let data = Data::new().random(&entropy);
    let text = |source: &str| {
        let template = template(source);
        assert!(template.is_random(), "{source}");
        template
            .render_text(&data, &mut EvalBudget::default())
            .unwrap()
    };
    for count in [0, 1, 7, 64, 1000] {
        let drawn = text(&format!("{{{{ randomAlphanumeric {count} }}}}"));
        assert!(drawn.len() == count && drawn.bytes().all(|b| b.is_ascii_alphanumeric()));
        let drawn = text(&format!("{{{{ randomHex {count} }}}}"));
        assert!(
            drawn.len() == 2 * count && drawn.bytes().all(|b| b"0123456789abcdef".contains(&b))
        );
        let drawn = text(&format!("{{{{ randomBase64 {count} }}}}"));
        assert_eq!(drawn.trim_end_matches('=').len(), (count * 4).div_ceil(3));
        assert!(
            drawn
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_=".contains(&b))
        );
    }
    let uuid = text("{{ uuidv4 }}");
    let groups: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(groups, [8, 4, 4, 4, 12]);
    assert_eq!(uuid.as_bytes()[14], b'4');
    assert!(b"89ab".contains(&uuid.as_bytes()[19]));
    // No two values are equal, and all characters occur.
    let many: Vec<String> = (0..100)
        .map(|_| text("{{ randomAlphanumeric 40 }}"))
        .collect();
    let distinct: std::collections::BTreeSet<&String> = many.iter().collect();
    let characters: std::collections::BTreeSet<char> = many.concat().chars().collect();
    assert_eq!((distinct.len(), characters.len()), (100, 62));
}

#[test]
fn notes_that_build_much_end_with_the_budget() {
    let list: Vec<Node> = (0..2000).map(|n| Node::from(format!("item-{n}"))).collect();
    let map = list.iter().map(|item| {
        let key = orkestra_object::value::Key::new(item.as_str().unwrap());
        (key, Node::from("x".repeat(100)))
    });
    let root = Node::object([
        ("list", Node::from(list.clone())),
        ("map", Node::Map(map.collect())),
        ("long", Node::from("ab,".repeat(100_000))),
    ]);
    for call in [
        "mapValues .map",
        "mapKeys .map",
        "mapPick .map .list",
        "mapOmit .map .list",
        "toJson .map",
        "asString .map",
        "concat .map .map",
        "toList .long",
        "trim .long \"x\"",
        "replace .long \"a\" \"aaaa\"",
        "toBase64 .long",
        "slugify .long",
        "html .long",
        "urlquery .long",
        "slice .long 1",
        "listHas .list .map",
        "lookup .long .long 1",
        "asMap .long",
        "randomAlphanumeric 100000",
        "randomHex 100000",
    ] {
        let source = format!("{{{{ range $i := 1000000 }}}}{{{{ $x := {call} }}}}{{{{ end }}}}");
        let template = template(&source.replace(" .", " $."));
        let entropy = Entropy::seeded([1; 32]);
        let data = Data::of(&root).random(&entropy);
        let begun = std::time::Instant::now();
        // The steps and bytes of the budget are a tenth of the default.
        let mut budget = EvalBudget {
            steps: 100_000,
            bytes: 400 << 10,
            ..EvalBudget::default()
        };
        let error = template.render_text(&data, &mut budget).unwrap_err();
        assert_eq!(error.kind, EvalErrorKind::Budget, "{call}: {error}");
        // A release build takes a tenth of this time.
        assert!(
            begun.elapsed().as_millis() < 1000,
            "{call}: {:?}",
            begun.elapsed()
        );
    }
}
