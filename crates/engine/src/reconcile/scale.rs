//! Decides the replica count of a workload that scales by conditions.
//!
//! ```text
//!  live replicas, last change ─┐
//!  declared values, gates ─────┴─ decide ──► Scaled { replicas, changed_at, again_at }
//! ```
//!
//! The count and the time of its last change are applied in one write, so that neither outlives the other.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::record::ChildRecord;
use orkestra_object::value::Path;
use orkestra_plan::REPLICAS;

/// The state of a workload and its declared scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadScale {
    /// The live replica count; none if the workload does not exist.
    pub live: Option<i64>,
    /// When we last changed it.
    pub changed_at: Option<Timestamp>,
    /// The declared initial count.
    pub start: i64,
    /// The minimum.
    pub min: i64,
    /// The maximum; not below the minimum.
    pub max: i64,
    /// The minimum time between two changes.
    pub cooldown: Duration,
    /// The increment, if the conditions for it hold.
    pub up: Option<i64>,
    /// The decrement, if the conditions for it hold.
    pub down: Option<i64>,
}

/// The wanted scale of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// The replica count.
    pub replicas: i64,
    /// When it was last changed.
    pub changed_at: Option<Timestamp>,
    /// When to decide again even if nothing changes.
    pub again_at: Option<Timestamp>,
}

/// Returns the replica count of a live workload.
pub(crate) fn replicas(record: &ChildRecord) -> Option<i64> {
    record.view.at(&Path::of_fields(REPLICAS))?.as_i64()
}

/// Decides at `now`. A count out of bounds is corrected immediately; within the bounds a step is taken if the last one is
/// longer ago than the cooldown. Scaling up takes precedence over scaling down.
pub fn decide(scale: &WorkloadScale, now: Timestamp) -> Scaled {
    let within = |replicas: i64| replicas.clamp(scale.min, scale.max.max(scale.min));
    let Some(live) = scale.live else {
        // A new workload: earlier changes no longer count.
        return Scaled {
            replicas: within(scale.start),
            changed_at: None,
            again_at: None,
        };
    };
    let bounded = within(live);
    let step = |replicas: i64| match (scale.up, scale.down) {
        (Some(more), _) => within(replicas.saturating_add(more)),
        (None, Some(fewer)) => within(replicas.saturating_sub(fewer)),
        (None, None) => replicas,
    };
    let wants_more = |replicas: i64| step(replicas) != replicas;
    let free_at = scale.changed_at.map(|at| plus(at, scale.cooldown));
    let (replicas, changed_at) = if bounded != live {
        (bounded, Some(now))
    } else if wants_more(live) && free_at.is_none_or(|at| at <= now) {
        (step(live), Some(now))
    } else {
        (live, scale.changed_at)
    };
    let free_at = changed_at.map(|at| plus(at, scale.cooldown));
    Scaled {
        replicas,
        changed_at,
        again_at: free_at.filter(|at| *at > now && wants_more(replicas)),
    }
}

fn plus(at: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_900_000_000 + seconds).unwrap()
    }

    fn scale(live: i64) -> WorkloadScale {
        WorkloadScale {
            live: Some(live),
            changed_at: None,
            start: 2,
            min: 1,
            max: 6,
            cooldown: Duration::from_mins(1),
            up: None,
            down: None,
        }
    }

    #[test]
    fn it_starts_with_what_is_declared_within_the_bounds() {
        for (start, replicas) in [(2, 2), (0, 1), (9, 6)] {
            let new = WorkloadScale {
                live: None,
                start,
                up: Some(3),
                ..scale(0)
            };
            let expected = Scaled {
                replicas,
                changed_at: None,
                again_at: None,
            };
            assert_eq!(decide(&new, at(0)), expected);
        }
    }

    #[test]
    fn while_nothing_holds_the_number_stays_whoever_set_it() {
        let scaled = decide(&scale(4), at(0));
        assert_eq!((scaled.replicas, scaled.changed_at), (4, None));
    }

    #[test]
    fn a_number_out_of_bounds_is_brought_back_at_once() {
        let young = WorkloadScale {
            changed_at: Some(at(-1)),
            ..scale(9)
        };
        let scaled = decide(&young, at(0));
        assert_eq!((scaled.replicas, scaled.changed_at), (6, Some(at(0))));
    }

    #[test]
    fn one_step_is_taken_and_the_next_after_the_cooldown() {
        let mut now = WorkloadScale {
            up: Some(2),
            ..scale(1)
        };
        let mut steps = Vec::new();
        for second in [0, 1, 59, 60, 61, 120, 121, 500] {
            let scaled = decide(&now, at(second));
            steps.push((second, scaled.replicas, scaled.again_at));
            (now.live, now.changed_at) = (Some(scaled.replicas), scaled.changed_at);
        }
        let expected = [
            (0, 3, Some(at(60))),
            (1, 3, Some(at(60))),
            (59, 3, Some(at(60))),
            (60, 5, Some(at(120))),
            (61, 5, Some(at(120))),
            (120, 6, None),
            (121, 6, None),
            (500, 6, None),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn more_wins_over_fewer_and_fewer_ends_at_the_fewest() {
        let both = WorkloadScale {
            up: Some(1),
            down: Some(1),
            ..scale(3)
        };
        assert_eq!(decide(&both, at(0)).replicas, 4);
        let fewer = WorkloadScale {
            down: Some(5),
            ..scale(3)
        };
        assert_eq!(decide(&fewer, at(0)).replicas, 1);
        let least = WorkloadScale {
            down: Some(5),
            ..scale(1)
        };
        assert_eq!(decide(&least, at(0)).changed_at, None);
    }
}
