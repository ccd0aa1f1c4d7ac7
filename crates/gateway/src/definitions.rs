//! Definitions whose conversion the gateway serves, and those that keep it after their entry has gone.
//!
//! ```text
//!  declared ──► `spec.conversion` calls the webhook
//!  no longer declared ─┬─ all objects stored in the storage version ──► strategy None
//!                      └─ others stored as well ──► stays, with current authorities, until `ork migrate storage` is done
//! ```
//!
//! Without the webhook, the API server would serve objects of another version with the wrong fields.

use orkestra_cluster::requests::{Cluster, ClusterError, Served};
use orkestra_language::api::names;
use orkestra_object::value::Node;
use serde_json::{Value, json};

use super::{
    Gateway, GatewayOptions,
    catalogue::Catalogue,
    desired::{Desired, LABEL, Owners},
    record, webhooks,
};
use orkestra_operator::events::{Event, ObjectReference, Severity};

/// The reason of the Event about a definition that keeps its conversion.
const KEPT: &str = "ConversionKept";

/// Returns the definitions whose conversion Katalogs declare, with the body to apply.
pub(crate) fn declared(
    options: &GatewayOptions,
    catalogue: &Catalogue,
    authorities: &str,
) -> Vec<Desired> {
    let own = catalogue.conversions().filter(|one| one.plan.update_crd);
    let desired = own.map(|conversion| {
        let security = &conversion.security;
        let config = webhooks::client_config(
            options,
            security.service_name.as_deref(),
            security.gateway_endpoint.as_deref(),
            "/convert",
            authorities,
        );
        let name = conversion.plan.definition();
        let mut desired = converted(options, name, &config, record::text(conversion));
        let of = [conversion.katalog.clone()].into();
        desired.of.insert(String::new(), of);
        desired
    });
    desired.collect()
}

fn converted(
    options: &GatewayOptions,
    name: String,
    config: &Value,
    record: Option<String>,
) -> Desired {
    let mut body = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": name,
            "labels": { LABEL: options.name },
            "annotations": { names::ANNOTATION_INSTALLATION: options.installation },
        },
        "spec": { "conversion": {
            "strategy": "Webhook",
            "webhook": { "conversionReviewVersions": ["v1"], "clientConfig": config },
        } },
    });
    if let Some(record) = record {
        body["metadata"]["annotations"][names::ANNOTATION_SERVED_CONVERSION] = record.into();
    }
    Desired {
        served: Served::crds(),
        name,
        body: Node::from(&body),
        calls: true,
        of: Owners::new(),
    }
}

/// A definition that keeps its conversion, although no Katalog declares one.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    name: String,
    uid: String,
    /// Group and kind.
    kind: (String, String),
    /// The declaration that it records.
    record: Option<String>,
    /// How the webhook is called.
    config: Value,
    /// Why it is kept, with the remedy.
    pub(crate) why: String,
}

impl Kept {
    /// Returns the definition of that name if it must keep the conversion that it has.
    ///
    /// # Errors
    /// The definition cannot be read.
    pub(crate) async fn look_up(
        cluster: &Cluster,
        name: &str,
    ) -> Result<Option<Self>, ClusterError> {
        let found = cluster.find(&Served::crds(), name).await?;
        Ok(found.and_then(|definition| Self::of(name, &definition)))
    }

    fn of(name: &str, definition: &Node) -> Option<Self> {
        let why = other_versions(definition)?;
        let record = record::text_of(definition).map(str::to_owned);
        let definition = definition.to_json();
        let text = |at: &str| definition.pointer(at)?.as_str().map(str::to_owned);
        let mut config = definition
            .pointer("/spec/conversion/webhook/clientConfig")?
            .clone();
        // The authorities are those of now.
        config.as_object_mut()?.remove("caBundle");
        Some(Self {
            name: name.to_owned(),
            uid: text("/metadata/uid")?,
            kind: (text("/spec/group")?, text("/spec/names/kind")?),
            record,
            config,
            why,
        })
    }

    /// Returns the body to apply.
    pub(crate) fn desired(&self, gateway: &Gateway, authorities: &str) -> Desired {
        let (group, kind) = &self.kind;
        // Another client may have removed or changed the record.
        let known = || record::text(&gateway.conversion(group, kind)?);
        self.body(&gateway.options, authorities, known)
    }

