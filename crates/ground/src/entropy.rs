//! The source of jitter and of the random values of passes: one source, passed as an argument, so that a test's seed decides
//! everything.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};

/// A shared random source. Clones draw from the same sequence.
#[derive(Clone)]
pub struct Entropy(Arc<Mutex<StdRng>>);

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

impl Entropy {
    /// Seeded by the operating system with enough bits that the seed cannot be guessed: passwords are generated from it.
    pub fn system() -> Self {
        Self(Arc::new(Mutex::new(StdRng::from_seed(rand::random()))))
    }

    /// The same seed gives the same sequence.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// Returns a number from 0 to 1, 1 excluded.
    pub fn fraction(&self) -> f64 {
        self.draw(RngExt::random::<f64>)
    }

    /// Returns 64 random bits.
    pub fn bits(&self) -> u64 {
        self.draw(Rng::next_u64)
    }

    /// Returns 256 random bits, to seed the source of one pass.
    pub fn seed(&self) -> [u8; 32] {
        self.draw(RngExt::random)
    }

    /// Returns `duration` less up to `spread` of it; `spread` is a fraction, 0.2 gives 80 to 100 percent.
    pub fn shorten(&self, duration: Duration, spread: f64) -> Duration {
        duration.mul_f64(1.0 - spread.clamp(0.0, 1.0) * self.fraction())
    }

    fn draw<T>(&self, f: impl FnOnce(&mut StdRng) -> T) -> T {
        f(&mut self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_delays() {
        let delays = |seed| {
            let entropy = Entropy::seeded(seed);
            [0; 5].map(|_| entropy.shorten(Duration::from_secs(10), 0.2))
        };
        assert_eq!(delays(7), delays(7));
        assert_ne!(delays(7), delays(8));
        assert!(
            delays(7)
                .iter()
                .all(|delay| (8.0..=10.0).contains(&delay.as_secs_f64()))
        );
    }
}
