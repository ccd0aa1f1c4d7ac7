//! Limits of fetches.

use std::time::Duration;

/// Limits of a fetch.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time for a connection and the head of a response. A body has the same time in addition to the time for its size.
    pub patience: Duration,
    /// The minimum rate of a body, in bytes per second.
    pub slowest: u64,
    /// The most bytes of a document.
    pub document: usize,
    /// The most bytes of all documents of an artifact.
    pub documents: usize,
    /// The most files of an artifact.
    pub files: usize,
    /// The most bytes of the index of a chart repository.
    pub index: usize,
    /// The most bytes of a packed chart.
    pub chart: usize,
    /// The most bytes of a pack that a Git server sends.
    pub pack: usize,
    /// The most bytes of the objects in a pack, unpacked, with the buffers for their deltas; of an object of a local repository; and of
    /// the folders and paths that are read of a commit.
    pub objects: usize,
    /// The most objects in a pack.
    pub object_count: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            slowest: 64 * 1024,
            document: 4 << 20,
            documents: 32 << 20,
            files: 1_000,
            index: 32 << 20,
            chart: 16 << 20,
            pack: 32 << 20,
            objects: 96 << 20,
            object_count: 100_000,
        }
    }
}

impl Limits {
    /// The limits on durations.
    pub(crate) fn durations(&self) -> orkestra_egress::Limits {
        orkestra_egress::Limits {
            patience: self.patience,
            slowest: self.slowest,
        }
    }
}
