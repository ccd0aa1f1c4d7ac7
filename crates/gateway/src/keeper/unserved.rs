//! Policies of a process that serves no webhooks: they need no certificate, and nothing but the API server.
//!
//! ```text
//!  a Katalog declares rules ──► kinds of policies are watched ──► kept as with webhooks
//!  no Katalog does, and no status says that one did ──► no request
//!  `ork gateway` keeps a policy ──► left to it
//! ```

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use orkestra_cluster::requests::{Cluster, ClusterError, RETRY, Served};
use orkestra_engine::admission::{self, PolicyOptions};
use orkestra_object::decode::Version;
use tokio::time::Instant;

use super::{Desired, Keeper, Name, desired, is_desired, remove, watch};
use crate::catalogue::Catalogue;

/// How long a policy is left to the gateway that keeps it before it is looked up again.
const CEDED: Duration = Duration::from_mins(1);

/// What is known of the policies in the cluster.
#[derive(Default)]
pub(crate) struct Policies {
    /// Whether the API server has them; `None` until it was asked.
    pub(crate) are_served: Option<bool>,
    /// Whether it was asked for those that change objects.
    is_optional_known: bool,
    /// Those that a gateway keeps, since when.
    ceded: BTreeMap<Name, Instant>,
    /// Those of other installations, in that version.
    foreign: BTreeMap<Name, Version>,
}

impl Policies {
    /// Returns when to look again for policies that are left to others.
    pub(crate) fn look_again(&self) -> Duration {
        if self.ceded.is_empty() {
            Duration::MAX
        } else {
            CEDED
        }
    }
}

impl Keeper<'_> {
    /// Watches the kinds of the policies that Katalogs declare, or declared according to their status; `all` is what is desired. Returns
    /// true if the API server has turned out to have policies that change objects, which are desired then too.
    pub(crate) async fn follow_policies(&mut self, catalogue: &Catalogue, all: &[Desired]) -> bool {
        let is_refusing = |one: &Desired| desired::policy_kinds().contains(&one.served);
        let refuses = catalogue.had_policies || all.iter().any(is_refusing);
        if refuses && self.policies.are_served.is_none() {
            self.policies.are_served = Some(has_policies(&self.cluster).await);
        }
        let finds_more = !self.policies.is_optional_known && completes(catalogue);
        if finds_more {
            self.optional = optional_version(&self.cluster).await;
            self.policies.is_optional_known = true;
        }
        let mut kinds = Vec::new();
        if refuses && self.policies.are_served == Some(true) {
            kinds.extend(desired::policy_kinds());
        }
        kinds.extend(self.optional.into_iter().flat_map(desired::optional_kinds));
        kinds.retain(|kind| self.watches.iter().all(|watch| watch.served() != kind));
        for kind in kinds {
            let watch = watch(self.gateway, kind, &Arc::clone(&self.touched));
            watch.looked_at().await;
            self.watches.push(watch);
        }
        finds_more && self.optional.is_some()
    }

    /// Forgets policies that are not desired any more, and those of others that are gone.
    pub(crate) fn forget_policies(&mut self, all: &[Desired]) {
        let Policies { ceded, foreign, .. } = &mut self.policies;
        ceded.retain(|name, _| is_desired(all, name));
        foreign.retain(|(kind, name), _| {
            let mut watches = self.watches.iter();
            let watch = watches.find(|watch| *watch.served().kind == **kind);
            watch.is_some_and(|watch| watch.store().get(&desired::key(name)).is_some())
        });
    }

    /// Leaves out the policies of Katalogs that do not ask for them, where the API server has none.
    pub(crate) fn leave_out_unserved(&self, all: &mut Vec<Desired>, catalogue: &Catalogue) {
        let are_served = self.policies.are_served != Some(false);
        self.gateway.context.enforcement.serve_policies(are_served);
        if are_served {
            return;
        }
        let kinds = desired::policy_kinds();
        let asks = |one: &Desired| {
            let mut katalogs = catalogue.katalogs.iter();
            let owners = one.owners();
            katalogs.any(|(katalog, plan)| {
                let security = &plan.security;
                owners.contains(katalog)
                    && (security.admission == Some(true)
                        || security.deletion.is_some()
                        || security.namespaces.is_some())
            })
        };
        all.retain(|one| !kinds.contains(&one.served) || asks(one));
    }

    /// Leaves out the policies that a gateway without operators keeps, if this process serves no webhooks: both would write them
    /// again and again.
    pub(crate) async fn leave_out_ceded(&mut self, due: &mut Vec<&Desired>) {
        if self.gateway.options.serves() || self.gateway.options.ephemeral {
            return;
        }
        let mut own = Vec::new();
        for desired in std::mem::take(due) {
            let name: Name = (desired.served.kind.as_ref().into(), desired.name.clone());
            let since = self.policies.ceded.get(&name);
            if since.is_some_and(|since| since.elapsed() < CEDED) {
                continue;
            }
            let found = self.cluster.find(&desired.served, &desired.name).await;
            let live = found.ok().flatten();
            if live.is_some_and(|live| remove::is_of_gateway(&live)) {
                self.policies.ceded.insert(name, Instant::now());
            } else {
                self.policies.ceded.remove(&name);
                own.push(desired);
            }
        }
        *due = own;
    }

    /// True if another installation keeps the policy, or if it cannot be read. Installations without webhooks may have one name.
    pub(crate) async fn is_foreign(&mut self, served: &Served, name: &str) -> bool {
        let place: Name = (served.kind.as_ref().into(), name.to_owned());
        let live = self.live(served, name);
        let version = live.map(|live| live.id.resource_version.clone());
        let known = self.policies.foreign.get(&place);
        if known.is_some() && known == version.as_ref() {
            return true;
        }
        let options = &self.gateway.options;
        let is_foreign = match self.cluster.find(served, name).await {
            Ok(live) => live.is_some_and(|live| remove::is_foreign(served, &live, options)),
            Err(error) => {
                tracing::debug!(%error, name, "cannot read a policy");
                return true;
            }
        };
        if let Some(version) = version.filter(|_| is_foreign) {
            self.policies.foreign.insert(place, version);
        }
        is_foreign
    }
}

/// True if a Katalog has rules that change objects and that policies express.
fn completes(catalogue: &Catalogue) -> bool {
    let options = PolicyOptions::default();
    let mut plans = catalogue.katalogs.iter().map(|(_, plan)| plan);
    plans.any(|plan| !admission::mutating_policies(plan, &options, "v1").is_empty())
}

/// Returns the version of [`desired::optional_kinds`], once the API server answers. An API server that has them later is noticed
/// when the process starts next.
pub(crate) async fn optional_version(cluster: &Cluster) -> Option<&'static str> {
    answered(|| desired::optional_version(cluster)).await
}

/// Returns whether the API server has policies, once it answers.
pub(crate) async fn has_policies(cluster: &Cluster) -> bool {
    answered(|| desired::has_policies(cluster)).await
}

/// Asks until there is an answer.
async fn answered<T, F>(ask: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, ClusterError>>,
{
    let mut failures = 0;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                tracing::debug!(%error, "cannot look up the kinds of policies");
                tokio::time::sleep(RETRY.after(failures)).await;
                failures += 1;
            }
        }
    }
}
