//! `ork verify`

use serde_json::json;

use super::{Artifact, Format, Registry, digest, keys::Trust, to_json};
use crate::cli::{Failure, output};

/// Verify that an artifact is signed with one of the given keys, or by an identity
///
/// Accepts the signatures of `ork sign` and `cosign sign`: bundles, and the older "simple signing" documents. A keyless
/// signature is verified offline: certificates and transparency logs are those of --trusted-root, and nothing is downloaded.
/// If no signature is valid, the exit code is 1 and the reason is printed for each.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
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

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    if args.trust.is_empty() {
        return Err(Failure::Input(anyhow::anyhow!(
            "no key is given: name a public key with --key, or an identity with --certificate-identity"
        )));
    }
    let reference = args.artifact.parse()?;
    let client = args.registry.client()?;
    let digest = digest(&client, &reference).await?;
    let verified = args
        .trust
        .check(&client, &reference.repository, &digest)
        .await?;
    let signer = args.trust.name(&verified);
    if args.output == Format::Json {
        let value = json!({
            "reference": reference.to_string(),
            "digest": digest,
            "key": verified.subject.is_none().then_some(&signer),
            "identity": verified.subject,
            "format": verified.format.name(),
        });
        return Ok(output::print(&to_json(&value)?)?);
    }
    let by = match verified.subject {
        Some(_) => "by",
        None => "with",
    };
    Ok(output::print(&format!(
        "{reference}@{digest}: signed {by} {signer} ({})\n",
        verified.format.name()
    ))?)
}
