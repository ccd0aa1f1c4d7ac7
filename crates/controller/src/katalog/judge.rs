//! A revision that can run, from the end of its compilation.

use std::{collections::BTreeSet, sync::Arc};

use orkestra_compiler::{
    compilation::{
        CompilationResult, CompilationStep, CompiledKatalog, RefusedDocument, RevisionInForce,
        UsedInputs, UsedMotifs, essence,
    },
    compose::Artifacts,
};
use orkestra_language::{diagnostics::Diagnostics, reasons::KatalogReason};
use orkestra_object::value;
use orkestra_plan::{GroupKind, KatalogRef, Plan};
use serde_json::{Map, Value};
use tokio::task::JoinError;

use super::super::revisions::RevisionContent;
use crate::status::{Refusal, Verdict};

/// A revision that can run.
#[derive(Clone, Debug)]
pub(crate) struct RunnableRevision {
    /// The compiled plan.
    pub(crate) plan: Arc<Plan>,
    /// Entries with `enabled: false`, sorted.
    pub(crate) disabled: Vec<String>,
    /// Hash of the document, and of the Motifs and sources that it uses.
    pub(crate) hash: String,
    /// The sources and Motifs that it was compiled from.
    pub(crate) used: UsedInputs,
}

impl RunnableRevision {
    /// Returns the end of the compilation of `document`.
    ///
    /// # Errors
    /// The verdict on one that cannot run, or not yet.
    pub(crate) fn of(step: CompilationStep, document: &Value) -> Result<Self, Verdict> {
        match step {
            CompilationStep::Ended(result) => match *result {
                CompilationResult::Compiled(compiled) => Ok(Self::compiled(*compiled, document)),
                CompilationResult::Refused(refused) => Err(Verdict::refused(refusal(&refused))),
                CompilationResult::Motif(problems) => Err(Verdict::refused(invalid(problems))),
            },
            CompilationStep::Waiting(missing) => Err(Verdict::Waiting {
                reason: missing.reason(),
                message: missing.to_string(),
            }),
            CompilationStep::Need(requests) => Err(Verdict::Waiting {
                reason: KatalogReason::Fetching,
                message: format!("{} inputs are not known", requests.len()),
            }),
        }
    }

    fn compiled(compiled: CompiledKatalog, document: &Value) -> Self {
        Self {
            disabled: compiled.disabled(),
            hash: document_hash(document, &compiled.used),
            plan: compiled.plan,
            used: compiled.used,
        }
    }

    /// Returns what the next revision is compared with.
    pub(crate) fn in_force(&self) -> RevisionInForce {
        RevisionInForce {
            plan: Arc::clone(&self.plan),
            used: self.used.clone(),
        }
    }
}

/// Returns the refusal of a document with problems.
pub(crate) fn invalid(problems: Diagnostics) -> Refusal {
    refusal(&RefusedDocument::Invalid(problems))
}

fn refusal(refused: &RefusedDocument) -> Refusal {
    Refusal {
        reason: refused.reason(),
        message: refused.to_string(),
    }
}

/// Returns the refusal of a revision that makes the compiler fail, which affects nothing else.
pub(crate) fn failed(katalog: &KatalogRef, error: &JoinError) -> Refusal {
    tracing::error!(%katalog, %error, "compiler panicked");
    Refusal {
        reason: KatalogReason::InvalidRevision,
        message: "internal error: the compiler failed; please report it".to_owned(),
    }
}

/// Returns the hash of the parts of a document, and of the Motifs and sources that it uses, that affect what runs.
fn document_hash(document: &Value, used: &UsedInputs) -> String {
    let digests = used.artifacts.iter();
    let digests = digests.map(|(id, artifact)| (id.clone(), artifact.digest.as_str().into()));
    let content = RevisionContent {
        document: document.clone(),
        motifs: stored_motifs(&used.motifs),
        sources: digests.collect(),
    };
    value::hash(&value::Node::from(&content.data()))
}

