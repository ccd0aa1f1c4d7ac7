//! `ork verify`

use serde_json::json;

use super::{Artifact, Format, Registry, digest, keys::Trust, to_json};
use crate::cli::{Failure, output};

/// Verify that an artifact is signed with one of the given keys
///
/// Accepts the signatures of `ork sign` and `cosign sign --key`: bundles, and the older "simple signing" documents. Only the
/// keys are trusted; transparency logs and certificates are not used. If no signature is valid, the exit code is 1 and the
/// reason is printed for each.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    artifact: Artifact,
    #[command(flatten)]
    trust: Trust,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: Registry,
}

pub(in crate::cli) async fn execute(args: Args) -> Result<(), Failure> {
    if args.trust.keys.is_empty() {
        return Err(Failure::Input(anyhow::anyhow!(
            "no key is given: name a public key with --key"
        )));
    }
    let reference = args.artifact.parse()?;
    let client = args.registry.client()?;
    let digest = digest(&client, &reference).await?;
    let verified = args
        .trust
        .check(&client, &reference.repository, &digest)
        .await?;
    let key = args
        .trust
        .keys
        .get(verified.key)
        .map(|file| file.display().to_string());
    if args.output == Format::Json {
        let value = json!({
            "reference": reference.to_string(),
            "digest": digest,
            "key": key,
            "format": verified.format.name(),
        });
        return Ok(output::print(&to_json(&value)?)?);
    }
    let key = key.unwrap_or_default();
    Ok(output::print(&format!(
        "{reference}@{digest}: signed with {key} ({})\n",
        verified.format.name()
    ))?)
}
