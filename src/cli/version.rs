//! `ork version`

use clap::ValueEnum;
use serde::Serialize;

use super::{Failure, output};
use crate::{KUBERNETES, VERSION};

/// The commit, if the build was given one: packagers set `ORK_COMMIT`.
const COMMIT: Option<&str> = option_env!("ORK_COMMIT");

/// Print the version, the commit if known, and the tested Kubernetes versions
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// Human-readable text
    #[default]
    Human,
    /// An object with version, commit (null if unknown) and kubernetes, a list of versions
    Json,
}

#[derive(Debug, Serialize)]
struct About {
    version: &'static str,
    commit: Option<&'static str>,
    kubernetes: &'static [&'static str],
}

pub(super) fn execute(args: &Args) -> Result<(), Failure> {
    let about = About {
        version: VERSION,
        commit: COMMIT.filter(|commit| !commit.is_empty()),
        kubernetes: &KUBERNETES,
    };
    let text = match args.output {
        Format::Human => human(&about),
        Format::Json => serde_json::to_string_pretty(&about).map_err(anyhow::Error::new)? + "\n",
    };
    Ok(output::print(&text)?)
}

fn human(about: &About) -> String {
    let About {
        version,
        commit,
        kubernetes,
    } = about;
    let commit = commit.map(|commit| format!("commit {commit}\n"));
    format!(
        "ork {version}\n{}tested with Kubernetes {}\n",
        commit.unwrap_or_default(),
        kubernetes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_is_not_known_is_left_out() {
        let mut about = About {
            version: "1.2.3",
            commit: None,
            kubernetes: &["1.33", "1.34"],
        };
        assert_eq!(
            human(&about),
            "ork 1.2.3\ntested with Kubernetes 1.33, 1.34\n"
        );
        about.commit = Some("abc");
        assert!(human(&about).contains("\ncommit abc\n"));
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
