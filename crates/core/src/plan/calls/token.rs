//! Parts of tokens, and how a call is retried.

use std::{fmt, time::Duration};

/// A part of a token.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Piece {
    /// Text as it is.
    Text(Box<str>),
    /// The value of an environment variable of the runtime, by its name.
    Variable(Box<str>),
}

/// Shows no text: it may be secret.
impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("…"),
            Self::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// How a call that failed is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Retry {
    /// Tries in all, at least one.
    pub attempts: u32,
    /// The first wait.
    pub initial: Duration,
    /// The longest wait.
    pub most: Duration,
    /// How many thousandths of a wait the next one is.
    pub thousandths: u32,
}

impl Retry {
    /// One try.
    pub const NONE: Retry = Retry {
        attempts: 1,
        initial: Duration::ZERO,
        most: Duration::ZERO,
        thousandths: 1000,
    };

    /// The wait after the try of that number, from 1.
    pub fn wait(&self, attempt: u32) -> Duration {
        let mut wait = self.initial;
        for _ in 1..attempt {
            if wait >= self.most {
                break;
            }
            wait = wait.saturating_mul(self.thousandths) / 1000;
        }
        wait.min(self.most)
    }
}
