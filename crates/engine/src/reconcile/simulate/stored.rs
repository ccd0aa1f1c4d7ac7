//! Objects in the simulated cluster.

use jiff::Timestamp;

use super::super::{
    child_metadata::set_in,
    kstatus::{self, Readiness},
    metadata::{Malformed, group_kind},
    record::{ChildRecord, ObservedChild},
};
use orkestra_object::value::{Key, Node, hash_text};
use orkestra_plan::{ChildKey, GroupKind, ObjectKey, OperatorPlan};

/// Fields of `metadata` that the API server writes.
const SERVER: [&str; 4] = ["creationTimestamp", "generation", "managedFields", "uid"];

/// An object in the simulated cluster.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) object: Node,
    /// The cycle that wrote it last; 0 for objects that exist from the start.
    pub(crate) written: u32,
    /// The index of the subject that created it.
    pub(crate) subject: Option<usize>,
}

impl Stored {
    /// Returns its record for a pass of `plan`.
    pub(crate) fn observe(
        &self,
        key: &ChildKey,
        plan: &OperatorPlan,
    ) -> Result<ObservedChild, Malformed> {
        let reads = plan.reads.of_children(&key.kind);
        let record = ChildRecord::read(&key.kind, &self.object, reads)?;
        Ok(ObservedChild {
            key: key.clone(),
            record: record.into(),
        })
    }

    pub(crate) fn is_ready(&self, kind: &GroupKind) -> bool {
        kstatus::readiness(kind, &self.object) == Readiness::Current
    }

    /// Returns the object as the API server creates it.
    pub(crate) fn created(
        object: &Node,
        key: &ChildKey,
        (serial, now, manager): (u64, Timestamp, &str),
    ) -> Node {
        let mut object = object.clone();
        let uid = uid(&format!("{key} {serial}"));
        let fields = [
            ("uid", Node::from(uid)),
            ("creationTimestamp", Node::from(now.to_string())),
            ("generation", Node::Int(1)),
            ("managedFields", written_by(manager)),
        ];
        for (name, value) in fields {
            set_in(&mut object, &["metadata"], name, value);
        }
        version(&mut object, serial);
        object
    }

    /// Replaces the declared fields; fields of the API server and of controllers stay.
    pub(crate) fn update(&mut self, rendered: &Node, serial: u64) {
        let mut object = rendered.clone();
        for name in SERVER {
            if let Some(kept) = self.object.meta(name) {
                set_in(&mut object, &["metadata"], name, kept.clone());
            }
        }
        if self.object.get("spec") != object.get("spec") {
            next_generation(&mut object);
        }
        if let (Some(status), Node::Map(map)) = (self.object.get("status"), &mut object) {
            map.insert(Key::from("status"), status.clone());
        }
        version(&mut object, serial);
        self.object = object;
    }
}

/// Derives a uid from a text.
pub(crate) fn uid(text: &str) -> String {
    let hash = hash_text(text);
    let digits: String = hash
        .chars()
        .chain("0".repeat(32).chars())
        .take(32)
        .collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    parts.join("-")
}

/// Sets the resourceVersion of an object.
pub(crate) fn version(object: &mut Node, serial: u64) {
    let version = Node::from(serial.to_string());
    set_in(object, &["metadata"], "resourceVersion", version);
}

/// Increments the generation.
pub(crate) fn next_generation(object: &mut Node) {
    let before = object.meta("generation");
    let next = before.and_then(Node::as_i64).unwrap_or_default() + 1;
    set_in(object, &["metadata"], "generation", Node::Int(next));
}

/// Returns the managed fields of objects that one manager wrote: passes check only whether it did, and whether the data are
/// its own.
fn written_by(manager: &str) -> Node {
    let entry = Node::object([
        ("manager", Node::from(manager)),
        ("operation", Node::from("Apply")),
        ("fieldsV1", Node::object([("f:data", Node::object([]))])),
    ]);
    Node::List([entry].into())
}

/// Returns the key of an object.
pub(crate) fn key_of(object: &Node) -> Result<ChildKey, Malformed> {
    Ok(ChildKey {
        kind: group_kind(object)?,
        object: ObjectKey {
            namespace: object.meta_text("namespace").map(Key::from),
            name: object.meta_text("name").ok_or(Malformed("name"))?.into(),
        },
    })
}

/// Returns the list with this text added; none if it is already there.
pub(crate) fn with_text(list: Option<&Node>, text: &str) -> Option<Node> {
    let items = list.and_then(Node::as_list).unwrap_or_default();
    let is_there = items.iter().any(|item| item.as_str() == Some(text));
    let more = items.iter().cloned().chain([Node::from(text)]);
    (!is_there).then(|| Node::from(more.collect::<Vec<_>>()))
}
