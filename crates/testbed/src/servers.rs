//! The servers' command lines, with the reason for each flag that differs from Kubernetes' default.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::assets::Assets;
use crate::guard::{Guarded, spawn_guarded};
use crate::ports::free_port;

/// The values from which the command lines are built.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) assets: Assets,
    pub(crate) folder: PathBuf,
    pub(crate) api_arguments: &'static [&'static str],
}

/// The ports of one control plane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) api: u16,
}

impl Ports {
    pub(crate) fn choose() -> Result<Self> {
        Ok(Self {
            etcd: free_port()?,
            api: free_port()?,
        })
    }
}

impl Site {
    /// Returns a path in the data folder, as an argument.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    pub(crate) fn pki(&self) -> PathBuf {
        self.folder.join("pki")
    }

    pub(crate) fn spawn(&self, name: &str, args: &[String]) -> Result<Guarded> {
        self.spawn_as(name, name, args)
    }

    /// Starts the binary `name`. `role` is the name of its log.
    fn spawn_as(&self, role: &str, name: &str, args: &[String]) -> Result<Guarded> {
        let mut command = Command::new(self.assets.binary(name)?);
        // Run the server in its data folder, so that it does not depend on the test's folder and leaves no file there.
        command.args(args).current_dir(&self.folder).envs(MEMORY);
        spawn_guarded(
            &command,
            &self.folder.join("logs").join(format!("{role}.log")),
        )
    }

    pub(crate) fn etcd(&self, ports: Ports) -> Result<Guarded> {
        let client = format!("http://127.0.0.1:{}", ports.etcd);
        // There are no other members, so the peer port does not matter.
        let peers = "http://127.0.0.1:0";
        self.spawn(
            "etcd",
            &[
                "--name=default".to_owned(),
                format!("--data-dir={}", self.path("etcd")),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peers}"),
                format!("--initial-advertise-peer-urls={peers}"),
                format!("--initial-cluster=default={peers}"),
                // The data is removed with the process, so it need not survive a power cut.
                "--unsafe-no-fsync".to_owned(),
                "--log-level=error".to_owned(),
            ],
        )
    }

    pub(crate) fn api_server(&self, ports: Ports) -> Result<Guarded> {
        let mut arguments = self.api_arguments(ports);
        arguments.extend(self.api_arguments.iter().map(ToString::to_string));
        self.spawn("kube-apiserver", &arguments)
    }

    fn api_arguments(&self, ports: Ports) -> Vec<String> {
        vec![
            format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", ports.api),
            format!("--tls-cert-file={}", self.path("pki/server.crt")),
            format!("--tls-private-key-file={}", self.path("pki/server.key")),
            format!("--client-ca-file={}", self.path("pki/ca.crt")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!(
                "--service-account-key-file={}",
                self.path("pki/accounts.pub")
            ),
            format!(
                "--service-account-signing-key-file={}",
                self.path("pki/accounts.key")
            ),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            // Pods need no token, because no kubelet would mount it. Without this plugin a new namespace accepts pods at once.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            // The Service `kubernetes` must not refer to a loopback address.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--audit-policy-file={}", self.path("audit-policy.yaml")),
            format!("--audit-log-path={}", self.path("audit.log")),
            // The log line is written before the client gets its answer.
            "--audit-log-mode=blocking".to_owned(),
            // In MB: the log is never rotated.
            "--audit-log-maxsize=1000000".to_owned(),
        ]
    }

    /// Starts all controllers except the garbage collector.
    pub(crate) fn controller_manager(&self, kubeconfig: &Path) -> Result<Guarded> {
        self.controllers("kube-controller-manager", &CONTROLLERS, kubeconfig)
    }

    /// Starts only the garbage collector: see [`crate::ControlPlane::relearn_kinds`].
    pub(crate) fn garbage_collector(&self, kubeconfig: &Path) -> Result<Guarded> {
        self.controllers("garbage-collector", &["garbagecollector"], kubeconfig)
    }

    fn controllers(&self, role: &str, controllers: &[&str], kubeconfig: &Path) -> Result<Guarded> {
        self.spawn_as(
            role,
            "kube-controller-manager",
            &[
                format!("--kubeconfig={}", kubeconfig.display()),
                format!(
                    "--service-account-private-key-file={}",
                    self.path("pki/accounts.key")
                ),
                format!("--root-ca-file={}", self.path("pki/ca.crt")),
                "--leader-elect=false".to_owned(),
                // The fake node is never considered lost. While no API server answers, its lease cannot be renewed; pods that
                // were then marked unready would stay so, because no kubelet marks them ready again.
                "--node-monitor-grace-period=24h".to_owned(),
                // The garbage collector lists every kind at its start; the default of 20 requests per second is too slow.
                "--kube-api-qps=1000".to_owned(),
                "--kube-api-burst=2000".to_owned(),
                // No test reads its metrics.
                "--secure-port=0".to_owned(),
                format!("--controllers={}", controllers.join(",")),
            ],
        )
    }

    pub(crate) fn scheduler(&self, kubeconfig: &Path) -> Result<Guarded> {
        self.spawn(
            "kube-scheduler",
            &[
                format!("--kubeconfig={}", kubeconfig.display()),
                "--leader-elect=false".to_owned(),
                "--secure-port=0".to_owned(),
            ],
        )
    }
}

/// Settings of Go's runtime that use more memory and less CPU time: by default the garbage collector takes a quarter of the API
/// server's CPU time with hundreds of kinds installed. Near the memory limit it collects as often as by default.
///
/// Source: package `runtime`, "Environment Variables".
const MEMORY: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "2GiB")];

/// The controllers that create children, count them or delete them. Controllers that need a cloud, a network or a kubelet are
/// left out.
const CONTROLLERS: [&str; 18] = [
    "clusterrole-aggregation",
    "cronjob",
    "daemonset",
    "deployment",
    "disruption",
    "endpoint",
    "endpointslice",
    "job",
    "namespace",
    "nodelifecycle",
    "persistentvolume-binder",
    "podgc",
    "replicaset",
    "replicationcontroller",
    "resourcequota",
    "serviceaccount",
    "statefulset",
    "ttl-after-finished",
];
