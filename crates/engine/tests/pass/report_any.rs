//! For any schema, values and old status, one status patch is sufficient.

use orkestra_engine::reconcile::{reason::Reason, verdict::Executed};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    operator::crd_status,
    report::{apply, failed, patch},
    report_schema::world,
};

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["integer", "number", "boolean", "string"])
            .prop_map(|kind| json!({ "type": kind })),
        Just(json!({ "x-kubernetes-int-or-string": true })),
        Just(json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::btree_map("[abc]", inner.clone(), 0..3)
                .prop_map(|map| json!({ "type": "object", "properties": map })),
            inner
                .clone()
                .prop_map(|values| json!({ "type": "object", "additionalProperties": values })),
            inner.prop_map(|items| json!({ "type": "array", "items": items })),
        ]
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|float: f64| json!(float)),
        (-9i32..9).prop_map(|int| json!(f64::from(int))),
        prop::sample::select(vec![
            "", "3", "3.0", "-0", "true", "x", " 5 ", "1e3", "inf", "nan"
        ])
        .prop_map(Value::from),
        prop::collection::vec(-9i32..9, 0..3).prop_map(|list| json!(list)),
        prop::collection::btree_map("[ab]", -2.0..2.0, 0..2)
            .prop_map(|map: std::collections::BTreeMap<String, f64>| json!(map)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_patched_status_needs_no_second_patch(
        schema in prop::collection::btree_map("[abc]|conditions|observedGeneration", any_schema(), 0..5),
        paths in prop::collection::btree_set("[abc](\\.[abc])?|[abc]\\[[01]\\]|[abc]\\[[01]\\]\\.[abc]", 0..4),
        values in prop::collection::vec(any_value(), 4),
        old in prop::collection::btree_map("[abc]", any_value(), 0..3),
        open in any::<bool>(),
        fails in any::<bool>(),
    ) {
        let mut schema = json!({ "type": "object", "properties": schema });
        schema["x-kubernetes-preserve-unknown-fields"] = json!(open);
        // No path may be below another.
        let paths: Vec<&String> = paths.iter().filter(|path| !paths.iter().any(|other| other != *path && other.starts_with(path.as_str()))).collect();
        let declared: Vec<String> = paths.iter().enumerate()
            .map(|(at, path)| format!("{{ path: '{path}', value: '{{{{ .spec.v{at} }}}}' }}"))
            .collect();
        let spec: serde_json::Map<String, Value> = values.into_iter().enumerate().map(|(at, value)| (format!("v{at}"), value)).collect();
        let mut world = world(&declared.join(", "), &Value::Object(spec), &json!(old));
        let crd_status = crd_status(&schema);
        let executed = if fails { failed(Reason::Denied) } else { Executed::default() };
        if let Some(first) = patch(&world, &crd_status, &mut executed.clone(), 0) {
            apply(&mut world, &first);
            prop_assert_eq!(patch(&world, &crd_status, &mut executed.clone(), 60).map(|patch| patch.body.to_json()), None);
        }
    }
}
