//! `ork gateway` without a controller: reviews and conversions work, and CEL rules of policies still hold when no replica runs.

use std::path::PathBuf;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Result, ensure};
use futures::{AsyncBufRead, AsyncBufReadExt as _, StreamExt as _};
use orkestra_ground::tasks::Task;
use serde_json::{Value, json};
use testbed::{Guarded, eventually, free_port, spawn_guarded};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{Gate, conversion};
use crate::{
    scenario::{FAULTS, LIMIT, NAMESPACE_LIMIT, Objects, ask, strike},
    waters,
};

const SITES: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  security: { webhooks: { admission: { enabled: true }, failurePolicy: Fail } }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      mutation:
        rules: [{ field: spec.replicas, default: '2' }]
      validation:
        rules:
          - { field: spec.image, prefix: 'myorg/', message: 'images must come from the internal registry' }
          - { field: '{{ .spec.tier | upper }}', notEquals: LEAD, message: 'no lead' }
          - { field: spec.seen, operator: unique, message: 'it was seen' }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

/// A stand-in for a Service: connects clients to the replicas in turn, and skips replicas that refuse connections.
pub(crate) struct Service {
    _tasks: JoinSet<()>,
}

impl Service {
    pub(crate) async fn start(port: u16, replicas: Vec<u16>) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let (replicas, next) = (Arc::new(replicas), AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let (replicas, first) = (replicas.clone(), next.fetch_add(1, Ordering::Relaxed));
                connections.spawn(async move {
                    for serial in 0..replicas.len() {
                        let port = replicas[(first + serial) % replicas.len()];
                        if let Ok(mut replica) = TcpStream::connect(("127.0.0.1", port)).await {
                            // An error means that the client or the replica closed the connection.
                            let _ = tokio::io::copy_bidirectional(&mut client, &mut replica).await;
                            return;
                        }
                    }
                });
            }
        });
        Ok(Self { _tasks: tasks })
    }
}

/// Starts `ork gateway` as a replica of the Service, and waits until it is ready.
async fn replica(gate: &Gate, name: &str, port: u16) -> Result<Guarded> {
    start(gate, (name, port), &["gateway"]).await
}

/// Returns the path of the file that injects faults into a process.
fn faults(gate: &Gate, name: &str) -> PathBuf {
    gate.scenario.path(&format!("{name}.faults"))
}

/// Starts a process as a replica of the Service, and waits until it is ready.
pub(crate) async fn start(
    gate: &Gate,
    (name, port): (&str, u16),
    arguments: &[&str],
) -> Result<Guarded> {
    let scenario = &gate.scenario;
    let listen = format!("127.0.0.1:{}", free_port()?);
    let mut command = scenario.command_as(&scenario.identity);
    command
        .args(arguments)
        .args(["--namespace", &scenario.namespace, "--listen", &listen])
        // These arguments contain the URL of the Service; the port to listen on is replaced below.
        .args(gate.arguments(&[]));
    let arguments: Vec<String> = command
        .get_args()
        .map(|one| one.to_string_lossy().into_owned())
        .map(|one| match one.strip_prefix("--webhooks-listen=") {
            Some(_) => format!("--webhooks-listen=127.0.0.1:{port}"),
            None => one,
        })
        .collect();
    let mut command = scenario.command_as(&scenario.identity);
    command
        .args(arguments)
        .env("POD_NAME", name)
        .env(FAULTS, faults(gate, name));
    let mut process = spawn_guarded(&command, &scenario.path(&format!("{name}.log")))?;
    eventually("the process is ready", LIMIT, async || {
        if let Some(status) = process.status()? {
            anyhow::bail!("it ended with {status}: {}", process.log());
        }
        let ready = ask(&listen, "/readyz").await?;
        Ok(ready.starts_with("HTTP/1.1 200").then_some(()))
    })
    .await?;
    Ok(process)
}

fn site(gate: &Gate, name: &str, spec: &Value) -> Value {
    waters::resource(&gate.scenario, "Site", name, spec)
}

/// Checks that writes that need no webhook succeed: Pods in `kube-system`, objects in the gateway's namespace, other kinds.
async fn ensure_others_are_written(gate: &Gate) -> Result<()> {
    let scenario = &gate.scenario;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": scenario.namespace },
        "spec": { "containers": [{ "name": "a", "image": "registry.example/a:1" }] },
    });
    let pods = scenario.objects_in("kube-system", "pods");
    pods.create(&pod).await?;
    pods.delete(&scenario.namespace).await?;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "orkestra" },
        "spec": {
            "replicas": 0, "selector": { "matchLabels": { "app": "a" } },
            "template": { "metadata": { "labels": { "app": "a" } }, "spec": pod["spec"] },
        },
    });
    let own = scenario.objects_in(&gate.home(), "deployments");
    own.create(&deployment).await?;
    own.patch("orkestra", &json!({ "spec": { "replicas": 1 } }))
        .await?;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "other" } });
    scenario.objects("configmaps").create(&map).await?;
    let namespaces = Objects::at(&scenario.client, "/api/v1/namespaces");
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    namespaces.patch(&scenario.namespace, &label).await?;
    Ok(())
}

