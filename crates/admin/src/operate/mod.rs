//! Requests to the controller about one object: suspend it, resume it, reconcile it now.
//!
//! ```text
//!  KIND/NAME ── object ──► the kind, as the API server serves it
//!                 └── suspend, resume, reconcile ──► an annotation, which the controller reads
//! ```
//!
//! An annotation and no field: `.spec` belongs to the client that applied the object, such as Argo CD or Flux.

mod object;

use orkestra_cluster::requests::{Cluster, ClusterError, Served};
use orkestra_engine::reconcile::requested::LAST_HANDLED;
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::ObjectKey;
use serde_json::json;

pub use self::object::{ObjectName, find};

/// The field manager of the annotations.
const MANAGER: &str = "ork";

/// Why a request was not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server serves no such kind.
    #[error("the API server serves no kind `{kind}`{}", near.as_ref().map(|near| format!(": {near}")).unwrap_or_default())]
    UnknownKind {
        /// The kind.
        kind: String,
        /// A question about a similar one.
        near: Option<String>,
    },
    /// Several kinds have that name.
    #[error("`{kind}` is ambiguous: {}", candidates.join(", "))]
    AmbiguousKind {
        /// The kind.
        kind: String,
        /// The kinds, as `PLURAL.GROUP`.
        candidates: Vec<String>,
    },
    /// The API server did not say which kinds it serves.
    #[error("cannot read the kinds that the API server serves: {0}")]
    Discovery(#[from] kube::Error),
    /// A request failed.
    #[error("cannot {what}: {source}")]
    Request {
        /// Verb and object.
        what: String,
        /// The cause.
        source: Box<ClusterError>,
    },
    /// The annotation is not what suspends it.
    #[error(
        "`spec.suspend` of {0} is true: change it where the object comes from, since the client that applied it would set it again"
    )]
    SuspendedBySpec(String),
    /// A suspended object is not reconciled.
    #[error("{0} is suspended: `ork resume {0}` first")]
    Suspended(String),
}

impl Error {
    /// True if the API server did not answer.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Request { source, .. } => matches!(**source, ClusterError::Unavailable(_)),
            Self::Discovery(error) => {
                matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_))
            }
            _ => false,
        }
    }
}

/// An object of a cluster that is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Its kind.
    pub served: &'a Served,
    /// Its namespace and name.
    pub key: &'a ObjectKey,
}

impl Target<'_> {
    /// Suspends the object. False if it was suspended before: nothing is written then.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn suspend(&self) -> Result<bool, Error> {
        if is_suspended(&self.read().await?) {
            return Ok(false);
        }
        self.annotate("suspend", names::ANNOTATION_SUSPEND, Some("true"))
            .await?;
        Ok(true)
    }

    /// Resumes the object. False if it was not suspended: nothing is written then.
    ///
    /// # Errors
    /// [`Error::SuspendedBySpec`], [`Error::Request`].
    pub async fn resume(&self) -> Result<bool, Error> {
        let object = self.read().await?;
        let was = object.annotation(names::ANNOTATION_SUSPEND).is_some();
        if was {
            self.annotate("resume", names::ANNOTATION_SUSPEND, None)
                .await?;
        }
        if is_suspended_by_spec(self.served, &object) {
            return Err(Error::SuspendedBySpec(self.title()));
        }
        Ok(was)
    }

    /// Requests a pass. Returns the value that `status.lastHandledReconcileAt` has once it is done.
    ///
    /// # Errors
    /// [`Error::Suspended`], [`Error::Request`].
    pub async fn reconcile(&self, now: jiff::Timestamp) -> Result<String, Error> {
        let object = self.read().await?;
        if is_suspended(&object) || is_suspended_by_spec(self.served, &object) {
            return Err(Error::Suspended(self.title()));
        }
        let requested = now.to_string();
        self.annotate("reconcile", names::ANNOTATION_RECONCILE, Some(&requested))
            .await?;
        Ok(requested)
    }

    /// Returns the request that its status reports as handled.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn handled(&self) -> Result<Option<String>, Error> {
        let object = self.read().await?;
        let handled = object
            .get("status")
            .and_then(|status| status.get(LAST_HANDLED)?.as_str());
        Ok(handled.map(str::to_owned))
    }

    /// Returns `pond.water.example/north`, as kubectl prints it and commands take it.
    pub fn title(&self) -> String {
        let kind = self.served.kind.to_lowercase();
        let group = match &*self.served.group {
            "" => String::new(),
            group => format!(".{group}"),
        };
        format!("{kind}{group}/{}", self.key.name)
    }

    async fn read(&self) -> Result<Node, Error> {
        let read = self.cluster.get(self.served, self.key).await;
        read.map_err(|source| self.failed("read", source))
    }

    async fn annotate(&self, what: &str, name: &str, value: Option<&str>) -> Result<(), Error> {
        let body = Node::from(&json!({ "metadata": { "annotations": { name: value } } }));
        let written = self
            .cluster
            .merge_patch(self.served, self.key, None, MANAGER, &body)
            .await;
        written.map_err(|source| self.failed(what, source))?;
        Ok(())
    }

    fn failed(&self, what: &str, source: ClusterError) -> Error {
        Error::Request {
            what: format!("{what} {}", self.title()),
            source: Box::new(source),
        }
    }
}

fn is_suspended(object: &Node) -> bool {
    object.annotation(names::ANNOTATION_SUSPEND) == Some("true")
}

/// True if it is a Katalog or Komposer whose field suspends it: other kinds may have a field of that name, with a meaning of
/// their own.
fn is_suspended_by_spec(served: &Served, object: &Node) -> bool {
    let spec = object.get("spec");
    *served.group == *names::GROUP
        && spec.and_then(|spec| spec.get("suspend")) == Some(&Node::Bool(true))
}
