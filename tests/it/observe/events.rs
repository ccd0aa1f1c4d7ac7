//! `observe`: Events about a resource or its child, and Events that name a resource as related.

use anyhow::Result;
use serde_json::{Value, json};

use super::{create, leads_nowhere, leads_to, patch, rest, running};
use crate::scenario::{LIMIT, Objects, Scenario};

fn events(scenario: &Scenario) -> Objects {
    let namespace = &scenario.namespace;
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    Objects::at(&scenario.client, &path)
}

/// Returns an Event about an object.
fn event(
    scenario: &Scenario,
    name: &str,
    (reason, note): (&str, &str),
    regarding: &Value,
) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": { "name": name, "namespace": scenario.namespace },
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Warning", "action": "Raining",
        "reason": reason, "note": note, "regarding": regarding,
        "reportingController": "example.org/weather", "reportingInstance": "weather-1",
    })
}

/// Returns a reference to an object, as it is used in Events.
async fn reference(scenario: &Scenario, plural: &str, name: &str) -> Result<Value> {
    let object = scenario.objects(plural).fetch(name).await?;
    Ok(json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "name": name,
        "namespace": scenario.namespace, "uid": object["metadata"]["uid"],
    }))
}

/// Waits until the field `status.flood` of the northern pond is empty.
async fn until_dry(ponds: &Objects) -> Result<()> {
    ponds
        .until("north", "reports no flood", LIMIT, |pond| {
            pond["status"]["flood"]
                .as_str()
                .unwrap_or_default()
                .is_empty()
        })
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_latest_event_about_a_resource_or_its_child_is_in_its_status_until_it_is_gone()
-> Result<()> {
    let scenario = running("observeevents").await?;
    let (north, child) = (
        reference(&scenario, "ponds", "north").await?,
        reference(&scenario, "configmaps", "north").await?,
    );
    the_latest_flood_is_in_the_status(&scenario, &north, &child).await?;
    other_events_lead_nowhere(&scenario, &north).await?;
    the_first_event_leads_to_what_is_related(&scenario, &child).await
}

/// Checks that the status shows the latest Event about the pond or its child, and none after both Events are deleted.
async fn the_latest_flood_is_in_the_status(
    scenario: &Scenario,
    north: &Value,
    child: &Value,
) -> Result<()> {
    let (ponds, all) = (scenario.objects("ponds"), events(scenario));
    until_dry(&ponds).await?;
    leads_to(scenario, "north", async || {
        create(
            &all,
            &event(scenario, "one", ("Flood", "at the pond"), north),
        )
        .await
    })
    .await?;
    ponds
        .until_equal("north", "/status/flood", json!("at the pond"), LIMIT)
        .await?;
    create(
        &all,
        &event(scenario, "two", ("Flood", "at its child"), child),
    )
    .await?;
    let reported = ponds
        .until_equal("north", "/status/flood", json!("at its child"), LIMIT)
        .await?;
    assert_eq!(reported["status"]["wet"], "yes");
    // The first Event is repeated, so it is the latest one.
    patch(
        &all,
        "one",
        &json!({ "series": { "count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z" } }),
    )
    .await?;
    ponds
        .until_equal("north", "/status/flood", json!("at the pond"), LIMIT)
        .await?;
    all.delete("one").await?;
    ponds
        .until_equal("north", "/status/flood", json!("at its child"), LIMIT)
        .await?;
    all.delete("two").await?;
    until_dry(&ponds).await?;
    rest(scenario).await
}

/// Checks that an Event with another reason causes no reconcile pass, and that one about an object with another UID is not shown.
async fn other_events_lead_nowhere(scenario: &Scenario, north: &Value) -> Result<()> {
    let (ponds, all) = (scenario.objects("ponds"), events(scenario));
    // An Event with another reason.
    let sunny = async || create(&all, &event(scenario, "dry", ("Sun", "-"), north)).await;
    let south = reference(scenario, "ponds", "south").await?;
    let flooded = async || {
        let flood = event(scenario, "south", ("Flood", "in the south"), &south);
        create(&all, &flood).await
    };
    leads_nowhere(scenario, sunny, ("south", flooded)).await?;
    let mut former = north.clone();
    former["uid"] = json!("a-former-one");
    create(
        &all,
        &event(scenario, "former", ("Flood", "long ago"), &former),
    )
    .await?;
    rest(scenario).await?;
    until_dry(&ponds).await
}

/// Checks that an Event causes a reconcile pass of the pond in its field `related` when it is created, not when it is deleted.
async fn the_first_event_leads_to_what_is_related(
    scenario: &Scenario,
    child: &Value,
) -> Result<()> {
    let (ponds, all) = (scenario.objects("ponds"), events(scenario));
    // The pond is found through the field `related`; only the creation of an Event counts.
    let mut drought = event(scenario, "drought", ("Drought", "-"), child);
    drought["related"] = reference(scenario, "ponds", "south").await?;
    leads_to(scenario, "south", async || create(&all, &drought).await).await?;
    ponds
        .until_equal("south", "/status/drought", json!("Drought south"), LIMIT)
        .await?;
    let mut another = event(scenario, "another", ("Drought", "-"), child);
    another["related"] = reference(scenario, "ponds", "north").await?;
    let deleted = async || all.delete("drought").await;
    let created = async || create(&all, &another).await;
    leads_nowhere(scenario, deleted, ("north", created)).await
}
