//! The definitions that `schema` of entries generates, applied before a revision runs, if the installation manages definitions.
//!
//! ```text
//!  generated ──┬─ not there ─────────────────────────────────► created, with the Katalog as its annotation
//!              ├─ as generated ──────────────────────────────► in place
//!              ├─ not created by this Katalog ───────────────► DefinitionRefused
//!              ├─ permits all that the live one permits ─────► applied
//!              └─ permits less ──┬─ a stored object is harmed ► DefinitionRefused
//!                                └─ none is ─────────────────► applied, with an Event that says what it no longer permits
//! ```
//!
//! A definition is never deleted, since that would delete all of its objects.

use std::{collections::BTreeMap, time::Duration};

use orkestra_language::{api::names, reasons::KatalogReason};
use orkestra_object::{
    decode::Version,
    value::{Key, Node},
};
use orkestra_plan::{
    DefinitionPlan, ObjectKey,
    definitions::{CrdShape, DefinitionChange, compare, harm},
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    super::{calls::RequestError, calls::ServedResource, status::Refusal},
    KatalogController,
};
use orkestra_operator::events::Severity;

/// How long until a definition that was refused is checked again: the objects in its way may have changed.
const AGAIN: Duration = Duration::from_secs(30);
/// The field of a version that has its schema.
const SCHEMA: &str = "openAPIV3Schema";
/// How many harmed objects a message names.
const NAMED: usize = 5;
/// How many problems of one object a message names.
const PROBLEMS: usize = 3;

/// The generated definitions of a Katalog.
#[derive(Debug, Default)]
pub(crate) struct AppliedDefinitions {
    /// The hash of each that is in place, and the resourceVersion of the state in which it was found so.
    in_place: BTreeMap<Key, (String, Version)>,
    /// When one that was refused is checked again.
    again: Option<Instant>,
}

impl AppliedDefinitions {
    /// Returns when they are to be checked again.
    pub(crate) fn next_check(&self) -> Option<Instant> {
        self.again
    }
}

/// The result for one definition.
enum AppliedDefinition {
    /// It is in place, as of this resourceVersion.
    InPlace(Version),
    Refused(Refusal),
}

