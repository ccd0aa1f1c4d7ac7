//! The last status of custom resources that are released: no operator confirms any more that they are ready.
//!
//! It is written before our metadata is removed, so that a release that is interrupted here continues here. A status that cannot
//! be written holds up nothing: the permission may be gone, or the CRD may keep no status.

use futures::{StreamExt, stream};
use kube::api::{DynamicObject, ObjectMeta};
use orkestra_engine::reconcile::status::released;
use orkestra_language::api::{OperatedKind, names};
use orkestra_object::value::Node;
use serde_json::json;

use super::{ServedResource, WRITES};
use crate::calls::RequestError;

/// The message of the condition.
const WHY: &str =
    "no Katalog operates this kind any more: the resource and its children stay as they are";

/// Writes that the resources are not operated any more into each status that an operator wrote. Returns their metadata, as it
/// is afterwards.
pub(crate) async fn retire_all(
    resource: &ServedResource,
    kind: &OperatedKind,
    objects: Vec<ObjectMeta>,
) -> Vec<ObjectMeta> {
    if orkestra_plan::built_in(&super::group_kind(kind)).is_some() {
        return objects;
    }
    let manager = names::field_manager(&kind.plural, &kind.group);
    let writes = objects
        .into_iter()
        .map(|meta| retire(resource, &manager, meta));
    stream::iter(writes)
        .buffer_unordered(WRITES)
        .collect()
        .await
}

async fn retire(resource: &ServedResource, manager: &str, meta: ObjectMeta) -> ObjectMeta {
    if meta.deletion_timestamp.is_some() {
        return meta;
    }
    match write(resource, manager, &meta).await {
        Ok(Some(object)) if object.metadata.uid == meta.uid => object.metadata,
        Ok(_) => meta,
        Err(error) => {
            tracing::debug!(%error, "the status of a released resource is not written");
            meta
        }
    }
}

/// Returns the object as written; none if nothing has to be.
async fn write(
    resource: &ServedResource,
    manager: &str,
    meta: &ObjectMeta,
) -> Result<Option<DynamicObject>, RequestError> {
    let namespace = meta.namespace.as_deref();
    let name = meta.name.as_deref().unwrap_or_default();
    let Some(object) = resource.get(namespace, name).await? else {
        return Ok(None);
    };
    if object.metadata.uid != meta.uid || !wrote_status(&object, manager) {
        return Ok(None);
    }
    let status = object
        .data
        .get("status")
        .map(Node::from)
        .unwrap_or_default();
    let Some(conditions) = released(&status, WHY, jiff::Timestamp::now()) else {
        return Ok(None);
    };
    let patch = json!({
        "metadata": { "uid": meta.uid, "resourceVersion": object.metadata.resource_version },
        "status": { "conditions": conditions.to_json() },
    });
    resource
        .merge_status(namespace, name, &patch)
        .await
        .map(Some)
}

/// True if the operator has written the status: a condition of another controller is not ours to change.
fn wrote_status(object: &DynamicObject, manager: &str) -> bool {
    let mut entries = object.metadata.managed_fields.iter().flatten();
    entries.any(|entry| {
        entry.manager.as_deref() == Some(manager) && entry.subresource.as_deref() == Some("status")
    })
}
