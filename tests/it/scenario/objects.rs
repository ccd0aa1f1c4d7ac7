//! Objects of the cluster, read and written as the administrator, as users and other controllers do.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use testbed::eventually;

use super::{LIMIT, Scenario};

/// The objects of one kind, in one namespace or cluster-scoped.
#[derive(Clone)]
pub(crate) struct Objects {
    client: Client,
    /// The path of the collection.
    path: String,
}

impl Scenario {
    /// Returns the objects of a plural in the scenario's namespace. An unknown plural is one of its own group, `v1alpha1`.
    pub(crate) fn objects(&self, plural: &str) -> Objects {
        self.objects_in(&self.namespace, plural)
    }

    /// Returns the objects of a plural in another namespace.
    pub(crate) fn objects_in(&self, namespace: &str, plural: &str) -> Objects {
        Objects::namespaced(&self.client, &self.group, namespace, plural)
    }

    /// Waits until the Katalog's current generation is observed and its condition `Ready` has that status and reason.
    pub(crate) async fn katalog_is(&self, name: &str, status: &str, reason: &str) -> Result<Value> {
        let what = format!("is Ready={status} for {reason}");
        self.objects("katalogs")
            .until(name, &what, LIMIT, |katalog| {
                let current =
                    katalog["status"]["observedGeneration"] == katalog["metadata"]["generation"];
                current
                    && condition(katalog, "Ready")
                        .is_some_and(|one| one["status"] == status && one["reason"] == reason)
            })
            .await
    }

    /// Waits until an operator of the Katalog is in that state.
    pub(crate) async fn operator_is(
        &self,
        katalog: &str,
        operator: &str,
        state: &str,
    ) -> Result<Value> {
        let wanted = json!({ "state": state });
        self.operator_reports(katalog, operator, &wanted).await
    }

    /// Waits until the operator's row in the Katalog's status has those fields. Counts are reported last: once they are there, no
    /// write is pending.
    pub(crate) async fn operator_reports(
        &self,
        katalog: &str,
        operator: &str,
        wanted: &Value,
    ) -> Result<Value> {
        let what = format!("reports {wanted} of its operator {operator}");
        let reports = |row: &Value| {
            let mut fields = wanted.as_object().into_iter().flatten();
            row["name"] == operator && fields.all(|(field, value)| &row[field] == value)
        };
        self.objects("katalogs")
            .until(katalog, &what, LIMIT, |katalog| {
                let rows = katalog["status"]["operators"].as_array();
                rows.is_some_and(|rows| rows.iter().any(reports))
            })
            .await
    }
}

/// Returns the root path of kinds outside the scenario's group.
fn root(plural: &str) -> Option<String> {
    let root = match plural {
        "configmaps"
        | "events"
        | "limitranges"
        | "namespaces"
        | "persistentvolumeclaims"
        | "pods"
        | "resourcequotas"
        | "secrets"
        | "serviceaccounts"
        | "services" => "/api/v1",
        "controllerrevisions" | "daemonsets" | "deployments" | "replicasets" | "statefulsets" => {
            "/apis/apps/v1"
        }
        "ingresses" | "networkpolicies" => "/apis/networking.k8s.io/v1",
        "cronjobs" | "jobs" => "/apis/batch/v1",
        "leases" => "/apis/coordination.k8s.io/v1",
        "endpointslices" => "/apis/discovery.k8s.io/v1",
        "horizontalpodautoscalers" => "/apis/autoscaling/v2",
        "poddisruptionbudgets" => "/apis/policy/v1",
        "clusterrolebindings" | "clusterroles" | "rolebindings" => {
            "/apis/rbac.authorization.k8s.io/v1"
        }
        "customresourcedefinitions" => "/apis/apiextensions.k8s.io/v1",
        "katalogs" | "komposers" | "motifs" => "/apis/orkestra.orkspace.io/v1",
        _ => return None,
    };
    Some(root.to_owned())
}

impl Objects {
    /// Returns the collection at a path.
    pub(crate) fn at(client: &Client, path: &str) -> Self {
        Self {
            client: client.clone(),
            path: path.to_owned(),
        }
    }

    /// Returns the objects of a plural in a namespace. An unknown plural belongs to `group`, `v1alpha1`.
    pub(crate) fn namespaced(client: &Client, group: &str, namespace: &str, plural: &str) -> Self {
        let root = root(plural).unwrap_or_else(|| format!("/apis/{group}/v1alpha1"));
        Self::at(client, &format!("{root}/namespaces/{namespace}/{plural}"))
    }

    /// Returns the cluster-scoped objects of a plural of Kubernetes.
    pub(crate) fn of_cluster(client: &Client, plural: &str) -> Self {
        Self::at(
            client,
            &format!("{}/{plural}", root(plural).unwrap_or_default()),
        )
    }

