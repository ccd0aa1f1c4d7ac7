//! Checks `setup`, which `ork run` applies before an operator starts.

use super::kinds;
use crate::{
    api::{HelmChart, Setup, SetupWait},
    diagnostics::Code,
    resources::scope::At,
};

/// Checks the block at `at`: without an API version, only built-in kinds are known.
pub(super) fn check(at: &At<'_>, setup: &Setup) {
    let files = match setup {
        Setup::Files(_) => at.clone(),
        Setup::Steps(_) => at.field("apply"),
    };
    let of_files = setup.files().iter().enumerate();
    let of_files = of_files.map(|(index, file)| (files.index(index).field("wait"), file.wait()));
    let charts = setup.charts().iter().enumerate();
    let charts = charts.map(|(index, declared)| {
        let at = at.field("helm").index(index);
        chart(&at, declared);
        (at.field("wait"), &*declared.wait)
    });
    for (at, wait) in of_files
        .chain(charts)
        .chain([(at.field("wait"), setup.wait())])
    {
        for (index, object) in wait.iter().enumerate() {
            one(&at.index(index), object);
        }
    }
}

/// Refuses charts that are not beside the Katalog.
fn chart(at: &At<'_>, chart: &HelmChart) {
    if chart.chart.trim().is_empty() {
        at.field("chart").error(Code::Empty, "this is empty");
    }
    let is_remote = chart.repo.is_some() || chart.chart.starts_with("oci://");
    if is_remote {
        let field = if chart.repo.is_some() {
            "repo"
        } else {
            "chart"
        };
        at.field(field).error_hint(
            Code::NotSupportedYet,
            "charts of repositories and registries are not fetched",
            "run `helm pull` with `--untar`, and name the folder under `chart`",
        );
    } else if let Some(version) = &chart.version {
        let message = format!(
            "the chart is beside the Katalog: version {version} is not compared with its own"
        );
        at.field("version").warn(Code::NoEffect, message);
    }
}

fn one(at: &At<'_>, object: &SetupWait) {
    let SetupWait {
        api_version,
        kind,
        name,
        namespace: _,
        ready: _,
        timeout: _,
    } = object;
    for (field, text) in [("kind", kind), ("name", name)] {
        if text.trim().is_empty() {
            at.field(field).error(Code::Empty, "this is empty");
        }
    }
    if api_version.is_none() && !kind.trim().is_empty() && kinds::named(kind).is_none() {
        at.field("kind").error_hint(
            Code::Missing,
            format!("{kind} is not a kind of Kubernetes itself: its `apiVersion` is missing"),
            "add `apiVersion: GROUP/VERSION`",
        );
    }
}
