//! What a pass asks for beside the custom resource and its children: where each kind of read is answered.

mod objects;

use orkestra_core::{
    plan::ObjectKey,
    reconcile::sources::{Answer, Answers, Read},
};

use super::shared::Shared;

/// What came of the reads of a round.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What is known now.
    pub(super) answers: Answers,
    /// Something is under way that must not hold a worker: it queues the custom resource again when it is there.
    pub(super) pending: bool,
}

/// Answers what a pass over the custom resource `key` asks.
pub(super) async fn answer(shared: &Shared, _key: &ObjectKey, reads: Vec<Read>) -> Heard {
    let mut heard = Heard::default();
    for read in reads {
        let answer: Answer = match &read {
            Read::Object(child) => objects::read(shared, child).await,
        };
        heard.answers.insert(read, answer);
    }
    heard
}
