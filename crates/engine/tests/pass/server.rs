//! One object as the API server stores it: its leaves, and their owners.
//!
//! Source: Kubernetes, "Server-Side Apply"; structured-merge-diff, `Merger.Apply` and `Merger.Update`. Admission, validation and
//! defaults (except for list keys) are not simulated.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::leaves::{Leaves, Trail, fields_v1, leaves, object};

/// The operation of an entry of `managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// A field manager and its operation.
pub(crate) type Writer = (String, Operation);

/// A stored object.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// `apiVersion`, `kind` and the identity in `metadata`.
    head: Value,
    pub(crate) leaves: Leaves,
    pub(crate) owners: BTreeMap<Writer, BTreeSet<Trail>>,
    version: u64,
}

impl Stored {
    /// Returns the object that a manager's first write creates.
    pub(crate) fn made(object: &Value, uid: &str, manager: &str, operation: Operation) -> Self {
        let metadata = &object["metadata"];
        let mut head = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"],
            "metadata": { "name": metadata["name"], "uid": uid },
        });
        if let Some(namespace) = metadata.get("namespace") {
            head["metadata"]["namespace"] = namespace.clone();
        }
        let leaves = leaves(object);
        let owned = leaves.keys().cloned().collect();
        Self {
            head,
            leaves,
            owners: [((manager.to_owned(), operation), owned)].into(),
            version: 100,
        }
    }

    /// Returns the same object with a creation time that is this number of seconds later.
    pub(crate) fn born(mut self, seconds: usize) -> Self {
        self.head["metadata"]["creationTimestamp"] =
            json!(format!("2026-03-01T07:00:{seconds:02}Z"));
        self
    }

    /// Writes the status like the object's own controller in Kubernetes.
    pub(crate) fn set_status(&mut self, status: &Value) {
        self.head["status"] = status.clone();
        self.version += 1;
    }

    /// Returns `metadata.resourceVersion`.
    pub(crate) fn version(&self) -> String {
        self.version.to_string()
    }

    /// Applies server-side. Without `force`, it is refused if other managers own other values of the same paths.
    pub(crate) fn apply(
        &mut self,
        wanted: &Value,
        manager: &str,
        force: bool,
    ) -> Result<(), BTreeSet<Trail>> {
        let me = (manager.to_owned(), Operation::Apply);
        let wanted = leaves(wanted);
        let differs = |trail: &&Trail| self.leaves.get(*trail) != wanted.get(*trail);
        let changed: BTreeSet<Trail> = wanted.keys().filter(differs).cloned().collect();
        let others = self.owners.iter().filter(|(writer, _)| **writer != me);
        let conflicts: BTreeSet<Trail> = others
            .flat_map(|(_, owned)| owned.intersection(&changed).cloned())
            .collect();
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        let before = (self.leaves.clone(), self.owners.clone());
        let owned: BTreeSet<Trail> = wanted.keys().cloned().collect();
        let released = self
            .owners
            .insert(me.clone(), owned.clone())
            .unwrap_or_default();
        self.leaves.extend(wanted);
        for (writer, theirs) in &mut self.owners {
            if *writer != me {
                theirs.retain(|trail| !changed.contains(trail));
            }
        }
        let is_free = |trail: &&Trail| !self.owners.values().any(|owned| owned.contains(*trail));
        let freed: Vec<Trail> = released
            .difference(&owned)
            .filter(is_free)
            .cloned()
            .collect();
        for trail in &freed {
            self.leaves.remove(trail);
        }
        self.settle(before);
        Ok(())
    }

    /// Replaces the object: `edit` changes the leaves.
    pub(crate) fn update(&mut self, manager: &str, edit: impl FnOnce(&mut Leaves)) {
        let before = (self.leaves.clone(), self.owners.clone());
        edit(&mut self.leaves);
        let (old, new) = (&before.0, &self.leaves);
        let written: BTreeSet<Trail> = new
            .iter()
            .filter(|(trail, value)| old.get(*trail) != Some(value))
            .map(|(trail, _)| trail.clone())
            .collect();
        let lost = |trail: &Trail| written.contains(trail) || !new.contains_key(trail);
        for owned in self.owners.values_mut() {
            owned.retain(|trail| !lost(trail));
        }
        let me = (manager.to_owned(), Operation::Update);
        self.owners.entry(me).or_default().extend(written);
        self.settle(before);
    }

    /// Increments the resourceVersion if anything changed, and removes entries that own nothing.
    fn settle(&mut self, (leaves, owners): (Leaves, BTreeMap<Writer, BTreeSet<Trail>>)) {
        self.owners.retain(|_, owned| !owned.is_empty());
        if leaves != self.leaves || owners != self.owners {
            self.version += 1;
        }
    }

    /// Returns the owners of a path.
    pub(crate) fn owners_of(&self, trail: &Trail) -> Vec<&Writer> {
        self.owners
            .iter()
            .filter(|(_, owned)| owned.contains(trail))
            .map(|(writer, _)| writer)
            .collect()
    }

    /// Returns the object as a watch reports it.
    pub(crate) fn object(&self) -> Value {
        let mut whole = object(&self.leaves);
        merge(&mut whole, &self.head);
        let entries = self.owners.iter().map(|((manager, operation), owned)| {
            json!({
                "manager": manager, "operation": format!("{operation:?}"), "apiVersion": self.head["apiVersion"],
                "fieldsType": "FieldsV1", "fieldsV1": fields_v1(owned.iter()),
            })
        });
        whole["metadata"]["managedFields"] = Value::Array(entries.collect());
        whole["metadata"]["resourceVersion"] = json!(self.version());
        whole
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
