//! Verdicts of the webhook and of reconcile passes, computed without an API server.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use orkestra_compiler::{compile, scope::Library};
use orkestra_engine::{
    admission::{Admitted, Answers, Operation, Review, User, admit},
    reconcile::{
        reason::Reason,
        record::{CrRecord, Observed},
        step::{Failure, StepResult, step},
    },
};
use orkestra_language::document;
use orkestra_object::value::Node;
use orkestra_plan::{
    GroupKind, KatalogRef, OperatorPlan, Plan,
    definitions::{CrdShape, Schemas},
};
use orkestra_template::Entropy;
use serde_json::{Value, json};

/// Denials and warnings, each as `rule: message`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) denials: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl Outcome {
    /// Returns the denials and warnings of the rules with these labels.
    pub(crate) fn of(&self, labels: &BTreeSet<&str>) -> Self {
        let of_rules = |lines: &[String]| {
            let is_meant = |line: &&String| {
                let (label, _) = line.split_once(": ").unwrap_or_default();
                labels.contains(label)
            };
            lines.iter().filter(is_meant).cloned().collect()
        };
        Self {
            denials: of_rules(&self.denials),
            warnings: of_rules(&self.warnings),
        }
    }
}

/// Replaces each control character of a text by a space.
pub(crate) fn one_line(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(clean).collect()
}

/// Compiles a Katalog.
pub(crate) fn compiled(text: &str, definitions: &[Value]) -> Result<Plan> {
    let mut schemas = Schemas::default();
    for definition in definitions {
        schemas.insert(CrdShape::from_crd(&Node::from(definition)).context("no definition")?);
    }
    let (documents, _) = document::read_stream("katalog.yaml", text)?;
    let document = documents.katalogs.first().context("no Katalog")?;
    let katalog = KatalogRef::new("default".into(), document.name.clone());
    let (plan, _) = compile::katalog(&katalog, &document.spec, &schemas, &Library::default())?;
    Ok(plan)
}

/// Returns the verdict of the function that the webhook calls.
pub(crate) fn by_webhook(
    plan: &OperatorPlan,
    (operation, object, old): (Operation, &Value, &Value),
) -> Result<Outcome> {
    let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
    let review = Review {
        operation,
        object: Node::from(object),
        old_object: Node::from(old),
        namespace: text("namespace"),
        name: text("name").unwrap_or_default(),
        user: User::default(),
        dry_run: true,
    };
    match admit(plan, &review, Timestamp::UNIX_EPOCH, &Answers::new()) {
        Admitted::Need(reads) => bail!("it needs {reads:?}"),
        Admitted::Done(verdict) => {
            let denials = verdict.denials.iter();
            let line = |denial: &orkestra_engine::admission::Denial| {
                format!("{}: {}", denial.rule, denial.message)
            };
            Ok(Outcome {
                denials: denials.map(line).collect(),
                warnings: verdict.warnings,
            })
        }
    }
}

/// Returns the verdict of a reconcile pass over the object.
pub(crate) fn by_pass(plan: &OperatorPlan, object: &Value) -> Result<Outcome> {
    let mut object = object.clone();
    object["metadata"]["uid"] = json!("0f6a3c52-8a5e-4a0e-9d6e-2b7c1d9e4f10");
    object["metadata"]["resourceVersion"] = json!("7");
    let cr = CrRecord::read(&Node::from(&object), &plan.reads.cr).context("no record")?;
    let observed = Observed {
        inventory: cr.inventory.clone(),
        cr: Arc::new(cr),
        children: Vec::new(),
        orphans: Vec::new(),
        unseen: BTreeSet::new(),
        reported: None,
        answers: std::collections::BTreeMap::new(),
    };
    let scopes: std::collections::BTreeMap<GroupKind, bool> = std::collections::BTreeMap::new();
    let (now, entropy) = (Timestamp::UNIX_EPOCH, Entropy::seeded([7; 32]));
    match step(plan, &scopes, &observed, now, &entropy) {
        StepResult::Need(reads) => bail!("a pass needs {reads:?}"),
        StepResult::Done(cycle) => {
            let prepared = &cycle.sources.prepared;
            let is_violation = |failure: &Failure| failure.reason == Reason::ValidationFailed;
            ensure!(
                prepared.failures.iter().all(is_violation),
                "{:?}",
                prepared.failures
            );
            let line = |failure: &Failure| format!("{}: {}", failure.at, failure.message);
            Ok(Outcome {
                denials: prepared.failures.iter().map(line).collect(),
                warnings: prepared.warnings.iter().map(|one| one_line(one)).collect(),
            })
        }
    }
}
