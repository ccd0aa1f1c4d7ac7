//! Finds and removes what a gateway wrote.

use std::fmt;

use orkestra_cluster::requests::{Cluster, ClusterError, Deletion, Propagation, Scope, Served};
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::ObjectKey;
use serde_json::{Value, json};

use super::{GatewayOptions, MANAGER, definitions::other_versions, desired, secret};

/// What the name of the installation of a gateway without operators starts with, after its namespace.
pub const GATEWAY: &str = "gateway:";

/// What the name of the installation of a controller without leader election starts with, after its namespace; its Katalogs follow.
pub const ALONE: &str = "ork controller of ";

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
    /// The name of the gateway that wrote it.
    gateway: String,
    /// The installation that wrote it; `None` if an earlier version did.
    installation: Option<String>,
    /// The namespaces of the Services that it calls.
    services: Vec<String>,
    /// Why it must stay as it is; `None` if it can be removed.
    pub kept: Option<String>,
}

impl Registered {
    fn of(served: &Served, object: &Node) -> Option<Self> {
        let text = object.to_json();
        let configs = text["webhooks"].as_array().into_iter().flatten();
        let conversion = text.pointer("/spec/conversion/webhook/clientConfig");
        let configs = configs.map(|one| &one["clientConfig"]).chain(conversion);
        let service = |config: &Value| Some(config["service"]["namespace"].as_str()?.to_owned());
        let is_definition = *served == Served::crds();
        Some(Self {
            served: served.clone(),
            key: desired::key(object.meta_text("name")?),
            gateway: object.label(desired::LABEL)?.to_owned(),
            installation: (object.annotation(names::ANNOTATION_INSTALLATION)).map(str::to_owned),
            services: configs.filter_map(service).collect(),
            kept: is_definition.then(|| other_versions(object)).flatten(),
        })
    }

    /// True if it belongs to an installation, as far as is known: an object of another one with the same names stays.
    pub(crate) fn is_of(&self, installation: &str, namespace: &str, name: &str) -> bool {
        let place = |installation: &str| {
            let (place, of) = installation.split_once('/')?;
            // A gateway without operators serves on when the webhooks of the controller are off. Controllers without leader election
            // may run side by side.
            let is_one_of_many = of.starts_with(GATEWAY) || of.starts_with(ALONE);
            (!is_one_of_many).then(|| place.to_owned())
        };
        match &self.installation {
            Some(own) if own == installation => true,
            // Another Lease in the same place: it was renamed.
            Some(other) => {
                self.gateway == name
                    && place(other).as_deref() == Some(namespace)
                    && place(installation).is_some()
            }
            None => {
                let mut services = self.services.iter();
                self.gateway == name
                    && !self.services.is_empty()
                    && services.all(|one| one == namespace)
            }
        }
    }

