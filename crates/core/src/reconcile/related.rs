//! What is kept of objects that additions to children are made of: the pods of a workload, the volume of a claim.

use super::{
    record::{Identity, Malformed, ObservedChild, Uid},
    render::workload_label,
};
use crate::{
    enrich::{self, Addition, Relation, Source},
    plan::{GroupKind, ObjectKey},
    value::{Key, Node, Sieve},
};

/// What is kept of an object that something is added from.
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// Who it is.
    pub id: Identity,
    /// What it belongs to: the text of a [`RelatedBy::Belonging`].
    pub of: Option<Uid>,
    /// What templates may see of it.
    pub view: Node,
}

/// Objects that something is added to a child from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelatedRead {
    /// What they are.
    pub relation: Relation,
    /// Which of them.
    pub by: RelatedBy,
}

/// Which objects of a relation are meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelatedBy {
    /// All that belong to this, in the order of their keys.
    Belonging(Uid),
    /// The one of this key.
    Key(ObjectKey),
}

impl RelatedRead {
    /// What `addition` to a child of the custom resource of kind and key `owner` is made of. None where it is made of the
    /// child itself, or of an object that no field of the child names.
    pub fn of(
        addition: &Addition,
        owner: (&GroupKind, &ObjectKey),
        child: &ObservedChild,
    ) -> Option<Self> {
        let object = &child.key.object;
        let (relation, by) = match addition.source {
            Source::Itself(_) => return None,
            Source::Workload(relation) => {
                let label = workload_label(owner.0, owner.1, &child.key.kind, &object.name);
                (relation, RelatedBy::Belonging(Uid::from(&*label)))
            }
            Source::Uid(relation) => (relation, RelatedBy::Belonging(child.record.id.uid.clone())),
            Source::Key(relation) => (
                relation,
                RelatedBy::Belonging(Uid::from(&*object.to_string())),
            ),
            Source::Field(relation, path) => {
                let named = child.record.view.at(&enrich::path(path))?;
                (relation, RelatedBy::Key(key_in(named)?))
            }
        };
        Some(Self { relation, by })
    }
}

/// The key that a field tells: a name, or a map with `namespace` and `name`.
fn key_in(named: &Node) -> Option<ObjectKey> {
    let text = |key| named.get(key).and_then(Node::as_str).map(Key::from);
    let key = match named.as_str() {
        Some(name) => ObjectKey {
            namespace: None,
            name: name.into(),
        },
        None => ObjectKey {
            namespace: text("namespace"),
            name: text("name")?,
        },
    };
    (!key.name.is_empty()).then_some(key)
}

impl Related {
    /// Records `object`, which is of kind `kind`.
    ///
    /// # Errors
    /// [`Malformed`] as [`Identity::read`] says.
    pub fn read(kind: &GroupKind, object: &Node) -> Result<Self, Malformed> {
        let id = Identity::read(object)?;
        let (of, view) = enrich::read(kind, object);
        let of = of.as_deref().map(Uid::from);
        Ok(Self { id, of, view })
    }

    /// What [`Related::read`] looks at: what it keeps of a kind is a table of its own, so everything.
    pub fn looks_at() -> Sieve {
        Sieve::whole()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.id.heap_bytes() + self.of.as_ref().map_or(0, Uid::heap_bytes) + self.view.heap_bytes()
    }

    /// Whether anything but the resourceVersion differs.
    pub fn differs(&self, before: &Self) -> bool {
        let Self { id, of, view } = self;
        id.uid != before.id.uid || *of != before.of || *view != before.view
    }

    /// How passes ask for it among the objects of that relation; none where nobody can.
    pub fn found_by(&self, relation: Relation) -> Option<RelatedRead> {
        let by = if relation.is_by_name() {
            RelatedBy::Key(self.id.key.clone())
        } else {
            RelatedBy::Belonging(self.of.clone()?)
        };
        Some(RelatedRead { relation, by })
    }
}
