//! Decides whether a revision can run: pure.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use orkestra_core::{
    api::KatalogSpec,
    compile,
    compose::{Artifacts, Merged, SourceRecord},
    definitions::Schemas,
    diagnostics::{Code, Diagnostic, Diagnostics, Severity},
    document::{KatalogDocument, Source, read_what_can_be},
    plan::{
        Declaring, GroupKind, KatalogRef, Plan,
        policy::{ChildPolicy, Violation},
    },
    reasons::KatalogReason,
    value,
};
use serde_json::Value;

use super::{
    super::revisions::RevisionContent,
    used_motifs::{Composed, RequestedMotifs, UsedMotifs, stored},
};
use crate::meta::status::Refusal;

/// A revision that can run.
#[derive(Debug)]
pub(crate) struct RunnableRevision {
    /// The compiled plan.
    pub(crate) plan: Arc<Plan>,
    /// Entries with `enabled: false`, sorted.
    pub(crate) disabled: Vec<String>,
    /// Hash of the document, and of the Motifs and sources that it uses.
    pub(crate) hash: String,
    /// The artifacts that it is composed from.
    pub(crate) artifacts: Artifacts,
    /// The sources with their operators.
    pub(crate) sources: Vec<SourceRecord>,
}

impl RunnableRevision {
    /// The same, with `default` where the Katalog does not say whether its rules apply at admission.
    #[must_use]
    pub(crate) fn with_admission(self, default: bool) -> Self {
        let plan = match Arc::try_unwrap(self.plan) {
            Ok(plan) => Arc::new(plan.with_admission(default)),
            Err(shared) => shared,
        };
        Self { plan, ..self }
    }
}

/// Reads and compiles a Katalog's document with the Motifs that it uses. A panic of the compiler refuses this revision and
/// affects nothing else.
pub(crate) fn judge(
    katalog: &KatalogRef,
    document: &Value,
    taken: &UsedMotifs,
    schemas: &Schemas,
) -> Result<RunnableRevision, Refusal> {
    let compile = || compile(katalog, document, taken, schemas);
    catch_unwind(AssertUnwindSafe(compile)).unwrap_or_else(|_| {
        tracing::error!(%katalog, "compiler panicked");
        Err(Refusal {
            reason: KatalogReason::InvalidRevision,
            message: "internal error: the compiler failed; please report it".to_owned(),
        })
    })
}

/// Refuses a revision with children that the installation does not permit.
pub(crate) fn permitted(
    policy: &ChildPolicy,
    judged: RunnableRevision,
) -> Result<RunnableRevision, Refusal> {
    let violations = policy.violations(&judged.plan);
    if violations.is_empty() {
        return Ok(judged);
    }
    let line = |violation: &Violation| {
        format!("{violation} is not permitted by `--sensitive-children` of the controller")
    };
    let lines: Vec<String> = violations.iter().map(line).collect();
    Err(Refusal {
        reason: KatalogReason::ChildNotPermitted,
        message: lines.join("\n"),
    })
}

/// Returns the hash of the parts of a document, and of the Motifs and sources that it uses, that affect what runs.
fn document_hash(document: &Value, motifs: &RequestedMotifs, artifacts: &Artifacts) -> String {
    let digests = artifacts.iter();
    let digests = digests.map(|(id, artifact)| (id.clone(), artifact.digest.as_str().into()));
    let content = RevisionContent {
        document: document.clone(),
        motifs: stored(motifs),
        sources: digests.collect(),
    };
    value::hash(&value::Node::from(&content.data()))
}

/// Reads and compiles a Katalog's document; returns the plan and the warnings. There is no plan of a Katalog with `sources`
/// before these are fetched.
///
/// # Errors
/// All problems, including warnings.
pub(super) fn compile_document(
    katalog: &KatalogRef,
    document: &Value,
    taken: &UsedMotifs,
    schemas: &Schemas,
) -> Result<(Option<Plan>, Diagnostics), Diagnostics> {
    let (read, mut warnings) = read_document(document, taken, schemas)?;
    let sources = read.spec.sources.as_ref();
    if sources.is_some_and(|sources| !sources.is_empty()) {
        return Ok((None, warnings));
    }
    let (plan, found) = compile::katalog(katalog, &read.spec, schemas, &taken.library)?;
    warnings.extend(found);
    Ok((Some(plan), warnings))
}

