//! Backups: custom resources and children that a backup tool creates again, with new uids, in any order, with and without a running
//! controller. Values that were generated once are kept; Kubernetes' garbage collector is active.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::orphans::uid;
use crate::scenario::{LIMIT, Objects, Scenario, condition, owner_uid};
use crate::waters;

const OWNER: &str = "/metadata/annotations/orkestra.orkspace.io~1owner";

/// How a backup tool restores.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each doubles the cases")]
struct Restore {
    /// Whether a controller runs meanwhile.
    running: bool,
    /// Whether the custom resource is created before its children.
    owner_first: bool,
    /// Whether owner references are kept, as by `kubectl create`; Velero removes them.
    references: bool,
    /// Whether managed fields are written back, as by Velero.
    managed_fields: bool,
    /// Whether the backup is of a release that gave Secrets an owner reference.
    earlier: bool,
}

/// A pond with a password, a token and a note.
struct Family {
    scenario: Scenario,
    secrets: Objects,
    maps: Objects,
    ponds: Objects,
}

impl Family {
    async fn new(prefix: &str) -> Result<Self> {
        let scenario =
            Scenario::running(prefix, &["kinds/crds.yaml"], "secrets/restored.yaml").await?;
        scenario.cluster.relearn_kinds()?;
        waters::pond(&scenario, "north", &json!({ "note": "one" })).await?;
        let family = Self {
            secrets: scenario.objects("secrets"),
            maps: scenario.objects("configmaps"),
            ponds: scenario.objects("ponds"),
            scenario,
        };
        family.ponds.until_ready("north").await?;
        Ok(family)
    }

    /// Returns the backup: the custom resource, and its children.
    async fn back_up(&self) -> Result<(Value, [Value; 3])> {
        let children = [
            self.secrets.fetch("north-login").await?,
            self.maps.fetch("north-token").await?,
            self.maps.fetch("north").await?,
        ];
        Ok((self.ponds.fetch("north").await?, children))
    }

    /// Deletes the pond with all children.
    async fn delete(&self) -> Result<()> {
        self.ponds.delete("north").await?;
        self.ponds.until_gone("north", LIMIT).await?;
        self.secrets.until_gone("north-login", LIMIT).await?;
        for map in ["north-token", "north"] {
            self.maps.until_gone(map, LIMIT).await?;
        }
        Ok(())
    }

    /// Waits for a later second than those of the writes of those objects: a restored object is recognised by managed fields that are
    /// older than itself.
    async fn until_a_second_later(&self, written: &[Value]) -> Result<()> {
        let times = written.iter().flat_map(|object| {
            let entries = object["metadata"]["managedFields"].as_array();
            entries.into_iter().flatten()
        });
        let last = times.filter_map(|entry| entry["time"].as_str()).max();
        self.scenario
            .until_later_than(last.unwrap_or_default())
            .await
    }

    /// Waits until the garbage collector has collected an object without an owner that was created now.
    async fn until_collected(&self, name: &str, references: &Value) -> Result<()> {
        let dead = json!({ "metadata": { "name": name, "ownerReferences": references } });
        self.maps.create(&dead).await?;
        self.maps.until_gone(name, LIMIT).await
    }
}

/// Returns an object of a backup as a tool creates it.
fn restored(object: &Value, how: Restore) -> Value {
    let mut object = object.clone();
    let metadata = &object["metadata"];
    let mut kept = json!({
        "name": metadata["name"], "labels": metadata["labels"], "annotations": metadata["annotations"],
    });
    if let Some(finalizers) = metadata.get("finalizers") {
        kept["finalizers"] = finalizers.clone();
    }
    if let Some(references) = metadata.get("ownerReferences").filter(|_| how.references) {
        kept["ownerReferences"] = references.clone();
    }
    if how.earlier
        && let Some(annotations) = kept["annotations"].as_object_mut()
    {
        annotations.remove("orkestra.orkspace.io/owner");
        annotations.remove("orkestra.orkspace.io/inventory");
    }
    object["metadata"] = kept;
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}

async fn restore(objects: &Objects, object: &Value, how: Restore) -> Result<Value> {
    let created = objects.create(&restored(object, how)).await?;
    let fields = &object["metadata"]["managedFields"];
    if how.managed_fields {
        let name = waters::text(object, "/metadata/name");
        let back = json!({ "metadata": { "managedFields": fields } });
        // The garbage collector may have been faster.
        if let Err(error) = objects.patch(name, &back).await {
            ensure!(objects.get(name).await?.is_none(), "{error}");
        }
    }
    Ok(created)
}

