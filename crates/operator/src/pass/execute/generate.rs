//! Children that keep values: generated if missing, never overwritten, and without an owner reference.

use orkestra_cluster::requests::ClusterError;
use orkestra_engine::reconcile::{
    child_metadata::adopted,
    differ::without,
    reason::Reason,
    record::ChildRecord,
    step::{Failure, Rendered},
    verdict::Action,
};
use orkestra_language::api::names;
use orkestra_object::value::{Node, Path};
use orkestra_plan::ChildKey;

use super::{Writer, decide::at_version};
use crate::pass::failure::failure;
use crate::shared::bound_plan::Kind;

/// The generated fields of a Secret: an adopted Secret keeps its own.
const VALUES: [&str; 2] = ["data", "type"];

impl Writer<'_> {
    /// True if the child's values are generated once and kept.
    pub(crate) fn lasts(&self, rendered: &Rendered) -> bool {
        let declared = &self.pass.bound.plan.children[rendered.declared];
        declared.generated.is_some()
    }

    /// Creates the Secret by apply, so that a later apply in its place meets no field of another manager.
    pub(crate) async fn generate(&mut self, rendered: &Rendered) -> Result<Action, Failure> {
        let kind = self.pass.bound.kind_of(&rendered.key)?;
        let (pass, manager) = (self.pass, &self.pass.bound.manager);
        let (key, body) = (
            &rendered.key.object,
            at_version(&rendered.object, &"1".into()),
        );
        match pass.apply(kind.served(), key, &body, manager, true).await {
            Ok(object) => Ok(self.applied(&kind, rendered, None, &object, &[], true)),
            // It exists, and is not among this custom resource's children.
            Err(ClusterError::Conflict { .. }) => match self.read(&kind, &rendered.key).await? {
                Some(record) => self.take(&kind, rendered, &record).await,
                None => Err(Failure {
                    reason: Reason::WriteConflict,
                    at: rendered.key.to_string(),
                    message: "it was deleted while it was being created".to_owned(),
                }),
            },
            Err(error) => Err(failure(&rendered.key, &error)),
        }
    }

    /// Takes over a Secret with its values: its labels were removed, it was restored from a backup, or it was not ours and the
    /// Katalog adopts it.
    async fn take(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
        record: &ChildRecord,
    ) -> Result<Action, Failure> {
        let unowned = self.claim(rendered, record).await?;
        let (pass, manager) = (self.pass, &self.pass.bound.manager);
        let key = &rendered.key;
        if record.ownership.applied_by(manager).is_some() {
            // An apply without the values would remove them.
            return self.mark(kind, rendered).await;
        }
        let values = VALUES.map(|field| Path::parse(field).unwrap_or_default());
        let taken = unowned.then(|| adopted(rendered, self.owner));
        let body = at_version(
            &without(&taken.as_ref().unwrap_or(rendered).object, &values),
            &record.id.resource_version,
        );
        match pass
            .apply(kind.served(), &key.object, &body, manager, true)
            .await
        {
            Ok(object) => {
                kind.store().answer(&object);
                Ok(Action::Repaired)
            }
            Err(error) => Err(failure(key, &error)),
        }
    }
}

impl Writer<'_> {
    /// Sets our labels and annotations on a child, and leaves everything else as it is.
    pub(crate) async fn mark(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
    ) -> Result<Action, Failure> {
        let (key, body) = (&rendered.key, child_patch(&rendered.object));
        let answer = self
            .pass
            .patch_metadata(kind.served(), &key.object, &body, &self.pass.bound.manager)
            .await;
        let object = answer.map_err(|error| failure(key, &error))?;
        kind.store().answer(&object);
        Ok(Action::Repaired)
    }
}

impl Writer<'_> {
    /// Removes the owner reference to the custom resource from a child that keeps values, and sets the annotation that replaces
    /// it: Kubernetes collects an object whose owner does not exist yet, as while a backup is being restored.
    pub(crate) async fn unlink(&mut self, key: &ChildKey) -> Result<Action, Failure> {
        let kind = self.pass.bound.kind_of(key)?;
        let failed = |error| failure(key, &error);
        let (pass, uid) = (self.pass, self.uid.to_string());
        let requests = &pass.shared.requests;
        let live = requests.get(kind.served(), &key.object).await;
        let live = live.map_err(failed)?;
        let references = live.meta("ownerReferences").and_then(Node::as_list);
        let names_us = |one: &&Node| one.get("uid").and_then(Node::as_str) == Some(&*uid);
        let (ours, others): (Vec<&Node>, Vec<&Node>) =
            references.unwrap_or_default().iter().partition(names_us);
        let Some(version) = live
            .meta_text("resourceVersion")
            .filter(|_| !ours.is_empty())
        else {
            return Ok(Action::Unchanged);
        };
        let others = Node::from(others.into_iter().cloned().collect::<Vec<_>>());
        let mark = Node::from(self.owner.text());
        let annotations = Node::object([(names::ANNOTATION_OWNER, mark)]);
        let metadata = Node::object([
            ("resourceVersion", Node::from(version)),
            ("ownerReferences", others),
            ("annotations", annotations),
        ]);
        let body = Node::object([("metadata", metadata)]);
        let manager = &pass.bound.manager;
        let answer = pass
            .patch_metadata(kind.served(), &key.object, &body, manager)
            .await;
        match answer {
            Ok(object) => {
                kind.store().answer(&object);
                Ok(Action::Repaired)
            }
            // The role of an earlier release: the child stays as that release left it.
            Err(ClusterError::Forbidden { .. }) => Ok(Action::Unchanged),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Returns our labels, and the annotations that name the object itself and its owner, as a patch.
fn child_patch(object: &Node) -> Node {
    let text = |map: &str, name: &str| object.meta(map)?.get(name).cloned();
    let labels = names::CHILD_LABELS.map(|name| (name, text("labels", name).unwrap_or_default()));
    let annotations = [names::ANNOTATION_CHILD, names::ANNOTATION_OWNER]
        .map(|name| (name, text("annotations", name).unwrap_or_default()));
    Node::object([(
        "metadata",
        Node::object([
            ("labels", Node::object(labels)),
            ("annotations", Node::object(annotations)),
        ]),
    )])
}
