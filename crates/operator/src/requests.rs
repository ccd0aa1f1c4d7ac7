//! The requests of one operator: a missing permission is remembered until the same request succeeds.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_cluster::requests::{Cluster, ClusterError, Form, Listed, PageOf, Scope, Served};
use orkestra_object::value::{Node, Projection};
use orkestra_plan::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Objects per page, as in kubectl.
const PAGE: u32 = 500;

/// The type of a request, to match a refusal with a later success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestType {
    Get,
    List,
    Apply,
    Create,
    Delete,
    Status,
}

/// The requests of one operator.
pub(crate) struct Requests {
    /// Counts requests for this operator.
    pub(crate) cluster: Cluster,
    /// Missing permissions, by request and kind, until the same request succeeds.
    refused: Mutex<BTreeMap<(RequestType, String), String>>,
    /// Wakes the publisher when a permission went missing, or was granted.
    changed: Arc<Notify>,
}

impl Requests {
    /// Creates the requests that `cluster` makes; `changed` is notified when a permission goes missing or is granted.
    pub(crate) fn new(cluster: Cluster, changed: Arc<Notify>) -> Self {
        Self {
            cluster,
            refused: Mutex::default(),
            changed,
        }
    }

    /// Reads an object.
    pub(crate) async fn get(&self, kind: &Served, key: &ObjectKey) -> Result<Node, ClusterError> {
        let answer = self.cluster.get(kind, key).await;
        self.heard(RequestType::Get, kind, answer)
    }

    /// Reads all objects of a kind in that scope.
    pub(crate) async fn list_all(
        &self,
        kind: &Served,
        scope: &Scope,
    ) -> Result<Vec<Node>, ClusterError> {
        let answer = self.cluster.list_all(kind, scope).await;
        self.heard(RequestType::List, kind, answer)
    }

    /// Reads one page of the objects of a kind in that scope, as the API server has them now: the first, or the one for `next`
    /// of the last page. Passes what the projection keeps of each object to `take` as it arrives, since users decide on the
    /// number and size of objects. Returns the continue token of the next page.
    pub(crate) async fn list_page(
        &self,
        how: (Form, &Projection),
        kind: &Served,
        scope: &Scope,
        next: Option<&str>,
        take: &mut (dyn FnMut(Node) + Send),
    ) -> Result<Option<String>, ClusterError> {
        let page = PageOf { limit: PAGE, next };
        let mut each = |listed| {
            if let Listed::Object(object) = listed {
                take(object);
            }
        };
        let answer = self
            .cluster
            .list_each(how, kind, scope, page, &mut each)
            .await;
        self.heard(RequestType::List, kind, answer)
    }

    /// Records a missing permission, or that it was granted; returns the answer.
    pub(crate) fn heard<T>(
        &self,
        request: RequestType,
        kind: &Served,
        answer: Result<T, ClusterError>,
    ) -> Result<T, ClusterError> {
        let mut refused = self.refused.lock();
        let key = || (request, format!("{}.{}", kind.plural, kind.group));
        let news = match &answer {
            Err(error @ ClusterError::Forbidden { .. }) => {
                refused.insert(key(), error.to_string()).is_none()
            }
            Ok(_) => !refused.is_empty() && refused.remove(&key()).is_some(),
            Err(_) => false,
        };
        if news {
            self.changed.notify_one();
        }
        answer
    }

    /// Returns the missing permissions.
    pub(crate) fn refusals(&self) -> Vec<String> {
        self.refused.lock().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use orkestra_engine::reconcile::record::ChildRecord;
    use orkestra_plan::GroupKind;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// Returns a client of a cluster with two pages of `ConfigMap`s, which appends the paths of its requests to `asked`.
    fn requests(asked: &Arc<Mutex<Vec<String>>>) -> Requests {
        let asked = Arc::clone(asked);
        let service = service_fn(move |request: Request<Body>| {
            let asked = Arc::clone(&asked);
            async move {
                let uri = request.uri().to_string();
                let is_last = uri.contains("continue=more");
                asked.lock().push(uri);
                let (name, next) = if is_last {
                    ("b", None)
                } else {
                    ("a", Some("more"))
                };
                let page = json!({
                    "kind": "ConfigMapList", "metadata": { "resourceVersion": "9", "continue": next },
                    "items": [{
                        "metadata": { "name": name, "namespace": "shop", "uid": name, "resourceVersion": "3" },
                        "data": { "large": "x".repeat(1000) },
                    }],
                });
                Ok::<_, Infallible>(Response::new(Body::from(page.to_string().into_bytes())))
            }
        });
        let cluster = Cluster::new(kube::Client::new(service, "default"));
        Requests::new(cluster, Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_read_in_pages_and_keep_only_what_is_looked_at() {
        let asked = Arc::default();
        let requests = requests(&asked);
        let kind = Served::namespaced("", "v1", "ConfigMap", "configmaps");
        let projection = ChildRecord::projection(&[]);
        let (mut found, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut take = |object: Node| found.push(object);
            let how = (Form::Metadata, &projection);
            let scope = Scope::default();
            next = requests
                .list_page(how, &kind, &scope, next.as_deref(), &mut take)
                .await
                .unwrap();
            if next.is_none() {
                break;
            }
        }
        let of = GroupKind::parse("ConfigMap");
        let records = found
            .iter()
            .map(|object| ChildRecord::read(&of, object, &[]).unwrap());
        let names: Vec<String> = records
            .map(|record| record.id.key.name.to_string())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert!(found.iter().all(|object| object.get("data").is_none()));
        let asked = asked.lock();
        assert!(
            asked.iter().all(|uri| uri.contains("limit=500")),
            "{asked:?}"
        );
    }
}
