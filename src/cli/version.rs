//! `ork version`

use std::{fmt::Write as _, time::Duration};

use clap::ValueEnum;
use orkestra_cluster::client::ClusterOptions;
use serde::Serialize;

use super::{Failure, connection, install::connect, output};
use crate::{COMMIT, KUBERNETES};
use orkestra_admin::install::{
    ControllerVersion, OwnDefinition, Skew, controllers, definitions, skews,
};
use orkestra_ground::VERSION;

/// The deadline of the comparison with a cluster.
const PATIENCE: Duration = Duration::from_secs(30);

/// Print the version, the commit, the CRDs and the tested Kubernetes versions
///
/// With `--cluster`, or with the flags of a cluster, it prints the versions of the controllers that run there, and compares the CRDs
/// with those of this version; if one is missing or differs, the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    /// Print the versions of controllers in the cluster, and compare with its CRDs
    #[arg(long)]
    cluster: bool,
    #[command(flatten)]
    at: connection::ConnectionOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// Human-readable text
    #[default]
    Human,
    /// An object with version, commit, target, features, kubernetes, a list of versions, crds, and cluster and controllers, null if no cluster was queried
    Json,
}

#[derive(Debug, Serialize)]
struct VersionReport {
    version: &'static str,
    commit: &'static str,
    target: String,
    features: Vec<&'static str>,
    kubernetes: &'static [&'static str],
    crds: Vec<OwnDefinition>,
    cluster: Option<Vec<Compared>>,
    controllers: Option<Vec<ControllerVersion>>,
}

/// A CRD of the cluster.
#[derive(Debug, Serialize)]
struct Compared {
    name: String,
    #[serde(flatten)]
    skew: Skew,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let mut about = about();
    if args.cluster || args.at.options() != ClusterOptions::default() {
        let (compared, running) = compare(&args.at).await?;
        about.cluster = Some(compared);
        about.controllers = Some(running);
    }
    let text = match args.output {
        Format::Human => human(&about),
        Format::Json => serde_json::to_string_pretty(&about).map_err(anyhow::Error::new)? + "\n",
    };
    output::print(&text)?;
    let differs = about
        .cluster
        .iter()
        .flatten()
        .any(|one| one.skew != Skew::Same);
    if differs {
        Err(Failure::Reported)
    } else {
        Ok(())
    }
}

fn about() -> VersionReport {
    let mut features = Vec::new();
    if cfg!(target_feature = "crt-static") {
        features.push("static");
    }
    if cfg!(debug_assertions) {
        features.push("debug");
    }
    VersionReport {
        version: VERSION,
        commit: COMMIT,
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        features,
        kubernetes: &KUBERNETES,
        crds: definitions(),
        cluster: None,
        controllers: None,
    }
}

async fn compare(
    at: &connection::ConnectionOptions,
) -> Result<(Vec<Compared>, Vec<ControllerVersion>), Failure> {
    let cluster = connect(at).await?;
    let asked = async {
        let running = controllers(&cluster, jiff::Timestamp::now()).await?;
        Ok::<_, orkestra_admin::install::Error>((skews(&cluster).await?, running))
    };
    let compared = tokio::time::timeout(PATIENCE, asked).await;
    let compared = compared.map_err(|_| {
        let error = anyhow::anyhow!("the cluster did not answer within {} s", PATIENCE.as_secs());
        Failure::Cluster(error)
    })??;
    let (compared, running) = compared;
    let compared = compared.into_iter().map(|(own, skew)| Compared {
        name: own.name,
        skew,
    });
    Ok((compared.collect(), running))
}

fn human(about: &VersionReport) -> String {
    let mut text = format!("ork {}\ncommit {}\n", about.version, about.commit);
    let _ = writeln!(
        text,
        "built for {}{}",
        about.target,
        about
            .features
            .iter()
            .fold(String::new(), |all, one| all + ", " + one)
    );
    let _ = writeln!(
        text,
        "tested with Kubernetes {}",
        about.kubernetes.join(", ")
    );
    for crd in &about.crds {
        let _ = writeln!(
            text,
            "CRD {} {} (schema {})",
            crd.name,
            crd.versions.join(", "),
            crd.schema
        );
    }
    for one in about.cluster.iter().flatten() {
        let _ = writeln!(text, "cluster: {}", one.skew.sentence(&one.name));
    }
    for one in about.controllers.iter().flatten() {
        let _ = writeln!(text, "cluster: {one}");
    }
    if about.controllers.as_ref().is_some_and(Vec::is_empty) {
        text.push_str("cluster: no controller runs\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_commit_is_said_and_a_difference_of_the_cluster_too() {
        let mut about = VersionReport {
            version: "1.2.3",
            commit: "unknown",
            target: "x86_64-linux".to_owned(),
            features: vec!["static"],
            kubernetes: &["1.33", "1.34"],
            crds: Vec::new(),
            cluster: None,
            controllers: None,
        };
        assert_eq!(
            human(&about),
            "ork 1.2.3\ncommit unknown\nbuilt for x86_64-linux, static\ntested with Kubernetes 1.33, 1.34\n"
        );
        let older = Skew::Older {
            written_by: "1.0.0".to_owned(),
        };
        about.cluster = Some(vec![Compared {
            name: "ponds.example.org".to_owned(),
            skew: older,
        }]);
        let text = human(&about);
        assert!(
            text.ends_with(
                "cluster: CRD ponds.example.org is older: it was written by version 1.0.0\n"
            ),
            "{text}"
        );
        about.controllers = Some(Vec::new());
        assert!(human(&about).ends_with("cluster: no controller runs\n"));
        about.controllers = Some(vec![ControllerVersion {
            installation: "ops/orkestra".to_owned(),
            version: Some("1.0.0+abc".to_owned()),
        }]);
        let text = human(&about);
        let line = "cluster: controller ops/orkestra has version 1.0.0+abc\n";
        assert!(text.ends_with(line), "{text}");
    }

    #[test]
    fn the_version_of_kubernetes_is_that_of_the_control_plane_of_the_tests() {
        let pinned = std::fs::read_to_string("hack/control-plane/kubernetes/go.mod").unwrap();
        for version in KUBERNETES {
            let needle = format!("k8s.io/kubernetes v{version}.");
            assert!(pinned.contains(&needle), "{needle}");
        }
    }
}
