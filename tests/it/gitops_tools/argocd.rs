//! Argo CD's sync engine, with Orkestra's health check and pruning: it waits for the Katalog between waves, finds no difference
//! afterwards, and does not change or prune children (G9, G15, G17).

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use testbed::Guarded;

use super::{health, tools};
use crate::gitops_folder::{Folder, example, shows};
use crate::scenario::{LIMIT, Objects, Scenario, condition, printed};
use crate::waters;

struct Argo {
    program: PathBuf,
    folder: PathBuf,
}

impl Argo {
    /// Writes the files of the example into one folder, and builds the engine.
    fn new(scenario: &Scenario, folder: &Folder) -> Result<Self> {
        for (name, text) in [
            ("crd", &folder.crd),
            ("katalog", &folder.katalog),
            ("website", &folder.resource),
        ] {
            scenario.file(&format!("git/{name}.yaml"), text)?;
        }
        Ok(Self {
            program: tools("argocd")?.join("argocd"),
            folder: scenario.path("git"),
        })
    }

    /// Runs one sync to its end; returns the output, which lists the changes.
    async fn sync(&self, scenario: &Scenario) -> Result<String> {
        let mut command = Command::new(&self.program);
        let admin = scenario.cluster.admin();
        command.arg("sync").arg(admin.kubeconfig_path());
        command.args([&scenario.namespace, "websites"]);
        command.arg(health()).arg(&self.folder);
        command.stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        printed(&output, "argocd")
    }

    /// Returns for each pair whether the live object differs from Git, and its health.
    fn compare(&self, pairs: &[(Value, Value)]) -> Result<Vec<Value>> {
        let lines = pairs
            .iter()
            .map(|(config, live)| json!({ "config": config, "live": live }).to_string() + "\n");
        let lines = lines.collect::<Vec<_>>().concat();
        let input = self.folder.join("../pairs.json");
        std::fs::write(&input, lines)?;
        let mut command = Command::new(&self.program);
        command
            .arg("diff")
            .arg(health())
            .stdin(std::fs::File::open(&input)?);
        let reported = printed(&command.output()?, "argocd")?;
        reported
            .lines()
            .map(|line| Ok(serde_json::from_str(line)?))
            .collect()
    }
}

