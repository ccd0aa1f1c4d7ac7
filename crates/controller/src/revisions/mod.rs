//! Accepted revisions of a Katalog, stored as `ControllerRevision`s before they run.
//!
//! A revision that does not compile never replaces the last good one, and a restart finds the last good one here. The Katalog
//! owns them, so Kubernetes collects them with it. A large one is compressed, and split over several objects.

mod packed;

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::api::DynamicObject;
use orkestra_cluster::requests::Cluster;
use orkestra_compiler::compilation::essence;
use orkestra_language::api::names;
use orkestra_object::value::{self, Node};
use orkestra_plan::KatalogRef;
use serde_json::{Map, Value, json};

pub(crate) use self::packed::TooLarge;
use self::packed::{ChunkPosition, Packed};
use super::calls::{RequestError, ServedResource};

/// The maximum length of an object name.
const NAME_BYTES: usize = 253;
/// The field of a revision's data, absent in a Katalog, for the Motifs that it uses.
const MOTIFS: &str = "motifs";
/// The field of a revision's data, absent in its document, for the artifacts that it is composed from.
const ARTIFACTS: &str = "artifacts";
/// The number of hexadecimal digits of the hash in a name.
const HASH_DIGITS: usize = 10;

/// The stored revisions of one Katalog.
#[derive(Clone, Debug)]
pub(crate) struct Revisions {
    resource: ServedResource,
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
    /// When it was accepted.
    pub(crate) accepted: Option<Timestamp>,
    /// The field manager that wrote it, if its Katalog said so.
    pub(crate) author: Option<String>,
    packed: Packed,
}

/// How a revision is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping<'a> {
    /// The name of the revision in force, which is not removed.
    pub(crate) in_force: Option<&'a str>,
    /// The number of revisions that are kept before the newest one.
    pub(crate) limit: usize,
    /// The field manager that wrote the newest one.
    pub(crate) author: Option<&'a str>,
}

/// The content of a revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RevisionContent {
    /// The Katalog's document, without status.
    pub(crate) document: Value,
    /// The Motifs that it uses, by name.
    pub(crate) motifs: Map<String, Value>,
    /// The artifacts that it is composed from, by the identity of their sources.
    pub(crate) sources: Map<String, Value>,
}

/// Why a revision is not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// It is too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The API server refused, or did not answer.
    #[error(transparent)]
    Call(#[from] RequestError),
}

/// The stored revisions of a Katalog, and the parts of large ones.
#[derive(Debug, Default)]
struct Stored {
    /// Oldest first.
    revisions: Vec<Revision>,
    /// The names of the parts, by their place.
    parts: BTreeMap<ChunkPosition, String>,
}

impl Revisions {
    /// Returns the revisions of the Katalog with that uid: another one of the same name has its own.
    pub(crate) fn new(cluster: &Cluster, katalog: &KatalogRef, uid: &str) -> Self {
        let resource = ServedResource::revisions(cluster);
        Self {
            resource,
            katalog: katalog.clone(),
            uid: uid.to_owned(),
        }
    }

