//! The CRDs of this version and those of a cluster.

use orkestra_charts::Capabilities;
use orkestra_cluster::requests::{Cluster, ClusterError, Served};
use orkestra_language::api::{self, names};
use orkestra_object::value::Node;
use orkestra_plan::ObjectKey;
use semver::Version;
use serde::Serialize;
use serde_json::Value;

use super::{Error, apply::found};

/// A CRD of Orkestra's own kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnDefinition {
    /// Its name.
    pub name: String,
    /// The served versions of its kind.
    pub versions: Vec<String>,
    /// The version of Orkestra that wrote it.
    pub written_by: String,
    /// A hash of its content.
    pub schema: String,
}

/// How a CRD of the cluster compares with that of this version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "skew")]
pub enum Skew {
    /// The same.
    Same,
    /// It is not in the cluster.
    Missing,
    /// An older version of Orkestra wrote it.
    #[serde(rename_all = "camelCase")]
    Older {
        /// That version.
        written_by: String,
    },
    /// A newer version of Orkestra wrote it.
    #[serde(rename_all = "camelCase")]
    Newer {
        /// That version.
        written_by: String,
    },
    /// It has the same version and another content, or does not say its version.
    Different,
}

impl Skew {
    /// One sentence about the CRD of that name.
    pub fn sentence(&self, name: &str) -> String {
        match self {
            Self::Same => format!("CRD {name} is current"),
            Self::Missing => format!("CRD {name} does not exist"),
            Self::Older { written_by } => {
                format!("CRD {name} is older: it was written by version {written_by}")
            }
            Self::Newer { written_by } => {
                format!("CRD {name} is newer: it was written by version {written_by}")
            }
            Self::Different => format!("CRD {name} differs from that of this version"),
        }
    }
}

/// Returns the CRDs of this version.
pub fn definitions() -> Vec<OwnDefinition> {
    let text = |node: &Value| node.as_str().unwrap_or_default().to_owned();
    let read = |definition: Value| {
        let annotations = &definition["metadata"]["annotations"];
        let versions = definition["spec"]["versions"].as_array();
        let served = versions
            .into_iter()
            .flatten()
            .filter(|version| version["served"] == true);
        OwnDefinition {
            name: text(&definition["metadata"]["name"]),
            versions: served.map(|version| text(&version["name"])).collect(),
            written_by: text(&annotations[names::ANNOTATION_VERSION]),
            schema: text(&annotations[names::ANNOTATION_SCHEMA]),
        }
    };
    api::crds().into_iter().map(read).collect()
}

/// Compares the CRDs of a cluster with those of this version.
///
/// # Errors
/// Failures of the requests. A list of one name is requested: the controller itself may list CRDs, and may not get them.
pub async fn skews(cluster: &Cluster) -> Result<Vec<(OwnDefinition, Skew)>, Error> {
    let mut all = Vec::new();
    for own in definitions() {
        let live = listed(cluster, &own.name).await?;
        let skew = compare(&own, live.as_ref());
        all.push((own, skew));
    }
    Ok(all)
}

/// Returns the CRD of that name.
async fn listed(cluster: &Cluster, name: &str) -> Result<Option<Node>, Error> {
    let scope = orkestra_cluster::requests::Scope {
        fields: Some(format!("metadata.name={name}")),
        ..Default::default()
    };
    let page = cluster.list_page(&Served::crds(), &scope, 0, None).await;
    let page = page.map_err(Error::request("list", &format!("CRD {name}")))?;
    Ok(page.items.into_iter().next())
}

/// Compares a CRD of the cluster with that of this version.
pub(crate) fn compare(own: &OwnDefinition, live: Option<&Node>) -> Skew {
    let Some(live) = live else {
        return Skew::Missing;
    };
    if live.annotation(names::ANNOTATION_SCHEMA) == Some(&own.schema) {
        return Skew::Same;
    }
    let written_by = live
        .annotation(names::ANNOTATION_VERSION)
        .unwrap_or_default()
        .to_owned();
    let versions = (Version::parse(&written_by), Version::parse(&own.written_by));
    match versions {
        (Ok(live), Ok(own)) if live < own => Skew::Older { written_by },
        (Ok(live), Ok(own)) if live > own => Skew::Newer { written_by },
        _ => Skew::Different,
    }
}

/// Returns the versions in which the cluster stores objects of a CRD and that `own` does not have.
pub(crate) async fn dropped_versions(
    cluster: &Cluster,
    own: &OwnDefinition,
) -> Result<Vec<String>, Error> {
    let key = ObjectKey {
        namespace: None,
        name: own.name.as_str().into(),
    };
    let live = found(cluster.get(&Served::crds(), &key).await)
        .map_err(Error::request("read", &format!("CRD {}", own.name)))?;
    let stored = live
        .as_ref()
        .and_then(|live| live.get("status")?.get("storedVersions")?.as_list());
    let stored = stored.into_iter().flatten().filter_map(Node::as_str);
    let is_dropped = |version: &&str| !own.versions.iter().any(|one| one == version);
    Ok(stored.filter(is_dropped).map(str::to_owned).collect())
}

/// Returns what a chart reads about the cluster.
///
/// # Errors
/// The API server did not answer.
pub async fn capabilities(cluster: &Cluster) -> Result<Capabilities, ClusterError> {
    Ok(Capabilities {
        kube_version: cluster.server_version().await?,
        ..Capabilities::default()
    })
}
