//! `deletionPolicy: delete`: the custom resources go before their Katalog does, while its operators run.

use orkestra_core::api::names;
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
        self.is_deleting() && (self.gone || self.cleared || !self.object.document.deletes)
    }

    /// Deletes the custom resources that the operators look after; when some are left, says when to look again. Where no
    /// revision can run, nobody takes them down: they are deleted, and let go.
    pub(super) async fn clear(&mut self) -> Result<Option<Instant>, CallError> {
        if self.running.is_none() && !self.looked {
            self.load_last_good().await?;
        }
        self.claim();
        let mut left = false;
        for kind in self.operated.values() {
            let known = Resource::operated(self.shared.context.wire.client(), kind);
            let listed = match known.list_metadata(None).await {
                Err(error) if error.is_not_found() => continue,
                listed => listed?,
            };
            for meta in listed {
                let label = meta
                    .labels
                    .as_ref()
                    .and_then(|all| all.get(names::LABEL_MANAGED));
                let finalizers = meta.finalizers.as_deref().unwrap_or_default();
                if label.is_none() && !finalizers.iter().any(|name| name == names::FINALIZER) {
                    continue;
                }
                left = true;
                if meta.deletion_timestamp.is_none() {
                    let name = meta.name.as_deref().unwrap_or_default();
                    known.delete_in(meta.namespace.as_deref(), name).await?;
                }
            }
        }
        self.cleared = !left || self.running.is_none();
        Ok((!self.cleared).then(|| Instant::now() + LOOK_AGAIN))
    }
}
