//! What unit tests share.

use std::path::Path;

/// Compares a committed document with what it is generated from; `UPDATE_DOCS=1` writes it.
pub(crate) fn assert_document(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, expected).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == expected,
        "{path} is stale; run the test again with UPDATE_DOCS=1"
    );
}
