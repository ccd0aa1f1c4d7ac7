//! `HorizontalPodAutoscaler`.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use super::{CHECK, INT, TEXT, is_true, joined, text_of};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

const CURRENT: &str = "status.currentReplicas";
const DESIRED: &str = "status.desiredReplicas";
const MOST: &str = "spec.maxReplicas";
const LEAST: &str = "spec.minReplicas";
const CONDITIONS: &str = "status.conditions";
/// The paths of metrics: as enriched, as measured, as declared.
const METRICS: &[&str] = &["_currentMetrics", "status.currentMetrics", "spec.metrics"];

/// A note that checks if a condition is true.
const CONDITION: BuiltInNote = BuiltInNote {
    reads: &[CONDITIONS],
    ..CHECK
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "hpaCurrentReplicas",
        doc: "The current number of replicas in an autoscaler's status.",
        example: ("{{ hpaCurrentReplicas .children.hpa }}", "2"),
        reads: &[CURRENT],
        ..INT
    },
    BuiltInNote {
        name: "hpaDesiredReplicas",
        doc: "The desired number of replicas in an autoscaler's status.",
        example: ("{{ hpaDesiredReplicas .children.hpa }}", "4"),
        reads: &[DESIRED],
        ..INT
    },
    BuiltInNote {
        name: "hpaMaxReplicas",
        doc: "The maximum number of replicas of an autoscaler.",
        example: ("{{ hpaMaxReplicas .children.hpa }}", "6"),
        reads: &[MOST],
        ..INT
    },
    BuiltInNote {
        name: "hpaMinReplicas",
        doc: "The minimum number of replicas of an autoscaler; 1 if not set.",
        example: ("{{ hpaMinReplicas .children.hpa }}", "1"),
        reads: &[LEAST],
        run: NoteBody::Eager(|call| Ok(call.object()?.at(LEAST).as_i64().unwrap_or(1).into())),
        ..INT
    },
    BuiltInNote {
        name: "hpaScalingActive",
        doc: "True if an autoscaler's condition ScalingActive is true: it can compute the desired scale.",
        example: ("{{ hpaScalingActive .children.hpa }}", "true"),
        run: NoteBody::Eager(|call| has_condition(call, "ScalingActive")),
        ..CONDITION
    },
    BuiltInNote {
        name: "hpaAbleToScale",
        doc: "True if an autoscaler's condition AbleToScale is true: it can scale its target.",
        example: ("{{ hpaAbleToScale .children.hpa }}", "true"),
        run: NoteBody::Eager(|call| has_condition(call, "AbleToScale")),
        ..CONDITION
    },
    BuiltInNote {
        name: "hpaScalingLimited",
        doc: "True if an autoscaler's condition ScalingLimited is true: its minimum or maximum limits the desired scale.",
        example: ("{{ hpaScalingLimited .children.hpa }}", "false"),
        run: NoteBody::Eager(|call| has_condition(call, "ScalingLimited")),
        ..CONDITION
    },
    BuiltInNote {
        name: "hpaScaling",
        doc: "True if an autoscaler is active and its desired and current numbers of replicas differ.",
        example: ("{{ hpaScaling .children.hpa }}", "true"),
        reads: &[CONDITIONS, CURRENT, DESIRED],
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            let active = is_true(object.list(CONDITIONS, call.budget)?, "ScalingActive");
            Ok((active && object.int(CURRENT) != object.int(DESIRED)).into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "hpaAtMax",
        doc: "True if the current replicas of an autoscaler have reached its maximum.",
        example: ("{{ hpaAtMax .children.hpa }}", "false"),
        reads: &[CURRENT, MOST],
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            let most = object.at(MOST).as_i64();
            Ok(most.is_some_and(|most| object.int(CURRENT) >= most).into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "hpaScaleTargetName",
        doc: "The name of an autoscaler's scale target.",
        example: ("{{ hpaScaleTargetName .children.hpa }}", "koi-pump"),
        reads: &[
            "_scaleTarget.name",
            "_scaleTarget.metadata.name",
            "spec.scaleTargetRef.name",
        ],
        ..TEXT
    },
    BuiltInNote {
        name: "hpaScaleTargetKind",
        doc: "The kind of an autoscaler's scale target.",
        example: ("{{ hpaScaleTargetKind .children.hpa }}", "Deployment"),
        reads: &["_scaleTarget.kind", "spec.scaleTargetRef.kind"],
        ..TEXT
    },
    BuiltInNote {
        name: "hpaMetricTypes",
        doc: "The types of the metrics of an autoscaler.",
        example: ("{{ hpaMetricTypes .children.hpa }}", "Resource"),
        result: NoteType::Text,
        reads: METRICS,
        run: NoteBody::Eager(metric_types),
        ..PLAIN
    },
];

fn has_condition<'d>(call: &mut NoteCall<'_, 'd>, wanted: &str) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    Ok(is_true(object.list(CONDITIONS, call.budget)?, wanted).into())
}

fn metric_types<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let metrics = object.parts().find_map(|(_, node)| node.as_list());
    let types = metrics.unwrap_or_default().iter();
    joined(
        types.map(|metric: &Node| text_of(metric, "type")),
        call.budget,
    )
}
