//! What a pass asks for beside the custom resource and its children: where each kind of read is answered.

pub(super) mod cross;
pub(super) mod moods;
mod objects;
pub(super) mod readers;
pub(super) mod related;

use orkestra_core::{
    plan::ObjectKey,
    reconcile::{
        related::RelatedRead,
        sources::{Answer, Answers, Read},
    },
    value::Key,
};

use super::{
    bound::Bound,
    shared::{Shared, lock},
};

/// What a custom resource reads beside its children.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Thing {
    /// A custom resource by its name, for an entry of `cross`.
    Named(Key, ObjectKey),
    /// Whatever an entry of `cross` chooses by labels.
    Chosen(Key),
    /// What belongs to a child.
    Related(RelatedRead),
}

/// What came of the reads of a round.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What is known now.
    pub(super) answers: Answers,
    /// Something is under way that must not hold a worker: it queues the custom resource again when it is there.
    pub(super) pending: bool,
}

/// Answers what a pass over the custom resource `key` asks.
pub(super) async fn answer(
    shared: &Shared,
    bound: &Bound,
    key: &ObjectKey,
    reads: Vec<Read>,
) -> Heard {
    let mut heard = Heard::default();
    for read in reads {
        let answer: Answer = match &read {
            Read::Object(child) => objects::read(shared, child).await,
            Read::Cross(read) => cross::read(shared, &bound.targets, key, read),
            Read::Related(read) => related::read(shared, &bound.belongings, key, read),
            Read::Operator(name) => cross::operator(&bound.targets, name),
        };
        heard.answers.insert(read, answer);
    }
    heard
}

/// A pass over the custom resource `key` is decided: from now on it hears of what it has read, and of nothing else.
pub(super) fn settle(shared: &Shared, bound: &Bound, key: &ObjectKey, answers: &Answers) {
    let things = answers.keys().filter_map(|read| match read {
        Read::Cross(read) => cross::thing(&bound.targets, read),
        Read::Related(read) => Some(Thing::Related(read.clone())),
        Read::Object(_) | Read::Operator(_) => None,
    });
    let things = things.collect();
    lock(&shared.readers).keep(key, &things);
}
