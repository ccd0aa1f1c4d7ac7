//! Admission of custom resources, by the rules of their operator.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use orkestra_cluster::requests::{Scope, Served};
use orkestra_core::{
    admission::{self, AdmissionVerdict, Admitted, Answer as Known, Answers, Read, Review},
    api::Operation,
    plan::{ChildKey, ObjectKey, OperatorPlan},
    reconcile::{external::answered, record::CrRecord, sources::ROUNDS, unique::unique_text},
    value::{Key, Node, Path, Projection},
};
use orkestra_ground::tasks::{self, Task};
use tokio::time::Instant;

use super::{
    Gateway,
    review::{Admission, Answer},
};
use crate::metrics::{Reviewed, Webhook};

/// Objects per page of a live look-up for `unique`.
const PAGE: u32 = 500;
/// The most pages of it.
const PAGES: usize = 20;

/// Judges a custom resource that is being written, or completes it.
pub(super) async fn review(
    gateway: &Gateway,
    request: &Admission,
    plan: &Arc<OperatorPlan>,
    webhook: Webhook,
    within: Duration,
) -> Answer {
    let Some(operation) = request.operation() else {
        return Answer::default();
    };
    if !request.sub_resource.is_empty() || plan.admission.enabled != Some(true) {
        return Answer::default();
    }
    let projection = || CrRecord::projection(&plan.reads.cr);
    let object = match object(request, operation, webhook, projection) {
        Ok(object) => object,
        Err(answer) => return answer,
    };
    let review = Review {
        operation,
        object,
        old_object: request.old_object(projection).node,
        namespace: request.namespace.clone().filter(|name| !name.is_empty()),
        name: request.name.clone(),
        user: admission::User {
            name: request.user_info.username.clone(),
            groups: request.user_info.groups.clone(),
            uid: request.user_info.uid.clone(),
        },
        dry_run: request.is_dry_run(),
    };
    let start = Instant::now();
    // The webhook that changes objects makes no calls of `validation`: the other one makes them.
    //
    // The other one completes the object again, as a pass completes the stored one, and judges the result: that is the verdict
    // of passes. The object need not be complete already, although the API server calls it last: mutation may be left to passes,
    // its webhook may have been unreachable, and others may have changed the object after it.
    let evaluate: Evaluate = match webhook {
        Webhook::Mutate => admission::mutate,
        _ => admission::admit,
    };
    let verdict = judge(gateway, plan, Arc::new(review), (evaluate, start + within)).await;
    let verdict = match verdict {
        Ok(verdict) => verdict,
        Err(why) if webhook == Webhook::Validate => return Answer::denied(why),
        Err(_) => return Answer::default(),
    };
    let (reviewed, answer) = of_verdict(webhook, verdict);
    let about = (&plan.katalog, plan.name.as_str());
    gateway.metrics.note(about, reviewed, start.elapsed(), None);
    answer
}

/// Returns the object to judge.
///
/// # Errors
/// The answer that needs no verdict.
fn object(
    request: &Admission,
    operation: Operation,
    webhook: Webhook,
    projection: impl FnOnce() -> Projection,
) -> Result<Node, Answer> {
    let decoded = request.object(projection);
    // An object that is being deleted must be able to lose its finalizers, whatever else it is.
    if operation == Operation::Update && is_deleting(&decoded.node) {
        return Err(Answer::default());
    }
    match decoded.fault {
        // A patch of a part could remove the rest, and a mutation is never a reason for a refusal.
        _ if decoded.is_partial && webhook == Webhook::Mutate => Err(Answer::default()),
        Some(fault) => Err(Answer::denied(format!(
            "the object cannot be read: {fault}"
        ))),
        None => Ok(decoded.node),
    }
}

/// Returns the answer with that verdict, and the metric that counts it.
fn of_verdict(webhook: Webhook, verdict: AdmissionVerdict) -> (Reviewed, Answer) {
    if webhook == Webhook::Mutate {
        let answer = Answer {
            patch: verdict.patch,
            ..Answer::default()
        };
        return (Reviewed::Mutated(!answer.patch.is_empty()), answer);
    }
    let is_allowed = verdict.is_allowed();
    let answer = Answer {
        denial: (!is_allowed).then(|| verdict.message()),
        warnings: verdict.warnings,
        patch: Vec::new(),
    };
    (Reviewed::Validated(is_allowed), answer)
}

fn is_deleting(object: &Node) -> bool {
    object.meta("deletionTimestamp").is_some()
}

