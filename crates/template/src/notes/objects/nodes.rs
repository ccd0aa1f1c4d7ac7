//! `Node`, and the node that a Pod runs on.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use super::{CHECK, KEYED, TEXT, condition, is_true, joined, text_of};
use crate::error::EvalFailure;

const CONDITIONS: &str = "status.conditions";
const TAINTS: &str = "spec.taints";

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "nodeReady",
        doc: "True if a node is ready.",
        example: ("{{ nodeReady .children.node }}", "true"),
        reads: &[CONDITIONS],
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            Ok(is_true(object.list(CONDITIONS, call.budget)?, "Ready").into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "nodeCondition",
        doc: "The status of a node's condition of the given type: `True`, `False` or `Unknown`.",
        example: (
            r#"{{ nodeCondition .children.node "DiskPressure" }}"#,
            "False",
        ),
        reads: &[CONDITIONS],
        result: NoteType::Text,
        run: NoteBody::Eager(node_condition),
        ..KEYED
    },
    BuiltInNote {
        name: "nodeAllocatableCPU",
        doc: "The allocatable CPU of a node.",
        example: ("{{ nodeAllocatableCPU .children.node }}", "3900m"),
        reads: &["status.allocatable.cpu"],
        ..TEXT
    },
    BuiltInNote {
        name: "nodeAllocatableMemory",
        doc: "The allocatable memory of a node.",
        example: ("{{ nodeAllocatableMemory .children.node }}", "15Gi"),
        reads: &["status.allocatable.memory"],
        ..TEXT
    },
    BuiltInNote {
        name: "nodeTaints",
        doc: "The keys of a node's taints.",
        example: ("{{ nodeTaints .children.node }}", "dedicated"),
        reads: &[TAINTS],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            let taints = object.list(TAINTS, call.budget)?.iter();
            joined(taints.map(|taint| text_of(taint, "key")), call.budget)
        }),
        ..PLAIN
    },
    BuiltInNote {
        name: "podNodeName",
        doc: "The name of the node that a Pod runs on.",
        example: ("{{ podNodeName .children.pod }}", "north-1"),
        reads: &["_node.name", "spec.nodeName"],
        ..TEXT
    },
    BuiltInNote {
        name: "podNodeZone",
        doc: "The zone of the node that a Pod runs on, if it is enriched with `node`.",
        example: ("{{ podNodeZone .children.pod }}", "north-a"),
        reads: &["_node.zone"],
        ..TEXT
    },
    BuiltInNote {
        name: "podNodeRegion",
        doc: "The region of the node that a Pod runs on, if it is enriched with `node`.",
        example: ("{{ podNodeRegion .children.pod }}", "north"),
        reads: &["_node.region"],
        ..TEXT
    },
    BuiltInNote {
        name: "podNodeInstanceType",
        doc: "The instance type of the node that a Pod runs on, if it is enriched with `node`.",
        example: ("{{ podNodeInstanceType .children.pod }}", "large"),
        reads: &["_node.instanceType"],
        ..TEXT
    },
];

fn node_condition<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (object, wanted) = (call.object()?, call.take(1));
    let conditions = object.list(CONDITIONS, call.budget)?;
    let wanted = wanted.node().as_str().unwrap_or_default();
    let found = condition(conditions, wanted);
    joined(found.map(|c| text_of(c, "status")), call.budget)
}
