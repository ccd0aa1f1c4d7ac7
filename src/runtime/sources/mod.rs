//! What a pass asks for beside the custom resource and its children: where each kind of read is answered.

pub(super) mod cross;
mod objects;
pub(super) mod readers;

use orkestra_core::{
    plan::ObjectKey,
    reconcile::sources::{Answer, Answers, Read},
};

use super::{
    bound::Bound,
    shared::{Shared, lock},
};

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
            Read::Operator(name) => cross::operator(&bound.targets, name),
        };
        heard.answers.insert(read, answer);
    }
    heard
}

/// A pass over the custom resource `key` is decided: from now on it hears of what it has read, and of nothing else.
pub(super) fn settle(shared: &Shared, bound: &Bound, key: &ObjectKey, answers: &Answers) {
    if !bound.plan.cross.is_empty() {
        let things = cross::things(&bound.targets, answers);
        lock(&shared.readers).keep(key, &things);
    }
}
