//! Reads `.tar.gz` archives into memory within limits.
//!
//! An archive may be malicious: nothing is written to disk, paths cannot leave the folder, links are rejected, and the size
//! is counted during unpacking, regardless of the sizes that the archive declares.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

/// A file of a chart: its path relative to the chart's folder, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The path, with `/` as separator.
    pub path: String,
    /// The content.
    pub data: Vec<u8>,
}

/// The limits on an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of all files, unpacked, in bytes.
    pub bytes: u64,
    /// The size of one file, unpacked, in bytes.
    pub file_bytes: u64,
    /// The number of files.
    pub files: usize,
    /// The nesting of folders.
    pub depth: usize,
}

impl Default for Limits {
    /// 64 MiB, 8 MiB per file, 10,000 files, 32 levels.
    fn default() -> Limits {
        Limits {
            bytes: 64 << 20,
            file_bytes: 8 << 20,
            files: 10_000,
            depth: 32,
        }
    }
}

/// The reason why an archive cannot be unpacked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The bytes are not a gzipped tar.
    #[error("malformed archive: {0}")]
    Malformed(String),
    /// A path leaves the folder, or is not valid.
    #[error("archive entry {0:?} is not a valid relative path")]
    Path(String),
    /// A link or a device.
    #[error("archive entry {0:?} is not a regular file or a directory; links are refused")]
    Kind(String),
    /// Two files with the same path.
    #[error("archive entry {0:?} appears twice")]
    Twice(String),
    /// The archive exceeds a limit.
    #[error("the archive exceeds the limit of {0}")]
    Limit(String),
}

/// Returns the files of an archive, in its order, with normalized paths.
///
/// # Errors
/// See [`ArchiveError`].
pub fn unpack(bytes: &[u8], limits: &Limits) -> Result<Vec<File>, ArchiveError> {
    let malformed = |error: std::io::Error| {
        let too_long = error
            .get_ref()
            .is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooMuch>);
        if too_long {
            too_much("bytes", limits.bytes)
        } else {
            ArchiveError::Malformed(error.to_string())
        }
    };
    // Headers and padding count as well; a tar with that many files needs no more than this.
    let overhead = (limits.files as u64 + 16).saturating_mul(4096);
    let source = Counted {
        inner: MultiGzDecoder::new(bytes),
        left: limits.bytes.saturating_add(overhead),
    };
    let mut archive = Archive::new(source);
    let mut files: Vec<File> = Vec::new();
    let mut paths = std::collections::HashSet::new();
    let mut left = limits.bytes;
    for entry in archive.entries().map_err(malformed)? {
        let entry = entry.map_err(malformed)?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader | EntryType::XHeader) {
            continue;
        }
        let name = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|error| ArchiveError::Path(error.to_string()))?;
        if kind.is_dir() {
            normal_path(&name, limits)?;
            continue;
        }
        if !kind.is_file() {
            return Err(ArchiveError::Kind(name));
        }
        let path = normal_path(&name, limits)?;
        if files.len() == limits.files {
            return Err(too_much("files", limits.files as u64));
        }
        let most = limits.file_bytes.min(left);
        let data = read_at_most(entry, most).map_err(malformed)?;
        let Some(data) = data else {
            return Err(if most == left {
                too_much("bytes", limits.bytes)
            } else {
                too_much("bytes for one file", limits.file_bytes)
            });
        };
        left -= data.len() as u64;
        if !paths.insert(path.clone()) {
            return Err(ArchiveError::Twice(path));
        }
        files.push(File { path, data });
    }
    if files.is_empty() {
        return Err(ArchiveError::Malformed("no files".into()));
    }
    Ok(files)
}

/// Reads a file; none if it has more bytes than that.
fn read_at_most(entry: impl Read, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut data = Vec::new();
    entry.take(most + 1).read_to_end(&mut data)?;
    Ok((data.len() as u64 <= most).then_some(data))
}

fn too_much(what: &str, most: u64) -> ArchiveError {
    ArchiveError::Limit(format!("{most} {what}"))
}

/// Returns the path without `.` and with `/` as separator.
fn normal_path(name: &str, limits: &Limits) -> Result<String, ArchiveError> {
    let wrong = || ArchiveError::Path(name.into());
    let unix = name.replace('\\', "/");
    let has_drive = unix.as_bytes().get(1) == Some(&b':');
    if unix.starts_with('/') || has_drive || unix.chars().any(char::is_control) {
        return Err(wrong());
    }
    let mut parts = Vec::new();
    for part in unix.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(wrong()),
            part => parts.push(part),
        }
    }
    if parts.len() > limits.depth {
        return Err(too_much("levels of directories", limits.depth as u64));
    }
    Ok(parts.join("/"))
}

/// The source exceeds its limit.
#[derive(Debug)]
struct TooMuch;

impl std::fmt::Display for TooMuch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("too long")
    }
}

impl std::error::Error for TooMuch {}

/// A reader that fails after a number of bytes.
struct Counted<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(count as u64)
            .ok_or_else(|| std::io::Error::other(TooMuch))?;
        Ok(count)
    }
}
