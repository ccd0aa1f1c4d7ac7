//! The archive of a bundle.

use std::{fs::OpenOptions, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use flate2::{Compression, write::GzEncoder};

use super::{Bundle, File};

/// Why the archive could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub struct Error {
    /// Its path.
    path: String,
    /// The cause.
    source: std::io::Error,
}

/// Writes a bundle to a new file, which only its owner can read. All its files are in a folder named like it.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn write(bundle: &Bundle, path: &Path, now: jiff::Timestamp) -> Result<(), Error> {
    let failed = |source| Error {
        path: path.display().to_string(),
        source,
    };
    let packed = pack(bundle, path, now).map_err(failed)?;
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(&packed))
        .map_err(failed)
}

fn pack(bundle: &Bundle, path: &Path, now: jiff::Timestamp) -> std::io::Result<Vec<u8>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = name
        .trim_end_matches(".gz")
        .trim_end_matches(".tgz")
        .trim_end_matches(".tar");
    let summary = serde_json::to_string_pretty(&bundle.summary(now))? + "\n";
    let summary = File {
        path: "summary.json".to_owned(),
        text: summary,
    };
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in std::iter::once(&summary).chain(&bundle.files) {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(u64::try_from(now.as_second()).unwrap_or_default());
        let path = format!("{folder}/{}", file.path);
        builder.append_data(&mut header, path, file.text.as_bytes())?;
    }
    builder.into_inner()?.finish()
}
