//! Webhooks: review of Katalogs, rules at admission, conversion, and the configurations that register the webhooks. The API server
//! reaches the webhooks by URL on the loopback address.

mod alone;
mod authority;
mod callers;
mod calls;
pub(crate) mod conversion;
mod disruption;
mod drain;
pub(crate) mod ends;
pub(crate) mod enforced;
mod files;
mod in_force;
pub(crate) mod instances;
mod katalogs;
mod mutating;
mod off;
mod overload;
mod probe;
mod quiet;
mod requests;
mod rotation;
mod unserved;
mod verdict;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testbed::{eventually, free_port};

use crate::scenario::{LIMIT, Objects, Scenario, input, printed};

/// A scenario whose controller serves webhooks. Its functions grant the permissions of Katalogs, but do not apply them.
pub(crate) struct Gate {
    pub(crate) scenario: Scenario,
    pub(crate) port: u16,
}

fn printed_or_error(output: &std::process::Output) -> Result<()> {
    printed(output, "kubectl").map(drop)
}

impl Gate {
    /// Starts a controller that watches the scenario's namespace.
    pub(crate) async fn start(prefix: &str, crds: &[&str], katalog: &str) -> Result<Self> {
        Self::start_with(prefix, crds, katalog, &[]).await
    }

    /// Starts a controller like [`Gate::start`], with further arguments.
    pub(crate) async fn start_with(
        prefix: &str,
        crds: &[&str],
        katalog: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let mut gate = Self::prepared(prefix, crds, &[katalog]).await?;
        gate.scenario.arguments = gate.arguments(arguments);
        gate.scenario.start().await?;
        gate.until_configured().await?;
        Ok(gate)
    }

    /// Returns a scenario with CRDs and permissions, and without a process.
    pub(crate) async fn prepared(prefix: &str, crds: &[&str], katalogs: &[&str]) -> Result<Self> {
        Self::of(Scenario::new(prefix).await?, crds, katalogs).await
    }

    async fn of(mut scenario: Scenario, crds: &[&str], katalogs: &[&str]) -> Result<Self> {
        for crd in crds {
            scenario.install(&input(crd)?).await?;
        }
        for katalog in katalogs {
            scenario.grant(katalog).await?;
        }
        let gate = Self {
            port: free_port()?,
            scenario,
        };
        gate.grant_webhooks()?;
        Ok(gate)
    }

    /// Returns the gateway's namespace, whose objects are not reviewed.
    pub(crate) fn home(&self) -> String {
        format!("{}-gate", self.scenario.namespace)
    }

    pub(crate) fn arguments(&self, more: &[&str]) -> Vec<String> {
        let (port, name) = (self.port, &self.scenario.namespace);
        let mut arguments = vec![
            format!("--webhooks-listen=127.0.0.1:{port}"),
            format!("--webhooks-url=https://127.0.0.1:{port}"),
            format!("--webhooks-namespace={}", self.home()),
            format!("--webhooks-name={name}"),
        ];
        arguments.extend(more.iter().map(|one| (*one).to_owned()));
        arguments
    }