    /// True if it has the name of that gateway.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.gateway == name
    }

    /// True for policies and their bindings.
    pub(crate) fn is_policy(&self) -> bool {
        desired::is_policy(&self.served)
    }

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
    let selector = format!("{}={}", desired::LABEL, settings.name);
    let mut all = pointers(cluster, selector).await?;
    let key = ObjectKey {
        namespace: Some(settings.namespace.as_str().into()),
        name: settings.secret.as_str().into(),
    };
    let served = secret::secrets();
    match cluster.get(&served, &key).await {
        Ok(found) if found.label(desired::LABEL) == Some(&settings.name) => {
            all.push(Registered {
                served,
                key,
                gateway: settings.name.clone(),
                installation: None,
                services: Vec::new(),
                kept: None,
            });
        }
        Ok(_) | Err(ClusterError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(all)
}

/// Returns the objects with a label that point the API server at webhooks, or that a gateway keeps beside them, in the order of
/// removal.
pub(crate) async fn pointers(
    cluster: &Cluster,
    selector: String,
) -> Result<Vec<Registered>, ClusterError> {
    let scope = Scope {
        selector: Some(selector),
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
        let read = page
            .items
            .iter()
            .filter_map(|item| Registered::of(&served, item));
        all.extend(read);
    }
    Ok(all)
}

/// Removes the policies of a process without webhooks that could not remove them itself, such as one that was killed; returns them.
///
/// # Errors
/// The first request that failed.
pub async fn remove_policies(
    cluster: &Cluster,
    options: &GatewayOptions,
) -> Result<Vec<Registered>, ClusterError> {
    let selector = format!("{}={}", desired::LABEL, options.name);
    let mut all = pointers(cluster, selector).await?;
    all.retain(|one| one.is_policy() && is_own(one, options));
    for one in &all {
        remove(cluster, one).await?;
    }
    Ok(all)
}

/// True if another installation than that of `options` wrote the object, as far as is known.
pub(crate) fn is_foreign(served: &Served, object: &Node, options: &GatewayOptions) -> bool {
    Registered::of(served, object).is_none_or(|one| !is_own(&one, options))
}

/// True if the installation of `options` wrote the object.
fn is_own(registered: &Registered, options: &GatewayOptions) -> bool {
    registered.is_of(&options.installation, &options.namespace, &options.name)
}

/// True if a gateway without operators wrote the object, which keeps it.
pub(crate) fn is_of_gateway(object: &Node) -> bool {
    let installation = object.annotation(names::ANNOTATION_INSTALLATION);
    installation.is_some_and(is_gateway)
}

/// True for the identity of a gateway without operators: `NAMESPACE/gateway:…`.
fn is_gateway(installation: &str) -> bool {
    let of = installation.split_once('/');
    of.is_some_and(|(_, of)| of.starts_with(GATEWAY))
}

/// Removes one of the objects, unless it is kept.
///
/// # Errors
/// The request failed.
pub async fn remove(cluster: &Cluster, registered: &Registered) -> Result<(), ClusterError> {
    let Registered {
        served, key, kept, ..
    } = registered;
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
pub(crate) async fn release(
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

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(annotation: Option<&str>, service: Option<&str>) -> Registered {
        let mut object = json!({
            "metadata": { "name": "a", "labels": { desired::LABEL: "a" } },
            "webhooks": [{ "name": "w", "clientConfig": {} }],
        });
        if let Some(annotation) = annotation {
            object["metadata"]["annotations"] =
                json!({ names::ANNOTATION_INSTALLATION: annotation });
        }
        if let Some(service) = service {
            object["webhooks"][0]["clientConfig"] =
                json!({ "service": { "namespace": service, "name": "a" } });
        }
        let [validating, ..] = desired::kinds();
        Registered::of(&validating, &Node::from(&object)).unwrap()
    }

    #[test]
    fn an_object_belongs_to_the_installation_that_wrote_it_and_to_no_other_one() {
        for (annotation, service, own) in [
            (Some("system/orkestra"), None, true),
            // The Lease was renamed; namespace and name are the same.
            (Some("system/earlier"), None, true),
            (Some("other/orkestra"), Some("system"), false),
            (Some("system/gateway:a"), None, false),
            // Written by an earlier version.
            (None, Some("system"), true),
            (None, Some("other"), false),
            (None, None, false),
        ] {
            let object = registered(annotation, service);
            let is = object.is_of("system/orkestra", "system", "a");
            assert_eq!(is, own, "{annotation:?} {service:?}");
        }
        // Controllers of several namespaces run side by side without leader election.
        let (a, b) = ("system/ork controller of a", "system/ork controller of b");
        for (other, own, is) in [(a, a, true), (b, a, false), ("system/orkestra", a, false)] {
            let object = registered(Some(other), None);
            assert_eq!(object.is_of(own, "system", "a"), is, "{other} {own}");
        }
        assert!(!registered(Some(a), None).is_of("system/orkestra", "system", "a"));
        // The name of the gateway was changed.
        let renamed = |annotation| registered(Some(annotation), None);
        assert!(renamed("system/orkestra").is_of("system/orkestra", "system", "b"));
        assert!(!renamed("system/earlier").is_of("system/orkestra", "system", "b"));
    }
}
