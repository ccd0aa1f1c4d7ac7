//! `ork run` and `ork release`: operators from local files.

use std::future::ready;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use axum::{Router, routing::get};
use flate2::{Compression, write::GzEncoder};
use orkestra_ground::tasks::Task;
use serde_json::{Value, json};
use testbed::{
    ControlPlane, Guarded, Identity, Mark, SYSTEM_MASTERS, Signal, eventually, free_port,
    spawn_guarded,
};

use tokio::net::TcpListener;

use crate::scenario::{FAULTS, LIMIT, Scenario, input, strike};
use crate::waters;

const FINALIZER: &str = "orkestra.orkspace.io/cleanup";

/// A folder with the files, and a user with all permissions.
struct Desk {
    scenario: Scenario,
    person: Identity,
    katalog: PathBuf,
}

impl Desk {
    async fn new() -> Result<Self> {
        let scenario = Scenario::new("files").await?;
        let person = ControlPlane::shared()
            .identity(&format!("person-{}", scenario.namespace), &[SYSTEM_MASTERS])?;
        let only_ponds = waters::crds()?;
        let only_ponds = only_ponds.split("\n---\n").next().context("no first CRD")?;
        scenario.file("crd.yaml", only_ponds)?;
        for name in ["setup.yaml", "pond.yaml"] {
            scenario.file(name, &input(&format!("run/{name}"))?)?;
        }
        for (name, text) in CHART {
            scenario.file(name, text)?;
        }
        let katalog = input("run/katalog.yaml")?.replace("CHARTS", &charts().await?);
        let katalog = scenario.file("katalog.yaml", &katalog)?;
        Ok(Self {
            scenario,
            person,
            katalog,
        })
    }

    fn ork(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ork"));
        command
            .args(args)
            .arg("-k")
            .arg(&self.katalog)
            .env("KUBECONFIG", self.person.kubeconfig_path())
            .env("NO_COLOR", "1");
        command
    }

    fn run(&self) -> Result<Guarded> {
        let listen = format!("127.0.0.1:{}", free_port()?);
        let folder = self.katalog.parent().unwrap_or(Path::new("."));
        let mut command = self.ork(&[
            "run",
            "--listen",
            &listen,
            "--source-allow=http://127.0.0.0/8",
        ]);
        command.env(FAULTS, self.faults());
        spawn_guarded(&command, &folder.join("run.log"))
    }

    /// Returns the path of the file with the faults of `ork run`.
    fn faults(&self) -> PathBuf {
        self.scenario.path("faults")
    }

    /// Replaces text in the Katalog's file. The file is replaced by a rename, as editors do.
    fn edit(&self, from: &str, to: &str) -> Result<()> {
        let text = std::fs::read_to_string(&self.katalog)?;
        ensure!(text.contains(from), "the Katalog has no {from}");
        let part = self.katalog.with_extension("part");
        std::fs::write(&part, text.replace(from, to))?;
        Ok(std::fs::rename(part, &self.katalog)?)
    }

    async fn until_logged(&self, run: &Guarded, words: &str) -> Result<()> {
        eventually(&format!("it prints {words:?}"), LIMIT, async || {
            let log = run.log();
            ensure!(log.contains(words), "it printed:\n{log}");
            Ok(Some(()))
        })
        .await
    }
}

/// A chart in the folder of the Katalog, and a file with values.
const CHART: [(&str, &str); 4] = [
    (
        "clay/Chart.yaml",
        "apiVersion: v2\nname: clay\nversion: 1.0.0\n",
    ),
    ("clay/values.yaml", "depth: 1\ncolour: grey\n"),
    (
        "clay/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: '{{ .Release.Name }}-{{ .Chart.Name }}' }\n\
         data: { layers: '{{ .Values.colour }} {{ mul .Values.depth 10 }}' }\n",
    ),
    ("clay-values.yaml", "depth: 7\ncolour: red\n"),
];

