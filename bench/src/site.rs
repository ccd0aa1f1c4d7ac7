//! A control plane without controllers, and `ork` on it as the service account of `ork generate rbac`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::{Value, json};
use testbed::{ControlPlane, Identity, Mark, eventually};

use crate::api::{self, Write};
use crate::process::{Ork, cpu_seconds};
use crate::requests::Requests;
use crate::shop::{Child, Kind, NAMESPACE, Tuning, katalog, resource_name};

/// The longest time until definitions are served, permissions take effect or operators run.
const LIMIT: Duration = Duration::from_mins(5);
/// The time for which the API server delays creations of a kind after its definition became served.
///
/// Source: `apiextensions-apiserver`, `crdHandler.ServeHTTP`: two seconds, because of setups with several API servers.
const YOUNG: Duration = Duration::from_millis(2500);
/// The user to which `ork generate rbac` grants the permissions.
const USER: &str = "system:serviceaccount:orkestra-system:orkestra";

/// One control plane, which ends when this value is dropped.
pub(crate) struct Site {
    pub(crate) cluster: ControlPlane,
    /// The administrator's client.
    pub(crate) client: Client,
    /// Children as `ork` creates them, for the measurements without it.
    pub(crate) children: Vec<Child>,
    identity: Identity,
    program: PathBuf,
    /// The arguments of each controller.
    arguments: Vec<String>,
}

impl Site {
    /// Starts a control plane with Orkestra's own definitions and the namespace [`NAMESPACE`].
    pub(crate) async fn start(program: &std::path::Path) -> Result<Self> {
        let options = testbed::Options {
            without_controllers: true,
            ..testbed::Options::default()
        };
        let cluster = tokio::task::block_in_place(|| ControlPlane::start(options))?;
        let mut site = Self {
            client: cluster.admin().client()?,
            identity: cluster.identity(USER, &["system:serviceaccounts"])?,
            cluster,
            program: program.to_owned(),
            children: Vec::new(),
            arguments: Vec::new(),
        };
        // Without leader election the process starts at once. One scenario runs two replicas.
        if site.has_leader_election()? {
            site.arguments.push("--leader-elect=false".to_owned());
        }
        site.children = site.render()?;
        site.namespace(NAMESPACE).await?;
        let own: Vec<Value> = serde_saphyr::from_multiple(&site.ork(&["crds"])?)?;
        site.define(&own).await?;
        Ok(site)
    }

    /// Returns true if `ork` supports leader election.
    pub(crate) fn has_leader_election(&self) -> Result<bool> {
        Ok(self
            .ork(&["controller", "--help"])?
            .contains("--leader-elect"))
    }

    /// Creates a namespace.
    pub(crate) async fn namespace(&self, name: &str) -> Result<()> {
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        Write::apply(&format!("/api/v1/namespaces/{name}"), &namespace)
            .send(&self.client)
            .await
    }

    /// Applies the definitions of `kinds` and waits until they are served.
    pub(crate) async fn install(&self, kinds: &[Kind]) -> Result<()> {
        let definitions: Vec<Value> = kinds.iter().map(Kind::definition).collect::<Result<_>>()?;
        self.define(&definitions).await?;
        tokio::time::sleep(YOUNG).await;
        Ok(())
    }

    /// Applies definitions and waits until they are served.
    pub(crate) async fn define(&self, definitions: &[Value]) -> Result<()> {
        let writes: Vec<Write> = definitions
            .iter()
            .map(|crd| {
                let name = api::name(crd);
                Write::apply(
                    &format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"),
                    crd,
                )
            })
            .collect();
        api::send_all(&self.client, &writes).await?;
        futures::stream::iter(definitions)
            .map(|crd| self.until_served(crd))
            .buffer_unordered(api::WORKERS)
            .try_for_each(|()| async { Ok(()) })
            .await
    }

    async fn until_served(&self, crd: &Value) -> Result<()> {
        let [group, version, plural] =
            ["/spec/group", "/spec/versions/0/name", "/spec/names/plural"]
                .map(|pointer| api::text(crd, pointer));
        let path = format!("/apis/{group}/{version}/{plural}?limit=1");
        eventually(&format!("{plural} are served"), LIMIT, async || {
            api::get(&self.client, &path).await.map(|_| Some(()))
        })
        .await
    }

