//! Keys from files and passwords from where they are.

use std::{
    env, fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use orkestra_registry::{
    Client, Digest, Repository,
    signature::{
        Format, Identity, PrivateKey, PublicKey, Signer, TrustedRoot, Verified, verify_by,
    },
};

use crate::cli::Failure;

/// Longest password that is read, in bytes.
const MOST_PASSWORD: u64 = 4096;

/// Which signatures are accepted.
#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// Public key in PEM whose signature is required; may be repeated, and then one of the signatures is enough
    #[arg(long = "key", value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    /// Identity whose keyless signature is required: an e-mail address or URI; `*` stands for any text without a separator (`@`, `//`) that SUBJECT has itself
    #[arg(long, value_name = "SUBJECT", requires_all = ["certificate_oidc_issuer", "trusted_root"])]
    pub(crate) certificate_identity: Option<String>,
    /// Issuer of that identity
    #[arg(long, value_name = "URL", requires = "certificate_identity")]
    pub(crate) certificate_oidc_issuer: Option<String>,
    /// Trusted root for that identity: a `trusted_root.json`, or certificates of authorities in PEM
    #[arg(long, value_name = "FILE", requires = "certificate_identity")]
    pub(crate) trusted_root: Option<PathBuf>,
    /// Format of signatures to accept; may be repeated [default: both]
    #[arg(long = "format", value_name = "FORMAT", value_enum)]
    pub(crate) formats: Vec<FormatName>,
}

/// A format of signatures, as a flag has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FormatName {
    /// Sigstore bundle, as cosign 3 writes it
    Bundle,
    /// "Simple signing" document, as cosign wrote it before
    Simple,
}

impl FormatName {
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Bundle => Format::Bundle,
            Self::Simple => Format::Simple,
        }
    }
}

impl Trust {
    /// True if no key and no identity is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.certificate_identity.is_none()
    }

    /// Returns the name of who signed: the file of the key, or the subject of the certificate.
    pub(crate) fn name(&self, verified: &Verified) -> String {
        let key = self.keys.get(verified.signer);
        let key = key.map(|file| file.display().to_string());
        verified.subject.clone().or(key).unwrap_or_default()
    }

    /// Reads the identity, if one is given.
    fn identity(&self) -> anyhow::Result<Option<Identity>> {
        let (Some(subject), Some(issuer), Some(file)) = (
            &self.certificate_identity,
            &self.certificate_oidc_issuer,
            &self.trusted_root,
        ) else {
            return Ok(None);
        };
        let root = TrustedRoot::parse(&read(file)?);
        let identity = root.and_then(|root| Identity::new(issuer, subject, root));
        let identity = identity.with_context(|| format!("cannot use {}", file.display()));
        identity.map(Some)
    }

    /// Checks that a digest is signed by one of the keys, or by the identity.
    pub(crate) async fn check(
        &self,
        client: &Client,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Verified, Failure> {
        let keys = self.keys.iter().map(|file| public(file).map(Signer::Key));
        let mut signers: Vec<Signer> = keys.collect::<anyhow::Result<_>>()?;
        signers.extend(self.identity()?.map(Signer::Identity));
        let accepted: Vec<Format> = if self.formats.is_empty() {
            Format::ALL.to_vec()
        } else {
            self.formats.iter().map(|name| name.format()).collect()
        };
        let found = client.signatures(repository, digest).await?;
        let now = jiff::Timestamp::now();
        let verdict = verify_by(digest, &found.candidates, &signers, &accepted, now);
        verdict.map_err(|refused| {
            let error = anyhow::Error::new(refused);
            if found.left_out > 0 {
                return Failure::Input(error.context(format!(
                    "{} more signatures were not checked",
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
pub(crate) fn private(file: &Path, from_stdin: bool) -> anyhow::Result<PrivateKey> {
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
pub(crate) fn password() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .take(MOST_PASSWORD)
        .read_to_string(&mut text)
        .context("cannot read the password from standard input")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
