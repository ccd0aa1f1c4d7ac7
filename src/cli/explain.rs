//! `ork explain`

use std::fmt::Write as _;

use orkestra_core::{
    diagnostics::{Code, nearest},
    reference,
};

use super::{Failure, output};

/// Explain a field of a Katalog, or the code of an error or warning
///
/// A field is a dotted path that begins with the kind of document: `ork explain katalog.spec.crds.operatorBox`. The default
/// kind is Katalog. Paths are case-insensitive; names of operators and list indexes may be omitted.
///
/// `ork validate` prints codes, such as ORK0012. The explanation has the cause, a wrong example and a correct one.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Field or code
    #[arg(value_name = "FIELD.PATH|CODE")]
    what: String,
    /// Print all nested fields too
    #[arg(long)]
    recursive: bool,
}

pub(super) fn execute(args: &Args) -> Result<(), Failure> {
    let text = if args.what.to_ascii_uppercase().starts_with("ORK") && !args.what.contains('.') {
        code(&args.what)?
    } else {
        let explained = reference::explain(&args.what, args.recursive);
        explained.map_err(|error| anyhow::anyhow!("{error}: {}", error.hint))?
    };
    Ok(output::print(&text)?)
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
