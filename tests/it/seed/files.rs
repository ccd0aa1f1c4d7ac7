//! The samples that are run from files: the CRDs and setups of a Katalog, the sources of types and workers, and ways to start it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{ControlPlane, Identity, SYSTEM_MASTERS};

use super::{changed, of_v1, sample};
use crate::scenario::{LIMIT, Objects, Scenario, input, is_ready};
use crate::waters;

const CLEANUP: &str = "orkestra.orkspace.io/cleanup";

/// Returns an identity with administrator permissions, which CRDs and setups require.
fn person(scenario: &Scenario) -> Result<Identity> {
    let user = format!("person-{}", scenario.namespace);
    ControlPlane::shared().identity(&user, &[SYSTEM_MASTERS])
}

/// Runs the Katalogs of the front page and of the introduction from their files, with the CRDs that they need, and creates a
/// Website and a `BlockchainApp`.
async fn two_katalogs(prefix: &str) -> Result<Scenario> {
    let mut scenario = Scenario::new(prefix).await?;
    scenario.identity = person(&scenario)?;
    scenario.install(&input("website/crd.yaml")?).await?;
    let definition = input("seed/blockchainapp-crd.yaml")?;
    scenario.file("blockchainapp-crd.yaml", &definition)?;
    scenario.file("website.yaml", &sample("website")?)?;
    scenario.file("katalog.yaml", &sample("blockchain")?)?;
    scenario.run(&["website.yaml", "katalog.yaml"]).await?;
    let established = format!("blockchainapps.{}", scenario.group);
    scenario.established(&established).await?;
    scenario.apply(&input("website/cr.yaml")?)?;
    // The resource of the introduction, with the fields that its Katalog reads.
    let spec = json!({
        "network": "ethereum", "version": "1.13", "storage": "500Gi",
        "image": "registry.example/node:1", "replicas": 2, "port": 8545,
    });
    let node = json!({
        "apiVersion": format!("{}/v1", scenario.group), "kind": "BlockchainApp",
        "metadata": { "name": "my-node" }, "spec": spec,
    });
    of_v1(&scenario, "blockchainapps").create(&node).await?;
    Ok(scenario)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_katalog_without_metadata_brings_its_definition_samples_and_setup()
-> Result<()> {
    let mut scenario = Scenario::new("row2").await?;
    scenario.identity = person(&scenario)?;
    let room = format!("{}-room", scenario.namespace);
    let setup = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": room } });
    scenario.file("rbac/namespace.yaml", &setup.to_string())?;
    scenario.file("website.yaml", &input("website/crd.yaml")?)?;
    // The sample CR is in the namespace that the setup creates.
    let website = input("website/cr.yaml")?.replace("NAMESPACE", &room);
    scenario.file("examples/website-sample.yaml", &website)?;
    scenario.file("katalog.yaml", &sample("files")?)?;
    // The documentation starts it with `ork run`, without arguments.
    scenario.run(&[]).await?;
    let websites = scenario.objects_in(&room, "websites");
    let hello = websites.until("hello", "is ready", LIMIT, is_ready).await?;
    assert_eq!(hello["metadata"]["finalizers"], json!([CLEANUP]));
    // A Katalog without a name gets the name of its file.
    let page = scenario.page("/katalog/default/katalog/website").await?;
    assert_eq!(
        (&page["workers"]["configured"], &page["children"]),
        (&json!(3), &json!([]))
    );
    testbed::eventually("its health is reported", LIMIT, async || {
        let health = scenario.page("/katalog/website/health").await?;
        let reports = [&health["healthy"], &health["readyCount"]];
        ensure!(reports == [&json!(true), &json!(1)], "{health}");
        Ok(Some(()))
    })
    .await?;
    scenario.terminate()?;
    // The same text without its indentation is reported as such.
    let lost = scenario.file("lost.yaml", &sample("lost-indentation")?)?;
    let reported = scenario.ork(&["validate", &lost.display().to_string()]);
    let reported = reported.err().context("it is accepted")?.to_string();
    ensure!(reported.contains("the indentation is lost"), "{reported}");
    // Release the resources, so that no finalizer waits for an operator.
    let katalog = scenario.path("katalog.yaml");
    scenario.ork(&["release", "-k", &katalog.display().to_string()])?;
    websites.delete("hello").await?;
    websites.until_gone("hello", LIMIT).await?;
    Objects::of_cluster(&scenario.client, "namespaces")
        .delete(&room)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn types_are_declared_or_taken_from_the_definition() -> Result<()> {
    let scenario = two_katalogs("row3").await?;
    for (entry, version, kind, plural) in [
        ("website", "v1alpha1", "Website", "websites"),
        ("blockchainapp", "v1", "BlockchainApp", "blockchainapps"),
    ] {
        let page = scenario.page(&format!("/katalog/{entry}")).await?;
        let group = &scenario.group;
        assert_eq!(
            page["gvk"],
            json!({ "group": group, "version": version, "kind": kind })
        );
        assert_eq!(
            page["gvr"],
            json!({ "group": group, "version": version, "resource": plural })
        );
        assert_eq!(page["scope"], "Namespaced");
    }
    scenario.objects("websites").until_ready("hello").await?;
    let node = of_v1(&scenario, "blockchainapps")
        .until_ready("my-node")
        .await?;
    assert_eq!(node["status"]["phase"], "Ready");
    let endpoint = format!("my-node.{}.svc.cluster.local", scenario.namespace);
    assert_eq!(node["status"]["endpoint"], endpoint);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn workers_and_resync_are_those_of_the_reconciler_or_of_the_entry() -> Result<()> {
    let mut scenario = Scenario::new("row4").await?;
    scenario.identity = person(&scenario)?;
    scenario.file("website.yaml", &input("website/crd.yaml")?)?;
    scenario.file(
        "blockchainapp-crd.yaml",
        &input("seed/blockchainapp-crd.yaml")?,
    )?;
    // Without its setup and its sample CR, which this test does not need.
    let bare = "      crFiles:\n        - examples/website-sample.yaml\n      setup:\n        - rbac/namespace.yaml\n";
    scenario.file("entry.yaml", &changed(&sample("files")?, bare, "")?)?;
    // The sample's resync of 30 s is too long for a test.
    let blockchain = changed(&sample("blockchain")?, "resync: 30s", "resync: 500ms")?;
    let reconciler = scenario.file("reconciler.yaml", &blockchain)?;
    scenario.run(&["entry.yaml", "reconciler.yaml"]).await?;
    let configured = async |entry: &str, workers: u64, resync: &str| -> Result<()> {
        let what = format!("{entry} has {workers} workers");
        testbed::eventually(&what, LIMIT, async || {
            let page = scenario.page(&format!("/katalog/{entry}")).await?;
            let reports = json!([
                page["workers"]["configured"],
                page["workers"]["current"],
                page["resync"]
            ]);
            ensure!(reports == json!([workers, workers, resync]), "{page}");
            Ok(Some(()))
        })
        .await
    };
    configured("website", 3, "10m").await?;
    configured("blockchainapp", 3, "500ms").await?;
    // Resyncs trigger passes without an event.
    let node = json!({
        "apiVersion": format!("{}/v1", scenario.group), "kind": "BlockchainApp",
        "metadata": { "name": "my-node" }, "spec": { "image": "registry.example/node:1", "replicas": 1, "port": 8545 },
    });
    let nodes = of_v1(&scenario, "blockchainapps");
    nodes.create(&node).await?;
    nodes.until_ready("my-node").await?;
    let passes = scenario.passes("blockchainapp").await?;
    testbed::eventually("resyncs trigger more passes", LIMIT, async || {
        Ok((scenario.passes("blockchainapp").await? > passes + 2.5).then_some(()))
    })
    .await?;
    // The sample as printed.
    std::fs::write(&reconciler, scenario.text(&sample("blockchain")?))?;
    configured("blockchainapp", 3, "30s").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn deployments_and_services_follow_their_resource_with_ports_in_either_form()
-> Result<()> {
    let scenario = two_katalogs("row5").await?;
    let (deployments, services) = (
        scenario.objects("deployments"),
        scenario.objects("services"),
    );
    scenario.objects("websites").until_ready("hello").await?;
    of_v1(&scenario, "blockchainapps")
        .until_ready("my-node")
        .await?;
    // `port: 80` and `port: "5432"`, and `targetPort` from a template.
    for (service, port, target) in [("hello", 80, 8081), ("my-node-svc", 5432, 8545)] {
        let ports = json!([{ "port": port, "protocol": "TCP", "targetPort": target }]);
        assert_eq!(services.fetch(service).await?["spec"]["ports"], ports);
    }
    let node = deployments.fetch("my-node").await?;
    let container = &node["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["ports"],
        json!([{ "containerPort": 8545, "protocol": "TCP" }])
    );
    assert_eq!(node["spec"]["replicas"], 2);

    // `reconcile: true`: the children follow the resource, and drift is corrected.
    let change = json!({ "spec": { "image": "registry.example/web:4", "port": 9090 } });
    scenario.objects("websites").patch("hello", &change).await?;
    let image = "/spec/template/spec/containers/0/image";
    deployments
        .until_equal("hello", image, json!("registry.example/web:4"), LIMIT)
        .await?;
    let target = "/spec/ports/0/targetPort";
    services
        .until_equal("hello", target, json!(9090), LIMIT)
        .await?;
    deployments
        .patch("my-node", &json!({ "spec": { "replicas": 5 } }))
        .await?;
    deployments
        .until_equal("my-node", "/spec/replicas", json!(2), LIMIT)
        .await?;
    services.delete("my-node-svc").await?;
    services
        .until_equal("my-node-svc", target, json!(8545), LIMIT)
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_new_katalog_is_run_from_its_file() -> Result<()> {
    let mut scenario = Scenario::new("row24a").await?;
    scenario.identity = person(&scenario)?;
    let folder = scenario.path("my-operator");
    let group = scenario.group.clone();
    let target = folder.display().to_string();
    scenario.ork(&["init", "my-operator", "--group", &group, "--dir", &target])?;
    scenario.kubectl(&[
        "apply",
        "-f",
        &folder.join("crd.yaml").display().to_string(),
    ])?;
    scenario
        .established(&format!("myoperators.{group}"))
        .await?;
    scenario.run(&["my-operator/katalog.yaml"]).await?;
    let sample = std::fs::read_to_string(folder.join("samples/basic.yaml"))?;
    scenario.apply(&changed(
        &sample,
        "namespace: default",
        "namespace: NAMESPACE",
    )?)?;
    let made = scenario
        .objects("myoperators")
        .until_ready("my-my-operator")
        .await?;
    assert_eq!(made["status"]["readyReplicas"], 2);
    let deployment = scenario
        .objects("deployments")
        .fetch("my-my-operator")
        .await?;
    let image = waters::text(&deployment, "/spec/template/spec/containers/0/image");
    assert_eq!(image, "nginx:1.29");
    scenario.objects("services").fetch("my-my-operator").await?;
    // `-k` is the short form of `--katalog`.
    scenario.terminate()?;
    let katalog = folder.join("katalog.yaml").display().to_string();
    scenario.ork(&["release", "-k", &katalog])?;
    scenario
        .objects("myoperators")
        .delete("my-my-operator")
        .await?;
    scenario
        .objects("myoperators")
        .until_gone("my-my-operator", LIMIT)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_katalog_in_a_config_map_is_run_with_no_more_permissions_than_it_needs()
-> Result<()> {
    let mut scenario = Scenario::new("row24b").await?;
    let katalog = sample("website")?;
    scenario.grant(&katalog).await?;
    scenario.install(&input("website/crd.yaml")?).await?;
    let file = scenario.file("katalog.yaml", &katalog)?;
    let from = format!("--from-file={}", file.display());
    scenario.kubectl(&["create", "configmap", "my-platform-katalog", &from])?;
    let volume = scenario.path("volume");
    mount(&scenario, &volume, 1).await?;
    scenario.run(&["volume/katalog.yaml"]).await?;
    scenario.apply(&input("website/cr.yaml")?)?;
    scenario.objects("websites").until_ready("hello").await?;
    let services = scenario.objects("services");
    assert_eq!(
        services.fetch("hello").await?["spec"]["ports"][0]["port"],
        80
    );

    // A change of the ConfigMap reaches the mounted file and the operator.
    let change = changed(&katalog, "port: 80", "port: 8080")?;
    let change = json!({ "data": { "katalog.yaml": scenario.text(&change) } });
    scenario
        .objects("configmaps")
        .patch("my-platform-katalog", &change)
        .await?;
    mount(&scenario, &volume, 2).await?;
    services
        .until_equal("hello", "/spec/ports/0/port", json!(8080), LIMIT)
        .await
        .map(drop)
}

/// Writes the `ConfigMap` to disk as a kubelet mounts it, because simulated nodes have no kubelet: each state has its own
/// directory, `..data` is a symbolic link to the latest one, and each file is a symbolic link into `..data`.
async fn mount(scenario: &Scenario, volume: &Path, state: u32) -> Result<()> {
    let map: Value = scenario
        .objects("configmaps")
        .fetch("my-platform-katalog")
        .await?;
    let folder = format!("..state_{state}");
    std::fs::create_dir_all(volume.join(&folder))?;
    for (name, text) in map["data"].as_object().context("no data")? {
        let text = text.as_str().context("no text")?;
        std::fs::write(volume.join(&folder).join(name), text)?;
        let link = volume.join(name);
        if !link.is_symlink() {
            std::os::unix::fs::symlink(Path::new("..data").join(name), link)?;
        }
    }
    let next = volume.join("..data_tmp");
    std::os::unix::fs::symlink(&folder, &next)?;
    Ok(std::fs::rename(next, volume.join("..data"))?)
}
