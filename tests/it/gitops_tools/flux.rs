//! Flux's kustomize-controller, with the Kustomizations that `ork generate flux` prints: it waits for the Katalog, then for the
//! custom resources, and does not change or prune children (G9, G16).

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testbed::{Guarded, eventually, free_port, spawn_guarded};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::tools;
use crate::gitops_folder::{Folder, example, shows};
use crate::kstatus::{Kstatus, kstatus};
use crate::scenario::{LIMIT, Objects, Scenario, condition, printed};

pub(crate) const NAMESPACE: &str = "flux-system";

/// A stand-in for Flux's source-controller, which serves an archive over HTTP.
pub(crate) struct Source {
    archive: Arc<Mutex<Vec<u8>>>,
    address: String,
}

impl Source {
    pub(crate) async fn serve() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let archive = Arc::new(Mutex::new(Vec::new()));
        let shown = archive.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let body = shown.lock().clone();
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&body).await;
            }
        });
        Ok(Self { archive, address })
    }

    /// Packs a folder, and reports it as the source's artifact, with the revision `name`.
    pub(crate) fn publish(&self, scenario: &Scenario, folder: &Path, name: &str) -> Result<()> {
        let file = folder.with_extension("tar.gz");
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&file).arg("-C").arg(folder).arg(".");
        printed(&tar.output()?, "tar")?;
        let packed = std::fs::read(&file)?;
        let digest = printed(&Command::new("sha256sum").arg(&file).output()?, "sha256sum")?;
        let digest = format!("sha256:{}", digest.split(' ').next().context("no digest")?);
        let size = packed.len();
        *self.archive.lock() = packed;
        let ready = json!({ "type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact", "lastTransitionTime": "2026-11-24T00:00:00Z", "observedGeneration": 1 });
        let status = json!({ "status": { "observedGeneration": 1, "conditions": [ready], "artifact": {
            "url": format!("http://{}/{name}.tar.gz", self.address), "path": format!("{name}.tar.gz"),
            "revision": format!("{name}@{digest}"), "digest": digest, "size": size, "lastUpdateTime": "2026-11-24T00:00:00Z",
        } } });
        let args = [
            "patch",
            "gitrepository",
            "flux-system",
            "--namespace",
            NAMESPACE,
            "--subresource=status",
            "--type=merge",
            "-p",
        ];
        let status = status.to_string();
        kubectl(scenario, &[&args[..], &[&status]].concat(), None).map(drop)
    }
}

/// Runs `kubectl` as the administrator, without a namespace.
pub(crate) fn kubectl(scenario: &Scenario, args: &[&str], stdin: Option<&str>) -> Result<String> {
    let output = scenario
        .cluster
        .kubectl(&scenario.cluster.admin(), args, stdin)?;
    printed(&output, "kubectl")
}

/// Installs Flux's CRDs, and a `GitRepository` without an artifact.
pub(crate) async fn install(scenario: &Scenario, tools: &Path) -> Result<()> {
    let definitions = tools.join("crds");
    let definitions = definitions.to_str().context("the path is not text")?;
    kubectl(
        scenario,
        &["apply", "--server-side", "-f", definitions],
        None,
    )?;
    kubectl(scenario, &["create", "namespace", NAMESPACE], None)?;
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": { "name": "flux-system", "namespace": NAMESPACE },
        "spec": { "url": "https://git.example.org/platform.git", "interval": "1h" },
    });
    eventually("the source is accepted", LIMIT, async || {
        kubectl(scenario, &["apply", "-f", "-"], Some(&source.to_string())).map(Some)
    })
    .await?;
    Ok(())
}

pub(crate) fn start(scenario: &Scenario, tools: &Path) -> Result<Guarded> {
    let mut command = Command::new(tools.join("kustomize-controller"));
    command.env("KUBECONFIG", scenario.cluster.admin().kubeconfig_path());
    command.env("RUNTIME_NAMESPACE", NAMESPACE);
    command.arg("--metrics-addr=127.0.0.1:0");
    command.arg(format!("--health-addr=127.0.0.1:{}", free_port()?));
    command.args([
        "--enable-leader-election=false",
        "--events-addr=",
        "--requeue-dependency=2s",
    ]);
    spawn_guarded(&command, &scenario.path("flux.log"))
}

pub(crate) fn kustomizations(scenario: &Scenario) -> Objects {
    let path =
        format!("/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/kustomizations");
    Objects::at(&scenario.client, &path)
}

