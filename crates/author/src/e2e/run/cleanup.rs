//! Cleans up after a test, or lists the remaining objects.

use tokio::time::{Duration, Instant};

use super::{Run, with_causes};
use crate::e2e::{
    helm::{self, Release},
    objects::{self, Owner},
};
use orkestra_controller::AppliedObject;

/// The timeout for the deletion of custom resources, and then for that of the other objects.
const CLEANUP: Duration = Duration::from_mins(1);

/// The created objects, in the order of creation.
#[derive(Debug, Default)]
pub(crate) struct Created {
    pub(crate) objects: Vec<AppliedObject>,
    pub(crate) releases: Vec<Release>,
    /// The custom resources of `cr`.
    pub(crate) resources: Vec<AppliedObject>,
    /// Custom resources whose deletion was requested.
    pub(crate) owners: Vec<Owner>,
}

impl Run<'_> {
    /// Requests the deletion of custom resources and records them as owners.
    pub(crate) async fn delete_owners(
        &mut self,
        resources: &[AppliedObject],
    ) -> Result<(), String> {
        let cluster = self.cluster();
        for object in resources.iter().rev() {
            let owner = objects::owner(cluster, object).await;
            self.created
                .owners
                .extend(owner.map_err(|error| with_causes(&error))?);
            let deleted = objects::delete(cluster, object).await;
            deleted.map_err(|error| with_causes(&error))?;
        }
        Ok(())
    }

    /// Deletes the created objects, unless they are to be kept.
    pub(crate) async fn clean_up(&mut self) {
        let began = Instant::now();
        let result = if self.options.keep {
            let created = &self.created;
            let releases = created.releases.iter().map(ToString::to_string);
            let objects = created.resources.iter().chain(&created.objects);
            let objects = objects
                .filter(|object| object.is_new)
                .map(ToString::to_string);
            self.report.kept = objects.chain(releases).collect();
            Ok(())
        } else {
            self.remove().await
        };
        let mut problems = result.err().unwrap_or_default();
        if let Some(operator) = self.operator.take()
            && !operator.stop().await
        {
            problems.push_str("\nthe operator did not stop in time");
        }
        if !self.options.keep {
            let left = self.remove_others().await;
            problems.extend(left.err());
        }
        if !problems.is_empty() {
            let name = "the created objects are deleted";
            self.step("", name, began, Err(problems.trim().to_owned()));
        }
    }

    /// Deletes the custom resources while the operator runs, because it removes their finalizers.
    async fn remove(&mut self) -> Result<(), String> {
        let Created {
            objects, resources, ..
        } = &self.created;
        let custom = objects.iter().filter(|object| object.is_new);
        let custom = custom.filter(|object| is_custom(object, objects));
        let custom: Vec<AppliedObject> = custom.chain(resources).cloned().collect();
        self.delete_owners(&custom).await?;
        self.until_gone(&custom).await?;
        let deadline = Instant::now() + CLEANUP;
        let owners = &self.created.owners;
        let left = objects::delete_children(self.cluster(), owners, deadline).await;
        refuse_left(&left.map_err(|error| with_causes(&error))?)
    }

    /// Deletes everything else in reverse order of creation.
    async fn remove_others(&self) -> Result<(), String> {
        for release in self.created.releases.iter().rev() {
            let removed = helm::uninstall(&self.place, release).await;
            removed.map_err(|error| error.to_string())?;
        }
        let objects = self.created.objects.iter().rev();
        let objects: Vec<AppliedObject> = objects.filter(|object| object.is_new).cloned().collect();
        for object in &objects {
            let deleted = objects::delete(self.cluster(), object).await;
            deleted.map_err(|error| with_causes(&error))?;
        }
        self.until_gone(&objects).await
    }

    async fn until_gone(&self, objects: &[AppliedObject]) -> Result<(), String> {
        let deadline = Instant::now() + CLEANUP;
        let left = objects::until_gone(self.cluster(), objects, deadline).await;
        let left = left.map_err(|error| with_causes(&error))?;
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        refuse_left(&left)
    }
}

/// Returns an error if objects remain.
fn refuse_left(left: &[String]) -> Result<(), String> {
    if left.is_empty() {
        return Ok(());
    }
    let seconds = CLEANUP.as_secs();
    let left = left.join(", ");
    Err(format!(
        "these objects still exist {seconds} s after the deletion: {left}"
    ))
}

/// True if one of `objects` defines the kind of an object.
fn is_custom(object: &AppliedObject, objects: &[AppliedObject]) -> bool {
    let group = object.api_version.split_once('/').map(|(group, _)| group);
    let definitions = objects
        .iter()
        .filter(|one| one.kind == "CustomResourceDefinition");
    group.is_some_and(|group| {
        let mut names = definitions.filter_map(|one| one.name.split_once('.'));
        names.any(|(_, of)| of == group)
    })
}
