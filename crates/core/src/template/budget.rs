//! What one evaluation may cost.

use super::error::{EvalErrorKind, Failure};

/// The longest text that one evaluation may give, or one note may make: 1 MiB, which is more than the API
/// server takes for an object.
pub(super) const MOST_OUTPUT: u64 = 1 << 20;

/// What an item of a list takes, with the allocation of a short text in it.
const ITEM_BYTES: usize = 48;

/// What is left to spend. Walker and notes take from it *before* they do or build something, so that neither
/// time nor memory can be exceeded, only the budget.
///
/// The default, 1,000,000 steps, 4 MiB and 200 levels, ends the worst template in less than 100 ms and
/// 64 MiB. One budget may be handed to several evaluations, which then share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps: one for each expression, statement and iteration, one for each 16 bytes of
    /// text that a note is given, and for each item that it goes over.
    pub steps: u64,
    /// Bytes built, intermediate results and output alike. Besides, no single text is longer than 1 MiB.
    pub bytes: u64,
    /// Levels of nesting, in expressions and in what is printed.
    pub depth: u32,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            steps: 1_000_000,
            bytes: 4 << 20,
            depth: 200,
        }
    }
}

impl Budget {
    /// Takes steps.
    pub fn step(&mut self, steps: u64) -> Result<(), Failure> {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.map(|_| ())
            .ok_or_else(|| exceeded("takes too many steps"))
    }

    /// Takes the bytes of something that is about to be built.
    pub fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        let left = self.bytes.checked_sub(bytes as u64);
        self.bytes = left.unwrap_or(0);
        left.map(|_| ())
            .ok_or_else(|| exceeded("builds too much data"))
    }

    /// Takes the bytes of one text that is about to be built, and refuses it beyond 1 MiB.
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), Failure> {
        if bytes as u64 > MOST_OUTPUT {
            return Err(exceeded("makes a text of more than 1 MiB"));
        }
        self.take(bytes)
    }

    /// Takes the bytes that are about to be appended to a text, and refuses to make it longer than 1 MiB.
    pub(super) fn longer(&mut self, length: usize, by: usize) -> Result<(), Failure> {
        if (length + by) as u64 > MOST_OUTPUT {
            return Err(exceeded("makes a text of more than 1 MiB"));
        }
        self.take(by)
    }

    /// Takes the steps and the bytes of a list's items, without what they hold.
    pub fn items(&mut self, count: usize) -> Result<(), Failure> {
        self.step(count as u64)?;
        self.take(count.saturating_mul(ITEM_BYTES))
    }

    /// Goes a level down; [`Budget::leave`] comes back.
    pub fn enter(&mut self) -> Result<(), Failure> {
        let left = self.depth.checked_sub(1);
        self.depth = left.unwrap_or(0);
        left.map(|_| ())
            .ok_or_else(|| exceeded("is nested too deeply"))
    }

    /// Comes back from a level.
    pub fn leave(&mut self) {
        self.depth += 1;
    }
}

fn exceeded(what: &str) -> Failure {
    Failure::new(EvalErrorKind::Budget, format!("the template {what}"))
}
