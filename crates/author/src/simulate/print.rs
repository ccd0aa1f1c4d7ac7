//! Simulations as text, JSON and `JUnit` XML.

use std::fmt::Write as _;

use orkestra_engine::reconcile::simulate::{Check, SimulatedCycle};
use serde_json::{Value, json};

use super::{Simulated, SimulationReport};
use crate::junit;

/// Renders simulations as text: the cycles of each, then its expectations, with a diff for each one that is not met.
pub fn to_text(simulated: &Simulated) -> String {
    let mut text = String::new();
    for suite in &simulated.suites {
        // Writing to a String cannot fail.
        let _ = suite_text(suite, &mut text);
    }
    // The text contains parts of files and goes to a terminal.
    let is_odd = |c: char| c.is_control() && c != '\n';
    text.replace(is_odd, " ")
}

fn suite_text(suite: &SimulationReport, text: &mut String) -> std::fmt::Result {
    let verdict = match (suite.is_passed(), suite.checks.is_empty()) {
        (false, _) => "FAIL",
        (true, true) => "DONE",
        (true, false) => "PASS",
    };
    writeln!(text, "{verdict} {} ({})", suite.name, suite.file)?;
    for subject in &suite.subjects {
        writeln!(text, "  {}: {}", subject.entry, subject.object)?;
    }
    let cycles = &suite.run.cycles;
    let mut number = 0;
    while number < cycles.len() {
        let cycle = &cycles[number];
        let same = cycles[number..]
            .iter()
            .take_while(|other| *other == cycle)
            .count();
        let to = number + same;
        let name = if same == 1 {
            format!("cycle {to}")
        } else {
            format!("cycles {} to {to}", number + 1)
        };
        cycle_text(suite, &name, cycle, text)?;
        number = to;
    }
    match suite.steady_at() {
        Some(cycle) => writeln!(text, "  steady from cycle {cycle}")?,
        None => writeln!(text, "  not steady after {} cycles", cycles.len())?,
    }
    for check in &suite.checks {
        let mark = if check.is_met() { "ok  " } else { "FAIL" };
        writeln!(text, "  {mark} {}: {}", check.path, check.what)?;
        for line in &check.diff {
            writeln!(text, "         {line}")?;
        }
    }
    writeln!(text)
}

fn cycle_text(
    suite: &SimulationReport,
    name: &str,
    cycle: &SimulatedCycle,
    text: &mut String,
) -> std::fmt::Result {
    if *cycle == SimulatedCycle::default() {
        return writeln!(text, "  {name}: nothing to do");
    }
    writeln!(text, "  {name}")?;
    for op in &cycle.ops {
        writeln!(text, "    {op}")?;
    }
    for held in &cycle.held {
        let entry = suite
            .subjects
            .get(*held)
            .map_or("", |subject| &subject.entry);
        writeln!(text, "    {entry} is held back by `preReconcile`")?;
    }
    for fault in &cycle.faults {
        writeln!(
            text,
            "    failed: {}: {}: {}",
            fault.reason, fault.at, fault.message
        )?;
    }
    for outcome in &cycle.outcomes {
        writeln!(text, "    then {outcome}")?;
    }
    Ok(())
}

/// Renders simulations as JSON.
pub fn to_json(simulated: &Simulated) -> Value {
    let suites: Vec<Value> = simulated.suites.iter().map(suite_json).collect();
    json!({ "passed": simulated.is_passed(), "simulations": suites })
}

fn suite_json(suite: &SimulationReport) -> Value {
    let entry = |index: usize| suite.subjects.get(index).map(|subject| &*subject.entry);
    let cycles = suite.run.cycles.iter().zip(1..);
    let cycles = cycles.map(|(cycle, number)| {
        let ops = cycle.ops.iter().map(|op| {
            json!({
                "crd": entry(op.subject), "verb": op.verb.name(), "resource": op.resource, "group": op.group,
                "subresource": op.is_status.then_some("status"),
                "namespace": op.object.namespace.as_deref(), "name": &*op.object.name,
            })
        });
        let faults = cycle.faults.iter().map(|fault| {
            json!({
                "crd": entry(fault.subject), "reason": fault.reason, "at": fault.at, "message": fault.message,
            })
        });
        let held = cycle.held.iter().map(|held| entry(*held));
        json!({
            "cycle": number, "ops": ops.collect::<Vec<_>>(), "failures": faults.collect::<Vec<_>>(),
            "heldBack": held.collect::<Vec<_>>(), "outcomes": cycle.outcomes,
        })
    });
    let checks = suite.checks.iter().map(|check| {
        json!({
            "path": check.path.to_string(), "expected": check.what, "passed": check.is_met(), "diff": check.diff,
        })
    });
    json!({
        "name": suite.name, "file": suite.file, "passed": suite.is_passed(), "steadyAt": suite.steady_at(),
        "cycles": cycles.collect::<Vec<_>>(), "expectations": checks.collect::<Vec<_>>(),
    })
}

/// Renders simulations as `JUnit` XML for CI: one suite per simulation, one case per expectation. A simulation without expectations
/// has one case, which passes.
pub fn to_junit(simulated: &Simulated) -> String {
    let suites: Vec<junit::JunitSuite> = simulated.suites.iter().map(suite_junit).collect();
    junit::write("ork simulate", &suites)
}

fn suite_junit(suite: &SimulationReport) -> junit::JunitSuite {
    let case = |check: &Check| junit::JunitCase {
        name: format!("{}: {}", check.path, check.what),
        seconds: None,
        outcome: if check.is_met() {
            junit::CaseOutcome::Passed
        } else {
            junit::CaseOutcome::Failed {
                message: format!("{} is not met", check.path),
                text: check.diff.join("\n"),
            }
        },
    };
    let mut cases: Vec<junit::JunitCase> = suite.checks.iter().map(case).collect();
    if cases.is_empty() {
        cases.push(junit::JunitCase {
            name: "it runs".to_owned(),
            seconds: None,
            outcome: junit::CaseOutcome::Passed,
        });
    }
    junit::JunitSuite {
        name: suite.name.clone(),
        file: suite.file.clone(),
        cases,
    }
}
