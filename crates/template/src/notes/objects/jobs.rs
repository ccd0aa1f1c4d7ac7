//! `Job` and `CronJob`.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use super::{CHECK, COUNT, TEXT, joined, name_of, text_of};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

const PODS: &str = "_pods";

/// A note on the Pods of a Job.
const PODS_OF_JOB: BuiltInNote = BuiltInNote {
    reads: &[PODS],
    result: NoteType::Text,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "jobSucceeded",
        doc: "True if a Pod of a Job has succeeded.",
        example: ("{{ jobSucceeded .children.job }}", "true"),
        reads: &["status.succeeded"],
        run: NoteBody::Eager(positive),
        ..CHECK
    },
    BuiltInNote {
        name: "jobFailed",
        doc: "True if a Pod of a Job has failed.",
        example: ("{{ jobFailed .children.job }}", "false"),
        reads: &["status.failed"],
        run: NoteBody::Eager(positive),
        ..CHECK
    },
    BuiltInNote {
        name: "jobActive",
        doc: "True if a Pod of a Job is active.",
        example: ("{{ jobActive .children.job }}", "false"),
        reads: &["status.active"],
        run: NoteBody::Eager(positive),
        ..CHECK
    },
    BuiltInNote {
        name: "jobFirstExitCode",
        doc: "The exit code of the first container that has terminated, if the Job is enriched with `pods`; -1 if there is none.",
        example: ("{{ jobFirstExitCode .children.job }}", "0"),
        result: NoteType::Int,
        run: NoteBody::Eager(first_exit_code),
        ..PODS_OF_JOB
    },
    BuiltInNote {
        name: "jobActivePodNames",
        doc: "The names of a Job's Pods that are pending or running, if it is enriched with `pods`.",
        example: ("{{ jobActivePodNames .children.job }}", ""),
        run: NoteBody::Eager(|call| pods_in(call, &["Pending", "Running"])),
        ..PODS_OF_JOB
    },
    BuiltInNote {
        name: "jobSucceededPodNames",
        doc: "The names of a Job's Pods that have succeeded, if it is enriched with `pods`.",
        example: (
            "{{ jobSucceededPodNames .children.job }}",
            "koi-clean-x7f2p",
        ),
        run: NoteBody::Eager(|call| pods_in(call, &["Succeeded"])),
        ..PODS_OF_JOB
    },
    BuiltInNote {
        name: "jobFailedPodNames",
        doc: "The names of a Job's Pods that have failed, if it is enriched with `pods`.",
        example: ("{{ jobFailedPodNames .children.job }}", ""),
        run: NoteBody::Eager(|call| pods_in(call, &["Failed"])),
        ..PODS_OF_JOB
    },
    BuiltInNote {
        name: "cronJobActiveCount",
        doc: "The number of active Jobs of a CronJob.",
        example: ("{{ cronJobActiveCount .children.cronJob }}", "1"),
        reads: &["status.active"],
        ..COUNT
    },
    BuiltInNote {
        name: "cronJobLastScheduleTime",
        doc: "The time at which a CronJob last created a Job.",
        example: (
            "{{ cronJobLastScheduleTime .children.cronJob }}",
            "2026-05-08T02:00:00Z",
        ),
        reads: &["status.lastScheduleTime"],
        ..TEXT
    },
    BuiltInNote {
        name: "cronJobNextScheduleTime",
        doc: "The time at which a CronJob creates its next Job, if its status contains it.",
        example: ("{{ cronJobNextScheduleTime .children.cronJob }}", ""),
        reads: &["status.nextScheduleTime"],
        ..TEXT
    },
    BuiltInNote {
        name: "cronJobLastSuccessTime",
        doc: "The time at which a Job of a CronJob last succeeded.",
        example: (
            "{{ cronJobLastSuccessTime .children.cronJob }}",
            "2026-05-07T02:01:10Z",
        ),
        reads: &["status.lastSuccessfulTime"],
        ..TEXT
    },
    BuiltInNote {
        name: "cronJobLastJobName",
        doc: "The name of a CronJob's last Job, if it is enriched with `cronjob`.",
        example: ("{{ cronJobLastJobName .children.cronJob }}", "koi-feed-2"),
        reads: &["_lastJob.name", "_lastJob.metadata.name"],
        ..TEXT
    },
    BuiltInNote {
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
    BuiltInNote {
        name: "cronJobLastJobSucceeded",
        doc: "True if a CronJob's last Job succeeded, if it is enriched with `cronjob`.",
        example: ("{{ cronJobLastJobSucceeded .children.cronJob }}", "false"),
        reads: &["_lastJob.succeeded", "_lastJob.status.succeeded"],
        run: NoteBody::Eager(positive),
        ..CHECK
    },
];

/// True if the first integer at the declared paths is more than 0.
fn positive<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let found = object.parts().find_map(|(_, node)| node.as_i64());
    Ok(found.is_some_and(|count| count > 0).into())
}

fn first_exit_code<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
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

fn pods_in<'d>(call: &mut NoteCall<'_, 'd>, phases: &[&str]) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let pods = object.list(PODS, call.budget)?.iter();
    let wanted = pods.filter(|pod| phases.contains(&text_of(pod, "phase")));
    joined(wanted.map(name_of), call.budget)
}
