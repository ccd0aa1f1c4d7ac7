//! Removes what a gateway wrote, for `ork uninstall`.

use std::fmt;

use orkestra_cluster::wire::{Deletion, Propagation, Scope, Served, Wire, WireError};
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
pub async fn registered(wire: &Wire, settings: &Settings) -> Result<Vec<Registered>, WireError> {
    let scope = Scope {
        selector: Some(format!("{}={}", desired::LABEL, settings.name)),
        ..Scope::default()
    };
    let mut all = Vec::new();
    let optional = desired::optional_version(wire).await?;
    let kinds = desired::kinds().into_iter().chain([Served::crds()]);
    for served in kinds.chain(optional.into_iter().flat_map(desired::optional_kinds)) {
        let page = match wire.list_page(&served, &scope, 0, None).await {
            Err(WireError::NotServed(_) | WireError::NotFound(_)) => continue,
            page => page?,
        };
        let is_definition = served == Served::crds();
        for item in &page.items {
            let name = item.get("metadata").and_then(|one| one.get("name"));
            let Some(name) = name.and_then(Node::as_str) else {
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
    match wire.get(&served, &key).await {
        Ok(found) if has_label(&found, &settings.name) => all.push(Registered {
            served,
            key,
            kept: None,
        }),
        Ok(_) | Err(WireError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(all)
}

/// Removes one of the objects, unless it is kept.
///
/// # Errors
/// The request failed.
pub async fn remove(wire: &Wire, registered: &Registered) -> Result<(), WireError> {
    let Registered { served, key, kept } = registered;
    if kept.is_some() {
        return Ok(());
    }
    if key.namespace.is_none() {
        return release(wire, served, &key.name).await;
    }
    let how = Deletion {
        propagation: Propagation::Background,
        uid: None,
        resource_version: None,
    };
    match wire.delete(served, key, &how).await {
        Ok(_) | Err(WireError::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes an object that belongs to a gateway; a definition stays, and loses its conversion.
pub(super) async fn release(wire: &Wire, served: &Served, name: &str) -> Result<(), WireError> {
    let released = if *served == Served::crds() {
        // What only this field manager owns is removed with the apply that does not have it.
        let body = json!({
            "apiVersion": served.api_version(), "kind": &*served.kind, "metadata": { "name": name },
        });
        let (key, body) = (desired::key(name), Node::from(&body));
        wire.apply(served, &key, MANAGER, true, &body)
            .await
            .map(drop)
    } else {
        let how = Deletion {
            propagation: Propagation::Background,
            uid: None,
            resource_version: None,
        };
        wire.delete(served, &desired::key(name), &how)
            .await
            .map(drop)
    };
    match released {
        Err(WireError::NotFound(_) | WireError::NotServed(_)) => Ok(()),
        other => other,
    }
}

fn has_label(object: &Node, name: &str) -> bool {
    let labels = object
        .get("metadata")
        .and_then(|metadata| metadata.get("labels"));
    let label = labels.and_then(|labels| labels.get(desired::LABEL));
    label.and_then(Node::as_str) == Some(name)
}
