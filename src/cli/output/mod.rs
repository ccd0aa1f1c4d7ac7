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
use textwrap::core::display_width;

mod document;
mod progress;
mod snippet;
mod wrap;

pub(crate) use document::{DocumentFormat, document};
pub(crate) use progress::progress;
pub(crate) use snippet::one_line;

/// The spaces between two columns of a table.
const GAP: usize = 3;
/// The narrowest last column that is worth cutting to.
const NARROWEST_COLUMN: usize = 12;

const RED: Style = AnsiColor::Red.on_default().bold();
/// Headings.
pub(crate) const HEADING: Style = Style::new().bold().underline();
/// Names in lists.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default().bold();
/// States that need no attention.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// States that are expected to change.
pub(crate) const PENDING: Style = AnsiColor::Yellow.on_default();
/// States that need attention.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Frames of trees.
pub(crate) const FAINT: Style = Style::new().dimmed();

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

/// Returns rows in columns, as `kubectl get` has them; the first row is the head. Styles take no room.
pub(crate) fn table<R: AsRef<[String]>>(rows: &[R]) -> String {
    table_within(rows, None)
}

/// The same for a terminal of that width: a last column that does not fit is cut, unless nearly nothing of it would be left.
pub(crate) fn table_within<R: AsRef<[String]>>(rows: &[R], width: Option<usize>) -> String {
    let columns = rows.iter().map(|row| row.as_ref().len()).max();
    let columns = columns.unwrap_or_default();
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
        let widths = cells.map(|cell| display_width(cell));
        widths.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP).sum();
    let room = width.and_then(|width| width.checked_sub(before));
    let room = room.filter(|room| *room >= NARROWEST_COLUMN);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.as_ref().iter().zip(&widths).enumerate() {
            if column > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            match room.filter(|_| column + 1 == columns) {
                Some(room) => line.push_str(&cut(cell, room)),
                None => line.push_str(cell),
            }
            line.push_str(&" ".repeat(width.saturating_sub(display_width(cell))));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns a text of at most `width` columns; a longer one ends in `…`.
fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if display_width(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut short = String::new();
    for character in text.chars() {
        let used = display_width(&short) + display_width(character.encode_utf8(&mut [0; 4]));
        if used >= width {
            break;
        }
        short.push(character);
    }
    short.push('…');
    Cow::Owned(short)
}

/// Returns a text of others as the cell of a table: one line without control characters, and without several spaces in a row. It is
/// as wide as it looks.
pub(crate) fn cell(text: &str) -> String {
    let words = one_line(text);
    let words: Vec<&str> = words.split_whitespace().collect();
    cleaned(&words.join(" ")).into_owned()
}

/// Returns the width of the terminal of standard output; none if it is not one.
pub(crate) fn terminal_width() -> Option<usize> {
    width(io::stdout().is_terminal(), &Term::stdout())
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
    let text = &*super::usage::called(text);
    let text = &*shown(text, is_terminal);
    // If stderr is closed, the error cannot be reported anywhere.
    let _ = anstream::stderr()
        .lock()
        .write_all(wrap::wrapped(text, width).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 2]) -> Vec<String> {
        cells.map(str::to_owned).to_vec()
    }

    #[test]
    fn columns_are_as_wide_as_people_see_them_and_the_last_one_is_cut() {
        let rows = [
            row(["NAME", "MESSAGE"]),
            row(["\u{1b}[32mpond\u{1b}[0m", "waits for the river to rise"]),
            row(["池", "full"]),
        ];
        assert_eq!(
            table(&rows),
            "NAME   MESSAGE\n\u{1b}[32mpond\u{1b}[0m   waits for the river to rise\n池     full\n"
        );
        let narrow = table_within(&rows, Some(20));
        assert!(narrow.contains("   waits for th…\n"), "{narrow}");
        assert!(narrow.lines().all(|line| display_width(line) <= 20));
        // Nearly nothing of the last column would be left.
        assert_eq!(table_within(&rows, Some(10)), table(&rows));
    }

    #[test]
    fn a_cell_is_one_line() {
        assert_eq!(cell("a\n b\u{1b}[2J\t  c "), "a b [2J c");
        assert_eq!(cell("\u{202e}a"), "\\u{202e}a");
    }
}
