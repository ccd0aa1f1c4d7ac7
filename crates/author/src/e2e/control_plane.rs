//! A control plane for tests: etcd, kube-apiserver and kube-controller-manager on loopback, from given binaries.
//!
//! It has no scheduler and no nodes: Pods stay `Pending`, so workloads do not become ready.

use std::{
    ffi::OsStr,
    io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use jiff::Timestamp;
use orkestra_cluster::client::{self, ClusterOptions};
use orkestra_engine::reconcile::sources::{CERTIFICATE_PARTS, Certificate};
use orkestra_ground::Entropy;
use orkestra_object::value::hex_digits;
use orkestra_plan::{ChildKey, GroupKind, ObjectKey};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use orkestra_operator::certificates;

/// The environment variable with the folder of the binaries, as for envtest.
pub const ASSETS: &str = "KUBEBUILDER_ASSETS";
const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";
const CONTROLLERS: &str = "kube-controller-manager";
/// The binaries.
const BINARIES: [&str; 3] = [ETCD, API_SERVER, CONTROLLERS];
/// The timeout for the start, which takes seconds on an idle machine, much longer on a busy one.
const PATIENCE: Duration = Duration::from_mins(2);
/// The polling interval during the start.
const PERIOD: Duration = Duration::from_millis(100);
/// The timeout of one poll.
const QUESTION: Duration = Duration::from_secs(5);
/// The validity of its certificate.
const VALID: Duration = Duration::from_hours(24 * 30);
/// The number of attempts to choose ports, because another process may take one first.
const ATTEMPTS: usize = 3;

/// Runs a program and ends it when standard input closes, which happens whenever and however this process ends. The shell
/// exits with the program's exit code.
const GUARD: &str = r#"exec 3<&0 </dev/null
"$0" "$@" 3<&- & program=$!
{ cat <&3 >/dev/null; kill -s KILL "$program"; } 2>/dev/null & watch=$!
exec 3<&-
wait "$program"; code=$?
kill "$watch" 2>/dev/null
exit "$code""#;

/// The reason why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    /// A binary is missing.
    #[error("{} has no executable `{binary}`; it must hold {}", folder.display(), BINARIES.join(", "))]
    NoBinary {
        /// The given folder.
        folder: PathBuf,
        /// The binary.
        binary: &'static str,
    },
    /// A file cannot be written, or a program cannot be started.
    #[error("cannot start the control plane")]
    Io(#[from] io::Error),
    /// Its certificate cannot be created.
    #[error("cannot make the certificate of the control plane: {0}")]
    Certificate(String),
    /// A server exited.
    #[error("{name} ended:\n{log}")]
    Ended {
        /// The server.
        name: &'static str,
        /// The end of its log.
        log: String,
    },
    /// The start timed out.
    #[error("the control plane is not ready after {} s", PATIENCE.as_secs())]
    Late,
    /// A client cannot be created.
    #[error(transparent)]
    Client(#[from] client::Error),
}

/// A running control plane. It ends when this is dropped, at the latest when this process ends.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    /// The API server is first, so that it ends before etcd and never serves requests from an empty etcd.
    servers: Vec<(&'static str, Child)>,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts the binaries in a folder and waits until they are ready.
    pub(crate) async fn start(assets: &Path) -> Result<Self, ControlPlaneError> {
        for binary in BINARIES {
            if !assets.join(binary).is_file() {
                return Err(ControlPlaneError::NoBinary {
                    folder: assets.to_owned(),
                    binary,
                });
            }
        }
        let mut attempt = 1;
        loop {
            match Self::start_once(assets).await {
                Err(ControlPlaneError::Ended { log, .. })
                    if attempt < ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                started => return started,
            }
        }
    }

    async fn start_once(assets: &Path) -> Result<Self, ControlPlaneError> {
        let folder = tempfile::Builder::new().prefix("ork-e2e-").tempdir()?;
        let [api_port, etcd_port] = free_ports()?;
        let mut this = Self {
            servers: Vec::new(),
            folder,
        };
        this.write_files(api_port)?;
        this.serve(assets, ETCD, &this.etcd(etcd_port))?;
        this.serve(assets, API_SERVER, &this.api_server(api_port, etcd_port))?;
        this.until_ready().await?;
        this.serve(assets, CONTROLLERS, &this.controllers())?;
        this.until_default().await?;
        Ok(this)
    }

    /// Returns the path of the administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Writes the certificate, keys, token and kubeconfig.
    fn write_files(&self, api_port: u16) -> Result<(), ControlPlaneError> {
        let failed = |error: rcgen::Error| ControlPlaneError::Certificate(error.to_string());
        let now = Timestamp::now();
        let parts = certificates::issue(&Certificate {
            holder: ChildKey {
                kind: GroupKind::parse("Secret"),
                object: ObjectKey {
                    namespace: None,
                    name: "control-plane".into(),
                },
            },
            common_name: Some(API_SERVER.to_owned()),
            hosts: vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
            not_before: now,
            not_after: now + VALID,
        });
        let parts = parts.map_err(failed)?;
        for name in CERTIFICATE_PARTS {
            let text = parts.get(name).map(String::as_str).unwrap_or_default();
            std::fs::write(self.folder.path().join(name), text)?;
        }
        let accounts = rcgen::KeyPair::generate().map_err(failed)?;
        let write = |name: &str, text: &str| std::fs::write(self.folder.path().join(name), text);
        write("accounts.key", &accounts.serialize_pem())?;
        write("accounts.pub", &accounts.public_key_pem())?;
        let secret = Entropy::system().seed();
        let token: String = hex_digits(&secret).map(char::from).collect();
        write(
            "tokens.csv",
            &format!("{token},ork-e2e,ork-e2e,system:masters\n"),
        )?;
        let ca = self.path(CERTIFICATE_PARTS[2]);
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: ork-e2e\nclusters:\n- name: ork-e2e\n  cluster:\n    server: \
             https://127.0.0.1:{api_port}\n    certificate-authority: {ca}\ncontexts:\n- name: ork-e2e\n  context:\n    cluster: \
             ork-e2e\n    user: ork-e2e\nusers:\n- name: ork-e2e\n  user:\n    token: {token}\n"
        );
        write("kubeconfig", &kubeconfig)?;
        Ok(())
    }

    fn etcd(&self, port: u16) -> Vec<String> {
        let clients = format!("http://127.0.0.1:{port}");
        // No other member connects, so any peer port works.
        let peers = "http://127.0.0.1:0";
        vec![
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            // The data is not needed after the process ends, so a power failure may destroy it.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=error".to_owned(),
        ]
    }

    fn api_server(&self, port: u16, etcd_port: u16) -> Vec<String> {
        let [chain, key, _] = CERTIFICATE_PARTS;
        vec![
            format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", self.path(chain)),
            format!("--tls-private-key-file={}", self.path(key)),
            format!("--cert-dir={}", self.path("certificates")),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.path("accounts.pub")),
            format!(
                "--service-account-signing-key-file={}",
                self.path("accounts.key")
            ),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            // Pods need no token because no kubelet would mount it. Without the plugin, a new namespace accepts Pods
            // immediately.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            // The Service `kubernetes` must not refer to loopback.
            "--endpoint-reconciler-type=none".to_owned(),
        ]
    }

    fn controllers(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.kubeconfig().display()),
            format!(
                "--service-account-private-key-file={}",
                self.path("accounts.key")
            ),
            format!("--root-ca-file={}", self.path(CERTIFICATE_PARTS[2])),
            "--leader-elect=false".to_owned(),
            // Its metrics are not read.
            "--secure-port=0".to_owned(),
        ]
    }

    /// Starts a server that logs to a file.
    fn serve(
        &mut self,
        assets: &Path,
        name: &'static str,
        args: &[String],
    ) -> Result<(), ControlPlaneError> {
        let log = std::fs::File::create(self.folder.path().join(format!("{name}.log")))?;
        // The path is absolute because the name of the binary's folder may begin with a hyphen.
        let binary = std::path::absolute(assets.join(name))?;
        let mut command = Command::new("sh");
        command
            .args([OsStr::new("-c"), OsStr::new(GUARD), binary.as_os_str()])
            .args(args)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C must reach only this process, which cleans up first.
            .process_group(0);
        let child = Command::spawn(&mut command)?;
        self.servers.insert(0, (name, child));
        Ok(())
    }

    /// Returns an error if a server has exited.
    fn check(&mut self) -> Result<(), ControlPlaneError> {
        for (name, server) in &mut self.servers {
            if server.try_wait()?.is_some() {
                let log = self.folder.path().join(format!("{name}.log"));
                let log = std::fs::read(log).unwrap_or_default();
                let log = String::from_utf8_lossy(&log).into_owned();
                let lines: Vec<&str> = log.lines().collect();
                return Err(ControlPlaneError::Ended {
                    name,
                    log: lines[lines.len().saturating_sub(15)..].join("\n"),
                });
            }
        }
        Ok(())
    }

    /// Waits until the API server reports that it is ready.
    async fn until_ready(&mut self) -> Result<(), ControlPlaneError> {
        self.until(async |client| {
            let request = http::Request::get("/readyz").body(Vec::new());
            let Ok(request) = request else { return false };
            client.request_text(request).await.is_ok()
        })
        .await
    }

    /// Waits for the first object that the controllers create.
    async fn until_default(&mut self) -> Result<(), ControlPlaneError> {
        self.until(async |client| {
            let accounts: kube::Api<k8s_openapi::api::core::v1::ServiceAccount> =
                kube::Api::namespaced(client, "default");
            matches!(accounts.get_opt("default").await, Ok(Some(_)))
        })
        .await
    }

    async fn until(
        &mut self,
        is_so: impl AsyncFn(kube::Client) -> bool,
    ) -> Result<(), ControlPlaneError> {
        let options = ClusterOptions {
            kubeconfig: Some(self.kubeconfig()),
            context: None,
        };
        let client = client::connect(&options).await?.client;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = tokio::time::timeout(QUESTION, is_so(client.clone())).await;
            // Always checked, because another process that took a port may respond.
            self.check()?;
            if answer == Ok(true) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(ControlPlaneError::Late);
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Stops the servers and waits until they have exited.
    pub(crate) async fn end(mut self) {
        for (_, server) in &mut self.servers {
            // Closing standard input stops the server.
            drop(server.stdin.take());
            // An error means that it has exited.
            let _ = server.wait().await;
        }
    }
}

/// Returns loopback ports that were free a moment ago.
fn free_ports() -> io::Result<[u16; 2]> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = [bind()?, bind()?];
    let [api, etcd] = &listeners;
    Ok([api.local_addr()?.port(), etcd.local_addr()?.port()])
}
