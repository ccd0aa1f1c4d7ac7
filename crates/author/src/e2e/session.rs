//! The cluster of a document: an existing one, or a control plane that is started once for all documents.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use kube::config::Kubeconfig;
use orkestra_cluster::{
    client::{self, ClusterOptions, Connection},
    requests::Cluster,
};
use orkestra_language::api::{
    E2eSpec,
    e2e::{ClusterProvider, DEFAULT_CLUSTER},
};
use tempfile::TempDir;

use super::{
    ASSETS, Choice, ControlPlaneError, E2eOptions, RunningControlPlane, TestProgress,
    control_plane::ControlPlane,
};

/// The timeout of the first request to a cluster.
const QUESTION: Duration = Duration::from_secs(10);
/// The prefix that kind adds to the name of a cluster in a kubeconfig.
const KIND: &str = "kind-";

/// The reason why there is no cluster.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is neither a cluster to use nor binaries to start one.
    #[error(
        "no cluster `{0}`: `ork` does not create kind clusters. Create it with `kind create cluster --name {0}` and pass \
         `--cluster {0}`; or pass `--use-current` to use the cluster of your kubeconfig; or name a folder with etcd, \
         kube-apiserver and kube-controller-manager as `--assets` or in ${ASSETS} to start a control plane"
    )]
    NoCluster(String),
    /// `freshCluster` needs binaries to start a separate cluster.
    #[error(
        "`freshCluster` needs a control plane that `ork` starts: leave out the flags that choose a cluster, and name a folder \
         with its binaries as `--assets` or in ${ASSETS}"
    )]
    NotFresh,
    /// The control plane does not start.
    #[error(transparent)]
    ControlPlane(#[from] ControlPlaneError),
    /// The cluster cannot be reached.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The kubeconfig cannot be read or written.
    #[error("cannot prepare the kubeconfig: {0}")]
    Kubeconfig(String),
}

/// A cluster in use.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    /// Requests of the test itself.
    pub(crate) cluster: Cluster,
    /// Environment variables for programs that use the cluster.
    pub(crate) variables: Vec<(OsString, OsString)>,
    control_plane: Option<Arc<ControlPlane>>,
    /// The folder of our own kubeconfig.
    _folder: Option<Arc<TempDir>>,
}

/// The clusters of a run.
pub(crate) struct Sessions<'o> {
    options: &'o E2eOptions,
    existing: Option<Session>,
    started: Option<Session>,
}

impl<'o> Sessions<'o> {
    pub(crate) fn new(options: &'o E2eOptions) -> Self {
        Self {
            options,
            existing: None,
            started: None,
        }
    }

    /// Returns the cluster of a document.
    pub(crate) async fn of(&mut self, spec: &E2eSpec) -> Result<Session, SessionError> {
        let declared = spec.cluster.clone().unwrap_or_default();
        let cluster = match &self.options.cluster {
            Choice::Current(cluster) => Some(cluster.clone()),
            Choice::Declared(cluster) => match declared.provider.unwrap_or_default() {
                ClusterProvider::Existing => Some(cluster.clone()),
                ClusterProvider::Kind => {
                    let name = declared.name.as_deref().unwrap_or(DEFAULT_CLUSTER);
                    let context = format!("{KIND}{name}");
                    let is_there = declared.reuse == Some(true) && has_context(cluster, &context);
                    if !is_there && self.options.assets.is_none() {
                        return Err(SessionError::NoCluster(name.to_owned()));
                    }
                    is_there.then(|| ClusterOptions {
                        context: Some(context),
                        ..cluster.clone()
                    })
                }
            },
        };
        match cluster {
            Some(cluster) => self.existing(&cluster).await,
            None => self.started().await,
        }
    }

    /// Sets the current cluster aside and returns it, if the document requires a new one.
    pub(crate) fn enter(&mut self, is_fresh: bool) -> Result<Option<Session>, SessionError> {
        if !is_fresh {
            return Ok(None);
        }
        let is_chosen = matches!(self.options.cluster, Choice::Current(_));
        if is_chosen || self.options.assets.is_none() {
            return Err(SessionError::NotFresh);
        }
        Ok(self.started.take())
    }

