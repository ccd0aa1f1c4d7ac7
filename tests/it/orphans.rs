//! Children that the garbage collector does not delete, in other namespaces or cluster-scoped: they are deleted or taken over when
//! their custom resource is deleted, also without its finalizer, or created again.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::namespace;

use crate::deletion::{Far, finalizers};
use crate::scenario::{LIMIT, condition, input};

const OWNER: &str = "orkestra.orkspace.io/owner-uid";

/// Returns the UID of an object.
pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn owned_by(object: &Value, owner: &Value) -> bool {
    let metadata = &object["metadata"];
    let annotation = metadata["annotations"]["orkestra.orkspace.io/owner"].as_str();
    metadata["labels"][OWNER] == owner["metadata"]["uid"]
        && annotation.is_some_and(|text| text.ends_with(uid(owner)))
}

impl Far {
    /// Deletes the orchard without its finalizer, as if the finalizer had been set too late.
    async fn vanish(&self) -> Result<()> {
        let orchards = self.scenario.objects("orchards");
        let none = json!({ "metadata": { "finalizers": null } });
        orchards.patch("north", &none).await?;
        orchards.delete("north").await?;
        orchards.until_gone("north", LIMIT).await
    }

    fn orchard(&self, elsewhere: &str) -> Result<Value> {
        let text = self.scenario.text(&input("garden/orchard.yaml")?);
        let mut orchard: Value = serde_saphyr::from_str(&text)?;
        orchard["spec"]["elsewhere"] = json!(elsewhere);
        Ok(orchard)
    }

    /// Waits until the owner label and annotation of the sign name an orchard.
    pub(crate) async fn sign_is_of(&self, orchard: &Value) -> Result<Value> {
        self.signs
            .until("north-sign", "has its new owner", LIMIT, |sign| {
                owned_by(sign, orchard)
            })
            .await
    }