/// Restores a family, and checks that it has its values and is owned by the new custom resource.
// Over 60 lines: the steps from the backup of a family to its deletion, in order.
async fn keeps_its_values(prefix: &str, how: Restore) -> Result<()> {
    let mut family = Family::new(prefix).await?;
    let (cr, backup) = family.back_up().await?;
    let references = backup[2]["metadata"]["ownerReferences"].clone();
    for child in &backup[..2] {
        ensure!(owner_uid(child).is_none(), "{child}");
        ensure!(waters::text(child, OWNER).ends_with(uid(&cr)), "{child}");
    }
    family.delete().await?;
    if !how.running {
        family.scenario.kill9()?;
    }
    family.until_a_second_later(&backup).await?;
    let mut secret = Value::Null;
    if how.owner_first {
        restore(&family.ponds, &cr, how).await?;
        if how.running {
            family
                .ponds
                .until("north", "waits for its values", LIMIT, |pond| {
                    condition(pond, "Ready").is_some_and(|ready| {
                        ready["message"]
                            .to_string()
                            .contains("restored from a backup")
                    })
                })
                .await?;
        }
    }
    for (number, child) in backup.iter().enumerate() {
        let objects = if number == 0 {
            &family.secrets
        } else {
            &family.maps
        };
        // A running controller has created the child that it reconciles.
        if number == 2 && how.owner_first && how.running {
            continue;
        }
        let created = restore(objects, child, how).await?;
        if number == 0 {
            secret = created;
        }
    }
    family.until_collected("barrier", &references).await?;
    if !how.owner_first {
        restore(&family.ponds, &cr, how).await?;
    }
    if !how.running {
        family.scenario.start().await?;
    }
    let north = family.ponds.until_ready("north").await?;
    ensure!(uid(&north) != uid(&cr));
    let is_adopted = |child: &Value| waters::text(child, OWNER).ends_with(uid(&north));
    let login = family
        .secrets
        .until("north-login", "is adopted", LIMIT, is_adopted)
        .await?;
    ensure!(login["data"] == backup[0]["data"], "another password");
    ensure!(uid(&login) == uid(&secret), "it was created again");
    let token = family
        .maps
        .until("north-token", "is adopted", LIMIT, is_adopted)
        .await?;
    ensure!(token["data"] == backup[1]["data"], "another token");
    let note = family
        .maps
        .until("north", "is owned", LIMIT, |map| {
            owner_uid(map) == Some(uid(&north))
        })
        .await?;
    ensure!(note["data"]["note"] == "one");
    family.delete().await
}

const VELERO: Restore = Restore {
    running: true,
    owner_first: false,
    references: false,
    managed_fields: true,
    earlier: false,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn velero_restores_secrets_before_their_custom_resource() -> Result<()> {
    keeps_its_values("velero", VELERO).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_family_is_restored_while_no_controller_runs() -> Result<()> {
    let how = Restore {
        running: false,
        references: true,
        managed_fields: false,
        ..VELERO
    };
    keeps_its_values("restorelate", how).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_custom_resource_is_restored_before_its_secrets() -> Result<()> {
    let how = Restore {
        owner_first: true,
        managed_fields: false,
        ..VELERO
    };
    keeps_its_values("restorefirst", how).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_custom_resource_is_restored_first_with_owner_references() -> Result<()> {
    let how = Restore {
        owner_first: true,
        running: false,
        references: true,
        ..VELERO
    };
    keeps_its_values("restoreowned", how).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_an_earlier_release_is_restored() -> Result<()> {
    let how = Restore {
        running: false,
        earlier: true,
        ..VELERO
    };
    keeps_its_values("restoreearlier", how).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_of_an_earlier_release_lose_their_owner_reference_and_a_release_gives_it_back()
-> Result<()> {
    let mut family = Family::new("unlinked").await?;
    let (north, children) = family.back_up().await?;
    let references = children[2]["metadata"]["ownerReferences"].clone();
    let data = children[0]["data"].clone();
    family.scenario.kill9()?;
    let earlier = json!({ "metadata": {
        "ownerReferences": references, "annotations": { "orkestra.orkspace.io/owner": null },
    } });
    family.secrets.patch("north-login", &earlier).await?;
    family.maps.patch("north-token", &earlier).await?;
    family.scenario.start().await?;
    let is_unlinked = |child: &Value| {
        owner_uid(child).is_none() && waters::text(child, OWNER).ends_with(uid(&north))
    };
    let login = family
        .secrets
        .until("north-login", "has no owner reference", LIMIT, is_unlinked)
        .await?;
    ensure!(login["data"] == data, "another password");
    family
        .maps
        .until("north-token", "has no owner reference", LIMIT, is_unlinked)
        .await?;
    family.ponds.until_ready("north").await?;

    // Without an operator, Kubernetes collects them with their owner again.
    family.scenario.objects("katalogs").delete("waters").await?;
    let katalogs = family.scenario.objects("katalogs");
    katalogs.until_gone("waters", LIMIT).await?;
    let is_owned = |child: &Value| owner_uid(child) == Some(uid(&north));
    family
        .secrets
        .until("north-login", "has its owner again", LIMIT, is_owned)
        .await?;
    family.delete().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_custom_resource_gets_values_of_its_own_and_takes_none_of_a_living_one()
-> Result<()> {
    let family = Family::new("copied").await?;
    let (north, children) = family.back_up().await?;
    // The copy declares the names of its own family; the inventory of the original is copied along.
    let mut south = restored(&north, VELERO);
    south["metadata"]["name"] = json!("south");
    family.ponds.create(&south).await?;
    family.ponds.until_ready("south").await?;
    let login = family.secrets.fetch("south-login").await?;
    ensure!(login["data"] != children[0]["data"], "the same password");

    // An object with the marks of a child of a living custom resource is not taken by another one.
    let mut stolen = restored(&children[0], VELERO);
    stolen["metadata"]["name"] = json!("west-login");
    stolen["metadata"]["annotations"]["orkestra.orkspace.io/child"] = json!("Secret/west-login");
    let annotations = &mut stolen["metadata"]["annotations"];
    annotations["orkestra.orkspace.io/owner"] = Value::Null;
    family.secrets.create(&stolen).await?;
    waters::pond(&family.scenario, "west", &json!({ "note": "one" })).await?;
    family
        .ponds
        .until("west", "does not take it", LIMIT, |pond| {
            condition(pond, "Ready").is_some_and(|ready| ready["reason"] == "NameTaken")
        })
        .await?;
    let login = family.secrets.fetch("west-login").await?;
    ensure!(login["metadata"]["labels"] == stolen["metadata"]["labels"]);
    Ok(())
}
