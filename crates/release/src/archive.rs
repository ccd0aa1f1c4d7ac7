//! Reproducible archives: their bytes depend only on their files.

use std::io::{self, Write as _};

use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

use crate::Moment;

/// A file or a folder of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path, without a leading `/`; that of a folder ends with `/`.
    pub path: String,
    /// Its mode.
    pub mode: u32,
    /// Its content.
    pub content: Vec<u8>,
}

impl Entry {
    /// A file that everyone reads.
    pub fn file(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            mode: 0o644,
            content: content.into(),
        }
    }

    /// A file that everyone executes.
    pub fn program(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(path, content)
        }
    }

    /// A folder.
    pub fn folder(path: impl Into<String>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(path, [])
        }
    }
}

/// Returns a tar archive of the entries, sorted by path, owned by root.
///
/// # Errors
/// A path is too long for the format.
pub fn tar(entries: &[Entry], moment: Moment) -> io::Result<Vec<u8>> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|one, other| one.path.cmp(&other.path));
    let mut archive = tar::Builder::new(Vec::new());
    for Entry {
        path,
        mode,
        content,
    } in sorted
    {
        let mut header = Header::new_ustar();
        header.set_entry_type(if path.ends_with('/') {
            EntryType::Directory
        } else {
            EntryType::Regular
        });
        header.set_size(content.len() as u64);
        header.set_mode(*mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(moment.0.into());
        archive.append_data(&mut header, path, content.as_slice())?;
    }
    archive.into_inner()
}

/// Returns the gzip of bytes, without a name, a time or the system that made it.
///
/// # Errors
/// None: memory is written.
pub fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    const UNKNOWN_SYSTEM: u8 = 255;
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .operating_system(UNKNOWN_SYSTEM)
        .write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
