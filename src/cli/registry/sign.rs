//! `ork sign`

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use orkestra_registry::signature::{Format as SignatureFormat, sign_bundle, sign_simple};
use serde_json::json;

use super::{
    Artifact, Format, Registry,
    keys::{self, FormatName},
    to_json,
};
use crate::cli::{Failure, output};

/// Sign an artifact with a private key, like `cosign sign --key`
///
/// The signature is for the current digest of the reference. The key is one of `cosign generate-key-pair`, or ECDSA P-256 in
/// PKCS #8. The password of an encrypted key is read from $`COSIGN_PASSWORD`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    artifact: Artifact,
    /// Private key in PEM
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Read the password of the key from standard input
    #[arg(long)]
    password_stdin: bool,
    /// Format of the signature; may be repeated
    #[arg(
        long = "format",
        value_name = "FORMAT",
        value_enum,
        default_value = "bundle"
    )]
    formats: Vec<FormatName>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: Registry,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let reference = args.artifact.parse()?;
    let key = keys::private(&args.key, args.password_stdin)?;
    let public = key.public().map_err(|error| anyhow!(error))?;
    let client = args.registry.client()?;
    let fetched = client.fetch(&reference).await?;
    let (repository, digest) = (&reference.repository, fetched.digest);
    for format in args.formats.iter().map(|name| name.format()) {
        match format {
            SignatureFormat::Bundle => {
                let bundle = sign_bundle(digest, &key).context("cannot sign")?;
                client
                    .attach_bundle(repository, &fetched.descriptor(), bundle)
                    .await?;
            }
            SignatureFormat::Simple => {
                let signed = sign_simple(repository, digest, &key).context("cannot sign")?;
                client.attach_simple(repository, &digest, signed).await?;
            }
        }
        output::note(&format!("signed {reference} ({})", format.name()));
    }
    if args.output == Format::Json {
        let formats: Vec<&str> = args
            .formats
            .iter()
            .map(|name| name.format().name())
            .collect();
        let value = json!({"reference": reference.to_string(), "digest": digest, "key": public.fingerprint(), "formats": formats});
        return Ok(output::print(&to_json(&value)?)?);
    }
    Ok(output::print(&format!("{digest}\n"))?)
}
