//! The Pods of a workload, as added by `enrich`.
//!
//! `_pods` is a list of maps with `name`, `ip`, `phase`, `ready`, `node`, `restartCount` and `containers`, whose items have
//! `name`, `state`, `reason` and, after termination, `exitCode`.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use super::{CHECK, COUNT, Object, joined, name_of, number, text_of, unique};
use crate::budget::EvalBudget;
use crate::error::EvalFailure;
use orkestra_object::value::{Key, Map, Node};

const PODS: &str = "_pods";

/// A Pod with more restarts is crashing.
const RESTARTS: i64 = 2;

/// Texts from the Pods.
const OF_PODS: BuiltInNote = BuiltInNote {
    reads: &[PODS],
    result: NoteType::Text,
    ..PLAIN
};

/// A note that checks if a container waits or terminated for a reason.
const REASON: BuiltInNote = BuiltInNote {
    reads: &[PODS],
    ..CHECK
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "podNames",
        doc: "The names of a workload's Pods, if it is enriched with `pods`.",
        example: (
            "{{ podNames .children.statefulSet }}",
            "koi-tank-0, koi-tank-1",
        ),
        run: NoteBody::Eager(|call| of_each(call, name_of)),
        ..OF_PODS
    },
    BuiltInNote {
        name: "podIPs",
        doc: "The addresses of a workload's Pods, if it is enriched with `pods`.",
        example: ("{{ podIPs .children.statefulSet }}", "10.0.0.1, 10.0.0.2"),
        run: NoteBody::Eager(|call| of_each(call, |pod| text_of(pod, "ip"))),
        ..OF_PODS
    },
    BuiltInNote {
        name: "podPhases",
        doc: "The phases of a workload's Pods, if it is enriched with `pods`.",
        example: ("{{ podPhases .children.statefulSet }}", "Running, Pending"),
        run: NoteBody::Eager(|call| of_each(call, |pod| text_of(pod, "phase"))),
        ..OF_PODS
    },
    BuiltInNote {
        name: "podNodes",
        doc: "The nodes of a workload's Pods, if it is enriched with `pods`.",
        example: ("{{ podNodes .children.statefulSet }}", "north-1, north-2"),
        run: NoteBody::Eager(|call| of_each(call, |pod| text_of(pod, "node"))),
        ..OF_PODS
    },
    BuiltInNote {
        name: "podCount",
        doc: "The number of Pods of a workload, if it is enriched with `pods`.",
        example: ("{{ podCount .children.statefulSet }}", "2"),
        reads: &[PODS],
        ..COUNT
    },
    BuiltInNote {
        name: "readyPodCount",
        doc: "The number of ready Pods of a workload, if it is enriched with `pods`.",
        example: ("{{ readyPodCount .children.statefulSet }}", "1"),
        result: NoteType::Int,
        run: NoteBody::Eager(ready_count),
        ..OF_PODS
    },
    BuiltInNote {
        name: "podMaxRestarts",
        doc: "The highest number of restarts of a Pod, if the workload is enriched with `pods`.",
        example: ("{{ podMaxRestarts .children.statefulSet }}", "3"),
        result: NoteType::Int,
        run: NoteBody::Eager(|call| Ok(max_restarts(call)?.into())),
        ..OF_PODS
    },
    BuiltInNote {
        name: "hasCrashingPod",
        doc: "True if a Pod of a workload restarted more than twice, if it is enriched with `pods`.",
        example: ("{{ hasCrashingPod .children.statefulSet }}", "true"),
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| Ok((max_restarts(call)? > RESTARTS).into())),
        ..OF_PODS
    },
    BuiltInNote {
        name: "podByOrdinal",
        doc: "The Pod whose name ends in the given number, if the workload is enriched with `pods`; null if there is none.",
        example: (
            "{{ (podByOrdinal .children.statefulSet 1).name }}",
            "koi-tank-1",
        ),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Any, NoteType::Int],
        result: NoteType::Map,
        run: NoteBody::Eager(by_ordinal),
        ..OF_PODS
    },
    BuiltInNote {
        name: "podContainerState",
        doc: "The state of a container in the Pod whose name ends in the given number, if the workload is enriched with `pods`.",
        example: (
            r#"{{ podContainerState .children.statefulSet 0 "tank" }}"#,
            "Waiting",
        ),
        min_args: 3,
        max_args: Some(3),
        params: &[NoteType::Any, NoteType::Int, NoteType::Text],
        run: NoteBody::Eager(container_state),
        ..OF_PODS
    },
    BuiltInNote {
        name: "podContainerReasons",
        doc: "The reasons why containers of a workload wait or terminated, each once, if it is enriched with `pods`.",
        example: (
            "{{ podContainerReasons .children.statefulSet }}",
            "CrashLoopBackOff",
        ),
        run: NoteBody::Eager(container_reasons),
        ..OF_PODS
    },
    BuiltInNote {
        name: "podCrashLoopDetected",
        doc: "True if a container waits or terminated with the reason CrashLoopBackOff, if the workload is enriched with `pods`.",
        example: ("{{ podCrashLoopDetected .children.statefulSet }}", "true"),
        run: NoteBody::Eager(|call| has_reason(call, "CrashLoopBackOff")),
        ..REASON
    },
    BuiltInNote {
        name: "podImagePullBackOffDetected",
        doc: "True if a container waits or terminated with the reason ImagePullBackOff, if the workload is enriched with `pods`.",
        example: (
            "{{ podImagePullBackOffDetected .children.statefulSet }}",
            "false",
        ),
        run: NoteBody::Eager(|call| has_reason(call, "ImagePullBackOff")),
        ..REASON
    },
    BuiltInNote {
        name: "podErrImagePullDetected",
        doc: "True if a container waits or terminated with the reason ErrImagePull, if the workload is enriched with `pods`.",
        example: (
            "{{ podErrImagePullDetected .children.statefulSet }}",
            "false",
        ),
        run: NoteBody::Eager(|call| has_reason(call, "ErrImagePull")),
        ..REASON
    },
    BuiltInNote {
        name: "podErrorDetected",
        doc: "True if a container waits or terminated with the reason Error, if the workload is enriched with `pods`.",
        example: ("{{ podErrorDetected .children.statefulSet }}", "false"),
        run: NoteBody::Eager(|call| has_reason(call, "Error")),
        ..REASON
    },
    BuiltInNote {
        name: "podOOMKilledDetected",
        doc: "True if a container waits or terminated with the reason OOMKilled, if the workload is enriched with `pods`.",
        example: ("{{ podOOMKilledDetected .children.statefulSet }}", "false"),
        run: NoteBody::Eager(|call| has_reason(call, "OOMKilled")),
        ..REASON
    },
    BuiltInNote {
        name: "podRunContainerErrorDetected",
        doc: "True if a container waits or terminated with the reason RunContainerError, if the workload is enriched with `pods`.",
        example: (
            "{{ podRunContainerErrorDetected .children.statefulSet }}",
            "false",
        ),
        run: NoteBody::Eager(|call| has_reason(call, "RunContainerError")),
        ..REASON
    },
    BuiltInNote {
        name: "podCreateContainerErrorDetected",
        doc: "True if a container waits or terminated with the reason CreateContainerError, if the workload is enriched with `pods`.",
        example: (
            "{{ podCreateContainerErrorDetected .children.statefulSet }}",
            "false",
        ),
        run: NoteBody::Eager(|call| has_reason(call, "CreateContainerError")),
        ..REASON
    },
    BuiltInNote {
        name: "podInvalidImageNameDetected",
        doc: "True if a container waits or terminated with the reason InvalidImageName, if the workload is enriched with `pods`.",
        example: (
            "{{ podInvalidImageNameDetected .children.statefulSet }}",
            "false",
        ),
        run: NoteBody::Eager(|call| has_reason(call, "InvalidImageName")),
        ..REASON
    },
    BuiltInNote {
        name: "podPreStartHookErrorDetected",
        doc: "True if a container waits or terminated with the reason PreStartHookError, if the workload is enriched with `pods`.",
        example: (
            "{{ podPreStartHookErrorDetected .children.statefulSet }}",
            "false",
        ),
        run: NoteBody::Eager(|call| has_reason(call, "PreStartHookError")),
        ..REASON
    },
    BuiltInNote {
        name: "podPostStartHookErrorDetected",
        doc: "True if a container waits or terminated with the reason PostStartHookError, if the workload is enriched with `pods`.",
        example: (
            "{{ podPostStartHookErrorDetected .children.statefulSet }}",
            "false",
        ),
        run: NoteBody::Eager(|call| has_reason(call, "PostStartHookError")),
        ..REASON
    },
];

