//! The limit of requests in flight: it grows while the server keeps up, and is halved when the server reports that it does not.
//!
//! Additive increase, multiplicative decrease, from the responses. A 429 concerns all requests. A 503, a timeout or slowness may
//! concern one kind only, whose webhook or aggregated API is failing: these count once most accounts see them. After a decrease,
//! responses to requests that began before it cause no further decrease.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::Share;

/// The initial limit.
const FIRST: f64 = 32.0;
/// The lower bound: so few requests are no burden, and show when the server has recovered.
const LEAST: f64 = 4.0;
/// The upper bound. A genuine API server takes 400 reads and 200 writes at a time from all clients.
const MOST: f64 = 192.0;
/// The longest pause for one 429; after that the server is tried again.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// The pause if a 429 names none.
const USUAL_PAUSE: Duration = Duration::from_secs(1);
/// A pause is extended by up to this fraction, so that clients do not all return at once.
const PAUSE_SPREAD: f64 = 0.25;
/// Responses are slow if they take longer than this multiple of the usual time, and longer than [`SLOW`].
const SLOW_TIMES: f64 = 4.0;
/// Nothing faster than this counts as slow, in seconds.
const SLOW: f64 = 1.0;
/// The number of responses after which the usual time is known.
const KNOWN_AFTER: u32 = 20;
/// An account whose last response is older is ignored.
const FRESH: Duration = Duration::from_secs(30);

/// What a response shows about the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ResponseSignal {
    /// The server keeps up. `timed` is true if the duration is comparable with others; it is not for lists.
    Fine {
        /// Whether the duration is comparable.
        timed: bool,
    },
    /// Too many requests; retry after this time.
    Throttled(Option<Duration>),
    /// The server could not answer, or not in time.
    Failing,
}

/// The limit of requests in flight.
#[derive(Debug)]
pub(crate) struct Limit {
    permits: f64,
    cut_at: Option<Instant>,
    paused_until: Option<Instant>,
    pulses: BTreeMap<Share, RecentResponses>,
}

/// The recent responses to one account.
#[derive(Debug)]
struct RecentResponses {
    /// Seconds per response, over the last few hundred.
    usual: f64,
    /// The same over the last few; `None` since the last decrease.
    recent: Option<f64>,
    answers: u32,
    failing: bool,
    heard_at: Instant,
}

impl RecentResponses {
    fn is_ill(&self) -> bool {
        let threshold = (self.usual * SLOW_TIMES).max(SLOW);
        let is_slow =
            self.answers > KNOWN_AFTER && self.recent.is_some_and(|took| took > threshold);
        self.failing || is_slow
    }

    fn measure(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        if self.answers == 0 {
            self.usual = took;
        }
        self.answers = self.answers.saturating_add(1);
        // The first responses weigh more, so that an outlier at the start is soon forgotten.
        let weight = (1.0 / f64::from(self.answers)).max(1.0 / 256.0);
        self.usual += (took - self.usual) * weight;
        let recent = self.recent.unwrap_or(took);
        self.recent = Some(recent + (took - recent) / 8.0);
    }
}

impl Limit {
    pub(crate) fn new() -> Self {
        Self {
            permits: FIRST,
            cut_at: None,
            paused_until: None,
            pulses: BTreeMap::new(),
        }
    }

    /// The limit at `now`: 0 during a pause.
    pub(crate) fn at(&self, now: Instant) -> usize {
        if self.paused_until.is_some_and(|until| until > now) {
            0
        } else {
            self.current()
        }
    }