impl KatalogController {
    /// Applies the definitions of the candidate, or else of the running revision. A candidate whose definition is refused is held
    /// back.
    pub(crate) async fn apply_definitions(&mut self) -> Result<(), RequestError> {
        if self
            .definitions
            .again
            .is_some_and(|at| at <= Instant::now())
        {
            self.definitions.again = None;
            self.judgement.retry_held();
        }
        let candidate = self.judgement.candidate().map(|judged| &judged.plan);
        if candidate.is_none() && self.definitions.again.is_some() {
            return Ok(());
        }
        let running = self.running.as_ref().map(|running| &running.plan);
        let Some(plan) = candidate.or(running).cloned() else {
            return Ok(());
        };
        for definition in &plan.definitions {
            if self.is_in_place(definition) {
                continue;
            }
            match self.apply_definition(definition).await? {
                AppliedDefinition::InPlace(version) => {
                    let known = (definition.hash.clone(), version);
                    self.definitions
                        .in_place
                        .insert(definition.name.clone(), known);
                }
                AppliedDefinition::Refused(refusal) => {
                    self.definitions.again = Some(Instant::now() + AGAIN);
                    self.judgement.hold(refusal);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// True if the definition was found in place and did not change since.
    fn is_in_place(&self, definition: &DefinitionPlan) -> bool {
        let known = self.definitions.in_place.get(&definition.name);
        known.is_some_and(|(hash, version)| {
            let now = self.shared.context.crds.get(&definition.kind);
            let is_newer = now.is_some_and(|now| now.id.resource_version.is_newer_than(version));
            *hash == definition.hash && !is_newer
        })
    }

    async fn apply_definition(
        &self,
        definition: &DefinitionPlan,
    ) -> Result<AppliedDefinition, RequestError> {
        let cluster = &self.shared.context.cluster;
        let resource = ServedResource::definitions(cluster);
        let Some(live) = resource.find(&definition.name).await? else {
            return self.write_definition(definition).await;
        };
        if covers(&live, &definition.crd) {
            return Ok(AppliedDefinition::InPlace(version_of(&live)));
        }
        if let Some(refusal) = self.not_its_own(definition, &live) {
            return Ok(AppliedDefinition::Refused(refusal));
        }
        let refused =
            |message: String| Ok(AppliedDefinition::Refused(refusal(definition, &message)));
        let (before, after) = match (
            CrdShape::from_crd(&live),
            CrdShape::from_crd(&definition.crd),
        ) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => return refused(why.to_string()),
        };
        match compare(&before, &after, &stored_versions(&live)) {
            DefinitionChange::Impossible(why) => refused(why),
            DefinitionChange::Widened => self.write_definition(definition).await,
            DefinitionChange::Narrowed(lines) => {
                let converts = definition.converts;
                if let Some(harmed) = self.harmed((&before, &after), converts).await? {
                    return refused(format!("{}; {harmed}", lines.join("; ")));
                }
                let written = self.write_definition(definition).await?;
                if let AppliedDefinition::InPlace(_) = &written {
                    let text = format!(
                        "{} permits less than before, and no stored object is affected: {}",
                        definition.name,
                        lines.join("; ")
                    );
                    let reason = KatalogReason::DefinitionNarrowed;
                    self.report_line((Severity::Normal, reason, text));
                }
                Ok(written)
            }
        }
    }

    /// Returns the refusal of a definition that this Katalog has not created.
    fn not_its_own(&self, definition: &DefinitionPlan, live: &Node) -> Option<Refusal> {
        let own = self.reference.to_string();
        let annotations = live
            .get("metadata")
            .and_then(|meta| meta.get("annotations"));
        let owner = annotations.and_then(|all| all.get(names::ANNOTATION_KATALOG));
        let owner = owner.and_then(Node::as_str);
        if owner == Some(&own) {
            return None;
        }
        let name = &definition.name;
        let whose = match owner {
            Some(other) => format!("Katalog {other} has it"),
            None => "it exists, and no Katalog has created it".to_owned(),
        };
        let message = format!(
            "{whose}; `kubectl annotate crd {name} --overwrite {}={own}` gives it to this Katalog",
            names::ANNOTATION_KATALOG
        );
        Some(refusal(definition, &message))
    }

    /// Returns a message about the stored objects that would lose a field or become invalid; none if there are none.
    async fn harmed(
        &self,
        (before, after): (&CrdShape, &CrdShape),
        converts: bool,
    ) -> Result<Option<String>, RequestError> {
        let Some(version) = before.preferred() else {
            return Ok(None);
        };
        let cluster = &self.shared.context.cluster;
        let objects = ServedResource::defined(cluster, before, &version.name);
        let (mut count, mut named) = (0_usize, Vec::new());
        objects
            .each(|object| {
                let problems = harm(before, after, object, converts);
                if problems.is_empty() {
                    return;
                }
                count += 1;
                if named.len() < NAMED {
                    let problems: Vec<String> = problems.into_iter().take(PROBLEMS).collect();
                    named.push(format!(
                        "{} ({})",
                        ObjectKey::of(object),
                        problems.join("; ")
                    ));
                }
            })
            .await?;
        Ok((count > 0).then(|| {
            format!(
                "{count} custom resources would lose a field or become invalid: {}: change them first, or keep the fields",
                named.join(", ")
            )
        }))
    }

    async fn write_definition(
        &self,
        definition: &DefinitionPlan,
    ) -> Result<AppliedDefinition, RequestError> {
        let resource = ServedResource::definitions(&self.shared.context.cluster);
        let mut crd = definition.crd.to_json();
        crd["metadata"]["annotations"] =
            json!({ names::ANNOTATION_KATALOG: self.reference.to_string() });
        let applied = resource
            .apply(None, &definition.name, &crd, names::MANAGER)
            .await;
        match applied {
            Ok(object) => {
                let version = object.metadata.resource_version.unwrap_or_default();
                tracing::info!(katalog = %self.reference, crd = %definition.name, "definition applied");
                Ok(AppliedDefinition::InPlace(Version::from(&*version)))
            }
            Err(error) if error.is_forbidden() => {
                let message = format!(
                    "{error}; `ork generate rbac --manage-crds` prints the permissions of Katalogs whose definitions the controller applies"
                );
                let reason = KatalogReason::Forbidden;
                Ok(AppliedDefinition::Refused(Refusal { reason, message }))
            }
            Err(error) if error.is_invalid() => Ok(AppliedDefinition::Refused(refusal(
                definition,
                &error.to_string(),
            ))),
            Err(error) => Err(error),
        }
    }
}

fn refusal(definition: &DefinitionPlan, message: &str) -> Refusal {
    Refusal {
        reason: KatalogReason::DefinitionRefused,
        message: format!("CustomResourceDefinition {}: {message}", definition.name),
    }
}

/// True if the live object has everything that the wanted one declares, and no other schemas. The API server adds fields to a definition
/// outside of its schemas, and changes none.
fn covers(live: &Node, wanted: &Node) -> bool {
    match (live, wanted) {
        (Node::Map(live), Node::Map(wanted)) => wanted.iter().all(|(key, wanted)| {
            let live = live.get(key);
            let is_schema = **key == *SCHEMA;
            live.is_some_and(|live| {
                if is_schema {
                    live == wanted
                } else {
                    covers(live, wanted)
                }
            })
        }),
        (Node::List(live), Node::List(wanted)) => {
            live.len() == wanted.len()
                && live
                    .iter()
                    .zip(wanted.iter())
                    .all(|(live, wanted)| covers(live, wanted))
        }
        _ => live == wanted,
    }
}

fn version_of(object: &Node) -> Version {
    Version::from(object.meta_text("resourceVersion").unwrap_or_default())
}

/// Returns the versions in which objects may be stored.
fn stored_versions(crd: &Node) -> Vec<String> {
    let stored = crd
        .get("status")
        .and_then(|status| status.get("storedVersions"));
    let stored = stored.and_then(Node::as_list).into_iter().flatten();
    stored.filter_map(Node::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_adds_to_a_definition_does_not_differ() {
        let node = |value: serde_json::Value| Node::from(&value);
        let wanted = node(json!({ "spec": { "versions": [{ "name": "v1", "served": true }] } }));
        let live = node(json!({
            "metadata": { "uid": "u" },
            "spec": { "conversion": { "strategy": "None" }, "versions": [{ "name": "v1", "served": true, "deprecated": false }] },
        }));
        assert!(covers(&live, &wanted));
        let other = node(json!({ "spec": { "versions": [{ "name": "v1", "served": false }] } }));
        assert!(!covers(&live, &other));
        let two = node(json!({ "spec": { "versions": [{ "name": "v1" }, { "name": "v2" }] } }));
        assert!(!covers(&live, &two));
        // A field less is another schema.
        let schema = |fields: serde_json::Value| {
            node(
                json!({ "schema": { "openAPIV3Schema": { "type": "object", "properties": fields } } }),
            )
        };
        let both = schema(json!({ "a": {}, "b": {} }));
        assert!(covers(&both, &both) && !covers(&both, &schema(json!({ "a": {} }))));
    }
}
