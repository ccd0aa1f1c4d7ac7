//! Shows what a Katalog would do to every live custom resource: `ork plan`. Read-only, and without a dry run: it needs permission to
//! read, and decides with the pass and the comparison that run in a cluster.
//!
//! ```text
//!  Katalogs ── validate ──► plans ─┐
//!  custom resources, their children┼──► forecast, instance by instance ──► writes ── group ──► PlanGroup: alike instances, once
//!  (one list for each kind) ───────┘
//! ```

mod cluster;
mod group;
mod print;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use jiff::Timestamp;
use orkestra_cluster::requests::Cluster;
use orkestra_language::diagnostics::Diagnostics;
use orkestra_registry::artifact::Summary;
use serde::Serialize;

pub(crate) use self::{
    cluster::{Forecast, Selection, Survey, Surveyed},
    group::planned_changes,
    print::change_lines,
};
pub use self::{
    group::{PlanGroup, PlannedChange, PlannedField, Severity},
    print::{markdown, text},
};
use crate::{
    live::{Error, LiveCluster},
    publish::summary,
    render::{Rendered, read_calls},
};
use orkestra_loader::{compose::Fetch, files};

/// The input of a plan; `-` is standard input.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// Katalogs, and definitions that they do not reference.
    pub katalogs: Vec<PathBuf>,
    /// The namespace of the custom resources; all namespaces if there is none.
    pub namespace: Option<String>,
    /// Responses to external calls and hooks: a map by name.
    pub calls: Option<PathBuf>,
    /// Whether values of Secrets are shown.
    pub secrets: bool,
    /// The present time for templates.
    pub now: Timestamp,
    /// Fetches the sources of compositions.
    pub fetch: Arc<dyn Fetch>,
}

/// What a Katalog would do.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// Custom resources that change alike, those with deletions first.
    pub groups: Vec<PlanGroup>,
    /// The number of custom resources that were looked at.
    pub instances: usize,
    /// The number of custom resources that change.
    pub changed: usize,
    /// The number of children that would be deleted or replaced.
    pub deletions: usize,
    /// The number of existing children.
    pub children: usize,
    /// What the Katalogs declare and need; none if they are not valid.
    #[serde(skip)]
    pub summary: Option<Summary>,
    /// Name and namespace of the Katalog, if it is one.
    #[serde(skip)]
    pub katalog: Option<(String, Option<String>)>,
    /// Problems of the files and of rendering, including warnings.
    #[serde(skip)]
    pub problems: Diagnostics,
    /// The texts of the files by name.
    #[serde(skip)]
    pub texts: BTreeMap<String, String>,
}

/// Decides what the Katalogs would do to the custom resources of a cluster.
///
/// # Errors
/// The cluster does not answer, or refuses a request.
pub async fn plan(cluster: &Cluster, request: &PlanRequest) -> Result<Planned, Error> {
    let found = files::validate_with(&request.katalogs, &*request.fetch).await;
    let mut rendered = Rendered {
        passes: Vec::new(),
        problems: found.problems,
        texts: found.texts,
    };
    let calls = read_calls(request.calls.as_slice(), &found.katalogs, &mut rendered);
    let all: Vec<_> = found.katalogs.iter().collect();
    let mut planned = Planned {
        summary: summary::of_katalogs(&all).map(|(summary, _)| summary),
        katalog: match &all[..] {
            [one] => Some((one.document.name.clone(), one.document.namespace.clone())),
            _ => None,
        },
        problems: rendered.problems,
        texts: rendered.texts,
        ..Planned::default()
    };
    if planned.problems.has_errors() {
        return Ok(planned);
    }
    let survey = Survey {
        cluster: LiveCluster::new(cluster.clone()),
        of: Selection::Namespace(request.namespace.as_deref()),
        calls: &calls,
        now: request.now,
    };
    let mut instances = Vec::new();
    for katalog in &found.katalogs {
        for operator in &katalog.plan.operators {
            let of_operator = survey.instances(katalog, operator, &mut planned).await?;
            instances.extend(of_operator);
        }
    }
    planned.instances += instances.len();
    planned.changed = instances.iter().filter(|one| !one.is_empty()).count();
    planned.deletions = instances.iter().map(group::Instance::deletions).sum();
    planned.groups = group::groups(instances, request.secrets);
    Ok(planned)
}
