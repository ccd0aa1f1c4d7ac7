//! The breaker's state machine, without locks and without a clock.

use std::time::Duration;

use orkestra_ground::Backoff;
use tokio::time::Instant;

use super::{Unreachable, View};

/// The number of consecutive unanswered requests that makes the API server doubted.
pub(crate) const MISSES: u32 = 3;
/// The shortest time between a false alarm and the next doubt: a webhook that fails all day must not cause a probe per failure.
pub(crate) const CALM: Duration = Duration::from_secs(1);
/// The pause between probes.
pub(crate) const PAUSE: Backoff =
    Backoff::doubling(Duration::from_millis(200), Duration::from_secs(2));
/// After this many refused probes in a row the API server counts as up: it answers, but does not permit a readiness check.
pub(crate) const DENIALS: u32 = 4;

/// The outcome of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The API server is ready.
    Ready,
    /// The API server answers, but not whether it is ready.
    Denied,
    /// The API server does not answer, or is not ready; with the reason.
    Failed(String),
}

/// The next step after a probe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProbeStep {
    /// The API server is up, after an outage of this length; `None` if it was only doubted.
    Up(Option<Duration>),
    /// The API server has become unreachable; with the reason.
    Away(String),
    /// Probe again after this delay.
    Again(Duration),
}

/// The known state of the API server.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    state: ReachState,
    /// Consecutive unanswered requests.
    misses: u32,
    /// The time of the last false alarm.
    cleared: Option<Instant>,
    returns: u64,
    rewinds: u64,
}

#[derive(Debug, Default)]
enum ReachState {
    #[default]
    Up,
    Doubted {
        denials: u32,
    },
    Away {
        away: Unreachable,
        /// Failed probes in this outage.
        probes: u32,
        denials: u32,
    },
}

impl Machine {
    /// Records the outcome of a request; true if probing has to start.
    pub(crate) fn heard(&mut self, missed: bool, now: Instant) -> bool {
        if !matches!(self.state, ReachState::Up) {
            return false;
        }
        self.misses = if missed {
            self.misses.saturating_add(1)
        } else {
            0
        };
        let calm = self
            .cleared
            .is_some_and(|cleared| now.saturating_duration_since(cleared) < CALM);
        let doubted = self.misses >= MISSES && !calm;
        if doubted {
            self.state = ReachState::Doubted { denials: 0 };
        }
        doubted
    }

    /// Records the outcome of a probe.
    pub(crate) fn probed(&mut self, probe: Probe, now: Instant) -> ProbeStep {
        match (&mut self.state, probe) {
            (ReachState::Up, _) => ProbeStep::Up(None),
            (_, Probe::Ready) => self.rise(now),
            (ReachState::Doubted { denials } | ReachState::Away { denials, .. }, Probe::Denied) => {
                *denials += 1;
                if *denials >= DENIALS {
                    return self.rise(now);
                }
                ProbeStep::Again(pause(*denials))
            }
            (ReachState::Doubted { .. }, Probe::Failed(why)) => {
                let away = Unreachable {
                    since: now,
                    why: why.clone(),
                };
                self.state = ReachState::Away {
                    away,
                    probes: 1,
                    denials: 0,
                };
                ProbeStep::Away(why)
            }
            (
                ReachState::Away {
                    away,
                    probes,
                    denials,
                },
                Probe::Failed(why),
            ) => {
                away.why = why;
                *denials = 0;
                *probes = probes.saturating_add(1);
                ProbeStep::Again(pause(*probes))
            }
        }
    }

    fn rise(&mut self, now: Instant) -> ProbeStep {
        self.misses = 0;
        match std::mem::take(&mut self.state) {
            ReachState::Away { away, .. } => {
                self.returns += 1;
                ProbeStep::Up(Some(now.saturating_duration_since(away.since)))
            }
            ReachState::Doubted { .. } | ReachState::Up => {
                self.cleared = Some(now);
                ProbeStep::Up(None)
            }
        }
    }

    /// Records that the API server's store was restored to an older state.
    pub(crate) fn rewind(&mut self) {
        self.rewinds += 1;
    }

    /// Returns the state as others see it.
    pub(crate) fn view(&self) -> View {
        View {
            is_up: matches!(self.state, ReachState::Up),
            away: match &self.state {
                ReachState::Away { away, .. } => Some(away.clone()),
                ReachState::Up | ReachState::Doubted { .. } => None,
            },
            returns: self.returns,
            rewinds: self.rewinds,
        }
    }
}

fn pause(probes: u32) -> Duration {
    PAUSE.after(probes.saturating_sub(1))
}
