//! Keys from files and passwords from where they are.

use std::{
    env, fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use orkestra_registry::{
    Client, Digest, Repository,
    signature::{Format, PrivateKey, PublicKey, Verified, verify},
};

use crate::cli::Failure;

/// Longest password that is read, in bytes.
const MOST_PASSWORD: u64 = 4096;

/// Which signatures are accepted.
#[derive(Debug, clap::Args)]
pub(super) struct Trust {
    /// Public key in PEM whose signature is required; with several, one of them suffices
    #[arg(long = "key", value_name = "FILE")]
    pub(super) keys: Vec<PathBuf>,
    /// Format of signatures to accept; may be repeated [default: both]
    #[arg(long = "format", value_name = "FORMAT", value_enum)]
    pub(super) formats: Vec<FormatName>,
}

/// A format of signatures, as a flag has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FormatName {
    /// Sigstore bundle, as cosign 3 writes it
    Bundle,
    /// "Simple signing" document, as cosign wrote it before
    Simple,
}

impl FormatName {
    pub(super) fn format(self) -> Format {
        match self {
            Self::Bundle => Format::Bundle,
            Self::Simple => Format::Simple,
        }
    }
}

impl Trust {
    /// Checks that a digest is signed by one of the keys.
    pub(super) async fn check(
        &self,
        client: &Client,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Verified, Failure> {
        let keys: Vec<PublicKey> = self
            .keys
            .iter()
            .map(|file| public(file))
            .collect::<anyhow::Result<_>>()?;
        let accepted: Vec<Format> = if self.formats.is_empty() {
            Format::ALL.to_vec()
        } else {
            self.formats.iter().map(|name| name.format()).collect()
        };
        let found = client.signatures(repository, digest).await?;
        let verdict = verify(digest, &found.candidates, &keys, &accepted);
        verdict.map_err(|refused| {
            let error = anyhow::Error::new(refused);
            if found.left_out > 0 {
                return Failure::Input(error.context(format!(
                    "{} more signatures were not looked at",
                    found.left_out
                )));
            }
            Failure::Input(error)
        })
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn public(file: &Path) -> anyhow::Result<PublicKey> {
    let text = read(file)?;
    PublicKey::from_pem(&text).with_context(|| format!("{} is not a public key", file.display()))
}

/// Reads a private key. Its password comes from standard input or from `COSIGN_PASSWORD`, which may be empty.
pub(super) fn private(file: &Path, from_stdin: bool) -> anyhow::Result<PrivateKey> {
    let text = read(file)?;
    let password = if !PrivateKey::is_encrypted(&text) {
        String::new()
    } else if from_stdin {
        password()?
    } else {
        let why =
            "the key is encrypted: set COSIGN_PASSWORD to its password, or use --password-stdin";
        env::var("COSIGN_PASSWORD").context(why)?
    };
    let key = PrivateKey::from_pem(&text, password.as_bytes());
    key.with_context(|| format!("cannot use the private key {}", file.display()))
}

/// A password on standard input, without the end of its line.
pub(super) fn password() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .take(MOST_PASSWORD)
        .read_to_string(&mut text)
        .context("cannot read the password from standard input")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
