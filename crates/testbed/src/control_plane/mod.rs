//! One control plane: its servers, users and audit log.
//!
//! One file: the processes of a control plane start and end together.

mod nodes;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::Api;
use parking_lot::Mutex;

use crate::assets::Assets;
use crate::audit::{AuditEvent, AuditLog, Mark, POLICY};
use crate::guard::{Guarded, remove_at_end};
use crate::identity::{Identity, SYSTEM_MASTERS};
use crate::pki::Authority;
use crate::servers::{Ports, Site};
use crate::wait::{block_on, eventually};

/// The longest time that a server may take to start: seconds on an idle machine, much longer while the machine compiles.
const START_LIMIT: Duration = Duration::from_mins(2);

/// The longest time to wait for a restarted garbage collector.
const LEARN_LIMIT: Duration = Duration::from_secs(30);
/// The line that the garbage collector logs once it knows all kinds.
///
/// Source: `pkg/controller/garbagecollector/garbagecollector.go` of Kubernetes 1.34.
const SYNCED: &str = "all resource monitors have synced";

/// The parts of a control plane to start.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Start a scheduler and a fake node, so that pods run and Jobs complete. Without them, pods stay Pending.
    pub nodes: bool,
    /// Start no controllers, so that objects stay as they are written and no other process uses the machine.
    pub without_controllers: bool,
    /// Further arguments for the API server, such as feature gates.
    pub api_arguments: &'static [&'static str],
    /// The data folder. It must not exist yet and is removed at the end. The default is a new folder in the system's temporary
    /// folder.
    pub folder: Option<PathBuf>,
}

/// A running control plane. It ends when this value is dropped, at the latest when this process ends.
#[derive(Debug)]
pub struct ControlPlane {
    site: Site,
    pub(crate) ports: Ports,
    authority: Authority,
    admin: Identity,
    identities: Mutex<HashMap<(String, Vec<String>), Identity>>,
    audit: Mutex<AuditLog>,
    pub(crate) servers: Mutex<Servers>,
    /// The last start of the garbage collector by [`relearn_kinds`](Self::relearn_kinds); locked until it knows all kinds.
    learning: Mutex<Option<Instant>>,
    /// The number of tests that need the garbage collector which runs now.
    collector_kept: AtomicUsize,
}

/// The servers, in the order in which they stop.
#[derive(Debug)]
pub(crate) struct Servers {
    clients: Vec<Guarded>,
    pub(crate) manager: Option<Guarded>,
    collector: Option<Guarded>,
    pub(crate) api: Option<Guarded>,
    pub(crate) etcd: Guarded,
}

/// Keeps the garbage collector running until it is dropped; see [`ControlPlane::keep_collector`].
#[derive(Debug)]
#[must_use]
pub struct KeptCollector<'a>(&'a AtomicUsize);

impl Drop for KeptCollector<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ControlPlane {
    /// Starts a separate control plane and waits until it serves: about five seconds on two idle cores.
    ///
    /// Blocks the calling thread.
    pub fn start(options: Options) -> Result<Self> {
        Self::start_on(options, Ports::choose)
    }

    /// Calls `choose` again if another process took one of the ports.
    fn start_on(options: Options, choose: impl FnMut() -> Result<Ports>) -> Result<Self> {
        let assets = Assets::find()?;
        let folder = create_folder(options.folder)?;
        let site = Site {
            assets,
            folder,
            api_arguments: options.api_arguments,
        };
        let authority = Authority::create(&site.pki())?;
        authority.write_server_files()?;
        std::fs::create_dir(site.folder.join("logs"))?;
        std::fs::write(site.folder.join("audit-policy.yaml"), POLICY)?;

        let (ports, servers) = start_storage_and_api(&site, &authority, choose)?;
        let server = url(ports);
        std::fs::write(site.folder.join("server"), &server)?;
        let audit = AuditLog::new(site.folder.join("audit.log"));
        let this = Self {
            admin: admin(&site, &authority, ports)?,
            identities: Mutex::new(HashMap::new()),
            audit: Mutex::new(audit),
            servers: Mutex::new(servers),
            learning: Mutex::new(None),
            collector_kept: AtomicUsize::new(0),
            site,
            ports,
            authority,
        };
        if !options.without_controllers {
            this.start_controllers()?;
        }
        if options.nodes {
            let nodes = nodes::start(&this)?;
            this.servers.lock().clients.extend(nodes);
        }
        Ok(this)
    }