fn of_each<'d>(
    call: &mut NoteCall<'_, 'd>,
    text: for<'n> fn(&'n Node) -> &'n str,
) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let pods = object.list(PODS, call.budget)?;
    joined(pods.iter().map(text), call.budget)
}

fn ready_count<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let pods = object.list(PODS, call.budget)?.iter();
    let ready = pods.filter(|pod| pod.get("ready").and_then(Node::as_bool) == Some(true));
    Ok(number(ready.count()).into())
}

fn max_restarts(call: &mut NoteCall<'_, '_>) -> Result<i64, EvalFailure> {
    let object = call.object()?;
    let pods = object.list(PODS, call.budget)?.iter();
    let restarts = pods.filter_map(|pod| pod.get("restartCount")?.as_i64());
    Ok(restarts.max().unwrap_or_default())
}

/// Returns the number after the last hyphen of a Pod's name, as a `StatefulSet` assigns it.
fn ordinal(pod: &Node) -> Option<i64> {
    let (_, digits) = name_of(pod).rsplit_once('-')?;
    let sound = digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| sound)
}

fn pod_of<'o>(
    object: &'o Object<'_, '_>,
    wanted: &Node,
    budget: &mut EvalBudget,
) -> Result<Option<&'o Node>, EvalFailure> {
    let wanted = match wanted {
        Node::Null => Some(0),
        node => node.as_i64(),
    };
    let mut pods = object.list(PODS, budget)?.iter();
    Ok(pods.find(|pod| wanted.is_some() && ordinal(pod) == wanted))
}

