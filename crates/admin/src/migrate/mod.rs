//! Storage migration: every stored object of a kind is written again in the storage version, and earlier versions are removed
//! from the definition's `status.storedVersions`.
//!
//! ```text
//!  list, page by page ─► each object: an empty patch, which the API server stores in the storage version ─► storedVersions
//! ```
//!
//! An empty patch changes nothing that a reader or a controller sees: the API server only encodes the object again. It does not
//! conflict with other writers, since the API server repeats it on the newest state. Objects are listed in order of namespace and
//! name, so that a migration that was interrupted continues after the last one.
//!
//! Source: Kubernetes, "Versions in `CustomResourceDefinitions`", upgrade existing objects to a new stored version.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use orkestra_cluster::requests::{Cluster, ClusterError, Scope, Served};
use orkestra_object::value::Node;
use orkestra_plan::ObjectKey;
use serde_json::json;

/// Objects per page.
const PAGE: u32 = 200;
/// The most patches at a time.
const AT_ONCE: usize = 8;
/// The field manager: an empty patch leaves no trace of it.
const MANAGER: &str = "orkestra-migrate";

/// Why a migration stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No definition has that name.
    #[error(
        "no CustomResourceDefinition defines `{0}`: expected a kind, a plural, or `<plural>.<group>`"
    )]
    Unknown(String),
    /// Several definitions have that name.
    #[error("`{name}` is ambiguous: {}", candidates.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// The names of the definitions.
        candidates: Vec<String>,
    },
    /// The definition has no storage version, or its shape is not that of a definition.
    #[error("the definition {0} is not complete")]
    Incomplete(String),
    /// A request failed.
    #[error("cannot {what}: {source}")]
    Request {
        /// Verb and object.
        what: String,
        /// The cause.
        source: ClusterError,
    },
    /// The definition's storage version changed meanwhile.
    #[error("the storage version of {0} changed during the migration: start again")]
    Changed(String),
}

impl Error {
    /// True if the API server did not answer.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::Request {
                source: ClusterError::Unavailable(_),
                ..
            }
        )
    }
}

/// A definition, as far as a migration reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDefinition {
    /// `<plural>.<group>`.
    pub name: String,
    /// Its kind in the storage version.
    pub served: Served,
    /// The versions in which objects may be stored.
    pub stored: Vec<String>,
}

impl StoredDefinition {
    fn read(crd: &Node) -> Option<Self> {
        let text = |node: &Node, path: &[&str]| {
            let mut at = node;
            for field in path {
                at = at.get(field)?;
            }
            at.as_str().map(str::to_owned)
        };
        let versions = crd.get("spec")?.get("versions")?.as_list()?;
        let is_storage =
            |version: &&Node| version.get("storage").and_then(Node::as_bool) == Some(true);
        let storage = text(versions.iter().find(is_storage)?, &["name"])?;
        let stored = crd
            .get("status")
            .and_then(|status| status.get("storedVersions"));
        let stored = stored.and_then(Node::as_list).unwrap_or_default();
        Some(Self {
            name: text(crd, &["metadata", "name"])?,
            served: Served {
                group: text(crd, &["spec", "group"])?.as_str().into(),
                version: storage.as_str().into(),
                kind: text(crd, &["spec", "names", "kind"])?.as_str().into(),
                plural: text(crd, &["spec", "names", "plural"])?.as_str().into(),
                namespaced: text(crd, &["spec", "scope"])? == "Namespaced",
            },
            stored: stored
                .iter()
                .filter_map(Node::as_str)
                .map(str::to_owned)
                .collect(),
        })
    }

    fn is_called(&self, name: &str) -> bool {
        let is = |other: &str| other.eq_ignore_ascii_case(name);
        let kind = format!("{}.{}", self.served.kind, self.served.group);
        is(&self.name) || is(&self.served.kind) || is(&self.served.plural) || is(&kind)
    }
}

/// The progress of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationProgress {
    /// Objects that are stored in the storage version now.
    pub done: usize,
    /// The last object of the last complete page, as `namespace/name`.
    pub last: Option<String>,
}

