//! The release that a chart is rendered for.

use jiff::Timestamp;

/// `.Release`, and the source of time and randomness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// True for an upgrade, false for an installation.
    pub is_upgrade: bool,
    /// The revision, from 1.
    pub revision: i64,
    /// The result of `now`.
    pub now: Timestamp,
    /// The source of `randAlphaNum`, `uuidv4` and `genCA`: the same seed results in the same documents, so anyone who knows it knows
    /// every password and key. `None` refuses these functions.
    pub seed: Option<[u8; 32]>,
}

impl Release {
    /// Returns the first revision of a release in the namespace `default`, at the epoch and with a constant seed.
    pub fn new(name: &str) -> Release {
        Release {
            name: name.into(),
            namespace: "default".into(),
            is_upgrade: false,
            revision: 1,
            now: Timestamp::UNIX_EPOCH,
            seed: Some([0; 32]),
        }
    }
}