    /// Lists all revisions, oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<Revision>, RequestError> {
        Ok(self.stored().await?.revisions)
    }

    async fn stored(&self) -> Result<Stored, RequestError> {
        let labels = format!(
            "{}={}",
            names::LABEL_KATALOG,
            names::label_value(&self.katalog.name)
        );
        let found = self
            .resource
            .list(Some(&self.katalog.namespace), Some(&labels))
            .await?;
        let own = found.into_iter().filter(|object| self.owns(object));
        Ok(Stored::of(own))
    }

    /// Makes the content the newest revision, and removes those that are too old, except the one in force; returns its name.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: nothing was written. [`StoreError::Call`]: what was stored before still is.
    pub(crate) async fn store(
        &self,
        content: &RevisionContent,
        keeping: Keeping<'_>,
    ) -> Result<String, StoreError> {
        let data = content.data();
        let packed = Packed::of(&data)?;
        let name = name(&self.katalog.name, &self.uid, &data);
        let stored = self.stored().await?;
        let newest = (stored.revisions.last()).map_or(0, |revision| revision.number);
        let same = (stored.revisions.iter()).find(|revision| revision.name == name);
        let is_newest = |same: &Revision| same.number == newest && same.packed.holds(&data);
        if !same.is_some_and(is_newest) {
            let there = same.map_or(&[][..], |same| &same.packed.parts);
            self.write_parts((&stored, there), &name, &packed).await?;
            // The API server compares `data` as bytes and encodes it again for a patch, so a patch is refused if the text
            // contains `<`, `>` or `&`: an accepted revision is deleted and created again, never changed. Between the two
            // requests the running one is still stored.
            let object = self.object(&name, newest + 1, keeping.author, &packed.head);
            self.write(same.is_some(), &name, object).await?;
        }
        let superfluous = superfluous(&stored.revisions, &name, keeping.limit);
        let mut old: Vec<&str> = superfluous;
        old.retain(|old| keeping.in_force != Some(old));
        for old in &old {
            self.resource.delete(&self.katalog.namespace, old).await?;
        }
        for part in stored.parts_to_remove(&name, packed.parts.len(), &old) {
            self.resource.delete(&self.katalog.namespace, part).await?;
        }
        Ok(name)
    }

    /// Writes the parts of a revision, before its own object: so a revision that is found is whole.
    async fn write_parts(
        &self,
        (stored, there): (&Stored, &[String]),
        head: &str,
        packed: &Packed,
    ) -> Result<(), RequestError> {
        for (index, content) in packed.parts.iter().enumerate() {
            if there.get(index) == Some(content) {
                continue;
            }
            let place = ChunkPosition {
                of: head.to_owned(),
                number: index + 1,
            };
            let name = part_name(head, place.number);
            // A part that was left by a process that ended may have other content.
            let is_there = stored.parts.contains_key(&place);
            let object = self.object(&name, 0, None, &packed::part(&place, content));
            self.write(is_there, &name, object).await?;
        }
        Ok(())
    }

    /// Creates an object; one that is there already is deleted first.
    async fn write(&self, is_there: bool, name: &str, object: Value) -> Result<(), RequestError> {
        let namespace = self.katalog.namespace.as_str();
        if is_there {
            self.resource.delete(namespace, name).await?;
        }
        self.resource.create(namespace, name, &object).await?;
        Ok(())
    }

    fn owns(&self, object: &DynamicObject) -> bool {
        let owners = object
            .metadata
            .owner_references
            .as_deref()
            .unwrap_or_default();
        owners.iter().any(|owner| owner.uid == self.uid)
    }

    fn object(&self, name: &str, number: i64, author: Option<&str>, document: &Value) -> Value {
        let KatalogRef {
            namespace,
            name: katalog,
            kind,
        } = &self.katalog;
        let owner = json!({
            "apiVersion": names::API_VERSION, "kind": kind.kind(), "name": katalog, "uid": self.uid, "controller": true,
        });
        let mut metadata = json!({
            "name": name,
            "namespace": namespace,
            "labels": { names::LABEL_KATALOG: names::label_value(katalog) },
            "ownerReferences": [owner],
        });
        if let Some(author) = author {
            metadata["annotations"] = json!({ names::ANNOTATION_APPLIED_BY: author });
        }
        json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "revision": number, "data": document })
    }
}

