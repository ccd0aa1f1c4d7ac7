//! The Katalog or Komposer of the cluster that a command is about.

use orkestra_cluster::requests::Cluster;
use orkestra_controller::History;
use orkestra_plan::KatalogRef;

use super::{Failure, connection::ConnectionOptions, options::parse_namespace, release::reference};

/// A Katalog or Komposer by name, its namespace, and the cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct KatalogOptions {
    /// Katalog or Komposer in the cluster, such as `waters`, `katalog/waters` or `komposer/waters`
    #[arg(value_name = "KATALOG")]
    name: String,
    /// Namespace of the Katalog [default: the namespace of the kubeconfig's context]
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

impl KatalogOptions {
    /// Connects to the cluster, and reads the history.
    pub(crate) async fn history(&self) -> Result<(Cluster, KatalogRef, History), Failure> {
        history(&self.cluster, self.namespace.as_deref(), &self.name).await
    }
}

/// Connects to the cluster, and reads the history of that Katalog or Komposer.
pub(crate) async fn history(
    options: &ConnectionOptions,
    namespace: Option<&str>,
    name: &str,
) -> Result<(Cluster, KatalogRef, History), Failure> {
    let connection = options.connect().await?;
    let namespace = namespace.unwrap_or_else(|| connection.client.default_namespace());
    let katalog = reference(namespace, name);
    let cluster = Cluster::new(connection.client.clone()).in_turn(connection.flow);
    let history = orkestra_controller::history(&cluster, &katalog).await?;
    Ok((cluster, katalog, history))
}
