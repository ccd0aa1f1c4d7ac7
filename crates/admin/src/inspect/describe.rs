//! Everything about one object: who operates it, its conditions, what is below it, its Events.

use jiff::Timestamp;
use orkestra_cluster::requests::Served;
use orkestra_language::api::{OperatorStatus, conditions::Condition, names};
use orkestra_object::{ObjectKey, value::Node};
use serde::Serialize;

use super::{
    EventRow, EventsRequest, ObjectRef, Reader, Tree, Unavailable,
    events::events_below,
    tree::{fetch, katalog::operators_of, tree_of},
};
use crate::operate::Error;

/// The most Events of a description.
const EVENTS: usize = 20;

/// The description of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The object, its health, and what is below it.
    #[serde(flatten)]
    pub tree: Tree,
    /// `metadata.generation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// `status.observedGeneration`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Timestamp>,
    /// Its finalizers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Whether an annotation suspends it.
    pub suspended: bool,
    /// The operators of its kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<DescribedOperator>,
    /// Its conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The newest Events of it and of what is below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRow>,
}

/// An operator, as the status of its Katalog reports it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedOperator {
    /// The Katalog or Komposer.
    pub katalog: ObjectRef,
    /// The operator.
    #[serde(flatten)]
    pub row: OperatorStatus,
}

/// Describes an object.
///
/// # Errors
/// [`Error::Request`] if the object itself cannot be read.
pub async fn describe(
    reader: &Reader,
    kind: &Served,
    key: &ObjectKey,
) -> Result<Description, Error> {
    let object = fetch(&reader.cluster, kind, key).await?;
    let mut tree = tree_of(reader, kind, &object).await;
    let operators = operators_of(reader, &kind.group_kind(), key.namespace.as_deref()).await;
    let request = EventsRequest {
        object: Some((kind.clone(), key.clone())),
        alone: false,
        namespace: None,
        warnings: false,
        most: EVENTS,
    };
    let events = events_below(reader, &tree, &request).await;
    let mut unavailable: Vec<Unavailable> = std::mem::take(&mut tree.unavailable);
    unavailable.extend(events.unavailable);
    unavailable.sort();
    unavailable.dedup();
    tree.unavailable = unavailable;
    let number = |part: &str, field: &str| object.get(part)?.get(field)?.as_i64();
    let finalizers = object.meta("finalizers").and_then(Node::as_list);
    let finalizers = finalizers.unwrap_or_default().iter();
    let conditions = object
        .get("status")
        .and_then(|status| status.get("conditions"));
    let conditions = conditions.and_then(Node::as_list).unwrap_or_default();
    Ok(Description {
        tree,
        generation: number("metadata", "generation"),
        observed_generation: number("status", "observedGeneration"),
        deleted: object
            .meta_text("deletionTimestamp")
            .and_then(|text| text.parse().ok()),
        finalizers: finalizers
            .filter_map(Node::as_str)
            .map(str::to_owned)
            .collect(),
        suspended: object.annotation(names::ANNOTATION_SUSPEND) == Some("true"),
        operators: operators
            .into_iter()
            .map(|(katalog, row)| DescribedOperator { katalog, row })
            .collect(),
        conditions: conditions.iter().filter_map(Condition::read).collect(),
        events: events.items,
    })
}
