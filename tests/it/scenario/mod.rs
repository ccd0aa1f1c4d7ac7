//! A test scenario on a real control plane: it has its own namespace, API group and user, and runs `ork controller` as that
//! user, who has only the permissions that `ork generate rbac` prints.
//!
//! ```text
//!  Scenario::new ─► grant(katalog) ─► start ─► install(crd), apply(katalog), apply(cr) ─► objects(..).until(..)
//!                   RBAC as printed     └ kill9, terminate, start again
//! ```
//!
//! In YAML texts, `GROUP` stands for the scenario's API group and `NAMESPACE` for its namespace.

mod cleanup;
mod controller;
mod faults;
mod measure;
mod objects;
mod observe;
mod rest;
mod rights;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::Value;
use testbed::{ControlPlane, Guarded, Identity, eventually, namespace};
use tokio::sync::OnceCell;

pub(crate) use self::faults::{FAULTS, strike, task_count};
pub(crate) use self::measure::{Rate, measured, pause, until_next_second, within};
pub(crate) use self::objects::{Objects, code, condition, is_observed, is_ready, owner_uid};
pub(crate) use self::observe::{Metrics, ask, ask_as};
pub(crate) use self::rest::{request, until_no_writes, until_unchanged};
pub(crate) use self::rights::CLAIMS;

/// The maximum time for a step without a deadline of its own. The machine may compile and run other tests at the same time.
pub(crate) const LIMIT: Duration = Duration::from_mins(3);
/// The maximum time for the deletion of a namespace: kube-controller-manager retries it at growing intervals while objects are left.
pub(crate) const NAMESPACE_LIMIT: Duration = Duration::from_mins(4);
/// The number of lines of the controller's log that a failed test prints.
const LOG_LINES: usize = 80;

/// One scenario. Dropping it ends its controller.
pub(crate) struct Scenario {
    /// Its namespace; also the first part of its API group and of its user's name.
    pub(crate) namespace: String,
    /// Its API group.
    pub(crate) group: String,
    /// The control plane that it uses.
    pub(crate) cluster: &'static ControlPlane,
    /// The administrator's client.
    pub(crate) client: Client,
    /// The controller's identity.
    pub(crate) identity: Identity,
    /// The controller's log filter (`RUST_LOG`), if not the default.
    pub(crate) log_filter: Option<&'static str>,
    folder: PathBuf,
    grants: usize,
    controller: Option<Guarded>,
    /// The host that the controller listens on. Tests connect over loopback in any case.
    pub(crate) host: &'static str,
    pub(crate) listen: String,
    /// Additional arguments of the controller, used from its next start on.
    pub(crate) arguments: Vec<String>,
    /// Environment variables of the controller, in addition to those of the test.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// The scenario's control plane, if no other test uses it.
    own: Option<Own>,
}

