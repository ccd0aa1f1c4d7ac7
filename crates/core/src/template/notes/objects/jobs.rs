//! `Job` and `CronJob`.

use super::super::{Call, Note, PLAIN, Run, Type, Value};
use super::{CHECK, COUNT, TEXT, joined, name_of, text_of};
use crate::template::error::Failure;
use crate::value::Node;

const PODS: &str = "_pods";

/// A note on the Pods of a Job.
const PODS_OF_JOB: Note = Note {
    reads: &[PODS],
    result: Type::Text,
    ..PLAIN
};

pub(in super::super) static NOTES: &[Note] = &[
    Note {
        name: "jobSucceeded",
        doc: "True if a Pod of a Job has succeeded.",
        example: ("{{ jobSucceeded .children.job }}", "true"),
        reads: &["status.succeeded"],
        run: Run::Eager(positive),
        ..CHECK
    },
    Note {
        name: "jobFailed",
        doc: "True if a Pod of a Job has failed.",
        example: ("{{ jobFailed .children.job }}", "false"),
        reads: &["status.failed"],
        run: Run::Eager(positive),
        ..CHECK
    },
    Note {
        name: "jobActive",
        doc: "True if a Pod of a Job is active.",
        example: ("{{ jobActive .children.job }}", "false"),
        reads: &["status.active"],
        run: Run::Eager(positive),
        ..CHECK
    },
    Note {
        name: "jobFirstExitCode",
        doc: "The exit code of the first container that has terminated, if the Job is enriched with `pods`; -1 if there is none.",
        example: ("{{ jobFirstExitCode .children.job }}", "0"),
        result: Type::Int,
        run: Run::Eager(first_exit_code),
        ..PODS_OF_JOB
    },
    Note {
        name: "jobActivePodNames",
        doc: "The names of a Job's Pods that are pending or running, if it is enriched with `pods`.",
        example: ("{{ jobActivePodNames .children.job }}", ""),
        run: Run::Eager(|call| pods_in(call, &["Pending", "Running"])),
        ..PODS_OF_JOB
    },
    Note {
        name: "jobSucceededPodNames",
        doc: "The names of a Job's Pods that have succeeded, if it is enriched with `pods`.",
        example: (
            "{{ jobSucceededPodNames .children.job }}",
            "koi-clean-x7f2p",
        ),
        run: Run::Eager(|call| pods_in(call, &["Succeeded"])),
        ..PODS_OF_JOB
    },
    Note {
        name: "jobFailedPodNames",
        doc: "The names of a Job's Pods that have failed, if it is enriched with `pods`.",
        example: ("{{ jobFailedPodNames .children.job }}", ""),
        run: Run::Eager(|call| pods_in(call, &["Failed"])),
        ..PODS_OF_JOB
    },
    Note {
        name: "cronJobActiveCount",
        doc: "The number of active Jobs of a CronJob.",
        example: ("{{ cronJobActiveCount .children.cronJob }}", "1"),
        reads: &["status.active"],
        ..COUNT
    },
    Note {
        name: "cronJobLastScheduleTime",
        doc: "The time at which a CronJob last created a Job.",
        example: (
            "{{ cronJobLastScheduleTime .children.cronJob }}",
            "2026-05-08T02:00:00Z",
        ),
        reads: &["status.lastScheduleTime"],
        ..TEXT
    },
    Note {
        name: "cronJobNextScheduleTime",
        doc: "The time at which a CronJob creates its next Job, if its status contains it.",
        example: ("{{ cronJobNextScheduleTime .children.cronJob }}", ""),
        reads: &["status.nextScheduleTime"],
        ..TEXT
    },
    Note {
        name: "cronJobLastSuccessTime",
        doc: "The time at which a Job of a CronJob last succeeded.",
        example: (
            "{{ cronJobLastSuccessTime .children.cronJob }}",
            "2026-05-07T02:01:10Z",
        ),
        reads: &["status.lastSuccessfulTime"],
        ..TEXT
    },
    Note {
        name: "cronJobLastJobName",
        doc: "The name of a CronJob's last Job, if it is enriched with `cronjob`.",
        example: ("{{ cronJobLastJobName .children.cronJob }}", "koi-feed-2"),
        reads: &["_lastJob.name", "_lastJob.metadata.name"],
        ..TEXT
    },
    Note {
        name: "cronJobLastSuccessfulJobName",
        doc: "The name of a CronJob's last successful Job, if it is enriched with `cronjob`.",
        example: (
            "{{ cronJobLastSuccessfulJobName .children.cronJob }}",
            "koi-feed-1",
        ),
        reads: &[
            "_lastSuccessfulJob.name",
            "_lastSuccessfulJob.metadata.name",
        ],
        ..TEXT
    },
    Note {
        name: "cronJobLastJobSucceeded",
        doc: "True if a CronJob's last Job succeeded, if it is enriched with `cronjob`.",
        example: ("{{ cronJobLastJobSucceeded .children.cronJob }}", "false"),
        reads: &["_lastJob.succeeded", "_lastJob.status.succeeded"],
        run: Run::Eager(positive),
        ..CHECK
    },
];

/// True if the first integer at the declared paths is more than 0.
fn positive<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let object = call.object()?;
    let found = object.parts().find_map(|(_, node)| node.as_i64());
    Ok(found.is_some_and(|count| count > 0).into())
}

fn first_exit_code<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let object = call.object()?;
    for pod in object.list(PODS, call.budget)? {
        let containers = pod.get("containers").and_then(Node::as_list);
        for container in containers.unwrap_or_default() {
            call.budget.step(1)?;
            if let Some(code) = container.get("exitCode").and_then(Node::as_i64) {
                return Ok(code.into());
            }
        }
    }
    Ok((-1).into())
}

fn pods_in<'d>(call: &mut Call<'_, 'd>, phases: &[&str]) -> Result<Value<'d>, Failure> {
    let object = call.object()?;
    let pods = object.list(PODS, call.budget)?.iter();
    let wanted = pods.filter(|pod| phases.contains(&text_of(pod, "phase")));
    joined(wanted.map(name_of), call.budget)
}
