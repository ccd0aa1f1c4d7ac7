//! The token of a call, in parts, and the retry policy of a call.

use std::{fmt, time::Duration};

/// A part of a token.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Piece {
    /// Literal text.
    Text(Box<str>),
    /// The value of an environment variable of the runtime, by name.
    Variable(Box<str>),
}

/// Hides the text: it may be secret.
impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("…"),
            Self::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// The retry policy of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Retry {
    /// Number of attempts in total, at least 1.
    pub attempts: u32,
    /// The first delay.
    pub initial: Duration,
    /// The longest delay.
    pub most: Duration,
    /// The factor from one delay to the next, in thousandths.
    pub thousandths: u32,
}

impl Retry {
    /// A single attempt.
    pub const NONE: Retry = Retry {
        attempts: 1,
        initial: Duration::ZERO,
        most: Duration::ZERO,
        thousandths: 1000,
    };

    /// Returns the delay after an attempt; `attempt` counts from 1.
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