/// A control plane that ends when the scenario is dropped.
struct Own(&'static ControlPlane);

impl Drop for Own {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Scenario {
    /// Creates a scenario with a namespace and a user without permissions. `prefix` starts their names.
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        let cluster = ControlPlane::shared();
        install_own_kinds(&cluster.admin().client()?).await?;
        Self::on(cluster, prefix).await
    }

    /// Creates a scenario on a control plane that no other test uses, which the test may kill. Orkestra's own CRDs are installed.
    pub(crate) async fn on_its_own(prefix: &str) -> Result<Self> {
        Self::on_new(prefix, testbed::Options::default()).await
    }

    /// Creates a scenario on a control plane of its own with simulated nodes, so that pods run.
    pub(crate) async fn with_nodes(prefix: &str) -> Result<Self> {
        let options = testbed::Options {
            nodes: true,
            ..testbed::Options::default()
        };
        Self::on_new(prefix, options).await
    }

    /// Creates a scenario on a control plane of its own with these options.
    pub(crate) async fn on_new(prefix: &str, options: testbed::Options) -> Result<Self> {
        let cluster: &'static ControlPlane = Box::leak(Box::new(ControlPlane::start(options)?));
        let own = Own(cluster);
        own_kinds(cluster, &cluster.admin().client()?).await?;
        let mut scenario = Self::on(cluster, prefix).await?;
        scenario.own = Some(own);
        Ok(scenario)
    }

    async fn on(cluster: &'static ControlPlane, prefix: &str) -> Result<Self> {
        let client = cluster.admin().client()?;
        let namespace = namespace(&client, prefix).await?;
        let folder = cluster.folder().join("scenarios").join(&namespace);
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            group: format!("{namespace}.example.org"),
            identity: cluster.identity(&format!("ork-{namespace}"), &[])?,
            namespace,
            cluster,
            client,
            log_filter: None,
            folder,
            grants: 0,
            controller: None,
            host: "127.0.0.1",
            listen: String::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            own: None,
        })
    }

    /// Creates a scenario with a running controller, applies the CRDs and the Katalog, and waits until its operators run. The
    /// arguments are paths of fixtures.
    pub(crate) async fn running(prefix: &str, crds: &[&str], katalog: &str) -> Result<Self> {
        Self::with_katalog(prefix, crds, &input(katalog)?).await
    }

    /// Does the same with the text of a Katalog.
    pub(crate) async fn with_katalog(prefix: &str, crds: &[&str], katalog: &str) -> Result<Self> {
        let mut scenario = Self::new(prefix).await?;
        scenario.grant(katalog).await?;
        scenario.start().await?;
        for crd in crds {
            scenario.install(&input(crd)?).await?;
        }
        scenario.apply(katalog)?;
        let applied: Value = serde_saphyr::from_str(katalog)?;
        let name = applied["metadata"]["name"].as_str().unwrap_or_default();
        scenario.katalog_is(name, "True", "Running").await?;
        Ok(scenario)
    }

    /// Returns the text with the placeholders replaced by this scenario's group and namespace.
    pub(crate) fn text(&self, template: &str) -> String {
        template
            .replace("GROUP", &self.group)
            .replace("NAMESPACE", &self.namespace)
    }

    /// Applies a CRD and waits until it is served.
    pub(crate) async fn install(&self, crd: &str) -> Result<()> {
        self.apply(crd)?;
        let text = self.text(crd);
        for crd in serde_saphyr::from_multiple::<Value>(&text)? {
            let name = crd["metadata"]["name"]
                .as_str()
                .context("a CRD without a name")?;
            self.established(name).await?;
        }
        Ok(())
    }

    /// Waits until the CRD `name` is served.
    pub(crate) async fn established(&self, name: &str) -> Result<()> {
        let crds = Objects::of_cluster(&self.client, "customresourcedefinitions");
        let crd = crds
            .until(name, "is established", LIMIT, |crd| {
                condition(crd, "Established").is_some_and(|one| one["status"] == "True")
            })
            .await?;
        let version = crd["spec"]["versions"][0]["name"]
            .as_str()
            .unwrap_or_default();
        let [group, plural] = ["/spec/group", "/spec/names/plural"]
            .map(|at| crd.pointer(at).and_then(Value::as_str).unwrap_or_default());
        let served = Objects::at(&self.client, &format!("/apis/{group}/{version}/{plural}"));
        eventually("the new kind is served", LIMIT, async || {
            served.list().await.map(Some)
        })
        .await?;
        Ok(())
    }

    /// Runs `kubectl apply` as the administrator, with placeholders replaced.
    pub(crate) fn apply(&self, text: &str) -> Result<()> {
        self.kubectl_with(&["apply", "-f", "-"], Some(&self.text(text)))
            .map(drop)
    }

    /// Runs `kubectl` as the administrator in the scenario's namespace, and returns its output.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.kubectl_with(args, None)
    }

    /// Does the same with a standard input.
    pub(crate) fn kubectl_with(&self, args: &[&str], stdin: Option<&str>) -> Result<String> {
        let cluster = self.cluster;
        let args = [&["--namespace", &self.namespace], args].concat();
        let output = cluster.kubectl(&cluster.admin(), &args, stdin)?;
        printed(&output, "kubectl")
    }

    /// Waits until the API server's clock is in a later second than `time`: times of objects are whole seconds.
    pub(crate) async fn until_later_than(&self, time: &str) -> Result<()> {
        let probe = [
            "create",
            "configmap",
            "probe",
            "--dry-run=server",
            "-o",
            "json",
        ];
        eventually("a second has passed", LIMIT, async || {
            let made: Value = serde_json::from_str(&self.kubectl(&probe)?)?;
            let now = made["metadata"]["creationTimestamp"].as_str();
            Ok((now > Some(time)).then_some(()))
        })
        .await
    }

    /// Runs `ork` as the scenario's user, and returns its output.
    pub(crate) fn ork(&self, args: &[&str]) -> Result<String> {
        printed(&self.command().args(args).output()?, "ork")
    }

    fn command(&self) -> Command {
        self.command_as(&self.identity)
    }

    /// Returns the command `ork`, run as that user.
    pub(crate) fn command_as(&self, identity: &Identity) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ork"));
        command.env("KUBECONFIG", identity.kubeconfig_path());
        if let Some(filter) = self.log_filter {
            command.env("RUST_LOG", filter);
        }
        command
    }

    /// Writes a file of the scenario with that text, with placeholders replaced.
    pub(crate) fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        std::fs::write(&path, self.text(text))?;
        Ok(path)
    }

    /// Returns the path of the scenario's file or directory `name`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Scenario {
    /// Prints the end of the controller's log, which the test harness shows only if the test failed, and removes the definitions.
    fn drop(&mut self) {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        println!("--- controller of {}, last lines:", self.namespace);
        for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
            println!("{line}");
        }
        // Its controller would put finalizers back.
        self.controller = None;
        if self.own.is_none() {
            cleanup::remove_later(&self.group);
        }
    }
}

pub(crate) fn printed(output: &Output, program: &str) -> Result<String> {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    ensure!(
        output.status.success(),
        "{program} ended with {}: {stderr}{stdout}",
        output.status
    );
    Ok(stdout)
}

/// Installs Orkestra's own CRDs on the shared control plane, once.
async fn install_own_kinds(client: &Client) -> Result<()> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    INSTALLED
        .get_or_try_init(|| own_kinds(ControlPlane::shared(), client))
        .await
        .copied()
}

async fn own_kinds(cluster: &ControlPlane, client: &Client) -> Result<()> {
    let crds = printed(
        &Command::new(env!("CARGO_BIN_EXE_ork"))
            .arg("crds")
            .output()?,
        "ork crds",
    )?;
    let output = cluster.kubectl(&cluster.admin(), &["apply", "-f", "-"], Some(&crds))?;
    printed(&output, "kubectl")?;
    for plural in ["katalogs", "komposers", "motifs"] {
        let objects = Objects::at(client, &format!("/apis/orkestra.orkspace.io/v1/{plural}"));
        eventually("Orkestra's own kinds are served", LIMIT, async || {
            objects.list().await.map(Some)
        })
        .await?;
    }
    Ok(())
}

/// Returns the text of a fixture: `tests/inputs/<path>`.
pub(crate) fn input(path: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/inputs")
        .join(path);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}
