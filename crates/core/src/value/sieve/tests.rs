use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::project, *};

fn paths(texts: &[String]) -> Vec<Path> {
    texts
        .iter()
        .map(|text| Path::parse(text).unwrap())
        .collect()
}

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

fn sieve(texts: &[&str]) -> Sieve {
    let texts: Vec<String> = texts.iter().copied().map(str::to_owned).collect();
    Sieve::new(&paths(&texts))
}

fn read(sieve: &Sieve, tree: &Value) -> Value {
    sieve.read(tree.to_string().as_bytes()).unwrap().to_json()
}

/// Few keys, so that paths meet them; `0` and `1` are keys and positions.
const KEYS: &str = "[abc01]";

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(KEYS, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn some_paths() -> impl Strategy<Value = Vec<String>> {
    let step = prop_oneof!["\\.[abc01]", "\\[[0-3]\\]"];
    let path = prop::collection::vec(step, 0..4).prop_map(|steps| steps.concat());
    prop::collection::vec(path, 0..5)
}

/// JSON in which keys come twice, which no writer of ours makes.
fn doubled(tree: &Value) -> String {
    match tree {
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| {
                let key = Value::from(key.as_str());
                format!("{key}:[1,{{\"a\":2}}],{key}:{}", doubled(value))
            };
            format!(
                "{{{}}}",
                map.iter().map(entry).collect::<Vec<_>>().join(",")
            )
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(doubled).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn a_text_through_a_sieve_is_the_projection_of_its_tree(tree in tree(), texts in some_paths(), twice in any::<bool>()) {
        let text = if twice { doubled(&tree) } else { tree.to_string() };
        let (paths, whole) = (paths(&texts), serde_json::from_str::<Node>(&text).unwrap());
        let sieved = Sieve::new(&paths).read(text.as_bytes()).unwrap();
        prop_assert_eq!(&sieved, &project(&whole, &paths));
        // Who looks at less afterwards sees the same.
        for one in &paths {
            let one = std::slice::from_ref(one);
            prop_assert_eq!(project(&sieved, one), project(&whole, one));
        }
    }

    #[test]
    fn broken_text_breaks_for_the_same_reason(tree in tree(), texts in some_paths(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut text = tree.to_string().into_bytes();
        let at = at.index(text.len());
        if cut {
            text.truncate(at);
        } else {
            text[at] = byte;
        }
        let whole = serde_json::from_slice::<Node>(&text);
        let sieved = Sieve::new(&paths(&texts)).read(&text);
        match (whole, sieved) {
            (Ok(whole), Ok(sieved)) => prop_assert_eq!(project(&whole, &paths(&texts)), sieved),
            (Err(one), Err(other)) => prop_assert_eq!(one.to_string(), other.to_string()),
            (one, other) => prop_assert!(false, "{one:?} {other:?}"),
        }
    }
}

#[test]
fn what_is_passed_over_is_json_all_the_same() {
    let deep = format!("{{\"b\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for text in [
        &*deep,
        r#"{"b":"\ud800"}"#,
        r#"{"b":1e999}"#,
        r#"{"b":01}"#,
        "{} x",
    ] {
        let whole = serde_json::from_str::<Node>(text).unwrap_err();
        let sieved = sieve(&["a"]).read(text.as_bytes()).unwrap_err();
        assert_eq!(sieved.to_string(), whole.to_string(), "{text}");
    }
}

#[test]
fn of_each_item_only_some_fields_are_kept() {
    let tree = json!({"l": [{"a": 1, "b": 2}, 3, {"b": 4}, {"a": {"c": 5, "d": 6}}], "m": [1]});
    let each = sieve(&[]).with_each(&path("l"), &[path("a.c"), path("b")]);
    assert_eq!(
        read(&each, &tree),
        json!({"l": [{"b": 2}, null, {"b": 4}, {"a": {"c": 5}}]})
    );
    let both = sieve(&["l[3].a.d", "m"]).with_each(&path("l"), &[path("b")]);
    assert_eq!(
        read(&both, &tree),
        json!({"l": [{"b": 2}, null, {"b": 4}, {"a": {"d": 6}}], "m": [1]})
    );
}

#[test]
fn everything_is_kept_and_nothing() {
    let tree = json!({"a": [1, {"b": null}]});
    assert_eq!(read(&Sieve::whole(), &tree), tree);
    assert_eq!(read(&sieve(&[""]), &tree), tree);
    assert_eq!(read(&sieve(&[]), &tree), json!({}));
    assert_eq!(read(&sieve(&["a"]), &json!([1])), json!(null));
}
