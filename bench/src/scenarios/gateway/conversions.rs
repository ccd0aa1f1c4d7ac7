//! A kind with two versions, whose custom resources are read in the version that is not stored.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use super::load::{Load, Paced};
use crate::api::{self, Write};
use crate::shop::{NAMESPACE, resource_name};
use crate::site::Site;

/// The longest time until the kind is served.
const LIMIT: Duration = Duration::from_mins(5);
/// The number of custom resources, which are converted in turn.
const DOCUMENTS: usize = 100;

/// Returns a kind with two versions, and its Katalog.
pub(crate) fn converted() -> (Value, Value) {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            } } },
        })
    };
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "docs.bench.orkestra.io" },
        "spec": {
            "group": "bench.orkestra.io", "scope": "Namespaced",
            "names": { "kind": "Doc", "listKind": "DocList", "plural": "docs", "singular": "doc" },
            "versions": [version("v1", false), version("v2", true)],
        },
    });
    let path = |from: &str, to: &str, note: &str| json!({ "from": from, "to": to, "spec": { "schedule": format!("{{{{ {note} .spec.schedule }}}}") } });
    let katalog = json!({
        "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
        "metadata": { "name": "docs", "namespace": NAMESPACE },
        "spec": {
            "security": { "conversion": { "enabled": true } },
            "crds": { "doc": {
                "apiTypes": { "group": "bench.orkestra.io", "version": "v2", "kind": "Doc", "plural": "docs" },
                "conversion": {
                    "storageVersion": "v2",
                    "paths": [path("v1", "v2", "cronToMap"), path("v2", "v1", "cronFromMap")],
                },
                "operatorBox": { "onReconcile": { "configMaps": [
                    { "name": "{{ .metadata.name }}", "data": { "minute": "{{ .spec.schedule.minute }}" } },
                ] } },
            } },
        },
    });
    (crd, katalog)
}

/// Returns a custom resource of about 10 kB.
fn document(name: &str) -> Value {
    let texts = (0..20).map(|field| (format!("field{field}"), json!("x".repeat(500))));
    let mut spec: serde_json::Map<_, _> = texts.collect();
    let star = "*";
    spec.insert(
        "schedule".to_owned(),
        json!({ "minute": "5", "hour": "4", "dayOfMonth": star, "month": star, "dayOfWeek": star }),
    );
    json!({
        "apiVersion": "bench.orkestra.io/v2", "kind": "Doc",
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
    })
}

/// Reads `count` custom resources in the version that is not stored.
pub(crate) async fn conversions(site: &Site, count: usize) -> Result<Load> {
    let client = &site.client;
    let docs = format!("/apis/bench.orkestra.io/v2/namespaces/{NAMESPACE}/docs");
    for number in 0..DOCUMENTS {
        let object = document(&resource_name(number));
        Write::create(&docs, &object).send(client).await?;
    }
    let read = |number: usize| {
        format!(
            "/apis/bench.orkestra.io/v1/namespaces/{NAMESPACE}/docs/{}",
            resource_name(number % DOCUMENTS)
        )
    };
    eventually("the other version is served", LIMIT, async || {
        let read = api::get(client, &read(0)).await?;
        Ok((read["spec"]["schedule"] == "5 4 * * *").then_some(()))
    })
    .await?;
    Paced::count(count, async |number| {
        let got = api::get(client, &read(number)).await?;
        ensure!(
            got["spec"]["schedule"] == "5 4 * * *",
            "not converted: {}",
            got["spec"]["schedule"]
        );
        Ok(true)
    })
    .await
}
