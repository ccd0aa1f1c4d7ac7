//! `enrich`: templates read the objects that belong to children, such as pods, nodes, volumes and Jobs.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::scenario::{LIMIT, Objects, Scenario, within};
use crate::waters;

/// The limit within which a status field follows a pod.
const SOON: Duration = Duration::from_secs(1);

/// The node of the control plane.
const NODE: &str = "fake-node";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_follows_pods_replica_sets_and_endpoints_without_asking_for_them() -> Result<()>
{
    let crds = ["cross/app-crd.yaml"];
    let scenario = Scenario::running("enrich", &crds, "enrich/katalog.yaml").await?;
    let spec = json!({ "image": "registry.example/app:1", "watched": true });
    let app = waters::resource(&scenario, "App", "web", &spec);
    let apps = scenario.objects("apps");
    apps.create(&app).await?;
    for (pointer, value) in [
        ("/status/readyPods", json!(2)),
        ("/status/revisions", json!(1)),
        ("/status/addresses", json!(2)),
        ("/status/behind", json!(2)),
        ("/status/crashing", json!(false)),
    ] {
        apps.until_equal("web", pointer, value, LIMIT).await?;
    }

    a_crash_is_followed(&scenario, &apps).await?;

    // Another image creates another ReplicaSet, whose pods have other names.
    apps.patch(
        "web",
        &json!({ "spec": { "image": "registry.example/app:2", "watched": false } }),
    )
    .await?;
    apps.until_equal("web", "/status/revisions", json!(2), LIMIT)
        .await?;
    apps.until_equal("web", "/status/addresses", json!(0), LIMIT)
        .await?;
    apps.until_equal("web", "/status/readyPods", json!(2), LIMIT)
        .await?;
    Ok(())
}

/// Checks that the status shows within a second that a pod crashes, and that it does not, and that nothing is read for it.
async fn a_crash_is_followed(scenario: &Scenario, apps: &Objects) -> Result<()> {
    let pods = scenario.objects("pods").list().await?;
    let pod = pods[0]["metadata"]["name"].as_str().context("no name")?;
    let container = &pods[0]["spec"]["containers"][0];
    let status = json!({ "status": { "containerStatuses": [{
        "name": container["name"], "image": container["image"], "imageID": "", "ready": false, "restartCount": 9,
        "state": { "waiting": { "reason": "CrashLoopBackOff" } },
    }] } });
    let crashing = status.to_string();
    let mut waiting = status.clone();
    waiting["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] =
        json!("PodInitializing");
    waiting["status"]["containerStatuses"][0]["restartCount"] = json!(0);
    let waiting = waiting.to_string();
    let mark = Scenario::mark()?;
    let mut crashes = [(&crashing, true), (&waiting, false)].into_iter().cycle();
    let mut change = async || -> Result<Duration> {
        let (patch, crashes) = crashes.next().context("endless")?;
        let args = ["patch", "pod", pod, "--subresource=status", "--patch"];
        scenario.kubectl(&[&args[..], &[patch]].concat())?;
        let written = Instant::now();
        apps.until_equal("web", "/status/crashing", json!(crashes), LIMIT)
            .await?;
        Ok(written.elapsed())
    };
    within("the status shows a crash", SOON, async || {
        let took = change().await?;
        change().await.map(|other| took.min(other))
    })
    .await?;
    scenario.until_idle().await?;
    let asked = scenario.requests_since(mark)?;
    let reads: Vec<_> = asked
        .into_iter()
        .filter(|one| !one.is_write() && one.verb != "watch")
        .collect();
    ensure!(reads.is_empty(), "{}", waters::lines(&reads));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_report_nodes_warnings_volumes_jobs_and_load_balancers() -> Result<()> {
    let crds = ["cross/app-crd.yaml"];
    let scenario = Scenario::running("enrich-all", &crds, "enrich/everything.yaml").await?;
    let app = waters::resource(&scenario, "App", "web", &json!({}));
    let apps = scenario.objects("apps");
    apps.create(&app).await?;
    let disk = format!("{}-disk", scenario.namespace);
    for (pointer, value) in [
        ("/status/node", json!(NODE)),
        ("/status/warning", json!("FailedScheduling")),
        ("/status/quiet", json!(false)),
        ("/status/ended", json!("1 Succeeded")),
        ("/status/lastJob", json!("")),
        ("/status/running", json!(0)),
        ("/status/owner", json!("App web")),
        ("/status/sparePods", json!(1)),
        ("/status/claims", json!("data-web-store-0 Pending")),
        ("/status/volume", json!(disk)),
        ("/status/driver", json!("disks.example")),
        ("/status/class", json!("Delete")),
        ("/status/claim", json!("web Bound")),
        ("/status/scales", json!("Deployment")),
        ("/status/measured", json!(0)),
        ("/status/addresses", json!("")),
        ("/status/certificates", json!("web-tls")),
    ] {
        apps.until_equal("web", pointer, value, LIMIT).await?;
    }

    // The status follows each change of these objects, although the child itself does not change.
    let zone = format!("zone-{}", scenario.namespace);
    let label = format!("topology.kubernetes.io/zone={zone}");
    scenario.kubectl(&["label", "node", NODE, "--overwrite", &label])?;
    apps.until_equal("web", "/status/zone", json!(zone), LIMIT)
        .await?;
    scenario.kubectl(&["create", "job", "by-hand", "--from=cronjob/web-nightly"])?;
    for (pointer, value) in [
        ("/status/lastJob", json!("by-hand")),
        ("/status/lastGood", json!("by-hand")),
        ("/status/running", json!(0)),
    ] {
        apps.until_equal("web", pointer, value, LIMIT).await?;
    }
    let status = r#"{"status":{"loadBalancer":{"ingress":[{"ip":"198.51.100.9"}]}}}"#;
    let patch = ["patch", "ingress", "web", "--subresource=status", "--patch"];
    scenario.kubectl(&[&patch[..], &[status]].concat())?;
    apps.until_equal("web", "/status/addresses", json!("198.51.100.9"), LIMIT)
        .await?;
    Ok(())
}
