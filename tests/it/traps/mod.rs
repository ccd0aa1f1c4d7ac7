//! Known mistakes of other implementations ("traps"), each by number or name, with tests that prove that Orkestra avoids them.
//!
//! [`TRAPS`] lists traps of the language and the runtime, [`SCALING`] those of memory, requests and time that grow without need.
//! The compiler checks that a test of this binary exists. A test elsewhere is searched in its file, so a removed test is found.

mod names;
mod scale;
mod shapes;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use orkestra_compiler::{compile, scope::Library};
use orkestra_language::document::read_stream;
use orkestra_plan::{KatalogRef, definitions::Schemas};

use self::Proof::{Elsewhere, Here, Later, Plain};
use crate::{
    cli, conditions, copies, crd_life, cross, deletion, depends, failing, files, hooks, kinds,
    leaders, on_delete, outage, panics, quiet, restarts, secrets,
};

/// The proof that a trap is avoided.
enum Proof {
    /// A test of this binary.
    Here(fn() -> Result<()>),
    /// A test of this binary that returns nothing and fails by a panic.
    Plain(fn()),
    /// A test elsewhere: its file and its name.
    Elsewhere(&'static str, &'static str),
    /// The feature that the trap concerns, which is not implemented.
    Later(&'static str),
}

/// A trap: its number, the expected behaviour, and its proofs.
type Trap = (u8, &'static str, &'static [Proof]);

const GATES: &str = "crates/engine/tests/pass/gates/mod.rs";
const QUEUE: &str = "crates/operator/src/queue/tests/mod.rs";

const TRAPS: &[Trap] = &[
    (
        1,
        "greater and less do not hold at the boundary itself",
        &[Elsewhere(GATES, "every_operator_in_both_forms")],
    ),
    (
        2,
        "every operator of a condition can fail",
        &[Elsewhere(GATES, "every_operator_in_both_forms")],
    ),
    (
        3,
        "fields that the API server fills in cause no further write",
        &[Here(quiet::what_is_as_declared_costs_no_request_a_restart_no_write_and_a_change_exactly_one)],
    ),
    (
        4,
        "a template is permitted wherever a value is",
        &[Elsewhere("crates/compiler/tests/reference.rs", "templates_stand_wherever_a_value_may")],
    ),
    (
        5,
        "defaults of the API server are not drift, for any kind",
        &[
            Here(kinds::every_kind_is_made_kept_without_a_write_followed_repaired_and_removed_with_the_derived_permissions),
            Here(shapes::whatever_is_left_empty_a_second_pass_writes_nothing),
        ],
    ),
    (
        6,
        "a reconciler runs in exactly one mode",
        &[
            Here(hooks::a_constructor_owns_repairs_prunes_and_finalizes),
            Elsewhere("crates/compiler/tests/mistakes.rs", "every_mistake_is_reported_at_its_place"),
        ],
    ),
    (
        7,
        "a path without a Katalog is an error",
        &[Elsewhere("crates/loader/src/files/tests.rs", "a_path_without_a_katalog_is_an_error_that_names_it")],
    ),
    (8, "a bundle for a cluster names no local path", &[Later("bundles")]),
    (
        9,
        "paths in a file are relative to the file",
        &[Elsewhere("crates/loader/src/files/tests.rs", "a_motif_is_found_by_its_path_and_by_its_name")],
    ),
    (
        10,
        "a read of another operator's resources returns them",
        &[Here(cross::an_app_waits_for_its_database_and_follows_its_endpoint_within_a_second)],
    ),
    (11, "everything that is embedded exists", &[Later("packs")]),
    (
        12,
        "documents of a file are distinguished by their kinds",
        &[
            Here(files::ork_run_applies_what_files_name_follows_their_changes_and_releases),
            Elsewhere("crates/loader/src/files/tests.rs", "a_folder_is_read_whole_and_other_objects_are_passed_over"),
        ],
    ),
    (13, "Katalogs are shown under their namespaces", &[Later("the control center")]),
    (14, "tables are aligned with and without colours", &[Later("the registry's tables")]),
    (15, "deprecated Katalogs are marked", &[Later("deprecation of Katalogs")]),
    (
        16,
        "defaults do not change unnoticed",
        &[Here(the_defaults_of_an_operator_are_these)],
    ),
    (
        17,
        "a resource can be deleted while its CRD is deleted",
        &[
            Here(deletion::a_crd_deleted_with_its_resources_goes_with_all_of_them),
            Here(deletion::a_crd_deleted_while_the_controller_is_down_goes_when_it_is_back),
        ],
    ),
    (
        18,
        "a resource never has two passes at a time",
        &[Elsewhere(QUEUE, "under_real_threads_no_wake_up_is_lost_and_no_key_is_run_twice_at_once")],
    ),
    (
        19,
        "the last change is never lost",
        &[
            Elsewhere("crates/engine/tests/pass/interleavings.rs", "any_order_of_events_ends_in_what_is_declared"),
            Elsewhere(QUEUE, "a_key_added_while_it_runs_goes_back_when_its_worker_is_done"),
        ],
    ),
    (
        20,
        "a gate that opens at some time triggers a pass at that time",
        &[Here(conditions::a_time_window_opens_and_another_closes_at_their_moment)],
    ),
    (
        21,
        "a status that Orkestra writes triggers no pass",
        &[
            Here(quiet::what_is_as_declared_costs_no_request_a_restart_no_write_and_a_change_exactly_one),
            Here(cross::two_operators_that_read_each_other_come_to_rest),
        ],
    ),
    (
        22,
        "resources of two kinds with one name do not interfere",
        &[
            Here(names::resources_of_two_kinds_and_one_name_do_not_take_each_others_children),
            Elsewhere("crates/engine/src/reconcile/render.rs", "workloads_of_one_name_in_two_kinds_have_two_labels"),
        ],
    ),
    (
        23,
        "names may be as long as Kubernetes allows",
        &[
            Here(names::a_resource_may_have_the_longest_name_that_there_is),
            Elsewhere("crates/language/src/api/names/tests.rs", "label_values_are_made_legal_and_stay_apart"),
        ],
    ),
    (
        24,
        "children in other namespaces are kept, and deleted with their resource",
        &[
            Here(copies::a_copy_waits_for_its_source_follows_it_and_is_cleaned_up),
            Here(deletion::children_that_kubernetes_does_not_collect_go_too),
        ],
    ),
    (
        25,
        "a Secret that rotates is never missing",
        &[Here(secrets::a_password_rotates_in_place_and_its_pods_roll)],
    ),
    (
        26,
        "a generated value is kept, even if the cache lacks it",
        &[
            Here(secrets::credentials_are_made_once_and_made_again_only_when_they_are_gone),
            Elsewhere("crates/engine/tests/pass/randomness.rs", "what_is_made_once_keeps_the_values_that_it_was_made_with"),
        ],
    ),
    (27, "a webhook that guards itself documents its limits", &[Later("webhooks")]),
    (28, "no blocking webhook is left behind", &[Later("webhooks")]),
    (29, "no parallel push is lost", &[Later("the registry")]),
    (
        30,
        "a variable that cannot be read stops the process",
        &[Plain(cli::a_wrong_variable_is_an_error_with_a_reason)],
    ),
    (
        31,
        "a message is cut between characters, and only if the API server would refuse it",
        &[
            Elsewhere("crates/language/src/api/conditions/tests.rs", "no_limit_ever_splits_a_character_or_is_passed"),
            Elsewhere("crates/engine/tests/pass/report/mod.rs", "a_long_message_is_cut"),
            Elsewhere("crates/operator/src/events/series.rs", "notes_are_cut_between_characters"),
            Elsewhere("crates/operator/src/events/name.rs", "names_are_cut_between_characters"),
            Elsewhere("crates/cluster/src/requests/tests/mod.rs", "a_long_message_is_passed_on_whole_up_to_what_a_condition_holds"),
        ],
    ),
    (32, "one of two certificates is used", &[Later("webhooks")]),
    (33, "labels are removed in two steps without a gap", &[Later("strict mode")]),
    (
        34,
        "dependents of a degraded operator wait, and continue when it has recovered",
        &[
            Here(depends::an_operator_pauses_while_the_one_it_depends_on_fails_and_then_does_all_that_came),
            Elsewhere("crates/operator/src/operator/depends.rs", "started_asks_for_workers_and_healthy_for_a_success_and_that_it_is_not_degraded"),
            Here(failing::an_operator_is_degraded_and_recovers_and_each_is_reported_once),
        ],
    ),
    (
        35,
        "a closed gate deletes nothing that another entry wants",
        &[Elsewhere("crates/engine/tests/pass/intents.rs", "an_entry_of_the_name_that_stays_keeps_one_whose_gate_closed")],
    ),
    (
        36,
        "a failed Job of `onDelete` blocks its resource until it is released",
        &[Here(on_delete::after_the_timeout_the_resource_stays_until_it_is_released)],
    ),
    (
        37,
        "a CRD that is created again with another schema is read again",
        &[Here(crd_life::a_crd_may_come_and_go_and_come_back)],
    ),
    (
        38,
        "a follower reports the leader, and nothing false",
        &[Here(leaders::a_follower_has_full_caches_says_who_leads_and_writes_nothing)],
    ),
    (39, "a node with Orkestra's only Pod can be drained", &[Later("the control center")]),
];

/// Traps of scaling, each by name.
const SCALING: &[(&str, &[Proof])] = &[
    (
        "discovery in every pass",
        &[Here(scale::a_thousand_passes_discover_nothing)],
    ),
    (
        "CRDs that no operator uses",
        &[
            Here(scale::definitions_that_nobody_uses_take_no_memory),
            Here(scale::what_is_kept_of_a_definition_does_not_grow_with_its_schema),
        ],
    ),
    (
        "managed fields in the cache",
        &[Here(scale::managed_fields_are_kept_of_nothing)],
    ),
    (
        "a relist doubles the store",
        &[Elsewhere("crates/cluster/src/watch/tests/outage.rs", "a_relist_keeps_the_records_that_did_not_change")],
    ),
    (
        "a resync delays changed objects",
        &[Elsewhere(QUEUE, "a_changed_key_waits_for_one_pass_at_most_behind_ten_thousand_in_resync")],
    ),
    (
        "one kind blocks others",
        &[
            Here(scale::a_kind_that_fails_as_fast_as_it_can_holds_up_no_other),
            Elsewhere(QUEUE, "a_hot_loop_is_slowed_to_a_pass_a_second_and_its_neighbours_are_not"),
            Here(panics::a_panic_in_one_operators_pass_is_counted_and_everything_else_continues),
        ],
    ),
    (
        "a status triggers itself",
        &[Here(quiet::what_is_as_declared_costs_no_request_a_restart_no_write_and_a_change_exactly_one)],
    ),
    (
        "empty lists, maps, nulls and defaults",
        &[Here(shapes::whatever_is_left_empty_a_second_pass_writes_nothing)],
    ),
    (
        "an item is dropped after too many retries",
        &[
            Elsewhere(QUEUE, "backoff_doubles_to_its_limit_and_no_key_is_dropped"),
            Here(scale::a_kind_that_fails_as_fast_as_it_can_holds_up_no_other),
        ],
    ),
    (
        "a storm after an outage",
        &[
            Here(outage::a_killed_api_server_pauses_everything_and_its_return_is_no_storm),
            Here(restarts::a_killed_api_server_leaves_the_controller_up_and_it_repairs_what_changed_meanwhile),
            Elsewhere("crates/cluster/src/reach/tests.rs", "all_that_wait_come_back_one_by_one_and_the_fewer_the_sooner"),
        ],
    ),
    (
        "the allocator keeps the memory of a burst",
        &[Elsewhere(
            "bench/src/scenarios/fleet.rs",
            "memory_that_a_burst_or_a_relist_leaves_behind_is_a_broken_promise",
        )],
    ),
];

/// Checks that the file has a test of that name.
pub(crate) fn is_a_test(file: &str, name: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let begins = |line: &&str| {
        let declared = line
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("async ");
        declared
            .strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    };
    let at = lines
        .iter()
        .position(begins)
        .with_context(|| format!("{file} has no {name}"))?;
    // The attributes of a function are on the lines above it.
    let marked = lines[..at]
        .iter()
        .rev()
        .take_while(|line| {
            line.starts_with("#[")
                || line.starts_with(')')
                || line.starts_with("clippy")
                || line.starts_with("reason")
        })
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
    ensure!(marked, "{name} of {file} is not a test");
    Ok(())
}

#[test]
fn every_trap_has_its_tests_or_says_what_it_waits_for() -> Result<()> {
    let numbers: Vec<u8> = TRAPS.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=39).collect::<Vec<_>>());
    let names: BTreeSet<&str> = SCALING.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), SCALING.len());
    let proofs = TRAPS
        .iter()
        .map(|(_, rule, proofs)| (rule, proofs))
        .chain(SCALING.iter().map(|(name, proofs)| (name, proofs)));
    for (rule, proofs) in proofs {
        ensure!(!proofs.is_empty(), "no proof for: {rule}");
        let mut tests = BTreeSet::new();
        for proof in *proofs {
            match proof {
                // The compiler checks that the function exists.
                Here(test) => ensure!(tests.insert(*test as usize), "{rule}: duplicate test"),
                Plain(test) => ensure!(tests.insert(*test as usize), "{rule}: duplicate test"),
                Elsewhere(file, name) => is_a_test(file, name)?,
                Later(what) => ensure!(proofs.len() == 1, "{rule}: {what} has tests already"),
            }
        }
    }
    Ok(())
}

#[test]
fn the_defaults_of_an_operator_are_these() -> Result<()> {
    let text = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: reeds }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      operatorBox: { onReconcile: { configMaps: [{}] } }
";
    let (documents, _) =
        read_stream("reeds.yaml", text).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    let katalog = KatalogRef::new("marsh".into(), "reeds".into());
    let (schemas, library) = (Schemas::default(), Library::default());
    let (plan, _) = compile::katalog(&katalog, &documents.katalogs[0].spec, &schemas, &library)
        .map_err(|problems| anyhow::anyhow!("{problems}"))?;
    let operator = &plan.operators[0];
    assert_eq!(operator.workers, 3);
    assert_eq!(operator.resync, Duration::from_mins(10));
    assert_eq!(operator.queue.max_depth, 0, "nothing is ever dropped");
    assert_eq!(operator.queue.failure_threshold, 5);
    assert_eq!(operator.queue.backoff.first, Duration::from_millis(5));
    assert_eq!(operator.queue.backoff.longest, Duration::from_secs(1000));
    Ok(())
}