    /// Grants the permissions that `ork generate rbac` prints for the Katalogs, and waits until they take effect for `kinds`.
    pub(crate) async fn grant(&self, katalogs: &[Value], kinds: &[Kind]) -> Result<()> {
        let mut arguments = vec!["generate".to_owned(), "rbac".to_owned(), "-k".to_owned()];
        for katalog in katalogs {
            arguments.push(self.file(&format!("{}.yaml", api::name(katalog)), katalog)?);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let rights = self.ork(&arguments)?;
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        let admin = self.cluster.admin();
        let output =
            tokio::task::block_in_place(|| self.cluster.kubectl(&admin, &apply, Some(&rights)))?;
        ensure!(
            output.status.success(),
            "the permissions cannot be granted: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let group = "bench.orkestra.io";
        let of_kinds = kinds.iter().map(|kind| (group, kind.plural()));
        let wanted = of_kinds.chain([
            ("", "configmaps".to_owned()),
            ("orkestra.orkspace.io", "katalogs".to_owned()),
        ]);
        futures::stream::iter(wanted)
            .map(|(group, plural)| self.until_allowed(group, plural))
            .buffer_unordered(api::WORKERS)
            .try_for_each(|()| async { Ok(()) })
            .await
    }

    /// Waits until the permissions take effect: the API server watches roles, with a short delay.
    async fn until_allowed(&self, group: &str, plural: String) -> Result<()> {
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": { "user": USER, "resourceAttributes": { "verb": "patch", "group": group, "resource": plural } },
        });
        eventually(&format!("`ork` may patch {plural}"), LIMIT, async || {
            let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(question.to_string().into_bytes())?;
            let answer: Value = self.client.request(request).await?;
            Ok((answer["status"]["allowed"] == true).then_some(()))
        })
        .await
    }

    /// Starts `ork controller`.
    pub(crate) async fn controller(&self) -> Result<Ork> {
        self.controller_with(&self.arguments).await
    }

    /// Starts `ork controller` with webhooks at this port.
    pub(crate) async fn controller_serving(&self, port: u16, more: &[String]) -> Result<Ork> {
        let webhooks = [
            format!("--webhooks-listen=127.0.0.1:{port}"),
            format!("--webhooks-url=https://127.0.0.1:{port}"),
            // The namespace of the printed Role.
            "--webhooks-namespace=orkestra-system".to_owned(),
        ];
        self.controller_with(&[&self.arguments[..], &webhooks, more].concat())
            .await
    }

    /// Starts `ork controller` with one additional argument.
    pub(crate) async fn controller_plus(&self, argument: &str) -> Result<Ork> {
        let one = [argument.to_owned()];
        self.controller_with(&[&self.arguments[..], &one].concat())
            .await
    }

    /// Starts `ork controller` for the Katalogs of one namespace.
    pub(crate) async fn controller_for(&self, namespace: &str) -> Result<Ork> {
        let one = ["--namespace".to_owned(), namespace.to_owned()];
        self.controller_with(&[&self.arguments[..], &one].concat())
            .await
    }

    /// Starts `ork controller` as one of several replicas with leader election.
    pub(crate) async fn replica(&self) -> Result<Ork> {
        // In a Pod this would be the default.
        let namespace = "--leader-elect-resource-namespace=orkestra-system".to_owned();
        self.controller_with(&[namespace]).await
    }

    /// Starts `ork controller` with exactly these arguments.
    async fn controller_with(&self, arguments: &[String]) -> Result<Ork> {
        let folder = self.cluster.folder();
        Ork::start(
            &self.program,
            self.identity.kubeconfig_path(),
            folder,
            arguments,
        )
        .await
    }

    /// Applies Katalogs.
    pub(crate) async fn apply_katalogs(&self, katalogs: &[Value]) -> Result<()> {
        let writes: Vec<Write> = katalogs.iter().map(apply_katalog).collect();
        api::send_all(&self.client, &writes).await.map(drop)
    }

    /// Waits until all operators of the Katalogs run, as reported by the statuses.
    pub(crate) async fn until_running(&self, ork: &mut Ork, katalogs: &[Value]) -> Result<()> {
        for katalog in katalogs {
            let name = api::name(katalog);
            let path = format!("{}/{name}", katalogs_path());
            let what = format!("the operators of {name} run");
            let running = eventually(&what, LIMIT, async || {
                if let Err(ended) = ork.check() {
                    return Ok(Some(Err(ended)));
                }
                let live = api::get(&self.client, &path).await?;
                ensure!(is_running(&live), "its status: {}", live["status"]);
                Ok(Some(Ok(())))
            });
            running
                .await
                .and_then(|ended| ended)
                .with_context(|| format!("`ork` says:\n{}", ork.tail()))?;
        }
        Ok(())
    }

    /// Waits until `operators` operators run, as reported by the controller's own page. For a controller that was started with
    /// Katalogs whose statuses report running operators already.
    pub(crate) async fn until_all_run(&self, ork: &mut Ork, operators: usize) -> Result<()> {
        let running = eventually("all operators run", LIMIT, async || {
            if let Err(ended) = ork.check() {
                return Ok(Some(Err(ended)));
            }
            let page: Value = serde_json::from_str(&ork.get("/katalog").await?)?;
            let counts = &page["statusCounts"];
            let run: u64 = ["started", "healthy"]
                .iter()
                .filter_map(|state| counts[state].as_u64())
                .sum();
            ensure!(
                usize::try_from(run)? == operators,
                "of {operators}: {counts}"
            );
            Ok(Some(Ok(())))
        });
        running.await?
    }

