//! The Katalog of `ork init` on a real control plane: the commands of its README, first from files and then in a cluster.

use std::fs;

use anyhow::{Context as _, Result};
use testbed::ControlPlane;

use super::{Example, readme};

/// The heading below which the commands need `ork controller`.
const IN_A_CLUSTER: &str = "\n## Run it in a cluster\n";

/// Creates a new Katalog and runs the commands of its README, as a reader does.
pub(crate) async fn run(cluster: &ControlPlane) -> Result<()> {
    let scratch = cluster.folder().join("examples/init");
    fs::create_dir_all(&scratch)?;
    let kubeconfig = cluster.admin().kubeconfig_path().to_owned();
    let desk = Example {
        cluster,
        kubeconfig: kubeconfig.clone(),
        folder: scratch.clone(),
        scratch: scratch.clone(),
    };
    desk.sh("ork init frog-pond").await?;
    let new = Example {
        cluster,
        kubeconfig,
        folder: scratch.join("frog-pond"),
        scratch: scratch.join("scratch"),
    };
    let readme = fs::read_to_string(new.folder.join("README.md"))?;
    let (at_the_desk, in_a_cluster) = readme
        .split_once(IN_A_CLUSTER)
        .context("its README has no commands for a cluster")?;
    let commands = readme::commands(at_the_desk)?;
    new.ensure_complete(&commands)?;
    new.run_all(&commands).await?;

    let mut commands = [
        "ork crds | kubectl apply -f -",
        "kubectl wait --for=condition=Established crd --all",
        "ork controller --namespace default",
    ]
    .map(str::to_owned)
    .to_vec();
    commands.extend(readme::commands(in_a_cluster)?);
    new.run_all(&commands).await
}
