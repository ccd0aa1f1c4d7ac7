//! New objects are in progress, conditions of other field managers are kept, and the kinds of a ready Katalog can be used at once
//! (G2, G3, G5, G6).

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::eventually;

use crate::kstatus::{Kstatus, faults, kstatus};
use crate::rollout::{Recorder, is_observed};
use crate::scenario::{LIMIT, Objects, Scenario, condition, input};
use crate::waters;

/// G5: every shipped CRD merges conditions by type.
#[test]
fn conditions_are_a_list_map_by_type_in_every_crd_that_is_shipped() -> Result<()> {
    fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) -> Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                files(&path, found)?;
            } else if path.extension().is_some_and(|one| one == "yaml") {
                found.push(path);
            }
        }
        Ok(())
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["crds", "examples", "config"] {
        files(&root.join(folder), &mut found)?;
    }
    let mut texts = Vec::new();
    for path in found {
        texts.push(std::fs::read_to_string(path)?);
    }
    let mut crds = 0;
    for text in texts
        .iter()
        .filter(|text| text.contains("\nkind: CustomResourceDefinition"))
    {
        for crd in serde_saphyr::from_multiple::<Value>(text)? {
            for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
                let at = "/schema/openAPIV3Schema/properties/status/properties/conditions";
                let Some(conditions) = version.pointer(at) else {
                    continue;
                };
                let name = &crd["metadata"]["name"];
                ensure!(
                    conditions["x-kubernetes-list-type"] == "map",
                    "{name}: {conditions}"
                );
                ensure!(
                    conditions["x-kubernetes-list-map-keys"] == json!(["type"]),
                    "{name}"
                );
                crds += 1;
            }
        }
    }
    ensure!(crds > 30, "only {crds} CRDs were found");
    Ok(())
}

/// G5: conditions that two other field managers apply are kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_of_other_managers_stay_beside_ours() -> Result<()> {
    let mut scenario = Scenario::new("beside").await?;
    let folder = scenario.path("pond");
    let args = ["init", "pond", "--kind", "Pond", "--group", &scenario.group];
    scenario.ork(&[&args[..], &["--dir", folder.to_str().context("not text")?]].concat())?;
    let crd = std::fs::read_to_string(folder.join("crd.yaml"))?;
    let katalog = "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: { name: waters }\nspec:\n  crds:\n    pond:\n      apiTypes: { group: GROUP, version: v1alpha1, kind: Pond, plural: ponds }\n      operatorBox:\n        onReconcile:\n          configMaps: [{ name: \"{{ .metadata.name }}-pond\", data: { replicas: \"{{ .spec.replicas }}\" } }]\n";
    scenario.grant(katalog).await?;
    scenario.install(&crd).await?;

    // G2: no operator runs yet, so the resource is in progress.
    let (ponds, name) = (scenario.objects("ponds"), "north");
    let fresh = waters::pond(&scenario, name, &json!({ "image": "nginx" })).await?;
    ensure!(kstatus(&fresh) == Kstatus::InProgress, "{fresh}");
    let fresh = ponds.fetch(name).await?;
    ensure!(kstatus(&fresh) == Kstatus::InProgress, "{fresh}");

    scenario.start().await?;
    scenario.apply(katalog)?;
    let has =
        |object: &Value, kinds: &[&str]| kinds.iter().all(|kind| condition(object, kind).is_some());
    let pond = ponds.until_ready(name).await?;
    ensure!(kstatus(&pond) == Kstatus::Current, "{pond}");
    for (manager, kind) in [("audit", "Audited"), ("backup", "BackedUp")] {
        let condition = json!({ "type": kind, "status": "True", "reason": "ByHand", "message": "", "lastTransitionTime": "2031-05-06T07:08:09Z" });
        let status = json!({
            "apiVersion": format!("{}/v1alpha1", scenario.group), "kind": "Pond",
            "metadata": { "name": name }, "status": { "conditions": [condition] },
        });
        let manager = format!("--field-manager={manager}");
        let args = [
            "apply",
            "--server-side",
            "--subresource=status",
            &manager,
            "-f",
            "-",
        ];
        scenario.kubectl_with(&args, Some(&status.to_string()))?;
    }
    // A reconcile pass that writes the status keeps these conditions.
    let mark = json!({ "spec": { "replicas": 3 } });
    ponds.patch(name, &mark).await?;
    let pond = ponds
        .until(name, "has observed the change", LIMIT, |pond| {
            is_observed(pond) && pond["metadata"]["generation"] == 2
        })
        .await?;
    ensure!(has(&pond, &["Ready", "Audited", "BackedUp"]), "{pond}");
    ensure!(faults(&pond).is_empty(), "{:?} in {pond}", faults(&pond));
    scenario.check_running()
}

