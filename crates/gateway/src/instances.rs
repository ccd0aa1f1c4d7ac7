//! Admission of custom resources, by the rules of their operator.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use orkestra_cluster::requests::{ClusterError, Scope};
use orkestra_engine::{
    admission::{self, AdmissionVerdict, Admitted, Answer as Known, Answers, Read, Review},
    reconcile::{
        external::answered,
        inventory::Inventory,
        record::CrRecord,
        sources::ROUNDS,
        unique::{unique_record, unique_text},
    },
};
use orkestra_ground::tasks::{self, Task};
use orkestra_language::api::{FailurePolicy, Operation, names};
use orkestra_object::value::{Key, Node, Path, Projection, set};
use orkestra_plan::{ChildKey, ObjectKey, OperatorPlan};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{
    Gateway,
    callers::{ReviewCaller, UNPROVEN},
    review::{Admission, Answer},
};
use orkestra_operator::metrics::{Reviewed, Webhook};

/// Objects per page of a live look-up for `unique`.
const PAGE: u32 = 500;
/// The most pages of it.
const PAGES: usize = 20;

/// Judges a custom resource that is being written, or completes it.
pub(crate) async fn review(
    gateway: &Gateway,
    (caller, request): (ReviewCaller, &Admission),
    plan: &Arc<OperatorPlan>,
    webhook: Webhook,
    within: Duration,
) -> Answer {
    let Some(operation) = request.operation() else {
        return Answer::default();
    };
    if plan.admission.enabled != Some(true) {
        return Answer::default();
    }
    let objects = match (&*request.sub_resource, &plan.admission.replicas) {
        ("", _) => written(request, operation, (webhook, &**plan)),
        (admission::SCALE, Some(replicas)) if webhook == Webhook::Validate => {
            let scaled = scaled(gateway, request, plan, replicas);
            let late = || Err(unscaled(plan, "the API server did not answer in time"));
            timeout(within, scaled).await.unwrap_or_else(|_| late())
        }
        _ => return Answer::default(),
    };
    let (object, old_object) = match objects {
        Ok(objects) => objects,
        Err(answer) => return answer,
    };
    let review = subject(request, operation, (object, old_object));
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
    let review = (caller, Arc::new(review));
    let verdict = judge(gateway, plan, review, (evaluate, start + within)).await;
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

/// Returns what the rules judge.
fn subject(
    request: &Admission,
    operation: Operation,
    (object, old_object): (Node, Node),
) -> Review {
    Review {
        operation,
        object,
        old_object,
        namespace: request.namespace.clone().filter(|name| !name.is_empty()),
        name: request.name.clone(),
        user: admission::User {
            name: request.user_info.username.clone(),
            groups: request.user_info.groups.clone(),
            uid: request.user_info.uid.clone(),
        },
        dry_run: request.is_dry_run(),
    }
}

/// Returns the object that is written, and the one before.
///
/// # Errors
/// The answer that needs no verdict.
fn written(
    request: &Admission,
    operation: Operation,
    (webhook, plan): (Webhook, &OperatorPlan),
) -> Result<(Node, Node), Answer> {
    let projection = || CrRecord::projection(&plan.reads.cr);
    let object = object(request, operation, webhook, projection)?;
    Ok((object, request.old_object(projection).node))
}

/// Returns the object as a write of its scale subresource would leave it, and the one before: the request has only the scale.
///
/// # Errors
/// The answer that needs no verdict.
async fn scaled(
    gateway: &Gateway,
    request: &Admission,
    plan: &OperatorPlan,
    replicas: &Path,
) -> Result<(Node, Node), Answer> {
    let scale = request.object(Projection::whole).node;
    let count = scale.get("spec").and_then(|spec| spec.get("replicas"));
    // The API server leaves out 0.
    let count = count.cloned().unwrap_or_else(|| Node::from(&json!(0)));
    let resource = &plan.resource;
    let kind = resource.group_kind();
    let served = gateway.context.crds.served(&kind, &resource.version);
    let served = served.or_else(|| orkestra_operator::served::built_in(&kind, &resource.version));
    let Some(served) = served else {
        return Err(unscaled(plan, "the kind is not served"));
    };
    let key = ObjectKey {
        namespace: (request.namespace.as_deref())
            .filter(|name| !name.is_empty())
            .map(Key::from),
        name: Key::from(&*request.name),
    };
    match gateway.cluster.get(&served, &key).await {
        Ok(before) if is_deleting(&before) => Err(Answer::default()),
        Ok(before) => {
            let mut after = before.clone();
            set(&mut after, replicas, count);
            Ok((after, before))
        }
        // The API server refuses the write itself.
        Err(ClusterError::NotFound(_)) => Err(Answer::default()),
        Err(error) => Err(unscaled(plan, &error.to_string())),
    }
}

/// Returns the answer to a write of the scale subresource that cannot be judged.
fn unscaled(plan: &OperatorPlan, why: &str) -> Answer {
    let message = format!("the object to scale cannot be checked: {why}");
    match admission::failure_policy(plan, plan.admission.failure_policy) {
        FailurePolicy::Fail => Answer::denied(message),
        FailurePolicy::Ignore => Answer {
            warnings: vec![message],
            ..Answer::default()
        },
    }
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
    (caller, review): (ReviewCaller, Arc<Review>),
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
                let answer = answer(gateway, plan, (caller, &review), &read);
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
    (caller, review): (ReviewCaller, &Review),
    read: &Read,
) -> Known {
    match read {
        // The review itself says whose Secret is read, and for whom a call is made.
        Read::Call(_) | Read::Object(_) if !caller.is_proven => unavailable(UNPROVEN),
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
    let Some(served) = orkestra_operator::served::built_in(&object.kind, "v1") else {
        return unavailable(format!("objects of kind {} cannot be read", object.kind));
    };
    match gateway.cluster.get(&served, &object.object).await {
        Ok(mut found) => {
            if let Node::Map(fields) = &mut found {
                fields.remove("metadata");
            }
            Known::Ready(Arc::new(found))
        }
        Err(ClusterError::NotFound(_)) => Known::Absent,
        Err(error) => unavailable(error.to_string()),
    }
}

/// Returns another custom resource that had the text at the path first: from the records of the operator if this process runs it,
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
    if let Some(answer) = known {
        return answer;
    }
    // Of those that have it already, the one that holds it has recorded that.
    let had = unique_text(&review.old_object, path).as_deref() == Some(text);
    look_up(gateway, plan, &key, (path, text, had)).await
}

async fn look_up(
    gateway: &Gateway,
    plan: &OperatorPlan,
    key: &ObjectKey,
    (path, text, had): (&Path, &str, bool),
) -> Known {
    let record = unique_record(path, text);
    let holds = |object: &Node| {
        let inventory = object.annotation(names::ANNOTATION_INVENTORY);
        inventory.is_some_and(|text| Inventory::parse(text).held.contains(&record))
    };
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
            let has = other != *key && unique_text(object, path).as_deref() == Some(text);
            if has && (!had || holds(object)) {
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
