//! The signers whose signatures are accepted.

use super::{Identity, PublicKey};

/// Whose signatures are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    /// The holder of a private key.
    Key(PublicKey),
    /// An identity that an authority certifies.
    Identity(Identity),
}

impl From<PublicKey> for Signer {
    fn from(key: PublicKey) -> Self {
        Self::Key(key)
    }
}

impl Signer {
    /// Returns the name in messages: the digest of the key, or the identity with its trusted root.
    pub fn mark(&self) -> String {
        match self {
            Self::Key(key) => key.fingerprint(),
            Self::Identity(identity) => identity.mark(),
        }
    }
}
