//! Installs, upgrades and removes Orkestra with the chart that the binary contains.
//!
//! ```text
//!  chart ── render ──► ManifestObject… ── preflight ──► apply ──► prune ──► wait
//!  values              in order            reads only    CRDs first, then what needs them
//! ```
//!
//! The chart in `charts/orkestra` is the only source: `install.yaml`, `config/` and `ork install` are renderings of it. The objects
//! of an installation are listed in a `ConfigMap`, by which a later `ork install` prunes and `ork uninstall` removes.

mod apply;
mod chart;
mod controllers;
mod inventory;
mod manifests;
mod objects;
mod preflight;
mod remove;
mod skew;
#[cfg(test)]
mod tests;
mod unavailable;

pub use apply::{Apply, ApplyOutcome, DryRun, apply, wait};
pub use chart::{ChartError, chart, role_rules};
pub use controllers::{ControllerVersion, controllers};
pub use inventory::{INVENTORY, Inventory};
pub use manifests::{ImageError, Manifests, ManifestsRequest, SetError, image_values, render};
pub use objects::{ManifestObject, ObjectError};
pub use preflight::{Finding, Level, preflight};
pub use remove::{Remains, Removal, remove, withdraw};
pub use skew::{OwnDefinition, Skew, capabilities, definitions, skews};

use orkestra_cluster::requests::ClusterError;

/// Field manager of `ork install`.
pub const MANAGER: &str = "ork-install";
/// Name of the release of `ork install`, and so of its objects.
pub const RELEASE: &str = "orkestra";

/// Why an installation stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The chart cannot be rendered with the values.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// A rendered document is not an object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A request failed.
    #[error("cannot {verb} {object}")]
    Request {
        /// What was attempted.
        verb: &'static str,
        /// The object, or the objects.
        object: String,
        /// The cause.
        source: Box<ClusterError>,
    },
    /// Other field managers hold fields of an object.
    #[error(
        "cannot apply {object}: other field managers own fields of it: {fields}; `--force-conflicts` takes them over"
    )]
    Conflict {
        /// The object.
        object: String,
        /// The fields with their managers.
        fields: String,
    },
    /// A Deployment is not available in time.
    #[error("{object} did not become available within the timeout: {why}")]
    NotAvailable {
        /// The Deployment.
        object: String,
        /// The reason that it or its Pods have.
        why: String,
    },
    /// The deadline passed.
    #[error("{0} within the timeout")]
    Late(String),
    /// No installation of `ork install` was found.
    #[error("{0}")]
    Absent(String),
    /// Katalogs exist whose custom resources have finalizers.
    #[error("{0}")]
    InUse(String),
}

impl Error {
    /// True if the API server did not answer.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Request { source, .. } if matches!(**source, ClusterError::Unavailable(_)))
    }

    /// True if the API server does not serve the kind of the object.
    fn is_not_served(&self) -> bool {
        matches!(self, Self::Request { source, .. } if matches!(**source, ClusterError::NotServed(_)))
    }

    fn request(
        verb: &'static str,
        object: &(impl ToString + ?Sized),
    ) -> impl FnOnce(ClusterError) -> Self {
        let object = object.to_string();
        move |source| Self::Request {
            verb,
            object,
            source: Box::new(source),
        }
    }
}