/// Returns what is stored beside a Katalog's document, so that it can run again even if the Motifs change or are deleted: those that it
/// uses, by name, reduced to what affects operators.
pub(crate) fn stored_motifs(motifs: &UsedMotifs) -> Map<String, Value> {
    let found = motifs.iter().filter_map(|(name, motif)| {
        let motif = motif.as_ref()?;
        Some((name.clone(), essence(motif)))
    });
    found.collect()
}

/// Returns artifacts in their stored form.
pub(crate) fn stored_artifacts(artifacts: &Artifacts) -> Map<String, Value> {
    let stored = artifacts.iter().map(|(id, artifact)| {
        // Texts and fixed names, which always serialize.
        let artifact = serde_json::to_value(&**artifact).unwrap_or_default();
        (id.clone(), artifact)
    });
    stored.collect()
}

/// Returns the kinds that a plan operates.
pub(crate) fn kinds_of(plan: &Plan) -> BTreeSet<GroupKind> {
    plan.operators
        .iter()
        .map(|operator| operator.resource.group_kind())
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use orkestra_compiler::compilation::{
        Compilation, DocumentSite, InputAnswer, InputRequest, MotifAnswer,
    };
    use orkestra_language::document::Source;
    use orkestra_plan::definitions::Schemas;
    use serde_json::json;

    use super::*;

    /// Compiles the Katalog `shop/k` with these Motifs.
    pub(crate) fn judge(
        document: &Value,
        motif: impl Fn(&str) -> Option<Value>,
    ) -> Result<RunnableRevision, Verdict> {
        let katalog = KatalogRef::new("shop".to_owned(), "k".to_owned());
        let source = Source::from_object(document).unwrap();
        let mut compilation = Compilation::new(source, DocumentSite::Cluster(katalog));
        let step = compilation.run(|request| {
            Some(match request {
                InputRequest::Motif(name) => {
                    let found = motif(name).map(|motif| MotifAnswer::Object(Arc::new(motif)));
                    let absent = MotifAnswer::Absent(format!("there is no Motif `{name}`"));
                    InputAnswer::Motif(name.clone(), found.unwrap_or(absent))
                }
                InputRequest::Schemas(kinds) => {
                    InputAnswer::Schemas(kinds.clone(), Schemas::default())
                }
                _ => return None,
            })
        });
        RunnableRevision::of(step, document)
    }

    #[test]
    fn a_motif_is_part_of_what_runs_and_its_other_metadata_is_not() {
        let types =
            json!({ "group": "water.example", "version": "v1", "kind": "Pond", "plural": "ponds" });
        let crds = json!({ "pond": { "apiTypes": types, "imports": [{ "motif": "reeds" }] } });
        let document = json!({
            "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
            "metadata": { "name": "k", "namespace": "shop" }, "spec": { "crds": crds },
        });
        let verdict = judge(&document, |_| None).unwrap_err();
        let Verdict::Refused { reason, message } = verdict else {
            panic!("{verdict:?}")
        };
        assert_eq!(reason, KatalogReason::MotifNotFound);
        assert!(message.contains("reeds"), "{message}");

        let motif = |height: u32| {
            json!({
                "apiVersion": "orkestra.orkspace.io/v1", "kind": "Motif",
                "metadata": { "name": "reeds", "namespace": "shop", "resourceVersion": height.to_string() },
                "spec": { "resources": { "configMaps": [{ "data": { "height": height } }] } },
            })
        };
        let with = |motif: Value| judge(&document, |_| Some(motif.clone())).unwrap();
        let (one, other) = (with(motif(1)), with(motif(2)));
        assert_eq!(one.plan.operators[0].children.len(), 1);
        assert_ne!(one.hash, other.hash);
        let mut touched = motif(1);
        touched["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(one.hash, with(touched).hash);
    }
}
