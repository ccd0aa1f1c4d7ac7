//! Scaling: requests and memory that must not grow with the number of objects, kinds and passes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use orkestra_engine::reconcile::{crd::CrdRecord, record::ChildRecord, record::CrRecord};
use orkestra_object::value::{Node, Path};
use orkestra_plan::GroupKind;
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario};
use crate::waters;

const KATALOG: &str = "failure/katalog.yaml";
/// The number of passes during which no discovery request may be sent.
const PASSES: f64 = 1_000.0;
/// The number of CRDs that no operator uses, and the approximate size of each in bytes.
const UNUSED: usize = 40;
const UNUSED_BYTES: usize = 400_000;
/// The maximum growth of the controller's memory because of them; together, they hold about 16 MB.
const GROWTH_KIB: u64 = 20 * 1024;
/// The number of Lakes whose passes fail.
const FAILING: usize = 30;

/// Returns a CRD of about that size that no operator uses.
fn large_crd(group: &str, number: usize, bytes: usize) -> Value {
    let text = "All work and no play. ".repeat(bytes / 22 / 8);
    let fields = (0..8).map(|field| {
        (
            format!("field{field}"),
            json!({ "type": "string", "description": text }),
        )
    });
    let spec: serde_json::Map<String, Value> = fields.collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("bulks{number}.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": format!("Bulk{number}"), "listKind": format!("Bulk{number}List"),
                "plural": format!("bulks{number}"), "singular": format!("bulk{number}"),
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": spec },
                    "status": { "type": "object", "properties": { "said": { "type": "string", "description": text } } },
                } } },
            }],
        },
    })
}

/// Returns the controller's resident memory in KiB, which is `VmRSS` in `/proc/PID/status`.
fn memory(scenario: &Scenario) -> Result<u64> {
    let pid = scenario.pid().context("no controller runs")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("no VmRSS")?;
    let number = line.split_whitespace().next().context("no number")?;
    Ok(number.parse()?)
}

/// Returns the memory once it shrinks no more: the allocator returns freed memory to the system after a second.
async fn least_memory(scenario: &Scenario) -> Result<u64> {
    let mut least = memory(scenario)?;
    let mut since = Instant::now();
    eventually("the memory shrinks no more", LIMIT, async || {
        let now = memory(scenario)?;
        if now < least {
            (least, since) = (now, Instant::now());
        }
        Ok((since.elapsed() > Duration::from_secs(2)).then_some(()))
    })
    .await?;
    Ok(least)
}

