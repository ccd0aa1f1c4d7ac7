//! The release that a chart is rendered for.

use jiff::Timestamp;

/// `.Release`, and where time and randomness come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// Whether this is an upgrade, and no installation.
    pub is_upgrade: bool,
    /// The revision, from 1.
    pub revision: i64,
    /// The moment that `now` gives.
    pub now: Timestamp,
    /// What `randAlphaNum`, `uuidv4` and `genCA` draw from: the same seed gives the same documents.
    pub seed: [u8; 32],
}

impl Release {
    /// The first revision of a release in the namespace `default`, at the epoch and with a constant seed.
    pub fn new(name: &str) -> Release {
        Release {
            name: name.into(),
            namespace: "default".into(),
            is_upgrade: false,
            revision: 1,
            now: Timestamp::UNIX_EPOCH,
            seed: [0; 32],
        }
    }
}