/// Creates a namespace that contains a custom resource, and in the scenario's namespace the resource `hourly` with a child. Both
/// resources are written in v1. Returns the name of the namespace.
pub(crate) async fn doomed(gate: &Gate, cron: &Value) -> Result<String> {
    let scenario = &gate.scenario;
    let name = format!("{}-doomed", scenario.namespace);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    Objects::at(&scenario.client, "/api/v1/namespaces")
        .create(&namespace)
        .await?;
    let path = format!("/apis/{}/v1/namespaces/{name}/crons", scenario.group);
    Objects::at(&scenario.client, &path).create(cron).await?;
    let mut hourly = cron.clone();
    hourly["metadata"]["name"] = json!("hourly");
    let owner = conversion::crons(gate, "v1").create(&hourly).await?;
    let reference = json!({
        "apiVersion": owner["apiVersion"], "kind": "Cron", "name": "hourly", "uid": owner["metadata"]["uid"],
    });
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "owned", "ownerReferences": [reference] },
    });
    scenario.objects("configmaps").create(&child).await?;
    Ok(name)
}

/// Opens a watch of all custom resources in a version.
pub(crate) async fn watch(gate: &Gate, version: &str) -> Result<impl AsyncBufRead + Unpin + use<>> {
    let scenario = &gate.scenario;
    let path = format!(
        "/apis/{}/{version}/namespaces/{}/crons?watch=true",
        scenario.group, scenario.namespace
    );
    let request = http::Request::get(path).body(Vec::new())?;
    Ok(scenario.client.request_stream(request).await?)
}

/// Waits until a line of the watch in that version contains `seen` and `text`.
pub(crate) async fn until_seen(
    gate: &Gate,
    lines: impl AsyncBufRead + Unpin,
    (version, text): (&str, &str),
) -> Result<()> {
    let seen = async {
        if sees(lines, text).await? {
            return Ok(());
        }
        // The API server ends the watches of a kind whose definition changes, and clients watch again.
        while !sees(watch(gate, version).await?, text).await? {}
        Ok(())
    };
    tokio::time::timeout(LIMIT, seen).await?
}

