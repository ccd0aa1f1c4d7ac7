//! The requests of one operator: each is counted, and a refused right is remembered until the same request succeeds.

use orkestra_core::{api::names, plan::ObjectKey, value::Node};

use super::{
    shared::{Request, Shared},
    wire::{Deletion, Propagation, Scope, Served, WireError},
};
use crate::metrics::Verb;

impl Shared {
    /// Reads an object.
    pub(super) async fn get(&self, kind: &Served, key: &ObjectKey) -> Result<Node, WireError> {
        let answer = self.context.wire.get(kind, key).await;
        self.heard(Request::Get, kind, answer)
    }

    /// Every object of a kind in a namespace.
    pub(super) async fn list(
        &self,
        kind: &Served,
        namespace: Option<&str>,
    ) -> Result<Vec<Node>, WireError> {
        let scope = Scope {
            namespace: namespace.map(str::to_owned),
            ..Scope::default()
        };
        let answer = self.context.wire.list_page(kind, &scope, 0, None).await;
        Ok(self.heard(Request::List, kind, answer)?.items)
    }

    /// Every child of a kind that carries the label of that owner, as the API server has them now.
    pub(super) async fn list_of_owner(
        &self,
        kind: &Served,
        uid: &str,
    ) -> Result<Vec<Node>, WireError> {
        let scope = Scope {
            selector: Some(format!("{}={uid}", names::LABEL_OWNER_UID)),
            ..Scope::default()
        };
        let answer = self.context.wire.list_page(kind, &scope, 0, None).await;
        Ok(self.heard(Request::List, kind, answer)?.items)
    }

    /// Applies a child.
    pub(super) async fn apply(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
        force: bool,
    ) -> Result<Node, WireError> {
        let answer = self
            .context
            .wire
            .apply(kind, key, manager, force, body)
            .await;
        self.wrote(Request::Apply, Verb::Apply, kind, answer)
    }

    /// Makes a child.
    pub(super) async fn create(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let answer = self.context.wire.create(kind, key, manager, body).await;
        self.wrote(Request::Create, Verb::Create, kind, answer)
    }

    /// Deletes the child of that uid. Returns it where it stays for its finalizers.
    pub(super) async fn delete(
        &self,
        kind: &Served,
        key: &ObjectKey,
        uid: &str,
    ) -> Result<Option<Node>, WireError> {
        self.delete_with(kind, key, uid, Propagation::Background)
            .await
    }

    /// As [`Shared::delete`], and says when its dependents go.
    pub(super) async fn delete_with(
        &self,
        kind: &Served,
        key: &ObjectKey,
        uid: &str,
        propagation: Propagation,
    ) -> Result<Option<Node>, WireError> {
        let how = Deletion {
            propagation,
            uid: Some(uid),
            resource_version: None,
        };
        let answer = self.context.wire.delete(kind, key, &how).await;
        self.wrote(Request::Delete, Verb::Delete, kind, answer)
    }

    /// Applies metadata of a custom resource.
    pub(super) async fn apply_metadata(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let answer = self
            .context
            .wire
            .apply(kind, key, manager, true, body)
            .await;
        self.wrote(Request::Apply, Verb::ApplyMetadata, kind, answer)
    }

    /// Patches metadata of an object.
    pub(super) async fn patch_metadata(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let answer = self
            .context
            .wire
            .merge_patch(kind, key, None, manager, body)
            .await;
        self.wrote(Request::Apply, Verb::ApplyMetadata, kind, answer)
    }

    /// Patches the spec of a custom resource: values that are brought to one form.
    pub(super) async fn normalize(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let answer = self
            .context
            .wire
            .merge_patch(kind, key, None, manager, body)
            .await;
        self.wrote(Request::Apply, Verb::Normalize, kind, answer)
    }

    /// Patches the status of a custom resource, by the subresource where there is one.
    pub(super) async fn patch_status(
        &self,
        kind: &Served,
        key: &ObjectKey,
        subresource: bool,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let answer = self
            .context
            .wire
            .merge_patch(kind, key, subresource.then_some("status"), manager, body)
            .await;
        self.wrote(Request::Status, Verb::PatchStatus, kind, answer)
    }

    fn wrote<T>(
        &self,
        request: Request,
        verb: Verb,
        kind: &Served,
        answer: Result<T, WireError>,
    ) -> Result<T, WireError> {
        if answer.is_ok() {
            self.metrics.wrote(verb);
        }
        self.heard(request, kind, answer)
    }
}
