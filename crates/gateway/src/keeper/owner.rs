//! The owner of configurations and policies: the role that permits writing them.
//!
//! An installation is removed, or loses its webhooks, in many ways. With each of them the role goes, and the garbage collector then
//! deletes what only this role permitted to delete.

use orkestra_cluster::requests::Served;
use orkestra_object::value::Node;
use serde_json::{Value, json};

use super::{Desired, Keeper};

impl Keeper<'_> {
    /// Looks up the role with the name of the gateway; true if it is another one than before. Without the role, or without
    /// permission to read it, there is no owner.
    pub(crate) async fn look_up_owner(&mut self) -> bool {
        let roles = Served::cluster_scoped(
            "rbac.authorization.k8s.io",
            "v1",
            "ClusterRole",
            "clusterroles",
        );
        let options = &self.gateway.options;
        if options.ephemeral {
            // It was not installed.
            return false;
        }
        let name = &options.name;
        let found = match self.cluster.find(&roles, name).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, role = name, "cannot read the role of the webhooks");
                return false;
            }
        };
        let owner = found.as_ref().and_then(|role| role.meta_text("uid"));
        let owner = owner.map(|uid| {
            json!([{
                "apiVersion": roles.api_version(), "kind": &*roles.kind, "name": name, "uid": uid,
            }])
        });
        let differs = owner != self.owner;
        self.owner = owner;
        differs
    }

    /// Returns the body to apply: of all objects but definitions, which outlive an installation, with the owner.
    pub(crate) fn owned(&self, desired: &Desired) -> Node {
        match &self.owner {
            Some(owner) if desired.served != Served::crds() => {
                let mut body: Value = desired.body.to_json();
                body["metadata"]["ownerReferences"] = owner.clone();
                Node::from(&body)
            }
            _ => desired.body.clone(),
        }
    }
}
