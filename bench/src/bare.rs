//! The same writes without a controller: the throughput of the API server on this machine at this time.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde::Serialize;
use serde_json::json;

use crate::api::{self, Write};
use crate::shop::{Child, Kind, resource_name};
use crate::site::Site;

/// The cost of some writes without a controller.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bare {
    /// Wall time.
    pub(crate) seconds: f64,
    /// CPU seconds of the servers.
    pub(crate) servers_cpu: f64,
}

/// The verb with which objects are created.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    Apply,
    Post,
}

/// The objects to create.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    /// Custom resources without an operator, and their children.
    Instances(By),
    /// Only the children.
    Children(By),
    /// The custom resources and all writes of `ork` for them, in the same order for each custom resource.
    Everything,
}

/// The number of custom resources that are created before the measurement, to open connections and fill caches.
pub(crate) const WARM: usize = 20;

/// Creates the objects of `count` custom resources on an otherwise empty API server, because the cost of a creation grows with
/// the number of existing objects (that of a Service with the number of Services).
pub(crate) async fn measured(program: &Path, what: What, count: usize) -> Result<Bare> {
    let site = Site::start(program).await?;
    site.install(&[Kind::without_operator()]).await?;
    make(&site, what, "warm", WARM).await?;
    make(&site, what, "measured", count).await
}

/// Creates the objects of `count` custom resources of [`Kind::without_operator`] in `namespace`.
pub(crate) async fn make(site: &Site, what: What, namespace: &str, count: usize) -> Result<Bare> {
    site.namespace(namespace).await?;
    let kind = Kind::without_operator();
    let sequences = (0..count)
        .map(|index| writes(site, &kind, what, namespace, &resource_name(index)))
        .collect::<Result<Vec<_>>>()?;
    let before = Site::servers_cpu()?;
    let started = Instant::now();
    match what {
        What::Everything => in_order(&site.client, &sequences).await?,
        What::Instances(_) | What::Children(_) => {
            api::send_all(&site.client, &sequences.concat()).await?;
        }
    }
    Ok(Bare {
        seconds: started.elapsed().as_secs_f64(),
        servers_cpu: Site::servers_cpu()? - before,
    })
}

/// Returns the writes for one custom resource.
fn writes(site: &Site, kind: &Kind, what: What, namespace: &str, name: &str) -> Result<Vec<Write>> {
    let by = match what {
        What::Instances(by) | What::Children(by) => by,
        What::Everything => return everything(site, kind, namespace, name),
    };
    let child = |child: &Child| match by {
        By::Apply => child.apply(namespace, name),
        By::Post => child.create(namespace, name),
    };
    let children = site
        .children
        .iter()
        .map(child)
        .collect::<Result<Vec<_>>>()?;
    let collection = kind.path(namespace);
    let object = kind.resource(namespace, name);
    let own = matches!(what, What::Instances(_)).then(|| match by {
        By::Apply => Write::apply(&format!("{collection}/{name}"), &object),
        By::Post => Write::create(&collection, &object),
    });
    Ok(own.into_iter().chain(children).collect())
}

/// Returns the writes of the custom resource, its finalizer with the inventory, the children and the status.
fn everything(site: &Site, kind: &Kind, namespace: &str, name: &str) -> Result<Vec<Write>> {
    let path = format!("{}/{name}", kind.path(namespace));
    let resource = kind.resource(namespace, name);
    let mut marked = resource.clone();
    if let Some(fields) = marked.as_object_mut() {
        fields.remove("spec");
    }
    marked["metadata"]["finalizers"] = json!(["unmanaged.example.io/cleanup"]);
    marked["metadata"]["annotations"] = json!({ "unmanaged.example.io/inventory": "0".repeat(64) });
    let ready = json!({
        "type": "Ready", "status": "False", "reason": "ChildrenNotReady", "message": format!("waiting for Deployment {name}"),
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    });
    let status =
        json!({ "status": { "observedGeneration": 1, "address": name, "conditions": [ready] } });
    let mut writes = vec![
        Write::create(&kind.path(namespace), &resource),
        Write::apply(&path, &marked),
    ];
    for child in &site.children {
        writes.push(child.apply(namespace, name)?);
    }
    writes.push(Write::merge(&format!("{path}/status"), &status));
    Ok(writes)
}

/// Sends the sequences concurrently, and the writes of each sequence one after the other.
async fn in_order(client: &Client, sequences: &[Vec<Write>]) -> Result<()> {
    futures::stream::iter(sequences)
        .map(|writes| async move {
            for write in writes {
                write.send(client).await?;
            }
            Ok::<(), anyhow::Error>(())
        })
        .buffer_unordered(api::WORKERS)
        .try_for_each(|()| async { Ok(()) })
        .await
}
