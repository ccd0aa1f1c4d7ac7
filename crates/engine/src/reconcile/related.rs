//! Records of objects that `enrich` reads for additions to children: the pods of a workload, the volume of a claim.

use super::{
    identity::{Identity, Uid},
    metadata::Malformed,
};
use orkestra_language::enrich::{self, Relation};
use orkestra_object::value::{Node, Projection};
use orkestra_plan::{GroupKind, ObjectKey};

/// The record of an object from which additions are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// Its identity.
    pub id: Identity,
    /// The object to which it belongs: the text of a [`RelatedBy::Belonging`].
    pub of: Option<Uid>,
    /// The fields that templates may see.
    pub view: Node,
}

/// A read of the objects from which an addition to a child is made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelatedRead {
    /// Their relation.
    pub relation: Relation,
    /// The selection.
    pub by: RelatedBy,
}

/// Selects objects of a relation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelatedBy {
    /// All that belong to this object, in the order of their keys.
    Belonging(Uid),
    /// The object with this key.
    Key(ObjectKey),
}

impl Related {
    /// Records `object`, which is of kind `kind`.
    ///
    /// # Errors
    /// [`Malformed`] as for [`Identity::read`].
    pub fn read(kind: &GroupKind, object: &Node) -> Result<Self, Malformed> {
        let id = Identity::read(object)?;
        let (of, view) = enrich::read(kind, object);
        let of = of.as_deref().map(Uid::from);
        Ok(Self { id, of, view })
    }

    /// Returns the fields that [`Related::read`] reads: all, since a separate table says what is kept of each kind.
    pub fn projection() -> Projection {
        Projection::whole()
    }

    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.id.heap_bytes() + self.of.as_ref().map_or(0, Uid::heap_bytes) + self.view.heap_bytes()
    }

    /// True if anything except the resourceVersion differs.
    pub fn differs(&self, before: &Self) -> bool {
        let Self { id, of, view } = self;
        id.uid != before.id.uid || *of != before.of || *view != before.view
    }

    /// Returns the read by which passes find it among the objects of that relation; none if no pass can.
    pub fn found_by(&self, relation: Relation) -> Option<RelatedRead> {
        let by = if relation.is_by_name() {
            RelatedBy::Key(self.id.key.clone())
        } else {
            RelatedBy::Belonging(self.of.clone()?)
        };
        Some(RelatedRead { relation, by })
    }
}
