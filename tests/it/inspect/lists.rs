//! `ork get`: lists, their formats, and their changes.

use std::{
    io::BufReader,
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{document, ork_as};
use crate::scenario::{Scenario, input};
use crate::waters;

/// Ends the process that follows a list.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the text that `ork` prints for the administrator.
fn text(scenario: &Scenario, args: &[&str]) -> Result<String> {
    let output = ork_as(scenario, &scenario.cluster.admin(), args)?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{args:?}: {errors}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn names(listing: &Value) -> Vec<&str> {
    let items = listing["items"].as_array().into_iter().flatten();
    items
        .map(|item| {
            let name = item["metadata"]["name"].as_str();
            name.or(item["name"].as_str()).unwrap_or_default()
        })
        .collect()
}

// Over 60 lines: one cluster, listed in each format.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_have_katalogs_operators_and_instances_in_every_format() -> Result<()> {
    let katalog = input("komposer/ponds.yaml")?;
    let mut scenario = Scenario::with_katalog("lists", &["kinds/crds.yaml"], &katalog).await?;
    for name in ["north", "south"] {
        waters::pond(&scenario, name, &json!({ "depth": 3 })).await?;
        scenario.objects("ponds").until_ready(name).await?;
    }
    let katalogs = document(&scenario, &["get", "katalogs"])?;
    ensure!(names(&katalogs) == ["ponds"], "{katalogs:#}");
    let katalog = &katalogs["items"][0];
    ensure!(
        katalog["kind"] == "Katalog" && katalog["spec"]["crds"].is_object(),
        "{katalog:#}"
    );
    let operators = document(&scenario, &["get", "operators"])?;
    ensure!(names(&operators) == ["pond"], "{operators:#}");
    ensure!(
        operators["items"][0]["katalog"]["name"] == "ponds",
        "{operators:#}"
    );
    let instances = document(&scenario, &["get", "instances"])?;
    ensure!(names(&instances) == ["north", "south"], "{instances:#}");

    let listed = text(&scenario, &["get", "katalogs"])?;
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    ensure!(
        rows[0] == ["NAME", "READY", "REASON", "OPERATORS", "INSTANCES", "AGE"],
        "{listed}"
    );
    ensure!(
        rows[1][..4] == ["ponds", "True", "Running", "1/1"],
        "{listed}"
    );
    let wide = text(&scenario, &["get", "katalogs", "--output", "wide"])?;
    let revision = katalog["status"]["revision"]
        .as_str()
        .context("no revision")?;
    ensure!(
        wide.contains(revision) && !listed.contains(revision),
        "{wide}"
    );
    let kind = format!("ponds.{}", scenario.group);
    let columns = "custom-columns=NAME:.metadata.name,DEPTH:.spec.depth,READY:.status.conditions[?(@.type==\"Ready\")].status,NONE:.spec.x";
    let custom = text(&scenario, &["get", &kind, "--output", columns])?;
    let rows: Vec<Vec<&str>> = custom
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    ensure!(
        rows == [
            vec!["NAME", "DEPTH", "READY", "NONE"],
            vec!["north", "3", "True", "<none>"],
            vec!["south", "3", "True", "<none>"],
        ],
        "{custom}"
    );
    let yaml = text(&scenario, &["get", &kind, "south", "--output", "yaml"])?;
    let yaml: Value = serde_saphyr::from_str(&yaml)?;
    ensure!(names(&yaml) == ["south"], "{yaml:#}");

    let missing = ork_as(
        &scenario,
        &scenario.cluster.admin(),
        &["get", &kind, "west"],
    )?;
    let why = String::from_utf8_lossy(&missing.stderr);
    ensure!(
        missing.status.code() == Some(1) && why.contains("west"),
        "{why}"
    );
    // A user without permissions gets a line that names the first.
    let clerk = scenario
        .cluster
        .identity(&format!("stranger-{}", scenario.namespace), &[])?;
    let refused = ork_as(&scenario, &clerk, &["get", "katalogs"])?;
    let why = String::from_utf8_lossy(&refused.stderr);
    ensure!(refused.status.code() == Some(1), "{refused:?}");
    ensure!(
        why.contains(&format!(
            "missing permission: list katalogs.orkestra.orkspace.io in namespace {}",
            scenario.namespace
        )),
        "{why}"
    );
    let refused = ork_as(&scenario, &clerk, &["get", "katalogs", "--watch"])?;
    let why = String::from_utf8_lossy(&refused.stderr);
    ensure!(
        refused.status.code() == Some(1) && why.contains("cannot watch katalogs"),
        "{why}"
    );
    changes_follow(&scenario, &kind).await?;
    scenario.check_running()
}

/// Checks that a followed list has the objects that exist, and then each change.
async fn changes_follow(scenario: &Scenario, kind: &str) -> Result<()> {
    let mut command = scenario.command_as(&scenario.cluster.admin());
    command.args([
        "get",
        kind,
        "--watch",
        "--output",
        "json",
        "--namespace",
        &scenario.namespace,
    ]);
    let mut following = Following(command.stdout(Stdio::piped()).spawn()?);
    let output = following.0.stdout.take().context("no output")?;
    let lines = BufReader::new(output);
    let mut documents = serde_json::Deserializer::from_reader(lines).into_iter::<Value>();
    let mut next = || -> Result<(String, String, Value)> {
        let change = documents.next().context("the list has ended")??;
        let text = |at: &str| {
            let text = change.pointer(at).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Ok((
            text("/type"),
            text("/object/metadata/name"),
            change["object"].clone(),
        ))
    };
    for name in ["north", "south"] {
        let (change, listed, _) = next()?;
        ensure!((&*change, &*listed) == ("ADDED", name), "{change} {listed}");
    }
    let ponds = scenario.objects("ponds");
    ponds
        .patch("north", &json!({ "spec": { "depth": 9 } }))
        .await?;
    loop {
        let (change, listed, object) = next()?;
        ensure!(change == "MODIFIED", "{change} {listed}");
        if listed == "north" && object["spec"]["depth"] == 9 {
            break;
        }
    }
    ponds.delete("south").await?;
    loop {
        let (change, listed, _) = next()?;
        if change == "DELETED" {
            ensure!(listed == "south", "{listed}");
            return Ok(());
        }
    }
}

/// The name that kubectl gives a plugin is that of its file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_of_kubectl_is_run_by_it_and_names_itself_so() -> Result<()> {
    let katalog = input("komposer/ponds.yaml")?;
    let mut scenario = Scenario::with_katalog("plugin", &["kinds/crds.yaml"], &katalog).await?;
    let folder = scenario.path("plugins");
    std::fs::create_dir_all(&folder)?;
    let plugin = folder.join("kubectl-ork");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ork"), &plugin)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(folder.clone()).chain(std::env::split_paths(&path)))?;
    let admin = scenario.cluster.admin();
    let run = |args: &[&str]| -> Result<_> {
        let mut kubectl = Command::new(scenario.cluster.assets().binary("kubectl")?);
        kubectl.env("KUBECONFIG", admin.kubeconfig_path());
        Ok(kubectl.env("PATH", &path).arg("ork").args(args).output()?)
    };
    let listed = run(&["get", "katalogs", "--namespace", &scenario.namespace])?;
    let text = String::from_utf8_lossy(&listed.stdout);
    ensure!(
        listed.status.success() && text.contains("ponds"),
        "{listed:?}"
    );
    let usage = run(&["tree"])?;
    let text = String::from_utf8_lossy(&usage.stderr);
    ensure!(usage.status.code() == Some(2), "{usage:?}");
    ensure!(text.contains("Usage: kubectl ork tree"), "{text}");
    let help = run(&["--help"])?;
    let text = String::from_utf8_lossy(&help.stdout);
    ensure!(text.contains("`kubectl ork controller` watches"), "{text}");
    let suspended = [
        "suspend",
        "katalog/ponds",
        "--namespace",
        &scenario.namespace,
    ];
    ensure!(run(&suspended)?.status.success());
    let refused = run(&[
        "reconcile",
        "katalog/ponds",
        "--namespace",
        &scenario.namespace,
    ])?;
    let text = String::from_utf8_lossy(&refused.stderr);
    ensure!(text.contains("`kubectl ork resume"), "{text}");
    scenario.check_running()
}
