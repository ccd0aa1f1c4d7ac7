//! The founding documents of the language: for each row of [`ROWS`], a test runs the samples that show it.
//!
//! The samples are `crates/compiler/tests/inputs/document/seed-*.yaml`, as printed except for the API group, which is the
//! scenario's. A test that must change more of a sample says what and why.

mod children;
mod data;
mod files;
mod front;
mod machine;
mod rules;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use orkestra_language::document::read_stream;
use serde_json::{Value, json};

use crate::gateway::{conversion, instances};
use crate::scenario::{Objects, Scenario};
use crate::{autoscale, claims, depends, komposer, panics, secrets};

/// The CRD of the kind that most samples use.
pub(crate) const DEMO: &str = "seed/demo-crd.yaml";

/// A row, and a test of this binary that proves it.
type Row = (u8, fn() -> Result<()>);

/// Every implemented row of the founding documents, with its tests. A test that is removed causes a compile error.
const ROWS: &[Row] = &[
    (
        1,
        front::a_katalog_is_stored_as_written_and_becomes_an_operator,
    ),
    (
        2,
        files::a_katalog_without_metadata_brings_its_definition_samples_and_setup,
    ),
    (3, files::types_are_declared_or_taken_from_the_definition),
    (
        4,
        files::workers_and_resync_are_those_of_the_reconciler_or_of_the_entry,
    ),
    (
        5,
        files::deployments_and_services_follow_their_resource_with_ports_in_either_form,
    ),
    (6, children::objects_disappear_when_a_condition_is_false),
    (7, children::the_default_reconciler_is_the_declared_blocks),
    (
        8,
        children::a_status_is_computed_from_the_resource_and_its_children,
    ),
    (
        9,
        front::an_operator_has_all_that_is_promised_without_a_word_of_it,
    ),
    (
        10,
        autoscale::an_operator_gets_more_workers_while_it_and_another_have_too_much_to_do,
    ),
    (11, rules::an_image_from_elsewhere_is_denied),
    (12, rules::what_the_user_left_out_is_completed),
    (
        13,
        conversion::the_sample_of_conversion_serves_both_versions_and_goes_with_its_entry,
    ),
    (
        14,
        rules::the_resource_is_brought_to_one_form_before_anything_is_made,
    ),
    (
        15,
        data::a_deployment_waits_for_its_database_and_gets_its_endpoint,
    ),
    (
        16,
        machine::as_printed_the_machine_stops_at_the_declared_state,
    ),
    (
        16,
        machine::with_its_missing_steps_it_goes_through_each_once_without_a_resync,
    ),
    (
        17,
        secrets::credentials_are_made_once_and_made_again_only_when_they_are_gone,
    ),
    (
        17,
        secrets::a_rotation_comes_within_a_second_of_its_moment_by_the_clock_it_is_given,
    ),
    (
        18,
        children::a_container_has_values_of_secrets_and_config_maps,
    ),
    (19, data::children_are_gated_on_what_calls_answer),
    (
        20,
        komposer::a_komposer_runs_operators_of_its_sources_and_a_change_of_one_touches_no_other,
    ),
    (
        22,
        instances::protected_resources_are_deleted_with_an_annotation_only_and_that_is_recorded,
    ),
    // A sentence, not a sample, promises these.
    (
        23,
        depends::operators_start_in_the_order_of_their_dependencies_and_stop_in_the_reverse,
    ),
    (
        23,
        panics::a_panic_in_one_operators_pass_is_counted_and_everything_else_continues,
    ),
    (
        23,
        claims::of_two_versions_of_a_crd_one_reconciles_and_the_other_says_which,
    ),
    (24, files::a_new_katalog_is_run_from_its_file),
    (
        24,
        files::a_katalog_in_a_config_map_is_run_with_no_more_permissions_than_it_needs,
    ),
    (25, front::pages_and_metrics_show_every_operator),
];

/// Rows that are not implemented: providers (21), whose samples are refused as unsupported. The control center of row 24 and the
/// footprint of row 25 are not implemented either.
const LATER: &[u8] = &[21];

#[test]
fn every_row_of_the_founding_documents_has_its_tests() {
    let rows: BTreeSet<u8> = ROWS.iter().map(|(row, _)| *row).collect();
    let all: BTreeSet<u8> = rows.iter().chain(LATER).copied().collect();
    assert_eq!(all, (1..=25).collect());
    assert_eq!(
        rows.len() + LATER.len(),
        all.len(),
        "a row is in both lists"
    );
}

/// Returns a sample as printed, except for its API group.
pub(crate) fn sample(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates/compiler/tests/inputs/document")
        .join(format!("seed-{name}.yaml"));
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let groups = ["demo.orkestra.io", "demo.example.org"];
    Ok(groups
        .iter()
        .fold(text, |text, group| text.replace(group, "GROUP")))
}

/// Returns the text with its only occurrence of `from` replaced.
pub(crate) fn changed(text: &str, from: &str, to: &str) -> Result<String> {
    let times = text.matches(from).count();
    ensure!(times == 1, "{from:?} occurs {times} times in\n{text}");
    Ok(text.replace(from, to))
}

/// Returns a sample that is not valid YAML, with the wrong value replaced by the one that the diagnostic suggests.
fn completed(text: &str) -> Result<String> {
    let Err(problems) = read_stream("sample.yaml", text) else {
        bail!("the sample is valid:\n{text}");
    };
    let [problem] = &problems.0[..] else {
        bail!("more than one problem: {problems}");
    };
    let hint = problem.hint.as_deref().context("no hint")?;
    let value = hint.strip_prefix("write ").context("an unexpected hint")?;
    let line = problem.line.context("no line")? as usize;
    let wrong = text.lines().nth(line - 1).context("no such line")?;
    let (key, _) = wrong.split_once(": ").context("no key")?;
    changed(text, wrong, &format!("{key}: {value}"))
}

/// Returns the objects of a plural of the scenario's group, in version `v1`.
fn of_v1(scenario: &Scenario, plural: &str) -> Objects {
    let (group, namespace) = (&scenario.group, &scenario.namespace);
    let path = format!("/apis/{group}/v1/namespaces/{namespace}/{plural}");
    Objects::at(&scenario.client, &path)
}

/// Returns the Demos of a scenario.
pub(crate) fn demos(scenario: &Scenario) -> Objects {
    of_v1(scenario, "demos")
}

/// Creates a Demo.
pub(crate) async fn demo(scenario: &Scenario, name: &str, spec: &Value) -> Result<Value> {
    let demo = json!({
        "apiVersion": format!("{}/v1", scenario.group), "kind": "Demo",
        "metadata": { "name": name }, "spec": spec,
    });
    demos(scenario).create(&demo).await
}

/// Creates a scenario in which a sample about Demos runs.
async fn running(prefix: &str, katalog: &str) -> Result<Scenario> {
    Scenario::with_katalog(prefix, &[DEMO], katalog).await
}
