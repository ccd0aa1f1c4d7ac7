//! The status reports what is enforced: rules that are declared and not in place make their Katalog not ready.

use anyhow::{Context as _, Result, ensure};

use super::{
    Gate,
    instances::{ADMISSION, CRDS, with_security},
};
use crate::scenario::condition;
use crate::waters;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn rules_that_are_not_in_place_make_their_katalog_not_ready_and_no_other()
-> Result<()> {
    // The permissions are those of the same Katalog without admission, which needs no policies.
    let without = "    webhooks: { admission: { enabled: false } }\n";
    let without = with_security("rules/admission.yaml", without)?;
    let mut gate = Gate::start("unenforced", CRDS, &without).await?;
    let katalog = with_security("rules/admission.yaml", ADMISSION)?;
    let applied: serde_json::Value = serde_saphyr::from_str(&katalog)?;
    let name = waters::text(&applied, "/metadata/name");
    gate.scenario.apply(&katalog)?;
    let reported = gate
        .scenario
        .katalog_is(name, "False", "NotEnforced")
        .await?;
    let enforced = condition(&reported, "NotEnforced").context("no condition")?;
    let message = waters::text(enforced, "/message");
    ensure!(message.contains("ValidatingAdmissionPolicy"), "{message}");

    gate.scenario.grant(&katalog).await?;
    let ready = gate.scenario.katalog_is(name, "True", "Running").await?;
    ensure!(condition(&ready, "NotEnforced").is_none(), "{ready}");
    gate.scenario.check_running()
}
