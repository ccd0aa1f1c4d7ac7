//! Who fights: the last writer of a field, read from a live object's managed fields.

use orkestra_core::{
    reconcile::owned::{Own, updated_by},
    value::{Node, Path},
};

/// The manager other than `ours` whose update entry holds `path`; none where the field was removed.
pub(super) fn last_writer(live: &Node, path: &Path, ours: &str) -> Option<String> {
    let meta = live.get("metadata")?;
    let own = Own {
        name: meta.get("name")?.as_str()?,
        owner: "",
    };
    updated_by(meta.get("managedFields")?, live, path, own)
        .into_iter()
        .find(|manager| manager != ours)
}
