//! Generates `docs/reference/reasons.md` from the families of reasons.

use std::fmt::Write as _;

use super::{FailureScope, KatalogReason, Reason, ReasonInfo, Remark};
use crate::api::conditions::{EVENT_BYTES, MESSAGE_BYTES};

const INTRODUCTION: &str = "\
<!-- Generated from crates/language/src/reasons: UPDATE=1 cargo test -p orkestra-compiler --test reference -->
# Reasons

A reason is one word from a fixed set, so scripts can compare it. The message beside it says what is wrong, and where.

| class | meaning |
| --- | --- |
| fine | nothing is wrong |
| waiting | nothing has failed, but something does not exist or is not ready yet |
| transient | it failed, and the same input may succeed later |
| permanent | it failed, and can succeed only with another input; it is reported once |

*Retried* says when the controller retries by itself. It always retries at a resync, and when anything that it has read changes.
While the API server is unreachable, nothing is retried: everything waits until it is reachable again.
";

/// Returns the page in Markdown.
pub fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\nMessages are truncated only at the limit of the API server: {MESSAGE_BYTES} bytes in a condition, {EVENT_BYTES} in an Event. \
         If there are several problems and not all fit, each is named and the longest are truncated.\n"
    );
    let resource: Vec<_> = Reason::ALL.iter().map(|reason| reason.about()).collect();
    let katalog: Vec<_> = KatalogReason::ALL.iter().map(|one| one.about()).collect();
    let remarks: Vec<_> = Remark::ALL.iter().map(|remark| remark.about()).collect();
    table(
        &mut text,
        "Custom resources",
        "Of the conditions `Ready`, `Reconciling`, `Stalled` and `FieldConflict`, and of Events.",
        &resource,
    );
    let of_scope = |scope| {
        let reasons = Reason::ALL.iter().filter(|reason| reason.scope() == scope);
        let reasons: Vec<_> = reasons.map(|reason| format!("`{reason}`")).collect();
        reasons.join(", ")
    };
    let _ = write!(
        text,
        "\nThe custom resource's own input causes {}. Such a failure counts for that custom resource alone: it never \
         degrades the operator, and never pauses operators that depend on it. {} count for the namespace \
         alone while all such failures are in one of several namespaces with custom resources. All other failures count \
         towards `queue.failureThreshold`.\n",
        of_scope(FailureScope::CustomResource),
        of_scope(FailureScope::Namespace)
    );
    table(
        &mut text,
        "Katalogs and operators",
        "Of a Katalog's conditions and Events, of the rows in its status, and of `/katalog`.",
        &katalog,
    );
    table(
        &mut text,
        "Remarks",
        "Of Events and conditions of custom resources that report no failure.",
        &remarks,
    );
    text
}

fn table(text: &mut String, title: &str, of: &str, reasons: &[&ReasonInfo]) {
    let _ = write!(
        text,
        "\n## {title}\n\n{of}\n\n| reason | class | retried | meaning | remedy |\n| --- | --- | --- | --- | --- |\n"
    );
    for about in reasons {
        let ReasonInfo {
            name,
            class,
            again,
            meaning,
            remedy,
        } = about;
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} | {meaning} | {remedy} |",
            class.word(),
            again.words()
        );
    }
}
