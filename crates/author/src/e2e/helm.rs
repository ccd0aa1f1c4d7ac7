//! Installs charts for a test, with the program `helm`.

use std::{ffi::OsString, path::Path, time::Duration};

use orkestra_language::api::e2e::HelmChart;
use tokio::time::Instant;

use super::process::{ProcessError, ProgramEnvironment};
use orkestra_loader::files::beside;

const HELM: &str = "helm";
/// The timeout of an installation.
const PATIENCE: Duration = Duration::from_mins(5);
/// The default namespace of a release.
const NAMESPACE: &str = "default";

/// An installed release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    name: String,
    namespace: String,
}

/// `Helm release shop/cache`.
impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Helm release {}/{}", self.namespace, self.name)
    }
}

/// The reason why a chart is not installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HelmError {
    #[error("{0}; `setup.helm` needs it: https://helm.sh/docs/intro/install")]
    Process(#[from] ProcessError),
    #[error("`helm {0}` failed: {1}")]
    Failed(&'static str, String),
}

/// Installs a chart that the document in `file` refers to. Fails if a release of that name exists.
pub(crate) async fn install(
    place: &ProgramEnvironment,
    file: &Path,
    chart: &HelmChart,
) -> Result<Release, HelmError> {
    let (release, args) = arguments(file, chart);
    // JSON is valid YAML.
    let values = chart
        .values
        .as_ref()
        .map(|values| values.to_json().to_string());
    let deadline = Instant::now() + PATIENCE;
    let answer = place.run(HELM, &args, values.as_deref(), deadline).await?;
    if answer.exit_code != 0 {
        return Err(HelmError::Failed("install", answer.error.trim().to_owned()));
    }
    Ok(release)
}

/// Uninstalls a release.
pub(crate) async fn uninstall(
    place: &ProgramEnvironment,
    release: &Release,
) -> Result<(), HelmError> {
    let args = [
        "uninstall",
        &release.name,
        "--namespace",
        &release.namespace,
    ];
    let args = args.map(OsString::from);
    let answer = place
        .run(HELM, &args, None, Instant::now() + PATIENCE)
        .await?;
    if answer.exit_code != 0 {
        return Err(HelmError::Failed(
            "uninstall",
            answer.error.trim().to_owned(),
        ));
    }
    Ok(())
}

/// Returns the release and the arguments of `helm install`; values are read from standard input.
fn arguments(file: &Path, chart: &HelmChart) -> (Release, Vec<OsString>) {
    let HelmChart {
        repo,
        chart: name,
        release,
        namespace,
        version,
        value_files,
        values,
        create_namespace,
        wait: _,
    } = chart;
    let whole = |path: &str| {
        let path = beside(file, path);
        std::path::absolute(&path).unwrap_or(path).into_os_string()
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    let release = Release {
        name: release.clone().unwrap_or_else(|| last.to_owned()),
        namespace: namespace.clone().unwrap_or_else(|| NAMESPACE.to_owned()),
    };
    let is_local = name.starts_with(['.', '/']);
    let located = if is_local { whole(name) } else { name.into() };
    let mut args: Vec<OsString> = vec!["install".into(), release.name.clone().into(), located];
    let mut flag = |name: &str, value: OsString| args.extend([name.into(), value]);
    flag("--namespace", release.namespace.clone().into());
    if let Some(repo) = repo {
        flag("--repo", repo.into());
    }
    if let Some(version) = version {
        flag("--version", version.into());
    }
    for file in value_files {
        flag("--values", whole(file));
    }
    if values.is_some() {
        flag("--values", "-".into());
    }
    if *create_namespace == Some(true) {
        args.push("--create-namespace".into());
    }
    (release, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_a_command_line_of_helm() {
        let chart =
            |json: serde_json::Value| -> HelmChart { serde_json::from_value(json).unwrap() };
        let line = |chart: &HelmChart| {
            let (_, args) = arguments(Path::new("/t/e2e.yaml"), chart);
            let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
            args.join(" ")
        };
        let local = chart(serde_json::json!({ "chart": "./charts/cache" }));
        assert_eq!(
            line(&local),
            "install cache /t/charts/cache --namespace default"
        );
        let remote = chart(serde_json::json!({
            "repo": "https://charts.example.org", "chart": "cache", "release": "c", "namespace": "n", "version": "1.2.3",
            "valueFiles": ["v.yaml"], "values": { "a": 1 }, "createNamespace": true,
        }));
        assert_eq!(
            line(&remote),
            "install c cache --namespace n --repo https://charts.example.org --version 1.2.3 --values /t/v.yaml --values - \
             --create-namespace"
        );
    }
}
