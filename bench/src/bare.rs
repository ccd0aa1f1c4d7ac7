//! The same writes without a controller: what the API server can do at all, on this machine and at this moment.

use std::time::Instant;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;

use crate::api::{self, Write};
use crate::shop::{Child, Kind, resource_name};
use crate::site::Site;

/// How long it took to write the children of `count` custom resources to `namespace`, each by `write`: seconds, and CPU seconds
/// of the servers.
pub(crate) async fn children(
    site: &Site,
    namespace: &str,
    count: usize,
    write: fn(&Child, &str, &str) -> Result<Write>,
) -> Result<(f64, f64)> {
    let mut writes = Vec::with_capacity(count * site.children.len());
    for index in 0..count {
        for child in &site.children {
            writes.push(write(child, namespace, &resource_name(index))?);
        }
    }
    site.namespace(namespace).await?;
    let before = Site::servers_cpu()?;
    let took = api::send_all(&site.client, &writes).await?;
    Ok((took.as_secs_f64(), Site::servers_cpu()? - before))
}

/// How long it took to write all that `ork` has to write for `count` custom resources, and the custom resources themselves, to
/// `namespace`: the finalizer with the inventory, the children, the status. 32 custom resources at a time, each step after
/// the one before; seconds.
pub(crate) async fn everything(site: &Site, namespace: &str, count: usize) -> Result<f64> {
    let kind = Kind::without_operator();
    site.install(std::slice::from_ref(&kind)).await?;
    site.namespace(namespace).await?;
    let mut sequences = Vec::with_capacity(count);
    for index in 0..count {
        let name = resource_name(index);
        let path = format!("{}/{name}", kind.path(namespace));
        let resource = kind.resource(namespace, &name);
        let mut marked = resource.clone();
        if let Some(fields) = marked.as_object_mut() {
            fields.remove("spec");
        }
        marked["metadata"]["finalizers"] = json!(["unmanaged.example.io/cleanup"]);
        marked["metadata"]["annotations"] =
            json!({ "unmanaged.example.io/inventory": "0".repeat(64) });
        let ready = json!({
            "type": "Ready", "status": "False", "reason": "ChildrenNotReady", "message": format!("waiting for Deployment {name}"),
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        });
        let status = json!({ "status": { "observedGeneration": 1, "address": name, "conditions": [ready] } });
        let mut writes = vec![
            Write::create(&kind.path(namespace), &resource),
            Write::apply(&path, &marked),
        ];
        for child in &site.children {
            writes.push(child.apply(namespace, &name)?);
        }
        writes.push(Write::merge(&format!("{path}/status"), &status));
        sequences.push(writes);
    }
    let started = Instant::now();
    futures::stream::iter(&sequences)
        .map(|writes| async move {
            for write in writes {
                write.send(&site.client).await?;
            }
            Ok::<(), anyhow::Error>(())
        })
        .buffer_unordered(api::WORKERS)
        .try_for_each(|()| async { Ok(()) })
        .await?;
    Ok(started.elapsed().as_secs_f64())
}
