//! The record of a conversion in its definition, for stored objects whose entry has gone.
//!
//! ```text
//!  entry ──► `spec.conversion` and an annotation with the declaration, in one apply
//!  restart ─► no entry declares the conversion ──► annotation ──► plan
//! ```
//!
//! The annotation goes with `spec.conversion`, so it is there exactly as long as the webhook may be asked.

use std::sync::Arc;

use orkestra_compiler::compile::recorded_conversion;
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::{DeclaredConversion, KatalogRef, SecurityPlan, definitions::CrdShape};
use serde::{Deserialize, Serialize};

use super::catalogue::KindConversion;

/// The longest record in bytes: half of what the annotations of an object may have.
const RECORD_BYTES: usize = 128 * 1024;

/// The content of the annotation.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    katalog: String,
    entry: String,
    window: u32,
    declared: DeclaredConversion,
}

/// Returns the text of the annotation; `None` if it is too long.
pub(crate) fn text(conversion: &KindConversion) -> Option<String> {
    let record = Record {
        katalog: conversion.katalog.to_string(),
        entry: conversion.entry.clone(),
        window: conversion.security.conversion_window,
        declared: conversion.plan.declared.clone(),
    };
    let text = serde_json::to_string(&record).ok();
    text.filter(|text| text.len() <= RECORD_BYTES)
}

/// Returns the text of the annotation that a definition has.
pub(crate) fn text_of(definition: &Node) -> Option<&str> {
    definition.annotation(names::ANNOTATION_SERVED_CONVERSION)
}

/// Returns the conversion that a definition records; `None` if it has none that can be used.
pub(crate) fn conversion_of(definition: &Node) -> Option<KindConversion> {
    let record: Record = serde_json::from_str(text_of(definition)?).ok()?;
    let shape = CrdShape::from_crd(definition).ok()?;
    Some(KindConversion {
        katalog: KatalogRef::parse(&record.katalog),
        entry: record.entry,
        plan: Arc::new(recorded_conversion(&record.declared, &shape)?),
        security: SecurityPlan {
            conversion_window: record.window,
            ..SecurityPlan::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use orkestra_engine::conversion::convert;
    use serde_json::{Value, json};

    use super::*;

    const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  notes: { functions: [{ name: loud, expression: '{{ .spec.name | upper }}' }] }
  security: { conversion: { enabled: true, conversionWindow: 7 } }
  crds:
    pond:
      apiTypes: { group: water.example, version: v2, kind: Pond, plural: ponds }
      conversion:
        storageVersion: v2
        paths:
          - { from: v1, to: v2, spec: { title: '{{ loud }}' } }
          - { from: v2, to: v1, spec: { name: '{{ .spec.title | lower }}' } }
";

    fn definition(record: Option<&str>) -> Node {
        let version = |name: &str, field: &str, storage: bool| {
            let spec = json!({ "type": "object", "properties": { field: { "type": "string" } } });
            json!({
                "name": name, "served": true, "storage": storage,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            })
        };
        Node::from(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "ponds.water.example", "annotations": { names::ANNOTATION_SERVED_CONVERSION: record } },
            "spec": {
                "group": "water.example", "scope": "Namespaced",
                "names": { "kind": "Pond", "plural": "ponds" },
                "versions": [version("v1", "name", false), version("v2", "title", true)],
            },
        }))
    }

    fn declared() -> KindConversion {
        of(KATALOG)
    }

    fn of(katalog: &str) -> KindConversion {
        let plan = orkestra_testkit::compiled(katalog);
        KindConversion {
            katalog: plan.katalog.clone(),
            entry: "pond".to_owned(),
            plan: plan.conversions[0].clone(),
            security: plan.security,
        }
    }

    #[test]
    fn a_recorded_conversion_converts_as_the_declared_one_with_its_notes() {
        let declared = declared();
        let record = text(&declared).unwrap();
        let recorded = conversion_of(&definition(Some(&record))).unwrap();
        assert_eq!(recorded.katalog, declared.katalog);
        assert_eq!(recorded.entry, "pond");
        assert_eq!(recorded.security.conversion_window, 7);
        assert_eq!(recorded.plan.definition(), "ponds.water.example");
        let old =
            json!({ "apiVersion": "water.example/v1", "kind": "Pond", "spec": { "name": "reed" } });
        for plan in [&declared.plan, &recorded.plan] {
            let new = convert(plan, Node::from(&old), "water.example/v2").unwrap();
            assert_eq!(new.to_json()["spec"]["title"], "REED");
            let back = convert(plan, new, "water.example/v1").unwrap();
            assert_eq!(back.to_json()["spec"]["name"], "reed");
        }
        // The restored conversion has the same record, so it causes no write.
        assert_eq!(text(&recorded), Some(record));
    }

    #[test]
    fn a_record_that_others_wrote_is_used_only_if_it_is_one() {
        assert!(conversion_of(&definition(None)).is_none());
        for odd in ["", "{}", "[]", "{\"katalog\":1}"] {
            assert!(conversion_of(&definition(Some(odd))).is_none(), "{odd}");
        }
        let record = text(&declared()).unwrap();
        let mut broken: Value = serde_json::from_str(&record).unwrap();
        broken["declared"]["conversion"]["paths"] = json!([]);
        assert!(conversion_of(&definition(Some(&broken.to_string()))).is_none());
        // A conversion path that does not compile is left out; the other path still converts.
        let mut half: Value = serde_json::from_str(&record).unwrap();
        half["declared"]["conversion"]["paths"][0]["spec"]["title"] = json!("{{ nothing | }}");
        let half = conversion_of(&definition(Some(&half.to_string())));
        assert!(half.is_some_and(|half| half.plan.route("v2", "v1").is_some()));
    }

    #[test]
    fn a_record_that_does_not_fit_an_annotation_is_not_written() {
        let long = format!("'{}", "x".repeat(RECORD_BYTES));
        let long = of(&KATALOG.replace("'{{ .spec.title", &format!("{long}{{{{ .spec.title")));
        assert_eq!(text(&long), None);
    }
}
