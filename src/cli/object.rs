//! The object that a command is about.

use orkestra_admin::operate::{self, ObjectName, Target};
use orkestra_cluster::requests::{Cluster, Served};
use orkestra_plan::ObjectKey;

use super::{Failure, connection::ConnectionOptions, options::parse_namespace};

/// `KIND/NAME`, its namespace, and the cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct ObjectOptions {
    /// The object, such as `katalog/ponds`, `pond/north` or `ponds.water.example/north`
    #[arg(value_name = "KIND/NAME")]
    object: ObjectName,
    /// Namespace of the object [default: the namespace of the kubeconfig's context]
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

/// An object whose kind the API server serves.
pub(crate) struct FoundObject {
    cluster: Cluster,
    served: Served,
    key: ObjectKey,
}

impl ObjectOptions {
    /// Connects to the cluster and finds the kind.
    pub(crate) async fn find(&self) -> Result<FoundObject, Failure> {
        let connection = self.cluster.connect().await?;
        let namespace = self.namespace.as_deref();
        let namespace = namespace.unwrap_or_else(|| connection.client.default_namespace());
        let found = operate::find(connection.client.clone(), &self.object, namespace);
        let (served, key) = found.await?;
        Ok(FoundObject {
            cluster: Cluster::new(connection.client.clone()).in_turn(connection.flow),
            served,
            key,
        })
    }
}

impl FoundObject {
    /// Returns what requests are made about.
    pub(crate) fn target(&self) -> Target<'_> {
        Target {
            cluster: &self.cluster,
            served: &self.served,
            key: &self.key,
        }
    }
}

impl From<operate::Error> for Failure {
    fn from(error: operate::Error) -> Self {
        let is_unreachable = error.is_unreachable();
        Self::of(error, is_unreachable)
    }
}
