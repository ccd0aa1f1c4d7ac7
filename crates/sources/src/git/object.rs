//! Objects: their content, and the identifiers that stand for it.
//!
//! An identifier is the SHA-1 digest of the object's header and content, computed as Git does: content that was made to collide is
//! detected and refused (`sha1dc`).

use bytes::Bytes;
use gix_hash::{Hasher, Kind as HashKind};

pub(crate) use gix_hash::ObjectId;
pub(crate) use gix_object::Kind as ObjectKind;

/// The identifiers of the repositories that are read.
pub(crate) const SHA1: HashKind = HashKind::Sha1;

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: ObjectKind,
    /// Its content, which copies share.
    pub(crate) data: Bytes,
}

/// A source of objects.
pub(crate) trait Objects {
    /// Returns an object whose content has that identifier.
    ///
    /// # Errors
    /// A sentence with the reason, if it is missing or exceeds a limit.
    fn object(&mut self, id: ObjectId) -> Result<Object, String>;
}

/// Returns the identifier of an object with that content.
///
/// # Errors
/// A sentence, if the content is part of a collision attack on SHA-1.
pub(crate) fn id_of(kind: ObjectKind, data: &[u8]) -> Result<ObjectId, String> {
    let mut hasher = gix_hash::hasher(SHA1);
    hasher.update(&gix_object::encode::loose_header(kind, data.len() as u64));
    hasher.update(data);
    finished(hasher)
}

/// Returns the digest of a pack.
///
/// # Errors
/// As for [`id_of`].
pub(crate) fn checksum(content: &[u8]) -> Result<ObjectId, String> {
    let mut hasher = gix_hash::hasher(SHA1);
    hasher.update(content);
    finished(hasher)
}

/// The only place where a digest is finished, so that no path leaves out the detection of collisions.
fn finished(hasher: Hasher) -> Result<ObjectId, String> {
    let collides = |_| "content of the repository was made for a collision attack on SHA-1";
    Ok(hasher.try_finalize().map_err(collides)?)
}
