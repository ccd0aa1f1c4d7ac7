//! The output of commands: results go to stdout, everything else to stderr. Colours appear only on a terminal, and text for people is
//! wrapped at its width.

// Writing to a String cannot fail: those results are dropped.
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::{self, Write as _},
    io::{self, IsTerminal as _, Write as _},
};

use anyhow::Context as _;
use clap::builder::styling::{AnsiColor, Style};
use console::Term;
use orkestra_ground::terminal::cleaned;
use orkestra_language::diagnostics::{Diagnostic, Severity};

mod progress;
mod snippet;
mod wrap;

pub(crate) use progress::progress;
pub(crate) use snippet::one_line;

const RED: Style = AnsiColor::Red.on_default().bold();
/// Headings.
pub(crate) const HEADING: Style = Style::new().bold().underline();
/// Names in lists.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default().bold();

/// Prints a result. A reader that closes the pipe early, such as `head`, is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let text = shown(text, io::stdout().is_terminal());
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("cannot write to standard output"),
    }
}

/// Prints a result that is text for people: on a terminal with styles, and wrapped at its width.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    let width = width(io::stdout().is_terminal(), &Term::stdout());
    print(&wrap::wrapped(text, width))
}

/// Returns the width of a terminal; none if it is not one.
fn width(is_terminal: bool, terminal: &Term) -> Option<usize> {
    let (_, columns) = terminal.size_checked().filter(|_| is_terminal)?;
    Some(usize::from(columns))
}

/// Converts a manifest into one document of a YAML stream.
pub(crate) fn to_yaml(manifest: &serde_json::Value) -> anyhow::Result<String> {
    let yaml = serde_saphyr::to_string(manifest).context("cannot write a manifest as YAML")?;
    Ok(format!("---\n{yaml}"))
}

/// Prints a remark to stderr.
pub(crate) fn note(text: &str) {
    say(&format!("{text}\n"));
}

/// Returns rows in columns, as `kubectl get` has them; the first row is the head.
pub(crate) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(cells.join("   ").trim_end());
        text.push('\n');
    }
    text
}

/// Prints an error with its causes.
pub(crate) fn error(error: &anyhow::Error) {
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
pub(crate) fn diagnostics(problems: &[Diagnostic]) {
    snippets(problems, &BTreeMap::new());
    let counts = Counts::of(problems);
    if counts.errors > 0 {
        note(&counts.to_string());
    }
}

/// Prints problems, each with its source line. `texts` holds files by the names that problems use; other files are read again.
pub(crate) fn snippets(problems: &[Diagnostic], texts: &BTreeMap<String, String>) {
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
pub(crate) struct Counts {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
}

impl Counts {
    pub(crate) fn of<'a>(problems: impl IntoIterator<Item = &'a Diagnostic>) -> Self {
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
pub(crate) fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// Returns a text as it is printed. It may be of an artifact, a server or an object: a terminal must not obey it. What is not
/// printed on a terminal stays as it is.
fn shown(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if is_terminal {
        cleaned(text)
    } else {
        Cow::Borrowed(text)
    }
}

fn say(text: &str) {
    let is_terminal = io::stderr().is_terminal();
    let width = width(is_terminal, &Term::stderr());
    let text = &*shown(text, is_terminal);
    // If stderr is closed, the error cannot be reported anywhere.
    let _ = anstream::stderr()
        .lock()
        .write_all(wrap::wrapped(text, width).as_bytes());
}
