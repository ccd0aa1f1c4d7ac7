//! Lists of what Orkestra runs: Katalogs, Komposers, operators, custom resources.
//!
//! ```text
//!  Subject ── kinds ──► lists ──► documents ── columns ──► rows
//!     operators: one document for each row of `status.operators`
//! ```
//!
//! A row is a function of its document, so that text and JSON say the same.

mod columns;
mod follow;

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use orkestra_cluster::requests::Served;
use orkestra_engine::reconcile::kstatus;
use orkestra_language::api::names;
use orkestra_object::{
    GroupKind, ObjectKey,
    value::{Node, Path, Projection},
};
use serde::Serialize;
use serde_json::{Value, json};

pub use self::{
    columns::{Column, Content, columns},
    follow::{Followed, Follower, ListChange},
};
use super::{
    Reader, Unavailable,
    reader::Wanted,
    tree::katalog::{is_instance, status_of},
};
use crate::operate::Error;

/// The most objects of a kind.
const OBJECTS: usize = 10_000;
/// The most concurrent lists.
const SIDE_BY_SIDE: usize = 8;

/// What is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Katalogs.
    Katalogs,
    /// Komposers.
    Komposers,
    /// The operators of Katalogs and Komposers.
    Operators,
    /// The custom resources of all operators.
    Instances,
    /// The objects of one kind.
    Kind(Box<Served>),
}

/// A list that is asked for.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// What is listed.
    pub subject: Subject,
    /// The namespace; all if there is none. That of an operator is that of its Katalog.
    pub namespace: Option<String>,
    /// The names; all if empty.
    pub names: Vec<String>,
    /// Label selector, in the syntax of `kubectl -l`.
    pub selector: Option<String>,
    /// Field selector, in the syntax of `kubectl --field-selector`.
    pub fields: Option<String>,
    /// Whether documents are whole; else they have only the fields of the columns.
    pub whole: bool,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Listing {
    /// The documents, sorted by namespace and name: objects without managed fields; of an operator, its row in the status of the
    /// Katalog, and `katalog`, the one that declares it.
    pub items: Vec<Value>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Unavailable>,
}

impl Subject {
    /// Returns what the word names: `katalogs`, `komposers`, `operators`, `instances`, or any kind of the API server.
    ///
    /// # Errors
    /// [`Error::UnknownKind`] and [`Error::AmbiguousKind`].
    pub fn parse(word: &str, reader: &Reader) -> Result<Self, Error> {
        Ok(match &*word.to_lowercase() {
            "katalog" | "katalogs" | "kat" => Self::Katalogs,
            "komposer" | "komposers" | "komp" => Self::Komposers,
            "operator" | "operators" => Self::Operators,
            "instance" | "instances" => Self::Instances,
            _ => Self::Kind(Box::new(reader.kinds.named(word)?)),
        })
    }
}

/// Returns the list.
pub async fn list(reader: &Reader, request: &ListRequest) -> Listing {
    let mut listing = Listing::default();
    let kinds = kinds(reader, request, &mut listing).await;
    let lists = kinds.iter().map(|kind| objects(reader, kind, request));
    let lists: Vec<_> = stream::iter(lists).buffered(SIDE_BY_SIDE).collect().await;
    for (kind, (items, missing)) in kinds.iter().zip(lists) {
        listing.unavailable.extend(missing);
        for object in items {
            listing.items.extend(documents(request, kind, object));
        }
    }
    listing.items.sort_by_cached_key(sort_key);
    listing
}

/// Returns the kinds that are listed.
async fn kinds(reader: &Reader, request: &ListRequest, listing: &mut Listing) -> Vec<Served> {
    match &request.subject {
        Subject::Katalogs => vec![own_kind("Katalog", "katalogs")],
        Subject::Komposers => vec![own_kind("Komposer", "komposers")],
        Subject::Operators => declaring(),
        Subject::Instances => {
            let (kinds, missing) = operated(reader, request.namespace.as_deref()).await;
            listing.unavailable.extend(missing);
            kinds
        }
        Subject::Kind(kind) => vec![(**kind).clone()],
    }
}

fn own_kind(kind: &str, plural: &str) -> Served {
    Served::namespaced(names::GROUP, names::VERSION, kind, plural)
}

