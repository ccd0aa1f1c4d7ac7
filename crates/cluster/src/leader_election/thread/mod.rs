//! The thread of leader election.

use std::{io, time::Duration};

use crate::reach::Reach;
use kube::Client;
use orkestra_ground::{
    Clock, Entropy, chain,
    tasks::{self, Ends, Task, Vitals},
};
use prometheus::IntGauge;
use tokio::{sync::oneshot, time::sleep};

use super::{CandidateConfig, elector::Candidate};

/// The delay before a failed attempt to build the client for the Lease is repeated.
const BUILD_AGAIN: Duration = Duration::from_secs(2);
/// A candidate in leader election, on its own thread and runtime: the lease is renewed even if the workers of the process are
/// busy. If it is dropped without [`Elector::end`], it stops leading, and its lease expires.
#[derive(Debug)]
pub struct Elector {
    ended: oneshot::Receiver<()>,
    end: oneshot::Sender<bool>,
}

impl Elector {
    /// Starts the elector. `connect` builds the client for the Lease on the elector's runtime, so that its connections are
    /// separate; the client has no gate. `reach` receives the report that the Lease was found in an older state, `vitals` the
    /// heartbeat of the elector's runtime.
    ///
    /// # Errors
    /// The operating system cannot create a thread.
    pub fn start<C, E>(
        connect: impl Fn() -> C + Send + 'static,
        candidacy: CandidateConfig,
        (clock, entropy): (Clock, Entropy),
        (reach, vitals): (Reach, Vitals),
        gauge: IntGauge,
    ) -> io::Result<Self>
    where
        C: Future<Output = Result<Client, E>>,
        E: std::error::Error + 'static,
    {
        let (end, mut ending) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        tasks::named(Task::ElectorThread, "").start_thread(move || {
            runtime.block_on(async move {
                vitals.follow("leader election");
                let client = tokio::select! {
                    client = connected(connect) => client,
                    _ = &mut ending => return,
                };
                let sources = (clock, entropy);
                let candidate = Candidate::new(client, candidacy, sources, reach, gauge);
                let elector = tasks::named(Task::Elector, "");
                // Its state outlives a failure: it continues as after a short suspension.
                elector
                    .kept(
                        Ends::freely(),
                        (candidate, ending),
                        |(candidate, ending)| Box::pin(candidate.run(ending)),
                    )
                    .await;
            });
            // An error means that there is no receiver.
            let _ = done.send(());
        })?;
        Ok(Self { ended, end })
    }

    /// Stops leading: the gate closes at once. With `release` the lease is released, so that another process takes over at once;
    /// without it the lease expires, which is required if a write may still be in flight.
    pub async fn end(self, release: bool) {
        // Errors mean that the thread is gone, which ends the process.
        let _ = self.end.send(release);
        let _ = self.ended.await;
    }
}

/// Returns the client as soon as it can be built.
async fn connected<C, E>(connect: impl Fn() -> C) -> Client
where
    C: Future<Output = Result<Client, E>>,
    E: std::error::Error + 'static,
{
    loop {
        match connect().await {
            Ok(client) => return client,
            Err(error) => {
                tracing::warn!(error = %chain(&error), "cannot build the client for the Lease");
                sleep(BUILD_AGAIN).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
