//! The same writes without a controller: what the API server can do at all, on this machine and at this moment.

use anyhow::Result;

use crate::api::{self, Write};
use crate::shop::{Child, resource_name};
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
    let before = site.servers_cpu()?;
    let took = api::send_all(&site.client, &writes).await?;
    Ok((took.as_secs_f64(), site.servers_cpu()? - before))
}
