//! Random bytes that can be replayed.

use std::cell::Cell;

use sha2::{Digest, Sha256};

/// A source of random bytes: as unpredictable as its seed, and the same for the same seed.
///
/// The seed comes from outside (the operating system in a cluster, a constant in tests), so that nothing here
/// depends on chance.
#[derive(Clone, Debug)]
pub struct Entropy {
    seed: [u8; 32],
    blocks: Cell<u64>,
}

impl Entropy {
    /// A source that starts at a seed.
    pub fn seeded(seed: [u8; 32]) -> Entropy {
        Entropy {
            seed,
            blocks: Cell::new(0),
        }
    }

    /// A source of its own for one purpose, which gives the same whatever was drawn elsewhere.
    #[must_use]
    pub(crate) fn fork(&self, purpose: &str) -> Entropy {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(purpose.as_bytes());
        Entropy::seeded(hash.finalize().into())
    }

    /// Draws bytes, which are not drawn again.
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
