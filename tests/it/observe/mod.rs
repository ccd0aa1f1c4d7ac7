//! `observe`: changes of other objects and Events cause reconcile passes of the custom resources that they refer to.

mod cut;
mod events;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Objects, Scenario, input, until_next_second};

/// Starts the controller with an operator of ponds, and creates two ponds. Returns when they are ready and no passes run.
async fn running(prefix: &str) -> Result<Scenario> {
    let crds = ["observe/storms.yaml", "observe/crd.yaml"];
    let scenario = Scenario::running(prefix, &crds, "observe/katalog.yaml").await?;
    ponds(&scenario).await?;
    Ok(scenario)
}

async fn ponds(scenario: &Scenario) -> Result<()> {
    for name in ["north", "south"] {
        scenario.apply(&pond(name).to_string())?;
        scenario.objects("ponds").until_ready(name).await?;
    }
    rest(scenario).await
}

fn pond(name: &str) -> Value {
    json!({
        "apiVersion": "GROUP/v1alpha1", "kind": "Pond",
        "metadata": { "name": name, "namespace": "NAMESPACE" }, "spec": {},
    })
}

/// Waits until no reconcile pass is due or runs.
async fn rest(scenario: &Scenario) -> Result<()> {
    scenario.until_idle().await.map(drop)
}

/// Returns the time of the pond's last reconcile pass, from its status.
async fn at(scenario: &Scenario, pond: &str) -> Result<Value> {
    Ok(scenario.objects("ponds").fetch(pond).await?["status"]["at"].clone())
}

/// Checks that `change` causes a reconcile pass of `pond`, and none of the other pond.
async fn leads_to(
    scenario: &Scenario,
    pond: &str,
    change: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    let other = if pond == "north" { "south" } else { "north" };
    let (before, of_other) = (at(scenario, pond).await?, at(scenario, other).await?);
    // Times in the status have a precision of one second.
    until_next_second().await?;
    change().await?;
    scenario
        .objects("ponds")
        .until(pond, "was reconciled again", LIMIT, |pond| {
            pond["status"]["at"] != before
        })
        .await?;
    rest(scenario).await?;
    assert_eq!(at(scenario, other).await?, of_other, "{other} had a pass");
    Ok(())
}

/// Checks that `change` causes no reconcile pass. `later` is a change of an object of the same kind that leads to `pond`: the watch
/// has delivered the first one before.
async fn leads_nowhere(
    scenario: &Scenario,
    change: impl AsyncFnOnce() -> Result<()>,
    (pond, later): (&str, impl AsyncFnOnce() -> Result<()>),
) -> Result<()> {
    // Wait for passes that the previous change caused.
    rest(scenario).await?;
    let mark = Scenario::mark()?;
    change().await?;
    let mut before = Timestamp::now();
    leads_to(scenario, pond, async || {
        before = Timestamp::now();
        later().await
    })
    .await?;
    // A pass in another second writes another time to the status.
    let mut writes = scenario.writes_since(mark)?;
    writes.retain(|write| write.resource == "ponds" && write.timestamp < before);
    ensure!(writes.is_empty(), "{}", crate::waters::lines(&writes));
    Ok(())
}

fn config_map(name: &str, pond: Option<&str>, data: &Value) -> Value {
    let labels = pond.map_or(json!({}), |pond| json!({ "example.org/pond": pond }));
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": labels }, "data": data,
    })
}

async fn create(objects: &Objects, object: &Value) -> Result<()> {
    objects.create(object).await.map(drop)
}

