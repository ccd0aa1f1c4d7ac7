//! The results of a test as text, JSON and `JUnit` XML.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{HookCase, HookOutcome, HookTested};
use crate::junit;

/// Renders the results as text: a line for each case.
pub fn to_text(tested: &HookTested) -> String {
    let mut text = String::new();
    for case in &tested.cases {
        let (word, remark) = words(case);
        let remark = remark.map_or_else(String::new, |remark| format!(": {remark}"));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{word}  {}{remark}", case.name);
    }
    text
}

/// Returns the results as JSON.
pub fn to_json(tested: &HookTested) -> Value {
    let case = |case: &HookCase| {
        let (word, remark) = words(case);
        json!({
            "name": case.name, "result": word.trim(), "message": remark, "seconds": case.took.as_secs_f64(),
        })
    };
    let cases: Vec<Value> = tested.cases.iter().map(case).collect();
    json!({ "hook": tested.hook, "passed": tested.is_passed(), "cases": cases })
}

/// Renders the results as `JUnit` XML.
pub fn to_junit(tested: &HookTested) -> String {
    let case = |case: &HookCase| junit::JunitCase {
        name: case.name.to_owned(),
        seconds: Some(case.took.as_secs_f64()),
        outcome: match &case.outcome {
            HookOutcome::Passed(_) => junit::CaseOutcome::Passed,
            HookOutcome::Skipped(why) => junit::CaseOutcome::Skipped(why.clone()),
            HookOutcome::Failed(why) => junit::CaseOutcome::Failed {
                message: case.name.to_owned(),
                text: why.clone(),
            },
        },
    };
    let suite = junit::JunitSuite {
        name: tested.hook.clone(),
        file: tested.file.clone(),
        cases: tested.cases.iter().map(case).collect(),
    };
    junit::write("ork hook test", &[suite])
}

fn words(case: &HookCase) -> (&'static str, Option<&str>) {
    match &case.outcome {
        HookOutcome::Passed(remark) => ("pass", remark.as_deref()),
        HookOutcome::Skipped(why) => ("skip", Some(why)),
        HookOutcome::Failed(why) => ("FAIL", Some(why)),
    }
}