    /// Grants the permissions that `ork generate rbac` prints for webhooks, under names of the scenario.
    fn grant_webhooks(&self) -> Result<()> {
        let scenario = &self.scenario;
        let home =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.home() } });
        scenario.apply(&home.to_string())?;
        let printed = scenario.ork(&["generate", "rbac"])?;
        for mut manifest in serde_saphyr::from_multiple::<Value>(&printed)? {
            let kind = manifest["kind"].as_str().unwrap_or_default().to_owned();
            let is_role = kind == "ClusterRole" || kind == "Role";
            if !is_role || manifest["metadata"]["name"] != "orkestra-webhooks" {
                continue;
            }
            let name = format!("{}:webhooks", scenario.namespace);
            manifest["metadata"]["name"] = name.clone().into();
            if kind == "Role" {
                manifest["metadata"]["namespace"] = self.home().into();
            }
            let text = manifest.to_string();
            let text = text.replace("orkestra-webhooks", &scenario.namespace);
            let mut binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
                "metadata": { "name": name },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
                "subjects": [{ "kind": "User", "name": scenario.identity.user() }],
            });
            if kind == "Role" {
                binding["metadata"]["namespace"] = self.home().into();
            }
            // `Scenario::apply` only applies objects to the scenario's namespace.
            for object in [text, binding.to_string()] {
                let admin = scenario.cluster.admin();
                let output =
                    scenario
                        .cluster
                        .kubectl(&admin, &["apply", "-f", "-"], Some(&object))?;
                printed_or_error(&output)?;
            }
        }
        Ok(())
    }

    /// Grants the Role for leader election that `ork generate rbac` prints.
    pub(crate) fn let_elect(&self) -> Result<()> {
        let scenario = &self.scenario;
        let printed = scenario.ork(&["generate", "rbac"])?;
        let manifests = serde_saphyr::from_multiple::<Value>(&printed)?;
        let is_it = |one: &&Value| {
            one["kind"] == "Role" && one["metadata"]["namespace"] == "orkestra-system"
        };
        let mut role = manifests
            .iter()
            .find(is_it)
            .context("no Role is printed")?
            .clone();
        role["metadata"]["namespace"] = json!(scenario.namespace);
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "elect" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"] },
            "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": scenario.identity.user() }],
        });
        scenario.apply(&role.to_string())?;
        scenario.apply(&binding.to_string())
    }

    /// Returns the gateway's `ValidatingWebhookConfiguration`.
    pub(crate) async fn configuration(&self) -> Result<Option<Value>> {
        self.registrations("validatingwebhookconfigurations")
            .get(&self.scenario.namespace)
            .await
    }

    pub(crate) fn registrations(&self, plural: &str) -> Objects {
        Objects::at(
            &self.scenario.client,
            &format!("/apis/admissionregistration.k8s.io/v1/{plural}"),
        )
    }

    /// Waits until the webhook configuration exists and Katalogs are reviewed.
    pub(crate) async fn until_configured(&mut self) -> Result<()> {
        eventually("the webhooks are configured", LIMIT, async || {
            self.scenario.check_running()?;
            Ok(self.configuration().await?.map(drop))
        })
        .await?;
        self.until_reviewed().await
    }

    /// Waits until Katalogs are reviewed: the API server applies a new configuration a moment after it is written.
    pub(crate) async fn until_reviewed(&self) -> Result<()> {
        eventually("Katalogs are reviewed", LIMIT, async || {
            let wrong = "{ apiVersion: orkestra.orkspace.io/v1, kind: Katalog, metadata: { name: probe }, spec: { crdz: {} } }";
            match self.scenario.kubectl_with(&["create", "--dry-run=server", "-f", "-"], Some(wrong)) {
                Err(_) => Ok(Some(())),
                Ok(_) => Ok(None),
            }
        })
        .await
    }

    /// Applies a Katalog, and waits until its operators run.
    pub(crate) async fn run(&self, katalog: &str) -> Result<()> {
        self.scenario.apply(katalog)?;
        let applied: Value = serde_saphyr::from_str(katalog)?;
        let name = applied["metadata"]["name"].as_str().context("no name")?;
        self.scenario.katalog_is(name, "True", "Running").await?;
        Ok(())
    }

    /// Runs `kubectl apply`, which must fail; returns its standard error.
    pub(crate) fn refused(&self, text: &str) -> Result<String> {
        self.refused_as(None, text)
    }

    /// Runs `kubectl apply` as a user; it must fail. Returns its standard error.
    pub(crate) fn refused_as(
        &self,
        user: Option<&testbed::Identity>,
        text: &str,
    ) -> Result<String> {
        let output = self.kubectl_as(user, &["apply", "-f", "-"], text)?;
        anyhow::ensure!(!output.status.success(), "it was accepted: {text}");
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs `kubectl` in the scenario's namespace, by default as the administrator.
    pub(crate) fn kubectl_as(
        &self,
        user: Option<&testbed::Identity>,
        args: &[&str],
        text: &str,
    ) -> Result<std::process::Output> {
        let scenario = &self.scenario;
        let admin = scenario.cluster.admin();
        let args = [&["--namespace", &scenario.namespace], args].concat();
        let text = scenario.text(text);
        scenario
            .cluster
            .kubectl(user.unwrap_or(&admin), &args, Some(&text))
    }

    /// Runs `kubectl apply`, which must succeed; returns its standard output and standard error.
    pub(crate) fn accepted(&self, text: &str) -> Result<String> {
        let output = self.kubectl_as(None, &["apply", "-f", "-"], text)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(printed(&output, "kubectl")? + &stderr)
    }
}
