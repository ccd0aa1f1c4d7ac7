//! Orkestra itself, installed, upgraded and removed from an overlay of `config/`: by Flux's kustomize-controller, and by Argo CD's
//! sync engine.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::flux::{NAMESPACE, Source, install, is_ready_at, kubectl, kustomizations, start};
use super::{health, tools};
use crate::scenario::{LIMIT, Objects, Scenario, printed};

/// Returns the `kustomization.yaml` of a cluster's repository: an overlay, and the tag of the image.
fn kustomization(tag: &str) -> String {
    format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../config/overlays/default]\n\
         images: [{{name: registry.invalid/orkestra, newTag: {tag}}}]\n"
    )
}

/// Copies the folders that the overlay refers to.
fn copy(to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    let mut cp = Command::new("cp");
    cp.args(["-r", "config", "crds"]).arg(to);
    cp.current_dir(env!("CARGO_MANIFEST_DIR"));
    printed(&cp.output()?, "cp").map(drop)
}

fn image(deployment: &Value) -> &str {
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    image.as_str().unwrap_or_default()
}

/// Waits until the namespace, a CRD and the `ClusterRole` of the overlay are deleted.
async fn until_removed(scenario: &Scenario) -> Result<()> {
    for (kind, name) in [
        ("namespaces", "orkestra-system"),
        ("customresourcedefinitions", "katalogs.orkestra.orkspace.io"),
        ("clusterroles", "orkestra"),
    ] {
        Objects::of_cluster(&scenario.client, kind)
            .until_gone(name, LIMIT)
            .await
            .context(kind)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make gitops"]
async fn flux_installs_upgrades_and_removes_orkestra_from_an_overlay() -> Result<()> {
    let tools = tools("kustomize-controller")?;
    let scenario = Scenario::with_nodes("flux-install").await?;
    let git = scenario.path("git");
    copy(&git)?;
    scenario.file("git/cluster/kustomization.yaml", &kustomization("1.0.0"))?;
    install(&scenario, &tools).await?;
    let served = Source::serve().await?;
    served.publish(&scenario, &git, "one")?;
    let mut flux = start(&scenario, &tools)?;
    let wanted = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": { "name": "orkestra", "namespace": NAMESPACE },
        "spec": {
            "interval": "1h", "timeout": "2m", "path": "./cluster", "prune": true, "wait": true,
            "sourceRef": { "kind": "GitRepository", "name": "flux-system" },
        },
    });
    kubectl(&scenario, &["apply", "-f", "-"], Some(&wanted.to_string()))?;
    let all = kustomizations(&scenario);
    all.until("orkestra", "is ready", LIMIT, |one| is_ready_at(one, "one"))
        .await
        .with_context(|| flux.log())?;
    // The Kustomization is ready. The Pods must be available, and the CRDs must be those of this version.
    let deployments = Objects::at(
        &scenario.client,
        "/apis/apps/v1/namespaces/orkestra-system/deployments",
    );
    let first = deployments.fetch("orkestra").await?;
    ensure!(image(&first).ends_with(":1.0.0"), "{first}");
    ensure!(first["status"]["availableReplicas"] == 2, "{first}");
    let admin = scenario.cluster.admin();
    let version = scenario
        .command_as(&admin)
        .args(["version", "--cluster"])
        .output()?;
    printed(&version, "ork")?;

    scenario.file("git/cluster/kustomization.yaml", &kustomization("1.0.1"))?;
    served.publish(&scenario, &git, "two")?;
    let asks =
        json!({ "metadata": { "annotations": { "reconcile.fluxcd.io/requestedAt": "two" } } });
    all.patch("orkestra", &asks).await?;
    all.until("orkestra", "is ready again", LIMIT, |one| {
        is_ready_at(one, "two")
    })
    .await?;
    let second = deployments.fetch("orkestra").await?;
    ensure!(image(&second).ends_with(":1.0.1"), "{second}");
    ensure!(
        second["metadata"]["uid"] == first["metadata"]["uid"],
        "{second}"
    );

    all.delete("orkestra").await?;
    all.until_gone("orkestra", LIMIT).await?;
    until_removed(&scenario).await?;
    ensure!(flux.status()?.is_none(), "Flux has ended");
    Ok(())
}