    /// Installs the kinds, grants the permissions, starts `ork`, applies the Katalogs and waits until their operators run.
    pub(crate) async fn run(&self, kinds: &[Kind], katalogs: &[Value]) -> Result<Ork> {
        self.install(kinds).await?;
        self.grant(katalogs, kinds).await?;
        let mut ork = self.controller().await?;
        self.apply_katalogs(katalogs).await?;
        self.until_running(&mut ork, katalogs).await?;
        Ok(ork)
    }

    /// Returns the current end of the audit log.
    pub(crate) fn mark(&self) -> Result<Mark> {
        self.cluster.mark()
    }

    /// Returns the requests of `ork` since `mark`.
    pub(crate) fn requests_since(&self, mark: Mark) -> Result<Requests> {
        Ok(Requests::of(USER, &self.cluster.audit_since(mark)?))
    }

    /// Returns the time of the last request of `ork` for a custom resource or a child since `mark`.
    pub(crate) fn last_request_since(&self, mark: Mark) -> Result<Option<jiff::Timestamp>> {
        let events = self.cluster.audit_since(mark)?;
        let own = events
            .iter()
            .filter(|event| event.user == USER && Requests::grows(event));
        Ok(own.map(|event| event.timestamp).max())
    }

    /// Returns the CPU seconds that etcd and the API server have used so far. They limit the speed of a series of writes.
    pub(crate) fn servers_cpu() -> Result<f64> {
        let own = std::process::id().to_string();
        let mut sum = 0.0;
        for entry in std::fs::read_dir("/proc")? {
            // A process may end during this loop.
            let Ok(stat) = std::fs::read_to_string(entry?.path().join("stat")) else {
                continue;
            };
            let ours = stat
                .rsplit_once(')')
                .is_some_and(|(_, fields)| fields.split_whitespace().nth(1) == Some(&own));
            if ours && (stat.contains("(etcd)") || stat.contains("(kube-apiserver)")) {
                sum += cpu_seconds(&stat)?;
            }
        }
        Ok(sum)
    }

    /// Returns the children that `ork` would create.
    fn render(&self) -> Result<Vec<Child>> {
        let kind = Kind::numbered(0);
        let katalog = katalog("rendered", std::slice::from_ref(&kind), &Tuning::default())?;
        let mut resource = kind.resource(NAMESPACE, &resource_name(0));
        // Without a uid there would be no owner references.
        resource["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
        let files = [
            self.file("rendered.yaml", &katalog)?,
            self.file("rendered-crd.yaml", &kind.definition()?)?,
            self.file("rendered-cr.yaml", &resource)?,
        ];
        let [katalog, crd, resource] = &files;
        let arguments = [
            "render",
            "-o",
            "json",
            "--show-secrets",
            "-k",
            katalog,
            crd,
            "--cr",
            resource,
        ];
        let list: Value = serde_json::from_str(&self.ork(&arguments)?)?;
        let objects = list["items"]
            .as_array()
            .context("`ork render` printed no list")?;
        ensure!(
            objects.len() == crate::shop::BLOCKS.len(),
            "`ork render` printed {} objects",
            objects.len()
        );
        objects.iter().map(Child::of).collect()
    }

    /// Writes `object` to a file for `ork` and returns its path.
    fn file(&self, name: &str, object: &Value) -> Result<String> {
        let path = self.cluster.folder().join(name);
        std::fs::write(&path, object.to_string())?;
        Ok(path.to_str().context("a path is not text")?.to_owned())
    }

    /// Runs `ork` to its end, without a cluster, and returns its output.
    fn ork(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .env_remove("RUST_LOG")
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        if !output.status.success() {
            bail!(
                "ork {arguments:?} ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Returns the apply of a Katalog.
pub(crate) fn apply_katalog(katalog: &Value) -> Write {
    Write::apply(
        &format!("{}/{}", katalogs_path(), api::name(katalog)),
        katalog,
    )
}

fn katalogs_path() -> String {
    format!("/apis/orkestra.orkspace.io/v1/namespaces/{NAMESPACE}/katalogs")
}

/// Returns true if the Katalog's status reports for its current generation that all operators run.
fn is_running(katalog: &Value) -> bool {
    let conditions = katalog
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        one["type"] == "Ready"
            && one["status"] == "True"
            && one["observedGeneration"] == katalog["metadata"]["generation"]
    })
}