/// G6: for a hundred kinds, each with its own Katalog: custom resources can be created as soon as the Katalog is ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_custom_resource_made_the_instant_its_katalog_is_ready_is_accepted_and_reconciled()
-> Result<()> {
    const KINDS: usize = 100;
    const AT_ONCE: usize = 10;
    let mut scenario = Scenario::new("instant").await?;
    let entry = |number: usize| {
        format!(
            "    k{number}:\n      apiTypes: {{ group: GROUP, version: v1alpha1, kind: Kind{number}, plural: kind{number}s }}\n      operatorBox:\n        onReconcile:\n          configMaps: [{{ name: \"{{{{ .metadata.name }}}}-{number}\", data: {{ a: b }} }}]\n"
        )
    };
    let katalog = |name: &str, entries: &str| {
        format!(
            "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{ name: {name} }}\nspec:\n  crds:\n{entries}"
        )
    };
    let all: String = (0..KINDS).map(entry).collect();
    scenario.grant(&katalog("all", &all)).await?;
    scenario.start().await?;
    let crd = waters::crds()?;
    let crd = crd.split("\n---").next().context("no CRD")?;
    let one = async |number: usize| -> Result<()> {
        let [kind, plural] = [format!("Kind{number}"), format!("kind{number}s")];
        let crd = crd.replace(
            "singular: pond",
            &format!("singular: {}", kind.to_lowercase()),
        );
        let crd = crd.replace("ponds", &plural).replace("Pond", &kind);
        let name = format!("k{number}");
        let texts = [katalog(&name, &entry(number)), crd];
        let [declared, crd] = texts.map(|text| scenario.text(&text));
        scenario
            .objects("katalogs")
            .create(&serde_saphyr::from_str(&declared)?)
            .await?;
        let crds = Objects::of_cluster(&scenario.client, "customresourcedefinitions");
        crds.create(&serde_saphyr::from_str(&crd)?).await?;
        let recorder =
            Recorder::start(&scenario, &name, |state| kstatus(state) == Kstatus::Current);
        recorder.states().await?;
        let resource = waters::resource(&scenario, &kind, "now", &json!({}));
        let objects = scenario.objects(&plural);
        objects
            .create(&resource)
            .await
            .with_context(|| format!("{kind} is not accepted"))?;
        objects.until_ready("now").await?;
        let map = format!("now-{number}");
        scenario.objects("configmaps").fetch(&map).await.map(drop)
    };
    let numbers: Vec<usize> = (0..KINDS).collect();
    for some in numbers.chunks(AT_ONCE) {
        futures::future::try_join_all(some.iter().map(|number| one(*number))).await?;
    }
    scenario.check_running()
}

/// G2, G3: the same for Katalogs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_katalog_is_in_progress_until_its_operators_run() -> Result<()> {
    let mut scenario = Scenario::new("fresh").await?;
    let katalog = input("rollout/katalog.yaml")?;
    scenario.grant(&katalog).await?;
    scenario.apply(&katalog)?;
    let fresh = scenario.objects("katalogs").fetch("waters").await?;
    ensure!(kstatus(&fresh) == Kstatus::InProgress, "{fresh}");
    let recorder = Recorder::start(&scenario, "waters", |state| {
        kstatus(state) == Kstatus::Current
    });
    scenario.start().await?;
    scenario.katalog_is("waters", "False", "Waiting").await?;
    scenario.install(&waters::crds()?).await?;
    let states = recorder.states().await?;
    let written = states
        .iter()
        .filter(|state| condition(state, "Ready").is_some());
    for state in written {
        ensure!(faults(state).is_empty(), "{:?} in {state}", faults(state));
    }
    eventually("both rows are running", LIMIT, async || {
        let katalog = scenario.objects("katalogs").fetch("waters").await?;
        let rows = katalog["status"]["operators"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        Ok((rows.len() == 2 && rows.iter().all(|row| row["state"] == "Running")).then_some(()))
    })
    .await?;
    scenario.check_running()
}