/// Returns true at a line that contains `seen` and `text`; false if the watch ends without one.
async fn sees(lines: impl AsyncBufRead + Unpin, text: &str) -> Result<bool> {
    let mut lines = lines.lines();
    while let Some(line) = lines.next().await {
        let line = line?;
        if line.contains("seen") && line.contains(text) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateway_alone_judges_and_converts_and_without_any_replica_cel_rules_still_deny()
-> Result<()> {
    let crds = &["rules/crds.yaml", conversion::CRD];
    let gate = Gate::prepared("gatesolo", crds, &[SITES, conversion::KATALOG]).await?;
    let ports = [free_port()?, free_port()?];
    let _service = Service::start(gate.port, ports.to_vec()).await?;
    let mut first = replica(&gate, "first", ports[0]).await?;
    let mut second = replica(&gate, "second", ports[1]).await?;
    gate.until_reviewed().await?;
    for katalog in [SITES, conversion::KATALOG] {
        gate.accepted(katalog)?;
    }

    the_webhook_judges_and_mutates(&gate).await?;
    let cron = both_versions_are_served(&gate).await?;
    one_replica_is_enough(&gate, &mut first, &cron).await?;
    plans_follow_a_katalog_after_their_task_is_restarted(&gate, &second).await?;
    second.kill()?;
    policies_hold_without_a_replica(&gate).await
}

/// Applies a Site that must be denied; returns the error.
fn refused(gate: &Gate, name: &str, spec: &Value) -> Result<String> {
    gate.refused(&site(gate, name, spec).to_string())
}

/// Checks that the gateway mutates, evaluates rules that CEL cannot express, and finds duplicates although no controller keeps
/// records. Creates the Site `shop`.
async fn the_webhook_judges_and_mutates(gate: &Gate) -> Result<()> {
    let sites = gate.scenario.objects("sites");
    eventually("the webhook evaluates rules", LIMIT, async || {
        let lead = site(
            gate,
            "lead",
            &json!({ "image": "myorg/a:1", "tier": "lead" }),
        );
        let output = gate.kubectl_as(
            None,
            &["create", "--dry-run=server", "-f", "-"],
            &lead.to_string(),
        )?;
        Ok(String::from_utf8_lossy(&output.stderr)
            .contains("no lead")
            .then_some(()))
    })
    .await?;
    let made = eventually("the mutation is stored", LIMIT, async || {
        let text = site(gate, "shop", &json!({ "image": "myorg/a:1", "seen": "x" }));
        let made = sites.create(&text).await?;
        if made["spec"]["replicas"] != 2 {
            sites.delete("shop").await?;
            return Ok(None);
        }
        Ok(Some(made))
    })
    .await?;
    ensure!(
        made["metadata"]["finalizers"].is_null(),
        "a finalizer was set without a controller: {made}"
    );
    let error = refused(gate, "twin", &json!({ "image": "myorg/a:1", "seen": "x" }))?;
    ensure!(error.contains("it was seen"), "{error}");
    Ok(())
}

/// Writes the Cron `daily` in v1, and checks that it can be read in v2; returns the written object.
async fn both_versions_are_served(gate: &Gate) -> Result<Value> {
    conversion::until_converted(gate).await?;
    let (old, new) = (conversion::crons(gate, "v1"), conversion::crons(gate, "v2"));
    let cron = json!({
        "apiVersion": format!("{}/v1", gate.scenario.group), "kind": "Cron",
        "metadata": { "name": "daily" }, "spec": { "schedule": "5 4 * * 1" },
    });
    eventually("a resource is written in v1", LIMIT, async || {
        Ok(old.create(&cron).await.ok())
    })
    .await?;
    ensure!(new.fetch("daily").await?["spec"]["schedule"]["minute"] == "5");
    Ok(cron)
}

/// Kills the first replica, and checks that the other one serves all requests, including those for watches, the deletion of a
/// namespace, and the garbage collection of a child whose owner is deleted.
async fn one_replica_is_enough(gate: &Gate, first: &mut Guarded, cron: &Value) -> Result<()> {
    let (old, new) = (conversion::crons(gate, "v1"), conversion::crons(gate, "v2"));
    let doomed = doomed(gate, cron).await?;
    let watches = [watch(gate, "v1").await?, watch(gate, "v2").await?];
    first.kill()?;
    eventually("the other replica converts", LIMIT, async || {
        Ok(old.fetch("daily").await.ok())
    })
    .await?;
    let error = refused(
        gate,
        "lead",
        &json!({ "image": "myorg/a:1", "tier": "lead" }),
    )?;
    ensure!(error.contains("no lead"), "{error}");
    let namespaces = Objects::at(&gate.scenario.client, "/api/v1/namespaces");
    namespaces.delete(&doomed).await?;
    new.patch("daily", &json!({ "spec": { "keep": "seen" } }))
        .await?;
    let expected = [("v1", "\"5 4 * * 1\""), ("v2", "\"minute\":\"5\"")];
    for (lines, seen) in watches.into_iter().zip(expected) {
        until_seen(gate, lines, seen).await?;
    }
    let owned = gate.scenario.objects("configmaps");
    old.delete("hourly").await?;
    owned.until_gone("owned", LIMIT).await?;
    namespaces.until_gone(&doomed, NAMESPACE_LIMIT).await?;
    Ok(())
}

/// Ends the task that compiles Katalogs in the remaining replica, and checks that its replacement compiles the next change.
async fn plans_follow_a_katalog_after_their_task_is_restarted(
    gate: &Gate,
    replica: &Guarded,
) -> Result<()> {
    let task = Task::Feed.name();
    strike(&faults(gate, "second"), &[task]).await?;
    eventually("the task is restarted", LIMIT, async || {
        let log = replica.log();
        let is_restart = |line: &str| line.contains("task restarted") && line.contains(task);
        Ok(log.lines().any(is_restart).then_some(()))
    })
    .await?;
    gate.accepted(&SITES.replace("no lead", "no leader"))?;
    let spec = json!({ "image": "myorg/a:1", "tier": "lead" });
    eventually("the new rule is in force", LIMIT, async || {
        let error = refused(gate, "lead", &spec)?;
        Ok(error.contains("no leader").then_some(()))
    })
    .await
}

/// Checks that without a replica, rules of policies are enforced, `failurePolicy` applies to the rules of the webhook, and no
/// other write is affected.
async fn policies_hold_without_a_replica(gate: &Gate) -> Result<()> {
    let sites = gate.scenario.objects("sites");
    let error = refused(gate, "wrong", &json!({ "image": "nginx:1.29" }))?;
    ensure!(
        error.contains("images must come from the internal registry"),
        "{error}"
    );
    let error = refused(gate, "right", &json!({ "image": "myorg/b:1" }))?;
    ensure!(error.contains("failed calling webhook"), "{error}");
    ensure_others_are_written(gate).await?;
    sites.delete("shop").await?;
    ensure!(
        sites.get("shop").await?.is_none(),
        "a deletion was reviewed"
    );
    ensure!(
        conversion::crons(gate, "v2").fetch("daily").await?["spec"]["schedule"]["minute"] == "5",
        "the stored version cannot be read"
    );
    Ok(())
}
