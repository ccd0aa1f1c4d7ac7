//! Records by their owner: an ordered set of the records themselves, so that it costs a pointer for each.

use std::{borrow::Borrow, cmp::Ordering, collections::BTreeSet, ops::Bound, sync::Arc};

use orkestra_core::{plan::ObjectKey, reconcile::record::Uid};

use super::Record;

/// A record that has an owner, in the order of owner and key.
pub(super) struct Owned<R>(pub(super) Arc<R>);

/// Where something is in that order.
trait Place {
    fn owner(&self) -> Option<&Uid>;

    /// None is in front of all that belong to the owner.
    fn key(&self) -> Option<&ObjectKey>;
}

impl<R: Record> Place for Owned<R> {
    fn owner(&self) -> Option<&Uid> {
        self.0.owner()
    }

    fn key(&self) -> Option<&ObjectKey> {
        Some(&self.0.identity().key)
    }
}

/// In front of all that belong to an owner.
struct Front<'u>(&'u Uid);

impl Place for Front<'_> {
    fn owner(&self) -> Option<&Uid> {
        Some(self.0)
    }

    fn key(&self) -> Option<&ObjectKey> {
        None
    }
}

impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.owner(), self.key()).cmp(&(other.owner(), other.key()))
    }
}

impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for dyn Place + '_ {}

impl<'p, R: Record> Borrow<dyn Place + 'p> for Owned<R> {
    fn borrow(&self) -> &(dyn Place + 'p) {
        self
    }
}

impl<R: Record> Ord for Owned<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, other): (&dyn Place, &dyn Place) = (self, other);
        one.cmp(other)
    }
}

impl<R: Record> PartialOrd for Owned<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Record> PartialEq for Owned<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<R: Record> Eq for Owned<R> {}

/// The records of one owner, in the order of their keys.
pub(super) fn range_of<'s, R: Record>(
    owned: &'s BTreeSet<Owned<R>>,
    owner: &'s Uid,
) -> impl Iterator<Item = &'s Arc<R>> {
    let front = Front(owner);
    let from: &dyn Place = &front;
    owned
        .range::<dyn Place + '_, _>((Bound::Included(from), Bound::Unbounded))
        .map(|Owned(record)| record)
        .take_while(move |record| record.owner() == Some(owner))
}
