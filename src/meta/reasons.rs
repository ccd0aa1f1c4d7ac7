//! Reasons that Katalogs give beside those of [`orkestra_core::api::conditions::reasons`].

pub(crate) use orkestra_core::api::conditions::reasons::{
    CONFLICT, FORBIDDEN, INVALID_REVISION, NO_API_TYPES, PROGRESSING, TERMINATING,
};

/// A Motif that the Katalog imports is not there; it runs as before until the Motif comes.
pub(crate) const MOTIF_NOT_FOUND: &str = "MotifNotFound";
/// Every operator runs.
pub(crate) const RUNNING: &str = "Running";
/// An operator waits for something outside, such as its CRD.
pub(crate) const WAITING: &str = "Waiting";
/// The operator that had the kind has not stopped.
pub(crate) const PREDECESSOR: &str = "Predecessor";
/// Finalizers or labels of ours could not be taken off; it is tried again.
pub(crate) const RELEASE_FAILED: &str = "ReleaseFailed";
/// The API server refused or did not answer when a revision was to be stored; it is tried again.
pub(crate) const NOT_STORED: &str = "RevisionNotStored";
/// Kinds that are no longer wanted are let go.
pub(crate) const RELEASING: &str = "Releasing";
/// Another entry reconciles the kind, in another version.
pub(crate) const YIELDS: &str = "Yields";
/// A kind that the Katalog declares children of is not served.
pub(crate) const KIND_NOT_SERVED: &str = "KindNotServed";
/// The CRD is not there, or not served.
pub(crate) const CRD_MISSING: &str = "CrdMissing";