    /// Returns the control plane, with a node, that all tests of a binary share. It is started on first use and ends with the
    /// process.
    ///
    /// # Panics
    /// If the control plane could not be started, in each test that calls this, with the reason.
    #[allow(clippy::panic, reason = "no test can run without it")]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<std::result::Result<ControlPlane, String>> = OnceLock::new();
        let options = || Options {
            nodes: true,
            ..Options::default()
        };
        match SHARED.get_or_init(|| Self::start(options()).map_err(|error| format!("{error:#}"))) {
            Ok(shared) => shared,
            Err(error) => panic!("no control plane: {error}"),
        }
    }

    /// Returns the administrator, who has all permissions.
    pub fn admin(&self) -> Identity {
        self.admin.clone()
    }

    /// Returns the user `user` in `groups` (at most two). A new user has no permissions until a role is bound to it. A second
    /// call with the same arguments returns the same identity.
    ///
    /// A service account is the user `system:serviceaccount:NAMESPACE:NAME` in the group `system:serviceaccounts`.
    pub fn identity(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        let key = (
            user.to_owned(),
            groups.iter().map(|group| (*group).to_owned()).collect(),
        );
        let mut identities = self.identities.lock();
        if let Some(known) = identities.get(&key) {
            return Ok(known.clone());
        }
        let name = format!("{}-{}", identities.len(), user.replace(['/', ':'], "-"));
        let made = Identity::create(
            &self.authority,
            &self.site.folder.join("identities"),
            &name,
            &self.url(),
            (user, groups),
        )?;
        identities.insert(key, made.clone());
        Ok(made)
    }

    /// Returns all requests to the API server so far, in the order of the answers.
    ///
    /// The API server writes the log line before it completes the answer. A client that has its answer finds the request here.
    pub fn audit(&self) -> Result<Vec<AuditEvent>> {
        self.audit.lock().all()
    }

    /// Returns the present moment in the audit log.
    pub fn mark(&self) -> Result<Mark> {
        self.audit.lock().mark()
    }

    /// Returns the requests that were received since `mark`, as far as they are answered.
    pub fn audit_since(&self, mark: Mark) -> Result<Vec<AuditEvent>> {
        self.audit.lock().since(mark)
    }

    /// Returns an error, with the end of the server's log, if a server has ended.
    pub fn check(&self) -> Result<()> {
        let mut servers = self.servers.lock();
        let Servers {
            clients,
            manager,
            collector,
            api,
            etcd,
        } = &mut *servers;
        let controllers = clients.iter_mut().chain(manager).chain(collector);
        for server in controllers.chain(api).chain([etcd]) {
            if let Some(status) = server.status()? {
                return Err(ended(server, status));
            }
        }
        Ok(())
    }

    /// Returns the API server's address.
    pub fn url(&self) -> String {
        url(self.ports)
    }

    /// Returns the data folder: certificates, `audit.log` and the servers' `logs/`.
    pub fn folder(&self) -> &Path {
        &self.site.folder
    }

    /// Returns the location of the binaries.
    pub fn assets(&self) -> &Assets {
        &self.site.assets
    }

    /// Restarts the garbage collector, so that it knows every installed kind, and waits until it does.
    ///
    /// Without a restart it looks for new kinds every 30 s. Until then it collects nothing that an instance of a new kind owns
    /// (41 s were measured). A test that installs a CRD and relies on owner references calls this in between. Other tests are not
    /// affected, except those that delete a kind: see [`Self::keep_collector`], for which this waits. One restart serves all
    /// callers that asked before it: a collector that is restarted repeatedly would collect nothing.
    pub fn relearn_kinds(&self) -> Result<()> {
        let asked = Instant::now();
        let mut learning = self.learning.lock();
        if learning.is_some_and(|started| started > asked) {
            return Ok(());
        }
        while self.collector_kept.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let identity = self.manager_identity()?;
        let known = |collector: &Guarded| collector.log().matches(SYNCED).count();
        let before = {
            let mut servers = self.servers.lock();
            let before = servers.collector.as_ref().map_or(0, known);
            if let Some(mut old) = servers.collector.take() {
                old.kill()?;
            }
            *learning = Some(Instant::now());
            servers.collector = Some(self.site.garbage_collector(identity.kubeconfig_path())?);
            before
        };
        let started = Instant::now();
        // Do not fail if the API server does not answer: some tests stop it.
        while started.elapsed() < LEARN_LIMIT {
            if self
                .servers
                .lock()
                .collector
                .as_ref()
                .is_none_or(|now| known(now) > before)
            {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Prevents a restart of the garbage collector until the result is dropped: calls of [`Self::relearn_kinds`] by other tests
    /// wait.
    ///
    /// A test needs this if it deletes a CRD and relies on the collection of objects that its instances own. A collector that
    /// starts after the CRD is deleted cannot check whether an owner of that kind exists, and deletes nothing.
    pub fn keep_collector(&self) -> KeptCollector<'_> {
        let _learning = self.learning.lock();
        self.collector_kept.fetch_add(1, Ordering::SeqCst);
        KeptCollector(&self.collector_kept)
    }

    /// Ends all servers. For a control plane that a test cannot drop, because it is borrowed for the lifetime of the process. An
    /// idle control plane uses a twentieth of a core.
    pub fn end(&self) {
        let mut servers = self.servers.lock();
        servers.clients.clear();
        servers.manager = None;
        servers.collector = None;
        servers.api = None;
        // If this fails, the reaper does it again when this process ends.
        let _ = servers.etcd.kill();
    }

    pub(crate) fn manager_identity(&self) -> Result<Identity> {
        self.identity("system:kube-controller-manager", &[SYSTEM_MASTERS])
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// Starts the controllers and waits for the first object that they create.
    fn start_controllers(&self) -> Result<()> {
        self.restart_controllers()?;
        let admin = self.admin();
        block_on(async || {
            let accounts: Api<ServiceAccount> = Api::namespaced(admin.client()?, "default");
            eventually("the controllers work", START_LIMIT, async || {
                // A server that has ended is a final result: stop waiting.
                if let Err(error) = self.check() {
                    return Ok(Some(Err(error)));
                }
                Ok(accounts.get_opt("default").await?.map(|_| Ok(())))
            })
            .await?
        })
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.end();
        let _ = std::fs::remove_dir_all(&self.site.folder);
    }
}

fn create_folder(wanted: Option<PathBuf>) -> Result<PathBuf> {
    let folder = if let Some(folder) = wanted {
        std::fs::create_dir(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        folder.canonicalize()?
    } else {
        let made = tempfile::Builder::new()
            .prefix("orkestra-testbed-")
            .tempdir()?;
        made.keep()
    };
    remove_at_end(&folder)?;
    Ok(folder)
}

fn url(ports: Ports) -> String {
    format!("https://127.0.0.1:{}", ports.api)
}

fn admin(site: &Site, authority: &Authority, ports: Ports) -> Result<Identity> {
    let folder = site.folder.join("identities");
    let user = ("testbed-admin", [SYSTEM_MASTERS].as_slice());
    Identity::create(authority, &folder, "admin", &url(ports), user)
}

/// Starts etcd and the API server. Retries with other ports if another process took one of them.
fn start_storage_and_api(
    site: &Site,
    authority: &Authority,
    mut choose: impl FnMut() -> Result<Ports>,
) -> Result<(Ports, Servers)> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let ports = choose()?;
        let mut etcd = site.etcd(ports)?;
        let mut api = site.api_server(ports)?;
        let admin = admin(site, authority, ports)?;
        let Err(error) = wait_until_ready(&admin, &mut [&mut etcd, &mut api]) else {
            let servers = Servers {
                clients: Vec::new(),
                manager: None,
                collector: None,
                api: Some(api),
                etcd,
            };
            return Ok((ports, servers));
        };
        let taken = [&etcd, &api]
            .iter()
            .any(|server| server.log().contains("address already in use"));
        if attempts == 5 || !taken {
            return Err(error);
        }
        drop((etcd, api));
        // etcd creates its folder only after it has bound its port.
        for name in ["etcd", "logs"].map(|name| site.folder.join(name)) {
            if name.exists() {
                std::fs::remove_dir_all(name)?;
            }
        }
        std::fs::create_dir(site.folder.join("logs"))?;
    }
}

/// Waits until the API server reports that it is ready and the namespace `default` exists, or until a server ends.
pub(crate) fn wait_until_ready(admin: &Identity, servers: &mut [&mut Guarded]) -> Result<()> {
    let started = Instant::now();
    block_on(async || {
        let mut config = admin.config()?;
        // A "not ready" is a valid answer here and must not be retried.
        config.default_retry = false;
        // Another process on this port may accept the connection and never answer.
        config.connect_timeout = Some(Duration::from_secs(2));
        config.read_timeout = Some(Duration::from_secs(5));
        let client = Identity::client_of(config)?;
        loop {
            let answer = ask_whether_ready(&client).await;
            // Also after a success: if etcd's port was taken, the API server may have reached the other etcd.
            for server in &mut *servers {
                if let Some(status) = server.status()? {
                    return Err(ended(server, status));
                }
            }
            let Err(error) = answer else { return Ok(()) };
            if started.elapsed() >= START_LIMIT {
                return Err(error.context(format!(
                    "the API server is not ready within {START_LIMIT:?}"
                )));
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    })
}

async fn ask_whether_ready(client: &kube::Client) -> Result<()> {
    for path in ["/readyz", "/api/v1/namespaces/default"] {
        let request = http::Request::get(path).body(Vec::new())?;
        client.request_text(request).await?;
    }
    Ok(())
}

fn ended(server: &Guarded, status: std::process::ExitStatus) -> anyhow::Error {
    let log = server.log();
    let lines: Vec<&str> = log.lines().collect();
    let tail = lines[lines.len().saturating_sub(15)..].join("\n");
    let name = server.log_path().file_stem().unwrap_or_default().display();
    anyhow::anyhow!("{name} ended ({status}); the end of its log:\n{tail}")
}

#[cfg(test)]
mod tests;