    /// The limit without pauses.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is between LEAST and MOST"
    )]
    pub(crate) fn current(&self) -> usize {
        self.permits as usize
    }

    /// The end of the last pause.
    pub(crate) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Records a response to `share` for a request that began at `started`. `used` is the number of requests in flight; `random`,
    /// from 0 to 1, extends pauses.
    pub(crate) fn heard(
        &mut self,
        share: &Share,
        heard: ResponseSignal,
        (started, now): (Instant, Instant),
        used: usize,
        random: f64,
    ) {
        if let ResponseSignal::Throttled(pause) = heard {
            let pause = pause.unwrap_or(USUAL_PAUSE).min(LONGEST_PAUSE);
            let until = now + pause.mul_f64(1.0 + random * PAUSE_SPREAD);
            self.paused_until = Some(self.paused_until.map_or(until, |other| other.max(until)));
            return self.cut(0.5, (started, now));
        }
        let pulse = self
            .pulses
            .entry(share.clone())
            .or_insert_with(|| RecentResponses {
                usual: 0.0,
                recent: None,
                answers: 0,
                failing: false,
                heard_at: now,
            });
        pulse.heard_at = now;
        pulse.failing = heard == ResponseSignal::Failing;
        if heard == (ResponseSignal::Fine { timed: true }) {
            pulse.measure(now.saturating_duration_since(started));
        }
        if pulse.is_ill() {
            let factor = if pulse.failing { 0.5 } else { 0.75 };
            if self.most_are_ill(now) {
                self.cut(factor, (started, now));
            }
        } else if 2 * used >= self.current() {
            // One more for each round of `permits` requests, while they are used.
            self.permits = (self.permits + 1.0 / self.permits).min(MOST);
        }
    }

    fn most_are_ill(&mut self, now: Instant) -> bool {
        (self.pulses).retain(|_, pulse| now.saturating_duration_since(pulse.heard_at) < FRESH);
        let ill = self.pulses.values().filter(|pulse| pulse.is_ill()).count();
        2 * ill > self.pulses.len()
    }

    fn cut(&mut self, factor: f64, (started, now): (Instant, Instant)) {
        if self.cut_at.is_some_and(|at| started < at) {
            return;
        }
        self.cut_at = Some(now);
        self.permits = (self.permits * factor).max(LEAST);
        for pulse in self.pulses.values_mut() {
            pulse.recent = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: ResponseSignal = ResponseSignal::Fine { timed: true };

    struct Case {
        limit: Limit,
        now: Instant,
    }

    impl Case {
        fn new() -> Self {
            Self {
                limit: Limit::new(),
                now: Instant::now(),
            }
        }

        /// Records `times` successive responses that took `took_ms` each, with all permits in use.
        fn hear(&mut self, name: &str, heard: ResponseSignal, took_ms: u64, times: usize) {
            for _ in 0..times {
                let started = self.now;
                self.now += Duration::from_millis(took_ms);
                let used = self.limit.current();
                let moments = (started, self.now);
                (self.limit).heard(&Share::new(name), heard, moments, used, 0.0);
            }
        }
    }

    #[test]
    fn it_grows_by_one_a_round_while_it_is_used_and_not_beyond_the_most() {
        let mut case = Case::new();
        case.hear("a", FINE, 5, 33);
        assert_eq!(case.limit.current(), 33);
        case.hear("a", FINE, 5, 100_000);
        assert_eq!(case.limit.current(), 192);
        // An unused limit does not grow.
        let mut case = Case::new();
        for _ in 0..1000 {
            let moments = (case.now, case.now + Duration::from_millis(5));
            (case.limit).heard(&Share::new("a"), FINE, moments, 1, 0.0);
        }
        assert_eq!(case.limit.current(), 32);
    }

    #[test]
    fn a_429_halves_it_once_for_all_that_were_in_flight_and_pauses_everybody() {
        let mut case = Case::new();
        let started = case.now;
        for millis in [5, 6, 7] {
            let moments = (started, started + Duration::from_millis(millis));
            let throttled = ResponseSignal::Throttled(Some(Duration::from_secs(3)));
            (case.limit).heard(&Share::new("a"), throttled, moments, 32, 1.0);
        }
        assert_eq!(case.limit.current(), 16);
        // The latest pause applies, extended by a quarter.
        let ends = started + Duration::from_millis(3_757);
        assert_eq!(case.limit.paused_until(), Some(ends));
        assert_eq!(case.limit.at(ends - Duration::from_millis(1)), 0);
        assert_eq!(case.limit.at(ends), 16);
        // A 429 to a request that began later halves it again; the lower bound stays.
        case.now = ends;
        case.hear("a", ResponseSignal::Throttled(None), 5, 10);
        assert_eq!(case.limit.current(), 4);
        let forever = ResponseSignal::Throttled(Some(Duration::from_hours(9)));
        case.hear("a", forever, 5, 1);
        let pause = case.limit.paused_until().unwrap() - case.now;
        assert_eq!(pause, LONGEST_PAUSE);
    }

    #[test]
    fn answers_far_slower_than_usual_shrink_it_and_it_recovers() {
        let mut case = Case::new();
        case.hear("a", FINE, 40, 200);
        let before = case.limit.current();
        case.hear("a", FINE, 900, 50);
        assert!(case.limit.current() >= before, "900 ms counts as slow");
        case.hear("a", FINE, 6_000, 30);
        let after = case.limit.current();
        assert!(after < before / 2, "{before} became {after}");
        case.hear("a", FINE, 40, 5_000);
        assert!(case.limit.current() > before);
    }

    #[test]
    fn one_kind_whose_webhook_is_slow_or_down_does_not_slow_the_others() {
        let mut case = Case::new();
        for name in ["a", "b", "c"] {
            case.hear(name, FINE, 20, 30);
        }
        let before = case.limit.current();
        for _ in 0..50 {
            case.hear("a", ResponseSignal::Failing, 9_000, 1);
            case.hear("b", FINE, 20, 1);
            case.hear("c", FINE, 20, 1);
        }
        assert!(case.limit.current() >= before);
        // If most accounts have failing responses, the server is the cause.
        case.hear("b", ResponseSignal::Failing, 9_000, 1);
        assert!(case.limit.current() < before);
    }

    #[test]
    fn an_operator_that_has_fallen_silent_is_no_witness() {
        let mut case = Case::new();
        for name in ["b", "c", "d"] {
            case.hear(name, FINE, 20, 1);
        }
        case.now += FRESH;
        let before = case.limit.current();
        case.hear("a", ResponseSignal::Failing, 100, 1);
        assert_eq!(case.limit.current(), before / 2);
    }
}
