//! Time of day.

use std::{fmt, sync::Arc, time::Duration};

/// A source of the time of day, for conditions, Events and Leases. Durations are measured with tokio's clock instead.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Arc::new(jiff::Timestamp::now))
    }

    /// A clock that returns what `now` returns.
    pub fn new(now: impl Fn() -> jiff::Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the time until a moment; zero if it has passed.
    pub fn until(&self, moment: jiff::Timestamp) -> Duration {
        moment
            .duration_since(self.now())
            .try_into()
            .unwrap_or_default()
    }

    /// Returns the current time.
    pub fn now(&self) -> jiff::Timestamp {
        (self.0)()
    }
}
