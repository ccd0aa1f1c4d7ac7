use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    super::{Cause, Fault, project},
    *,
};

fn paths(texts: &[String]) -> Vec<Path> {
    texts
        .iter()
        .map(|text| Path::parse(text).unwrap())
        .collect()
}

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

fn projection(texts: &[&str]) -> Projection {
    let texts: Vec<String> = texts.iter().copied().map(str::to_owned).collect();
    Projection::new(&paths(&texts))
}

fn read(projection: &Projection, tree: &Value) -> Value {
    projection
        .read(tree.to_string().as_bytes())
        .unwrap()
        .to_json()
}

/// A small set of keys, so that paths often match; `0` and `1` are keys and list positions.
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

/// JSON with duplicate keys, which our own serialization never produces.
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
        let sieved = Projection::new(&paths).read(text.as_bytes());
        if twice {
            // The kept parts must not contain duplicate keys.
            if let Err(error) = sieved {
                prop_assert!(error.to_string().starts_with(DUPLICATE));
                return Ok(());
            }
        }
        let sieved = sieved.unwrap();
        prop_assert_eq!(&sieved, &project(&whole, &paths));
        // A projection to one of the paths gives the same for the sieved value as for the whole.
        for one in &paths {
            let one = std::slice::from_ref(one);
            prop_assert_eq!(project(&sieved, one), project(&whole, one));
        }
    }

    #[test]
    fn of_broken_text_nothing_is_read_that_is_not_there(tree in tree(), texts in some_paths(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut text = tree.to_string().into_bytes();
        let at = at.index(text.len());
        if cut {
            text.truncate(at);
        } else {
            text[at] = byte;
        }
        let (paths, whole) = (paths(&texts), serde_json::from_slice::<Node>(&text));
        match (whole, Projection::new(&paths).read(&text)) {
            (Ok(whole), Ok(sieved)) => prop_assert_eq!(project(&whole, &paths), sieved),
            (Ok(_), Err(error)) => prop_assert!(error.to_string().starts_with(DUPLICATE)),
            // The text is invalid as a whole; the projection may skip the invalid part.
            (Err(_), _) => {}
        }
    }

    #[test]
    fn what_can_be_read_is_decoded_as_it_is_read(tree in tree(), texts in some_paths()) {
        let (text, projection) = (tree.to_string(), Projection::new(&paths(&texts)));
        prop_assert_eq!(projection.decode(text.as_bytes()), projection.read(text.as_bytes()).unwrap());
    }

    /// If one field of a map is broken, the others are unchanged.
    #[test]
    fn a_broken_field_is_a_fault_and_hides_no_other(tree in tree(), texts in some_paths()) {
        let paths: Vec<Path> = paths(&texts).iter().map(|path| below(path, "good")).collect();
        let projection = Projection::new(paths.iter().chain([&path("bad")]));
        let text = format!(r#"{{"bad":[1e400],"good":{tree}}}"#);
        let found = projection.decode(text.as_bytes());
        prop_assert_eq!(Fault::all_of(&found), [Fault { path: path("bad"), cause: Cause::Number }]);
        let whole = Node::from(&json!({ "good": tree }));
        prop_assert_eq!(project(&found, &paths), project(&whole, &paths));
    }
}

fn below(path: &Path, field: &str) -> Path {
    let first = PathStep::Field(Key::from(field));
    std::iter::once(first)
        .chain(path.steps().iter().cloned())
        .collect()
}

#[test]
fn what_is_skipped_has_the_syntax_of_json_and_may_be_what_cannot_be_read() {
    let a = projection(&["a"]);
    let deep = format!(
        r#"{{"b":{}{},"a":1}}"#,
        "[".repeat(9_999),
        "]".repeat(9_999)
    );
    for text in [
        &*deep,
        r#"{"b":"\ud800","a":1}"#,
        r#"{"b":1e999,"a":1}"#,
        r#"{"b":1,"b":2,"a":1}"#,
    ] {
        assert_eq!(a.read(text.as_bytes()).unwrap().to_json(), json!({"a": 1}));
    }
    for text in [r#"{"b":01}"#, "{} x", r#"{"b":[}"#] {
        assert!(a.read(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_key_that_is_kept_occurs_once() {
    for text in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":{"b":1,"b":2}}"#,
        r#"{"a":[{"b":1,"b":2}]}"#,
    ] {
        let error = projection(&["a"]).read(text.as_bytes()).unwrap_err();
        assert_eq!(Cause::of(&error), Cause::Duplicate, "{text}");
        assert!(serde_json::from_str::<Node>(text).is_ok());
    }
    let text = br#"{"m":{"x":1},"m":{"y":2},"n":3}"#;
    let found = projection(&["m.x", "n"]).decode(text);
    assert_eq!(
        Fault::all_of(&found),
        [Fault {
            path: path("m"),
            cause: Cause::Duplicate
        }]
    );
    assert_eq!(
        (found.get("m"), found.get("n")),
        (None, Some(&Node::Int(3)))
    );
}

#[test]
fn a_sieve_touches_what_is_above_and_below_of_what_it_keeps() {
    let kept = projection(&["spec.a", "l[1]"]).with_each(&path("m.f"), &[path("x")]);
    for one in [
        "",
        "spec",
        "spec.a",
        "spec.a.b",
        "l",
        "l[1].z",
        "m.f[7]",
        "m.f[7].x.y",
    ] {
        assert!(kept.touches(&path(one)), "{one}");
    }
    for one in ["spec.b", "status", "l[0]", "m.f[7].y", "m.g"] {
        assert!(!kept.touches(&path(one)), "{one}");
    }
}

#[test]
fn of_each_item_only_some_fields_are_kept() {
    let tree = json!({"l": [{"a": 1, "b": 2}, 3, {"b": 4}, {"a": {"c": 5, "d": 6}}], "m": [1]});
    let each = projection(&[]).with_each(&path("l"), &[path("a.c"), path("b")]);
    assert_eq!(
        read(&each, &tree),
        json!({"l": [{"b": 2}, null, {"b": 4}, {"a": {"c": 5}}]})
    );
    let both = projection(&["l[3].a.d", "m"]).with_each(&path("l"), &[path("b")]);
    assert_eq!(
        read(&both, &tree),
        json!({"l": [{"b": 2}, null, {"b": 4}, {"a": {"d": 6}}], "m": [1]})
    );
}

#[test]
fn everything_is_kept_and_nothing() {
    let tree = json!({"a": [1, {"b": null}]});
    assert_eq!(read(&Projection::whole(), &tree), tree);
    assert_eq!(read(&projection(&[""]), &tree), tree);
    assert_eq!(read(&projection(&[]), &tree), json!({}));
    assert_eq!(read(&projection(&["a"]), &json!([1])), json!(null));
}
