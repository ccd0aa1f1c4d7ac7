//! `ork reconcile`

use std::time::Duration;

use anyhow::anyhow;
use orkestra_admin::operate::Target;
use orkestra_language::api::duration;
use tokio::time::{Instant, sleep};

use super::{Failure, object::ObjectOptions, output};

/// The delay between two reads of the status.
const STEP: Duration = Duration::from_millis(200);

/// Reconcile a Katalog, a Komposer or a custom resource now
///
/// The controller reconciles without being asked; this also repeats what failed without waiting for the next attempt. The command
/// waits until the status reports the request as handled (`status.lastHandledReconcileAt`, which the definition of a kind needs for
/// it). Flux's annotation `reconcile.fluxcd.io/requestedAt` has the same effect.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    object: ObjectOptions,
    /// Do not wait until the request is handled
    #[arg(long)]
    no_wait: bool,
    /// Maximum time to wait
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    timeout: Duration,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let object = args.object.find().await?;
    let target = object.target();
    let requested = target.reconcile(jiff::Timestamp::now()).await?;
    let title = target.title();
    if args.no_wait {
        return Ok(output::print(&format!("{title} requested\n"))?);
    }
    let handled = until_handled(&target, &requested, args.timeout);
    if !output::progress("waiting for the pass", handled).await? {
        return Err(anyhow!(
            "the status of {title} did not report the request within {:?}: is a controller running, and does the definition of the kind \
             have `status.lastHandledReconcileAt`?",
            args.timeout
        )
        .into());
    }
    Ok(output::print(&format!("{title} reconciled\n"))?)
}

/// Waits until the status reports the request, or until the time is over: false then.
async fn until_handled(
    target: &Target<'_>,
    requested: &str,
    timeout: Duration,
) -> Result<bool, Failure> {
    let end = Instant::now() + timeout;
    loop {
        if target.handled().await?.as_deref() == Some(requested) {
            return Ok(true);
        }
        if Instant::now() >= end {
            return Ok(false);
        }
        sleep(STEP).await;
    }
}
