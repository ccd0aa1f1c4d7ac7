//! Answers the reads of a pass beyond the custom resource and its children, by kind of read.

use std::sync::Arc;

use jiff::Timestamp;
use orkestra_engine::reconcile::{
    record::Observed,
    sources::{Answer, Answers, Certificate, Read},
};
use orkestra_object::value::{Key, Node};
use orkestra_plan::ChildKey;

use super::Pass;
use crate::{
    certificates,
    sources::{cross, related},
};

/// The result of the reads of a round.
#[derive(Debug, Default)]
pub(crate) struct ReadResult {
    /// The answers known now.
    pub(crate) answers: Answers,
    /// True if an answer is in progress that must not block a worker: it queues the custom resource again when it arrives.
    pub(crate) pending: bool,
}

/// Answers the reads of a pass that sees `observed` and began at `now`.
pub(crate) async fn answer(
    pass: &Pass<'_>,
    (observed, now): (&Observed, Timestamp),
    reads: Vec<Read>,
) -> ReadResult {
    let key = &observed.cr.id.key;
    let sources = &pass.bound.sources;
    let mut heard = ReadResult::default();
    for read in reads {
        if read.may_change() {
            pass.shared.sources.readers.note(key, &read);
        }
        let answer: Answer = match &read {
            Read::Object(object) => {
                let Some(answer) = read_object(pass, observed, object).await else {
                    heard.pending = true;
                    continue;
                };
                answer
            }
            Read::Same(path, text) => pass.shared.uniques.answer(key, path, text),
            Read::Call(request) => {
                let Some(answer) = pass.shared.sources.calls.answer(key, request, now) else {
                    heard.pending = true;
                    continue;
                };
                answer
            }
            Read::Certificate(wanted) => certificate(wanted),
            Read::Cross(read) => cross::read(&sources.targets, read),
            Read::Related(read) => related::read(&sources.related, read),
            Read::Event(name) => pass.bound.cr(key).map_or(Answer::Absent, |cr| {
                let about = || pass.bound.leads_about(&cr);
                sources.observed.latest_event(&cr, name, about)
            }),
            Read::Watched(kind) => pass.bound.cr(key).map_or(Answer::Absent, |cr| {
                let about = pass.bound.leads_about(&cr);
                let owner = pass.bound.owner_mark(&cr.id);
                let reaches = |namespace: Option<&str>| pass.bound.reaches(&owner, None, namespace);
                sources.observed.watched(&cr, kind, about, reaches)
            }),
            Read::Operator(name) => cross::operator(&sources.targets, name, now),
            Read::Introspection(read) => sources.own.read(*read, now),
        };
        heard.answers.insert(read, answer);
    }
    heard
}

/// Returns an object of another owner; none if the pass is about to be queued for it anyway.
async fn read_object(pass: &Pass<'_>, observed: &Observed, object: &ChildKey) -> Option<Answer> {
    let objects = &pass.shared.sources.objects;
    let namespace = pass.bound.scope_of(object);
    objects
        .read(&pass.shared.requests, observed, object, namespace)
        .await
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
