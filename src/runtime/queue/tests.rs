//! The queue under paused time.
