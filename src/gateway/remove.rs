//! Removes what a gateway wrote, for `ork uninstall`.

use std::fmt;

use orkestra_cluster::requests::{Cluster, ClusterError, Deletion, Propagation, Scope, Served};
use orkestra_core::{plan::ObjectKey, value::Node};
use serde_json::json;

use super::{MANAGER, definitions::other_versions, desired, secret};

/// The names of an installation's gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of its configurations, and the value of their label.
    pub name: String,
    /// The namespace of the Secret.
    pub namespace: String,
    /// The Secret with the certificates.
    pub secret: String,
}

/// An object that a gateway wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    served: Served,
    key: ObjectKey,
    /// Why it must stay as it is; `None` if it can be removed.
    pub kept: Option<String>,
}

impl Registered {
    /// True if only its conversion is removed.
    pub fn is_definition(&self) -> bool {
        self.served == Served::crds()
    }
}

/// Displays as kind and name: `ValidatingWebhookConfiguration orkestra-webhooks`.
impl fmt::Display for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { served, key, .. } = self;
        write!(f, "{} {key}", served.kind)?;
        if self.is_definition() {
            f.write_str(" (conversion)")?;
        }
        Ok(())
    }
}

/// Returns everything that points the API server at a gateway's webhooks, then the Secret with its certificates, in the order of
/// removal.
///
/// A definition stays, without conversion. It keeps its conversion if objects are stored in other versions than the storage
/// version: without the webhook, the API server would serve them with the wrong fields.
///
/// # Errors
/// The first request that failed.
pub async fn registered(
    cluster: &Cluster,
    settings: &Settings,
) -> Result<Vec<Registered>, ClusterError> {
    let scope = Scope {
        selector: Some(format!("{}={}", desired::LABEL, settings.name)),
        ..Scope::default()
    };
    let mut all = Vec::new();
    let optional = desired::optional_version(cluster).await?;
    let kinds = desired::kinds().into_iter().chain([Served::crds()]);
    for served in kinds.chain(optional.into_iter().flat_map(desired::optional_kinds)) {
        let page = match cluster.list_page(&served, &scope, 0, None).await {
            Err(ClusterError::NotServed(_) | ClusterError::NotFound(_)) => continue,
            page => page?,
        };
        let is_definition = served == Served::crds();
        for item in &page.items {
            let Some(name) = item.meta_text("name") else {
                continue;
            };
            all.push(Registered {
                served: served.clone(),
                key: ObjectKey {
                    namespace: None,
                    name: name.into(),
                },
                kept: is_definition.then(|| other_versions(item)).flatten(),
            });
        }
    }
    let key = ObjectKey {
        namespace: Some(settings.namespace.as_str().into()),
        name: settings.secret.as_str().into(),
    };
    let served = secret::secrets();
    match cluster.get(&served, &key).await {
        Ok(found) if has_label(&found, &settings.name) => all.push(Registered {
            served,
            key,
            kept: None,
        }),
        Ok(_) | Err(ClusterError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(all)
}

/// Removes one of the objects, unless it is kept.
///
/// # Errors
/// The request failed.
pub async fn remove(cluster: &Cluster, registered: &Registered) -> Result<(), ClusterError> {
    let Registered { served, key, kept } = registered;
    if kept.is_some() {
        return Ok(());
    }
    if key.namespace.is_none() {
        return release(cluster, served, &key.name).await;
    }
    let how = Deletion {
        propagation: Propagation::Background,
        uid: None,
        resource_version: None,
    };
    match cluster.delete(served, key, &how).await {
        Ok(_) | Err(ClusterError::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes an object that belongs to a gateway; a definition stays, and loses its conversion.
pub(super) async fn release(
    cluster: &Cluster,
    served: &Served,
    name: &str,
) -> Result<(), ClusterError> {
    let released = if *served == Served::crds() {
        // What only this field manager owns is removed with the apply that does not have it.
        let body = json!({
            "apiVersion": served.api_version(), "kind": &*served.kind, "metadata": { "name": name },
        });
        let (key, body) = (desired::key(name), Node::from(&body));
        cluster
            .apply(served, &key, MANAGER, true, &body)
            .await
            .map(drop)
    } else {
        let how = Deletion {
            propagation: Propagation::Background,
            uid: None,
            resource_version: None,
        };
        cluster
            .delete(served, &desired::key(name), &how)
            .await
            .map(drop)
    };
    match released {
        Err(ClusterError::NotFound(_) | ClusterError::NotServed(_)) => Ok(()),
        other => other,
    }
}

fn has_label(object: &Node, name: &str) -> bool {
    object.label(desired::LABEL) == Some(name)
}
