//! The parts that every object has: metadata, spec, status and conditions.

use super::super::{Call, Note, Run, Type, Value};
use super::{CHECK, INT, KEYED, MAP, TEXT, condition, is_scalar, is_true, text_of};
use crate::template::error::Failure;
use crate::value::Node;

const LABELS: &str = "metadata.labels";
const ANNOTATIONS: &str = "metadata.annotations";
/// One label; the next constant is one annotation.
const LABEL: &str = "metadata.labels.*";
const ANNOTATION: &str = "metadata.annotations.*";
const CONDITIONS: &str = "status.conditions";

pub(in super::super) static NOTES: &[Note] = &[
    Note {
        name: "meta",
        doc: "The metadata of an object.",
        example: ("{{ (meta .children.deployment).generation }}", "2"),
        reads: &["metadata"],
        ..MAP
    },
    Note {
        name: "labels",
        doc: "The labels of an object.",
        example: (r#"{{ get (labels .children.deployment) "app" }}"#, "pump"),
        reads: &[LABELS],
        ..MAP
    },
    Note {
        name: "annotations",
        doc: "The annotations of an object.",
        example: (
            r#"{{ get (annotations .) "garden.example/keeper" }}"#,
            "mira",
        ),
        reads: &[ANNOTATIONS],
        ..MAP
    },
    Note {
        name: "spec",
        doc: "The spec of an object.",
        example: ("{{ (spec .children.deployment).replicas }}", "3"),
        reads: &["spec"],
        ..MAP
    },
    Note {
        name: "status",
        doc: "The status of an object.",
        example: ("{{ (status .children.deployment).updatedReplicas }}", "3"),
        reads: &["status"],
        ..MAP
    },
    Note {
        name: "name",
        aliases: &["resourceName"],
        doc: "The name of an object.",
        example: ("{{ name .children.deployment }}", "koi-pump"),
        reads: &["metadata.name"],
        ..TEXT
    },
    Note {
        name: "namespace",
        aliases: &["resourceNamespace"],
        doc: "The namespace of an object; empty if it has none.",
        example: ("{{ namespace .children.deployment }}", "garden"),
        reads: &["metadata.namespace"],
        ..TEXT
    },
    Note {
        name: "resourceUID",
        doc: "The uid of an object.",
        example: (
            "{{ resourceUID . }}",
            "5d1f0a52-8c1e-4f0b-9a55-0c6a2f4e9b11",
        ),
        reads: &["metadata.uid"],
        ..TEXT
    },
    Note {
        name: "resourceVersion",
        doc: "The resource version of an object.",
        example: ("{{ resourceVersion . }}", "4711"),
        reads: &["metadata.resourceVersion"],
        ..TEXT
    },
    Note {
        name: "creationTimestamp",
        doc: "The creation time of an object.",
        example: ("{{ creationTimestamp . }}", "2026-05-01T06:30:00Z"),
        reads: &["metadata.creationTimestamp"],
        ..TEXT
    },
    Note {
        name: "phase",
        doc: "The phase in an object's status.",
        example: ("{{ phase . }}", "Filled"),
        reads: &["status.phase"],
        ..TEXT
    },
    Note {
        name: "ownerKind",
        doc: "The kind of an object's first owner.",
        example: ("{{ ownerKind . }}", "Garden"),
        reads: &["metadata.ownerReferences.0.kind"],
        ..TEXT
    },
    Note {
        name: "ownerName",
        doc: "The name of an object's first owner.",
        example: ("{{ ownerName . }}", "north"),
        reads: &["metadata.ownerReferences.0.name"],
        ..TEXT
    },
    Note {
        name: "getLabel",
        doc: "The value of an object's label.",
        example: (r#"{{ getLabel . "app" }}"#, "pond"),
        reads: &[LABEL],
        result: Type::Text,
        run: Run::Eager(|call| keyed_text(call, LABELS)),
        ..KEYED
    },
    Note {
        name: "getAnnotation",
        doc: "The value of an object's annotation.",
        example: (r#"{{ getAnnotation . "garden.example/keeper" }}"#, "mira"),
        reads: &[ANNOTATION],
        result: Type::Text,
        run: Run::Eager(|call| keyed_text(call, ANNOTATIONS)),
        ..KEYED
    },
    Note {
        name: "getLabelInt",
        doc: "The value of an object's label as an integer; 0 if it is not one.",
        example: (r#"{{ getLabelInt . "depth" }}"#, "4"),
        reads: &[LABEL],
        result: Type::Int,
        run: Run::Eager(|call| keyed_int(call, LABELS)),
        ..KEYED
    },
    Note {
        name: "getAnnotationInt",
        doc: "The value of an object's annotation as an integer; 0 if it is not one.",
        example: (
            r#"{{ getAnnotationInt .children.deployment "garden.example/least" }}"#,
            "2",
        ),
        reads: &[ANNOTATION],
        result: Type::Int,
        run: Run::Eager(|call| keyed_int(call, ANNOTATIONS)),
        ..KEYED
    },
    Note {
        name: "hasLabel",
        doc: "True if an object has a label with a value that is not empty.",
        example: (
            r#"{{ hasLabel . "app" }} {{ hasLabel . "colour" }}"#,
            "true false",
        ),
        reads: &[LABEL],
        result: Type::Bool,
        run: Run::Eager(|call| has_key(call, LABELS)),
        ..KEYED
    },
    Note {
        name: "hasAnnotation",
        doc: "True if an object has an annotation with a value that is not empty.",
        example: (r#"{{ hasAnnotation . "garden.example/keeper" }}"#, "true"),
        reads: &[ANNOTATION],
        result: Type::Bool,
        run: Run::Eager(|call| has_key(call, ANNOTATIONS)),
        ..KEYED
    },
    Note {
        name: "labelMatches",
        doc: "True if an object has all the given labels, each as a key and a value.",
        example: (r#"{{ labelMatches . "app" "pond" "depth" "4" }}"#, "true"),
        min_args: 3,
        max_args: None,
        params: &[Type::Any, Type::Text],
        reads: &[LABELS],
        run: Run::Eager(label_matches),
        ..CHECK
    },
    Note {
        name: "getStatus",
        doc: "A field of an object's status as text; empty if it is a list or a map.",
        example: (
            r#"{{ getStatus .children.deployment "readyReplicas" }}"#,
            "2",
        ),
        reads: &["status.*"],
        result: Type::Text,
        run: Run::Eager(|call| keyed_text(call, "status")),
        ..KEYED
    },
    Note {
        name: "hasStatus",
        doc: "True if an object's status has a field that is not an empty text, list or map.",
        example: (
            r#"{{ hasStatus .children.deployment "conditions" }} {{ hasStatus . "message" }}"#,
            "true false",
        ),
        reads: &["status.*"],
        result: Type::Bool,
        run: Run::Eager(|call| has_key(call, "status")),
        ..KEYED
    },
    Note {
        name: "hasCondition",
        doc: "True if an object's condition of the given type is true.",
        example: (
            r#"{{ hasCondition .children.deployment "Available" }}"#,
            "true",
        ),
        reads: &[CONDITIONS],
        result: Type::Bool,
        run: Run::Eager(has_condition),
        ..KEYED
    },
    Note {
        name: "conditionReason",
        doc: "The reason of an object's condition of the given type, regardless of its status.",
        example: (
            r#"{{ conditionReason .children.deployment "Available" }}"#,
            "Enough",
        ),
        reads: &[CONDITIONS],
        result: Type::Text,
        run: Run::Eager(|call| of_condition(call, "reason")),
        ..KEYED
    },
    Note {
        name: "conditionMessage",
        doc: "The message of an object's condition of the given type, regardless of its status.",
        example: (
            r#"{{ conditionMessage .children.deployment "Available" }}"#,
            "two of three",
        ),
        reads: &[CONDITIONS],
        result: Type::Text,
        run: Run::Eager(|call| of_condition(call, "message")),
        ..KEYED
    },
    Note {
        name: "resourceExists",
        doc: "True if the object exists.",
        example: (
            "{{ resourceExists .children.deployment }} {{ resourceExists .children.secret }}",
            "true false",
        ),
        reads: &["_placeholder"],
        run: Run::Eager(|call| {
            let object = call.object()?;
            let placeholder = object.at("_placeholder").as_bool() == Some(true);
            Ok((object.is_map() && !placeholder).into())
        }),
        ..CHECK
    },
    Note {
        name: "isTerminating",
        doc: "True if an object is being deleted.",
        example: ("{{ isTerminating .children.deployment }}", "false"),
        reads: &["metadata.deletionTimestamp"],
        run: Run::Eager(|call| {
            let object = call.object()?;
            Ok((!object.at("metadata.deletionTimestamp").is_empty_value()).into())
        }),
        ..CHECK
    },
    Note {
        name: "generation",
        doc: "The generation of an object.",
        example: ("{{ generation .children.deployment }}", "2"),
        reads: &["metadata.generation"],
        ..INT
    },
    Note {
        name: "observedGeneration",
        doc: "The observed generation in an object's status.",
        example: ("{{ observedGeneration .children.deployment }}", "1"),
        reads: &["status.observedGeneration"],
        ..INT
    },
    Note {
        name: "isSynced",
        doc: "True if an object's observed generation equals its generation; also true if neither is set.",
        example: (
            "{{ isSynced . }} {{ isSynced .children.deployment }}",
            "true false",
        ),
        reads: &["metadata.generation", "status.observedGeneration"],
        run: Run::Eager(|call| {
            let object = call.object()?;
            let observed = object.int("status.observedGeneration");
            Ok((object.int("metadata.generation") == observed).into())
        }),
        ..CHECK
    },
    Note {
        name: "resourceCPU",
        doc: "The CPU that an object's spec requests.",
        example: ("{{ resourceCPU . }}", "500m"),
        reads: &["spec.resources.requests.cpu"],
        ..TEXT
    },
    Note {
        name: "resourceMemory",
        doc: "The memory that an object's spec requests.",
        example: ("{{ resourceMemory . }}", "1Gi"),
        reads: &["spec.resources.requests.memory"],
        ..TEXT
    },
];

fn keyed_text<'d>(call: &mut Call<'_, 'd>, map: &str) -> Result<Value<'d>, Failure> {
    let (object, key) = (call.object()?, call.take(1));
    let found = object.under(map, key.node()).filter(|node| is_scalar(node));
    let text = found.map(Node::to_text).unwrap_or_default();
    call.budget.text(text.len())?;
    Ok(Node::from(text.into_owned()).into())
}

fn keyed_int<'d>(call: &mut Call<'_, 'd>, map: &str) -> Result<Value<'d>, Failure> {
    let (object, key) = (call.object()?, call.take(1));
    let number = match object.under(map, key.node()) {
        Some(Node::Str(text)) => text.trim().parse().ok(),
        Some(node) => node.as_i64(),
        None => None,
    };
    Ok(number.unwrap_or_default().into())
}

fn has_key<'d>(call: &mut Call<'_, 'd>, map: &str) -> Result<Value<'d>, Failure> {
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

fn label_matches<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
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

fn has_condition<'d>(call: &mut Call<'_, 'd>) -> Result<Value<'d>, Failure> {
    let (object, wanted) = (call.object()?, call.take(1));
    let conditions = object.list(CONDITIONS, call.budget)?;
    let wanted = wanted.node().as_str().unwrap_or_default();
    Ok(is_true(conditions, wanted).into())
}

fn of_condition<'d>(call: &mut Call<'_, 'd>, field: &str) -> Result<Value<'d>, Failure> {
    let (object, wanted) = (call.object()?, call.take(1));
    let conditions = object.list(CONDITIONS, call.budget)?;
    let wanted = wanted.node().as_str().unwrap_or_default();
    let text = condition(conditions, wanted).map_or("", |c| text_of(c, field));
    call.budget.text(text.len())?;
    Ok(Node::from(text).into())
}