    /// Waits until the owner label and annotation of the cluster-scoped child name an orchard.
    pub(crate) async fn class_is_of(&self, orchard: &Value) -> Result<Value> {
        self.classes
            .until(&self.class, "has its owner", LIMIT, |class| {
                owned_by(class, orchard)
            })
            .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_made_again_takes_over_what_its_predecessor_left() -> Result<()> {
    let mut far = Far::new("again").await?;
    let sign = far.signs.fetch("north-sign").await?;
    far.scenario.kill9()?;
    far.vanish().await?;
    let orchards = far.scenario.objects("orchards");
    let north = orchards.create(&far.orchard(&far.elsewhere)?).await?;
    far.scenario.start().await?;
    orchards.until_ready("north").await?;
    let taken = far.sign_is_of(&north).await?;
    assert_eq!(uid(&taken), uid(&sign), "the child was created again");
    orchards.delete("north").await?;
    far.is_gone_but_for_the_bystander().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_made_again_deletes_what_it_does_not_declare_of_its_predecessor() -> Result<()> {
    let mut far = Far::new("another").await?;
    far.scenario.kill9()?;
    far.vanish().await?;
    let other = namespace(&far.scenario.client, "other").await?;
    let orchards = far.scenario.objects("orchards");
    let north = orchards.create(&far.orchard(&other)?).await?;
    far.scenario.start().await?;
    orchards.until_ready("north").await?;
    far.signs.until_gone("north-sign", LIMIT).await?;
    let signs = far.scenario.objects_in(&other, "configmaps");
    ensure!(owned_by(&signs.fetch("north-sign").await?, &north));
    far.signs.fetch("copy").await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_vanished_resource_left_is_deleted() -> Result<()> {
    let mut far = Far::new("vanished").await?;
    far.scenario.kill9()?;
    far.vanish().await?;
    far.scenario.start().await?;
    far.signs.until_gone("north-sign", LIMIT).await?;
    far.classes.until_gone(&far.class, LIMIT).await?;
    far.signs.fetch("copy").await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_deleted_and_made_again_at_once_keeps_its_far_child_and_leaves_none()
-> Result<()> {
    let far = Far::new("atonce").await?;
    let orchards = far.scenario.objects("orchards");
    orchards.delete("north").await?;
    orchards.until_gone("north", LIMIT).await?;
    let orchard = far.orchard(&far.elsewhere)?;
    for _ in 0..8 {
        orchards.create(&orchard).await?;
        orchards.delete("north").await?;
        orchards.until_gone("north", LIMIT).await?;
    }
    let north = orchards.create(&orchard).await?;
    let ready = orchards.until_ready("north").await?;
    assert_eq!(uid(&ready), uid(&north));
    far.sign_is_of(&north).await?;
    orchards.delete("north").await?;
    far.is_gone_but_for_the_bystander().await?;
    let log = far.scenario.log();
    ensure!(
        !log.contains("immutable"),
        "an old UID is logged as an invalid change"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_far_child_without_one_of_its_marks_is_still_its_owners() -> Result<()> {
    let mut far = Far::new("marks").await?;
    let orchards = far.scenario.objects("orchards");
    let north = orchards.fetch("north").await?;
    let sign = far.signs.fetch("north-sign").await?;
    let annotations = ["orkestra.orkspace.io/owner", "orkestra.orkspace.io/child"];
    for (map, mark) in [
        ("labels", OWNER),
        ("labels", "orkestra.orkspace.io/managed"),
        ("annotations", annotations[0]),
        ("annotations", annotations[1]),
    ] {
        let off = json!({ "metadata": { map: { mark: null } } });
        far.signs.patch("north-sign", &off).await?;
        far.signs
            .until("north-sign", "has its metadata again", LIMIT, |sign| {
                sign["metadata"][map][mark].is_string()
            })
            .await?;
    }
    // Remove all labels, as a release does: an operator that starts later still finds its children.
    far.scenario.kill9()?;
    let labels = json!({ "metadata": { "labels": null } });
    far.signs.patch("north-sign", &labels).await?;
    far.scenario.start().await?;
    let now = far.sign_is_of(&north).await?;
    assert_eq!(uid(&now), uid(&sign));
    orchards.until_ready("north").await?;

    // A child whose label is removed while its resource is being deleted is still deleted.
    far.scenario.kill9()?;
    let unseen = json!({ "metadata": { "labels": { "orkestra.orkspace.io/managed": null } } });
    far.signs.patch("north-sign", &unseen).await?;
    orchards.delete("north").await?;
    far.scenario.start().await?;
    far.is_gone_but_for_the_bystander().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_names_the_far_child_and_the_finalizer_that_it_waits_for() -> Result<()> {
    let far = Far::new("waits").await?;
    let orchards = far.scenario.objects("orchards");
    let with = |names: Value| json!({ "metadata": { "finalizers": names } });
    let held = with(json!(["example.org/hold"]));
    far.signs.patch("north-sign", &held).await?;
    orchards.delete("north").await?;
    let wanted = format!(
        "ConfigMap {}/north-sign, which has the finalizer example.org/hold, to be deleted",
        far.elsewhere
    );
    let waits = orchards
        .until("north", "reports the child", LIMIT, |orchard| {
            condition(orchard, "Ready").is_some_and(|ready| {
                let message = ready["message"].as_str().unwrap_or_default();
                ready["reason"] == "Terminating" && message.contains(&wanted)
            })
        })
        .await?;
    ensure!(condition(&waits, "Stalled").is_none(), "it is stalled");
    // The orchard waits until the child's finalizer is removed, or until the annotation skips the wait.
    let skip =
        json!({ "metadata": { "annotations": { "orkestra.orkspace.io/skip-on-delete": "true" } } });
    orchards.patch("north", &skip).await?;
    orchards.until_gone("north", LIMIT).await?;
    let sign = far.signs.fetch("north-sign").await?;
    assert_eq!(finalizers(&sign), ["example.org/hold"]);
    far.signs.patch("north-sign", &with(Value::Null)).await?;
    far.signs.until_gone("north-sign", LIMIT).await
}

impl Far {
    /// Removes all permissions of the controller on `ConfigMap` objects.
    async fn forbid(&self) -> Result<()> {
        let mut roles = self.roles.clone();
        for role in &mut roles {
            for rule in role.rules.iter_mut().flatten() {
                let resources = rule.resources.iter_mut().flatten();
                for resource in resources.filter(|resource| *resource == "configmaps") {
                    "none".clone_into(resource);
                }
            }
            self.scenario.put_role(role).await?;
        }
        for verb in ["delete", "list"] {
            let refused = self.scenario.wait_for_right(verb, "", "configmaps", false);
            refused.await?;
        }
        Ok(())
    }

    /// Checks that the deleted orchard reports the missing permission, that the annotation completes its deletion, and that its
    /// child is deleted once the permission is granted again.
    async fn lacks_and_is_let_go(&self) -> Result<()> {
        let orchards = self.scenario.objects("orchards");
        orchards
            .until("north", "names the permission", LIMIT, |orchard| {
                condition(orchard, "Ready").is_some_and(|ready| {
                    let message = ready["message"].as_str().unwrap_or_default();
                    ready["reason"] == "Forbidden" && message.contains("configmaps")
                })
            })
            .await?;
        let skip = json!({ "metadata": { "annotations": { "orkestra.orkspace.io/skip-on-delete": "true" } } });
        orchards.patch("north", &skip).await?;
        orchards.until_gone("north", LIMIT).await?;
        for role in &self.roles {
            self.scenario.put_role(role).await?;
        }
        self.signs.until_gone("north-sign", LIMIT).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_names_the_missing_permission_and_can_be_skipped() -> Result<()> {
    let far = Far::new("lacks").await?;
    far.forbid().await?;
    far.scenario.objects("orchards").delete("north").await?;
    far.lacks_and_is_let_go().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_names_the_permission_that_is_missing_since_a_restart() -> Result<()> {
    let mut far = Far::new("lackslate").await?;
    far.scenario.kill9()?;
    far.forbid().await?;
    far.scenario.objects("orchards").delete("north").await?;
    far.scenario.start().await?;
    far.lacks_and_is_let_go().await?;
    // Other custom resources are reconciled.
    let orchard = far.orchard(&far.elsewhere)?;
    let orchards = far.scenario.objects("orchards");
    orchards.create(&orchard).await?;
    orchards.until_ready("north").await.map(drop)
}
