//! Faults and their frequency. The fault of a request follows only from the seed and the number of the request.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// The longest delay of an answer.
const LONGEST_DELAY: Duration = Duration::from_millis(1500);
/// The longest life of a watch that is cut.
const LONGEST_WATCH: Duration = Duration::from_secs(5);
/// The largest number of bytes of an answer that are forwarded before it breaks off.
const LONGEST_STUMP: usize = 600;

/// The frequency of each fault, in requests per thousand. A request meets at most one fault. So the sum of the faults for single
/// requests is at most 1000, and so is the sum of those for watches. `too_many`, `internal`, `unreached` and `hung` apply to
/// both.
///
/// By default there are no faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Refused with 429 and `Retry-After: 1`, and not forwarded.
    pub too_many: u32,
    /// Refused with 500, and not forwarded.
    pub internal: u32,
    /// The connection closes before anything is forwarded.
    pub unreached: u32,
    /// Never answered. Half of the single requests are forwarded first.
    pub hung: u32,
    /// Single requests that are forwarded, and whose connection closes in place of an answer: the request was carried out, but
    /// the client cannot know that.
    pub lost: u32,
    /// Single requests whose answer breaks off in the middle.
    pub torn: u32,
    /// Single requests that are forwarded late, by at most 1.5 s.
    pub late: u32,
    /// Watches that receive an error: their resourceVersion is too old.
    pub expired: u32,
    /// Watches that are cut within 5 s.
    pub short: u32,
}

/// The outcome of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Passed,
    /// Answered with this status and not forwarded.
    Refused(u16),
    Unreached,
    Hung {
        forwarded: bool,
    },
    Lost,
    /// Cut after this number of bytes of the answer.
    Torn(usize),
    Late(Duration),
    /// A watch that ends after this time.
    Short(Duration),
}

impl Fate {
    /// Returns the name under which this outcome is counted.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused(429) => "too_many",
            Self::Refused(410) => "expired",
            Self::Refused(_) => "internal",
            Self::Unreached => "unreached",
            Self::Hung { .. } => "hung",
            Self::Lost => "lost",
            Self::Torn(_) => "torn",
            Self::Late(_) => "late",
            Self::Short(_) => "short",
        }
    }
}

impl Faults {
    /// Returns the outcome of the request with this number.
    pub(crate) fn fate(&self, seed: u64, number: u64, is_watch: bool) -> Fate {
        let mut dice = StdRng::seed_from_u64(seed.rotate_left(32) ^ number);
        let mut place = dice.random_range(0..1000_u32);
        // The outcome is the first share that contains `place`.
        let mut falls = |share: u32| {
            let falls = place < share;
            place = place.saturating_sub(share);
            falls
        };
        if falls(self.too_many) {
            return Fate::Refused(429);
        }
        if falls(self.internal) {
            return Fate::Refused(500);
        }
        if falls(self.unreached) {
            return Fate::Unreached;
        }
        if falls(self.hung) {
            let forwarded = !is_watch && dice.random();
            return Fate::Hung { forwarded };
        }
        if is_watch {
            if falls(self.expired) {
                return Fate::Refused(410);
            }
            if falls(self.short) {
                return Fate::Short(dice.random_range(Duration::ZERO..LONGEST_WATCH));
            }
            return Fate::Passed;
        }
        if falls(self.lost) {
            return Fate::Lost;
        }
        if falls(self.torn) {
            return Fate::Torn(dice.random_range(0..LONGEST_STUMP));
        }
        if falls(self.late) {
            return Fate::Late(dice.random_range(Duration::ZERO..LONGEST_DELAY));
        }
        Fate::Passed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SOME: Faults = Faults {
        too_many: 100,
        internal: 90,
        unreached: 80,
        hung: 70,
        lost: 60,
        torn: 50,
        late: 40,
        expired: 30,
        short: 20,
    };

    fn counted(seed: u64, is_watch: bool) -> BTreeMap<&'static str, u32> {
        let mut counts = BTreeMap::new();
        for number in 0..20_000 {
            *counts
                .entry(SOME.fate(seed, number, is_watch).name())
                .or_default() += 1;
        }
        counts
    }

    #[test]
    fn each_fault_comes_as_often_as_asked_and_the_same_seed_gives_the_same() {
        let single = counted(7, false);
        let shares = [
            ("too_many", 100),
            ("internal", 90),
            ("unreached", 80),
            ("hung", 70),
            ("lost", 60),
            ("torn", 50),
            ("late", 40),
            ("passed", 510),
        ];
        for (name, share) in shares {
            let found = single.get(name).copied().unwrap_or_default();
            assert!(
                found.abs_diff(share * 20) < 300,
                "{name}: {found} of 20000, {share} of 1000 were expected"
            );
        }
        assert_eq!(single.len(), shares.len());
        let watch = counted(7, true);
        for name in ["lost", "torn", "late"] {
            assert_eq!(watch.get(name), None, "{name} of a watch");
        }
        assert!(watch["expired"].abs_diff(600) < 150 && watch["short"].abs_diff(400) < 150);
        assert_eq!(single, counted(7, false));
        assert_ne!(single, counted(8, false));
        let none = (0..1000).map(|number| Faults::default().fate(7, number, false));
        assert!(none.into_iter().all(|fate| fate == Fate::Passed));
    }
}
