//! What commands print: results to stdout, everything else to stderr; colours only on a terminal.

// Writing to a String cannot fail: those results are dropped.
use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

use anyhow::Context as _;
use clap::builder::styling::{AnsiColor, Style};
use orkestra_core::diagnostics::{Diagnostic, Severity};

const STRONG: Style = Style::new().bold();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// Prints a result. A reader that has seen enough, as `head` does, is no error.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("cannot write to standard output"),
    }
}

/// One document of a YAML stream.
pub(super) fn to_yaml(manifest: &serde_json::Value) -> anyhow::Result<String> {
    let yaml = serde_saphyr::to_string(manifest).context("cannot write a manifest as YAML")?;
    Ok(format!("---\n{yaml}"))
}

/// Prints a remark for people.
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
            let _ = writeln!(text, "  because: {cause}");
            said = cause;
        }
    }
    say(&text);
}

/// Prints problems a line each, with hints below; then how many there are, when any is an error.
pub(super) fn diagnostics<'a>(problems: impl IntoIterator<Item = &'a Diagnostic>) {
    let (mut text, mut errors, mut warnings) = (String::new(), 0, 0);
    for problem in problems {
        match problem.severity {
            Severity::Error => errors += 1,
            Severity::Warning => warnings += 1,
        }
        text.push_str(&diagnostic(problem));
    }
    let count = |number: usize, word: &str| {
        format!("{number} {word}{}", if number == 1 { "" } else { "s" })
    };
    if errors > 0 {
        let all = [(errors, "error"), (warnings, "warning")];
        let counts = all.map(|(number, word)| (number > 0).then(|| count(number, word)));
        let _ = writeln!(
            text,
            "{}",
            counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
        );
    }
    say(&text);
}

fn diagnostic(problem: &Diagnostic) -> String {
    let place = match (&problem.file, problem.line, problem.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
        (Some(file), _, _) => format!("{file}: "),
        (None, Some(line), Some(column)) => format!("{line}:{column}: "),
        (None, _, _) => String::new(),
    };
    let colour = match problem.severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
    };
    let path = if problem.path.is_root() {
        String::new()
    } else {
        format!("{}: ", one_line(&problem.path.to_string()))
    };
    let mut text = format!(
        "{STRONG}{place}{STRONG:#}{colour}{}[{}]:{colour:#} {path}{}\n",
        problem.severity,
        problem.code,
        one_line(&problem.message)
    );
    if let Some(hint) = &problem.hint {
        let _ = writeln!(text, "  {CYAN}hint:{CYAN:#} {}", one_line(hint));
    }
    text
}

/// Text of a user's file may hold anything; a terminal gets no control characters of it.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn say(text: &str) {
    // Where stderr is closed there is nobody to tell.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}
