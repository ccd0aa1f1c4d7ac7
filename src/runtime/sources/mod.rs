//! Answers the reads of a pass beyond the custom resource and its children, by kind of read.

mod calls;
pub(super) mod cross;
pub(super) mod moods;
pub(super) mod objects;
pub(super) mod observed;
pub(super) mod readers;
pub(super) mod related;
pub(super) mod scalers;

use std::sync::Arc;

pub(super) use calls::Calls;
use jiff::Timestamp;
use orkestra_core::{
    reconcile::{
        record::Observed,
        sources::{Answer, Answers, Certificate, Read},
    },
    value::{Key, Node},
};

use super::{bound::Bound, shared::Shared};
use crate::certificates;

/// The result of the reads of a round.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The answers known now.
    pub(super) answers: Answers,
    /// True if an answer is in progress that must not block a worker: it queues the custom resource again when it arrives.
    pub(super) pending: bool,
}

/// Answers the reads of a pass that sees `observed` and began at `now`.
pub(super) async fn answer(
    shared: &Shared,
    bound: &Bound,
    (observed, now): (&Observed, Timestamp),
    reads: Vec<Read>,
) -> Heard {
    let key = &observed.cr.id.key;
    let mut heard = Heard::default();
    for read in reads {
        if read.may_change() {
            shared.readers.note(key, &read);
        }
        let answer: Answer = match &read {
            Read::Object(object) => {
                let Some(answer) = objects::read(shared, bound, observed, object).await else {
                    heard.pending = true;
                    continue;
                };
                answer
            }
            Read::Same(path, text) => shared.uniques.answer(key, path, text),
            Read::Call(request) => {
                let Some(answer) = shared.calls.answer(key, request, now) else {
                    heard.pending = true;
                    continue;
                };
                answer
            }
            Read::Certificate(wanted) => certificate(wanted),
            Read::Cross(read) => cross::read(&bound.targets, read),
            Read::Related(read) => related::read(&bound.belongings, read),
            Read::Event(name) => observed::read(bound, key, name),
            Read::Watched(kind) => observed::watched(bound, key, kind),
            Read::Operator(name) => cross::operator(&bound.targets, name),
        };
        heard.answers.insert(read, answer);
    }
    heard
}

/// Issues a certificate now.
fn certificate(wanted: &Certificate) -> Answer {
    match certificates::issue(wanted) {
        Ok(parts) => {
            let parts = parts.into_iter();
            let parts = parts.map(|(name, text)| (Key::from(name), Node::from(text)));
            Answer::Ready(Arc::new(Node::Map(parts.collect())))
        }
        Err(error) => Answer::Unavailable(error.to_string().into()),
    }
}
