//! Writes test results as `JUnit` XML, which CI systems read.

use std::fmt::Write as _;

/// The cases of one document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JunitSuite {
    /// The document's name.
    pub(crate) name: String,
    /// Its file.
    pub(crate) file: String,
    /// The cases, in order.
    pub(crate) cases: Vec<JunitCase>,
}

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JunitCase {
    /// The name.
    pub(crate) name: String,
    /// The duration in seconds, if known.
    pub(crate) seconds: Option<f64>,
    /// The result.
    pub(crate) outcome: CaseOutcome,
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaseOutcome {
    /// It passed.
    Passed,
    /// Not run, for this reason.
    Skipped(String),
    /// It failed.
    Failed {
        /// A message of one line.
        message: String,
        /// The expected and the actual result.
        text: String,
    },
}

/// Writes the suites that the program `name` ran.
pub(crate) fn write(name: &str, suites: &[JunitSuite]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all: usize = suites.iter().map(|suite| suite.cases.len()).sum();
    let [failed, skipped] = [failures, skips].map(|count| suites.iter().map(count).sum::<usize>());
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "<testsuites name=\"{name}\" tests=\"{all}\" failures=\"{failed}\"{}>",
        skipped_attribute(skipped)
    );
    for suite in suites {
        let name = escaped(&suite.name);
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" file=\"{}\" tests=\"{}\" failures=\"{}\"{}>",
            escaped(&suite.file),
            suite.cases.len(),
            failures(suite),
            skipped_attribute(skips(suite))
        );
        for one in &suite.cases {
            case(one, &name, &mut text);
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn failures(suite: &JunitSuite) -> usize {
    let is_failed = |case: &&JunitCase| matches!(case.outcome, CaseOutcome::Failed { .. });
    suite.cases.iter().filter(is_failed).count()
}

fn skips(suite: &JunitSuite) -> usize {
    let is_skipped = |case: &&JunitCase| matches!(case.outcome, CaseOutcome::Skipped(_));
    suite.cases.iter().filter(is_skipped).count()
}

fn skipped_attribute(number: usize) -> String {
    if number == 0 {
        return String::new();
    }
    format!(" skipped=\"{number}\"")
}

fn case(case: &JunitCase, suite: &str, text: &mut String) {
    let name = escaped(&case.name);
    let time = case
        .seconds
        .map(|seconds| format!(" time=\"{seconds:.3}\""));
    let time = time.unwrap_or_default();
    let _ = write!(
        text,
        "    <testcase classname=\"{suite}\" name=\"{name}\"{time}"
    );
    let _ = match &case.outcome {
        CaseOutcome::Passed => writeln!(text, "/>"),
        CaseOutcome::Skipped(why) => writeln!(
            text,
            ">\n      <skipped message=\"{}\"/>\n    </testcase>",
            escaped(why)
        ),
        CaseOutcome::Failed {
            message,
            text: diff,
        } => writeln!(
            text,
            ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
            escaped(message),
            escaped(diff)
        ),
    };
}

/// Escapes text for XML. Characters that are not valid in XML become spaces. Source: XML 1.0, sections 2.2 and 2.4.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_escaped_and_counts_are_those_of_the_cases() {
        let case = |outcome| JunitCase {
            name: "a < \"b\"".to_owned(),
            seconds: Some(1.5),
            outcome,
        };
        let suite = JunitSuite {
            name: "one & two".to_owned(),
            file: "e2e.yaml".to_owned(),
            cases: vec![
                case(CaseOutcome::Passed),
                case(CaseOutcome::Skipped("not here".to_owned())),
                case(CaseOutcome::Failed {
                    message: "no".to_owned(),
                    text: "+ \u{7}<x>".to_owned(),
                }),
            ],
        };
        let text = write("ork e2e", &[suite]);
        for part in [
            "<testsuites name=\"ork e2e\" tests=\"3\" failures=\"1\" skipped=\"1\">",
            "<testsuite name=\"one &amp; two\" file=\"e2e.yaml\" tests=\"3\"",
            "name=\"a &lt; &quot;b&quot;\" time=\"1.500\"/>",
            "<skipped message=\"not here\"/>",
            "<failure message=\"no\">+  &lt;x&gt;</failure>",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
