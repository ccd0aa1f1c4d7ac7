//! `ork generate`

mod crd;
mod rbac;

use std::sync::Arc;

use clap::Subcommand;
use orkestra_plan::Plan;

use super::{
    Failure, files,
    options::{FileOptions, parse_namespace},
    output,
    sources::SourceOptions,
};
use orkestra_admin::gitops::{
    argocd::{self, KeyStyle},
    flux,
};

/// Print manifests
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: GenerateCommand,
}

#[derive(Debug, Subcommand)]
enum GenerateCommand {
    Crd(crd::Crd),
    Rbac(rbac::Rbac),
    Argocd(Argocd),
    Flux(Flux),
}

/// Print the settings of Argo CD for Katalogs and their custom resources
///
/// The output is a `ConfigMap` `argocd-cm` to merge with the existing one, with `kubectl apply --server-side --filename -`: health
/// checks, and the fields to ignore in comparisons, for Orkestra's own kinds and the kinds of the Katalogs.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct Argocd {
    #[command(flatten)]
    files: FileOptions,
    #[command(flatten)]
    sources: SourceOptions,
    /// Namespace of Argo CD
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace, default_value = "argocd")]
    namespace: String,
    /// Print one entry per API group instead of per kind, which covers kinds that are added later. The entries are all in the key
    /// `resource.customizations`, which replaces an existing one; some managed Argo CDs refuse it
    #[arg(long)]
    wildcards: bool,
}

/// Print Flux Kustomizations for Katalogs and their custom resources
///
/// The output has two Kustomizations that wait for their objects: `katalogs` for the directory katalogs/ of the `GitRepository`
/// flux-system, and `resources`, which depends on it, for resources/. Their `healthCheckExprs` are for Orkestra's own kinds and the
/// kinds of the Katalogs.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct Flux {
    #[command(flatten)]
    files: FileOptions,
    #[command(flatten)]
    sources: SourceOptions,
    /// Namespace of the Kustomizations
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace, default_value = "flux-system")]
    namespace: String,
}

pub(crate) async fn execute(Args { what }: Args) -> Result<(), Failure> {
    let text = match what {
        GenerateCommand::Crd(args) => crd::text(args).await?,
        GenerateCommand::Rbac(args) => rbac::text(args).await?,
        GenerateCommand::Argocd(args) => {
            let plans = compile(args.files, &args.sources).await?;
            let keys = if args.wildcards {
                KeyStyle::Groups
            } else {
                KeyStyle::Kinds
            };
            output::to_yaml(&argocd::config_map(
                &borrowed(&plans),
                keys,
                &args.namespace,
            ))?
        }
        GenerateCommand::Flux(args) => {
            let plans = compile(args.files, &args.sources).await?;
            let both = flux::kustomizations(&borrowed(&plans), &args.namespace);
            let texts: anyhow::Result<String> = both.iter().map(output::to_yaml).collect();
            texts?
        }
    };
    Ok(output::print(&text)?)
}

fn borrowed(plans: &[Arc<Plan>]) -> Vec<&Plan> {
    plans.iter().map(AsRef::as_ref).collect()
}

async fn compile(files: FileOptions, sources: &SourceOptions) -> Result<Vec<Arc<Plan>>, Failure> {
    let paths = files.given();
    let fetch = sources.fetch(&paths)?;
    self::files::compile(&paths, &*fetch, false).await
}