    /// Returns the object, if it exists.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Value>> {
        match self
            .send(Method::GET, &format!("{}/{name}", self.path), None)
            .await
        {
            Err(error) if code(&error) == Some(404) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Returns the object, which must exist.
    pub(crate) async fn fetch(&self, name: &str) -> Result<Value> {
        self.get(name)
            .await?
            .with_context(|| format!("{}/{name} does not exist", self.path))
    }

    /// Returns all objects of the collection.
    pub(crate) async fn list(&self) -> Result<Vec<Value>> {
        let list = self.send(Method::GET, &self.path, None).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Sends a merge patch as text, for patches that `serde_json` cannot produce. The response is not decoded.
    pub(crate) async fn patch_text(&self, name: &str, patch: String) -> Result<()> {
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!("{}/{name}", self.path))
            .header("Content-Type", "application/merge-patch+json")
            .body(patch.into_bytes())?;
        self.client.request_text(request).await?;
        Ok(())
    }

    /// Returns the name and resourceVersion of each object. They are unchanged if nothing was written.
    pub(crate) async fn versions(&self) -> Result<Vec<(String, String)>> {
        let text = |object: &Value, at: &str| {
            object
                .pointer(at)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let all = self.list().await?;
        Ok(all
            .iter()
            .map(|object| {
                (
                    text(object, "/metadata/name"),
                    text(object, "/metadata/resourceVersion"),
                )
            })
            .collect())
    }

    /// Creates an object.
    pub(crate) async fn create(&self, object: &Value) -> Result<Value> {
        self.send(Method::POST, &self.path, Some(("application/json", object)))
            .await
    }

    /// Changes an object with a merge patch, as field manager `somebody`.
    pub(crate) async fn patch(&self, name: &str, change: &Value) -> Result<Value> {
        let path = format!("{}/{name}?fieldManager=somebody", self.path);
        self.send(
            Method::PATCH,
            &path,
            Some(("application/merge-patch+json", change)),
        )
        .await
    }

    /// Deletes an object, with its dependents in the background.
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        let options = json!({ "propagationPolicy": "Background" });
        let path = format!("{}/{name}", self.path);
        let body = Some(("application/json", &options));
        self.send(Method::DELETE, &path, body).await.map(drop)
    }

    /// Waits until the object exists and `wanted` holds for it. `what` describes `wanted` in messages.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        eventually(&format!("{name} {what}"), limit, async || {
            match self.get(name).await? {
                Some(object) if wanted(&object) => Ok(Some(object)),
                Some(object) => bail!("the object is {}", without_managed_fields(object)),
                None => bail!("{}/{name} does not exist", self.path),
            }
        })
        .await
    }

    /// Waits until the value at a JSON pointer is equal to `wanted`.
    pub(crate) async fn until_equal(
        &self,
        name: &str,
        pointer: &str,
        wanted: Value,
        limit: Duration,
    ) -> Result<Value> {
        let what = format!("has {wanted} at {pointer}");
        self.until(name, &what, limit, |object| {
            object.pointer(pointer).unwrap_or(&Value::Null) == &wanted
        })
        .await
    }

    /// Waits until the object exists and its condition `Ready` is true for its current generation.
    pub(crate) async fn until_ready(&self, name: &str) -> Result<Value> {
        self.until(name, "is ready", LIMIT, is_ready).await
    }

    /// Waits until the object no longer exists.
    pub(crate) async fn until_gone(&self, name: &str, limit: Duration) -> Result<()> {
        eventually(&format!("{name} is deleted"), limit, async || {
            match self.get(name).await? {
                None => Ok(Some(())),
                Some(object) => bail!("it still exists: {}", without_managed_fields(object)),
            }
        })
        .await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value> {
        let mut request = Request::builder().method(method).uri(path);
        let mut bytes = Vec::new();
        if let Some((content_type, value)) = body {
            request = request.header("content-type", content_type);
            bytes = serde_json::to_vec(value)?;
        }
        Ok(self.client.request(request.body(bytes)?).await?)
    }
}

/// Returns the HTTP status of the API server's error response.
pub(crate) fn code(error: &anyhow::Error) -> Option<u16> {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// Returns the object's condition of that type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object
        .pointer("/status/conditions")?
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Reports whether the condition `Ready` is true for the object's current generation.
pub(crate) fn is_ready(object: &Value) -> bool {
    is_observed(object) && condition(object, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// Reports whether the condition `Ready`, true or not, refers to the object's current generation.
pub(crate) fn is_observed(object: &Value) -> bool {
    condition(object, "Ready")
        .is_some_and(|ready| ready["observedGeneration"] == object["metadata"]["generation"])
}

/// Returns the uid in the object's owner reference with `controller: true`.
pub(crate) fn owner_uid(object: &Value) -> Option<&str> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}
