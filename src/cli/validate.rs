//! `ork validate`

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

use clap::ValueEnum;
use orkestra_engine::admission::{Enforcement, explain};
use orkestra_language::diagnostics::{Diagnostic, Severity};
use serde::Serialize;

use super::{
    Failure,
    options::FileOptions,
    output::{self, Counts},
    sources::SourceOptions,
};
use orkestra_loader::files::{self, Compiled, Validated};

/// Check Katalogs without a cluster and report every problem
///
/// Katalogs are compiled with the CRDs that they name in crdFile and with the CRDs among the files. A path may be a file, a
/// directory or `-` for standard input; the default is the current directory. Directories are searched for *.yaml and *.yml
/// files at any depth. CRDs and custom resources among the files are checked as the API server does, and custom resources by the
/// rules of the Katalogs; objects of other kinds are ignored. Invalid templates, fields and types are errors; anything that is
/// valid but probably a mistake is a warning.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    files: FileOptions,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    /// Print every expression with its type, as far as CRDs and Kubernetes' own schemas define it
    #[arg(long, conflicts_with = "output")]
    types: bool,
    /// Print where each rule applies when a custom resource is written, and why: a policy of the API server, the webhook of the
    /// gateway, reconcile passes only, or nowhere
    #[arg(long, conflicts_with_all = ["output", "types"])]
    explain_admission: bool,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    sources: SourceOptions,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Human-readable text with source lines
    #[default]
    Human,
    /// An array of objects with file, line, column, path, severity, code, message and hint; null if a value is missing
    Json,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let mut paths = args.files.given();
    if paths.is_empty() {
        paths.push(PathBuf::from("."));
    }
    let fetch = args.sources.fetch(&paths)?;
    let checking = files::validate_with(&paths, &*fetch);
    let mut found = output::progress("checking files", checking).await;
    found.check_resources();
    if args.types {
        output::print(&types(&found.katalogs))?;
    }
    if args.explain_admission {
        output::print(&admission(&found.katalogs))?;
    }
    match args.output {
        Format::Human => {
            output::snippets(&found.problems.0, &found.texts);
            output::note(&summary(&found));
            if let Some(places) = places(&found.katalogs).filter(|_| !args.explain_admission) {
                output::note(&places);
            }
        }
        Format::Json => output::print(&to_json(&found.problems)?)?,
    }
    let counts = Counts::of(&found.problems);
    if counts.errors > 0 || (args.strict && counts.warnings > 0) {
        return Err(Failure::Reported);
    }
    Ok(())
}

/// Renders one line per expression: position, text, type, and the type of the field if the expression is its whole text.
fn types(katalogs: &[Compiled]) -> String {
    let mut text = String::new();
    for katalog in katalogs {
        let own = katalog.document.file.as_deref().unwrap_or_default();
        for expression in katalog.types() {
            let file = output::one_line(expression.file.as_deref().unwrap_or(own));
            let place = expression.line.zip(expression.column);
            let (line, column) = place.unwrap_or_default();
            let source = output::one_line(&expression.source);
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "{file}:{line}:{column}: {source}: {}",
                expression.type_name
            );
            let _ = match &expression.wanted {
                Some(wanted) => writeln!(text, " (the field expects {wanted})"),
                None => writeln!(text),
            };
        }
    }
    text
}

/// Renders one line per rule: operator, block, rule, place and reason.
fn admission(katalogs: &[Compiled]) -> String {
    let rows = katalogs.iter().flat_map(|katalog| explain(&katalog.plan));
    rows.fold(String::new(), |mut text, row| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", output::one_line(&row.to_string()));
        text
    })
}

/// Returns where rules apply when a custom resource is written; none without rules.
fn places(katalogs: &[Compiled]) -> Option<String> {
    let rows = katalogs.iter().flat_map(|katalog| explain(&katalog.plan));
    let mut numbers: BTreeMap<Enforcement, usize> = BTreeMap::new();
    for row in rows {
        *numbers.entry(row.place).or_default() += 1;
    }
    let said = numbers.iter().map(|(place, number)| {
        let by = match place {
            Enforcement::Policy => "by policies of the API server",
            Enforcement::Webhook => "by the webhook",
            Enforcement::Passes => "in reconcile passes only",
            Enforcement::Nowhere => "nowhere",
        };
        format!("{number} {by}")
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| {
        let said = said.join(", ");
        format!("rules for writes of custom resources: {said}; `--explain-admission` lists them")
    })
}

/// `3 files: 1 warning`.
fn summary(found: &Validated) -> String {
    let counts = Counts::of(&found.problems);
    let result = if counts == Counts::default() {
        "no problems".to_owned()
    } else {
        counts.to_string()
    };
    format!("{}: {result}", output::count(found.texts.len(), "file"))
}

/// A problem in machine-readable form: every field is always present.
#[derive(Debug, Serialize)]
struct Problem<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    path: String,
    severity: Severity,
    code: String,
    message: &'a str,
    hint: Option<&'a str>,
}

impl<'a> From<&'a Diagnostic> for Problem<'a> {
    fn from(problem: &'a Diagnostic) -> Self {
        let Diagnostic {
            severity,
            code,
            file,
            line,
            column,
            path,
            text_offset: _,
            at_key: _,
            message,
            hint,
        } = problem;
        Self {
            file: file.as_deref(),
            line: *line,
            column: *column,
            path: path.to_string(),
            severity: *severity,
            code: code.to_string(),
            message,
            hint: hint.as_deref(),
        }
    }
}

fn to_json<'a>(problems: impl IntoIterator<Item = &'a Diagnostic>) -> anyhow::Result<String> {
    let problems: Vec<Problem<'_>> = problems.into_iter().map(Problem::from).collect();
    Ok(serde_json::to_string_pretty(&problems)? + "\n")
}

#[cfg(test)]
mod tests {
    use orkestra_language::diagnostics::{Code, FieldPath};

    use super::*;

    #[test]
    fn every_field_of_a_problem_is_there_for_programs() {
        let path = FieldPath::root().field("spec");
        let problem = Diagnostic::warning(Code::NoEffect, path, "say \"x\"");
        assert_eq!(
            to_json([&problem]).unwrap(),
            r#"[
  {
    "file": null,
    "line": null,
    "column": null,
    "path": "spec",
    "severity": "warning",
    "code": "ORK0012",
    "message": "say \"x\"",
    "hint": null
  }
]
"#
        );
        assert_eq!(to_json([]).unwrap(), "[]\n");
    }
}