async fn patch(objects: &Objects, name: &str, change: &Value) -> Result<()> {
    objects.patch(name, change).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_a_template_and_an_owner_lead_to_one_resource_by_the_changes_that_count()
-> Result<()> {
    let scenario = running("observe").await?;
    a_label_leads_to_one_pond(&scenario).await?;
    a_template_leads_to_one_pond(&scenario).await?;
    an_owner_leads_to_one_pond(&scenario).await
}

/// Checks that a `ConfigMap` causes a pass of the pond in its label when it is created, changed, labelled or deleted.
async fn a_label_leads_to_one_pond(scenario: &Scenario) -> Result<()> {
    let maps = scenario.objects("configmaps");
    leads_to(scenario, "north", async || {
        create(
            &maps,
            &config_map("depth", Some("north"), &json!({ "a": "1" })),
        )
        .await
    })
    .await?;
    leads_to(scenario, "north", async || {
        patch(&maps, "depth", &json!({ "data": { "a": "2" } })).await
    })
    .await?;
    let of_south = async || {
        let map = config_map("bed", Some("south"), &json!({}));
        create(&maps, &map).await
    };
    let unread = async || {
        // Another field manager applies the same content: only `managedFields` change.
        let same = config_map("depth", Some("north"), &json!({ "a": "2" }));
        scenario
            .kubectl_with(
                &["apply", "--server-side", "--force-conflicts", "-f", "-"],
                Some(&same.to_string()),
            )
            .map(drop)
    };
    leads_nowhere(scenario, unread, ("south", of_south)).await?;
    let of_nobody = async || {
        create(&maps, &config_map("loose", None, &json!({}))).await?;
        create(&maps, &config_map("lost", Some("nobody"), &json!({}))).await
    };
    let labelled = async || {
        let labels = json!({ "example.org/pond": "south" });
        patch(&maps, "loose", &json!({ "metadata": { "labels": labels } })).await
    };
    leads_nowhere(scenario, of_nobody, ("south", labelled)).await?;
    leads_to(scenario, "north", async || maps.delete("depth").await).await
}

/// Checks that the declared Secret causes a pass of the pond in its annotation, and only when it is deleted.
async fn a_template_leads_to_one_pond(scenario: &Scenario) -> Result<()> {
    // Only the deletion of the Secret `weir` counts, and only that Secret may be read.
    let secrets = scenario.objects("secrets");
    let written = async || {
        for name in ["weir", "dam"] {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": name, "annotations": { "pond": "south" } },
            });
            create(&secrets, &secret).await?;
        }
        patch(
            &secrets,
            "weir",
            &json!({ "stringData": { "open": "yes" } }),
        )
        .await?;
        secrets.delete("dam").await
    };
    let deleted = async || {
        let annotations = json!({ "pond": "north" });
        let moved = json!({ "metadata": { "annotations": annotations } });
        patch(&secrets, "weir", &moved).await?;
        secrets.delete("weir").await
    };
    leads_nowhere(scenario, written, ("north", deleted)).await
}

