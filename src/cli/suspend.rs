//! `ork suspend` and `ork resume`

use orkestra_admin::operate::Target;

use super::{Failure, object::ObjectOptions, output};

/// Stop reconciling a Katalog, a Komposer or a custom resource
///
/// Its children stay as they are, and drift is not corrected; a deletion is carried out. A condition `Suspended` says who suspended
/// it, and since when. Nothing but the annotation `orkestra.orkspace.io/suspend` is written, so Argo CD and Flux leave it alone.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SuspendArgs {
    #[command(flatten)]
    object: ObjectOptions,
}

/// Reconcile a suspended Katalog, Komposer or custom resource again
///
/// The annotation `orkestra.orkspace.io/suspend` is removed. A Katalog or Komposer that `spec.suspend` suspends stays suspended.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    object: ObjectOptions,
}

pub(crate) async fn suspend(args: SuspendArgs) -> Result<(), Failure> {
    let object = args.object.find().await?;
    let target: Target<'_> = object.target();
    let word = if target.suspend().await? {
        "suspended"
    } else {
        "suspended already"
    };
    Ok(output::print(&format!("{} {word}\n", target.title()))?)
}

pub(crate) async fn resume(args: ResumeArgs) -> Result<(), Failure> {
    let object = args.object.find().await?;
    let target: Target<'_> = object.target();
    let word = if target.resume().await? {
        "resumed"
    } else {
        "was not suspended"
    };
    Ok(output::print(&format!("{} {word}\n", target.title()))?)
}
