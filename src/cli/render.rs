//! `ork render`

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use jiff::Timestamp;

use super::{
    Failure,
    output::{self, Counts},
};
use crate::{
    files::STDIN,
    render::{self, Request, Show},
};

/// What templates take for the present time where nothing is said: always the same.
const DEFAULT_TIME: &str = "2025-01-01T00:00:00Z";

/// Prints what would be created for custom resources, without a cluster
///
/// It is the pass that the operator would run, over a world of files: objects come as a YAML stream for kubectl, in the order of
/// their creation; comments tell what is left out and why. Equal files give equal output: the time is that of --at, and notes
/// that draw random values draw from a seed that the custom resource's kind, namespace and name make.
/// Defaults of the definition are set, as the API server does. A custom resource without a uid has no owner references in
/// its objects: a cluster would delete them at once.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Katalog files and folders, with the definitions that they do not name; may be repeated
    #[arg(short = 'k', long = "katalog", value_name = "PATH", num_args = 1.., required = true)]
    katalogs: Vec<PathBuf>,
    /// Custom resources; may be repeated
    #[arg(short, long = "cr", value_name = "FILE", num_args = 1.., required = true)]
    crs: Vec<PathBuf>,
    /// Status of the custom resource to assume, instead of the one that is in its file
    #[arg(long, value_name = "FILE")]
    status: Option<PathBuf>,
    /// Children that exist, as `kubectl get --output yaml` prints them; may be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    children: Vec<PathBuf>,
    /// Objects that `cross` reads; not supported yet
    #[arg(long, value_name = "FILE", value_parser = not_supported)]
    cross: Option<PathBuf>,
    /// Answers to `external` calls: a map by the name of the call, each with `status`, `body` and `error` as far as they matter.
    /// A call without one fails: none is made
    #[arg(long, value_name = "FILE")]
    external: Option<PathBuf>,
    /// What templates take for the present time, as in 2025-06-30T12:00:00Z; `now` is the time of the clock
    #[arg(long, value_name = "TIME", default_value = DEFAULT_TIME, value_parser = parse_time)]
    at: Timestamp,
    /// How objects are printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    /// Print the values of Secrets instead of `***`
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

fn not_supported(_: &str) -> Result<PathBuf, String> {
    Err("not supported yet".to_owned())
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
        katalogs: args.katalogs,
        resources: args.crs,
        status: args.status,
        children: args.children,
        calls: args.external,
        now: args.at,
    };
    let all = [&request.katalogs, &request.resources, &request.children];
    let paths = all
        .into_iter()
        .flatten()
        .chain(&request.status)
        .chain(&request.calls);
    if paths.filter(|path| **path == Path::new(STDIN)).count() > 1 {
        return Err(anyhow::anyhow!("standard input can be read once").into());
    }
    let rendered = render::render(&request).await;
    output::snippets(&rendered.problems.0, &rendered.texts);
    let counts = Counts::of(&rendered.problems);
    if counts.errors > 0 {
        output::note(&counts.to_string());
        return Err(Failure::Reported);
    }
    let show = Show {
        secrets: args.show_secrets,
        status: args.with_status,
    };
    for kind in rendered
        .passes
        .iter()
        .flat_map(|pass| &pass.preview.guessed)
    {
        output::note(&format!(
            "{kind} is taken to live in namespaces: name its definition after -k to be sure"
        ));
    }
    if !show.secrets && render::hides(&rendered.passes) {
        output::note("the values of Secrets are hidden: --show-secrets prints them");
    }
    let text = match args.output {
        Format::Yaml => render::to_yaml(&rendered.passes, show).map_err(anyhow::Error::new)?,
        Format::Json => {
            let list = render::to_json(&rendered.passes, show);
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
