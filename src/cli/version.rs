//! `ork version`

use std::{fmt::Write as _, time::Duration};

use clap::ValueEnum;
use orkestra_cluster::client::ClusterOptions;
use serde::Serialize;

use super::{Failure, install::connect, options, output};
use crate::{
    KUBERNETES, VERSION,
    install::{OwnDefinition, Skew, definitions, skews},
};

/// The commit, if the build was given one: `make release` and packagers set `ORK_COMMIT`.
const COMMIT: Option<&str> = option_env!("ORK_COMMIT");
/// The deadline of the comparison with a cluster.
const PATIENCE: Duration = Duration::from_secs(30);

/// Print the version, the commit, the CRDs and the tested Kubernetes versions
///
/// With `--cluster`, or with the flags of a cluster, the CRDs of the cluster are compared with those of this version; if one is
/// missing or differs, the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
    /// Compare with the CRDs of the cluster
    #[arg(long)]
    cluster: bool,
    #[command(flatten)]
    at: options::ConnectionOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// Human-readable text
    #[default]
    Human,
    /// An object with version, commit, target, features, kubernetes, a list of versions, crds and cluster, null if no cluster was queried
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
}

/// A CRD of the cluster.
#[derive(Debug, Serialize)]
struct Compared {
    name: String,
    #[serde(flatten)]
    skew: Skew,
}

pub(super) async fn execute(args: Args) -> Result<(), Failure> {
    let mut about = about();
    if args.cluster || args.at.options() != ClusterOptions::default() {
        about.cluster = Some(compare(&args.at).await?);
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
        commit: COMMIT
            .filter(|commit| !commit.is_empty())
            .unwrap_or("unknown"),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        features,
        kubernetes: &KUBERNETES,
        crds: definitions(),
        cluster: None,
    }
}

async fn compare(at: &options::ConnectionOptions) -> Result<Vec<Compared>, Failure> {
    let cluster = connect(at).await?;
    let compared = tokio::time::timeout(PATIENCE, skews(&cluster)).await;
    let compared = compared.map_err(|_| {
        let error = anyhow::anyhow!("the cluster did not answer within {} s", PATIENCE.as_secs());
        Failure::Cluster(error)
    })??;
    let compared = compared.into_iter();
    Ok(compared
        .map(|(own, skew)| Compared {
            name: own.name,
            skew,
        })
        .collect())
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
