//! E2Es as text, JSON and `JUnit` XML.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Case, E2eResults, Report, TestOutcome};
use crate::junit;

/// Returns the line for the start of a document.
pub fn begun_text(report: &Report) -> String {
    plain(&format!("{} ({})\n", report.name, report.file))
}

/// Returns the summary at the end of a document, including the kept objects.
pub fn finished_text(report: &Report) -> String {
    let kept = report
        .kept
        .iter()
        .map(|object| format!("  kept {object}\n"));
    let verdict = if report.is_passed() { "PASS" } else { "FAIL" };
    plain(&format!(
        "{}{verdict} {}\n\n",
        kept.collect::<String>(),
        report.name
    ))
}

/// Returns a case, with its diff if it failed.
pub fn case_text(case: &Case) -> String {
    let place = if case.path.is_empty() {
        case.name.clone()
    } else {
        format!("{}: {}", case.path, case.name)
    };
    let took = format!("({:.1} s)", case.took.as_secs_f64());
    let mut text = match &case.outcome {
        TestOutcome::Passed => format!("  ok   {place} {took}\n"),
        TestOutcome::Skipped(why) => format!("  skip {place}: {why}\n"),
        TestOutcome::Failed(diff) => {
            let mut text = format!("  FAIL {place} {took}\n");
            for line in diff {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "         {line}");
            }
            text
        }
    };
    text.push_str(&details_text(case));
    plain(&text)
}

/// Returns the lines printed after a failure.
pub(crate) fn details_text(case: &Case) -> String {
    let mut text = String::new();
    for line in &case.details {
        let _ = writeln!(text, "         | {line}");
    }
    plain(&text)
}

/// Removes control characters, because the output of programs goes to a terminal.
fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', " ")
}

/// Returns the results as JSON.
pub fn to_json(ran: &E2eResults) -> Value {
    let reports: Vec<Value> = ran.reports.iter().map(report_json).collect();
    json!({ "passed": ran.is_passed(), "tests": reports })
}

fn report_json(report: &Report) -> Value {
    let cases = report.cases.iter().map(|case| {
        let (outcome, why, diff) = match &case.outcome {
            TestOutcome::Passed => ("passed", None, &[][..]),
            TestOutcome::Skipped(why) => ("skipped", Some(why), &[][..]),
            TestOutcome::Failed(diff) => ("failed", None, &diff[..]),
        };
        json!({
            "path": case.path, "name": case.name, "outcome": outcome, "reason": why, "seconds": case.took.as_secs_f64(),
            "diff": diff, "details": case.details,
        })
    });
    json!({
        "name": report.name, "file": report.file, "passed": report.is_passed(), "cases": cases.collect::<Vec<_>>(),
        "kept": report.kept,
    })
}

/// Returns the results as `JUnit` XML: one suite per document, one case per step or expectation.
pub fn to_junit(ran: &E2eResults) -> String {
    let suites: Vec<junit::JunitSuite> = ran.reports.iter().map(report_junit).collect();
    junit::write("ork e2e", &suites)
}

fn report_junit(report: &Report) -> junit::JunitSuite {
    let cases = report.cases.iter().map(|case| junit::JunitCase {
        name: if case.path.is_empty() {
            case.name.clone()
        } else {
            format!("{}: {}", case.path, case.name)
        },
        seconds: Some(case.took.as_secs_f64()),
        outcome: match &case.outcome {
            TestOutcome::Passed => junit::CaseOutcome::Passed,
            TestOutcome::Skipped(why) => junit::CaseOutcome::Skipped(why.clone()),
            TestOutcome::Failed(diff) => junit::CaseOutcome::Failed {
                message: format!("{} failed", case.name),
                text: diff
                    .iter()
                    .chain(&case.details)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join("\n"),
            },
        },
    });
    junit::JunitSuite {
        name: report.name.clone(),
        file: report.file.clone(),
        cases: cases.collect(),
    }
}
