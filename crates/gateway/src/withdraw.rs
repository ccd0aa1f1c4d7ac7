//! Removes what an installation registered at the API server and no longer serves: its webhooks and conversions if they are off, and
//! what has an earlier name if they are on. Policies need no webhook: the keeper keeps and removes them.
//!
//! ```text
//!  this process leads ──► objects of this installation ──► removed; again while one cannot be removed
//! ```
//!
//! The replica that leads does it: the one that led before may have had webhooks, and restored its objects until it lost the
//! lease.

use std::sync::Arc;

use orkestra_cluster::requests::{Cluster, ClusterError, RETRY};
use orkestra_ground::tasks::{self, Ends, Task};

use super::{
    GatewayOptions, desired,
    remove::{Registered, pointers, remove},
};
use orkestra_operator::context::Context;

/// The registered objects of an installation that are to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The installation, as in [`GatewayOptions`].
    pub installation: String,
    /// The namespace of the installation.
    pub namespace: String,
    /// The name of its gateway.
    pub name: String,
    /// Whether webhooks are served under that name: its objects stay.
    pub serves: bool,
}

impl Withdrawal {
    /// The withdrawal of a process with these settings.
    pub fn of(options: &GatewayOptions, serves: bool) -> Self {
        Self {
            installation: options.installation.clone(),
            namespace: options.namespace.clone(),
            name: options.name.clone(),
            serves,
        }
    }

    /// Returns the objects to remove, in the order of removal.
    ///
    /// # Errors
    /// The first request that failed.
    pub async fn registered(&self, cluster: &Cluster) -> Result<Vec<Registered>, ClusterError> {
        let mut all = pointers(cluster, desired::LABEL.to_owned()).await?;
        all.retain(|one| {
            let Self {
                installation,
                namespace,
                name,
                serves,
            } = self;
            let is_left = if *serves {
                !one.is_named(name)
            } else {
                !one.is_policy()
            };
            one.is_of(installation, namespace, name) && is_left
        });
        Ok(all)
    }

    /// Starts the removal, which is repeated whenever this process starts to lead.
    pub fn start(self, context: &Arc<Context>) {
        let named = tasks::named(Task::WebhookWithdrawal, "");
        named.keep(Ends::never(), (self, context.clone()), |(this, context)| {
            Box::pin(this.keep(context))
        });
    }

    async fn keep(&self, context: &Context) {
        let mut leadership = context.leadership.changed();
        let mut failures = 0;
        loop {
            leadership.mark_unchanged();
            let problems = if context.leadership.leads() {
                self.once(&context.cluster).await
            } else {
                Vec::new()
            };
            if problems.is_empty() {
                failures = 0;
                // The sender lives as long as the context.
                let _ = leadership.changed().await;
                continue;
            }
            tracing::warn!(
                problems = problems.join("; "),
                "not everything that the webhooks registered at the API server can be removed"
            );
            let pause = RETRY.after(failures);
            failures += 1;
            tokio::select! {
                _ = leadership.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Removes everything that can be removed; returns why something stays that will not be needed later.
    async fn once(&self, cluster: &Cluster) -> Vec<String> {
        let all = match self.registered(cluster).await {
            Ok(all) => all,
            Err(error) => return vec![format!("cannot list webhook configurations: {error}")],
        };
        let mut problems = Vec::new();
        for registered in all {
            if let Some(why) = &registered.kept {
                problems.push(format!("{registered} is kept: {why}"));
                continue;
            }
            match remove(cluster, &registered).await {
                Ok(()) => tracing::info!(%registered, "removed: the webhooks are off"),
                Err(error) => problems.push(format!("cannot remove {registered}: {error}")),
            }
        }
        problems
    }
}
