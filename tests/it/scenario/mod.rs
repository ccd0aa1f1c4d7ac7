//! One scenario on the genuine control plane: a namespace, an API group and a user of its own, and `ork controller` run as that
//! user, who has only the rights that `ork generate rbac` prints.
//!
//! ```text
//!  Scenario::new ─► grant(katalog) ─► start ─► install(crd), apply(katalog), apply(cr) ─► objects(..).until(..)
//!                   rights as printed   └ kill9, terminate, start again
//! ```
//!
//! In texts, `GROUP` stands for the scenario's API group and `NAMESPACE` for its namespace.

mod controller;
mod faults;
mod objects;
mod observe;
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
pub(crate) use self::objects::{Objects, code, condition, is_observed, is_ready, owner_uid};
pub(crate) use self::observe::{ask, ask_as};
pub(crate) use self::rights::CLAIMS;

/// How long something may take that has no deadline of its own: the machine compiles and runs other tests meanwhile.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);
/// Lines of the controller's log that a failed test shows.
const LOG_LINES: usize = 80;

/// One scenario. Its controller ends with it.
pub(crate) struct Scenario {
    /// Its namespace; also the first part of its API group and of its user's name.
    pub(crate) namespace: String,
    /// Its API group.
    pub(crate) group: String,
    /// Where it plays.
    pub(crate) cluster: &'static ControlPlane,
    /// The administrator's client.
    pub(crate) client: Client,
    /// Who the controller is.
    pub(crate) identity: Identity,
    /// What its controllers log, if not the usual.
    pub(crate) log_filter: Option<&'static str>,
    folder: PathBuf,
    grants: usize,
    controller: Option<Guarded>,
    /// The address that the controller listens on; tests ask over the loopback all the same.
    pub(crate) host: &'static str,
    pub(crate) listen: String,
    /// Further arguments of the controller, from its next start on.
    pub(crate) arguments: Vec<String>,
    /// Its environment beside the test's.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Its control plane, if no other test has it.
    own: Option<Own>,
}

/// A control plane that ends with the scenario.
struct Own(&'static ControlPlane);

impl Drop for Own {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Scenario {
    /// A scenario with nothing but its namespace, and a user without rights. `prefix` starts its name.
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        let cluster = ControlPlane::shared();
        install_own_kinds(&cluster.admin().client()?).await?;
        Self::on(cluster, prefix).await
    }

    /// The same on a control plane of the test's own, which may be killed; our own kinds are installed if they are not.
    pub(crate) async fn on_its_own(prefix: &str) -> Result<Self> {
        Self::on_new(prefix, testbed::Options::default()).await
    }

    /// The same on one whose pods run, on a node that is simulated.
    pub(crate) async fn with_nodes(prefix: &str) -> Result<Self> {
        let options = testbed::Options {
            nodes: true,
            ..testbed::Options::default()
        };
        Self::on_new(prefix, options).await
    }

    /// The same on one with those options.
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

    /// A scenario whose controller runs, with those CRDs and that Katalog applied and its operators running: fixtures by path.
    pub(crate) async fn running(prefix: &str, crds: &[&str], katalog: &str) -> Result<Self> {
        Self::with_katalog(prefix, crds, &input(katalog)?).await
    }

    /// The same with the Katalog's text.
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

    /// The text with this scenario's group and namespace in it.
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

    /// Waits until a CRD of that name is served.
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

    /// `kubectl apply` as the administrator; placeholders are replaced.
    pub(crate) fn apply(&self, text: &str) -> Result<()> {
        self.kubectl_with(&["apply", "-f", "-"], Some(&self.text(text)))
            .map(drop)
    }

    /// `kubectl` as the administrator, in the scenario's namespace; what it printed.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.kubectl_with(args, None)
    }

    /// The same with a standard input.
    pub(crate) fn kubectl_with(&self, args: &[&str], stdin: Option<&str>) -> Result<String> {
        let cluster = self.cluster;
        let args = [&["--namespace", &self.namespace], args].concat();
        let output = cluster.kubectl(&cluster.admin(), &args, stdin)?;
        printed(&output, "kubectl")
    }

    /// Runs `ork` to its end, as the scenario's user; what it printed.
    pub(crate) fn ork(&self, args: &[&str]) -> Result<String> {
        printed(&self.command().args(args).output()?, "ork")
    }

    fn command(&self) -> Command {
        self.command_as(&self.identity)
    }

    /// `ork` as that user.
    pub(crate) fn command_as(&self, identity: &Identity) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ork"));
        command.env("KUBECONFIG", identity.kubeconfig_path());
        if let Some(filter) = self.log_filter {
            command.env("RUST_LOG", filter);
        }
        command
    }

    /// A file of the scenario with that text, placeholders replaced.
    pub(crate) fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        std::fs::write(&path, self.text(text))?;
        Ok(path)
    }

    /// Where the scenario's file or folder of that name is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Scenario {
    /// The test harness shows what a test has printed only if it failed.
    fn drop(&mut self) {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        println!("--- controller of {}, last lines:", self.namespace);
        for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
            println!("{line}");
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

/// Orkestra's own CRDs, once for the control plane.
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
        eventually("our own kinds are served", LIMIT, async || {
            objects.list().await.map(Some)
        })
        .await?;
    }
    Ok(())
}

/// The text of a fixture: `tests/inputs/<path>`.
pub(crate) fn input(path: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/inputs")
        .join(path);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}
