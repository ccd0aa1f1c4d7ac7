//! A folder of a Git repository on a fresh cluster: in any order of its files it converges without manual steps, and no tool
//! reports an object as healthy too early (G2, G7, G15, G17).

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use testbed::eventually;

use crate::film::{Film, version};
use crate::judge::Judged;
use crate::kstatus::{Kstatus, kstatus};
use crate::scenario::{LIMIT, Scenario};
use crate::waters;

/// The files of `examples/gitops`, with the scenario's group and namespace.
pub(crate) struct Folder {
    pub(crate) crd: String,
    pub(crate) katalog: String,
    pub(crate) resource: String,
}

/// Reads a file of `examples/gitops`.
pub(crate) fn example(path: &str) -> Result<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/gitops");
    std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned())
}

impl Folder {
    pub(crate) fn read() -> Result<Self> {
        let file = |path| {
            let text = example(path)?;
            let text = text.replace("gitops.example.org", "GROUP");
            anyhow::Ok(text.replace("namespace: websites", "namespace: NAMESPACE"))
        };
        Ok(Self {
            crd: file("katalogs/website-crd.yaml")?,
            katalog: file("katalogs/website.yaml")?,
            resource: file("resources/hello.yaml")?,
        })
    }

    /// Returns the three files as one stream, in the order.
    fn in_order(&self, order: [usize; 3]) -> String {
        let files = [&self.crd, &self.katalog, &self.resource];
        order.map(|index| files[index].as_str()).join("\n---\n")
    }
}

/// Returns a scenario whose controller runs with the permissions of the Katalog. None of the folder's files is applied.
pub(crate) async fn fresh(prefix: &str, folder: &Folder) -> Result<Scenario> {
    let mut scenario = Scenario::new(prefix).await?;
    scenario.grant(&folder.katalog).await?;
    scenario.start().await?;
    Ok(scenario)
}

