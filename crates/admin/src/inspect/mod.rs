//! The state of a cluster, read with the caller's own permissions: trees of objects, lists, Events, logs, rates. Reads only.
//!
//! ```text
//!  KIND/NAME ── Reader ──► the object ── tree ──► its children by proof of ownership, the Pods behind them, the health of each
//!                 └── a list that is refused: `Unavailable`, with the missing permission; the rest is shown
//! ```
//!
//! Lists are read page by page, and only the fields that are shown; what is kept of them is limited.

mod controllers;
mod describe;
mod events;
mod health;
mod list;
mod logs;
mod reader;
mod top;
mod tree;

use orkestra_cluster::requests::{ClusterError, Served};
use orkestra_object::{ObjectKey, value::Node};
use serde::Serialize;

pub use self::{
    controllers::{ControllerPod, Installation},
    describe::{DescribedOperator, Description, describe},
    events::{EventFollower, EventRow, Events, EventsRequest, events},
    health::{Health, HealthStatus},
    list::{
        Column, Content, Followed, Follower, ListChange, ListRequest, Listing, Subject, columns,
        list,
    },
    logs::{LogFilter, LogLine, LogRequest, logs},
    reader::Reader,
    top::{Sample, Top, TopRow, sample},
    tree::{Tree, TreeNode, tree},
};

/// An object of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version, such as `apps/v1`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; none if it is cluster-scoped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid; none for an operator, which is an entry of a Katalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl ObjectRef {
    /// The object of that kind and key.
    fn new(kind: &Served, key: &ObjectKey, uid: Option<&str>) -> Self {
        Self {
            api_version: kind.api_version(),
            kind: kind.kind.to_string(),
            namespace: key.namespace.as_deref().map(str::to_owned),
            name: key.name.to_string(),
            uid: uid.map(str::to_owned),
        }
    }

    /// The object with that content.
    fn of(kind: &Served, object: &Node) -> Self {
        Self::new(kind, &ObjectKey::of(object), object.meta_text("uid"))
    }
}

/// A permission that the caller lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingPermission {
    /// The verb, such as `list`.
    pub verb: String,
    /// The resource, such as `deployments.apps`.
    pub resource: String,
    /// The namespace; none for all namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A part of the answer that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unavailable {
    /// The part, such as `Secrets in namespace shop`.
    pub what: String,
    /// The missing permission, if that is the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<MissingPermission>,
    /// The cause.
    pub message: String,
}

impl Unavailable {
    /// The part that a refused request was about.
    pub(crate) fn of(what: String, error: &ClusterError) -> Self {
        let ClusterError::Forbidden {
            verb,
            resource,
            group,
            namespace,
            ..
        } = error
        else {
            return Self {
                what,
                permission: None,
                message: error.to_string(),
            };
        };
        let resource = match &**group {
            "" => resource.clone(),
            group => format!("{resource}.{group}"),
        };
        let place = match namespace {
            Some(namespace) => format!("in namespace {namespace}"),
            None => "in all namespaces".to_owned(),
        };
        Self {
            what,
            message: format!("missing permission: {verb} {resource} {place}"),
            permission: Some(MissingPermission {
                verb: (*verb).to_owned(),
                resource,
                namespace: namespace.clone(),
            }),
        }
    }

    /// A part that is omitted because there is too much of it.
    pub(crate) fn beyond(what: String, most: usize) -> Self {
        Self {
            what,
            permission: None,
            message: format!("only the first {most} are read"),
        }
    }
}

/// `not shown: Secrets in namespace shop: missing permission: list secrets in namespace shop`.
impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not shown: {}: {}", self.what, self.message)
    }
}
