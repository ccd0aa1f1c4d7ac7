//! The requests of one operator: each is counted, and a missing permission is remembered until the same request succeeds.

use std::cell::Cell;

use orkestra_cluster::wire::{Deletion, Propagation, Scope, Served, WireError};
use orkestra_core::{
    plan::ObjectKey,
    reconcile::record::{Identity, Uid},
    value::Node,
};

use super::shared::{Request, Shared};
use crate::metrics::Verb;

tokio::task_local! {
    /// Whether the current pass of this task has written anything.
    static WROTE: Cell<bool>;
}

/// Runs a pass; returns its result, and whether it has written anything.
pub(super) async fn watched<T>(pass: impl Future<Output = T>) -> (T, bool) {
    WROTE
        .scope(Cell::new(false), async {
            let passed = pass.await;
            (passed, WROTE.with(Cell::get))
        })
        .await
}

impl Shared {
    /// Reads an object.
    pub(super) async fn get(&self, kind: &Served, key: &ObjectKey) -> Result<Node, WireError> {
        let answer = self.wire.get(kind, key).await;
        self.heard(Request::Get, kind, answer)
    }

    /// Lists the objects of a kind in that scope, as the API server has them now.
    pub(super) async fn list(&self, kind: &Served, scope: &Scope) -> Result<Vec<Node>, WireError> {
        let answer = self.wire.list_page(kind, scope, 0, None).await;
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
        let answer = self.wire.apply(kind, key, manager, force, body).await;
        self.wrote(Request::Apply, Verb::Apply, kind, answer)
    }

    /// Creates a child.
    pub(super) async fn create(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let answer = self.wire.create(kind, key, manager, body).await;
        self.wrote(Request::Create, Verb::Create, kind, answer)
    }

    /// Deletes the child of that uid. Returns it if its finalizers keep it.
    pub(super) async fn delete(
        &self,
        kind: &Served,
        key: &ObjectKey,
        uid: &Uid,
        propagation: Propagation,
    ) -> Result<Option<Node>, WireError> {
        let how = Deletion {
            propagation,
            uid: Some(&uid.to_string()),
            resource_version: None,
        };
        let answer = self.wire.delete(kind, key, &how).await;
        self.wrote(Request::Delete, Verb::Delete, kind, answer)
    }

    /// Deletes the child of that identity, in exactly that state.
    pub(super) async fn delete_state(
        &self,
        kind: &Served,
        key: &ObjectKey,
        id: &Identity,
    ) -> Result<Option<Node>, WireError> {
        let how = Deletion {
            propagation: Propagation::Background,
            uid: Some(&id.uid.to_string()),
            resource_version: Some(&id.resource_version.to_string()),
        };
        let answer = self.wire.delete(kind, key, &how).await;
        self.wrote(Request::Delete, Verb::Delete, kind, answer)
    }

    /// Applies the metadata of a custom resource.
    pub(super) async fn apply_metadata(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let answer = self.wire.apply(kind, key, manager, true, body).await;
        self.wrote(Request::Apply, Verb::ApplyMetadata, kind, answer)
    }

    /// Patches the metadata of an object.
    pub(super) async fn patch_metadata(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let count = (Request::Apply, Verb::ApplyMetadata);
        self.merge_patch(count, kind, key, None, (manager, body))
            .await
    }

    /// Patches the spec of a custom resource with normalized values.
    pub(super) async fn normalize(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let count = (Request::Apply, Verb::Normalize);
        self.merge_patch(count, kind, key, None, (manager, body))
            .await
    }

    /// Patches the status of a custom resource, through the subresource if there is one.
    pub(super) async fn patch_status(
        &self,
        kind: &Served,
        key: &ObjectKey,
        subresource: bool,
        body: &Node,
        manager: &str,
    ) -> Result<Node, WireError> {
        let count = (Request::Status, Verb::PatchStatus);
        let subresource = subresource.then_some("status");
        self.merge_patch(count, kind, key, subresource, (manager, body))
            .await
    }

    async fn merge_patch(
        &self,
        (request, verb): (Request, Verb),
        kind: &Served,
        key: &ObjectKey,
        subresource: Option<&str>,
        (manager, body): (&str, &Node),
    ) -> Result<Node, WireError> {
        let answer = self
            .wire
            .merge_patch(kind, key, subresource, manager, body)
            .await;
        self.wrote(request, verb, kind, answer)
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
            // Outside a pass nothing records it.
            let _ = WROTE.try_with(|wrote| wrote.set(true));
        }
        self.heard(request, kind, answer)
    }
}
