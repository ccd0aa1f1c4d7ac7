//! Accepted revisions of a Katalog, stored as `ControllerRevision`s before they run.
//!
//! A revision that does not compile never replaces the last good one, and a restart finds the last good one here. The Katalog
//! owns them, so Kubernetes collects them with it.

use kube::{Client, api::DynamicObject};
use orkestra_core::{
    api::names,
    plan::KatalogRef,
    value::{self, Node},
};
use serde_json::{Map, Value, json};

use super::calls::{CallError, Resource};

/// How many accepted revisions are kept beside the newest.
const KEPT: usize = 3;
/// The maximum length of an object name.
const NAME_BYTES: usize = 253;
/// The field of a revision's data, absent in a Katalog, for the Motifs that it uses.
const MOTIFS: &str = "motifs";
/// The field of a revision's data, absent in its document, for the artifacts that it is composed from.
const ARTIFACTS: &str = "artifacts";
/// The fields of `spec` that say how a revision is run, and not what runs.
const UNSTORED: [&str; 3] = ["approve", "interval", "suspend"];
/// The number of hexadecimal digits of the hash in a name.
const HASH_DIGITS: usize = 10;

/// The stored revisions of one Katalog.
#[derive(Clone, Debug)]
pub(crate) struct Revisions {
    resource: Resource,
    katalog: KatalogRef,
    uid: String,
}

/// One stored revision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Revision {
    /// The name of the `ControllerRevision`.
    pub(crate) name: String,
    /// Increases with every acceptance, even if an earlier revision is accepted again.
    pub(crate) number: i64,
    /// The Katalog's document, without status.
    pub(crate) document: Value,
    /// The Motifs that it uses, by name.
    pub(crate) motifs: Map<String, Value>,
    /// The artifacts that it is composed from, by the identity of their sources.
    pub(crate) sources: Map<String, Value>,
}

/// The content of a revision: document, Motifs and sources.
type Content<'a> = (&'a Value, &'a Map<String, Value>, &'a Map<String, Value>);

impl Revisions {
    /// Returns the revisions of the Katalog with that uid: another one of the same name has its own.
    pub(crate) fn new(client: &Client, katalog: &KatalogRef, uid: &str) -> Self {
        let resource = Resource::revisions(client);
        Self {
            resource,
            katalog: katalog.clone(),
            uid: uid.to_owned(),
        }
    }

    /// Lists all revisions, oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<Revision>, CallError> {
        let labels = format!(
            "{}={}",
            names::LABEL_KATALOG,
            names::label_value(&self.katalog.name)
        );
        let found = self
            .resource
            .list(Some(&self.katalog.namespace), Some(&labels))
            .await?;
        let mut revisions: Vec<_> = found
            .into_iter()
            .filter(|object| self.owns(object))
            .filter_map(read)
            .collect();
        revisions.sort_by_key(|revision| revision.number);
        Ok(revisions)
    }

    /// Makes `document`, with the Motifs that it uses, the newest revision, and removes those that are too old, except the
    /// one that is `in_force`; returns its name.
    pub(crate) async fn store(
        &self,
        (document, motifs, sources): Content<'_>,
        in_force: Option<&str>,
    ) -> Result<String, CallError> {
        let document = data(document, motifs, sources);
        let name = name(&self.katalog.name, &self.uid, &document);
        let stored = self.list().await?;
        let namespace = self.katalog.namespace.as_str();
        let newest = stored.last().map_or(0, |revision| revision.number);
        let same = stored.iter().find(|revision| revision.name == name);
        let is_newest = |same: &Revision| {
            same.number == newest && data(&same.document, &same.motifs, &same.sources) == document
        };
        if !same.is_some_and(is_newest) {
            // The API server compares `data` as bytes and encodes it again for a patch, so a patch is refused if the text
            // contains `<`, `>` or `&`: an accepted revision is deleted and created again, never changed. Between the two
            // requests the running one is still stored.
            if same.is_some() {
                self.resource.delete(namespace, &name).await?;
            }
            self.resource
                .create(namespace, &name, &self.object(&name, newest + 1, &document))
                .await?;
        }
        let superfluous = superfluous(&stored, &name);
        for old in superfluous.into_iter().filter(|old| in_force != Some(old)) {
            self.resource.delete(namespace, old).await?;
        }
        Ok(name)
    }

    fn owns(&self, object: &DynamicObject) -> bool {
        let owners = object
            .metadata
            .owner_references
            .as_deref()
            .unwrap_or_default();
        owners.iter().any(|owner| owner.uid == self.uid)
    }

    fn object(&self, name: &str, number: i64, document: &Value) -> Value {
        let KatalogRef {
            namespace,
            name: katalog,
            kind,
        } = &self.katalog;
        let owner = json!({
            "apiVersion": names::API_VERSION, "kind": kind.kind(), "name": katalog, "uid": self.uid, "controller": true,
        });
        let metadata = json!({
            "name": name,
            "namespace": namespace,
            "labels": { names::LABEL_KATALOG: names::label_value(katalog) },
            "ownerReferences": [owner],
        });
        json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "revision": number, "data": document })
    }
}