impl Stored {
    fn of(objects: impl Iterator<Item = DynamicObject>) -> Self {
        let mut stored = Self::default();
        let mut chunks = BTreeMap::new();
        for object in objects {
            let (metadata, data) = (object.metadata, object.data.get("data"));
            let (Some(name), Some(data)) = (metadata.name, data) else {
                continue;
            };
            if let Some((place, chunk)) = packed::read_part(data) {
                chunks.insert(place.clone(), chunk.to_owned());
                stored.parts.insert(place, name);
            } else if let Some(number) = object.data.get("revision").and_then(Value::as_i64) {
                let packed = Packed {
                    head: data.clone(),
                    parts: Vec::new(),
                };
                let annotations = metadata.annotations.unwrap_or_default();
                stored.revisions.push(Revision {
                    name,
                    number,
                    accepted: metadata.creation_timestamp.map(|time| time.0),
                    author: annotations.get(names::ANNOTATION_APPLIED_BY).cloned(),
                    packed,
                });
            }
        }
        for revision in &mut stored.revisions {
            let numbers = 1..=Packed::parts_of(&revision.packed.head);
            let take = |number| {
                let of = revision.name.clone();
                chunks.remove(&ChunkPosition { of, number })
            };
            revision.packed.parts = numbers.map_while(take).collect();
        }
        stored.revisions.sort_by_key(|revision| revision.number);
        stored
    }

    /// Returns the names of parts that no revision needs once `accepted`, which has so many, is stored and `removed` are not.
    fn parts_to_remove<'a>(
        &'a self,
        accepted: &str,
        parts: usize,
        removed: &[&str],
    ) -> Vec<&'a str> {
        let is_needed = |place: &ChunkPosition| {
            if place.of == accepted {
                return place.number <= parts;
            }
            let of = self.revisions.iter().find(|one| one.name == place.of);
            of.is_some() && !removed.contains(&&*place.of)
        };
        let superfluous = self.parts.iter().filter(|(place, _)| !is_needed(place));
        superfluous.map(|(_, name)| &**name).collect()
    }
}

impl Revision {
    /// Returns its content; `None` if it cannot be read.
    pub(crate) fn content(&self) -> Option<RevisionContent> {
        Some(RevisionContent::of(self.packed.unpack()?))
    }
}

impl RevisionContent {
    fn of(mut data: Value) -> Self {
        let mut take = |name: &str| {
            let fields = data.as_object_mut();
            match fields.and_then(|fields| fields.remove(name)) {
                Some(Value::Object(taken)) => taken,
                _ => Map::new(),
            }
        };
        let (motifs, sources) = (take(MOTIFS), take(ARTIFACTS));
        Self {
            document: data,
            motifs,
            sources,
        }
    }

    /// Returns the data of a revision: the parts of a document that affect what runs, and the Motifs and sources that it uses.
    pub(crate) fn data(&self) -> Value {
        let mut data = essence(&self.document);
        if let Some(fields) = data.as_object_mut() {
            for (name, used) in [(MOTIFS, &self.motifs), (ARTIFACTS, &self.sources)] {
                if !used.is_empty() {
                    fields.insert(name.to_owned(), Value::Object(used.clone()));
                }
            }
        }
        data
    }
}

/// Returns `<katalog>-<hash>`; a name that would be too long is cut before the hash.
fn name(katalog: &str, uid: &str, document: &Value) -> String {
    let mut hash = value::hash(&Node::from(&json!({ "uid": uid, "document": document })));
    hash.truncate(HASH_DIGITS);
    named(katalog, &hash)
}

/// Returns the name of a part of a revision.
fn part_name(revision: &str, number: usize) -> String {
    let (stem, hash) = revision.rsplit_once('-').unwrap_or(("", revision));
    named(stem, &format!("{hash}-p{number}"))
}

/// Returns `<stem>-<end>` with a stem that is short enough.
fn named(stem: &str, end: &str) -> String {
    let room = NAME_BYTES.saturating_sub(end.len() + 1);
    let stem = stem.get(..room.min(stem.len())).unwrap_or_default();
    format!("{}-{end}", stem.trim_end_matches(['-', '.']))
}

/// Returns the names of stored revisions, oldest first, that need not be kept if `accepted` is the newest and so many are kept
/// before it.
fn superfluous<'a>(stored: &'a [Revision], accepted: &str, kept: usize) -> Vec<&'a str> {
    let earlier: Vec<_> = stored
        .iter()
        .map(|revision| revision.name.as_str())
        .filter(|name| *name != accepted)
        .collect();
    let cut = earlier.len().saturating_sub(kept);
    earlier[..cut].to_vec()
}

#[cfg(test)]
mod tests;
