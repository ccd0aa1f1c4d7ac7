//! Whether a revision can run: pure.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use orkestra_core::{
    diagnostics::Diagnostics,
    document,
    plan::{self, GroupKind, KatalogRef, Plan, Schemas},
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
pub(crate) fn judge(katalog: &KatalogRef, document: &Value, schemas: &Schemas) -> Result<Judged, Refusal> {
    catch_unwind(AssertUnwindSafe(|| compile(katalog, document, schemas))).unwrap_or_else(|_| {
        tracing::error!(%katalog, "compiler panicked");
        Err(Refusal { reason: reasons::INVALID_REVISION, message: "internal error: the compiler failed; please report it".to_owned() })
    })
}

/// The kinds that a plan operates.
pub(crate) fn kinds_of(plan: &Plan) -> BTreeSet<GroupKind> {
    plan.operators.iter().map(|operator| operator.resource.group_kind()).collect()
}