/// Checks that fields that the controller wrote into applied objects are no difference from Git, and that the objects are healthy.
async fn ensure_in_sync(scenario: &Scenario, folder: &Folder, argo: &Argo) -> Result<()> {
    let label = |mut config: Value| {
        config["metadata"]["labels"] = json!({ "app.kubernetes.io/instance": "websites" });
        config
    };
    let config = |text: &str| anyhow::Ok(label(serde_saphyr::from_str(&scenario.text(text))?));
    let pairs = [
        (
            config(&folder.katalog)?,
            scenario.objects("katalogs").fetch("websites").await?,
        ),
        (
            config(&folder.resource)?,
            scenario.objects("websites").fetch("hello").await?,
        ),
    ];
    for reported in argo.compare(&pairs)? {
        ensure!(
            reported["modified"] == false && reported["health"]["status"] == "Healthy",
            "{reported}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make gitops"]
async fn argo_cd_syncs_a_fresh_cluster_at_once_and_prunes_no_child() -> Result<()> {
    // The engine's cache reads the whole cluster, so the test has its own control plane.
    let mut scenario = Scenario::on_its_own("argo").await?;
    let folder = Folder::read()?;
    let far = waters::second_namespace(&scenario.client).await?;
    let folder = with_far_child(folder, &far);
    scenario.grant(&folder.katalog).await?;
    let argo = Argo::new(&scenario, &folder)?;

    // Without a controller, wave 1 waits for the Katalog.
    let syncing = argo.sync(&scenario);
    tokio::pin!(syncing);
    tokio::select! {
        ended = &mut syncing => anyhow::bail!("the sync ended before the Katalog was healthy: {ended:?}"),
        applied = wave_0_is_applied(&scenario) => applied?,
    }
    // The future borrows the scenario, so `Scenario::start` cannot be called: a guard holds the controller.
    let mut controller = controller(&scenario)?;
    let did = syncing.await?;
    ensure!(did.contains("Website/") && !did.contains("Failed"), "{did}");
    wave_1_waited(&scenario).await?;
    shows(&scenario, "Hello").await?;

    let there = scenario.objects_in(&far, "configmaps");
    syncs_prune_no_child(&scenario, &argo, &there).await?;
    ensure_in_sync(&scenario, &folder, &argo).await?;

    // A custom resource that is removed from Git is pruned, with its children.
    std::fs::remove_file(argo.folder.join("website.yaml"))?;
    let did = argo.sync(&scenario).await?;
    ensure!(did.contains("Pruned"), "{did}");
    scenario
        .objects("websites")
        .until_gone("hello", LIMIT)
        .await?;
    there.until_gone("hello-far", LIMIT).await?;
    ensure!(controller.status()?.is_none(), "the controller has ended");
    Ok(())
}

/// Adds a child in another namespace. It has no owner reference: only labels could make it part of the application.
fn with_far_child(folder: Folder, far: &str) -> Folder {
    let katalog = format!(
        "{}            - name: \"{{{{ .metadata.name }}}}-far\"\n              namespace: {far}\n              data: {{a: b}}\n",
        folder.katalog
    );
    Folder { katalog, ..folder }
}

/// Waits until the Katalog is applied.
async fn wave_0_is_applied(scenario: &Scenario) -> Result<()> {
    scenario
        .objects("katalogs")
        .until("websites", "is applied", LIMIT, |_| true)
        .await
        .map(drop)
}

/// Checks that the Website was created when the Katalog was ready. Both times have whole seconds.
async fn wave_1_waited(scenario: &Scenario) -> Result<()> {
    let katalog = scenario.objects("katalogs").fetch("websites").await?;
    let ready = condition(&katalog, "Ready").context("no condition")?;
    let ready: Timestamp = waters::text(ready, "/lastTransitionTime").parse()?;
    let website = scenario.objects("websites").fetch("hello").await?;
    let made: Timestamp = waters::text(&website, "/metadata/creationTimestamp").parse()?;
    ensure!(made >= ready, "created at {made}, ready at {ready}");
    Ok(())
}

/// Starts a controller that ends with the returned guard.
fn controller(scenario: &Scenario) -> Result<Guarded> {
    let flags = [
        "controller",
        "--leader-elect=false",
        "--namespace",
        &scenario.namespace,
        "--listen",
        "127.0.0.1:0",
    ];
    let mut command = scenario.command_as(&scenario.identity);
    command.args(flags);
    testbed::spawn_guarded(&command, &scenario.path("argo.log"))
}

/// Syncs three times, and checks that both children are kept and get no label of the application.
async fn syncs_prune_no_child(scenario: &Scenario, argo: &Argo, there: &Objects) -> Result<()> {
    let maps = scenario.objects("configmaps");
    let before = [
        maps.fetch("hello-page").await?,
        there.fetch("hello-far").await?,
    ];
    for _ in 0..3 {
        let did = argo.sync(scenario).await?;
        ensure!(!did.contains("Pruned"), "{did}");
    }
    let after = [
        maps.fetch("hello-page").await?,
        there.fetch("hello-far").await?,
    ];
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
        let labels = after["metadata"]["labels"].as_object().context("labels")?;
        ensure!(
            !labels.contains_key("app.kubernetes.io/instance"),
            "{after}"
        );
    }
    Ok(())
}

#[test]
fn the_shipped_settings_are_those_that_the_command_prints() -> Result<()> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/gitops");
    for (what, path) in [
        ("argocd", "argocd/argocd-cm.yaml"),
        ("flux", "flux/kustomizations.yaml"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ork"));
        command.args(["generate", what, "--katalog", "katalogs/website.yaml"]);
        let text = printed(&command.current_dir(&folder).output()?, "ork")?;
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(folder.join(path), &text)?;
        }
        ensure!(
            example(path)? == text,
            "examples/gitops/{path} is stale; run the test again with UPDATE=1"
        );
    }
    Ok(())
}
