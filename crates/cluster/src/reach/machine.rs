//! The breaker's decisions, without a lock and without a clock.

use std::time::Duration;

use orkestra_ground::Backoff;
use tokio::time::Instant;

use super::{Away, View};

/// Requests in a row without an answer that are a doubt.
pub(super) const MISSES: u32 = 3;
/// How soon after a doubt was for nothing there is another: a webhook that fails all day is not worth a probe a failure.
pub(super) const CALM: Duration = Duration::from_secs(1);
/// The pause between probes.
pub(super) const PAUSE: Backoff =
    Backoff::doubling(Duration::from_millis(200), Duration::from_secs(2));
/// So many refused probes in a row say that it is up: it lets nobody look whether it is ready.
pub(super) const DENIALS: u32 = 4;

/// How a probe ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It is ready.
    Ready,
    /// It answers, and does not say whether it is ready.
    Denied,
    /// It does not answer, or is not ready; why.
    Failed(String),
}

/// What follows a probe.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is up, after that long away; none where it had only been doubted.
    Up(Option<Duration>),
    /// It is away, which was not known; why.
    Away(String),
    /// Another probe after that long.
    Again(Duration),
}

/// What is known of the API server.
#[derive(Debug, Default)]
pub(super) struct Machine {
    state: State,
    /// Requests in a row without an answer.
    misses: u32,
    /// When the last doubt was for nothing.
    cleared: Option<Instant>,
    returns: u64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Up,
    Doubted {
        denials: u32,
    },
    Away {
        away: Away,
        /// Failed ones in this outage.
        probes: u32,
        denials: u32,
    },
}

impl Machine {
    /// Takes in how a request ended; whether the API server is to be probed from now on.
    pub(super) fn heard(&mut self, missed: bool, now: Instant) -> bool {
        if !matches!(self.state, State::Up) {
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
            self.state = State::Doubted { denials: 0 };
        }
        doubted
    }

    /// Takes in how a probe ended.
    pub(super) fn probed(&mut self, probe: Probe, now: Instant) -> Step {
        match (&mut self.state, probe) {
            (State::Up, _) => Step::Up(None),
            (_, Probe::Ready) => self.rise(now),
            (State::Doubted { denials } | State::Away { denials, .. }, Probe::Denied) => {
                *denials += 1;
                if *denials >= DENIALS {
                    return self.rise(now);
                }
                Step::Again(pause(*denials))
            }
            (State::Doubted { .. }, Probe::Failed(why)) => {
                let away = Away {
                    since: now,
                    why: why.clone(),
                };
                self.state = State::Away {
                    away,
                    probes: 1,
                    denials: 0,
                };
                Step::Away(why)
            }
            (
                State::Away {
                    away,
                    probes,
                    denials,
                },
                Probe::Failed(why),
            ) => {
                away.why = why;
                *denials = 0;
                *probes = probes.saturating_add(1);
                Step::Again(pause(*probes))
            }
        }
    }

    fn rise(&mut self, now: Instant) -> Step {
        self.misses = 0;
        match std::mem::take(&mut self.state) {
            State::Away { away, .. } => {
                self.returns += 1;
                Step::Up(Some(now.saturating_duration_since(away.since)))
            }
            State::Doubted { .. } | State::Up => {
                self.cleared = Some(now);
                Step::Up(None)
            }
        }
    }

    /// What others see of it.
    pub(super) fn view(&self) -> View {
        View {
            is_up: matches!(self.state, State::Up),
            away: match &self.state {
                State::Away { away, .. } => Some(away.clone()),
                State::Up | State::Doubted { .. } => None,
            },
            returns: self.returns,
        }
    }
}

fn pause(probes: u32) -> Duration {
    PAUSE.after(probes.saturating_sub(1))
}
