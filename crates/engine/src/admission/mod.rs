//! Admission: the verdict about an object that is being written, and the policies of the API server that give the same one.
//!
//! ```text
//!  Review ── admit ──► Need(reads) | Done(AdmissionVerdict: denials, warnings, JSON patch)   a webhook's answer
//!  Plan ── policies ──► ValidatingAdmissionPolicies, for rules that CEL can say              no webhook needed
//!       ── mutating_policies ──► MutatingAdmissionPolicies, where the API server serves them
//!       ── explain ──► where each rule applies, and why
//!       ── permissions ──► what the author of a Katalog must be permitted to do
//!  Diagnostics ── denial ──► the message for `kubectl apply`
//! ```
//!
//! Rules are evaluated by the functions of a pass: one verdict at both moments.

mod denial;
mod explain;
mod joined;
mod matching;
mod outline;
mod patch;
mod permissions;
mod policies;
mod protection;

use jiff::Timestamp;

pub use denial::{WARNING_BYTES, denial, warnings};
pub use explain::{Enforcement, RulePlace, explain, explain_operator};
pub use matching::{Matched, failure_policy, match_conditions};
pub use patch::{PatchKind, PatchOp};
pub use permissions::{Permission, derived_permissions};
pub use policies::{PolicyOptions, SCALE, mutating_policies, policies};
pub use protection::protection;

pub use crate::reconcile::sources::{Answer, Answers, Read};
use crate::reconcile::{
    prepared::Normalization,
    reason::Reason,
    record::is_child,
    review::{Reviewed, ReviewedObject, judge},
    step::Failure,
};
use orkestra_language::api::FailurePolicy;
pub use orkestra_language::api::Operation;
use orkestra_object::value::{Key, Node, Path, set};
use orkestra_plan::{ObjectKey, OperatorPlan, Stage};

/// A request to the API server that writes a custom resource.
#[derive(Clone, Debug)]
pub struct Review {
    /// The operation.
    pub operation: Operation,
    /// The object as submitted; null if it is deleted.
    pub object: Node,
    /// The object before; null if it is created.
    pub old_object: Node,
    /// The namespace of the request; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name of the request; empty if the API server generates it later.
    pub name: String,
    /// The user.
    pub user: User,
    /// True if nothing will be stored.
    pub dry_run: bool,
}

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
    /// The uid.
    pub uid: String,
}

/// The result of [`admit`].
#[derive(Clone, Debug, PartialEq)]
pub enum Admitted {
    /// These reads must be answered first: call again with the answers, and those of earlier calls.
    Need(Vec<Read>),
    /// The verdict.
    Done(AdmissionVerdict),
}

/// The verdict about a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdmissionVerdict {
    /// Why it is refused; empty if it is not.
    pub denials: Vec<Denial>,
    /// Warnings for the user, each at most [`WARNING_BYTES`].
    pub warnings: Vec<String>,
    /// The changes to the submitted object, in order.
    pub patch: Vec<PatchOp>,
    /// True if a rule changed the object and nothing of it is in `patch`, since `webhooks.mutation` is `false`.
    pub is_completed_later: bool,
}

/// One reason for a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The rule, by its name or field; or the place in the Katalog that failed.
    pub rule: String,
    /// The message.
    pub message: String,
    /// True if a rule is violated; false if it could not be evaluated.
    pub is_violation: bool,
}

impl AdmissionVerdict {
    /// True if the request is accepted.
    pub fn is_allowed(&self) -> bool {
        self.denials.is_empty()
    }

    /// Returns the message for a refusal: every reason, separated by `; `.
    pub fn message(&self) -> String {
        let line = |denial: &Denial| format!("{}: {}", denial.rule, denial.message);
        let lines: Vec<String> = self.denials.iter().map(line).collect();
        lines.join("; ")
    }
}

/// Judges a request by the rules of the operator of its kind, as a pass would. Nothing depends on whether the request is a
/// dry run.
///
/// `answers` has the answers to the reads of earlier calls for this request. A read that cannot be answered gets
/// [`Answer::Unavailable`]: rules that need it refuse the request if `security.webhooks.failurePolicy` is `Fail`; otherwise
/// they are left to passes, with a warning.
///
/// ```
/// use orkestra_engine::{admission::{Admitted, Answers, Operation, Review, User, admit}};
/// use orkestra_compiler::{compile, scope::Library};
/// use orkestra_plan::{definitions::Schemas, KatalogRef};
/// use orkestra_language::{document::read_stream};
/// use orkestra_object::value::Node;
///
/// let text = "
/// apiVersion: orkestra.orkspace.io/v1
/// kind: Katalog
/// metadata: { name: ponds }
/// spec:
///   crds:
///     pond:
///       apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
///       operatorBox:
///         onReconcile:
///           configMaps: [{ data: { depth: '{{ .spec.depth }}' } }]
///       validation:
///         rules: [{ field: spec.depth, exists: true, message: 'a pond needs a depth' }]
/// ";
/// let (documents, _) = read_stream("katalog.yaml", text)?;
/// let reference = KatalogRef::new("default".to_owned(), "ponds".to_owned());
/// let spec = &documents.katalogs[0].spec;
/// let (plan, _) = compile::katalog(&reference, spec, &Schemas::default(), &Library::default())?;
///
/// let pond = serde_json::json!({
///     "apiVersion": "water.example/v1", "kind": "Pond",
///     "metadata": { "name": "north", "namespace": "default" },
///     "spec": {},
/// });
/// let review = Review {
///     operation: Operation::Create,
///     object: Node::from(&pond),
///     old_object: Node::default(),
///     namespace: Some("default".to_owned()),
///     name: "north".to_owned(),
///     user: User::default(),
///     dry_run: false,
/// };
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// let Admitted::Done(verdict) = admit(&plan.operators[0], &review, now, &Answers::new()) else {
///     panic!("nothing else is read");
/// };
/// assert!(!verdict.is_allowed());
/// assert!(verdict.message().contains("a pond needs a depth"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn admit(plan: &OperatorPlan, review: &Review, now: Timestamp, answers: &Answers) -> Admitted {
    let asks = plan.admission.validation && plan.admission.operations.contains(&review.operation);
    judged(plan, review, now, (answers, Stage::Validation, asks))
}

