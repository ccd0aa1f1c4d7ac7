//! Rules at admission, policies and conversions.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a fixture that cannot be read is a fault of the test"
)]

#[path = "admission/cel.rs"]
mod cel;
#[path = "admission/convert.rs"]
mod convert;
#[path = "admission/docs.rs"]
mod docs;
#[path = "generate/mod.rs"]
mod generate;
#[path = "admission/matching.rs"]
mod matching;
#[path = "admission/moments.rs"]
mod moments;
#[path = "admission/policies.rs"]
mod policies;
#[path = "admission/scale.rs"]
mod scale;
#[path = "admission/seeds.rs"]
mod seeds;
#[path = "admission/verdict.rs"]
mod verdict;

use std::sync::Arc;

use jiff::Timestamp;
use orkestra_compiler::{compile, scope::Library};
use orkestra_engine::admission::{
    AdmissionVerdict, Admitted, Answers, Operation, PatchKind, Review, User, admit,
};
use orkestra_language::{diagnostics::Diagnostics, document};
use orkestra_object::value::Node;
use orkestra_plan::{
    KatalogRef, OperatorPlan, Plan,
    definitions::{CrdShape, Schemas},
};
use serde_json::Value;

/// Compiles a Katalog, with definitions.
fn compiled(text: &str, definitions: &[Value]) -> Result<(Plan, Vec<String>), Diagnostics> {
    let mut schemas = Schemas::default();
    for definition in definitions {
        schemas.insert(CrdShape::from_crd(&Node::from(definition)).unwrap());
    }
    let (documents, mut warnings) = document::read_stream("katalog.yaml", text)?;
    let document = &documents.katalogs[0];
    let katalog = KatalogRef::new("default".into(), document.name.clone());
    let (plan, more) = compile::katalog(&katalog, &document.spec, &schemas, &Library::default())?;
    warnings.extend(more);
    let warnings = warnings.iter().map(ToString::to_string);
    Ok((plan, warnings.collect()))
}

/// Returns the plan of a valid Katalog.
fn plan(text: &str, definitions: &[Value]) -> Plan {
    match compiled(text, definitions) {
        Ok((plan, _)) => plan,
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

fn review(operation: Operation, object: &Value, old: &Value) -> Review {
    let named = if operation == Operation::Delete {
        old
    } else {
        object
    };
    let text = |field: &str| {
        named["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    Review {
        operation,
        object: Node::from(object),
        old_object: Node::from(old),
        namespace: Some(text("namespace")).filter(|namespace| !namespace.is_empty()),
        name: text("name"),
        user: User::default(),
        dry_run: false,
    }
}

fn judged(plan: &OperatorPlan, review: &Review) -> AdmissionVerdict {
    match admit(plan, review, Timestamp::UNIX_EPOCH, &Answers::new()) {
        Admitted::Done(verdict) => verdict,
        Admitted::Need(reads) => panic!("{reads:?}"),
    }
}

fn created(plan: &Arc<OperatorPlan>, object: &Value) -> AdmissionVerdict {
    judged(plan, &review(Operation::Create, object, &Value::Null))
}

/// Returns the denials, as `rule: message`.
fn denials(verdict: &AdmissionVerdict) -> Vec<String> {
    let line = |denial: &orkestra_engine::admission::Denial| {
        format!("{}: {}", denial.rule, denial.message)
    };
    verdict.denials.iter().map(line).collect()
}

/// Applies a patch with code that is independent of the code that created it.
fn patched(object: &Value, verdict: &AdmissionVerdict) -> Value {
    let mut object = object.clone();
    for op in &verdict.patch {
        let (parent, key) = op.path.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/").replace("~0", "~");
        let parent = object.pointer_mut(parent).unwrap();
        let value = op.value.as_ref().map(Node::to_json);
        match (op.op, value, parent) {
            (PatchKind::Remove, None, Value::Object(map)) => drop(map.remove(&key).unwrap()),
            (PatchKind::Add, Some(value), Value::Object(map)) => {
                assert!(map.insert(key, value).is_none());
            }
            (PatchKind::Replace, Some(value), Value::Object(map)) => {
                drop(map.insert(key, value).unwrap());
            }
            (PatchKind::Replace, Some(value), Value::Array(items)) => {
                items[key.parse::<usize>().unwrap()] = value;
            }
            other => panic!("{other:?}"),
        }
    }
    object
}
