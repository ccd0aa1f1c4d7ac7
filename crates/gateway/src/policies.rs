//! A process that serves no webhooks, and keeps the policies of its Katalogs.

use std::{sync::Arc, time::Duration};

use orkestra_cluster::requests::Cluster;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Gateway, GatewayOptions, catalogue::Catalogue, desired, identify, keeper};
use orkestra_controller::Directory;
use orkestra_operator::context::Context;

/// How long the removal of configurations may take at the end.
const FAREWELL: Duration = Duration::from_secs(10);

impl Gateway {
    /// Keeps the policies of Katalogs, which need no webhook, until `shutdown`; then it removes those that a Katalog, or this process,
    /// wants removed, once operators have stopped.
    pub async fn keep_policies(self, shutdown: CancellationToken, stop: CancellationToken) {
        self.refresh();
        let leads = tokio::select! {
            () = self.follow_katalogs() => false,
            () = self.keep_configurations() => false,
            () = shutdown.cancelled() => self.context.leadership.leads(),
        };
        stop.cancelled().await;
        if leads {
            self.end().await;
        }
    }

    /// Removes what is wanted removed at the end.
    pub(crate) async fn end(&self) {
        let ended = tokio::time::timeout(FAREWELL, keeper::end(self)).await;
        if ended.is_err() {
            tracing::warn!("webhook configurations and policies were not removed in time");
        }
    }
}

/// Keeps policies, as [`Gateway::keep_policies`], once a Katalog declares any or its status says that it did: a process without such
/// Katalogs makes no request for them.
pub async fn run_policies(
    mut options: GatewayOptions,
    context: Arc<Context>,
    cluster: Cluster,
    (mut directory, listed): (Directory, watch::Receiver<bool>),
    (shutdown, stop): (CancellationToken, CancellationToken),
) {
    loop {
        let katalogs = directory.katalogs();
        let catalogue = Catalogue::new(&katalogs, &Catalogue::default(), false);
        if catalogue.had_policies || !desired::desired(&options, &catalogue, "", None).is_empty() {
            break;
        }
        tokio::select! {
            changes = directory.changed() => if !changes {
                return stop.cancelled().await;
            },
            () = stop.cancelled() => return,
        }
    }
    let Some(user) = identify(&cluster, &stop).await else {
        return;
    };
    options.user = user;
    let gateway = Gateway::new(options, context, cluster, (directory, listed));
    gateway.keep_policies(shutdown, stop).await;
}
