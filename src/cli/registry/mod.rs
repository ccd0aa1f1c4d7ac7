//! `ork push` and the other commands for registries.

pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod pull;
pub(crate) mod push;
pub(crate) mod sign;
pub(crate) mod tag;
pub(crate) mod verify;

mod keys;
mod steps;

use std::path::PathBuf;

use clap::ValueEnum;
use orkestra_registry::{
    Client, Digest, Keychain, ManifestState, Options, Reference, artifact::Kind,
};
use orkestra_sources::Fetcher;

use super::{
    Failure,
    sources::{self, base, certificates},
};
use orkestra_loader::compose::Remote;

/// Flags for connections to registries.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Registry")]
pub(crate) struct Registry {
    /// Use plain HTTP. It is the default for a registry on a loopback address that does not support TLS
    #[arg(long)]
    plain_http: bool,
    /// CA certificates in PEM to trust, in addition to those of the machine
    #[arg(
        long,
        value_name = "FILE",
        env = "ORK_REGISTRY_CA_FILE",
        hide_env_values = true
    )]
    ca_file: Option<PathBuf>,
}

/// An artifact, as an argument.
#[derive(Debug, clap::Args)]
pub(crate) struct Artifact {
    /// `oci://host/path:tag`, `host/path@sha256:…`, or a short name such as `postgres:1.2.0` below $`ORK_REGISTRY`
    #[arg(value_name = "REF")]
    reference: String,
    /// Resolve a short name below $`ORK_MOTIFS_REGISTRY`
    #[arg(short, long)]
    motif: bool,
}

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text
    #[default]
    Human,
    /// One JSON object
    Json,
}

impl Registry {
    /// A client with the user's credentials.
    fn client(&self) -> Result<Client, Failure> {
        Ok(self.client_with(Keychain::of_user()?)?)
    }

    /// Fetches the Motifs that documents import from registries.
    fn fetch(&self) -> anyhow::Result<Remote> {
        let mut options = sources::at_desk(Vec::new());
        options.plain_http = self.plain_http;
        if let Some(file) = &self.ca_file {
            options.roots = certificates(file)?;
        }
        Ok(Remote::new(Fetcher::new(options)))
    }

    /// A client with these credentials.
    fn client_with(&self, keychain: Keychain) -> anyhow::Result<Client> {
        let roots = match &self.ca_file {
            Some(file) => certificates(file)?,
            None => Vec::new(),
        };
        Ok(Client::new(Options {
            plain_http: self.plain_http,
            ..Options::of_user(keychain, roots)
        }))
    }
}

impl Artifact {
    fn parse(&self) -> anyhow::Result<Reference> {
        let kind = if self.motif {
            Kind::Motif
        } else {
            Kind::Katalog
        };
        Ok(Reference::parse(&self.reference, &base(kind))?)
    }
}

/// The digest of a reference, which a tag has now.
async fn digest(client: &Client, reference: &Reference) -> Result<Digest, Failure> {
    match (&reference.digest, client.look(reference, None).await?) {
        (_, ManifestState::Is(digest)) => Ok(digest),
        (Some(digest), ManifestState::Unchanged) => Ok(*digest),
        (None, ManifestState::Unchanged) => {
            Err(Failure::Input(anyhow::anyhow!("{reference} has no digest")))
        }
    }
}

/// `12.3 kB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

fn to_json(value: &serde_json::Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Today, where the machine is.
fn today() -> jiff::civil::Date {
    jiff::Zoned::now().date()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [0, 999, 1_250, 2_000_000].map(size),
            ["0 B", "999 B", "1.2 kB", "2.0 MB"]
        );
    }
}
