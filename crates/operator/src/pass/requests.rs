//! The writes of a pass: each is counted, and the pass notes that it wrote.

use std::sync::atomic::Ordering;

use orkestra_cluster::requests::{ClusterError, Deletion, Propagation, Served};
use orkestra_engine::reconcile::record::{Identity, Uid};
use orkestra_object::value::Node;
use orkestra_plan::ObjectKey;

use super::Pass;
use crate::{metrics::Verb, requests::RequestType};

impl Pass<'_> {
    /// Applies a child.
    pub(crate) async fn apply(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
        force: bool,
    ) -> Result<Node, ClusterError> {
        let answer = self
            .shared
            .requests
            .cluster
            .apply(kind, key, manager, force, body)
            .await;
        self.wrote(RequestType::Apply, Verb::Apply, kind, answer)
    }

    /// Creates a child.
    pub(crate) async fn create(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, ClusterError> {
        let answer = self
            .shared
            .requests
            .cluster
            .create(kind, key, manager, body)
            .await;
        self.wrote(RequestType::Create, Verb::Create, kind, answer)
    }

    /// Deletes the child of that uid. Returns it if its finalizers keep it.
    pub(crate) async fn delete(
        &self,
        kind: &Served,
        key: &ObjectKey,
        uid: &Uid,
        propagation: Propagation,
    ) -> Result<Option<Node>, ClusterError> {
        let how = Deletion {
            propagation,
            uid: Some(&uid.to_string()),
            resource_version: None,
        };
        let answer = self.shared.requests.cluster.delete(kind, key, &how).await;
        self.wrote(RequestType::Delete, Verb::Delete, kind, answer)
    }

    /// Deletes the child of that identity, in exactly that state.
    pub(crate) async fn delete_state(
        &self,
        kind: &Served,
        key: &ObjectKey,
        id: &Identity,
    ) -> Result<Option<Node>, ClusterError> {
        let how = Deletion {
            propagation: Propagation::Background,
            uid: Some(&id.uid.to_string()),
            resource_version: Some(&id.resource_version.to_string()),
        };
        let answer = self.shared.requests.cluster.delete(kind, key, &how).await;
        self.wrote(RequestType::Delete, Verb::Delete, kind, answer)
    }

    /// Patches the request of a claim of a `StatefulSet`.
    pub(crate) async fn grow_claim(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, ClusterError> {
        let count = (RequestType::Apply, Verb::Apply);
        self.merge_patch(count, kind, key, None, (manager, body))
            .await
    }

    /// Applies the metadata of a custom resource.
    pub(crate) async fn apply_metadata(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, ClusterError> {
        let answer = self
            .shared
            .requests
            .cluster
            .apply(kind, key, manager, true, body)
            .await;
        self.wrote(RequestType::Apply, Verb::ApplyMetadata, kind, answer)
    }

    /// Patches the metadata of an object.
    pub(crate) async fn patch_metadata(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, ClusterError> {
        let count = (RequestType::Apply, Verb::ApplyMetadata);
        self.merge_patch(count, kind, key, None, (manager, body))
            .await
    }

    /// Patches the spec of a custom resource with normalized values.
    pub(crate) async fn normalize(
        &self,
        kind: &Served,
        key: &ObjectKey,
        body: &Node,
        manager: &str,
    ) -> Result<Node, ClusterError> {
        let count = (RequestType::Apply, Verb::Normalize);
        self.merge_patch(count, kind, key, None, (manager, body))
            .await
    }

    /// Patches the status of a custom resource, through the subresource if there is one.
    pub(crate) async fn patch_status(
        &self,
        kind: &Served,
        key: &ObjectKey,
        subresource: bool,
        body: &Node,
        manager: &str,
    ) -> Result<Node, ClusterError> {
        let count = (RequestType::Status, Verb::PatchStatus);
        let subresource = subresource.then_some("status");
        self.merge_patch(count, kind, key, subresource, (manager, body))
            .await
    }

    async fn merge_patch(
        &self,
        (request, verb): (RequestType, Verb),
        kind: &Served,
        key: &ObjectKey,
        subresource: Option<&str>,
        (manager, body): (&str, &Node),
    ) -> Result<Node, ClusterError> {
        let answer = self
            .shared
            .requests
            .cluster
            .merge_patch(kind, key, subresource, manager, body)
            .await;
        self.wrote(request, verb, kind, answer)
    }

    fn wrote<T>(
        &self,
        request: RequestType,
        verb: Verb,
        kind: &Served,
        answer: Result<T, ClusterError>,
    ) -> Result<T, ClusterError> {
        if answer.is_ok() {
            self.shared.metrics.wrote(verb);
            self.wrote.store(true, Ordering::Relaxed);
        }
        self.shared.requests.heard(request, kind, answer)
    }
}
