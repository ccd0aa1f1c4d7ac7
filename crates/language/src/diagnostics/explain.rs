//! Explanations of codes: one source for `ork explain` and for the reference document.

use super::Code;

/// The explanation of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The code.
    pub code: Code,
    /// The problem, in a few words.
    pub title: &'static str,
    /// The reason for the error or warning: prose, in lines of at most 120 characters.
    pub cause: &'static str,
    /// YAML with this problem and no other. Other documents that it needs, such as CRDs, are further documents of the
    /// stream.
    pub wrong: &'static str,
    /// The same YAML, corrected.
    pub right: &'static str,
}

/// The start and the end of a sample in a code's file.
const FENCES: [&str; 2] = ["```yaml\n", "```\n"];

impl Code {
    /// Returns its cause, and samples that a test runs.
    pub fn explain(self) -> Explanation {
        let [open, close] = FENCES;
        let mut parts = self.file().split(open);
        let cause = parts.next().unwrap_or_default().trim_end();
        // Tests check that both exist.
        let mut sample = || parts.next()?.split(close).next();
        Explanation {
            code: self,
            title: self.title(),
            cause,
            wrong: sample().unwrap_or_default(),
            right: sample().unwrap_or_default(),
        }
    }
}

/// Returns the reference of all codes in Markdown, by number.
pub fn markdown() -> String {
    let mut out = "<!-- Generated from crates/language/src/diagnostics: UPDATE=1 cargo test -p orkestra-language --lib diagnostics -->\n\
         # Diagnostics\n\n\
         Every problem that `ork` reports has a code. A code is never used for another kind of problem. \
         `ork explain CODE` prints the same text; a test executes every sample.\n"
        .to_owned();
    let [open, close] = FENCES;
    for code in Code::ALL {
        let Explanation {
            title,
            cause,
            wrong,
            right,
            ..
        } = code.explain();
        let entry = format!(
            "\n## {code}: {title}\n\n{cause}\n\nWrong:\n\n{open}{wrong}{close}\nRight:\n\n{open}{right}{close}"
        );
        out.push_str(&entry);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_cause_and_two_samples() {
        for code in Code::ALL {
            let Explanation {
                cause,
                wrong,
                right,
                ..
            } = code.explain();
            assert!(!cause.is_empty() && cause.ends_with('.'), "{code}: {cause}");
            assert!(
                cause.lines().all(|line| line.chars().count() <= 120),
                "{code}: {cause}"
            );
            assert!(
                !wrong.is_empty() && !right.is_empty() && wrong != right,
                "{code}"
            );
            assert_eq!(code.file().matches("```").count(), 4, "{code}");
        }
    }

    #[test]
    fn the_reference_document_is_current() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/reference/diagnostics.md");
        let expected = markdown();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &expected).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            committed == expected,
            "docs/reference/diagnostics.md is stale; run the test again with UPDATE=1"
        );
    }
}
