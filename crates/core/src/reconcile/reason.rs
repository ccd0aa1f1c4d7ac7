//! Reasons of custom resources: see [`crate::reasons`].

pub use crate::reasons::Reason;