/// The kinds that declare operators.
pub(crate) fn declaring() -> Vec<Served> {
    vec![
        own_kind("Katalog", "katalogs"),
        own_kind("Komposer", "komposers"),
    ]
}

/// Returns the kinds that the Katalogs and Komposers operate, of all namespaces as far as the caller may read them.
pub(crate) async fn operated(
    reader: &Reader,
    near: Option<&str>,
) -> (Vec<Served>, Vec<Unavailable>) {
    let (mut kinds, mut unavailable) = (BTreeSet::new(), Vec::new());
    let projection = Projection::new(&[Path::of_fields(["metadata"]), Path::of_fields(["status"])]);
    for kind in declaring() {
        let wanted = Wanted {
            kind: &kind,
            selector: None,
            fields: None,
            projection: &projection,
            keep: &|_| true,
            most: OBJECTS,
        };
        let near = near.unwrap_or_else(|| reader.cluster.default_namespace());
        let (found, missing) = reader.list_widely(wanted, Some(near)).await;
        unavailable.extend(missing);
        for katalog in &found.items {
            let rows = status_of(katalog).operators.into_iter();
            kinds.extend(rows.map(|row| GroupKind {
                group: row.group.as_str().into(),
                kind: row.kind.as_str().into(),
            }));
        }
    }
    let served = kinds.iter().filter_map(|kind| reader.kinds.of(kind));
    (served.cloned().collect(), unavailable)
}

/// Reads the objects of a kind.
async fn objects(
    reader: &Reader,
    kind: &Served,
    request: &ListRequest,
) -> (Vec<Node>, Option<Unavailable>) {
    let instances = request.subject == Subject::Instances;
    let keep = |object: &Node| !instances || is_instance(kind, object);
    let projection = projection(request);
    let wanted = Wanted {
        kind,
        selector: request.selector.as_deref(),
        fields: request.fields.as_deref(),
        projection: &projection,
        keep: &keep,
        most: OBJECTS,
    };
    let (found, missing) = reader.list_in(wanted, request.namespace.as_deref()).await;
    (found.items, missing)
}

/// The fields that are read.
fn projection(request: &ListRequest) -> Projection {
    if request.whole {
        Projection::whole()
    } else {
        Projection::new(&paths(request))
    }
}

/// The paths of the fields that are read.
fn paths(request: &ListRequest) -> Vec<Path> {
    if request.whole {
        return vec![Path::root()];
    }
    let metadata = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "labels",
        "finalizers",
    ];
    let mut paths: Vec<Path> = metadata
        .map(|field| Path::of_fields(["metadata", field]))
        .to_vec();
    let inventory = ["metadata", "annotations", names::ANNOTATION_INVENTORY];
    paths.push(Path::of_fields(inventory));
    match request.subject {
        Subject::Katalogs | Subject::Komposers | Subject::Operators => {
            paths.push(Path::of_fields(["status"]));
        }
        Subject::Instances | Subject::Kind(_) => paths.extend(kstatus::read_paths()),
    }
    paths
}

/// Returns the documents of an object: itself, or its operators; none if its name is not asked for.
fn documents(request: &ListRequest, kind: &Served, object: Node) -> Vec<Value> {
    let is_named =
        |name: &str| request.names.is_empty() || request.names.iter().any(|one| one == name);
    if request.subject == Subject::Operators {
        let key = ObjectKey::of(&object);
        let rows = status_of(&object).operators.into_iter();
        let rows = rows.filter(|row| is_named(&row.name));
        return rows
            .filter_map(|row| {
                let mut document = serde_json::to_value(&row).ok()?;
                document["katalog"] = json!({
                    "kind": &*kind.kind, "namespace": key.namespace.as_deref(), "name": &*key.name,
                });
                Some(document)
            })
            .collect();
    }
    if !is_named(object.meta_text("name").unwrap_or_default()) {
        return Vec::new();
    }
    let mut document = kind.with_type(object).to_json();
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    vec![document]
}

fn sort_key(document: &Value) -> (String, String, String) {
    let text = |pointer: &str| {
        let text = document.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    if document.get("katalog").is_some() {
        let katalog = format!("{}/{}", text("/katalog/name"), text("/katalog/kind"));
        return (text("/katalog/namespace"), katalog, text("/name"));
    }
    (
        text("/metadata/namespace"),
        text("/kind"),
        text("/metadata/name"),
    )
}

#[cfg(test)]
mod tests;
