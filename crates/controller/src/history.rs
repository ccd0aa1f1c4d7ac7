//! The accepted revisions of a Katalog, for `ork history`, `ork diff` and `ork rollback`.

use orkestra_cluster::requests::Cluster;
use orkestra_language::api::status::{KatalogStatus, OperatedKind};
use orkestra_plan::{Declaring, GroupKind, KatalogRef};
use serde_json::{Map, Value};

use super::{
    calls::{RequestError, ServedResource},
    revisions::{Revision, Revisions},
};

/// The stored revisions of a Katalog or Komposer.
#[derive(Clone, Debug)]
pub struct History {
    /// The object as it is now.
    pub object: Value,
    /// Name of the revision in force.
    pub in_force: Option<String>,
    /// Its revisions, oldest first.
    pub revisions: Vec<AcceptedRevision>,
}

/// A revision that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptedRevision {
    /// Its number, which increases with every acceptance.
    pub number: i64,
    /// The name of its `ControllerRevision`, which ends with its hash.
    pub name: String,
    /// When it was accepted.
    pub accepted: Option<jiff::Timestamp>,
    /// The field manager that wrote it.
    pub author: Option<String>,
    /// The document as it was accepted; `None` if it cannot be read.
    pub document: Option<Value>,
    /// The Motifs that it used, by name.
    pub motifs: Map<String, Value>,
    /// The identities of the sources that it is composed from.
    pub sources: Vec<String>,
}

/// Why the history of a Katalog cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no such Katalog.
    #[error("{} does not exist", .0.titled())]
    NotFound(KatalogRef),
    /// The API server refused, or did not answer.
    #[error(transparent)]
    Call(#[from] RequestError),
}

/// Reads the accepted revisions of a Katalog or Komposer.
///
/// # Errors
/// [`HistoryError`].
pub async fn history(cluster: &Cluster, katalog: &KatalogRef) -> Result<History, HistoryError> {
    let katalogs = ServedResource::declaring(cluster, katalog.kind);
    let found = katalogs
        .get(Some(&katalog.namespace), &katalog.name)
        .await?;
    let object = found.ok_or_else(|| HistoryError::NotFound(katalog.clone()))?;
    let uid = object.metadata.uid.clone().unwrap_or_default();
    let stored = Revisions::new(cluster, katalog, &uid).list().await?;
    let status = object.data.get("status").cloned().unwrap_or_default();
    let status: KatalogStatus = serde_json::from_value(status).unwrap_or_default();
    Ok(History {
        object: serde_json::to_value(&object).unwrap_or_default(),
        in_force: status.revision,
        revisions: stored.iter().map(accepted).collect(),
    })
}

/// Returns the Katalogs and Komposers of all namespaces that operate a kind, according to their status.
///
/// # Errors
/// [`HistoryError::Call`].
pub async fn operating(
    cluster: &Cluster,
    kind: &GroupKind,
) -> Result<Vec<KatalogRef>, HistoryError> {
    let mut found = Vec::new();
    for declaring in [Declaring::Katalog, Declaring::Komposer] {
        let objects = ServedResource::declaring(cluster, declaring);
        for object in objects.list(None, None).await? {
            let status = object.data.get("status").cloned().unwrap_or_default();
            let status: KatalogStatus = serde_json::from_value(status).unwrap_or_default();
            let operates =
                |one: &OperatedKind| (&*one.group, &*one.kind) == (&*kind.group, &*kind.kind);
            let (namespace, name) = (object.metadata.namespace, object.metadata.name);
            if let (true, Some(namespace), Some(name)) =
                (status.operated.iter().any(operates), namespace, name)
            {
                found.push(KatalogRef::new(namespace, name).of(declaring));
            }
        }
    }
    Ok(found)
}

fn accepted(revision: &Revision) -> AcceptedRevision {
    let content = revision.content();
    let (document, motifs, sources) = match content {
        Some(content) => (
            Some(content.document),
            content.motifs,
            content.sources.keys().cloned().collect(),
        ),
        None => (None, Map::new(), Vec::new()),
    };
    AcceptedRevision {
        number: revision.number,
        name: revision.name.clone(),
        accepted: revision.accepted,
        author: revision.author.clone(),
        document,
        motifs,
        sources,
    }
}