    fn body(
        &self,
        options: &GatewayOptions,
        authorities: &str,
        known: impl FnOnce() -> Option<String>,
    ) -> Desired {
        let mut config = self.config.clone();
        config["caBundle"] = webhooks::bundle(authorities).into();
        let record = known().or_else(|| self.record.clone());
        converted(options, self.name.clone(), &config, record)
    }

    /// Reports it to the log and as an Event.
    pub(crate) fn report(&self, gateway: &Gateway) {
        let Self { name, uid, why, .. } = self;
        tracing::warn!(
            definition = name,
            why,
            "the conversion is kept although no Katalog declares it"
        );
        gateway.context.events.publish(Event {
            regarding: ObjectReference {
                api_version: Some(Served::crds().api_version()),
                kind: Some(Served::crds().kind.to_string()),
                name: Some(name.clone()),
                uid: Some(uid.clone()),
                ..ObjectReference::default()
            },
            severity: Severity::Warning,
            reason: KEPT.into(),
            note: format!("the conversion is kept although no Katalog declares it: {why}"),
        });
    }
}

/// Returns why a definition needs its conversion: versions other than the storage version, in which objects are stored.
pub(crate) fn other_versions(definition: &Node) -> Option<String> {
    let list = |path: [&str; 2]| {
        let found = path
            .iter()
            .try_fold(definition, |node, field| node.get(field));
        found.and_then(Node::as_list).unwrap_or_default()
    };
    let text = |path: [&str; 2]| {
        let found = path
            .iter()
            .try_fold(definition, |node, field| node.get(field));
        found.and_then(Node::as_str).unwrap_or_default()
    };
    let storage = list(["spec", "versions"]).iter().find_map(|version| {
        let is_storage = version.get("storage") == Some(&Node::Bool(true));
        version.get("name").filter(|_| is_storage)?.as_str()
    })?;
    let stored = list(["status", "storedVersions"]).iter();
    let others: Vec<&str> = stored
        .filter_map(Node::as_str)
        .filter(|version| *version != storage)
        .collect();
    (!others.is_empty()).then(|| {
        format!(
            "objects are stored as {}; run `ork migrate storage {}` while the gateway serves",
            others.join(" and "),
            text(["metadata", "name"]),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(stored: &[&str]) -> Node {
        Node::from(&json!({
            "metadata": {
                "name": "ponds.water.example", "uid": "u",
                "annotations": { names::ANNOTATION_SERVED_CONVERSION: "{}" },
            },
            "spec": {
                "group": "water.example", "names": { "kind": "Pond" },
                "versions": [{ "name": "v1", "storage": false }, { "name": "v2", "storage": true }],
                "conversion": { "webhook": { "clientConfig": { "url": "https://h/convert", "caBundle": "b2xk" } } },
            },
            "status": { "storedVersions": stored },
        }))
    }

    #[test]
    fn a_definition_keeps_its_conversion_while_objects_are_stored_in_another_version() {
        assert_eq!(other_versions(&definition(&["v2"])), None);
        let why = other_versions(&definition(&["v1", "v2"])).unwrap();
        assert!(
            why.contains("stored as v1; run `ork migrate storage ponds.water.example`"),
            "{why}"
        );
        assert_eq!(other_versions(&Node::from(&json!({}))), None);
    }

    #[test]
    fn a_conversion_that_is_kept_gets_new_authorities_and_keeps_its_address() {
        let name = "ponds.water.example";
        assert!(Kept::of(name, &definition(&["v2"])).is_none());
        let kept = Kept::of(name, &definition(&["v1", "v2"])).unwrap();
        let options = super::super::tests::service();
        let body = kept.body(&options, "new", || None).body.to_json();
        assert_eq!(
            body["metadata"]["annotations"],
            json!({
                names::ANNOTATION_SERVED_CONVERSION: "{}",
                names::ANNOTATION_INSTALLATION: "system/orkestra",
            })
        );
        let config = &body["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!(
            *config,
            json!({ "url": "https://h/convert", "caBundle": "bmV3" })
        );
        // A conversion that another client removed from the CRD is not restored.
        let mut plain = definition(&["v1", "v2"]).to_json();
        plain["spec"]["conversion"] = json!({ "strategy": "None" });
        assert!(Kept::of(name, &Node::from(&plain)).is_none());
    }
}
