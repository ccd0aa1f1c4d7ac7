//! The metadata that makes a rendered object a custom resource's child: name, labels, annotations, owner reference.

use std::sync::LazyLock;

use super::{
    cycle::Rendered,
    identity::Identity,
    labels,
    record::{ChildRecord, Observed, OwnerMark, child_mark},
};
use orkestra_language::api::{apply_set, names};
use orkestra_object::value::{Key, Map, Node, hash};
use orkestra_plan::{ChildKey, ObjectKey, OperatorPlan};

/// The keys that every child has, created once for all passes.
struct Keys {
    metadata: Key,
    name: Key,
    namespace: Key,
    labels: Key,
    annotations: Key,
    owner_references: Key,
    child: Key,
    applied: Key,
    owner: Key,
    adopted: Key,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| Keys {
    metadata: Key::new("metadata"),
    name: Key::new("name"),
    namespace: Key::new("namespace"),
    labels: Key::new("labels"),
    annotations: Key::new("annotations"),
    owner_references: Key::new("ownerReferences"),
    child: Key::new(names::ANNOTATION_CHILD),
    applied: Key::new(names::ANNOTATION_APPLIED),
    owner: Key::new(names::ANNOTATION_OWNER),
    adopted: Key::new(names::ANNOTATION_ADOPTED),
});

/// The metadata for children of one custom resource: the same for all of them except for their names.
pub(crate) struct ChildMetadata<'a> {
    owner: &'a ObjectKey,
    labels: [(Key, Node); 3],
    /// The label of members of an `ApplySet`: of children that may be owned in the resource's own namespace, where a set ends.
    member: Option<(Key, Node)>,
    reference: Node,
    /// Replaces the reference where it is illegal or unwanted.
    mark: Node,
    /// Whether our finalizer is on the custom resource: only then a child without an owner reference is deleted with it.
    finalizer: bool,
}

impl<'a> ChildMetadata<'a> {
    /// Returns the metadata for children that a plan creates for the observed custom resource.
    pub(crate) fn of(plan: &OperatorPlan, observed: &'a Observed) -> Self {
        let cr = &observed.cr.id;
        // A Katalog keeps its name on its children when a Komposer takes it over.
        let name = plan.source.as_deref().unwrap_or(&plan.katalog.name);
        let katalog = format!("{}.{name}", plan.katalog.namespace);
        Self {
            owner: &cr.key,
            labels: [
                (names::LABEL_MANAGED.into(), Node::from("true")),
                (names::LABEL_OWNER_UID.into(), Node::from(&cr.uid)),
                (
                    names::LABEL_KATALOG.into(),
                    Node::from(names::label_value(&katalog)),
                ),
            ],
            member: plan.is_apply_set().then(|| {
                let set = labels::set_of(plan, &observed.cr);
                (apply_set::LABEL_PART_OF.into(), Node::from(set))
            }),
            reference: owner_reference(plan, cr),
            mark: Node::from(observed.mark(plan).text()),
            finalizer: plan.finalizer,
        }
    }

    /// Sets the metadata, with the child's name. `record` is the existing child: an adopted one stays without an owner
    /// reference, as does one that `keeps_values`.
    pub(crate) fn put(
        &self,
        object: &mut Node,
        key: &ChildKey,
        (record, keeps_values): (Option<&ChildRecord>, bool),
    ) {
        let unowned = record.is_some_and(ChildRecord::stays_unowned);
        let may_own = !unowned && may_reference(self.owner, &key.object);
        self.put_with(
            object,
            key,
            (may_own, may_own && !self.outlasts(keeps_values)),
        );
        if record.is_some_and(ChildRecord::is_adopted) {
            put_adopted(object);
        }
    }

    /// True if a child gets no owner reference because it keeps values: our finalizer deletes it with its custom resource.
    pub(crate) fn outlasts(&self, keeps_values: bool) -> bool {
        keeps_values && self.finalizer
    }

    /// Sets the metadata for a child that must not be collected with its owner.
    pub(crate) fn put_unowned(&self, object: &mut Node, key: &ChildKey) {
        self.put_with(object, key, (false, false));
    }