/// Starts a chart repository at `/stable` with two versions of one chart, and returns its address. It ends with the test.
async fn charts() -> Result<String> {
    let archive = |version: &str| -> Result<Vec<u8>> {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let manifest = format!("apiVersion: v2\nname: loam\nversion: {version}\n");
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: '{{ .Release.Name }}' }\n\
                   data: { layers: '{{ .Chart.Version }} {{ .Values.depth }}' }\n";
        for (path, text) in [
            ("loam/Chart.yaml", &*manifest),
            ("loam/templates/map.yaml", map),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, path, text.as_bytes())?;
        }
        Ok(tar.into_inner()?.finish()?)
    };
    let index = "apiVersion: v1\nentries:\n  loam:\n  - { version: 2.0.0, urls: [loam-2.tgz] }\n  \
                 - { version: 1.4.0, urls: [loam-1.tgz] }\n";
    let (first, second) = (archive("1.4.0")?, archive("2.0.0")?);
    let router = Router::new()
        .route("/stable/index.yaml", get(move || ready(index)))
        .route("/stable/loam-1.tgz", get(move || ready(first.clone())))
        .route("/stable/loam-2.tgz", get(move || ready(second.clone())));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

fn finalizers(object: &Value) -> Vec<&str> {
    let all = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn ork_run_applies_what_files_name_follows_their_changes_and_releases()
-> Result<()> {
    let desk = Desk::new().await?;
    let mark = Scenario::mark()?;
    let mut run = desk.run()?;
    let (ponds, maps) = (
        desk.scenario.objects("ponds"),
        desk.scenario.objects("configmaps"),
    );
    maps.until_equal("north-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    ponds.until_ready("north").await?;
    all_is_applied_in_order(&desk, mark)?;

    maps.until_equal("bed-clay", "/data/layers", json!("red 20"), LIMIT)
        .await?;

    // From a repository, the newest version within the range is used.
    maps.until_equal("loam", "/data/layers", json!("1.4.0 3"), LIMIT)
        .await?;

    // A changed file is reloaded, whether of a chart's values or the Katalog.
    desk.scenario.file("clay-values.yaml", "colour: brown\n")?;
    maps.until_equal("bed-clay", "/data/layers", json!("brown 20"), LIMIT)
        .await?;
    desk.edit("shade: light", "shade: dark")?;
    maps.until_equal("north-pond", "/data/shade", json!("dark"), LIMIT)
        .await?;
    a_mistake_keeps_the_last_good_file(&desk, &run).await?;

    run.signal(Signal::Int)?;
    let status = run.wait(LIMIT)?;
    ensure!(status.success(), "after Ctrl-C it ended with {status}");
    changes_and_finalizers_are_printed(&run.log())?;
    assert_eq!(finalizers(&ponds.fetch("north").await?), [FINALIZER]);

    release_removes_finalizers_and_labels(&desk).await?;
    maps.fetch("north-pond").await?;
    // No finalizer delays the deletion.
    ponds.delete("north").await?;
    ponds.until_gone("north", LIMIT).await
}

/// Checks that the first objects were applied in the order of their dependencies.
fn all_is_applied_in_order(desk: &Desk, mark: Mark) -> Result<()> {
    // The order is: the prerequisites, the CRD, the Pond, its child.
    let mut events = ControlPlane::shared().audit_since(mark)?;
    events.retain(|event| event.user == desk.person.user() && event.is_write() && event.code < 300);
    let first = |resource: &str, name: &str| {
        events
            .iter()
            .position(|event| event.resource == resource && event.name == name)
    };
    let definition = format!("ponds.{}", desk.scenario.group);
    let order = [
        first("configmaps", "ground"),
        first("configmaps", "bed-clay"),
        first("customresourcedefinitions", &definition),
        first("ponds", "north"),
        first("configmaps", "north-pond"),
    ];
    ensure!(
        order.iter().all(Option::is_some) && order.is_sorted(),
        "the order is {order:?}:\n{}",
        waters::lines(&events)
    );
    Ok(())
}

/// Checks that a mistake in the Katalog is reported with its place, and that the last good file is used until it is corrected.
async fn a_mistake_keeps_the_last_good_file(desk: &Desk, run: &Guarded) -> Result<()> {
    let maps = desk.scenario.objects("configmaps");
    let line = std::fs::read_to_string(&desk.katalog)?
        .lines()
        .position(|line| line.contains("onReconcile"))
        .context("no such line")?
        + 1;
    desk.edit("onReconcile", "onReconsile")?;
    desk.until_logged(run, &format!("katalog.yaml:{line}:9"))
        .await?;
    ensure!(
        run.log().contains("`onReconcile`"),
        "no suggestion is printed:\n{}",
        run.log()
    );
    maps.delete("north-pond").await?;
    maps.until_equal("north-pond", "/data/shade", json!("dark"), LIMIT)
        .await?;
    desk.edit("onReconsile", "onReconcile")?;
    desk.edit("shade: dark", "shade: none")?;
    maps.until_equal("north-pond", "/data/shade", json!("none"), LIMIT)
        .await?;
    Ok(())
}

/// Checks that the output names what was created and changed, and the finalizers that remain.
fn changes_and_finalizers_are_printed(said: &str) -> Result<()> {
    for done in ["created", "changed"] {
        let object = |line: &&str| line.contains("ConfigMap") && line.contains("north-pond");
        let is_logged =
            (said.lines().filter(object)).any(|line| line.contains(&format!(" {done} ")));
        ensure!(is_logged, "no line says {done}:\n{said}");
    }
    ensure!(
        said.contains("Finalizers remain") && said.contains("ork release -k"),
        "finalizers are not mentioned:\n{said}"
    );
    Ok(())
}

/// Runs `ork release`, and checks that the pond has no finalizer and no label of Orkestra any more.
async fn release_removes_finalizers_and_labels(desk: &Desk) -> Result<()> {
    let output = desk.ork(&["release"]).output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let released = desk.scenario.objects("ponds").fetch("north").await?;
    assert_eq!(finalizers(&released), Vec::<&str>::new());
    ensure!(
        !released["metadata"]["labels"]
            .to_string()
            .contains("orkestra"),
        "Orkestra's labels are left: {}",
        released["metadata"]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ork_run_makes_children_as_the_definitions_in_the_cluster_have_them() -> Result<()> {
    let desk = Desk::new().await?;
    desk.scenario.install(&input("run/lakes.yaml")?).await?;
    desk.scenario
        .file("katalog.yaml", &input("run/typed.yaml")?)?;
    let mut run = desk.run()?;
    let lakes = desk.scenario.objects("lakes");
    eventually("a Pond can be created", LIMIT, async || {
        let made = waters::pond(&desk.scenario, "north", &json!({ "depth": 7 })).await?;
        Ok(Some(made))
    })
    .await?;
    lakes
        .until_equal("north", "/spec/depth", json!("7"), LIMIT)
        .await?;
    let filled = json!({ "spec": { "shores": ["west"] } });
    lakes.patch("north", &filled).await?;
    lakes
        .until_equal("north", "/spec/shores", json!([]), LIMIT)
        .await?;
    // `ork run` ends with a reason when it can no longer follow its files.
    strike(&desk.faults(), &[Task::Files.name()]).await?;
    ensure!(!run.wait(LIMIT)?.success(), "{}", run.log());
    desk.until_logged(&run, "task files ended").await?;
    let output = desk.ork(&["release"]).output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ork_run_refuses_a_kind_that_a_katalog_in_the_cluster_claims() -> Result<()> {
    let desk = Desk::new().await?;
    desk.scenario.install(&waters::crds()?).await?;
    desk.scenario
        .apply(&waters::filled("claims/katalog.yaml", "NAME", "claimant")?)?;
    let mut run = desk.run()?;
    let status = run.wait(LIMIT)?;
    let said = run.log();
    assert_eq!(status.code(), Some(1), "{said}");
    ensure!(
        said.contains("claimant") && said.contains("Pond"),
        "Katalog and kind are not named:\n{said}"
    );
    // The claim is found before anything is written.
    assert_eq!(
        desk.scenario.objects("configmaps").get("ground").await?,
        None
    );
    assert_eq!(desk.scenario.objects("ponds").get("north").await?, None);

    // The claim ends when the Katalog is deleted.
    desk.scenario.objects("katalogs").delete("claimant").await?;
    let mut run = desk.run()?;
    desk.scenario
        .objects("configmaps")
        .until_equal("north-pond", "/data/colour", json!("green"), LIMIT)
        .await?;
    run.signal(Signal::Term)?;
    ensure!(run.wait(LIMIT)?.success(), "{}", run.log());
    let output = desk.ork(&["release"]).output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ork_run_shows_a_mistake_in_a_file_before_it_asks_the_cluster() -> Result<()> {
    let desk = Desk::new().await?;
    desk.edit(
        "colour: \"{{ .spec.colour }}\"",
        "colour: \"{{ .spec.colour\"",
    )?;
    let mark = Scenario::mark()?;
    let mut run = desk.run()?;
    let status = run.wait(LIMIT)?;
    assert_eq!(status.code(), Some(1), "{}", run.log());
    desk.until_logged(&run, "katalog.yaml:").await?;
    let asked = ControlPlane::shared()
        .audit_since(mark)?
        .into_iter()
        .filter(|event| event.user == desk.person.user())
        .count();
    assert_eq!(asked, 0, "requests were sent");
    Ok(())
}
