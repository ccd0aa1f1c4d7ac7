//! Several `ork controller` processes that compete for the Lease of a scenario. Each is a different user, so that the audit log
//! attributes requests to processes.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::{Value, json};
use testbed::{
    AuditEvent, ControlPlane, Guarded, Identity, Mark, eventually, free_port, spawn_guarded,
};

use crate::scenario::{CLAIMS, FAULTS, LIMIT, Objects, Scenario, ask, input, strike};
use crate::waters;

const KATALOG: &str = "depends/katalog.yaml";
/// The default name of the Lease.
pub(crate) const LEASE: &str = "orkestra";

/// A scenario whose controllers are started separately. In its Katalog, ponds depend on lakes.
pub(crate) struct Replicas {
    pub(crate) scenario: Scenario,
    roles: Vec<ClusterRole>,
}

/// One of the controller processes.
pub(crate) struct Replica {
    pub(crate) process: Guarded,
    pub(crate) identity: Identity,
    listen: String,
    log: PathBuf,
    faults: PathBuf,
}

impl Replicas {
    /// Creates the scenario without a process.
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        let mut scenario = Scenario::new(prefix).await?;
        // Add an autoscaler, since its task only runs if one is declared.
        let waits = "dependsOn: { lake: { condition: healthy } }\n      operatorBox:\n";
        let scales = "        autoscale: { conditions: { when: [{ field: metrics.queueDepth, greaterThan: '99' }] }, do: { workers: 4 } }\n";
        let katalog = input(KATALOG)?.replace(waits, &format!("{waits}{scales}"));
        let roles = scenario.grant(&katalog).await?;
        scenario.install(&waters::crds()?).await?;
        scenario.apply(&katalog)?;
        Ok(Self { scenario, roles })
    }

    /// Starts two processes, of which the first leads, and creates a lake and a pond. Returns when all of them are ready.
    pub(crate) async fn two(prefix: &str) -> Result<(Self, Replica, Replica)> {
        let replicas = Self::new(prefix).await?;
        let first = replicas.launch("first", &[]).await?;
        replicas.let_elect(&first)?;
        first.until_leads(true).await?;
        let second = replicas.launch("second", &[]).await?;
        replicas.let_elect(&second)?;
        second.until_ready().await?;
        let scenario = &replicas.scenario;
        let bed = json!({ "bed": "stones", "colour": "blue" });
        waters::lake(scenario, "deep", &bed).await?;
        waters::pond(scenario, "north", &json!({ "colour": "green" })).await?;
        scenario.objects("ponds").until_ready("north").await?;
        scenario.katalog_is("waters", "True", "Running").await?;
        Ok((replicas, first, second))
    }

    /// Starts a process with the permissions that the Katalog needs, but not those on the Lease, and waits until `/livez` answers.
    pub(crate) async fn launch(&self, name: &str, arguments: &[&str]) -> Result<Replica> {
        let replica = self.spawn(name, arguments, &[]).await?;
        eventually("the process answers", LIMIT, async || {
            Ok(replica.ask("/livez").await.ok())
        })
        .await?;
        Ok(replica)
    }

    /// Starts a process without waiting for it. The faults `at_start` end the first tasks of their names.
    pub(crate) async fn spawn(
        &self,
        name: &str,
        arguments: &[&str],
        at_start: &[&str],
    ) -> Result<Replica> {
        let cluster = ControlPlane::shared();
        let space = &self.scenario.namespace;
        let identity = cluster.identity(&format!("ork-{space}-{name}"), &[])?;
        for role in &self.roles {
            self.scenario.bind_to(role, identity.user()).await?;
        }
        let role = self.printed_role(CLAIMS)?;
        self.scenario.let_claim(role, identity.user()).await?;
        let listen = format!("127.0.0.1:{}", free_port()?);
        let log = self.scenario.path(&format!("{name}.log"));
        let faults = self.scenario.path(&format!("{name}.faults"));
        let mut command = self.scenario.command_as(&identity);
        command
            .args(["controller", "--namespace", space, "--listen", &listen])
            .args(["--leader-elect-resource-namespace", space])
            .args(arguments)
            .env("POD_NAME", name)
            .env(FAULTS, &faults);
        if !at_start.is_empty() {
            std::fs::write(&faults, at_start.join("\n"))?;
        }
        Ok(Replica {
            process: spawn_guarded(&command, &log)?,
            identity,
            listen,
            log,
            faults,
        })
    }

    /// Grants a process the Role for leader election that `ork generate rbac` prints.
    pub(crate) fn let_elect(&self, replica: &Replica) -> Result<()> {
        let mut role = self.printed_role("orkestra-system")?;
        role["metadata"]["namespace"] = json!(self.scenario.namespace);
        let name = format!("elect-{}", replica.identity.user());
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"] },
            "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": replica.identity.user() }],
        });
        self.scenario.apply(&role.to_string())?;
        self.scenario.apply(&binding.to_string())
    }

    /// Returns the Role for a namespace that `ork generate rbac` prints.
    fn printed_role(&self, namespace: &str) -> Result<Value> {
        let printed = self.scenario.ork(&["generate", "rbac"])?;
        let manifests = serde_saphyr::from_multiple::<Value>(&printed)?;
        let is_it =
            |one: &Value| one["kind"] == "Role" && one["metadata"]["namespace"] == namespace;
        manifests
            .into_iter()
            .find(is_it)
            .context("no Role is printed")
    }

    /// Returns the Leases of the scenario.
    pub(crate) fn leases(&self) -> Objects {
        self.scenario.objects("leases")
    }

    /// Changes the colour of the pond.
    pub(crate) async fn paint(&self, colour: &str) -> Result<()> {
        let change = json!({ "spec": { "colour": colour } });
        let ponds = self.scenario.objects("ponds");
        ponds.patch("north", &change).await.map(drop)
    }

    /// Waits until the pond's child has a colour.
    pub(crate) async fn until_painted(&self, colour: &str) -> Result<()> {
        let maps = self.scenario.objects("configmaps");
        maps.until_equal("north-pond", "/data/colour", json!(colour), LIMIT)
            .await
            .map(drop)
    }
}