#[test]
pub(crate) fn what_is_kept_of_a_definition_does_not_grow_with_its_schema() -> Result<()> {
    let kept = |bytes| -> Result<usize> {
        let mut crd = large_crd("bulk.example", 7, bytes);
        crd["metadata"]["uid"] = json!("u");
        crd["metadata"]["resourceVersion"] = json!("1");
        let record =
            CrdRecord::read(&Node::from(&crd)).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(format!("{record:?}").len())
    };
    let (small, large) = (kept(1_000)?, kept(1_000_000)?);
    ensure!(
        small == large && large < 2_000,
        "{small} and {large} characters"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn definitions_that_nobody_uses_take_no_memory() -> Result<()> {
    let mut scenario = Scenario::on_its_own("unused").await?;
    let katalog = crate::scenario::input(KATALOG)?;
    scenario.grant(&katalog).await?;
    scenario.install(&waters::crds()?).await?;
    scenario.start().await?;
    scenario.apply(&katalog)?;
    waters::pond(&scenario, "north", &json!({ "colour": "green" })).await?;
    scenario.objects("ponds").until_ready("north").await?;
    let crds = crate::scenario::Objects::of_cluster(&scenario.client, "customresourcedefinitions");
    // The first CRDs fill the buffers that every event passes through.
    for number in 0..3 {
        crds.create(&large_crd("bulk.example", number, UNUSED_BYTES))
            .await?;
    }
    waters::until_counted(&scenario).await?;
    let before = least_memory(&scenario).await?;
    for number in 3..UNUSED {
        crds.create(&large_crd("bulk.example", number, UNUSED_BYTES))
            .await?;
    }
    scenario
        .established(&format!("bulks{}.bulk.example", UNUSED - 1))
        .await?;
    // The events of these CRDs have been processed once a resource that is created afterwards is ready.
    waters::pond(&scenario, "south", &json!({ "colour": "green" })).await?;
    scenario.objects("ponds").until_ready("south").await?;
    let after = eventually("the memory is released", LIMIT, async || {
        let after = memory(&scenario)?;
        ensure!(
            after < before + GROWTH_KIB,
            "{before} KiB before, {after} KiB after"
        );
        Ok(Some(after))
    })
    .await?;
    println!("{before} KiB before, {after} KiB after {UNUSED} definitions of {UNUSED_BYTES} bytes");
    scenario.check_running()
}

#[test]
pub(crate) fn managed_fields_are_kept_of_nothing() -> Result<()> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "north", "namespace": "east", "uid": "u", "resourceVersion": "7",
            "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "LASTAPPLIED" },
            "managedFields": [
                { "manager": "STRANGER", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                  "fieldsV1": { "f:data": { "f:STRANGEKEY": {} } } },
                { "manager": "orkestra/ponds.water.example", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                  "fieldsV1": { "f:data": { "f:colour": {} } } },
            ],
        },
        "data": { "colour": "UNREADVALUE" },
    });
    let node = Node::from(&object);
    let path = |text: &str| Path::parse(text).map_err(|error| anyhow::anyhow!("{error}"));
    let cr = CrRecord::read(&node, &[path("metadata.name")?])
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let child = ChildRecord::read(&GroupKind::parse("ConfigMap"), &node, &[])
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    for kept in [format!("{cr:?}"), format!("{child:?}")] {
        for word in [
            "managedFields",
            "STRANGER",
            "STRANGEKEY",
            "LASTAPPLIED",
            "UNREADVALUE",
            "fieldsV1",
        ] {
            ensure!(!kept.contains(word), "{word} is kept: {kept}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_thousand_passes_discover_nothing() -> Result<()> {
    let mut scenario = Scenario::running("discovery", &["kinds/crds.yaml"], KATALOG).await?;
    let ponds = scenario.objects("ponds");
    for number in 0..50 {
        waters::pond(&scenario, &format!("p{number}"), &json!({ "colour": "c0" })).await?;
    }
    for number in 0..50 {
        ponds.until_ready(&format!("p{number}")).await?;
    }
    let (mark, before) = (Scenario::mark()?, scenario.passes("pond").await?);
    let mut round = 0;
    while scenario.passes("pond").await? - before < PASSES {
        round += 1;
        for number in 0..50 {
            let change = json!({ "spec": { "colour": format!("c{round}") } });
            ponds.patch(&format!("p{number}"), &change).await?;
        }
    }
    let requests = scenario.requests_since(mark)?;
    ensure!(requests.len() > 1_000, "{} requests", requests.len());
    let discovery: Vec<_> = requests
        .iter()
        .filter(|request| request.resource.is_empty())
        .map(|request| &request.uri)
        .collect();
    ensure!(discovery.is_empty(), "{discovery:?}");
    let reads: Vec<_> = requests
        .iter()
        .filter(|request| matches!(&*request.verb, "get" | "list"))
        .map(|request| &request.uri)
        .collect();
    ensure!(reads.is_empty(), "{reads:?}");
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_kind_that_fails_as_fast_as_it_can_holds_up_no_other() -> Result<()> {
    let mut scenario = Scenario::running("tenants", &["kinds/crds.yaml"], KATALOG).await?;
    // A quota denies the Secrets of the Lakes: each of their passes fails, and is retried with backoff.
    let lakes = scenario.objects("lakes");
    let far = full_namespace(&scenario).await?;
    let of = |round: usize, number: usize| json!({ "bed": format!("bed-{number}"), "colour": format!("c{round}"), "elsewhere": far });
    for number in 0..FAILING {
        waters::lake(&scenario, &format!("l{number}"), &of(0, number)).await?;
    }
    let failed = [("crd", "lake"), ("result", "error")];
    let ponds = scenario.objects("ponds");
    let (mut round, mut made) = (0, 0);
    while made < 10 || scenario.metric("orkestra_reconcile_total", &failed).await? < 400.0 {
        round += 1;
        for number in 0..FAILING {
            let change = json!({ "spec": of(round, number) });
            lakes.patch(&format!("l{number}"), &change).await?;
        }
        // Meanwhile Ponds are created, and become ready although the Lakes still fail.
        if made < 10 {
            let name = format!("p{made}");
            made += 1;
            waters::pond(&scenario, &name, &json!({ "colour": "green" })).await?;
            ponds.until_ready(&name).await?;
        }
    }
    let of_ponds = [("crd", "pond"), ("result", "error")];
    ensure!(
        scenario
            .metric("orkestra_reconcile_total", &of_ponds)
            .await?
            < 0.5
    );
    let page = scenario.page("/katalog/pond/health").await?;
    ensure!(page["state"] == "healthy", "{page}");
    lakes_heal_without_being_touched(&scenario, &far).await?;
    scenario.check_running()
}

/// Creates a namespace whose quota permits no Secret.
async fn full_namespace(scenario: &Scenario) -> Result<String> {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "few" },
        "spec": { "hard": { "count/configmaps": "1000", "count/secrets": "0" } },
    });
    let far = waters::second_namespace(&scenario.client).await?;
    scenario
        .objects_in(&far, "resourcequotas")
        .create(&quota)
        .await?;
    Ok(far)
}

/// Checks that the Lakes become ready unchanged once the namespace `far` permits their Secrets, after any number of failures.
async fn lakes_heal_without_being_touched(scenario: &Scenario, far: &str) -> Result<()> {
    scenario
        .objects_in(far, "resourcequotas")
        .delete("few")
        .await?;
    let lakes = scenario.objects("lakes");
    for number in 0..FAILING {
        lakes
            .until(
                &format!("l{number}"),
                "is ready",
                LIMIT * 4,
                crate::scenario::is_ready,
            )
            .await?;
    }
    eventually("the operator has recovered", LIMIT, async || {
        let page = scenario.page("/katalog/lake/health").await?;
        Ok((page["state"] == "healthy").then_some(()))
    })
    .await
}
