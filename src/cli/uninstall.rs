//! `ork uninstall`

use std::time::Duration;

use orkestra_language::api::duration;
use orkestra_plan::rbac;

use super::{Failure, connection::ConnectionOptions, install, options::parse_namespace, output};
use orkestra_admin::install::{Removal, remove};

/// Remove an installation of `ork install`
///
/// Removes the controller, its webhooks and its permissions. The CRDs stay, and with them all Katalogs; the namespaces stay with everything
/// in them. Katalogs must be deleted first: without a controller the finalizers of their custom resources would remain.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "a flag each")]
pub(crate) struct Args {
    /// Namespace of the controller
    #[arg(short, long, value_name = "NS", default_value = rbac::NAMESPACE, value_parser = parse_namespace)]
    namespace: String,
    /// Also remove the CRDs, and with them all Katalogs, Komposers and Motifs
    #[arg(long)]
    crds: bool,
    /// Also remove the namespaces of the installation, with all objects in them
    #[arg(long)]
    namespaces: bool,
    /// Uninstall even if Katalogs exist: their objects stay as they are, and finalizers stay until a controller runs again or
    /// `ork release` removes them
    #[arg(long)]
    ignore_katalogs: bool,
    /// Print the objects that would be removed, without removing them
    #[arg(long)]
    dry_run: bool,
    /// Timeout for the shutdown of the controller, and for the removal of CRDs and namespaces
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    timeout: Duration,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let cluster = install::connect(&args.cluster).await?;
    let removal = Removal {
        namespace: &args.namespace,
        crds: args.crds,
        namespaces: args.namespaces,
        with_katalogs: args.ignore_katalogs,
        within: args.timeout,
    };
    let dry = if args.dry_run { " (dry run)" } else { "" };
    let mut lines = |object: &dyn std::fmt::Display| {
        // A closed pipe does not interrupt the removal.
        let _ = output::print(&format!("{object} deleted{dry}\n"));
    };
    let remains = remove(&cluster, &removal, args.dry_run, &mut lines).await?;
    if !remains.kept.is_empty() {
        output::note(&format!("kept: {}", remains.kept.join(", ")));
    }
    Ok(())
}