impl Replica {
    /// Makes the process end tasks, one per line; see `crates/ground/src/tasks/faults.rs`. Returns when it has read the lines.
    pub(crate) async fn strike(&self, lines: &[&str]) -> Result<()> {
        strike(&self.faults, lines).await
    }

    pub(crate) async fn ask(&self, path: &str) -> Result<String> {
        ask(&self.listen, path).await
    }

    /// Returns the JSON that the process serves at a path.
    pub(crate) async fn page(&self, path: &str) -> Result<Value> {
        let answer = self.ask(path).await?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
        Ok(serde_json::from_str(body)?)
    }

    /// Returns the response of `/readyz`, with its status line.
    pub(crate) async fn readiness(&self) -> Result<String> {
        self.ask("/readyz").await
    }

    /// Returns the value of the first series with a name and a label.
    pub(crate) async fn metric(&self, name: &str, label: &str) -> Result<String> {
        let answer = self.ask("/metrics").await?;
        let is_it = |line: &&str| line.starts_with(name) && line.contains(label);
        let line = answer.lines().find(is_it);
        let value = line.and_then(|line| line.rsplit(' ').next());
        Ok(value.with_context(|| format!("no {name}"))?.to_owned())
    }

    /// Returns the sum of all series with a name.
    pub(crate) async fn total(&self, name: &str) -> Result<u64> {
        let answer = self.ask("/metrics").await?;
        let own = answer.lines().filter(|line| line.starts_with(name));
        let values = own.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Ok(values.sum())
    }

    /// Waits until the process is ready.
    pub(crate) async fn until_ready(&self) -> Result<()> {
        eventually("the process is ready", LIMIT, async || {
            let answer = self.readiness().await?;
            ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            Ok(Some(()))
        })
        .await
    }

    /// Waits until no pass runs and no request is in flight.
    pub(crate) async fn until_idle(&self) -> Result<()> {
        eventually("the process is idle", LIMIT, async || {
            for metric in ["orkestra_workers_active", "orkestra_requests_in_flight"] {
                let busy = self.total(metric).await?;
                ensure!(busy == 0, "{metric} is {busy}");
            }
            Ok(Some(()))
        })
        .await
    }

    /// Waits until the process leads, or until it does not lead; returns the page that reports it.
    pub(crate) async fn until_leads(&self, leads: bool) -> Result<Value> {
        eventually(&format!("leading is {leads}"), LIMIT, async || {
            let page = self.page("/katalog").await?;
            Ok((page["isKonductor"] == leads).then_some(page))
        })
        .await
    }

    /// Returns the log of the process.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the requests of the process since `mark`, including those for Events.
    pub(crate) fn requests(&self, mark: Mark) -> Result<Vec<AuditEvent>> {
        let mut events = ControlPlane::shared().audit_since(mark)?;
        events.retain(|event| event.user == self.identity.user());
        events.sort_by_key(|event| event.timestamp);
        Ok(events)
    }

    /// Returns the writes of the process since `mark`, including denied ones, except those of Leases.
    pub(crate) fn writes(&self, mark: Mark) -> Result<Vec<AuditEvent>> {
        let mut events = self.requests(mark)?;
        events.retain(|event| event.is_write() && event.resource != "leases");
        Ok(events)
    }

    /// Returns the times of successful writes of Leases since `mark`, in order.
    pub(crate) fn terms(&self, mark: Mark) -> Result<Vec<Timestamp>> {
        let written =
            |one: &AuditEvent| one.resource == "leases" && one.is_write() && one.code < 300;
        let requests = self.requests(mark)?.into_iter();
        Ok(requests.filter(written).map(|one| one.timestamp).collect())
    }
}

impl Drop for Replica {
    /// Prints the log; the test harness shows printed text only if the test fails.
    fn drop(&mut self) {
        println!("--- {}:\n{}", self.log.display(), self.log());
    }
}
