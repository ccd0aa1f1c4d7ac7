//! `jobs`.

use super::{Child, Metadata, Shorthand, pod::Parts, workload};
use crate::scope::{At, Fields};
use orkestra_language::api::{
    children::{Job, PodParts},
    scalar::Scalar,
};
use orkestra_object::value::Node;
use orkestra_plan::{Coerce, Leaf, ObjectTree};

/// Number of retries of a failed pod. Source: language reference, pod-bearing kinds.
const BACKOFF_LIMIT: i64 = 3;

impl Shorthand for Job {
    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields {
        let Job {
            common: _,
            pod,
            backoff_limit,
            grace_period_seconds,
        } = self;
        let work = Work {
            pod,
            backoff_limit: backoff_limit.as_ref(),
            grace_period_seconds: grace_period_seconds.as_ref(),
            // A failed pod is kept for inspection; the Job creates the next one.
            restart_policy: "Never",
        };
        // The pod template of a Job is immutable: existing Jobs would differ forever.
        work.spec(&child.at, &child.name, metadata.labels.clone())
            .into_root("spec")
    }
}

/// Work that completes: that of a Job, or of each run of a `CronJob`.
pub(crate) struct Work<'a> {
    pub(crate) pod: &'a PodParts,
    pub(crate) backoff_limit: Option<&'a Scalar>,
    pub(crate) grace_period_seconds: Option<&'a Scalar>,
    pub(crate) restart_policy: &'static str,
}

impl Work<'_> {
    /// Returns the spec of a Job whose pods have these labels.
    pub(crate) fn spec(&self, at: &At<'_>, name: &Leaf, labels: Fields) -> Fields {
        let mut spec = Fields::default();
        spec.put(
            "backoffLimit",
            at.scalar_field("backoffLimit", self.backoff_limit, Coerce::Int)
                .or(Some(ObjectTree::Fixed(Node::Int(BACKOFF_LIMIT)))),
        );
        let mut pod = Parts::ending(self.pod).spec(at, name);
        pod.put_text("restartPolicy", self.restart_policy);
        let grace = self.grace_period_seconds;
        let grace = at.scalar_field("gracePeriodSeconds", grace, Coerce::Int);
        pod.put("terminationGracePeriodSeconds", grace);
        spec.put("template", workload::template(labels, pod));
        spec
    }
}
