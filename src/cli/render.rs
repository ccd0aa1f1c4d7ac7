//! `ork render`

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use jiff::Timestamp;

use super::{
    Failure,
    options::FileOptions,
    output::{self, Counts},
    sources::SourceOptions,
};
use orkestra_author::render::{self, RenderRequest, Rendered, Show};
use orkestra_loader::files::STDIN;

/// The default of the current time in templates: a constant.
const DEFAULT_TIME: &str = "2025-01-01T00:00:00Z";

/// Print the objects that would be created for custom resources, without a cluster
///
/// The command runs the reconcile pass of the operator on files instead of a cluster. Pass Katalogs, and the CRDs that they do
/// not name in crdFile: files, directories or `-` for standard input. The default path is katalog.yaml in the current
/// directory. The output is a YAML stream for kubectl, in the order of creation; comments list omitted objects with the reason.
/// If an object cannot be rendered, the others are printed and the exit code is 1.
///
/// Equal files give equal output: --at sets the time, and random functions are seeded with kind, namespace and name of the
/// custom resource. Defaults of the CRD are applied, as by the API server. If a custom resource has no uid, its objects have
/// no owner references, because the garbage collector would delete them.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "a flag each")]
pub(crate) struct Args {
    #[command(flatten)]
    files: FileOptions,
    /// Custom resources; may be repeated
    #[arg(short, long = "cr", value_name = "FILE", num_args = 1.., required_unless_present = "resolved")]
    crs: Vec<PathBuf>,
    /// Print the Katalogs of a Komposer instead, one for each source, with the overrides applied. No custom resource is needed
    #[arg(long, conflicts_with_all = ["crs", "status", "children", "cross", "external", "with_status"])]
    resolved: bool,
    /// With `--resolved`: also print the file and line of each value, as a comment
    #[arg(long, requires = "resolved")]
    origins: bool,
    /// Status of the custom resource, instead of the status in its file
    #[arg(long, value_name = "FILE")]
    status: Option<PathBuf>,
    /// Existing objects, as printed by `kubectl get --output yaml`: children, and objects that templates read; may be repeated.
    /// An object is a child if its metadata names the custom resource as owner. An object without such metadata is a child if
    /// the Katalog declares one of its kind and name
    #[arg(long, value_name = "FILE", num_args = 1..)]
    children: Vec<PathBuf>,
    /// Custom resources of other operators that `cross` reads [default: none]; may be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    cross: Vec<PathBuf>,
    /// Responses to `external` calls: a map from call names to responses, each with optional `status`, `body` and `error`. No
    /// call is made. Objects that depend on a call without a response are omitted, which is an error
    #[arg(long, value_name = "FILE")]
    external: Option<PathBuf>,
    /// Current time in templates, such as 2025-06-30T12:00:00Z; `now` is the time of the system clock
    #[arg(long, value_name = "TIME", default_value = DEFAULT_TIME, value_parser = parse_time)]
    at: Timestamp,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    /// Print the values of Secrets. By default, they are hidden: an object that contains one is printed as a comment with
    /// `***` in place of the values, and omitted from JSON, so that the output can be piped to `kubectl diff -f -`
    #[arg(long)]
    show_secrets: bool,
    /// Also print each custom resource, with the status that the pass would write
    #[arg(long)]
    with_status: bool,
    #[command(flatten)]
    sources: SourceOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// A stream of YAML documents
    #[default]
    Yaml,
    /// A JSON `List`
    Json,
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    if text == "now" {
        return Ok(Timestamp::now());
    }
    text.parse()
        .map_err(|_| format!("expected a time such as {DEFAULT_TIME}, or `now`"))
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    if args.resolved {
        return print_resolved(args).await;
    }
    let katalogs = args.files.or_default()?;
    let fetch = args.sources.fetch(&katalogs)?;
    let request = RenderRequest {
        katalogs,
        resources: args.crs,
        status: args.status,
        children: args.children,
        cross: args.cross,
        calls: args.external,
        now: args.at,
        fetch,
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
        return Err(anyhow::anyhow!("standard input can be read only once").into());
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

/// Prints the Katalogs that compositions are merged to.
async fn print_resolved(args: Args) -> Result<(), Failure> {
    let paths = args.files.or_default()?;
    let fetch = args.sources.fetch(&paths)?;
    let validating = orkestra_loader::files::validate_with(&paths, &*fetch);
    let found = output::progress("merging", validating).await;
    output::snippets(&found.problems.0, &found.texts);
    let composed = found
        .katalogs
        .iter()
        .filter_map(|katalog| katalog.composed.as_ref());
    let texts: Vec<String> = composed
        .map(|composed| composed.to_yaml(args.origins))
        .collect();
    if texts.is_empty() && !found.problems.has_errors() {
        return Err(
            anyhow::anyhow!("the files have no Komposer, and no Katalog with `sources`").into(),
        );
    }
    let text = texts.concat();
    match args.output {
        Format::Yaml => output::print(&text)?,
        Format::Json => {
            let documents = orkestra_language::document::parse_stream("resolved", &text).sources;
            let items: Vec<_> = documents
                .iter()
                .map(|source| source.tree.to_json())
                .collect();
            let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items });
            let text = serde_json::to_string_pretty(&list).map_err(anyhow::Error::new)?;
            output::print(&(text + "\n"))?;
        }
    }
    let counts = Counts::of(&found.problems);
    if counts.errors > 0 {
        output::note(&counts.to_string());
        return Err(Failure::Reported);
    }
    Ok(())
}

/// Prints the rendered objects, and remarks about them to stderr.
fn print(rendered: &Rendered, show: Show, format: Format) -> Result<(), Failure> {
    let passes = &rendered.passes;
    if passes.is_empty() {
        return Ok(());
    }
    for kind in passes.iter().flat_map(|pass| &pass.preview.guessed) {
        output::note(&format!(
            "{kind} is assumed to be namespaced: add its CRD with -f to determine its scope"
        ));
    }
    let masked = render::masked_objects(passes, show);
    if !masked.is_empty() {
        output::note(&format!(
            "omitted because values are hidden: {}; --show-secrets prints them",
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
    fn times_are_read_and_wrong_ones_reported_with_a_sample() {
        assert_eq!(
            parse_time("2025-06-30T12:00:00+02:00").unwrap(),
            "2025-06-30T10:00:00Z".parse().unwrap()
        );
        assert!(parse_time("now").unwrap() > parse_time(DEFAULT_TIME).unwrap());
        assert!(parse_time("today").unwrap_err().contains(DEFAULT_TIME));
    }
}