/// Evaluates rules: [`admission::admit`] or [`admission::mutate`].
type Evaluate = fn(&OperatorPlan, &Review, Timestamp, &Answers) -> Admitted;

/// Evaluates the rules, and answers what they read.
async fn judge(
    gateway: &Gateway,
    plan: &Arc<OperatorPlan>,
    review: Arc<Review>,
    (evaluate, until): (Evaluate, Instant),
) -> Result<AdmissionVerdict, String> {
    let now = gateway.context.clock.now();
    let mut answers = Answers::new();
    for round in 0..=ROUNDS {
        let (plan_of_task, review_of_task) = (plan.clone(), review.clone());
        let known = answers.clone();
        let named = tasks::named(Task::Review, plan.full_name());
        let admitted =
            named.start_blocking(move || evaluate(&plan_of_task, &review_of_task, now, &known));
        let reads = match admitted.await {
            Ok(Admitted::Done(verdict)) => return Ok(verdict),
            Ok(Admitted::Need(reads)) => reads,
            Err(_) => return Err("internal error: the evaluation of rules failed".to_owned()),
        };
        let asked = reads.into_iter().map(|read| async {
            let answer = if round == ROUNDS {
                unavailable("too many reads depend on each other")
            } else {
                let late = || unavailable("it was not answered in time");
                let answer = answer(gateway, plan, &review, &read);
                let answer = tokio::time::timeout_at(until, answer).await;
                answer.unwrap_or_else(|_| late())
            };
            (read, answer)
        });
        answers.extend(futures::future::join_all(asked).await);
    }
    Err("the rules read too much".to_owned())
}

fn unavailable(why: impl Into<Box<str>>) -> Known {
    Known::Unavailable(why.into())
}

async fn answer(
    gateway: &Gateway,
    plan: &Arc<OperatorPlan>,
    review: &Review,
    read: &Read,
) -> Known {
    match read {
        Read::Call(request) => {
            let client = gateway.context.external.of_operator(&plan.full_name());
            let client = client.in_namespace(review.namespace.as_deref());
            answered(&client.call(request).await)
        }
        Read::Object(object) => secret(gateway, object).await,
        Read::Same(path, text) => same(gateway, plan, review, (path, text)).await,
        _ => unavailable("only reconcile passes read this"),
    }
}

async fn secret(gateway: &Gateway, object: &ChildKey) -> Known {
    let Some(served) = Served::built_in(&object.kind, "v1") else {
        return unavailable(format!("objects of kind {} cannot be read", object.kind));
    };
    match gateway.cluster.get(&served, &object.object).await {
        Ok(mut found) => {
            if let Node::Map(fields) = &mut found {
                fields.remove("metadata");
            }
            Known::Ready(Arc::new(found))
        }
        Err(orkestra_cluster::requests::ClusterError::NotFound(_)) => Known::Absent,
        Err(error) => unavailable(error.to_string()),
    }
}

/// Returns another custom resource that has the text at the path: from the records of the operator if this process runs it,
/// else live.
async fn same(
    gateway: &Gateway,
    plan: &OperatorPlan,
    review: &Review,
    (path, text): (&Path, &str),
) -> Known {
    let key = ObjectKey {
        namespace: review.namespace.as_deref().map(Key::from),
        name: Key::from(&*review.name),
    };
    let listed = gateway.context.operators.get(&plan.katalog, &plan.name);
    let known = listed.and_then(|operator| operator.holder(&key, path, text));
    match known {
        Some(answer) => answer,
        None => look_up(gateway, plan, &key, (path, text)).await,
    }
}

async fn look_up(
    gateway: &Gateway,
    plan: &OperatorPlan,
    key: &ObjectKey,
    (path, text): (&Path, &str),
) -> Known {
    let kind = plan.resource.group_kind();
    let served = gateway.context.crds.served(&kind, &plan.resource.version);
    let Some(served) = served else {
        return unavailable(format!("{kind} is not served"));
    };
    let (scope, mut next) = (Scope::default(), None::<String>);
    for _ in 0..PAGES {
        let listed = gateway
            .cluster
            .list_page(&served, &scope, PAGE, next.as_deref());
        let page = match listed.await {
            Ok(page) => page,
            Err(error) => return unavailable(error.to_string()),
        };
        for object in &page.items {
            let other = ObjectKey::of(object);
            if other != *key && unique_text(object, path).as_deref() == Some(text) {
                return Known::Ready(Arc::new(Node::from(other.to_string())));
            }
        }
        next = page.next;
        if next.is_none() {
            return Known::Absent;
        }
    }
    unavailable("there are too many custom resources to compare")
}