/// Renders the overlay with the tag into the only file that Argo CD syncs.
fn publish(scenario: &Scenario, tag: &str) -> Result<()> {
    scenario.file("git/cluster/kustomization.yaml", &kustomization(tag))?;
    let folder = scenario.path("git/cluster").display().to_string();
    let rendered = kubectl(scenario, &["kustomize", &folder], None)?;
    scenario.file("argo/orkestra.yaml", &rendered).map(drop)
}

/// Runs one sync of Argo CD's sync engine to its end.
async fn sync(scenario: &Scenario) -> Result<String> {
    let mut argo = Command::new(tools("argocd")?.join("argocd"));
    argo.arg("sync")
        .arg(scenario.cluster.admin().kubeconfig_path());
    argo.args(["default", "orkestra"]).arg(health());
    argo.arg(scenario.path("argo")).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || argo.output()).await??;
    printed(&output, "argocd")
}

/// Checks that Argo CD finds no difference between an object of Git and the live object.
fn ensure_in_sync(scenario: &Scenario) -> Result<()> {
    let file = scenario.path("argo/orkestra.yaml").display().to_string();
    let json = |args: &[&str]| -> Result<Vec<Value>> {
        let list: Value = serde_json::from_str(&kubectl(scenario, args, None)?)?;
        let items = list["items"].as_array().cloned();
        items.context("no list")
    };
    let live = json(&["get", "-f", &file, "-o", "json"])?;
    let text = std::fs::read_to_string(&file)?;
    let mut lines = String::new();
    for document in text.split("\n---\n") {
        let mut config: Value = serde_saphyr::from_str(document)?;
        config["metadata"]["labels"]["app.kubernetes.io/instance"] = json!("orkestra");
        let is_same = |live: &&Value| {
            live["kind"] == config["kind"] && live["metadata"]["name"] == config["metadata"]["name"]
        };
        let live = live.iter().find(is_same).context("it does not exist")?;
        lines += &(json!({ "config": config, "live": live }).to_string() + "\n");
    }
    let pairs = scenario.file("pairs.json", &lines)?;
    let mut argo = Command::new(tools("argocd")?.join("argocd"));
    argo.arg("diff").arg(health());
    argo.stdin(std::fs::File::open(&pairs)?);
    let judged = printed(&argo.output()?, "argocd")?;
    ensure!(judged.lines().count() == lines.lines().count(), "{judged}");
    for (line, pair) in judged.lines().zip(lines.lines()) {
        let judged: Value = serde_json::from_str(line)?;
        ensure!(judged["modified"] == false, "{judged}\n{pair}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make gitops"]
async fn argo_cd_installs_upgrades_and_removes_orkestra_from_an_overlay() -> Result<()> {
    let scenario = Scenario::with_nodes("argo-install").await?;
    copy(&scenario.path("git"))?;
    publish(&scenario, "1.0.0")?;
    sync(&scenario).await?;
    let deployments = Objects::at(
        &scenario.client,
        "/apis/apps/v1/namespaces/orkestra-system/deployments",
    );
    let is_up = |tag: &'static str| {
        move |one: &Value| image(one).ends_with(tag) && one["status"]["availableReplicas"] == 2
    };
    let first = deployments
        .until("orkestra", "runs", LIMIT, is_up(":1.0.0"))
        .await?;
    ensure_in_sync(&scenario)?;
    // A second sync writes nothing.
    let definitions = Objects::of_cluster(&scenario.client, "customresourcedefinitions");
    let before = definitions.versions().await?;
    sync(&scenario).await?;
    ensure!(
        definitions.versions().await? == before,
        "the second sync wrote the CRDs again"
    );

    publish(&scenario, "1.0.1")?;
    sync(&scenario).await?;
    let second = deployments
        .until("orkestra", "runs the new image", LIMIT, is_up(":1.0.1"))
        .await?;
    ensure!(
        second["metadata"]["uid"] == first["metadata"]["uid"],
        "{second}"
    );

    // The engine refuses to sync an empty folder: one unrelated object stays in it.
    let left = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: left, namespace: default }\n";
    scenario.file("argo/orkestra.yaml", left)?;
    sync(&scenario).await?;
    until_removed(&scenario).await?;
    Ok(())
}
