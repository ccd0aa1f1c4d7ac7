//! Plans for tests.

use std::sync::Arc;

use orkestra_compiler::{compile, scope::Library};
use orkestra_language::api::KatalogSpec;
use orkestra_plan::{KatalogRef, OperatorPlan, Plan, definitions::Schemas};
use serde_json::{Map, Value, json};

/// Returns the Katalog `shop/<name>`.
pub(crate) fn katalog(name: &str) -> KatalogRef {
    KatalogRef::new("shop".to_owned(), name.to_owned())
}

/// Returns a plan of the Katalog `shop/<name>`, with an operator of `water.example` for each entry, version and kind.
pub(crate) fn plan(name: &str, entries: &[(&str, &str, &str)]) -> Arc<Plan> {
    plan_with_workers(name, entries, 2)
}

/// Returns such a plan with that many workers.
pub(crate) fn plan_with_workers(
    name: &str,
    entries: &[(&str, &str, &str)],
    workers: u32,
) -> Arc<Plan> {
    let entry = |(name, version, kind): &(&str, &str, &str)| {
        let types = json!({ "group": "water.example", "version": version, "kind": kind, "plural": format!("{}s", kind.to_lowercase()) });
        (
            (*name).to_owned(),
            json!({ "apiTypes": types, "workers": workers }),
        )
    };
    compiled(name, &entries.iter().map(entry).collect())
}

fn compiled(name: &str, crds: &Map<String, Value>) -> Arc<Plan> {
    let spec: KatalogSpec = serde_json::from_value(json!({ "crds": crds })).unwrap();
    let (plan, _) = compile::katalog(
        &katalog(name),
        &spec,
        &Schemas::default(),
        &Library::default(),
    )
    .unwrap();
    Arc::new(plan)
}

/// Returns a plan whose entries depend on others, each as `name: names`; the kind of an entry is its capitalized name.
pub(crate) fn plan_in_order(name: &str, entries: &[(&str, &[&str])]) -> Arc<Plan> {
    let entry = |(entry, on): &(&str, &[&str])| {
        let kind = format!("{}{}", entry[..1].to_uppercase(), &entry[1..]);
        let types = json!({ "group": "water.example", "version": "v1", "kind": kind, "plural": format!("{entry}s") });
        let on: Map<String, Value> = on
            .iter()
            .map(|on| ((*on).to_owned(), json!("healthy")))
            .collect();
        (
            (*entry).to_owned(),
            json!({ "apiTypes": types, "dependsOn": on }),
        )
    };
    compiled(name, &entries.iter().map(entry).collect())
}

/// Returns the only operator of a plan for that kind.
pub(crate) fn operator(kind: &str) -> Arc<OperatorPlan> {
    plan("one", &[("it", "v1", kind)]).operators[0].clone()
}
