//! Checks `setup`, which `ork run` applies before an operator starts.

use crate::scope::At;
use orkestra_language::{
    api::{HelmChart, Setup, SetupWait},
    diagnostics::Code,
};
use orkestra_plan::kinds;

/// Checks the block at `at`: without an API version, only built-in kinds are known.
pub(crate) fn check(at: &At<'_>, setup: &Setup) {
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
            compile_step(&at.index(index), object);
        }
    }
}

/// Checks a chart: a name in a repository, a reference of a registry, or a path beside the Katalog.
fn chart(at: &At<'_>, chart: &HelmChart) {
    let name = chart.chart.trim();
    if name.is_empty() {
        at.field("chart").error(Code::Empty, "the value is empty");
    }
    let is_path = name.starts_with(['.', '/']);
    match &chart.repo {
        Some(repo) if repo.trim().is_empty() => {
            at.field("repo").error(Code::Empty, "the value is empty");
        }
        Some(_) if is_path => at.field("chart").error_hint(
            Code::WrongValue,
            "a chart from a repository is identified by its name, not by a path",
            "write the chart's name, or remove `repo` for a chart beside the Katalog",
        ),
        Some(repo)
            if !["https://", "http://", "oci://"]
                .iter()
                .any(|known| repo.starts_with(known)) =>
        {
            at.field("repo").error_hint(
                Code::WrongValue,
                format!("`{repo}` is not the URL of a chart repository"),
                "write `https://…`, or `oci://…` for a registry",
            );
        }
        Some(_) => {}
        None if name.starts_with("oci://") => {}
        None => {
            if let Some(version) = &chart.version {
                let message = format!(
                    "the chart is a local one: version {version} is not compared with that of the chart"
                );
                at.field("version").warn(Code::NoEffect, message);
            }
        }
    }
}

fn compile_step(at: &At<'_>, object: &SetupWait) {
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
            at.field(field).error(Code::Empty, "the value is empty");
        }
    }
    if api_version.is_none() && !kind.trim().is_empty() && kinds::named(kind).is_none() {
        at.field("kind").error_hint(
            Code::Missing,
            format!("{kind} is not a built-in kind: its `apiVersion` is missing"),
            "add `apiVersion: GROUP/VERSION`",
        );
    }
}