    /// Sets the metadata of a child that may have an owner reference, and of one that has it.
    fn put_with(&self, object: &mut Node, key: &ChildKey, (may_own, owned): (bool, bool)) {
        let metadata = map_at(object, &KEYS.metadata);
        let is_member = may_own && self.owner.namespace == key.object.namespace;
        let member = self.member.iter().filter(|_| is_member);
        let labels = self.labels.iter().chain(member).cloned();
        add(map_at(metadata, &KEYS.labels), labels);
        let mark = child_mark(&key.kind, &key.object.name);
        let child = (KEYS.child.clone(), Node::from(mark));
        let marked = (!owned).then(|| (KEYS.owner.clone(), self.mark.clone()));
        let annotations = [child].into_iter().chain(marked);
        add(map_at(metadata, &KEYS.annotations), annotations);
        let name = (KEYS.name.clone(), Node::from(&*key.object.name));
        let namespace = key.object.namespace.as_deref();
        let namespace = namespace.map(|text| (KEYS.namespace.clone(), Node::from(text)));
        let reference = owned.then(|| {
            let references = Node::List([self.reference.clone()].into());
            (KEYS.owner_references.clone(), references)
        });
        add(
            metadata,
            [name].into_iter().chain(namespace).chain(reference),
        );
    }
}

/// Returns the child as it is applied to an object that existed before, which gets no owner reference: its creator may rely
/// on deleting it, and Argo CD does not prune an object that has an owner.
pub fn adopted(rendered: &Rendered, owner: &OwnerMark) -> Rendered {
    let mut object = rendered.object.clone();
    let metadata = map_at(&mut object, &KEYS.metadata);
    if let Node::Map(fields) = metadata {
        fields.remove(&KEYS.owner_references);
    }
    let annotations = map_at(metadata, &KEYS.annotations);
    if let Node::Map(fields) = annotations {
        fields.remove(&KEYS.applied);
    }
    add(
        annotations,
        [(KEYS.owner.clone(), Node::from(owner.text()))],
    );
    put_adopted(&mut object);
    let hash = hash(&object);
    put_applied(&mut object, &hash);
    Rendered {
        key: rendered.key.clone(),
        declared: rendered.declared,
        object,
        hash,
        requires: rendered.requires.clone(),
        scaled_from: rendered.scaled_from,
    }
}

/// True if a child is rendered with an owner reference.
pub fn is_owned(rendered: &Rendered) -> bool {
    rendered.object.meta("ownerReferences").is_some()
}

fn put_adopted(object: &mut Node) {
    let metadata = map_at(object, &KEYS.metadata);
    let adopted = (KEYS.adopted.clone(), Node::from("true"));
    add(map_at(metadata, &KEYS.annotations), [adopted]);
}

/// Sets the hash of the wanted state of a child.
pub(crate) fn put_applied(object: &mut Node, hash: &str) {
    let metadata = map_at(object, &KEYS.metadata);
    let applied = (KEYS.applied.clone(), Node::from(hash));
    add(map_at(metadata, &KEYS.annotations), [applied]);
}

/// Returns the value under a key for modification; a value that is not a map becomes one.
fn map_at<'n>(node: &'n mut Node, key: &Key) -> &'n mut Node {
    if !matches!(node, Node::Map(_)) {
        *node = Node::Map(Map::default());
    }
    match node {
        Node::Map(map) => map.entry(key),
        other => other,
    }
}

/// Adds entries, replacing those with the same keys; a value that is not a map becomes one.
fn add(node: &mut Node, entries: impl IntoIterator<Item = (Key, Node)>) {
    match node {
        Node::Map(map) => map.extend(entries),
        other => *other = Node::Map(entries.into_iter().collect()),
    }
}

/// True if an owner reference from `child` to `owner` is legal: it must not leave the owner's namespace.
pub fn may_reference(owner: &ObjectKey, child: &ObjectKey) -> bool {
    owner.namespace.is_none() || owner.namespace == child.namespace
}

/// Returns the controller owner reference to the custom resource of that identity.
pub fn owner_reference(plan: &OperatorPlan, cr: &Identity) -> Node {
    let fields = [
        ("apiVersion", Node::from(plan.resource.api_version())),
        ("kind", Node::from(&*plan.resource.kind)),
        ("name", Node::from(&*cr.key.name)),
        ("uid", Node::from(&cr.uid)),
        ("controller", Node::Bool(true)),
        ("blockOwnerDeletion", Node::Bool(true)),
    ];
    Node::Map(
        fields
            .into_iter()
            .map(|(key, value)| (Key::from(key), value))
            .collect::<Map>(),
    )
}

/// Sets a field below the maps that `parents` name, creating them; field names may contain dots and slashes.
pub(crate) fn set_in(object: &mut Node, parents: &[&str], field: &str, value: Node) {
    if !matches!(object, Node::Map(_)) {
        *object = Node::Map(Map::default());
    }
    let Node::Map(map) = object else { return };
    match parents.split_first() {
        None => {
            map.insert(Key::from(field), value);
        }
        Some((parent, rest)) => {
            let mut child = map.remove(parent).unwrap_or_default();
            set_in(&mut child, rest, field, value);
            map.insert(Key::from(*parent), child);
        }
    }
}
