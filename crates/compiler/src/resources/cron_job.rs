//! `cronJobs`.

use super::{Child, Metadata, Shorthand, job::Work, workload};
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{children::CronJob, scalar::Text},
    cron::Schedule,
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree};

/// The concurrency policies of runs.
const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];

/// The prefix of a schedule without fields, which Kubernetes accepts.
const EVERY: &str = "@every ";

impl Shorthand for CronJob {
    fn roll_on_change(&self) -> Option<bool> {
        self.rolling.roll_on_change
    }

    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields {
        let CronJob {
            common: _,
            rolling: _,
            pod,
            schedule,
            suspend,
            starting_deadline_seconds,
            successful_jobs_history_limit,
            failed_jobs_history_limit,
            concurrency_policy,
            backoff_limit,
        } = self;
        let at = &child.at;
        let mut spec = Fields::default();
        spec.put("schedule", self::schedule(at, schedule));
        spec.put(
            "suspend",
            at.scalar_field("suspend", suspend.as_ref(), Coerce::Bool),
        );
        for (name, number) in [
            ("startingDeadlineSeconds", starting_deadline_seconds),
            ("successfulJobsHistoryLimit", successful_jobs_history_limit),
            ("failedJobsHistoryLimit", failed_jobs_history_limit),
        ] {
            spec.put(name, at.scalar_field(name, number.as_ref(), Coerce::Int));
        }
        spec.put(
            "concurrencyPolicy",
            at.word_field("concurrencyPolicy", concurrency_policy.as_ref(), &POLICIES),
        );
        let work = Work {
            pod,
            backoff_limit: backoff_limit.as_ref(),
            grace_period_seconds: None,
            restart_policy: "OnFailure",
        };
        let labels = workload::recommended(metadata.labels.clone());
        let run = work.spec(at, &child.name, labels);
        spec.put("jobTemplate", run.into_root("spec").into_tree());
        spec.into_root("spec")
    }
}

fn schedule(at: &At<'_>, text: &Text) -> Option<ObjectTree> {
    let tree = at.required("schedule", text)?;
    let literal = text.trim();
    if !text.contains("{{")
        && !literal.starts_with(EVERY)
        && let Err(why) = Schedule::parse(literal)
    {
        let message = format!("`{literal}` is not a valid schedule: {why}");
        at.field("schedule").error(Code::BadSchedule, message);
    }
    Some(tree)
}