/// Reads a Katalog's document, with its warnings.
///
/// # Errors
/// All problems, including those inside of its templates.
fn read_document(
    document: &Value,
    taken: &UsedMotifs,
    schemas: &Schemas,
) -> Result<(KatalogDocument, Diagnostics), Diagnostics> {
    let source = Source::from_object(document)?;
    let (read, mut found) = read_what_can_be(&source);
    let Some(read) = read else {
        return Err(found);
    };
    if found.has_errors() {
        let inside = compile::errors_in_templates(&read, &found, schemas, &taken.library);
        found.extend(inside);
        return Err(found);
    }
    Ok((read, found))
}

fn compile(
    katalog: &KatalogRef,
    document: &Value,
    taken: &UsedMotifs,
    schemas: &Schemas,
) -> Result<RunnableRevision, Refusal> {
    let invalid = |problems: &Diagnostics| {
        let mut errors = (problems.iter()).filter(|problem| problem.severity == Severity::Error);
        let is_missing_motif = |problem: &Diagnostic| problem.code == Code::NotFound;
        let reason = if compile::lacks_api_types(problems) {
            KatalogReason::NoApiTypes
        } else if errors.all(is_missing_motif) {
            KatalogReason::MotifNotFound
        } else {
            KatalogReason::InvalidRevision
        };
        Refusal {
            reason,
            message: message(problems),
        }
    };
    if let Some(composed) = &taken.composed
        && katalog.kind == Declaring::Komposer
    {
        return composition(katalog, document, (taken, composed), schemas, &invalid);
    }
    let (read, mut warnings) =
        read_document(document, taken, schemas).map_err(|problems| invalid(&problems))?;
    if let Some(composed) = &taken.composed {
        return composition(katalog, document, (taken, composed), schemas, &invalid);
    }
    let (plan, found) = compile::katalog(katalog, &read.spec, schemas, &taken.library)
        .map_err(|problems| invalid(&problems))?;
    warnings.extend(found);
    for warning in &warnings {
        tracing::debug!(%katalog, %warning, "Katalog has a warning");
    }
    Ok(RunnableRevision {
        disabled: disabled(&read.spec, &plan),
        plan: Arc::new(plan),
        hash: document_hash(document, &taken.asked, &Artifacts::new()),
        artifacts: Artifacts::new(),
        sources: Vec::new(),
    })
}

/// Compiles a composition.
fn composition(
    katalog: &KatalogRef,
    document: &Value,
    (taken, composed): (&UsedMotifs, &Composed),
    schemas: &Schemas,
    invalid: &dyn Fn(&Diagnostics) -> Refusal,
) -> Result<RunnableRevision, Refusal> {
    let resolved = match &composed.merged {
        Err(problems) => return Err(invalid(problems)),
        Ok(Merged::Need(requests)) => {
            let ids: Vec<&str> = requests.iter().map(|request| &*request.id).collect();
            return Err(Refusal {
                reason: KatalogReason::Fetching,
                message: format!("fetching {}", ids.join(", ")),
            });
        }
        Ok(Merged::Done(resolved, _)) => resolved,
    };
    if let Some(message) = composed.locks.refusal(&resolved.sources) {
        let reason = KatalogReason::NotLocked;
        return Err(Refusal { reason, message });
    }
    let mut schemas = schemas.clone();
    resolved.add_schemas(&mut schemas);
    let compiled = compile::katalog(katalog, resolved.spec(), &schemas, &taken.library);
    let (plan, _) = compiled.map_err(|mut problems| {
        resolved.locate(&mut problems);
        invalid(&problems)
    })?;
    Ok(RunnableRevision {
        disabled: disabled(resolved.spec(), &plan),
        plan: Arc::new(plan),
        hash: document_hash(document, &taken.asked, &composed.used),
        artifacts: composed.used.clone(),
        sources: resolved.sources.clone(),
    })
}

