//! Reproducible random bytes.

use std::cell::Cell;

use sha2::{Digest, Sha256};

/// A source of random bytes. It is as unpredictable as its seed; equal seeds give equal bytes.
///
/// The caller provides the seed (from the operating system in a cluster, a constant in tests), so nothing here is
/// nondeterministic.
#[derive(Clone, Debug)]
pub struct Entropy {
    seed: [u8; 32],
    blocks: Cell<u64>,
}

impl Entropy {
    /// Creates a source from a seed.
    pub fn seeded(seed: [u8; 32]) -> Entropy {
        Entropy {
            seed,
            blocks: Cell::new(0),
        }
    }

    /// Derives a source for one purpose. Its bytes do not depend on draws from other sources.
    #[must_use]
    pub fn fork(&self, purpose: &str) -> Entropy {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(purpose.as_bytes());
        Entropy::seeded(hash.finalize().into())
    }

    /// Draws bytes. They are never returned again.
    pub fn draw(&self, count: usize) -> Vec<u8> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let block = self.blocks.get();
            self.blocks.set(block + 1);
            let mut hash = Sha256::new();
            hash.update(self.seed);
            hash.update(block.to_be_bytes());
            let left = count - drawn.len();
            drawn.extend(hash.finalize().into_iter().take(left));
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_and_no_byte_twice() {
        let (one, other) = (Entropy::seeded([7; 32]), Entropy::seeded([7; 32]));
        let first = one.draw(40);
        assert_eq!(first.len(), 40);
        assert_eq!(first, other.draw(40));
        assert_ne!(first, one.draw(40));
        assert_eq!(one.fork("pond").draw(8), other.fork("pond").draw(8));
        assert_ne!(one.fork("pond").draw(8), one.fork("lake").draw(8));
    }
}