    /// Returns to the previous cluster, and stops the other one.
    pub(crate) async fn leave(&mut self, before: Option<Session>) {
        if before.is_some() {
            let own = std::mem::replace(&mut self.started, before);
            end(own).await;
        }
    }

    /// Stops everything that was started.
    pub(crate) async fn end(self) {
        end(self.started).await;
    }

    /// Returns the control plane that was started last, if any.
    pub(crate) fn into_kept(self) -> Option<RunningControlPlane> {
        let control_plane = self.started?.control_plane?;
        Some(RunningControlPlane {
            kubeconfig: control_plane.kubeconfig(),
            _control_plane: control_plane,
        })
    }

    async fn existing(&mut self, cluster: &ClusterOptions) -> Result<Session, SessionError> {
        if let Some(session) = &self.existing {
            return Ok(session.clone());
        }
        let connection = client::connect(cluster).await?;
        connection.check(QUESTION).await?;
        let (variables, folder) = environment(cluster)?;
        let session = Session {
            cluster: Cluster::new(connection.client.clone()),
            connection,
            variables,
            control_plane: None,
            _folder: folder.map(Arc::new),
        };
        // Documents may name different kind clusters.
        if matches!(self.options.cluster, Choice::Current(_)) {
            self.existing = Some(session.clone());
        }
        Ok(session)
    }

    async fn started(&mut self) -> Result<Session, SessionError> {
        if let Some(session) = &self.started {
            return Ok(session.clone());
        }
        let assets = self.options.assets.clone().unwrap_or_default();
        (self.options.progress)(TestProgress::Note("starting a control plane"));
        let control_plane = ControlPlane::start(&assets).await?;
        let cluster = ClusterOptions {
            kubeconfig: Some(control_plane.kubeconfig()),
            context: None,
        };
        let connection = client::connect(&cluster).await?;
        connection.check(QUESTION).await?;
        let mut variables = environment(&cluster)?.0;
        // The kubectl next to the servers has their version.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let assets = std::path::absolute(&assets).unwrap_or(assets);
        let folders = [assets].into_iter().chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            variables.push(("PATH".into(), path));
        }
        let session = Session {
            cluster: Cluster::new(connection.client.clone()),
            connection,
            variables,
            control_plane: Some(Arc::new(control_plane)),
            _folder: None,
        };
        self.started = Some(session.clone());
        Ok(session)
    }
}

/// Stops the control plane of a session that is not shared.
async fn end(session: Option<Session>) {
    let control_plane = session.and_then(|session| session.control_plane);
    if let Some(control_plane) = control_plane.and_then(Arc::into_inner) {
        control_plane.end().await;
    }
}

/// Names and values of environment variables.
type Variables = Vec<(OsString, OsString)>;

/// Environment variables that have programs use the cluster. Only a file can name a context for all of them.
fn environment(cluster: &ClusterOptions) -> Result<(Variables, Option<TempDir>), SessionError> {
    let variable = |path: PathBuf| vec![("KUBECONFIG".into(), path.into_os_string())];
    let Some(context) = &cluster.context else {
        let path = cluster.kubeconfig.clone();
        let path = path.map(|path| std::path::absolute(&path).unwrap_or(path));
        return Ok((path.map(variable).unwrap_or_default(), None));
    };
    let failed = |error: &dyn std::fmt::Display| SessionError::Kubeconfig(error.to_string());
    let mut kubeconfig = read(cluster).map_err(|error| failed(&error))?;
    kubeconfig.current_context = Some(context.clone());
    let folder = TempDir::new().map_err(|error| failed(&error))?;
    let path = folder.path().join("kubeconfig");
    let text = serde_json::to_string(&kubeconfig).map_err(|error| failed(&error))?;
    std::fs::write(&path, text).map_err(|error| failed(&error))?;
    Ok((variable(path), Some(folder)))
}

fn read(cluster: &ClusterOptions) -> Result<Kubeconfig, kube::config::KubeconfigError> {
    match &cluster.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    }
}

fn has_context(cluster: &ClusterOptions, name: &str) -> bool {
    read(cluster).is_ok_and(|kubeconfig| {
        let mut contexts = kubeconfig.contexts.iter();
        contexts.any(|context| context.name == name)
    })
}

/// Returns the context of a kind cluster.
pub fn kind_context(name: &str) -> String {
    format!("{KIND}{name}")
}
