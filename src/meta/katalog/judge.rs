//! Whether a revision can run: pure.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use orkestra_core::{
    api::KatalogSpec,
    diagnostics::{Diagnostics, Severity},
    document::{Source, read_katalog},
    plan::{self, GroupKind, KatalogRef, Library, Plan, Schemas},
};
use serde_json::Value;

use super::{super::reasons, act::document_hash};

/// A revision that can run.
#[derive(Debug)]
pub(crate) struct Judged {
    /// What it compiles to.
    pub(crate) plan: Arc<Plan>,
    /// Entries with `enabled: false`, sorted.
    pub(crate) disabled: Vec<String>,
    /// Hash of the document.
    pub(crate) hash: String,
}

/// Why a revision cannot run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// `InvalidRevision` or `NoApiTypes`.
    pub(crate) reason: &'static str,
    /// The problems with path, message and hint.
    pub(crate) message: String,
}

/// Reads and compiles a Katalog's document. A panic of the compiler refuses this revision and disturbs nothing else.
pub(crate) fn judge(
    katalog: &KatalogRef,
    document: &Value,
    schemas: &Schemas,
) -> Result<Judged, Refusal> {
    catch_unwind(AssertUnwindSafe(|| compile(katalog, document, schemas))).unwrap_or_else(|_| {
        tracing::error!(%katalog, "compiler panicked");
        Err(Refusal {
            reason: reasons::INVALID_REVISION,
            message: "internal error: the compiler failed; please report it".to_owned(),
        })
    })
}

fn compile(katalog: &KatalogRef, document: &Value, schemas: &Schemas) -> Result<Judged, Refusal> {
    let invalid = |problems: &Diagnostics| {
        let reason = if plan::lacks_api_types(problems) {
            reasons::NO_API_TYPES
        } else {
            reasons::INVALID_REVISION
        };
        Refusal {
            reason,
            message: message(problems),
        }
    };
    let source = Source::from_object(document).map_err(|problems| invalid(&problems))?;
    let (read, warnings) = read_katalog(&source).map_err(|mut problems| {
        problems.extend(plan::errors_in_templates(std::slice::from_ref(&source)));
        invalid(&problems)
    })?;
    for warning in &warnings {
        tracing::debug!(%katalog, %warning, "Katalog has a warning");
    }
    let (plan, _) = plan::compile(katalog, &read.spec, schemas, &Library::default())
        .map_err(|problems| invalid(&problems))?;
    Ok(Judged {
        plan: Arc::new(plan),
        disabled: disabled(&read.spec),
        hash: document_hash(document),
    })
}

/// Entries that do not run.
pub(crate) fn disabled(spec: &KatalogSpec) -> Vec<String> {
    spec.crds
        .iter()
        .filter(|(_, entry)| !entry.is_enabled())
        .map(|(name, _)| name.clone())
        .collect()
}

/// The errors, one a line, then the warnings.
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

/// The kinds that a plan operates.
pub(crate) fn kinds_of(plan: &Plan) -> BTreeSet<GroupKind> {
    plan.operators
        .iter()
        .map(|operator| operator.resource.group_kind())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn katalog() -> KatalogRef {
        KatalogRef {
            namespace: "shop".to_owned(),
            name: "k".to_owned(),
        }
    }

    fn document(crds: &Value) -> Value {
        json!({ "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "k", "namespace": "shop" }, "spec": { "crds": crds } })
    }

    #[test]
    fn an_entry_without_api_types_is_refused_with_its_own_reason() {
        let refusal = judge(
            &katalog(),
            &document(&json!({ "pond": { "crdFile": "pond.yaml" } })),
            &Schemas::default(),
        )
        .unwrap_err();
        assert_eq!(refusal.reason, "NoApiTypes");
        assert!(
            refusal.message.contains("spec.crds.pond"),
            "{}",
            refusal.message
        );
    }

    #[test]
    fn a_misspelt_field_is_named_with_its_path() {
        let crds = json!({ "pond": { "apiTypez": {} } });
        let refusal = judge(&katalog(), &document(&crds), &Schemas::default()).unwrap_err();
        assert_eq!(refusal.reason, "InvalidRevision");
        assert!(
            refusal.message.contains("spec.crds.pond.apiTypez"),
            "{}",
            refusal.message
        );
    }
}
