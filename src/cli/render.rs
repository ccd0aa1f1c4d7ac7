//! `ork render`

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use jiff::Timestamp;

use super::{
    Failure,
    options::Files,
    output::{self, Counts},
};
use crate::{
    files::STDIN,
    render::{self, Rendered, Request, Show},
};

/// What templates take for the present time where nothing is said: always the same.
const DEFAULT_TIME: &str = "2025-01-01T00:00:00Z";

/// Prints what would be created for custom resources, without a cluster
///
/// Runs the reconcile pass of the operator on files instead of a cluster. Name Katalogs, and the definitions that they do not
/// name as crdFile: files, folders or `-` for standard input. Without a path, katalog.yaml of the current folder is used.
/// The output is a YAML stream for kubectl, in the order of creation; comments say what is left out and why. If something
/// cannot be rendered, the rest is printed and the exit code is 1.
///
/// Equal files give equal output: the time is that of --at, and random functions are seeded with kind, namespace and name
/// of the custom resource. Defaults of the definition are applied, as the API server does. A custom resource without a uid
/// gets objects without owner references, because the garbage collector would delete them.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    files: Files,
    /// Custom resources; may be repeated
    #[arg(short, long = "cr", value_name = "FILE", num_args = 1.., required = true)]
    crs: Vec<PathBuf>,
    /// Status of the custom resource to assume, instead of the one that is in its file
    #[arg(long, value_name = "FILE")]
    status: Option<PathBuf>,
    /// Objects that exist, as `kubectl get --output yaml` prints them: children, and objects that templates read; may be
    /// repeated. Children are those whose metadata names the custom resource as owner. An object without such metadata is a
    /// child if the Katalog declares one of its kind and name
    #[arg(long, value_name = "FILE", num_args = 1..)]
    children: Vec<PathBuf>,
    /// Custom resources of other operators that `cross` reads; without them there are none; may be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    cross: Vec<PathBuf>,
    /// Answers to `external` calls: a map by the name of the call, each with `status`, `body` and `error` as far as they matter.
    /// No call is made. Objects that depend on a call without an answer are left out, which is an error
    #[arg(long, value_name = "FILE")]
    external: Option<PathBuf>,
    /// What templates take for the present time, as in 2025-06-30T12:00:00Z; `now` is the time of the clock
    #[arg(long, value_name = "TIME", default_value = DEFAULT_TIME, value_parser = parse_time)]
    at: Timestamp,
    /// How objects are printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    /// Print the values of Secrets. By default they are hidden: an object that contains one is printed as a comment with
    /// `***` in place of the values, and left out of JSON, so that the rest can be piped to `kubectl diff -f -`
    #[arg(long)]
    show_secrets: bool,
    /// Print each custom resource too, with the status that the pass would write
    #[arg(long)]
    with_status: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// A stream of documents
    #[default]
    Yaml,
    /// One `List`
    Json,
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    if text == "now" {
        return Ok(Timestamp::now());
    }
    text.parse()
        .map_err(|_| format!("write a time such as {DEFAULT_TIME}, or `now`"))
}

pub(super) async fn execute(args: Args) -> Result<(), Failure> {
    let request = Request {
        katalogs: args.files.or_default()?,
        resources: args.crs,
        status: args.status,
        children: args.children,
        cross: args.cross,
        calls: args.external,
        now: args.at,
    };
    let all = [
        &request.katalogs,
        &request.resources,
        &request.children,
        &request.cross,
    ];
    let paths = all
        .into_iter()
        .flatten()
        .chain(&request.status)
        .chain(&request.calls);
    if paths.filter(|path| **path == Path::new(STDIN)).count() > 1 {
        return Err(anyhow::anyhow!("standard input can be read once").into());
    }
    let rendered = output::progress("rendering", render::render(&request)).await;
    output::snippets(&rendered.problems.0, &rendered.texts);
    let show = Show {
        secrets: args.show_secrets,
        status: args.with_status,
    };
    print(&rendered, show, args.output)?;
    let counts = Counts::of(&rendered.problems);
    if counts.errors > 0 {
        output::note(&counts.to_string());
        return Err(Failure::Reported);
    }
    Ok(())
}

/// Prints what could be rendered, and to stderr what the reader has to know about it.
fn print(rendered: &Rendered, show: Show, format: Format) -> Result<(), Failure> {
    let passes = &rendered.passes;
    if passes.is_empty() {
        return Ok(());
    }
    for kind in passes.iter().flat_map(|pass| &pass.preview.guessed) {
        output::note(&format!(
            "{kind} is assumed to be namespaced: add its definition with -f to be sure"
        ));
    }
    let masked = render::masked_objects(passes, show);
    if !masked.is_empty() {
        output::note(&format!(
            "left out because values are hidden: {}; --show-secrets prints them",
            masked.join(", ")
        ));
    }
    let text = match format {
        Format::Yaml => render::to_yaml(passes, show).map_err(anyhow::Error::new)?,
        Format::Json => {
            let list = render::to_json(passes, show);
            serde_json::to_string_pretty(&list).map_err(anyhow::Error::new)? + "\n"
        }
    };
    Ok(output::print(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_wrong_ones_told_with_a_sample() {
        assert_eq!(
            parse_time("2025-06-30T12:00:00+02:00").unwrap(),
            "2025-06-30T10:00:00Z".parse().unwrap()
        );
        assert!(parse_time("now").unwrap() > parse_time(DEFAULT_TIME).unwrap());
        assert!(parse_time("today").unwrap_err().contains(DEFAULT_TIME));
    }
}
