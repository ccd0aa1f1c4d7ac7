//! The thread that the election runs on.

use std::{io, time::Duration};

use kube::Client;
use orkestra_cluster::reach::Reach;
use orkestra_ground::{
    Clock, Entropy, chain,
    tasks::{self, Ends, Task},
};
use prometheus::IntGauge;
use tokio::{sync::oneshot, time::sleep};

use super::{Candidacy, elector::Candidate};

/// How soon a client for the Lease is built again that could not be built.
const BUILD_AGAIN: Duration = Duration::from_secs(2);
/// A candidate in the election, on a thread and a runtime of its own: whatever keeps the workers of the process busy, the lease
/// is renewed. Dropped without [`Elector::end`] it leads no more, and its lease runs out.
#[derive(Debug)]
pub struct Elector {
    ended: oneshot::Receiver<()>,
    end: oneshot::Sender<bool>,
}

impl Elector {
    /// Begins. `connect` builds the client that makes the requests for the Lease, on the elector's runtime, so that the
    /// connections are its own; the client has no gate. `reach` takes in that the Lease was found in an older state.
    ///
    /// # Errors
    /// The operating system has no thread for it.
    pub fn start<C, E>(
        connect: impl Fn() -> C + Send + 'static,
        candidacy: Candidacy,
        (clock, entropy): (Clock, Entropy),
        reach: Reach,
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
                let client = tokio::select! {
                    client = connected(connect) => client,
                    _ = &mut ending => return,
                };
                let sources = (clock, entropy);
                let candidate = Candidate::new(client, candidacy, sources, reach, gauge);
                let elector = tasks::named(Task::Elector, "");
                // What it knows outlives a failure: it goes on as if it had stood still for a moment.
                elector
                    .kept(
                        Ends::freely(),
                        (candidate, ending),
                        |(candidate, ending)| Box::pin(candidate.run(ending)),
                    )
                    .await;
            });
            // An error says that nobody waits.
            let _ = done.send(());
        })?;
        Ok(Self { ended, end })
    }

    /// Leads no more: the gate closes at once. With `release` the lease is given back, so that another takes over now; without
    /// it runs out by itself, as it has to where a write may still be on its way.
    pub async fn end(self, release: bool) {
        // Errors say that the thread is gone, which ends the process.
        let _ = self.end.send(release);
        let _ = self.ended.await;
    }
}

/// The client, as soon as it can be built.
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