/// Returns the definition of that kind, plural or full name.
///
/// # Errors
/// [`Error::Unknown`], [`Error::Ambiguous`] and [`Error::Request`].
pub async fn find(cluster: &Cluster, name: &str) -> Result<StoredDefinition, Error> {
    let (mut found, mut next) = (Vec::new(), None::<String>);
    loop {
        let (crds, scope) = (Served::crds(), Scope::default());
        let page = cluster
            .list_page(&crds, &scope, PAGE, next.as_deref())
            .await;
        let page = page.map_err(|source| Error::Request {
            what: "list CustomResourceDefinitions".to_owned(),
            source,
        })?;
        let definitions = page.items.iter().filter_map(StoredDefinition::read);
        found.extend(definitions.filter(|one| one.is_called(name)));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    match found.len() {
        0 => Err(Error::Unknown(name.to_owned())),
        1 => Ok(found.remove(0)),
        _ => Err(Error::Ambiguous {
            name: name.to_owned(),
            candidates: found.into_iter().map(|one| one.name).collect(),
        }),
    }
}

/// Writes all objects of the definition after `from` again, then prunes `storedVersions`. `report` is called after each page.
///
/// # Errors
/// [`Error`]; the progress that was reported last is where to continue.
pub async fn migrate(
    cluster: &Cluster,
    definition: &StoredDefinition,
    from: Option<&str>,
    mut report: impl FnMut(&MigrationProgress),
) -> Result<MigrationProgress, Error> {
    let mut progress = MigrationProgress {
        last: from.map(str::to_owned),
        ..MigrationProgress::default()
    };
    let served = &definition.served;
    let mut next = None::<String>;
    loop {
        let scope = Scope::default();
        let page = match cluster
            .list_page(served, &scope, PAGE, next.as_deref())
            .await
        {
            // The list is too old to continue: it starts again, after the last object.
            Err(ClusterError::Gone(_)) if next.is_some() => {
                next = None;
                continue;
            }
            page => page.map_err(|source| Error::Request {
                what: format!("list {}", definition.name),
                source,
            })?,
        };
        let keys: Vec<ObjectKey> = page.items.iter().filter_map(key).collect();
        let fresh = keys
            .iter()
            .filter(|key| is_after(key, progress.last.as_deref()));
        let fresh: Vec<ObjectKey> = fresh.cloned().collect();
        let written = rewrite(cluster, served, &fresh).await?;
        progress.done += written;
        if let Some(last) = keys
            .last()
            .filter(|key| is_after(key, progress.last.as_deref()))
        {
            progress.last = Some(last.to_string());
        }
        report(&progress);
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    prune(cluster, definition).await?;
    Ok(progress)
}

/// Writes objects again; returns how many still existed.
async fn rewrite(cluster: &Cluster, served: &Served, keys: &[ObjectKey]) -> Result<usize, Error> {
    let empty = Node::from(&json!({}));
    let patches = stream::iter(keys).map(|key| {
        let empty = &empty;
        async move {
            match cluster.merge_patch(served, key, None, MANAGER, empty).await {
                Ok(_) => Ok(1),
                // It was deleted meanwhile.
                Err(ClusterError::NotFound(_)) => Ok(0),
                Err(source) => Err(Error::Request {
                    what: format!("write {} {key}", served.plural),
                    source,
                }),
            }
        }
    });
    let mut done = 0;
    let mut patches = patches.buffer_unordered(AT_ONCE);
    while let Some(written) = patches.next().await {
        done += written?;
    }
    Ok(done)
}

/// Removes the versions in which nothing is stored any more.
async fn prune(cluster: &Cluster, definition: &StoredDefinition) -> Result<(), Error> {
    let (name, crds) = (&definition.name, Served::crds());
    let failed = |what: &str| {
        let what = format!("{what} CustomResourceDefinition {name}");
        move |source| Error::Request { what, source }
    };
    let crd = cluster.find(&crds, name).await.map_err(failed("read"))?;
    let crd = crd.ok_or_else(|| Error::Unknown(name.clone()))?;
    let now = StoredDefinition::read(&crd).ok_or_else(|| Error::Incomplete(name.clone()))?;
    if now.served.version != definition.served.version {
        return Err(Error::Changed(name.clone()));
    }
    let wanted = BTreeSet::from([definition.served.version.to_string()]);
    if now.stored.iter().cloned().collect::<BTreeSet<_>>() == wanted {
        return Ok(());
    }
    let patch = json!({
        "metadata": { "resourceVersion": crd.meta_text("resourceVersion") },
        "status": { "storedVersions": wanted },
    });
    let key = ObjectKey {
        namespace: None,
        name: name.as_str().into(),
    };
    let body = Node::from(&patch);
    let patched = cluster.merge_patch(&crds, &key, Some("status"), MANAGER, &body);
    patched
        .await
        .map(drop)
        .map_err(failed("patch the status of"))
}

fn key(object: &Node) -> Option<ObjectKey> {
    object.meta_text("name")?;
    Some(ObjectKey::of(object))
}

/// True if the object comes after `last` in the API server's order, which is that of its storage keys.
fn is_after(key: &ObjectKey, last: Option<&str>) -> bool {
    last.is_none_or(|last| key.to_string().as_str() > last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_found_by_any_of_its_names() {
        let crd = json!({
            "metadata": { "name": "jobs.demo.example" },
            "spec": {
                "group": "demo.example", "scope": "Namespaced", "names": { "kind": "Job", "plural": "jobs" },
                "versions": [{ "name": "v1", "storage": false }, { "name": "v2", "storage": true }],
            },
            "status": { "storedVersions": ["v1", "v2"] },
        });
        let definition = StoredDefinition::read(&Node::from(&crd)).unwrap();
        assert_eq!(&*definition.served.version, "v2");
        assert_eq!(definition.stored, ["v1", "v2"]);
        for name in [
            "jobs.demo.example",
            "Job",
            "job",
            "jobs",
            "Job.demo.example",
        ] {
            assert!(definition.is_called(name), "{name}");
        }
        for name in ["jobs.other", "demo.example", ""] {
            assert!(!definition.is_called(name), "{name}");
        }
        assert_eq!(StoredDefinition::read(&Node::from(&json!({}))), None);
    }

    #[test]
    fn objects_up_to_the_last_one_are_left_out() {
        let key = |namespace: &str, name: &str| ObjectKey {
            namespace: Some(namespace.into()),
            name: name.into(),
        };
        assert!(is_after(&key("a", "x"), None));
        assert!(!is_after(&key("a", "x"), Some("a/x")));
        assert!(is_after(&key("a", "y"), Some("a/x")));
        assert!(is_after(&key("b", "a"), Some("a/x")));
    }
}
