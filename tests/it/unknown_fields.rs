//! Unknown fields of a Katalog: the API server keeps them, and the controller reports them.

use anyhow::Result;
use serde_json::json;

use crate::scenario::{Scenario, condition, input};
use crate::waters;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_fields_of_a_katalog_survive_the_api_server_and_are_reported_with_the_nearest_name()
-> Result<()> {
    let mut scenario = Scenario::new("unknown").await?;
    // The permissions of a Katalog without mistakes: none can be derived from the invalid one.
    scenario.grant(&input("panic/katalog.yaml")?).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&input("unknown/katalog.yaml")?)?;
    let katalog = scenario
        .katalog_is("waters", "False", "InvalidRevision")
        .await?;
    let deployment = "/spec/crds/pond/operatorBox/onReconcile/deployments/0";
    for (pointer, value) in [
        ("/sourcs".to_owned(), json!([])),
        ("/spec/crdz".to_owned(), json!({})),
        ("/spec/crds/pond/workerz".to_owned(), json!(3)),
        ("/spec/crds/pond/apiTypes/verson".to_owned(), json!("v1")),
        (
            "/spec/crds/pond/operatorBox/onReconsile".to_owned(),
            json!({}),
        ),
        (format!("{deployment}/replica"), json!(2)),
        (format!("{deployment}/probes/readiness/paht"), json!("/")),
    ] {
        assert_eq!(
            katalog.pointer(&pointer),
            Some(&value),
            "{pointer} was not kept"
        );
    }
    let ready = condition(&katalog, "Ready").cloned().unwrap_or_default();
    let message = waters::text(&ready, "/message");
    for (path, nearest) in [
        ("sourcs", "sources"),
        ("spec.crdz", "crds"),
        ("spec.crds.pond.workerz", "workers"),
        ("spec.crds.pond.apiTypes.verson", "version"),
        ("spec.crds.pond.operatorBox.onReconsile", "onReconcile"),
        (
            "spec.crds.pond.operatorBox.onReconcile.deployments[0].replica",
            "replicas",
        ),
        (
            "spec.crds.pond.operatorBox.onReconcile.deployments[0].probes.readiness.paht",
            "path",
        ),
    ] {
        let line = message
            .lines()
            .find(|line| line.contains(path) && line.contains(&format!("`{nearest}`")));
        assert!(
            line.is_some(),
            "no line names {path} and `{nearest}`:\n{message}"
        );
    }
    scenario.check_running()
}
