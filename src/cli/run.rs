//! `ork run`

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    path::PathBuf,
    time::Duration,
};

use orkestra_ground::tasks::{self, Task};
use tokio::sync::mpsc;

use orkestra_compiler::compilation::CompilationRules;

use super::{
    Failure,
    connection::ConnectionOptions,
    options::{FileOptions, Http, Process},
    output,
    serve::{Service, serve},
    sources::SourceOptions,
};
use orkestra_controller::{self, Feed, FileError, Installation, Notice};

/// Loopback: on a developer's machine, no other host needs to connect.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));
/// The interval at which the files are checked for changes.
const POLL: Duration = Duration::from_secs(1);
/// No wait, because a person is waiting: a wrong address is reported at once.
const PATIENCE: Duration = Duration::ZERO;
/// The command whose files claim kinds, in the name of the installation.
pub(crate) const INSTALLATION: &str = "ork run";

/// Run the operators of Katalog files against a cluster, for development
///
/// The cluster needs no Katalog CRD. The files that entries name in setup, crdFile and crFiles are applied first. Changed
/// files are reloaded; if one is invalid, its errors are reported and the last valid revision keeps running. Finalizers
/// remain on the custom resources after the command stops: `ork release` removes them.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) files: FileOptions,
    #[command(flatten)]
    process: Process,
    #[command(flatten)]
    http: Http,
    #[command(flatten)]
    cluster: ConnectionOptions,
    #[command(flatten)]
    sources: SourceOptions,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    args.process.start_logging();
    let paths = args.files.or_default()?;
    // Errors that need no cluster to be found are reported before the cluster is contacted.
    let fetch = args.sources.fetch(&paths)?;
    super::files::check(&paths, &*fetch).await?;
    let (notices, received) = mpsc::unbounded_channel();
    let reporter = tasks::named(Task::Notices, "").start(print_notices(received));
    let feed = Feed::Files(orkestra_controller::KatalogFiles {
        paths: paths.clone(),
        poll: POLL,
        notices,
        fetch,
    });
    let installation = Installation::of_files(INSTALLATION, &paths);
    let ended = serve(Service {
        process: &args.process,
        http: &args.http,
        listen: args.http.listen.unwrap_or(LISTEN),
        cluster: &args.cluster.options(),
        patience: PATIENCE,
        election: None,
        feed,
        rules: CompilationRules::default(),
        webhooks: None,
        sources: None,
        installation,
    })
    .await;
    // The task ends with the feed, which has been dropped. A panic in it has been printed.
    if let Ok(true) = reporter.await {
        output::note(&farewell(&paths));
    }
    ended
}

/// Prints notices. Returns true if an operator ran.
async fn print_notices(mut notices: mpsc::UnboundedReceiver<Notice>) -> bool {
    let mut ran = false;
    while let Some(notice) = notices.recv().await {
        match notice {
            Notice::Refused(FileError::Invalid(problems)) => {
                output::diagnostics(&problems.0);
                output::note("the last valid revision keeps running");
            }
            Notice::Refused(error) => output::error(&anyhow::Error::new(error)),
            Notice::Warned(warnings) => output::diagnostics(&warnings),
            Notice::Applied(what) => output::note(&format!("applied {what}")),
            Notice::Loaded {
                katalog,
                revision,
                operators,
            } => {
                ran = true;
                output::note(&format!(
                    "Katalog {} is loaded, revision {revision}: {}",
                    katalog.name,
                    operators.join(", ")
                ));
            }
            Notice::Operator(text) => output::note(&text),
        }
    }
    ran
}

fn farewell(paths: &[PathBuf]) -> String {
    let files: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    format!(
        "Finalizers remain on the custom resources: deletions wait for the next run.\n\
         To remove the finalizers, run `ork release -k {}`.",
        files.join(" ")
    )
}
