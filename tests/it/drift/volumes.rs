//! A `StatefulSet` whose declared volumes grow: its claims grow, and the condition says what remains.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use serde_json::{Value, json};
use testbed::eventually;

use super::{LIMIT, Scenario, condition, input};
use crate::examples::storage;
use crate::scenario::Objects;
use crate::waters::text;

/// Binds a claim to a volume, as a provisioner does: only bound claims can grow.
async fn is_bound(scenario: &Scenario, name: &str) -> Result<()> {
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(scenario.client.clone(), &scenario.namespace);
    let claim = eventually("the claim exists", LIMIT, async || {
        Ok(claims.get_opt(name).await?)
    })
    .await?;
    storage::bind(&scenario.client, &claims, &claim).await
}

// Over 60 lines: claims that grow and claims that cannot, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_claims_of_a_stateful_set_grow_and_its_templates_are_named() -> Result<()> {
    let mut scenario = Scenario::new("volumes").await?;
    let katalog = input("drift/volumes.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.install(&input("website/crd.yaml")?).await?;
    let classes = Objects::at(&scenario.client, "/apis/storage.k8s.io/v1/storageclasses");
    let class = |name: &str, grows: bool| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": scenario.text(name) },
            "provisioner": "volumes.example.org", "allowVolumeExpansion": grows,
        })
    };
    for (name, grows) in [("grows.GROUP", true), ("fixed.GROUP", false)] {
        classes.create(&class(name, grows)).await?;
    }
    scenario.start().await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("drift", "True", "Running").await?;
    scenario.apply(&input("website/cr.yaml")?)?;
    let claims = scenario.objects("persistentvolumeclaims");
    for name in ["water-hello-0", "ice-hello-fixed-0"] {
        is_bound(&scenario, name).await?;
    }

    // The Website's port is the size of its volumes in Mi.
    let websites = scenario.objects("websites");
    websites
        .patch("hello", &json!({ "spec": { "port": 9000 } }))
        .await?;
    let request = "/spec/resources/requests/storage";
    claims
        .until_equal("water-hello-0", request, json!("9000Mi"), LIMIT)
        .await?;
    let named = [
        "StatefulSet.apps",
        "/hello:",
        "`spec.volumeClaimTemplates[0].spec.resources.requests.storage` cannot change",
        "its existing claims request the declared size or more",
        "kubectl delete statefulset hello --cascade=orphan",
        "the claim `ice-hello-fixed-0` cannot grow",
    ];
    let reported = |website: &Value| {
        // `Ready` names the first cause only.
        let stalled = condition(website, "Stalled").cloned().unwrap_or_default();
        let message = text(&stalled, "/message");
        stalled["reason"] == "ImmutableField" && named.iter().all(|part| message.contains(part))
    };
    websites
        .until("hello", "names the templates", LIMIT, reported)
        .await?;
    let fixed = claims.fetch("ice-hello-fixed-0").await?;
    ensure!(fixed.pointer(request) == Some(&json!("8081Mi")), "{fixed}");

    // What the message says helps: the volumes stay.
    let sets = scenario.objects("statefulsets");
    let before = claims.fetch("water-hello-0").await?["metadata"]["uid"].clone();
    for name in ["hello", "hello-fixed"] {
        scenario.kubectl(&["delete", "statefulset", name, "--cascade=orphan"])?;
        let size = "/spec/volumeClaimTemplates/0/spec/resources/requests/storage";
        sets.until_equal(name, size, json!("9000Mi"), LIMIT).await?;
    }
    let now = claims.fetch("water-hello-0").await?;
    ensure!(now["metadata"]["uid"] == before, "{now}");
    websites
        .until("hello", "reports no immutable field", LIMIT, |website| {
            condition(website, "Ready").is_some_and(|ready| ready["reason"] != "ImmutableField")
        })
        .await?;
    Ok(())
}
