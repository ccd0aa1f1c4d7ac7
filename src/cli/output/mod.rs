//! The output of commands: results go to stdout, everything else to stderr. Colours appear only on a terminal.

// Writing to a String cannot fail: those results are dropped.
use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    io::{self, Write as _},
};

use anyhow::Context as _;
use clap::builder::styling::{AnsiColor, Style};
use orkestra_core::diagnostics::{Diagnostic, Severity};

mod progress;
mod snippet;

pub(super) use progress::progress;
pub(super) use snippet::one_line;

const RED: Style = AnsiColor::Red.on_default().bold();

/// Prints a result. A reader that closes the pipe early, such as `head`, is not an error.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("cannot write to standard output"),
    }
}

/// Converts a manifest into one document of a YAML stream.
pub(super) fn to_yaml(manifest: &serde_json::Value) -> anyhow::Result<String> {
    let yaml = serde_saphyr::to_string(manifest).context("cannot write a manifest as YAML")?;
    Ok(format!("---\n{yaml}"))
}

/// Prints a remark to stderr.
pub(super) fn note(text: &str) {
    say(&format!("{text}\n"));
}

/// Prints an error with its causes.
pub(super) fn error(error: &anyhow::Error) {
    let mut text = format!("{RED}error:{RED:#} {error}\n");
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Many errors repeat their cause.
        if !said.contains(&cause) {
            let _ = writeln!(text, "  caused by: {cause}");
            said = cause;
        }
    }
    say(&text);
}

/// Prints problems as compilers do, each with its source line. If any is an error, the counts follow.
pub(super) fn diagnostics(problems: &[Diagnostic]) {
    snippets(problems, &BTreeMap::new());
    let counts = Counts::of(problems);
    if counts.errors > 0 {
        note(&counts.to_string());
    }
}

/// Prints problems, each with its source line. `texts` holds files by the names that problems use; other files are read again.
pub(super) fn snippets(problems: &[Diagnostic], texts: &BTreeMap<String, String>) {
    let mut read = BTreeMap::new();
    let mut text = String::new();
    for problem in problems {
        let file = problem.file.as_deref().unwrap_or_default();
        let source = texts.get(file).unwrap_or_else(|| {
            read.entry(file)
                .or_insert_with(|| std::fs::read_to_string(file).unwrap_or_default())
        });
        text.push_str(&snippet::render(problem, source));
        text.push('\n');
    }
    say(&text);
}

/// The number of problems by severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) errors: usize,
    pub(super) warnings: usize,
}

impl Counts {
    pub(super) fn of<'a>(problems: impl IntoIterator<Item = &'a Diagnostic>) -> Self {
        let mut counts = Self::default();
        for problem in problems {
            match problem.severity {
                Severity::Error => counts.errors += 1,
                Severity::Warning => counts.warnings += 1,
            }
        }
        counts
    }
}

/// `2 errors, 1 warning`; zero counts are omitted.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [(self.errors, "error"), (self.warnings, "warning")];
        let some = all.iter().filter(|(number, _)| *number > 0);
        let counts: Vec<String> = some.map(|(number, word)| count(*number, word)).collect();
        f.write_str(&counts.join(", "))
    }
}

/// `1 file`, `2 files`.
pub(super) fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

fn say(text: &str) {
    // If stderr is closed, the error cannot be reported anywhere.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}
