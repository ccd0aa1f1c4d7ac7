//! The chart that the binary contains.

use std::collections::BTreeSet;

use orkestra_charts::Chart;
use orkestra_language::api;
use orkestra_plan::rbac;
use serde_json::{Value, json};

/// The files of `charts/orkestra`, without those that follow from the program: see [`generated`].
pub(crate) const FILES: [(&str, &str); 18] = [
    (
        ".helmignore",
        include_str!("../../../../charts/orkestra/.helmignore"),
    ),
    (
        "Chart.yaml",
        include_str!("../../../../charts/orkestra/Chart.yaml"),
    ),
    (
        "values.schema.json",
        include_str!("../../../../charts/orkestra/values.schema.json"),
    ),
    (
        "values.yaml",
        include_str!("../../../../charts/orkestra/values.yaml"),
    ),
    (
        "files/dashboards/orkestra.json",
        include_str!("../../../../config/monitoring/dashboard.json"),
    ),
    (
        "templates/NOTES.txt",
        include_str!("../../../../charts/orkestra/templates/NOTES.txt"),
    ),
    (
        "templates/_helpers.tpl",
        include_str!("../../../../charts/orkestra/templates/_helpers.tpl"),
    ),
    (
        "templates/crds.yaml",
        include_str!("../../../../charts/orkestra/templates/crds.yaml"),
    ),
    (
        "templates/deployment.yaml",
        include_str!("../../../../charts/orkestra/templates/deployment.yaml"),
    ),
    (
        "templates/extra.yaml",
        include_str!("../../../../charts/orkestra/templates/extra.yaml"),
    ),
    (
        "templates/monitoring.yaml",
        include_str!("../../../../charts/orkestra/templates/monitoring.yaml"),
    ),
    (
        "templates/namespaces.yaml",
        include_str!("../../../../charts/orkestra/templates/namespaces.yaml"),
    ),
    (
        "templates/networkpolicy.yaml",
        include_str!("../../../../charts/orkestra/templates/networkpolicy.yaml"),
    ),
    (
        "templates/poddisruptionbudget.yaml",
        include_str!("../../../../charts/orkestra/templates/poddisruptionbudget.yaml"),
    ),
    (
        "templates/rbac.yaml",
        include_str!("../../../../charts/orkestra/templates/rbac.yaml"),
    ),
    (
        "templates/service.yaml",
        include_str!("../../../../charts/orkestra/templates/service.yaml"),
    ),
    (
        "templates/serviceaccount.yaml",
        include_str!("../../../../charts/orkestra/templates/serviceaccount.yaml"),
    ),
    (
        "templates/webhooks.yaml",
        include_str!("../../../../charts/orkestra/templates/webhooks.yaml"),
    ),
];

/// The file of the chart with the rules of its roles.
const RBAC_FILE: &str = "files/rbac.yaml";

/// Why the chart cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The chart or the values are refused.
    #[error("cannot render the chart: {0}")]
    Render(#[from] orkestra_charts::Error),
    /// A generated file cannot be written as YAML.
    #[error("cannot write {0} as YAML")]
    Yaml(&'static str),
}

/// Returns the chart.
///
/// # Errors
/// None that the files of the binary cause: tests load them.
pub fn chart() -> Result<Chart, ChartError> {
    let files = FILES.map(|(path, text)| (path.to_owned(), text.to_owned()));
    Ok(Chart::from_files(files.into_iter().chain(generated()?))?)
}

/// Returns the files of the chart that follow from the program: the CRDs, and the rules of the roles.
pub(crate) fn generated() -> Result<Vec<(String, String)>, ChartError> {
    let mut files = vec![(RBAC_FILE.to_owned(), rbac_yaml()?)];
    for definition in api::crds() {
        let plural = definition
            .pointer("/spec/names/plural")
            .and_then(Value::as_str);
        let yaml = serde_saphyr::to_string(&definition).map_err(|_| ChartError::Yaml("a CRD"))?;
        let path = format!("files/crds/{}.yaml", plural.unwrap_or_default());
        files.push((path, format!("---\n{yaml}")));
    }
    Ok(files)
}

/// Returns [`role_rules`] as the chart's file has them.
fn rbac_yaml() -> Result<String, ChartError> {
    let yaml = serde_saphyr::to_string(&role_rules()).map_err(|_| ChartError::Yaml(RBAC_FILE))?;
    Ok(format!(
        "# Generated: UPDATE=1 cargo test -p orkestra-admin --lib install. The rules of the chart's roles.\n{yaml}"
    ))
}

/// Returns the rules of the chart's roles: of the controller for Katalogs of all namespaces (`install`), or of some (`confined`), of
/// leader election, of claims, of webhooks that are on (`webhooks`) or off (`withdrawal`), and of people.
pub fn role_rules() -> Value {
    const ONE: &str = "one";
    let all = rbac::install(&BTreeSet::new());
    let some = rbac::install(&BTreeSet::from([ONE.into()]));
    let webhooks = rbac::webhooks();
    let mut people = rbac::roles_for_people();
    people.extend(readers());
    let people: Vec<Value> = people.iter().map(role).collect();
    json!({
        "install": { "cluster": all.cluster },
        "confined": { "cluster": some.cluster, "namespace": some.namespaces.get(ONE) },
        "election": rbac::election(),
        "claims": rbac::claims(),
        "webhooks": { "cluster": webhooks.cluster, "namespace": webhooks.namespaces.get(rbac::NAMESPACE) },
        "withdrawal": rbac::withdrawal(),
        "people": people,
    })
}

/// A role of [`role_rules`]: the last part of its name, its description and its rules.
fn role(manifest: &Value) -> Value {
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let prefix = format!("{}-", rbac::SERVICE_ACCOUNT);
    json!({
        "name": name.strip_prefix(&prefix).unwrap_or(name),
        "description": manifest["metadata"]["annotations"]["kubernetes.io/description"],
        "rules": manifest["rules"],
    })
}

/// Returns the cluster roles for readers of the HTTP port of the controller.
fn readers() -> [Value; 2] {
    let reader = |name: &str, description: &str, paths: &[&str]| {
        json!({
            "metadata": { "name": name, "annotations": { "kubernetes.io/description": description } },
            "rules": [{ "nonResourceURLs": paths, "verbs": ["get"] }],
        })
    };
    [
        reader(
            "metrics-reader",
            "Permits reading the metrics of Orkestra, and nothing of the cluster. Bind it to the service account of Prometheus.",
            &["/metrics"],
        ),
        reader(
            "katalog-reader",
            "Permits reading the names, statuses and any field of all custom resources that Orkestra operates, in all namespaces. \
             For a single Katalog, grant /katalog/NAMESPACE/NAME/* in a custom role.",
            &["/katalog", "/katalog/*", "/openapi/v3"],
        ),
    ]
}
