//! `ork e2e`

use std::{path::PathBuf, sync::Arc, time::Instant};

use anyhow::Context as _;
use clap::ValueEnum;
use orkestra_cluster::client::ClusterOptions;

use super::{
    Failure,
    connection::ConnectionOptions,
    options::CallOptions,
    output::{self, Counts},
    serve::stop_on_signals,
    sources::Fetching,
};
use crate::telemetry::{self, LogFilter, LogFormat};
use orkestra_author::e2e::{self, Choice, E2eOptions, E2eResults, SessionError, TestProgress};

/// The default file.
const FILE: &str = "e2e.yaml";

/// Test Katalogs on a cluster
///
/// An E2E names a Katalog, custom resources and expectations. The command applies its CRDs and setup, runs its operators in this
/// process, applies and deletes the custom resources, and polls the expectations of each phase until they hold. Then it deletes
/// all objects that it created. It prints failed expectations with the observed values, and exits with 1.
///
/// Documents with `cluster.provider: existing` use the cluster of the kubeconfig, the others a control plane of the binaries in
/// `--assets`. A flag that chooses a cluster applies to all documents. The control plane has no nodes: Pods do not run there, and
/// workloads do not become ready.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// E2E files and folders; `./...` is the current directory with its subdirectories [default: e2e.yaml]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// E2E file or folder, like PATH; may be repeated
    #[arg(short, long = "file", value_name = "PATH", num_args = 1..)]
    files: Vec<PathBuf>,
    /// Skip documents by name, file or folder; may be repeated
    #[arg(long, value_name = "NAME|PATH")]
    skip: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    /// Also write the results to this file, as `JUnit` XML
    #[arg(long, value_name = "FILE")]
    report_file: Option<PathBuf>,
    /// Levels to log, as for `ork run`
    #[arg(
        long,
        value_name = "FILTER",
        env = "RUST_LOG",
        hide_env_values = true,
        default_value = "error"
    )]
    log: LogFilter,
    #[command(flatten)]
    calls: CallOptions,
    /// Use the cluster of the kubeconfig for all documents; implied by `--kubeconfig` and `--context`
    #[arg(long, help_heading = "Cluster")]
    use_current: bool,
    /// Use the kind cluster of this name, which must exist
    #[arg(
        long = "cluster",
        value_name = "NAME",
        conflicts_with = "context",
        help_heading = "Cluster"
    )]
    kind: Option<String>,
    /// Folder with `etcd`, `kube-apiserver` and `kube-controller-manager`, to start a control plane on loopback
    #[arg(
        long,
        value_name = "FOLDER",
        env = e2e::ASSETS,
        hide_env_values = true,
        help_heading = "Cluster"
    )]
    assets: Option<PathBuf>,
    /// Keep the created objects and list them; a control plane that was started runs until Ctrl-C
    #[arg(long, help_heading = "Cluster")]
    keep_cluster: bool,
    #[command(flatten)]
    cluster: ConnectionOptions,
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

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    telemetry::init(LogFormat::Human, &args.log);
    let stop = stop_on_signals()?;
    let mut paths = args.paths;
    paths.extend(args.files);
    if paths.is_empty() {
        paths.push(PathBuf::from(FILE));
    }
    let given = args.cluster.options();
    let cluster = match &args.kind {
        Some(name) => Choice::Current(ClusterOptions {
            context: Some(e2e::kind_context(name)),
            ..given
        }),
        None if args.use_current || given != ClusterOptions::default() => Choice::Current(given),
        None => Choice::Declared(given),
    };
    let (format, calls) = (args.output, args.calls);
    let options = E2eOptions {
        cluster,
        assets: args.assets,
        keep: args.keep_cluster,
        skip: args.skip,
        external: Arc::new(move |connection| calls.external(connection)),
        fetch: args.sources.fetch()?,
        stop: stop.clone(),
        progress: Arc::new(move |progress| show(format, progress)),
    };
    let began = Instant::now();
    let ran = e2e::e2e(&paths, &options).await;
    output::snippets(&ran.problems.0, &ran.texts);
    let text = match format {
        Format::Text => String::new(),
        Format::Junit => e2e::to_junit(&ran),
        Format::Json => {
            let text = serde_json::to_string_pretty(&e2e::to_json(&ran));
            text.map_err(anyhow::Error::new)? + "\n"
        }
    };
    output::print(&text)?;
    if let Some(file) = &args.report_file {
        std::fs::write(file, e2e::to_junit(&ran))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    output::note(&summary(&ran, began));
    if let Some(kept) = &ran.kept {
        let kubeconfig = kept.kubeconfig.display();
        output::note(&format!(
            "the control plane runs until Ctrl-C: export KUBECONFIG={kubeconfig}"
        ));
        stop.cancelled().await;
    }
    ended(ran, stop.is_cancelled())
}

/// Returns the result of the command.
fn ended(ran: E2eResults, is_stopped: bool) -> Result<(), Failure> {
    let is_passed = ran.is_passed();
    match ran.no_cluster {
        Some(error @ (SessionError::NoCluster(_) | SessionError::NotFresh)) => {
            Err(Failure::Input(error.into()))
        }
        Some(error) => Err(Failure::Cluster(error.into())),
        None if is_passed && (!is_stopped || ran.kept.is_some()) => Ok(()),
        None => Err(Failure::Reported),
    }
}

/// Prints the progress.
fn show(format: Format, progress: TestProgress<'_>) {
    let text = match (format, progress) {
        (_, TestProgress::Note(text)) if format == Format::Text => {
            text.trim_end().to_owned() + "\n"
        }
        (Format::Text, TestProgress::Begun(report)) => e2e::begun_text(report),
        (Format::Text, TestProgress::Ended(case)) => e2e::case_text(case),
        (Format::Text, TestProgress::Finished(report)) => e2e::finished_text(report),
        _ => return,
    };
    // A reader that is gone misses nothing: the exit code says the rest.
    let _ = output::print(&text);
}

/// `2 of 3 tests passed, 1 warning in 12.3 s`.
fn summary(ran: &E2eResults, began: Instant) -> String {
    let passed = ran.reports.iter().filter(|report| report.is_passed());
    let counts = Counts::of(&ran.problems);
    let problems = if counts == Counts::default() {
        String::new()
    } else {
        format!(", {counts}")
    };
    let all = output::count(ran.reports.len(), "test");
    let took = began.elapsed().as_secs_f64();
    format!(
        "{} of {all} passed{problems} in {took:.1} s",
        passed.count()
    )
}
