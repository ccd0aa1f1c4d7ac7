//! Volumes of a `StatefulSet` whose declared size grew: its claims grow, although its templates cannot change.

use orkestra_cluster::requests::{ClusterError, Scope, Served};
use orkestra_engine::reconcile::{
    step::{Failure, Rendered},
    volumes::{VolumeGrowth, growths, is_size},
};
use orkestra_object::value::{Map, Node};
use orkestra_plan::{GroupKind, ObjectKey};

use super::Writer;
use crate::pass::failure::failure;

impl Writer<'_> {
    /// Raises the requests of the claims of a `StatefulSet` whose only changed immutable `fields` are sizes of volumes. Returns what to
    /// say about its claims; the same when it is called again.
    pub(crate) async fn grow(
        &self,
        rendered: &Rendered,
        live: Option<&Node>,
        fields: &[String],
    ) -> Result<Option<String>, Failure> {
        let key = &rendered.key;
        let is_set = key.kind == GroupKind::parse("StatefulSet.apps");
        if !is_set || fields.is_empty() || !fields.iter().all(|field| is_size(field)) {
            return Ok(None);
        }
        let Some(live) = live else {
            return Ok(None);
        };
        let claims = self.claims(&key.object, live).await;
        let claims = claims.map_err(|error| failure(key, &error))?;
        let (growths, count) = growths(&rendered.object, &claims);
        for growth in &growths {
            match self.grow_claim(&key.object, growth).await {
                Ok(()) => {}
                Err(error @ (ClusterError::Denied { .. } | ClusterError::Invalid { .. })) => {
                    // Validation adds the difference of the two objects, over many lines.
                    let error = error.to_string();
                    let why = error.lines().next().unwrap_or_default();
                    let note = format!("the claim `{}` cannot grow: {why}", growth.claim);
                    return Ok(Some(note));
                }
                Err(error) => return Err(failure(key, &error)),
            }
        }
        let note = "its existing claims request the declared size or more";
        Ok((count > 0).then(|| note.to_owned()))
    }

    /// Returns the claims that the selector of a `StatefulSet` matches: Kubernetes labels its claims so.
    async fn claims(&self, set: &ObjectKey, live: &Node) -> Result<Vec<Node>, ClusterError> {
        let labels = live
            .get("spec")
            .and_then(|spec| spec.get("selector")?.get("matchLabels")?.as_map());
        let labels = labels.into_iter().flat_map(Map::iter);
        let labels = labels.map(|(name, value)| format!("{}={}", &**name, value.to_text()));
        let labels: Vec<String> = labels.collect();
        if labels.is_empty() {
            return Ok(Vec::new());
        }
        let scope = Scope {
            namespace: set.namespace.as_deref().map(str::to_owned),
            selector: Some(labels.join(",")),
            fields: None,
        };
        self.pass
            .shared
            .requests
            .list_all(&claim_kind(), &scope)
            .await
    }

    async fn grow_claim(&self, set: &ObjectKey, growth: &VolumeGrowth) -> Result<(), ClusterError> {
        let claim = ObjectKey {
            namespace: set.namespace.clone(),
            name: growth.claim.as_str().into(),
        };
        let storage = Node::object([("storage", Node::from(&*growth.storage))]);
        let requests = Node::object([("requests", storage)]);
        let spec = Node::object([("resources", requests)]);
        let body = Node::object([("spec", spec)]);
        let manager = &self.pass.bound.manager;
        let kind = claim_kind();
        let grown = self.pass.grow_claim(&kind, &claim, &body, manager).await;
        match grown {
            Err(ClusterError::NotFound(_)) => Ok(()),
            grown => grown.map(drop),
        }
    }
}

fn claim_kind() -> Served {
    Served::namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
}
