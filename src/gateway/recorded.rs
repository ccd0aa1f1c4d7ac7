//! Conversions that definitions record, for stored objects whose entry has gone.
//!
//! ```text
//!  entry ──► `spec.conversion` and an annotation with the declaration, in one apply
//!  restart ─► no entry declares the conversion ──► annotation ──► plan
//! ```
//!
//! The annotation goes with `spec.conversion`, so it is there exactly as long as the webhook may be asked.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use orkestra_cluster::{
    watch::{Handle, Presence},
    wire::{Served, WireError},
};
use orkestra_core::{
    api::names,
    decode::Version,
    definitions::CrdShape,
    plan::{DeclaredConversion, KatalogRef, SecurityPlan},
    value::Node,
};
use orkestra_ground::Backoff;
use serde::{Deserialize, Serialize};
use tokio::{sync::Notify, time::timeout};

use super::{
    Gateway,
    catalogue::{Conversion, Conversions},
    keeper,
};

/// The longest record in bytes: half of what the annotations of an object may have.
const RECORD_BYTES: usize = 128 * 1024;
/// How long a conversion waits at the start until Katalogs and definitions were read.
const START: Duration = Duration::from_secs(5);
/// The delays after a failed request.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(500), Duration::from_secs(30));

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
pub(super) fn text(conversion: &Conversion) -> Option<String> {
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
pub(super) fn text_of(definition: &Node) -> Option<&str> {
    let annotations = definition.get("metadata")?.get("annotations")?;
    annotations
        .get(names::ANNOTATION_SERVED_CONVERSION)?
        .as_str()
}

/// Returns the conversion that a definition records; `None` if it has none that can be used.
fn conversion_of(definition: &Node) -> Option<Conversion> {
    let record: Record = serde_json::from_str(text_of(definition)?).ok()?;
    let shape = CrdShape::from_crd(definition).ok()?;
    Some(Conversion {
        katalog: KatalogRef::parse(&record.katalog),
        entry: record.entry,
        plan: Arc::new(record.declared.compile(&shape)?),
        security: SecurityPlan {
            conversion_window: record.window,
            ..SecurityPlan::default()
        },
    })
}

/// Follows the definitions of this installation, and publishes the conversions that they record and no Katalog declares; never
/// returns.
pub(super) async fn follow(gateway: &Gateway) {
    let changed = Arc::new(Notify::new());
    let watch = keeper::watch(gateway, Served::crds(), &changed);
    watch.looked_at().await;
    let mut listed = gateway.listed.clone();
    let mut catalogue = gateway.changed.subscribe();
    let mut read = BTreeMap::new();
    let mut failures = 0;
    loop {
        listed.mark_unchanged();
        catalogue.mark_unchanged();
        let retry = match look(gateway, &watch, &mut read).await {
            Ok(()) => {
                failures = 0;
                None
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the conversion of a definition");
                failures += 1;
                Some(RETRY.after(failures - 1))
            }
        };
        let again = async {
            match retry {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed.notified() => {}
            Ok(()) = catalogue.changed() => {}
            Ok(()) = listed.changed() => {}
            () = again => {}
        }
    }
}

/// Reads the definitions that changed.
async fn look(
    gateway: &Gateway,
    watch: &Handle<Presence>,
    read: &mut BTreeMap<String, (Version, Option<Conversion>)>,
) -> Result<(), WireError> {
    // Definitions whose Katalogs are not known yet need not be read.
    if !*gateway.listed.borrow() && gateway.recorded.borrow().is_some() {
        return Ok(());
    }
    let catalogue = gateway.catalogue.load_full();
    let mut current = BTreeMap::new();
    for live in watch.store().snapshot() {
        let (name, version) = (&*live.id.key.name, &live.id.resource_version);
        if catalogue.declares(name) {
            continue;
        }
        let known = match read.get(name) {
            Some(known) if known.0 == *version => known.clone(),
            before => {
                let definition = gateway.wire.find(&Served::crds(), name).await?;
                let conversion = definition.as_ref().and_then(conversion_of);
                // A record that somebody has removed is restored from here.
                let before = before.and_then(|(_, before)| before.clone());
                (version.clone(), conversion.or(before))
            }
        };
        current.insert(name.to_owned(), known);
    }
    *read = current;
    let conversions = read.values().filter_map(|(_, conversion)| {
        let conversion = conversion.clone()?;
        Some((conversion.key(), conversion))
    });
    let conversions: Conversions = conversions.collect();
    gateway.recorded.send_replace(Some(Arc::new(conversions)));
    Ok(())
}

/// Waits until it is known which conversions there are, unless one of the group is known already: at the start, the API server asks
/// before Katalogs and definitions are read.
pub(super) async fn until_known(gateway: &Gateway, desired_api_version: &str) {
    let (group, _) = desired_api_version.split_once('/').unwrap_or_default();
    let mut recorded = gateway.recorded.subscribe();
    let is_recorded = |all: &Option<Arc<Conversions>>| {
        let mut all = all.iter().flat_map(|all| all.keys());
        all.any(|(of, _)| **of == *group)
    };
    if gateway.catalogue.load().converts(group) || is_recorded(&recorded.borrow()) {
        return;
    }
    let mut listed = gateway.listed.clone();
    let known = async {
        let _ = listed.wait_for(|listed| *listed).await;
        let _ = recorded.wait_for(Option::is_some).await;
    };
    let _ = timeout(START, known).await;
}

#[cfg(test)]
mod tests {
    use orkestra_core::conversion::convert;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing;

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

    fn declared() -> Conversion {
        of(KATALOG)
    }

    fn of(katalog: &str) -> Conversion {
        let plan = testing::compiled(katalog);
        Conversion {
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
        // The record of the restored conversion is the same, so nothing is written for it.
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
        // A path that does not compile is left out, and the other one converts.
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