/// Checks that a service account causes a pass of the pond that controls it.
async fn an_owner_leads_to_one_pond(scenario: &Scenario) -> Result<()> {
    let accounts = scenario.objects("serviceaccounts");
    let owned = async |name: &str, pond: &str| -> Result<()> {
        let owner = scenario.objects("ponds").fetch(pond).await?;
        let controller = json!([{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": pond,
            "uid": owner["metadata"]["uid"], "controller": true,
        }]);
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": name, "ownerReferences": controller },
        });
        create(&accounts, &account).await
    };
    leads_to(scenario, "south", async || owned("owned", "south").await).await?;
    let free = async || {
        let account =
            json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "free" } });
        create(&accounts, &account).await
    };
    let later = async || owned("later", "north").await;
    leads_nowhere(scenario, free, ("north", later)).await?;
    // Any user who may create objects in a namespace can name any owner: only namespaces count in which it may have children.
    let far = testbed::namespace(&scenario.client, "far").await?;
    let strangers = scenario.objects_in(&far, "serviceaccounts");
    let south = scenario.objects("ponds").fetch("south").await?;
    let create_one = async || {
        let label = json!({ "orkestra.orkspace.io/owner-uid": south["metadata"]["uid"] });
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": "stranger", "labels": label },
        });
        create(&strangers, &account).await
    };
    let last = async || owned("last", "north").await;
    leads_nowhere(scenario, create_one, ("north", last)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_is_not_served_is_named_and_followed_once_it_is() -> Result<()> {
    let katalog = input("observe/katalog.yaml")?;
    let mut scenario = Scenario::new("observelate").await?;
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&input("observe/crd.yaml")?).await?;
    scenario.apply(&katalog)?;
    ponds(&scenario).await?;
    problem(&scenario, &["Storm", "observe"]).await?;
    // Other declared kinds are observed meanwhile.
    let maps = scenario.objects("configmaps");
    leads_to(&scenario, "north", async || {
        create(&maps, &config_map("depth", Some("north"), &json!({}))).await
    })
    .await?;
    scenario.install(&input("observe/storms.yaml")?).await?;
    let path = format!("/apis/{}/v1alpha1/storms", scenario.group);
    let storms = Objects::at(&scenario.client, &path);
    let storm = |name: &str, pond: &str| {
        json!({
            "apiVersion": format!("{}/v1alpha1", scenario.group), "kind": "Storm",
            "metadata": { "name": name }, "spec": { "pond": pond },
        })
    };
    // An object that is created before the watch starts is not lost: when the watch starts, all ponds are reconciled.
    let before = at(&scenario, "south").await?;
    create(&storms, &storm("first", "south")).await?;
    scenario
        .objects("ponds")
        .until("south", "was reconciled", LIMIT, |pond| {
            pond["status"]["at"] != before
        })
        .await?;
    scenario.katalog_is("observers", "True", "Running").await?;
    no_problem(&scenario).await?;
    rest(&scenario).await?;
    leads_to(&scenario, "south", async || {
        create(&storms, &storm("second", "south")).await
    })
    .await?;
    let late = async || {
        patch(&storms, "second", &json!({ "spec": { "pond": "north" } })).await?;
        storms.delete("second").await
    };
    let third = async || create(&storms, &storm("third", "south")).await;
    leads_nowhere(&scenario, late, ("south", third)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_permission_it_is_named_and_the_rest_continues_and_its_return_leads_to_a_pass()
-> Result<()> {
    let katalog = input("observe/katalog.yaml")?;
    let mut scenario = Scenario::new("observeright").await?;
    let roles = scenario.grant(&katalog).await?;
    for role in &roles {
        let mut less = role.clone();
        for rule in less.rules.iter_mut().flatten() {
            let resources = rule.resources.iter_mut().flatten();
            // The rule contains other kinds, too.
            for resource in resources.filter(|resource| *resource == "serviceaccounts") {
                "nothing".clone_into(resource);
            }
        }
        scenario.put_role(&less).await?;
    }
    scenario
        .wait_for_right("list", "", "serviceaccounts", false)
        .await?;
    scenario.start().await?;
    scenario.install(&input("observe/storms.yaml")?).await?;
    scenario.install(&input("observe/crd.yaml")?).await?;
    scenario.apply(&katalog)?;
    ponds(&scenario).await?;
    problem(&scenario, &["serviceaccounts", "list"]).await?;
    let maps = scenario.objects("configmaps");
    leads_to(&scenario, "north", async || {
        create(&maps, &config_map("depth", Some("north"), &json!({}))).await
    })
    .await?;
    let before = at(&scenario, "south").await?;
    until_next_second().await?;
    for role in &roles {
        scenario.put_role(role).await?;
    }
    scenario
        .objects("ponds")
        .until("south", "was reconciled", LIMIT, |pond| {
            pond["status"]["at"] != before
        })
        .await?;
    no_problem(&scenario).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_declaration_is_followed_without_another_watch_of_the_resources() -> Result<()> {
    let scenario = running("observechange").await?;
    let mark = Scenario::mark()?;
    let katalog = input("observe/katalog.yaml")?;
    scenario.apply(&katalog.replace("label: example.org/pond", "label: example.org/lake"))?;
    let maps = scenario.objects("configmaps");
    let labelled = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "lake", "labels": { "example.org/lake": "north" } },
    });
    scenario.katalog_is("observers", "True", "Running").await?;
    rest(&scenario).await?;
    leads_to(&scenario, "north", async || create(&maps, &labelled).await).await?;
    let unlabelled = async || create(&maps, &config_map("pond", Some("north"), &json!({}))).await;
    let mut of_south = labelled.clone();
    of_south["metadata"] = json!({ "name": "bed", "labels": { "example.org/lake": "south" } });
    let later = async || create(&maps, &of_south).await;
    leads_nowhere(&scenario, unlabelled, ("south", later)).await?;
    let asked = scenario.requests_since(mark)?;
    let again = asked.iter().filter(|one| one.resource == "ponds");
    let again = again.filter(|one| one.verb == "list" || one.verb == "watch");
    assert_eq!(again.count(), 0, "the ponds were listed or watched again");
    Ok(())
}

/// Waits until the operator's row in the Katalog's status contains all words.
async fn problem(scenario: &Scenario, words: &[&str]) -> Result<()> {
    eventually("the problem is reported", LIMIT, async || {
        let reported = row(scenario).await?.to_string();
        Ok(words
            .iter()
            .all(|word| reported.contains(word))
            .then_some(()))
    })
    .await
}

async fn no_problem(scenario: &Scenario) -> Result<()> {
    eventually("no problem is reported", LIMIT, async || {
        let row = row(scenario).await?;
        Ok((row["reason"] == "Running" || row.get("message").is_none()).then_some(()))
    })
    .await
}

/// Returns the operator's row in the Katalog's status.
async fn row(scenario: &Scenario) -> Result<Value> {
    let katalog = scenario.objects("katalogs").fetch("observers").await?;
    Ok(katalog["status"]["operators"][0].clone())
}
