//! The parts that every object has: metadata, spec, status and conditions.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, Value};
use super::{CHECK, INT, KEYED, MAP, TEXT, condition, is_scalar, is_true, text_of};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

const LABELS: &str = "metadata.labels";
const ANNOTATIONS: &str = "metadata.annotations";
/// One label; the next constant is one annotation.
const LABEL: &str = "metadata.labels.*";
const ANNOTATION: &str = "metadata.annotations.*";
const CONDITIONS: &str = "status.conditions";

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "meta",
        doc: "The metadata of an object.",
        example: ("{{ (meta .children.deployment).generation }}", "2"),
        reads: &["metadata"],
        ..MAP
    },
    BuiltInNote {
        name: "labels",
        doc: "The labels of an object.",
        example: (r#"{{ get (labels .children.deployment) "app" }}"#, "pump"),
        reads: &[LABELS],
        ..MAP
    },
    BuiltInNote {
        name: "annotations",
        doc: "The annotations of an object.",
        example: (
            r#"{{ get (annotations .) "garden.example/keeper" }}"#,
            "mira",
        ),
        reads: &[ANNOTATIONS],
        ..MAP
    },
    BuiltInNote {
        name: "spec",
        doc: "The spec of an object.",
        example: ("{{ (spec .children.deployment).replicas }}", "3"),
        reads: &["spec"],
        ..MAP
    },
    BuiltInNote {
        name: "status",
        doc: "The status of an object.",
        example: ("{{ (status .children.deployment).updatedReplicas }}", "3"),
        reads: &["status"],
        ..MAP
    },
    BuiltInNote {
        name: "name",
        aliases: &["resourceName"],
        doc: "The name of an object.",
        example: ("{{ name .children.deployment }}", "koi-pump"),
        reads: &["metadata.name"],
        ..TEXT
    },
    BuiltInNote {
        name: "namespace",
        aliases: &["resourceNamespace"],
        doc: "The namespace of an object; empty if it has none.",
        example: ("{{ namespace .children.deployment }}", "garden"),
        reads: &["metadata.namespace"],
        ..TEXT
    },
    BuiltInNote {
        name: "resourceUID",
        doc: "The uid of an object.",
        example: (
            "{{ resourceUID . }}",
            "5d1f0a52-8c1e-4f0b-9a55-0c6a2f4e9b11",
        ),
        reads: &["metadata.uid"],
        ..TEXT
    },
    BuiltInNote {
        name: "resourceVersion",
        doc: "The resource version of an object.",
        example: ("{{ resourceVersion . }}", "4711"),
        reads: &["metadata.resourceVersion"],
        ..TEXT
    },
    BuiltInNote {
        name: "creationTimestamp",
        doc: "The creation time of an object.",
        example: ("{{ creationTimestamp . }}", "2026-05-01T06:30:00Z"),
        reads: &["metadata.creationTimestamp"],
        ..TEXT
    },
    BuiltInNote {
        name: "phase",
        doc: "The phase in an object's status.",
        example: ("{{ phase . }}", "Filled"),
        reads: &["status.phase"],
        ..TEXT
    },
    BuiltInNote {
        name: "ownerKind",
        doc: "The kind of an object's first owner.",
        example: ("{{ ownerKind . }}", "Garden"),
        reads: &["metadata.ownerReferences.0.kind"],
        ..TEXT
    },
    BuiltInNote {
        name: "ownerName",
        doc: "The name of an object's first owner.",
        example: ("{{ ownerName . }}", "north"),
        reads: &["metadata.ownerReferences.0.name"],
        ..TEXT
    },
    BuiltInNote {
        name: "getLabel",
        doc: "The value of an object's label.",
        example: (r#"{{ getLabel . "app" }}"#, "pond"),
        reads: &[LABEL],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| keyed_text(call, LABELS)),
        ..KEYED
    },
    BuiltInNote {
        name: "getAnnotation",
        doc: "The value of an object's annotation.",
        example: (r#"{{ getAnnotation . "garden.example/keeper" }}"#, "mira"),
        reads: &[ANNOTATION],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| keyed_text(call, ANNOTATIONS)),
        ..KEYED
    },
    BuiltInNote {
        name: "getLabelInt",
        doc: "The value of an object's label as an integer; 0 if it is not one.",
        example: (r#"{{ getLabelInt . "depth" }}"#, "4"),
        reads: &[LABEL],
        result: NoteType::Int,
        run: NoteBody::Eager(|call| keyed_int(call, LABELS)),
        ..KEYED
    },
    BuiltInNote {
        name: "getAnnotationInt",
        doc: "The value of an object's annotation as an integer; 0 if it is not one.",
        example: (
            r#"{{ getAnnotationInt .children.deployment "garden.example/least" }}"#,
            "2",
        ),
        reads: &[ANNOTATION],
        result: NoteType::Int,
        run: NoteBody::Eager(|call| keyed_int(call, ANNOTATIONS)),
        ..KEYED
    },
    BuiltInNote {
        name: "hasLabel",
        doc: "True if an object has a label with a value that is not empty.",
        example: (
            r#"{{ hasLabel . "app" }} {{ hasLabel . "colour" }}"#,
            "true false",
        ),
        reads: &[LABEL],
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| has_key(call, LABELS)),
        ..KEYED
    },
    BuiltInNote {
        name: "hasAnnotation",
        doc: "True if an object has an annotation with a value that is not empty.",
        example: (r#"{{ hasAnnotation . "garden.example/keeper" }}"#, "true"),
        reads: &[ANNOTATION],
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| has_key(call, ANNOTATIONS)),
        ..KEYED
    },
    BuiltInNote {
        name: "labelMatches",
        doc: "True if an object has all the given labels, each as a key and a value.",
        example: (r#"{{ labelMatches . "app" "pond" "depth" "4" }}"#, "true"),
        min_args: 3,
        max_args: None,
        params: &[NoteType::Any, NoteType::Text],
        reads: &[LABELS],
        run: NoteBody::Eager(label_matches),
        ..CHECK
    },
    BuiltInNote {
        name: "getStatus",
        doc: "A field of an object's status as text; empty if it is a list or a map.",
        example: (
            r#"{{ getStatus .children.deployment "readyReplicas" }}"#,
            "2",
        ),
        reads: &["status.*"],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| keyed_text(call, "status")),
        ..KEYED
    },
    BuiltInNote {
        name: "hasStatus",
        doc: "True if an object's status has a field that is not an empty text, list or map.",
        example: (
            r#"{{ hasStatus .children.deployment "conditions" }} {{ hasStatus . "message" }}"#,
            "true false",
        ),
        reads: &["status.*"],
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| has_key(call, "status")),
        ..KEYED
    },
    BuiltInNote {
        name: "hasCondition",
        doc: "True if an object's condition of the given type is true.",
        example: (
            r#"{{ hasCondition .children.deployment "Available" }}"#,
            "true",
        ),
        reads: &[CONDITIONS],
        result: NoteType::Bool,
        run: NoteBody::Eager(has_condition),
        ..KEYED
    },
    BuiltInNote {
        name: "conditionReason",
        doc: "The reason of an object's condition of the given type, regardless of its status.",
        example: (
            r#"{{ conditionReason .children.deployment "Available" }}"#,
            "Enough",
        ),
        reads: &[CONDITIONS],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| of_condition(call, "reason")),
        ..KEYED
    },
    BuiltInNote {
        name: "conditionMessage",
        doc: "The message of an object's condition of the given type, regardless of its status.",
        example: (
            r#"{{ conditionMessage .children.deployment "Available" }}"#,
            "two of three",
        ),
        reads: &[CONDITIONS],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| of_condition(call, "message")),
        ..KEYED
    },
    BuiltInNote {
        name: "resourceExists",
        doc: "True if the object exists.",
        example: (
            "{{ resourceExists .children.deployment }} {{ resourceExists .children.secret }}",
            "true false",
        ),
        reads: &["_placeholder"],
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            let placeholder = object.at("_placeholder").as_bool() == Some(true);
            Ok((object.is_map() && !placeholder).into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "isTerminating",
        doc: "True if an object is being deleted.",
        example: ("{{ isTerminating .children.deployment }}", "false"),
        reads: &["metadata.deletionTimestamp"],
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            Ok((!object.at("metadata.deletionTimestamp").is_empty_value()).into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "generation",
        doc: "The generation of an object.",
        example: ("{{ generation .children.deployment }}", "2"),
        reads: &["metadata.generation"],
        ..INT
    },
    BuiltInNote {
        name: "observedGeneration",
        doc: "The observed generation in an object's status.",
        example: ("{{ observedGeneration .children.deployment }}", "1"),
        reads: &["status.observedGeneration"],
        ..INT
    },
    BuiltInNote {
        name: "isSynced",
        doc: "True if an object's observed generation equals its generation; also true if neither is set.",
        example: (
            "{{ isSynced . }} {{ isSynced .children.deployment }}",
            "true false",
        ),
        reads: &["metadata.generation", "status.observedGeneration"],
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            let observed = object.int("status.observedGeneration");
            Ok((object.int("metadata.generation") == observed).into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "resourceCPU",
        doc: "The CPU that an object's spec requests.",
        example: ("{{ resourceCPU . }}", "500m"),
        reads: &["spec.resources.requests.cpu"],
        ..TEXT
    },
    BuiltInNote {
        name: "resourceMemory",
        doc: "The memory that an object's spec requests.",
        example: ("{{ resourceMemory . }}", "1Gi"),
        reads: &["spec.resources.requests.memory"],
        ..TEXT
    },
];

fn keyed_text<'d>(call: &mut NoteCall<'_, 'd>, map: &str) -> Result<Value<'d>, EvalFailure> {
    let (object, key) = (call.object()?, call.take(1));
    let found = object.under(map, key.node()).filter(|node| is_scalar(node));
    let text = found.map(Node::to_text).unwrap_or_default();
    call.budget.text(text.len())?;
    Ok(Node::from(text.into_owned()).into())
}

fn keyed_int<'d>(call: &mut NoteCall<'_, 'd>, map: &str) -> Result<Value<'d>, EvalFailure> {
    let (object, key) = (call.object()?, call.take(1));
    let number = match object.under(map, key.node()) {
        Some(Node::Str(text)) => text.trim().parse().ok(),
        Some(node) => node.as_i64(),
        None => None,
    };
    Ok(number.unwrap_or_default().into())
}

fn has_key<'d>(call: &mut NoteCall<'_, 'd>, map: &str) -> Result<Value<'d>, EvalFailure> {
    let (object, key) = (call.object()?, call.take(1));
    let found = object.under(map, key.node());
    Ok(found.is_some_and(is_something).into())
}

/// True if a value is not null and not an empty text, list or map.
fn is_something(node: &Node) -> bool {
    match node {
        Node::Bool(_) | Node::Int(_) | Node::UInt(_) | Node::Float(_) => true,
        node => !node.is_empty_value(),
    }
}

fn label_matches<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let labels = object.at(LABELS);
    let pairs = call.args.get(1..).unwrap_or_default().chunks_exact(2);
    let matches = pairs.into_iter().all(|pair| {
        let key = pair[0].node().as_str();
        let label = key.and_then(|key| labels.get(key)?.as_str());
        label.is_some() && label == pair[1].node().as_str()
    });
    Ok(matches.into())
}

fn has_condition<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (object, wanted) = (call.object()?, call.take(1));
    let conditions = object.list(CONDITIONS, call.budget)?;
    let wanted = wanted.node().as_str().unwrap_or_default();
    Ok(is_true(conditions, wanted).into())
}

fn of_condition<'d>(call: &mut NoteCall<'_, 'd>, field: &str) -> Result<Value<'d>, EvalFailure> {
    let (object, wanted) = (call.object()?, call.take(1));
    let conditions = object.list(CONDITIONS, call.budget)?;
    let wanted = wanted.node().as_str().unwrap_or_default();
    let text = condition(conditions, wanted).map_or("", |c| text_of(c, field));
    call.budget.text(text.len())?;
    Ok(Node::from(text).into())
}
