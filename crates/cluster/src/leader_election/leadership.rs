//! The leader, published to all readers.

use std::{fmt, sync::Arc};

use crate::gate::Gate;
use tokio::sync::watch;

/// The standing of this process in leader election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderStatus {
    /// Whether this process leads.
    pub leads: bool,
    /// The leader's identity from the Lease; `None` if there is none, or before it is known.
    pub leader: Option<Arc<str>>,
    /// Whether the Lease was seen.
    pub heard: bool,
    /// Why this process cannot take part, with the fix.
    pub problem: Option<Arc<str>>,
}

/// Whether this process leads. Clones share the state.
#[derive(Clone)]
pub struct Leadership(Arc<Inner>);

struct Inner {
    identity: Arc<str>,
    standing: watch::Sender<LeaderStatus>,
    /// `None` without leader election.
    gate: Option<Gate>,
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = self.0.standing.borrow();
        f.debug_tuple("Leadership").field(&*standing).finish()
    }
}

impl Leadership {
    /// The leadership of a process without competitors: it leads from the start and permanently.
    pub fn alone(identity: Arc<str>) -> Self {
        let standing = LeaderStatus {
            leads: true,
            leader: Some(Arc::clone(&identity)),
            heard: true,
            problem: None,
        };
        Self(Arc::new(Inner {
            identity,
            standing: watch::Sender::new(standing),
            gate: None,
        }))
    }

    /// The leadership of a candidate whose writes pass `gate`: it follows until it is elected.
    pub fn candidate(identity: Arc<str>, gate: Gate) -> Self {
        Self(Arc::new(Inner {
            identity,
            standing: watch::Sender::new(LeaderStatus::default()),
            gate: Some(gate),
        }))
    }

    /// Publishes the standing; true if the process has started or stopped to lead.
    pub fn publish(&self, standing: LeaderStatus) -> bool {
        let mut turned = false;
        self.0.standing.send_if_modified(|before| {
            turned = before.leads != standing.leads;
            let differs = *before != standing;
            *before = standing;
            differs
        });
        turned
    }

    /// The identity of this process in leader election: the name of the Pod or the machine, and a part that is unique for each
    /// run.
    pub fn identity(&self) -> &Arc<str> {
        &self.0.identity
    }

    /// Whether this process leads now, according to the clock: correct even before a process that was suspended has noticed.
    pub fn leads(&self) -> bool {
        self.0.standing.borrow().leads && self.0.gate.as_ref().is_none_or(Gate::is_open)
    }

    /// The current standing.
    pub fn standing(&self) -> LeaderStatus {
        self.0.standing.borrow().clone()
    }

    /// Subscribes to the standing.
    pub fn changed(&self) -> watch::Receiver<LeaderStatus> {
        self.0.standing.subscribe()
    }

    /// Runs `work` to its end. If the lease is lost before that, drops it, as the end of the process would, and returns `None`.
    pub async fn while_leading<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        if self.0.gate.is_none() {
            return Some(work.await);
        }
        let mut standing = self.changed();
        tokio::select! {
            biased;
            // The sender lives as long as `self`.
            _ = standing.wait_for(|standing| !standing.leads) => None,
            done = work => Some(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;
    use orkestra_ground::BootClock;

    #[tokio::test(start_paused = true)]
    async fn work_ends_with_the_lease_and_a_gate_that_ran_out_counts_before_anybody_says_so() {
        let gate = Gate::new(BootClock::of_timers());
        let leadership = Leadership::candidate("a".into(), gate.clone());
        let leads = LeaderStatus {
            leads: true,
            ..LeaderStatus::default()
        };
        assert!(!leadership.leads());
        assert!(leadership.publish(leads.clone()));
        assert!(!leadership.publish(leads));
        gate.set(Some(gate.clock().now() + Duration::from_secs(6)));
        assert!(leadership.leads());
        let done = leadership.while_leading(sleep(Duration::from_secs(5)));
        assert_eq!(done.await, Some(()));
        let (lost, _) = tokio::join!(
            leadership.while_leading(sleep(Duration::from_secs(50))),
            async {
                sleep(Duration::from_secs(2)).await;
                assert!(!leadership.leads(), "leads after the end of the Lease");
                leadership.publish(LeaderStatus::default())
            }
        );
        assert_eq!(lost, None);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_alone_leads() {
        let alone = Leadership::alone("a".into());
        assert!(alone.leads());
        assert_eq!(alone.standing().leader.as_deref(), Some("a"));
        assert_eq!(alone.while_leading(async { 3 }).await, Some(3));
    }
}