/// As [`admit`], also where no webhook enforces the rules of `validation`: passes apply them in any case.
pub fn admit_by_rules(
    plan: &OperatorPlan,
    review: &Review,
    now: Timestamp,
    answers: &Answers,
) -> Admitted {
    judged(plan, review, now, (answers, Stage::Validation, true))
}

/// As [`admit`], without `validation` and its calls: for the webhook that changes objects. Its verdict has a patch, and denials
/// only where rules of `normalize` or `mutation` could not be evaluated; there is no patch then.
pub fn mutate(plan: &OperatorPlan, review: &Review, now: Timestamp, answers: &Answers) -> Admitted {
    let asks = plan.admission.validation && plan.admission.operations.contains(&review.operation);
    judged(plan, review, now, (answers, Stage::Mutation, asks))
}

fn judged(
    plan: &OperatorPlan,
    review: &Review,
    now: Timestamp,
    (answers, until, asks): (&Answers, Stage, bool),
) -> Admitted {
    let is_deleted = review.operation == Operation::Delete;
    if !is_judged(plan, review) {
        return Admitted::Done(AdmissionVerdict::default());
    }
    let subject = ReviewedObject {
        key: ObjectKey {
            namespace: review.namespace.as_deref().map(Key::from),
            name: Key::from(&*review.name),
        },
        operation: review.operation,
        object: if is_deleted {
            review.old_object.clone()
        } else {
            review.object.clone()
        },
        old: review.old_object.clone(),
    };
    let (sources, others) = match judge(plan, &subject, now, (answers, until)) {
        Reviewed::Need(reads) => return Admitted::Need(reads),
        Reviewed::Done(sources, failures) => (sources, failures),
    };
    let prepared = sources.prepared;
    let mut verdict = AdmissionVerdict {
        warnings: denial::fitting(&prepared.warnings),
        ..AdmissionVerdict::default()
    };
    let mut failures = prepared.failures.iter().chain(&others);
    let is_evaluated = failures.all(|failure| failure.reason == Reason::ValidationFailed);
    for failure in prepared.failures.into_iter().chain(others) {
        verdict.add(failure, plan.admission.failure_policy, asks);
    }
    if !asks {
        verdict.warnings.clear();
    }
    // Without all of its rules, an object is not changed in part.
    if !is_deleted && is_evaluated {
        let stored = stored(
            &review.object,
            &prepared.changes,
            prepared.normalization.as_ref(),
        );
        if plan.admission.mutation {
            verdict.patch = patch::difference(&review.object, &stored);
        } else {
            verdict.is_completed_later = stored != review.object;
        }
    }
    Admitted::Done(verdict)
}

/// True if a pass would apply rules to the object: the operator reconciles it, and it is not being deleted already.
fn is_judged(plan: &OperatorPlan, review: &Review) -> bool {
    let object = match review.operation {
        Operation::Delete => &review.old_object,
        _ => &review.object,
    };
    let deleted = object.meta("deletionTimestamp");
    let is_deleted = deleted.is_some_and(|deleted| *deleted != Node::Null);
    let watched = &plan.watched;
    !(is_deleted
        || !watched.admits(review.namespace.as_deref(), &review.name)
        || !watched.selects(object)
        || (watched.built_in && is_child(object)))
}

impl AdmissionVerdict {
    fn add(&mut self, failure: Failure, policy: FailurePolicy, asks: bool) {
        let is_violation = failure.reason == Reason::ValidationFailed;
        let is_unknown = matches!(
            failure.reason,
            Reason::Unavailable | Reason::ExternalCallFailed | Reason::ExternalCallRefused
        );
        if !asks {
            return;
        }
        if is_unknown && policy == FailurePolicy::Ignore {
            let warning = format!("{}: not checked: {}", failure.at, failure.message);
            self.warnings.push(denial::shortened(&warning));
            return;
        }
        self.denials.push(Denial {
            rule: failure.at,
            message: failure.message,
            is_violation,
        });
    }
}

/// Returns the object with the changes that are stored: those of `mutation`, and of `normalize` unless they are kept in
/// memory.
fn stored(object: &Node, changes: &[(Path, Node)], normalization: Option<&Normalization>) -> Node {
    let mut stored = object.clone();
    let normalized =
        normalization.map_or(0, |reported| reported.stored.len() + reported.held.len());
    for (position, (path, value)) in changes.iter().enumerate() {
        let is_held = position < normalized
            && normalization
                .is_some_and(|reported| reported.held.iter().any(|(held, _)| held == path));
        if !is_held {
            set(&mut stored, path, value.clone());
        }
    }
    stored
}
