//! Comparison of the API server's state with the known one, to detect that it was restored to an older state.

use orkestra_object::decode::Version;

use super::{
    super::{Record, WatchProblem, informer::count},
    Reflector,
};
use crate::requests::{ClusterError, Scope};

/// Consecutive failures after which passes continue without this kind's state.
const PATIENCE: u32 = 3;

impl<R: Record> Reflector<'_, R> {
    /// Sets whether the API server may be in an older state.
    pub(crate) fn set_doubt(&mut self, doubt: bool) {
        self.doubt = doubt;
        self.shared.set_open(doubt);
    }

    /// Handles a failed request. If only this kind is refused, or was not answered for a while, passes do not wait for its state.
    pub(crate) fn close(&self, error: &ClusterError) {
        let is_alone = self.failures >= PATIENCE && self.cluster.reach().outages().is_some();
        if is_alone || !matches!(error, ClusterError::Unavailable(_) | ClusterError::Gone(_)) {
            self.shared.set_open(false);
        }
    }

    /// Reports a failed request.
    pub(crate) fn fail(&self, error: &ClusterError) {
        let outages = self.cluster.reach().outages();
        self.shared.failing(WatchProblem::of(error), outages);
    }

    /// Compares the API server's state with the known one: if it is behind, everything is listed again.
    pub(crate) async fn compare(&mut self) -> Result<(), ClusterError> {
        let watched = &self.shared.watched;
        let everything = Scope {
            // With a selector, a server without a cache might read all objects to find one.
            selector: None,
            ..watched.scope.clone()
        };
        let state = self.cluster.state_of(&watched.served, &everything).await?;
        self.set_doubt(false);
        if self.from.as_ref().is_some_and(|from| state.is_behind(from)) {
            self.rewind(&state);
        }
        Ok(())
    }

    /// Handles an API server that is in an older state than before.
    fn rewind(&mut self, state: &Version) {
        count(&self.shared.counts.rewinds);
        self.set_doubt(true);
        let known = self.from.take().map(tracing::field::display);
        tracing::warn!(kind = %self.shared.watched.served.plural, known, %state, "the state of the API server is older than before (restored from a backup?); listing all objects again");
    }

    /// True if a state is not behind the known one.
    pub(crate) fn accepts(&mut self, state: &Version) -> bool {
        let is_behind = self.from.as_ref().is_some_and(|from| state.is_behind(from));
        if is_behind {
            self.rewind(state);
        }
        !is_behind
    }
}
