//! `ork run`

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    path::PathBuf,
    time::Duration,
};

use tokio::sync::mpsc;

use super::{
    Failure,
    options::{Cluster, Files, Http, Process},
    output,
    serve::{Service, serve},
};
use crate::{
    meta::{self, Feed, FileError, Installation, Notice},
};

/// A developer's machine: nobody else needs to read it.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));
/// How often the files are looked at.
const POLL: Duration = Duration::from_secs(1);
/// A person waits: a wrong address shows at once.
const PATIENCE: Duration = Duration::ZERO;
/// In the name of which command files claim their kinds.
pub(super) const INSTALLATION: &str = "ork run";

/// Runs the operators of Katalog files against a cluster, for development
///
/// The cluster needs no Katalog CRD. What the entries name as setup, crdFile and crFiles is applied first. A file that
/// changes is taken up; one with mistakes is told and the last good one stays. When it ends, finalizers remain on the
/// custom resources: `ork release` takes them off.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) files: Files,
    #[command(flatten)]
    process: Process,
    #[command(flatten)]
    http: Http,
    #[command(flatten)]
    cluster: Cluster,
}

pub(super) async fn execute(args: Args) -> Result<(), Failure> {
    args.process.start_logging();
    let paths = args.files.or_default()?;
    // Mistakes that show without a cluster are told before one is asked.
    super::files::check(&paths).await?;
    let (notices, told) = mpsc::unbounded_channel();
    let teller = tasks::named(Task::Notices, "").start(tell(told));
    let feed = Feed::Files(meta::Files {
        paths: paths.clone(),
        poll: POLL,
        notices,
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
        installation,
    })
    .await;
    // It ends with the feed, which is gone. A panic in it has been printed.
    if let Ok(true) = teller.await {
        output::note(&farewell(&paths));
    }
    ended
}

/// Prints what happens; true when an operator ran.
async fn tell(mut notices: mpsc::UnboundedReceiver<Notice>) -> bool {
    let mut ran = false;
    while let Some(notice) = notices.recv().await {
        match notice {
            Notice::Refused(FileError::Invalid(problems)) => {
                output::diagnostics(&problems.0);
                output::note("the last good revision stays");
            }
            Notice::Refused(error) => output::error(&anyhow::Error::new(error)),
            Notice::Warned(warnings) => output::diagnostics(&warnings),
            Notice::Applied(what) => output::note(&format!("applied {what}")),
            Notice::Runs {
                katalog,
                revision,
                operators,
            } => {
                ran = true;
                output::note(&format!(
                    "Katalog {} runs, revision {revision}: {}",
                    katalog.name,
                    operators.join(", ")
                ));
            }
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
        "Finalizers remain on the custom resources, so that a deletion waits for the next run.\n\
         `ork release -k {}` takes them off.",
        files.join(" ")
    )
}
