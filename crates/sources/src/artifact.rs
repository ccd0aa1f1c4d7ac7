//! Fetched sources.

use sha2::{Digest as _, Sha256};

pub use orkestra_core::compose::{Artifact, Fetched, Verified};

/// Returns the digest of documents: of its text for one, else of the lines that `sha256sum` prints for them.
pub(crate) fn digest(documents: &[Fetched]) -> String {
    match documents {
        [one] => format!("sha256:{}", hex(one.text.as_bytes())),
        all => {
            let lines = all.iter();
            let lines: String = lines
                .map(|file| format!("{}  {}\n", hex(file.text.as_bytes()), file.name))
                .collect();
            format!("sha256:{}", hex(lines.as_bytes()))
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the text of a file.
///
/// # Errors
/// A sentence with the reason.
pub(crate) fn text(name: &str, data: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(data).map_err(|_| format!("{name} is not UTF-8"))?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or_else(|| text.clone(), str::to_owned))
}

/// True for names of YAML files.
pub(crate) fn is_yaml(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    matches!(ending, Some("yaml" | "yml"))
}
