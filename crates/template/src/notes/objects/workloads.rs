//! `Deployment`, `StatefulSet` and `ReplicaSet`.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, Value};
use super::{CHECK, COUNT, INT, Object, PLAIN, TEXT, name_of};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

const DESIRED: &str = "spec.replicas";
const READY: &str = "status.readyReplicas";
const UPDATED: &str = "status.updatedReplicas";
const REPLICA_SETS: &str = "_replicaSets";

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "desiredReplicas",
        doc: "The desired number of replicas of a workload; 1 if not set.",
        example: ("{{ desiredReplicas .children.deployment }}", "3"),
        reads: &[DESIRED],
        run: NoteBody::Eager(|call| Ok(desired(&call.object()?).into())),
        ..INT
    },
    BuiltInNote {
        name: "readyReplicas",
        doc: "The number of ready replicas of a workload.",
        example: ("{{ readyReplicas .children.deployment }}", "2"),
        reads: &[READY],
        ..INT
    },
    BuiltInNote {
        name: "availableReplicas",
        doc: "The number of available replicas of a workload.",
        example: ("{{ availableReplicas .children.deployment }}", "1"),
        reads: &["status.availableReplicas"],
        ..INT
    },
    BuiltInNote {
        name: "updatedReplicas",
        doc: "The number of replicas of a workload that are updated to its current template.",
        example: ("{{ updatedReplicas .children.deployment }}", "3"),
        reads: &[UPDATED],
        ..INT
    },
    BuiltInNote {
        name: "allReplicasReady",
        aliases: &["replicasReady"],
        doc: "True if the number of ready replicas of a workload is the desired one; false if there is no workload.",
        example: (
            "{{ allReplicasReady .children.deployment }} {{ allReplicasReady .children.statefulSet }}",
            "false true",
        ),
        reads: &[DESIRED, READY],
        run: NoteBody::Eager(|call| Ok(reached(&call.object()?, READY).into())),
        ..CHECK
    },
    BuiltInNote {
        name: "rolloutComplete",
        doc: "True if all replicas of a workload are updated to its current template; false if there is no workload.",
        example: ("{{ rolloutComplete .children.deployment }}", "true"),
        reads: &[DESIRED, UPDATED],
        run: NoteBody::Eager(|call| Ok(reached(&call.object()?, UPDATED).into())),
        ..CHECK
    },
    BuiltInNote {
        name: "statefulSetCurrentRevision",
        doc: "The current revision in a StatefulSet's status: that of Pods that are not updated yet.",
        example: (
            "{{ statefulSetCurrentRevision .children.statefulSet }}",
            "koi-tank-1",
        ),
        reads: &["status.currentRevision"],
        ..TEXT
    },
    BuiltInNote {
        name: "statefulSetUpdateRevision",
        doc: "The update revision in a StatefulSet's status: that of updated Pods.",
        example: (
            "{{ statefulSetUpdateRevision .children.statefulSet }}",
            "koi-tank-2",
        ),
        reads: &["status.updateRevision"],
        ..TEXT
    },
    BuiltInNote {
        name: "statefulSetPVCCount",
        doc: "The number of volume claims of a StatefulSet, if it is enriched with `pvcs`.",
        example: ("{{ statefulSetPVCCount .children.statefulSet }}", "2"),
        reads: &["_pvcs"],
        ..COUNT
    },
    BuiltInNote {
        name: "deploymentReplicaSetCount",
        doc: "The number of ReplicaSets of a Deployment, including those without replicas, if it is enriched with `replicasets`.",
        example: ("{{ deploymentReplicaSetCount .children.deployment }}", "2"),
        reads: &[REPLICA_SETS],
        ..COUNT
    },
    BuiltInNote {
        name: "deploymentReplicaSets",
        doc: "The names of a Deployment's ReplicaSets, if it is enriched with `replicasets`.",
        example: (
            "{{ deploymentReplicaSets .children.deployment }}",
            "[koi-pump-6c5 koi-pump-7d9]",
        ),
        result: NoteType::List,
        reads: &[REPLICA_SETS],
        run: NoteBody::Eager(|call| replica_sets(call, false)),
        ..PLAIN
    },
    BuiltInNote {
        name: "oldDeploymentReplicaSets",
        doc: "The names of a Deployment's ReplicaSets with older templates than the current one, if it is enriched with `replicasets`.",
        example: (
            "{{ oldDeploymentReplicaSets .children.deployment }}",
            "[koi-pump-6c5]",
        ),
        result: NoteType::List,
        reads: &[REPLICA_SETS],
        run: NoteBody::Eager(|call| replica_sets(call, true)),
        ..PLAIN
    },
    BuiltInNote {
        name: "replicaSetOwnerName",
        doc: "The name of a ReplicaSet's owner.",
        example: ("{{ replicaSetOwnerName .children.replicaSet }}", "koi-pump"),
        reads: &["_owner.name", "metadata.ownerReferences.0.name"],
        ..TEXT
    },
    BuiltInNote {
        name: "replicaSetOwnerKind",
        doc: "The kind of a ReplicaSet's owner.",
        example: (
            "{{ replicaSetOwnerKind .children.replicaSet }}",
            "Deployment",
        ),
        reads: &["_owner.kind", "metadata.ownerReferences.0.kind"],
        ..TEXT
    },
];

/// Returns the desired number of replicas; Kubernetes' default is 1.
fn desired(object: &Object<'_, '_>) -> i64 {
    object.at(DESIRED).as_i64().unwrap_or(1)
}

fn reached(object: &Object<'_, '_>, count: &str) -> bool {
    object.int(count) == desired(object)
}

/// Returns the names of all replica sets, or of those with an older Pod template than the newest.
fn replica_sets<'d>(call: &mut NoteCall<'_, 'd>, old: bool) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let sets = object.list(REPLICA_SETS, call.budget)?;
    let newest = sets.iter().map(revision).max();
    let wanted = |set: &&Node| !old || Some(revision(set)) != newest;
    let names = sets.iter().filter(wanted).map(name_of);
    call.budget.items(sets.len())?;
    call.budget.take(names.clone().map(str::len).sum())?;
    let names: Vec<Node> = names.map(Node::from).collect();
    Ok(Node::from(names).into())
}

/// Returns the revision of a replica set, as added by `enrich` or as in Kubernetes objects. Later Pod templates have higher
/// numbers.
fn revision(set: &Node) -> i64 {
    let annotations = set.meta("annotations");
    let reported = [
        set.get("revision"),
        annotations.and_then(|a| a.get("deployment.kubernetes.io/revision")),
    ];
    let text = reported.into_iter().flatten().find_map(Node::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