/// Returns entries that do not run: disabled ones, and those that the compiler stopped.
pub(crate) fn disabled(spec: &KatalogSpec, plan: &Plan) -> Vec<String> {
    let is_stopped = |name: &str| plan.stopped.iter().any(|stopped| stopped.name == name);
    spec.crds
        .iter()
        .filter(|(name, entry)| !entry.is_enabled() || is_stopped(name))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Returns the errors, one per line, then the warnings.
fn message(problems: &Diagnostics) -> String {
    let (errors, warnings): (Vec<_>, Vec<_>) = problems
        .iter()
        .partition(|problem| problem.severity == Severity::Error);
    errors
        .into_iter()
        .chain(warnings)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the kinds that a plan operates.
pub(crate) fn kinds_of(plan: &Plan) -> BTreeSet<GroupKind> {
    plan.operators
        .iter()
        .map(|operator| operator.resource.group_kind())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::used_motifs::take, *};

    fn katalog() -> KatalogRef {
        KatalogRef::new("shop".to_owned(), "k".to_owned())
    }

    fn document(crds: &Value) -> Value {
        json!({ "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "k", "namespace": "shop" }, "spec": { "crds": crds } })
    }

    #[test]
    fn an_entry_without_api_types_is_refused_with_its_own_reason() {
        let refusal = judge(
            &katalog(),
            &document(&json!({ "pond": { "crdFile": "pond.yaml" } })),
            &UsedMotifs::default(),
            &Schemas::default(),
        )
        .unwrap_err();
        assert_eq!(refusal.reason, KatalogReason::NoApiTypes);
        assert!(
            refusal.message.contains("spec.crds.pond"),
            "{}",
            refusal.message
        );
    }

    #[test]
    fn a_misspelt_field_is_named_with_its_path() {
        let crds = json!({ "pond": { "apiTypez": {} } });
        let (taken, schemas) = (UsedMotifs::default(), Schemas::default());
        let refusal = judge(&katalog(), &document(&crds), &taken, &schemas).unwrap_err();
        assert_eq!(refusal.reason, KatalogReason::InvalidRevision);
        assert!(
            refusal.message.contains("spec.crds.pond.apiTypez"),
            "{}",
            refusal.message
        );
    }

    #[test]
    fn a_path_among_the_sources_is_a_fault_of_the_document() {
        let mut document = document(&json!({}));
        document["spec"]["sources"] = json!({ "files": ["./pond.yaml"] });
        let none = |_: &str| Err(String::new());
        let taken = take(&document, &Artifacts::new(), &none);
        let refusal = judge(&katalog(), &document, &taken, &Schemas::default()).unwrap_err();
        assert_eq!(refusal.reason, KatalogReason::InvalidRevision);
        let parts = ["ORK0611", "spec.sources.files[0]", "`pond.yaml` is a path"];
        for part in parts {
            assert!(refusal.message.contains(part), "{}", refusal.message);
        }
    }

    #[test]
    fn a_motif_that_is_not_there_has_a_reason_of_its_own_and_one_that_comes_is_part_of_what_runs() {
        let types =
            json!({ "group": "water.example", "version": "v1", "kind": "Pond", "plural": "ponds" });
        let crds = json!({ "pond": { "apiTypes": types, "imports": [{ "motif": "reeds" }] } });
        let (katalog, document) = (katalog(), document(&crds));
        let judge = |taken: &UsedMotifs| judge(&katalog, &document, taken, &Schemas::default());

        let none = |name: &str| Err(format!("there is no Motif `{name}`"));
        let refusal = judge(&take(&document, &Artifacts::new(), &none)).unwrap_err();
        assert_eq!(refusal.reason, KatalogReason::MotifNotFound);
        assert!(refusal.message.contains("reeds"), "{}", refusal.message);

        let motif = |height: u32| {
            json!({
                "apiVersion": "orkestra.orkspace.io/v1", "kind": "Motif",
                "metadata": { "name": "reeds", "namespace": "shop", "resourceVersion": height.to_string() },
                "spec": { "resources": { "configMaps": [{ "data": { "height": height } }] } },
            })
        };
        let with = |motif: Value| {
            judge(&take(&document, &Artifacts::new(), &|_| {
                Ok(Arc::new(motif.clone()))
            }))
            .unwrap()
        };
        let (one, other) = (with(motif(1)), with(motif(2)));
        assert_eq!(one.plan.operators[0].children.len(), 1);
        assert_ne!(one.hash, other.hash);
        let mut touched = motif(1);
        touched["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(one.hash, with(touched).hash);
    }
}