fn by_ordinal<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    const KEYS: [&str; 6] = ["name", "ip", "phase", "ready", "node", "restartCount"];
    let (object, wanted) = (call.object()?, call.take(1));
    let Some(pod) = pod_of(&object, wanted.node(), call.budget)? else {
        return Ok(Value::null());
    };
    call.budget.items(KEYS.len() + 1)?;
    call.budget.take(pod.heap_bytes())?;
    let parts = KEYS
        .iter()
        .filter_map(|key| Some((*key, pod.get(key)?.clone())));
    let ordinal = ordinal(pod).map(|n| ("ordinal", Node::Int(n)));
    let pod: Map = parts
        .chain(ordinal)
        .map(|(key, node)| (Key::new(key), node))
        .collect();
    Ok(Node::from(pod).into())
}

fn container_state<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (object, wanted, name) = (call.object()?, call.take(1), call.take(2));
    let pod = pod_of(&object, wanted.node(), call.budget)?;
    let name = name.node().as_str().unwrap_or_default();
    let found = containers(pod)
        .iter()
        .find(|container| name_of(container) == name);
    call.budget.step(containers(pod).len() as u64)?;
    joined(
        found.map(|container| text_of(container, "state")),
        call.budget,
    )
}

fn containers(pod: Option<&Node>) -> &[Node] {
    let containers = pod.and_then(|pod| pod.get("containers")?.as_list());
    containers.unwrap_or_default()
}

/// Returns the reasons of all containers, without empty ones.
fn reasons<'o>(
    object: &'o Object<'_, '_>,
    budget: &mut EvalBudget,
) -> Result<impl Iterator<Item = &'o str>, EvalFailure> {
    let pods = object.list(PODS, budget)?;
    let all = pods.iter().map(|pod| containers(Some(pod)));
    budget.step(all.clone().map(<[Node]>::len).sum::<usize>() as u64)?;
    let reasons = all.flatten().map(|container| text_of(container, "reason"));
    Ok(reasons.filter(|reason| !reason.is_empty()))
}

fn container_reasons<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let reasons = unique(reasons(&object, call.budget)?);
    joined(reasons, call.budget)
}

fn has_reason<'d>(call: &mut NoteCall<'_, 'd>, wanted: &str) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let found = reasons(&object, call.budget)?.any(|reason| reason == wanted);
    Ok(found.into())
}
