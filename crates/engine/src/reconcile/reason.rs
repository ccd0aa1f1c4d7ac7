//! Reasons of custom resources: see [`orkestra_language::reasons`].

pub use orkestra_language::reasons::Reason;
