//! `ork explain`

use std::fmt::Write as _;

use orkestra_language::{
    diagnostics::{Code, nearest},
    reference,
};

use super::{
    Failure,
    output::{self, HEADING, NAME},
};

/// The page with a section for each alert.
const OPERATIONS: &str = include_str!("../../docs/operate/operations.md");

/// Explain a field of a Katalog, the code of an error or warning, or an alert
///
/// A field is a dotted path that begins with the kind of document: `ork explain katalog.spec.crds.operatorBox`. The default
/// kind is Katalog. Paths are case-insensitive; names of operators and list indexes may be omitted.
///
/// `ork validate` prints codes, such as ORK0012. The explanation has the cause, a wrong example and a correct one.
///
/// The runbook of an alert, such as `OrkestraDown`, has its causes and what to do.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Field, code or alert
    #[arg(value_name = "FIELD.PATH|CODE|ALERT")]
    what: String,
    /// Print all nested fields too
    #[arg(long)]
    recursive: bool,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let text = if let Some(runbook) = alert(&args.what) {
        runbook
    } else if args.what.to_ascii_uppercase().starts_with("ORK") && !args.what.contains('.') {
        code(&args.what)?
    } else {
        let explained = reference::explain(&args.what, args.recursive);
        explained.map_err(|error| anyhow::anyhow!("{error}: {}", error.hint))?
    };
    Ok(output::print_text(&styled(&text))?)
}

/// Returns the text with styles: headings, which end in a colon or begin with a word in capitals, and the names of fields, which a type
/// follows.
fn styled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, line) in text.lines().enumerate() {
        let start = line.len() - line.trim_start().len();
        let (indent, rest) = line.split_at(start);
        let head = rest.split_once(':').filter(|(head, after)| {
            let is_capital = head
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
            start == 0 && !head.is_empty() && (is_capital || after.is_empty())
        });
        let field = rest.split_once(" <").filter(|(name, of)| {
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
            is_name && start > 0 && of.ends_with('>')
        });
        // Writing to a String cannot fail.
        let _ = match (head, field) {
            (Some((head, after)), _) => writeln!(out, "{HEADING}{head}:{HEADING:#}{after}"),
            (None, Some((name, of))) => writeln!(out, "{indent}{NAME}{name}{NAME:#} <{of}"),
            (None, None) if at == 0 => writeln!(out, "{HEADING}{line}{HEADING:#}"),
            (None, None) => writeln!(out, "{line}"),
        };
    }
    out
}

/// Returns the section about an alert.
fn alert(name: &str) -> Option<String> {
    let (_, alerts) = OPERATIONS.split_once("\n## Alerts\n")?;
    let alerts = alerts.split("\n## ").next()?;
    let mut sections = alerts.split("\n### ").skip(1);
    let section = sections.find(|section| {
        let title = section.lines().next().unwrap_or_default();
        title.eq_ignore_ascii_case(name.trim())
    })?;
    Some(format!("{}\n", section.trim_end()))
}

fn code(text: &str) -> Result<String, anyhow::Error> {
    let Some(code) = Code::parse(text) else {
        let all: Vec<String> = Code::ALL.iter().map(ToString::to_string).collect();
        let near = nearest(text, all.iter().map(String::as_str)).unwrap_or("ORK0010");
        anyhow::bail!("unknown code `{text}`; did you mean {near}?");
    };
    let explained = code.explain();
    let mut out = format!("{code}: {}\n\n{}\n", explained.title, explained.cause);
    for (title, sample) in [("Wrong", explained.wrong), ("Right", explained.right)] {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "\n{title}:\n");
        for line in sample.lines() {
            let _ = writeln!(out, "    {line}");
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_reported_before_the_fix() {
        let args = Args {
            what: "spec.crd".to_owned(),
            recursive: false,
        };
        let Err(Failure::Input(error)) = execute(&args) else {
            panic!("there is no such field");
        };
        assert_eq!(
            error.to_string(),
            "Katalog.spec has no field `crd`: did you mean `crds`?"
        );
    }

    #[test]
    fn headings_and_fields_have_styles_and_the_text_is_the_same() {
        let args = "spec.crds.validation";
        for text in [
            reference::explain(args, false).unwrap(),
            reference::explain(args, true).unwrap(),
            code("ORK0010").unwrap(),
            alert("OrkestraDown").unwrap(),
        ] {
            let styled = styled(&text);
            assert!(styled.contains("\u{1b}["), "{styled}");
            let plain = anstream::adapter::strip_str(&styled).to_string();
            assert_eq!(plain, text);
        }
        let styled = styled(&reference::explain(args, false).unwrap());
        let name = format!("  {NAME}rules{NAME:#} <list of ValidationRule>\n");
        assert!(styled.contains(&name), "{styled:?}");
    }

    #[test]
    fn an_alert_is_explained_by_its_section_alone() {
        let text = alert("orkestradown").unwrap();
        assert!(text.starts_with("OrkestraDown\n\n"), "{text}");
        assert!(
            !text.contains("OrkestraNoLeader") && !text.contains("###"),
            "{text}"
        );
        assert_eq!(alert("Monitoring"), None);
    }

    #[test]
    fn a_code_is_explained_with_both_samples() {
        let text = code("ork0010").unwrap();
        for part in [
            "ORK0010: unknown field",
            "\nWrong:\n",
            "\nRight:\n",
            "    kind: Katalog",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            code("ORK9999")
                .unwrap_err()
                .to_string()
                .contains("unknown code")
        );
    }
}