fn read(object: DynamicObject) -> Option<Revision> {
    let number = object.data.get("revision")?.as_i64()?;
    let mut document = object.data.get("data")?.clone();
    let mut take = |name: &str| {
        let fields = document.as_object_mut();
        match fields.and_then(|fields| fields.remove(name)) {
            Some(Value::Object(taken)) => taken,
            _ => Map::new(),
        }
    };
    let (motifs, sources) = (take(MOTIFS), take(ARTIFACTS));
    Some(Revision {
        name: object.metadata.name?,
        number,
        document,
        motifs,
        sources,
    })
}

/// Returns the data of a revision: the parts of a document that affect what runs, and the Motifs and sources that it uses.
pub(crate) fn data(
    document: &Value,
    motifs: &Map<String, Value>,
    sources: &Map<String, Value>,
) -> Value {
    let mut data = essence(document);
    if let Some(fields) = data.as_object_mut() {
        for (name, used) in [(MOTIFS, motifs), (ARTIFACTS, sources)] {
            if !used.is_empty() {
                fields.insert(name.to_owned(), Value::Object(used.clone()));
            }
        }
    }
    data
}

/// Returns the parts of a Katalog or a Motif that affect what runs: everything but status and the fields that say how it is
/// run, and only the identity from the metadata.
pub(crate) fn essence(document: &Value) -> Value {
    let mut essence = document.clone();
    if let Some(fields) = essence.as_object_mut() {
        fields.remove("status");
        let field = |name: &str| {
            document
                .pointer(&format!("/metadata/{name}"))
                .cloned()
                .unwrap_or_default()
        };
        fields.insert(
            "metadata".to_owned(),
            json!({ "namespace": field("namespace"), "name": field("name") }),
        );
        if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
            spec.retain(|name, _| !UNSTORED.contains(&name.as_str()));
        }
    }
    essence
}

/// Returns `<katalog>-<hash>`; a name that would be too long is cut before the hash.
fn name(katalog: &str, uid: &str, document: &Value) -> String {
    let mut hash = value::hash(&Node::from(&json!({ "uid": uid, "document": document })));
    hash.truncate(HASH_DIGITS);
    let room = NAME_BYTES - hash.len() - 1;
    let stem = katalog[..room.min(katalog.len())].trim_end_matches(['-', '.']);
    format!("{stem}-{hash}")
}

/// Returns the names of stored revisions, oldest first, that need not be kept if `accepted` is the newest.
fn superfluous<'a>(stored: &'a [Revision], accepted: &str) -> Vec<&'a str> {
    let earlier: Vec<_> = stored
        .iter()
        .map(|revision| revision.name.as_str())
        .filter(|name| *name != accepted)
        .collect();
    let cut = earlier.len().saturating_sub(KEPT);
    earlier[..cut].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(name: &str, number: i64) -> Revision {
        Revision {
            name: name.to_owned(),
            number,
            document: Value::Null,
            motifs: Map::new(),
            sources: Map::new(),
        }
    }

    #[test]
    fn the_three_before_the_accepted_revision_are_kept() {
        let stored: Vec<_> = (1..=6)
            .map(|number| revision(&format!("r{number}"), number))
            .collect();
        assert_eq!(superfluous(&stored, "new"), ["r1", "r2", "r3"]);
        assert_eq!(
            superfluous(&stored, "r1"),
            ["r2", "r3"],
            "a revision accepted again is not old"
        );
        assert_eq!(superfluous(&stored[..3], "new"), Vec::<&str>::new());
    }

    #[test]
    fn the_essence_of_a_katalog_leaves_out_what_does_not_change_what_runs() {
        let one = json!({ "kind": "Katalog", "metadata": { "name": "k", "namespace": "n", "resourceVersion": "1" }, "spec": { "crds": {} }, "status": {} });
        let mut other = one.clone();
        other["metadata"]["resourceVersion"] = json!("2");
        other["status"] = json!({ "ready": "1/1" });
        other["spec"]["suspend"] = json!(true);
        assert_eq!(essence(&one), essence(&other));
        assert_eq!(essence(&one)["spec"], one["spec"]);
    }

    #[test]
    fn a_revision_holds_the_motifs_that_it_took() {
        let document =
            json!({ "kind": "Katalog", "metadata": { "name": "k", "namespace": "n" }, "spec": {} });
        let motifs = Map::from_iter([("reeds".to_owned(), json!({ "kind": "Motif" }))]);
        let object = json!({ "metadata": { "name": "k-1" }, "revision": 4, "data": data(&document, &motifs, &Map::new()) });
        let stored = read(serde_json::from_value(object).unwrap()).unwrap();
        assert_eq!((stored.number, stored.document), (4, essence(&document)));
        assert_eq!(stored.motifs, motifs);
        assert_eq!(
            data(&document, &Map::new(), &Map::new()),
            essence(&document)
        );
    }

    #[test]
    fn names_are_legal_and_differ_between_documents_and_uids() {
        let long = "k".repeat(253);
        let one = name(&long, "u1", &json!({ "spec": 1 }));
        assert_eq!(one.len(), 253);
        assert!(names::check_dns1123_subdomain(&one).is_ok());
        assert_ne!(one, name(&long, "u1", &json!({ "spec": 2 })));
        assert_ne!(one, name(&long, "u2", &json!({ "spec": 1 })));
    }
}
