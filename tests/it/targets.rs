//! Target namespaces: the author of a custom resource cannot choose another namespace, unless the Katalog permits it.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario, condition};
use crate::waters;

struct Waters {
    scenario: Scenario,
    /// A namespace that is permitted by name.
    named: String,
    /// A namespace that is permitted by label, once it has the label.
    labelled: String,
    /// A namespace that is not permitted.
    foreign: String,
}

impl Waters {
    async fn running(prefix: &str) -> Result<Self> {
        let mut scenario = Scenario::new(prefix).await?;
        let named = waters::second_namespace(&scenario.client).await?;
        let labelled = waters::second_namespace(&scenario.client).await?;
        let foreign = waters::second_namespace(&scenario.client).await?;
        let katalog = waters::filled("targets/katalog.yaml", "NAMED", &named)?;
        scenario.grant(&katalog).await?;
        scenario.install(&waters::crds()?).await?;
        scenario.start().await?;
        scenario.apply(&katalog)?;
        scenario.katalog_is("waters", "True", "Running").await?;
        Ok(Self {
            scenario,
            named,
            labelled,
            foreign,
        })
    }

    fn maps(&self, namespace: &str) -> Objects {
        self.scenario.objects_in(namespace, "configmaps")
    }

    async fn choose(&self, namespace: &str) -> Result<()> {
        let change = json!({ "spec": { "into": namespace } });
        let ponds = self.scenario.objects("ponds");
        ponds.patch("north", &change).await.map(drop)
    }

    async fn ensure_nothing_in(&self, namespace: &str) -> Result<()> {
        for plural in ["configmaps", "jobs"] {
            let found = self.scenario.objects_in(namespace, plural).list().await?;
            let found = waters::names(&waters::managed(found));
            ensure!(found.is_empty(), "{plural} in {namespace}: {found:?}");
        }
        Ok(())
    }
}

fn is_refused(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| ready["reason"] == "TargetRefused")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_custom_resource_reaches_no_namespace_that_the_katalog_does_not_permit()
-> Result<()> {
    let waters = Waters::running("targets").await?;
    let ponds = waters.scenario.objects("ponds");
    let into = json!({ "into": waters.foreign });
    waters::pond(&waters.scenario, "north", &into).await?;
    let pond = ponds
        .until("north", "has a refused target", LIMIT, is_refused)
        .await?;
    let message = condition(&pond, "Ready").map_or("", |ready| waters::text(ready, "/message"));
    ensure!(message.contains("allowedTargets"), "{message}");
    ensure!(message.contains(&waters.foreign), "{message}");
    // The other child of the pond is created.
    let own = waters.maps(&waters.scenario.namespace);
    own.fetch("north-here").await?;

    a_label_is_followed_when_it_comes_and_when_it_goes(&waters).await?;

    waters.choose(&waters.named).await?;
    let there = waters.maps(&waters.named);
    there
        .until("north-there", "is created", LIMIT, |_| true)
        .await?;
    ponds.until_ready("north").await?;

    // Children of `onDelete` are subject to the same check.
    waters.choose(&waters.foreign).await?;
    ponds
        .until("north", "has a refused target again", LIMIT, is_refused)
        .await?;
    ponds.delete("north").await?;
    ponds
        .until("north", "has a refused target at deletion", LIMIT, |pond| {
            pond["metadata"]["deletionTimestamp"].is_string() && is_refused(pond)
        })
        .await?;
    let skip =
        json!({ "metadata": { "annotations": { "orkestra.orkspace.io/skip-on-delete": "true" } } });
    ponds.patch("north", &skip).await?;
    ponds.until_gone("north", LIMIT).await?;
    there.until_gone("north-there", LIMIT).await?;
    waters.ensure_nothing_in(&waters.foreign).await
}

/// Checks that the operator notices when a namespace gets the label, and when it loses it.
async fn a_label_is_followed_when_it_comes_and_when_it_goes(waters: &Waters) -> Result<()> {
    let ponds = waters.scenario.objects("ponds");
    waters.choose(&waters.labelled).await?;
    ponds
        .until("north", "has another refused target", LIMIT, |pond| {
            let text = condition(pond, "Ready").map_or("", |it| waters::text(it, "/message"));
            is_refused(pond) && text.contains(&waters.labelled)
        })
        .await?;
    let namespaces = Objects::of_cluster(&waters.scenario.client, "namespaces");
    let label = format!("{}/ponds", waters.scenario.group);
    let labelled = |value: Value| json!({ "metadata": { "labels": { &label: value } } });
    namespaces
        .patch(&waters.labelled, &labelled(json!("yes")))
        .await?;
    let there = waters.maps(&waters.labelled);
    there
        .until("north-there", "is created", LIMIT, |_| true)
        .await?;
    ponds.until_ready("north").await?;
    namespaces
        .patch(&waters.labelled, &labelled(json!(null)))
        .await?;
    ponds
        .until("north", "has a refused target again", LIMIT, is_refused)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_namespace_of_somebody_else_is_not_taken_for_one_that_the_operator_creates()
-> Result<()> {
    let waters = Waters::running("targets-own").await?;
    let lakes = waters.scenario.objects("lakes");
    let created = format!("{}-made", waters.foreign);
    waters::lake(&waters.scenario, "south", &json!({ "into": created })).await?;
    waters
        .maps(&created)
        .until("south-shore", "is created", LIMIT, |_| true)
        .await?;
    let taken = json!({ "into": waters.foreign });
    waters::lake(&waters.scenario, "north", &taken).await?;
    let lake = lakes
        .until("north", "has a refused target", LIMIT, |lake| {
            let text = condition(lake, "Stalled").map_or("", |it| waters::text(it, "/message"));
            text.contains("was not created for this resource")
        })
        .await?;
    ensure!(!crate::scenario::is_ready(&lake), "{lake}");
    // The namespace of another lake is refused as well.
    waters::lake(&waters.scenario, "west", &json!({ "into": created })).await?;
    lakes
        .until("west", "has a refused target", LIMIT, |lake| {
            let text = condition(lake, "Stalled").map_or("", |it| waters::text(it, "/message"));
            text.contains("was not created for this resource")
        })
        .await?;
    let shore = waters.maps(&created).get("west-shore").await?;
    ensure!(shore.is_none(), "{shore:?}");
    waters.ensure_nothing_in(&waters.foreign).await
}
