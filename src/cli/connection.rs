//! The cluster that a command uses.

use std::{path::PathBuf, time::Duration};

use orkestra_cluster::client::{self, ClusterOptions, Connection};

use super::{Failure, output};

/// The cluster that a command connects to; only commands that connect to one have these flags.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ConnectionOptions {
    /// Kubeconfig to use instead of $KUBECONFIG, ~/.kube/config or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use instead of its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// The timeout of the first request to the cluster.
const PATIENCE: Duration = Duration::from_secs(10);

/// The IDs of the flags of [`ConnectionOptions`].
pub(crate) const CLUSTER_FLAGS: [&str; 2] = ["kubeconfig", "context"];

impl ConnectionOptions {
    /// Connects to the cluster, and waits for its first response.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        connect(&self.options()).await
    }

    pub(crate) fn options(&self) -> ClusterOptions {
        ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}

/// Connects to a cluster, and waits for its first response: a cluster that is away is reported before anything else is done.
pub(crate) async fn connect(cluster: &ClusterOptions) -> Result<Connection, Failure> {
    let connection = client::connect(cluster).await?;
    output::progress("connecting to the cluster", connection.check(PATIENCE)).await?;
    Ok(connection)
}
