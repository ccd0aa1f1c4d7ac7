//! `deletionPolicy: delete`: the custom resources go before their Katalog does, while its operators run.

use std::collections::BTreeMap;

use orkestra_core::{
    api::{OperatedKind, names},
    plan::GroupKind,
};
use tokio::time::{Duration, Instant};

use super::{
    super::calls::{CallError, Resource},
    Katalog,
};

/// How soon it is looked again whether the last one is gone.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Katalog {
    /// Whether nothing of the Katalog is wanted any more: it is being deleted, and what goes with it is gone.
    pub(super) fn is_leaving(&self) -> bool {
        let deletes = self.object.document.deletes && !self.object.let_go;
        self.is_deleting() && (self.gone || self.cleared || !deletes)
    }

    /// Deletes the custom resources that the operators look after; when some are left, says when to look again. Where no
    /// revision can run, nobody takes them down: they are deleted, and let go.
    ///
    /// They are those of the kinds that this Katalog has operated and still has the claims of, whatever it declares.
    pub(super) async fn clear(&mut self) -> Result<Option<Instant>, CallError> {
        self.weigh_leftovers().await?;
        if !self.operated.is_empty() && self.running.is_none() && !self.looked {
            self.load_last_good().await?;
        }
        self.claim();
        let (wanted, supervisor) = (self.wanted_kinds(), &self.shared.supervisor);
        let held = supervisor.held_by(&self.reference);
        let (mut left, mut unclaimed) = (BTreeMap::new(), false);
        for (of, kind) in &self.operated {
            if held.contains(of) {
                let resources = self.delete_all(kind).await?;
                if resources > 0 {
                    left.insert(of.clone(), resources);
                }
            } else if wanted.contains(of) && !supervisor.is_foreign(of) {
                unclaimed = true;
            }
        }
        self.waits = (!left.is_empty() || unclaimed).then(|| waiting(&left));
        self.cleared = self.waits.is_none() || (self.running.is_none() && !unclaimed);
        Ok((!self.cleared).then(|| Instant::now() + LOOK_AGAIN))
    }

    /// Deletes the custom resources of a kind that are ours; says how many are left.
    async fn delete_all(&self, kind: &OperatedKind) -> Result<usize, CallError> {
        let known = Resource::operated(self.shared.context.wire.client(), kind);
        let listed = match known.list_metadata(None).await {
            Err(error) if error.is_not_found() => return Ok(0),
            listed => listed?,
        };
        let mut left = 0;
        for meta in listed {
            let label = meta
                .labels
                .as_ref()
                .and_then(|all| all.get(names::LABEL_MANAGED));
            let finalizers = meta.finalizers.as_deref().unwrap_or_default();
            if label.is_none() && !finalizers.iter().any(|name| name == names::FINALIZER) {
                continue;
            }
            left += 1;
            if meta.deletion_timestamp.is_none() {
                let name = meta.name.as_deref().unwrap_or_default();
                known.delete_in(meta.namespace.as_deref(), name).await?;
            }
        }
        Ok(left)
    }
}

/// `waiting for the deletion of 2 Pond.water.example`.
fn waiting(left: &BTreeMap<GroupKind, usize>) -> String {
    if left.is_empty() {
        return "waiting for the claims on its kinds".to_owned();
    }
    let kinds = left.iter().map(|(kind, count)| format!("{count} {kind}"));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    format!("deletionPolicy is delete: waiting for the deletion of {kinds}")
}
