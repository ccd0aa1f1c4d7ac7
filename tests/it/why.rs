//! `ork why`: the expression of a field, the values that decide it, who holds it, and what the next pass does.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{
    scenario::{LIMIT, Scenario, input},
    waters,
};

/// Runs `ork why`, as the administrator of the scenario would.
fn why(scenario: &Scenario, args: &[&str]) -> Result<String> {
    let namespace = ["--namespace", &scenario.namespace];
    let pond = format!("ponds.{}/north", scenario.group);
    scenario.ork(&[&["why", &pond], args, &namespace].concat())
}

fn explained(scenario: &Scenario, args: &[&str]) -> Result<Value> {
    let text = why(scenario, &[args, &["--output", "json"]].concat())?;
    serde_json::from_str(&text).with_context(|| text.clone())
}

/// Returns where the values are that a field depends on, and those that decide whether its child exists.
fn inputs(explained: &Value) -> (Vec<&str>, Vec<&str>) {
    let all = explained["inputs"].as_array().into_iter().flatten();
    let (exists, decides): (Vec<&Value>, Vec<&Value>) =
        all.partition(|one| one["decidesExistence"] == true);
    (
        decides.into_iter().map(from).collect(),
        exists.into_iter().map(from).collect(),
    )
}

fn from(input: &Value) -> &str {
    input["from"].as_str().unwrap_or_default()
}

// Over 60 lines: one custom resource, and each kind of question about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_leads_to_its_expression_its_inputs_and_its_managers() -> Result<()> {
    let katalog = input("why/katalog.yaml")?;
    let mut scenario = Scenario::with_katalog("why", &["kinds/crds.yaml"], &katalog).await?;
    let spec = json!({ "depth": 3, "colour": "blue", "team": "herons" });
    waters::pond(&scenario, "north", &spec).await?;
    let web = scenario.objects("deployments");
    let exists = |_: &Value| true;
    web.until("north-web", "exists", LIMIT, exists).await?;

    // Of the revision in force.
    let replicas = explained(&scenario, &["deployment/north-web.spec.replicas"])?;
    ensure!(
        replicas["value"] == 3 && replicas["live"] == 3 && replicas["next"] == "keeps",
        "{replicas:#}"
    );
    ensure!(
        replicas["expressions"][0]["source"] == "{{ .spec.depth }}",
        "{replicas:#}"
    );
    let place = &replicas["expressions"][0]["place"]["path"];
    let entry = "spec.crds.pond.operatorBox.onReconcile.deployments[0]";
    ensure!(*place == format!("{entry}.replicas"), "{replicas:#}");
    ensure!(inputs(&replicas).0 == [".spec.depth"], "{replicas:#}");
    let managers = replicas["managers"].to_string();
    ensure!(managers.contains("orkestra/ponds"), "{managers}");

    // Of a file: with the line. Only what decides now is named.
    let file = scenario.file("why.yaml", &scenario.text(&katalog))?;
    let file = file.to_string_lossy();
    let size = explained(
        &scenario,
        &["configmap/north-map.data.size", "--file", &file],
    )?;
    ensure!(size["expressions"][0]["place"]["line"] == 17, "{size:#}");
    ensure!(
        inputs(&size) == (vec![".spec.colour", ".spec.depth"], vec![]),
        "{size:#}"
    );
    let colour = explained(&scenario, &["configmap/north-map.data.colour"])?;
    ensure!(
        inputs(&colour) == (vec![], vec![".spec.colour"]),
        "{colour:#}"
    );

    // Values of Secrets do not appear.
    let key = why(&scenario, &["secret/north-key.data.key"])?;
    ensure!(key.contains("***") && key.contains(".spec.team"), "{key}");
    let image = "deploy/north-web.spec.template.spec.containers[name=north-web].image";
    let image = explained(&scenario, &[image])?;
    ensure!(image["value"] == "web:1", "{image:#}");

    // What is not there is named with what is.
    let Err(unknown) = why(&scenario, &["service/north.spec"]) else {
        bail!("there is no such child");
    };
    ensure!(
        unknown.to_string().contains("deployment/north-web"),
        "{unknown}"
    );

    // Without a child: what it waits for, and what the next pass does.
    scenario.objects("ponds").until_ready("north").await?;
    let text = why(&scenario, &[])?;
    ensure!(
        text.contains("True (ReconcileSucceeded)") && text.contains("of 3 ready"),
        "{text}"
    );
    ensure!(text.contains("changes nothing"), "{text}");
    scenario.check_running()
}
