//! Fetched sources.

use sha2::{Digest as _, Sha256};

use serde::{Deserialize, Serialize};

/// The documents of one source at one revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Where it was fetched from, as shown in messages: without credentials, and without the value of a variable. For a file on
    /// disk, its path as messages show it.
    pub url: String,
    /// The revision: a tag, `branch@commit`, the version of a chart; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The digest of the content: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The documents, in order.
    pub documents: Vec<Fetched>,
    /// The result of verifying signatures.
    #[serde(default)]
    pub verified: Verified,
}

/// One file of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// Its path in the artifact, such as `katalog.yaml` or `motifs/reeds.yaml`; the key of a `ConfigMap`; the name of a Katalog
    /// of the cluster. Empty if the artifact is one file, whose `url` says everything.
    pub name: String,
    /// The content.
    pub text: String,
}

/// The result of verifying the signatures of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verified {
    /// No signature was required.
    #[default]
    NotRequired,
    /// Signed by this key or identity.
    By(String),
    /// Required by a policy that only warns, and missing or wrong: the reason.
    Warned(String),
}


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
