//! `ork simulate`

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::ValueEnum;
use orkestra_object::value;

use super::{
    Failure,
    output::{self, Counts},
    sources::Fetching,
};
use orkestra_author::simulate::{self, Init, SimulateOptions, Simulated};

/// The default file.
const FILE: &str = "simulate.yaml";
/// The interval at which files are checked for changes.
const POLL: Duration = Duration::from_millis(500);

/// Simulate the operators of Katalogs in memory, without a cluster, and check expectations
///
/// A Simulate document names a Katalog, custom resources and expectations: operations per cycle, a steady state, no failures,
/// the status. The reconcile passes are those of the operator. Clock and random values are fixed, so equal files give equal
/// output. Expectations that are not met are printed with the actual result, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Simulate files and directories; `./...` is the current directory with its subdirectories [default: simulate.yaml]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Simulate file or directory, as PATH; may be repeated
    #[arg(short, long = "file", value_name = "PATH", num_args = 1..)]
    files: Vec<PathBuf>,
    /// Skip documents by name, file or folder; may be repeated
    #[arg(long, value_name = "NAME|PATH")]
    skip: Vec<String>,
    /// Custom resources to use instead of those that the documents name; may be repeated
    #[arg(long = "cr", value_name = "FILE", num_args = 1..)]
    crs: Vec<PathBuf>,
    /// CRDs to use instead of those that the documents name; may be repeated
    #[arg(long = "crd", value_name = "FILE", num_args = 1..)]
    crds: Vec<PathBuf>,
    /// Number of cycles, instead of the number in the documents
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    cycles: Option<u32>,
    /// Return an empty body for `external` calls without a declared response
    #[arg(long)]
    skip_external: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    /// Run again whenever a file changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    sources: Fetching,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Human-readable text
    #[default]
    Text,
    /// One JSON object
    Json,
    /// `JUnit` XML
    Junit,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write a Simulate that expects the results of the current files
    Init(InitArgs),
}

#[derive(Debug, clap::Args)]
struct InitArgs {
    /// File to write
    #[arg(value_name = "FILE", default_value = FILE)]
    file: PathBuf,
    /// Katalog, relative to the Simulate file
    #[arg(short, long, value_name = "FILE", default_value = "katalog.yaml")]
    katalog: String,
    /// Custom resources, relative to the Simulate file; may be repeated
    #[arg(long = "cr", value_name = "FILE", num_args = 1.., default_value = "cr.yaml")]
    crs: Vec<String>,
    /// CRDs, relative to the Simulate file; may be repeated
    #[arg(long = "crd", value_name = "FILE", num_args = 1..)]
    crds: Vec<String>,
    /// Replace the expectations of an existing file; the rest of the file stays
    #[arg(long)]
    force: bool,
    /// Print the file instead of writing it
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    if let Some(Command::Init(args)) = args.command {
        return init(args).await;
    }
    let mut paths = args.paths;
    paths.extend(args.files);
    if paths.is_empty() {
        paths.push(PathBuf::from(FILE));
    }
    let options = SimulateOptions {
        resources: args.crs,
        definitions: args.crds,
        cycles: args.cycles,
        skip_external: args.skip_external,
        skip: args.skip,
        fetch: args.sources.fetch()?,
    };
    loop {
        let simulated = once(&paths, &options, args.output).await?;
        if !args.watch {
            return if simulated.is_passed() {
                Ok(())
            } else {
                Err(Failure::Reported)
            };
        }
        output::note("waiting for changes");
        if !changed(&paths, &simulated.files).await {
            return Ok(());
        }
    }
}

/// Runs the simulations once and prints the results.
async fn once(
    paths: &[PathBuf],
    options: &SimulateOptions,
    format: Format,
) -> Result<Simulated, Failure> {
    let started = Instant::now();
    let simulated = simulate::simulate(paths, options).await;
    let took = started.elapsed();
    output::snippets(&simulated.problems.0, &simulated.texts);
    match format {
        Format::Text => output::print(&simulate::to_text(&simulated))?,
        Format::Junit => output::print(&simulate::to_junit(&simulated))?,
        Format::Json => {
            let value = simulate::to_json(&simulated);
            let text = serde_json::to_string_pretty(&value).map_err(anyhow::Error::new)?;
            output::print(&format!("{text}\n"))?;
        }
    }
    let all = simulated.suites.len();
    let passed = simulated
        .suites
        .iter()
        .filter(|suite| suite.is_passed())
        .count();
    let counts = Counts::of(&simulated.problems);
    let errors = if counts == Counts::default() {
        String::new()
    } else {
        format!(", {counts}")
    };
    let all = output::count(all, "simulation");
    output::note(&format!(
        "{passed} of {all} passed{errors} in {} ms",
        took.as_millis()
    ));
    Ok(simulated)
}

/// Waits until the text of a file or the list of files in a folder changes. Returns false on Ctrl-C.
async fn changed(paths: &[PathBuf], files: &BTreeSet<PathBuf>) -> bool {
    let before = digest(paths, files);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            _ = &mut interrupted => return false,
            () = tokio::time::sleep(POLL) => {}
        }
        if digest(paths, files) != before {
            return true;
        }
    }
}

/// Hashes the texts of files and the lists of files in folders.
fn digest(paths: &[PathBuf], files: &BTreeSet<PathBuf>) -> String {
    let mut all = String::new();
    let folders = paths.iter().map(|path| match path.file_name() {
        Some(name) if name == "..." => path.parent().unwrap_or(Path::new(".")).to_owned(),
        _ => path.clone(),
    });
    let found = folders.filter(|path| path.is_dir()).flat_map(|folder| {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    });
    for path in files.iter().cloned().chain(found.collect::<BTreeSet<_>>()) {
        all.push_str(&path.display().to_string());
        all.push_str(&value::hash_text(
            &std::fs::read_to_string(path).unwrap_or_default(),
        ));
    }
    value::hash_text(&all)
}

async fn init(args: InitArgs) -> Result<(), Failure> {
    let dry_run = args.dry_run;
    let wanted = Init {
        file: args.file,
        katalog: args.katalog,
        resources: args.crs,
        definitions: args.crds,
        force: args.force,
        dry_run,
    };
    let text = match simulate::init(&wanted).await {
        Ok(text) => text,
        Err(error) => {
            if let Some(problems) = error.problems() {
                output::diagnostics(&problems.0);
            }
            return Err(anyhow::Error::new(error).into());
        }
    };
    if dry_run {
        output::print(&text)?;
    } else {
        output::note(&format!(
            "wrote {}; review its expectations",
            wanted.file.display()
        ));
    }
    Ok(())
}
