//! Compares the result of a call with the expected one.

use super::assertions;
use super::calls::ProgramCall;

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOutput {
    /// The exit code; `0` for an HTTP request.
    pub exit_code: i32,
    /// Standard output, or the body of the HTTP response; with a filter, the output of the filter.
    pub output: String,
    /// Standard error.
    pub error: String,
    /// The HTTP status.
    pub status: Option<u16>,
}

/// Returns the differences from the expected result: `-` is expected, `+` is actual. Empty if there are none.
///
/// If a failure is expected, assertions apply to standard output and standard error together.
pub fn judge(call: &ProgramCall<'_>, answer: &CallOutput) -> Vec<String> {
    let mut diff = Vec::new();
    let says_no = call.says_no && answer.exit_code == 1 && !answer.output.trim().is_empty();
    if answer.exit_code != call.exit_code && !says_no {
        diff.push(format!("- exit code {}", call.exit_code));
        diff.push(format!("+ exit code {}", answer.exit_code));
        let said = [answer.error.trim(), answer.output.trim()];
        let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
        diff.extend(assertions::diff_form(&said.join("\n"), call.is_secret));
        return diff;
    }
    if let Some(seen) = answer.status {
        let is_met = call.status.map_or(seen < 400, |wanted| wanted == seen);
        if !is_met {
            let wanted = call
                .status
                .map_or("below 400".to_owned(), |status| status.to_string());
            diff.push(format!("- HTTP status {wanted}"));
            diff.push(format!("+ HTTP status {seen}"));
            diff.extend(assertions::diff_form(answer.output.trim(), call.is_secret));
            return diff;
        }
    }
    let output = if call.exit_code == 0 {
        answer.output.clone()
    } else {
        format!("{}\n{}", answer.output.trim(), answer.error.trim())
    };
    assertions::check(call.assertions, &output, call.is_secret, &mut diff);
    diff
}
