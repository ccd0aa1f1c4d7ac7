//! A control plane without controllers, and `ork` on it as the service account that `ork generate rbac` makes.

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

/// How long definitions, rights and operators may take to be there.
const LIMIT: Duration = Duration::from_mins(5);
/// For how long the API server holds up creations of a kind whose definition has just come to be served.
///
/// Source: `apiextensions-apiserver`, `crdHandler.ServeHTTP`: two seconds, for those of several API servers.
const YOUNG: Duration = Duration::from_millis(2500);
/// The user that `ork generate rbac` gives the rights to.
const USER: &str = "system:serviceaccount:orkestra-system:orkestra";

/// One control plane, which ends with this value.
pub(crate) struct Site {
    pub(crate) cluster: ControlPlane,
    /// The administrator's client.
    pub(crate) client: Client,
    /// Children as `ork` makes them, for the runs without it.
    pub(crate) children: Vec<Child>,
    identity: Identity,
    program: PathBuf,
    /// Arguments of each controller.
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
        // One process that need not wait to be the leader, unless a scenario wants two.
        if site.has_leader_election()? {
            site.arguments.push("--leader-elect=false".to_owned());
        }
        site.children = site.render()?;
        site.namespace(NAMESPACE).await?;
        let own: Vec<Value> = serde_saphyr::from_multiple(&site.ork(&["crds"])?)?;
        site.define(&own).await?;
        Ok(site)
    }

    /// Whether `ork` has a leader among its replicas.
    pub(crate) fn has_leader_election(&self) -> Result<bool> {
        Ok(self
            .ork(&["controller", "--help"])?
            .contains("--leader-elect"))
    }

    /// Makes a namespace.
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

    /// Grants exactly what `ork generate rbac` prints for the Katalogs, and waits until it holds for `kinds`.
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
            "the rights cannot be granted: {}",
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

    /// The API server takes in roles by a watch of its own: a moment after they are written.
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

    /// Starts `ork controller` with webhooks at that port.
    pub(crate) async fn controller_serving(&self, port: u16, more: &[String]) -> Result<Ork> {
        let webhooks = [
            format!("--webhooks-listen=127.0.0.1:{port}"),
            format!("--webhooks-url=https://127.0.0.1:{port}"),
            // That of the printed Role.
            "--webhooks-namespace=orkestra-system".to_owned(),
        ];
        self.controller_with(&[&self.arguments[..], &webhooks, more].concat())
            .await
    }

    /// Starts `ork controller` with one more argument.
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

    /// Starts `ork controller` as one of several, of which one leads.
    pub(crate) async fn replica(&self) -> Result<Ork> {
        // Where a Pod would have it by itself.
        let namespace = "--leader-elect-resource-namespace=orkestra-system".to_owned();
        self.controller_with(&[namespace]).await
    }

    /// Starts `ork controller` with exactly those arguments.
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

    /// Waits until all operators of the Katalogs run, as their statuses tell.
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

    /// Waits until `operators` operators run, as the controller's own page tells: that of one that was started over Katalogs whose
    /// statuses say so already.
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

    /// Installs the kinds, grants the rights, starts `ork` and has the Katalogs run.
    pub(crate) async fn run(&self, kinds: &[Kind], katalogs: &[Value]) -> Result<Ork> {
        self.install(kinds).await?;
        self.grant(katalogs, kinds).await?;
        let mut ork = self.controller().await?;
        self.apply_katalogs(katalogs).await?;
        self.until_running(&mut ork, katalogs).await?;
        Ok(ork)
    }

    /// The present end of the audit log.
    pub(crate) fn mark(&self) -> Result<Mark> {
        self.cluster.mark()
    }

    /// What `ork` has asked for since `mark`.
    pub(crate) fn requests_since(&self, mark: Mark) -> Result<Requests> {
        Ok(Requests::of(USER, &self.cluster.audit_since(mark)?))
    }

    /// When `ork` last asked for a custom resource or a child since `mark`.
    pub(crate) fn last_request_since(&self, mark: Mark) -> Result<Option<jiff::Timestamp>> {
        let events = self.cluster.audit_since(mark)?;
        let own = events
            .iter()
            .filter(|event| event.user == USER && Requests::grows(event));
        Ok(own.map(|event| event.timestamp).max())
    }

    /// CPU seconds that etcd and the API server have used so far: what a run of writes is limited by.
    pub(crate) fn servers_cpu() -> Result<f64> {
        let own = std::process::id().to_string();
        let mut sum = 0.0;
        for entry in std::fs::read_dir("/proc")? {
            // A process may end while it is looked at.
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

    /// The children that `ork` would make.
    fn render(&self) -> Result<Vec<Child>> {
        let kind = Kind::numbered(0);
        let katalog = katalog("rendered", std::slice::from_ref(&kind), &Tuning::default())?;
        let mut resource = kind.resource(NAMESPACE, &resource_name(0));
        // Without one there would be no owner references.
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

    /// Writes `object` to a file that `ork` is given; its path.
    fn file(&self, name: &str, object: &Value) -> Result<String> {
        let path = self.cluster.folder().join(name);
        std::fs::write(&path, object.to_string())?;
        Ok(path.to_str().context("a path is not text")?.to_owned())
    }

    /// Runs `ork` to its end, without a cluster; what it printed.
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

/// The apply of a Katalog.
pub(crate) fn apply_katalog(katalog: &Value) -> Write {
    Write::apply(
        &format!("{}/{}", katalogs_path(), api::name(katalog)),
        katalog,
    )
}

fn katalogs_path() -> String {
    format!("/apis/orkestra.orkspace.io/v1/namespaces/{NAMESPACE}/katalogs")
}

/// Whether the Katalog's status says of its present generation that all operators run.
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
