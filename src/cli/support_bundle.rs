//! `ork support-bundle`

use std::{net::SocketAddr, path::PathBuf};

use orkestra_plan::rbac;

use super::{Failure, connection::ConnectionOptions, options::parse_namespace, output};
use orkestra_admin::support::{self, BundleRequest};

/// Collect a description of an installation for bug reports
///
/// The archive contains versions, Katalogs, Komposers, Motifs, CRDs without schemas, the conditions of custom resources, Events,
/// Leases, and the Deployment, Pods, logs and metrics of the controller. Secrets are not read. Literal values of Secrets in
/// Katalogs, of fields that are named like a password, and tokens in logs are replaced by `***`; of custom resources only metadata
/// and conditions are included. Read it before you share it.
///
/// Objects that cannot be read are listed in summary.json with the reason, such as a missing permission. They do not make the command fail.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// File to write, which must not exist [default: orkestra-support-TIME.tar.gz]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Namespace of Katalogs and custom resources; may be repeated [default: all]
    #[arg(short, long = "namespace", value_name = "NS", value_parser = parse_namespace)]
    namespaces: Vec<String>,
    /// Namespace of the controller
    #[arg(long, value_name = "NS", value_parser = parse_namespace, default_value = rbac::NAMESPACE)]
    system_namespace: String,
    /// Read metrics and the /katalog page from this address, such as that of `kubectl port-forward`, instead of through the API
    /// server
    #[arg(long, value_name = "ADDR")]
    runtime: Option<SocketAddr>,
    /// Lines of each log
    #[arg(long, value_name = "N", default_value_t = 2000)]
    lines: u32,
    /// Maximum total size of the files, uncompressed, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_size: u32,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let connection = args.cluster.connect().await?;
    let now = jiff::Timestamp::now();
    let request = BundleRequest {
        namespaces: args.namespaces,
        system: args.system_namespace,
        runtime: args.runtime,
        lines: args.lines,
        limit: args.max_size as usize * 1024 * 1024,
        now,
    };
    let gathering = support::gather(&connection.client, &request);
    let bundle = output::progress("collecting", gathering).await;
    let named = || {
        PathBuf::from(format!(
            "orkestra-support-{}.tar.gz",
            now.strftime("%Y%m%d-%H%M%S")
        ))
    };
    let path = args.output.unwrap_or_else(named);
    support::write(&bundle, &path, now).map_err(anyhow::Error::new)?;
    for note in &bundle.notes {
        output::note(&format!("not included: {}: {}", note.what, note.why));
    }
    let files = output::count(bundle.files.len(), "file");
    output::note(&format!(
        "{} written, with {files}; read it before you share it",
        path.display()
    ));
    Ok(())
}