pub(crate) fn is_ready_at(kustomization: &Value, revision: &str) -> bool {
    let applied = kustomization["status"]["lastAppliedRevision"].as_str();
    applied.is_some_and(|applied| applied.starts_with(&format!("{revision}@")))
        && condition(kustomization, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// Requests a reconciliation of both Kustomizations.
async fn nudge(scenario: &Scenario, revision: &str) -> Result<()> {
    for name in ["katalogs", "resources"] {
        let asks = json!({ "metadata": { "annotations": { "reconcile.fluxcd.io/requestedAt": revision } } });
        kustomizations(scenario).patch(name, &asks).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make gitops"]
async fn flux_waits_for_the_katalog_then_for_the_resource_and_prunes_no_child() -> Result<()> {
    let tools = tools("kustomize-controller")?;
    let mut scenario = Scenario::on_its_own("flux").await?;
    let folder = Folder::read()?;
    // Without a default status in the CRD, kstatus alone reports a new Website as `Current`: the harder case.
    let crd = folder
        .crd
        .replace("              default: {observedGeneration: -1}\n", "");
    ensure!(crd != folder.crd, "the CRD has no default status");
    scenario.grant(&folder.katalog).await?;
    let git = scenario.path("git");
    scenario.file("git/katalogs/crd.yaml", &crd)?;
    scenario.file("git/katalogs/katalog.yaml", &folder.katalog)?;
    scenario.file("git/resources/website.yaml", &folder.resource)?;

    install(&scenario, &tools).await?;
    let served = Source::serve().await?;
    served.publish(&scenario, &git, "one")?;
    let mut flux = start(&scenario, &tools)?;
    let printed =
        example("flux/kustomizations.yaml")?.replace("gitops.example.org", &scenario.group);
    kubectl(&scenario, &["apply", "-f", "-"], Some(&printed))?;

    resources_wait_for_the_katalog(&mut scenario).await?;
    let uid = scenario.objects("configmaps").fetch("hello-page").await?["metadata"]["uid"].clone();
    let second = folder.resource.replace("name: hello", "name: second");
    a_new_resource_waits_for_an_operator(&mut scenario, &served, &second).await?;
    what_leaves_git_is_pruned_and_no_other_child(&scenario, &served, &uid).await?;
    ensure!(flux.status()?.is_none(), "Flux has ended");
    scenario.check_running()
}

/// Checks that the Website is not applied while no controller reconciles the Katalog, and is applied after the controller starts.
async fn resources_wait_for_the_katalog(scenario: &mut Scenario) -> Result<()> {
    let katalogs = scenario.objects("katalogs");
    katalogs
        .until("websites", "is applied", LIMIT, |_| true)
        .await?;
    let all = kustomizations(scenario);
    all.until("resources", "waits for the Katalog", LIMIT, |one| {
        condition(one, "Ready").is_some_and(|ready| ready["reason"] == "DependencyNotReady")
    })
    .await?;
    let early = scenario.objects("websites").get("hello").await?;
    ensure!(early.is_none(), "the Website did not wait: {early:?}");
    scenario.start().await?;
    scenario
        .objects("websites")
        .until("hello", "is applied", LIMIT, |_| true)
        .await?;
    let katalog = katalogs.fetch("websites").await?;
    ensure!(kstatus(&katalog) == Kstatus::Current, "{katalog}");
    all.until("resources", "is ready", LIMIT, |one| {
        is_ready_at(one, "one")
    })
    .await?;
    shows(scenario, "Hello").await
}

/// Checks that the Kustomization waits for a new Website, which has no status while no operator runs.
async fn a_new_resource_waits_for_an_operator(
    scenario: &mut Scenario,
    served: &Source,
    second: &str,
) -> Result<()> {
    scenario.terminate()?;
    scenario.file("git/resources/second.yaml", second)?;
    served.publish(scenario, &scenario.path("git"), "two")?;
    nudge(scenario, "two").await?;
    scenario
        .objects("websites")
        .until("second", "is applied", LIMIT, |_| true)
        .await?;
    let all = kustomizations(scenario);
    let waits = all
        .until("resources", "checks the new revision", LIMIT, |one| {
            let conditions = one["status"]["conditions"].to_string();
            conditions.contains("Running health checks for revision two@")
        })
        .await?;
    ensure!(
        !is_ready_at(&waits, "two"),
        "the Kustomization is ready without an operator: {waits}"
    );
    scenario.start().await?;
    all.until("resources", "is ready again", LIMIT, |one| {
        is_ready_at(one, "two")
    })
    .await?;
    scenario.objects("configmaps").fetch("second-page").await?;
    Ok(())
}

/// Removes a Website from Git, and checks that it is pruned with its children, and that the page of the first one keeps its uid.
async fn what_leaves_git_is_pruned_and_no_other_child(
    scenario: &Scenario,
    served: &Source,
    uid: &Value,
) -> Result<()> {
    let git = scenario.path("git");
    std::fs::remove_file(git.join("resources/second.yaml"))?;
    served.publish(scenario, &git, "three")?;
    nudge(scenario, "three").await?;
    scenario
        .objects("websites")
        .until_gone("second", LIMIT)
        .await?;
    let all = kustomizations(scenario);
    all.until("resources", "is ready once more", LIMIT, |one| {
        is_ready_at(one, "three")
    })
    .await?;
    let page = scenario.objects("configmaps").fetch("hello-page").await?;
    assert_eq!(page["metadata"]["uid"], *uid);
    let labels = page["metadata"]["labels"].as_object().context("labels")?;
    ensure!(!labels.keys().any(|key| key.contains("fluxcd")), "{page}");
    Ok(())
}
