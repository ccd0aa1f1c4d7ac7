//! `ork init`

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Failure, output};
use orkestra_author::init::{Origin, Scaffold, name_of_folder, write_draft};

/// Create the files of a new Katalog
///
/// The files are a Katalog, the CRD of its kind, a sample, a README, the schema for editors, and a test that compares the
/// rendered children with the expected ones. The result runs unchanged, locally and in a cluster. No file is overwritten.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Name of the Katalog, such as frog-pond [default: the name of the directory]
    name: Option<String>,
    /// Directory for the files [default: the name; without a name, the current directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Kind of the custom resource [default: the name in CamelCase]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// API group of the custom resource [default: example.org]
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    #[command(flatten)]
    sources: Sources,
}

/// The source of the Katalog, instead of a sample Deployment and Service.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Sources {
    /// Start from an existing CRD (`kind: CustomResourceDefinition`); `-` reads standard input, and --kind selects one of several
    #[arg(long = "from-crd", value_name = "FILE", conflicts_with = "group")]
    crd: Option<PathBuf>,
    /// Start from manifests, such as those of a Deployment and its Service: a file, a directory, or `-` for standard input. Each
    /// object becomes a child; images, replicas, ports, environment variables, hosts and sizes become fields of the spec
    #[arg(long = "from-manifests", value_name = "PATH")]
    manifests: Option<PathBuf>,
    /// Start from a definition of kro (`kind: ResourceGraphDefinition`); `-` reads standard input. Only expressions that are plain paths are converted
    #[arg(long = "from-kro", value_name = "FILE", conflicts_with_all = ["group", "kind"])]
    kro: Option<PathBuf>,
    /// Start from a Helm chart. Templates that read nothing but values are converted with them; if most of the chart's templates
    /// do more, they are rendered with the chart's own values, and the objects are converted as by --from-manifests
    #[arg(long = "from-helm", value_name = "CHART")]
    helm: Option<PathBuf>,
}

impl Sources {
    fn origin(self) -> Option<Origin> {
        let Self {
            crd,
            manifests,
            kro,
            helm,
        } = self;
        crd.map(Origin::Crd)
            .or_else(|| manifests.map(Origin::Manifests))
            .or_else(|| kro.map(Origin::Kro))
            .or_else(|| helm.map(Origin::Helm))
    }
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let Args {
        name,
        dir,
        kind,
        group,
        sources,
    } = args;
    let (kind, group) = (kind.as_deref(), group.as_deref());
    let failed = "cannot create the Katalog";
    let (folder, written) = if let Some(origin) = sources.origin() {
        let draft = origin
            .convert(name.as_deref(), kind, group)
            .context(failed)?;
        for left in &draft.left {
            output::note(&format!("check by hand: {left}"));
        }
        let folder = dir.unwrap_or_else(|| PathBuf::from(&draft.name));
        let written = write_draft(&draft, &folder).await;
        (folder, written)
    } else {
        let (name, folder) = target(name, dir)?;
        let scaffold = Scaffold::new(&name, kind, group).context(failed)?;
        let written = scaffold.write(&folder).await;
        (folder, written)
    };
    for file in written.context(failed)? {
        output::note(&format!("wrote {}", folder.join(file).display()));
    }
    let readme = folder.join("README.md");
    output::note(&format!("next: follow {}", readme.display()));
    Ok(())
}

/// Returns the name of the Katalog and the directory for its files.
fn target(name: Option<String>, dir: Option<PathBuf>) -> anyhow::Result<(String, PathBuf)> {
    match (name, dir) {
        (Some(name), Some(dir)) => Ok((name, dir)),
        (Some(name), None) => Ok((name.clone(), PathBuf::from(name))),
        (None, dir) => {
            let dir = dir.unwrap_or_else(|| Path::new(".").to_owned());
            let name = name_of_folder(&dir).context(
                "the name of the directory is not a valid Katalog name: run `ork init NAME`",
            )?;
            Ok((name, dir))
        }
    }
}