/// Waits until the website is ready, and checks that its page has the title.
pub(crate) async fn shows(scenario: &Scenario, title: &str) -> Result<()> {
    scenario.objects("websites").until_ready("hello").await?;
    let page = scenario.objects("configmaps").fetch("hello-page").await?;
    ensure!(
        page["data"]["index.html"] == format!("<h1>{title}</h1>"),
        "{page}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_folder_in_any_order_converges_without_a_person() -> Result<()> {
    let folder = &Folder::read()?;
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let converge = async |order: [usize; 3]| -> Result<()> {
        let mut scenario = fresh("folder", folder).await?;
        let katalogs = Film::start(
            &scenario,
            ["orkestra.orkspace.io/v1", "Katalog", "katalogs"],
        )
        .await?;
        // Like every tool, apply the whole folder again until all of it is accepted: kubectl continues after an object whose kind
        // does not exist, but discovers kinds only before it starts.
        eventually("the folder is applied", LIMIT, async || {
            scenario.apply(&folder.in_order(order)).map(Some)
        })
        .await?;
        shows(&scenario, "Hello").await?;
        scenario.katalog_is("websites", "True", "Running").await?;
        for state in katalogs.states().await? {
            let rows = state["status"]["operators"].as_array();
            let runs = rows.is_some_and(|rows| rows.iter().any(|row| row["state"] == "Running"));
            ensure!(
                kstatus(&state) != Kstatus::Current || runs,
                "healthy too early: {state}"
            );
        }
        scenario.check_running()
    };
    let converge = &converge;
    let runs = orders.map(|order| async move {
        converge(order)
            .await
            .with_context(|| format!("order {order:?}"))
    });
    let runs = stream::iter(runs).buffer_unordered(2).try_collect();
    Box::pin(runs).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_waves_a_tool_waits_for_the_katalog_and_needs_no_second_try() -> Result<()> {
    let folder = Folder::read()?;
    let scenario = fresh("waves", &folder).await?;
    // Wave 0, in the order of kinds that every tool uses: CRDs first.
    scenario.apply(&format!("{}\n---\n{}", folder.crd, folder.katalog))?;
    eventually("the Katalog is healthy", LIMIT, async || {
        let katalog = scenario.objects("katalogs").fetch("websites").await?;
        Ok((kstatus(&katalog) == Kstatus::Current).then_some(()))
    })
    .await?;
    // Wave 1.
    scenario.apply(&folder.resource)?;
    shows(&scenario, "Hello").await?;
    // A change in Git is applied, and the deletion of all files deletes all objects.
    scenario.apply(&folder.resource.replace("title: Hello", "title: Again"))?;
    scenario
        .objects("configmaps")
        .until_equal(
            "hello-page",
            "/data/index.html",
            json!("<h1>Again</h1>"),
            LIMIT,
        )
        .await?;
    let text = scenario.text(&folder.in_order([0, 1, 2]));
    scenario.kubectl_with(&["delete", "--wait=false", "-f", "-"], Some(&text))?;
    for (plural, name) in [("websites", "hello"), ("katalogs", "websites")] {
        eventually(
            &format!("{plural} are gone"),
            LIMIT,
            async || match scenario.objects(plural).get(name).await {
                Ok(None) => Ok(Some(())),
                Ok(Some(left)) => anyhow::bail!("{left}"),
                Err(error) => Err(error),
            },
        )
        .await?;
    }
    Ok(())
}

/// The number of ponds, and the number of changes of each. Each change leads to several states.
const PONDS: usize = 20;
const CHANGES: usize = 25;

/// The Katalog of the ponds whose states are recorded.
const KATALOG: &str = r#"{
    "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
    "metadata": { "name": "waters", "namespace": "NAMESPACE" },
    "spec": { "crds": { "pond": {
        "apiTypes": { "group": "GROUP", "version": "v1alpha1", "kind": "Pond", "plural": "ponds" },
        "operatorBox": { "onReconcile": { "configMaps": [
            { "name": "{{ .metadata.name }}", "data": { "depth": "{{ .spec.depth }}" } }
        ] } }
    } } }
}"#;

/// Creates a pond, changes it [`CHANGES`] times, each time once it is ready, and deletes it if its number is even.
async fn a_pond_changes(scenario: &Scenario, pond: usize) -> Result<()> {
    let name = format!("p{pond:02}");
    let objects = scenario.objects("ponds");
    waters::pond(scenario, &name, &json!({ "depth": "d0" })).await?;
    for depth in 1..=CHANGES {
        objects.until_ready(&name).await?;
        let spec = json!({ "spec": { "depth": format!("d{depth}") } });
        objects.patch(&name, &spec).await?;
    }
    objects.until_ready(&name).await?;
    if pond.is_multiple_of(2) {
        objects.delete(&name).await?;
        objects.until_gone(&name, LIMIT).await?;
    }
    Ok(())
}

/// Returns the last recorded state of a child before a resource version.
fn child_before<'a>(children: &'a [Value], name: &str, before: u64) -> Option<&'a Value> {
    let mut older = children
        .iter()
        .rev()
        .filter(|child| version(child) < before);
    older.find(|child| child["metadata"]["name"] == name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_recorded_states_are_judged_by_genuine_tools_as_they_are() -> Result<()> {
    let mut scenario = Scenario::with_katalog("recorded", &["kinds/crds.yaml"], KATALOG).await?;
    let api_version = format!("{}/v1alpha1", scenario.group);
    let ponds = Film::start(&scenario, [&api_version, "Pond", "ponds"]).await?;
    let maps = Film::start(&scenario, ["v1", "ConfigMap", "configmaps"]).await?;
    stream::iter(0..PONDS)
        .map(|pond| a_pond_changes(&scenario, pond))
        .buffer_unordered(5)
        .try_collect::<Vec<()>>()
        .await?;
    scenario.check_running()?;
    let (states, children) = (ponds.states().await?, maps.states().await?);
    let (mut judged, mut seen) = (Judged::default(), BTreeMap::<&str, usize>::new());
    for state in &states {
        let truth = kstatus(state);
        let name = waters::text(state, "/metadata/name");
        // New ponds have no status for a moment: kstatus reports `Current`, health.lua does not.
        if state.get("status").is_none() && truth == Kstatus::Current {
            *seen.entry("without a status").or_default() += 1;
            continue;
        }
        if truth == Kstatus::Current {
            let child = child_before(&children, name, version(state));
            let depth = child.map(|child| &child["data"]["depth"]);
            ensure!(
                depth == Some(&state["spec"]["depth"]),
                "healthy too early: {state}, {child:?}"
            );
            *seen.entry("healthy").or_default() += 1;
        }
        judged.state(state, truth);
    }
    println!(
        "{} states of ponds, {} differ, {seen:?}",
        states.len(),
        judged.len()
    );
    ensure!(states.len() >= 1000, "only {} states", states.len());
    ensure!(
        seen.get("healthy") > Some(&(PONDS * CHANGES / 2)),
        "{seen:?}"
    );
    judged.finish();
    let new: Vec<Value> = states
        .into_iter()
        .filter(|state| state.get("status").is_none())
        .collect();
    ensure!(new.len() >= PONDS);
    for reported in crate::judge::judge(&new) {
        ensure!(reported["lua"]["status"] == "Progressing", "{reported}");
    }
    Ok(())
}
