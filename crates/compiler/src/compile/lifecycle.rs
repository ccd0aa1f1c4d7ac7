//! `lifecycle`: a deprecated document compiles with a warning.

use super::imports::Imported;
use crate::scope::At;
use orkestra_language::{
    api::{
        KatalogSpec,
        lifecycle::{Deprecation, Maturity, Timeline},
    },
    diagnostics::Code,
};

/// Warns if the Katalog whose `spec` is at `at` is deprecated.
pub(crate) fn check(at: &At<'_>, spec: &KatalogSpec) {
    let lifecycle = spec.lifecycle.as_ref();
    let place = at.field("lifecycle");
    let info = spec.info.as_ref();
    let reported = [
        (
            place.clone(),
            lifecycle.and_then(|one| one.deprecation.as_ref()),
        ),
        (
            at.field("info"),
            info.and_then(|one| one.deprecation.as_ref()),
        ),
    ];
    let mut is_reported = false;
    for (at, deprecation) in &reported {
        if let Some(deprecation) = deprecation {
            warn(&at.field("deprecation"), "this Katalog", deprecation);
            is_reported = true;
        }
    }
    let maturity = lifecycle.and_then(|one| one.maturity);
    if !is_reported && maturity == Some(Maturity::Deprecated) {
        let message = "this Katalog is deprecated";
        place.field("maturity").warn(Code::Deprecated, message);
    }
}

/// Warns about deprecated Motifs that are imported at `at`.
pub(crate) fn check_imports(at: &At<'_>, imported: &[Imported<'_>]) {
    for one in imported {
        let info = one.motif.info.as_ref();
        if let Some(deprecation) = info.and_then(|info| info.deprecation.as_ref()) {
            warn(at, "a Motif that is imported here", deprecation);
        }
    }
}

fn warn(at: &At<'_>, subject: &str, deprecation: &Deprecation) {
    let Deprecation {
        message,
        migrated_to,
        timeline,
        later: _,
    } = deprecation;
    let Timeline { from, to } = timeline.clone().unwrap_or_default();
    let from = from.map(|day| format!(" from {day}")).unwrap_or_default();
    let to = to.map(|day| format!(" until {day}")).unwrap_or_default();
    let message = format!("{subject} is deprecated{from}{to}: {message}");
    match migrated_to {
        Some(other) => at.warn_hint(Code::Deprecated, message, format!("use `{other}` instead")),
        None => at.warn(Code::Deprecated, message),
    }
}
