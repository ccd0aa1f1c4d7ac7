//! `ork top` and `ork logs`: the pages and logs of the controller's Pods, through the API server.

use std::{
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Output,
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::{Value, json};
use testbed::eventually;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::scenario::{LIMIT, Objects, Scenario, input};
use crate::waters;

/// Lines of a log in the format of the shipped Deployment, and one in the other.
const LOG: &str = r#"{"level":"INFO","message":"starting operator","katalog":"NAMESPACE/ponds","operator":"pond"}
{"level":"WARN","message":"pass failed","operator":"pond","object":"NAMESPACE/north","error":"no"}
{"level":"WARN","message":"pass failed","operator":"lake","object":"NAMESPACE/north"}
2026-01-01T00:00:00Z  WARN orkestra_operator: pass failed operator=pond object=NAMESPACE/south
"#;

/// Returns an address of this machine that the API server's proxy accepts: loopback addresses are refused.
fn own_address() -> Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // Nothing is sent: this chooses a route.
    socket.connect("192.0.2.250:9")?;
    Ok(socket.local_addr()?.ip().to_string())
}

/// Creates the Pod of the controller, as a kubelet would report it.
async fn controller_pod(
    scenario: &Scenario,
    name: &str,
    spec: &Value,
    address: &str,
) -> Result<()> {
    let pods = scenario.objects("pods");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app.kubernetes.io/name": "orkestra" } },
        "spec": spec,
    });
    pods.create(&pod).await?;
    let status = json!({ "status": { "phase": "Running", "podIP": address, "podIPs": [{ "ip": address }] } });
    pods.patch(&format!("{name}/status"), &status).await?;
    Ok(())
}

/// Runs `ork top` once with that kubeconfig.
fn top(scenario: &Scenario, kubeconfig: &Path, more: &[&str]) -> Result<Output> {
    let mut command = scenario.command_as(&scenario.cluster.admin());
    command.env("KUBECONFIG", kubeconfig);
    command.args([
        "top",
        "--count",
        "1",
        "--interval",
        "1s",
        "--output",
        "json",
    ]);
    command.args(["--system-namespace", &scenario.namespace]);
    Ok(command.args(more).output()?)
}

/// Binds roles to a service account, and returns a kubeconfig with a token of it.
async fn reader(scenario: &Scenario) -> Result<PathBuf> {
    let namespace = &scenario.namespace;
    scenario.kubectl(&["create", "serviceaccount", "reader"])?;
    let role = json!([
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "reader" }, "rules": [
            { "apiGroups": [""], "resources": ["pods"], "verbs": ["list"] },
            { "apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"] } ] },
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": format!("{namespace}-metrics") },
            "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }] },
    ]);
    for object in role.as_array().into_iter().flatten() {
        scenario.apply(&object.to_string())?;
    }
    let account = format!("--serviceaccount={namespace}:reader");
    scenario.kubectl(&["create", "rolebinding", "reader", "--role=reader", &account])?;
    let role = format!("--clusterrole={namespace}-metrics");
    let name = format!("{namespace}-metrics");
    scenario.kubectl(&["create", "clusterrolebinding", &name, &role, &account])?;
    let user = format!("--as=system:serviceaccount:{namespace}:reader");
    eventually("the binding is in force", LIMIT, async || {
        let page = scenario.kubectl(&["auth", "can-i", "get", "/metrics", &user]);
        Ok(page.is_ok().then_some(()))
    })
    .await?;
    let token = scenario.kubectl(&["create", "token", "reader"])?;
    let admin = scenario.cluster.admin();
    let mut config: Value = serde_saphyr::from_str(admin.kubeconfig())?;
    config["users"][0]["user"] = json!({ "token": token.trim() });
    scenario.file("reader.kubeconfig", &config.to_string())
}

// Over 60 lines: one installation, read with each kind of credentials.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_are_read_through_the_proxy_with_the_callers_own_token() -> Result<()> {
    let katalog = input("komposer/ponds.yaml")?;
    let mut scenario = Scenario::new("top").await?;
    scenario.grant(&katalog).await?;
    // Pages on any other address than loopback need a token.
    scenario.host = "0.0.0.0";
    scenario.start().await?;
    scenario.install(&waters::crds()?).await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("ponds", "True", "Running").await?;
    waters::pond(&scenario, "north", &json!({})).await?;
    scenario.objects("ponds").until_ready("north").await?;
    let port = scenario.listen.rsplit(':').next().context("no port")?;
    let port: u16 = port.parse()?;
    let spec = json!({ "schedulerName": "none", "containers": [{ "name": "orkestra", "image": "registry.example/ork:1",
        "ports": [{ "name": "http", "containerPort": port }] }] });
    controller_pod(&scenario, "orkestra-0", &spec, &own_address()?).await?;

    let kubeconfig = reader(&scenario).await?;
    let read = top(&scenario, &kubeconfig, &[])?;
    ensure!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
    let page: Value = serde_json::from_slice(&read.stdout)?;
    let row = &page["operators"][0];
    ensure!(
        row["katalog"] == format!("{}/ponds", scenario.namespace) && row["operator"] == "pond",
        "{page:#}"
    );
    ensure!(row["resources"] == 1 && row["ready"] == 1, "{page:#}");
    ensure!(row["workers"].as_u64() > Some(0), "{page:#}");

    // A client certificate is no token.
    let admin = scenario.cluster.admin();
    let refused = top(&scenario, admin.kubeconfig_path(), &[])?;
    let why = String::from_utf8_lossy(&refused.stderr);
    ensure!(refused.status.code() == Some(1), "{why}");
    ensure!(why.contains("--service-account NAMESPACE/NAME"), "{why}");
    let account = format!("{}/reader", scenario.namespace);
    let read = top(
        &scenario,
        admin.kubeconfig_path(),
        &["--service-account", &account],
    )?;
    ensure!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );

    // A token whose user may not read the page.
    scenario.kubectl(&["create", "serviceaccount", "other"])?;
    let other = format!("{}/other", scenario.namespace);
    let refused = top(
        &scenario,
        admin.kubeconfig_path(),
        &["--service-account", &other],
    )?;
    let why = String::from_utf8_lossy(&refused.stderr);
    ensure!(why.contains("cannot get path \"/metrics\""), "{why}");
    ensure!(why.contains("nonResourceURLs"), "{why}");

    // Without the permission for the proxy, the line names it.
    scenario.kubectl(&["delete", "rolebinding", "reader"])?;
    let why = eventually("the permission is gone", LIMIT, async || {
        let refused = top(&scenario, &kubeconfig, &[])?;
        Ok((!refused.status.success()).then_some(refused))
    })
    .await?;
    let why = String::from_utf8_lossy(&why.stderr).into_owned();
    ensure!(
        why.contains(&format!(
            "missing permission: list pods in namespace {}",
            scenario.namespace
        )),
        "{why}"
    );
    scenario.check_running()
}

/// Answers as a kubelet does for logs, until the test ends. Returns the port.
async fn kubelet(log: String) -> Result<u16> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["node".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, log) = (acceptor.clone(), log.clone());
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await?;
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await?);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let body = if head.starts_with("GET /containerLogs/") {
                    log
                } else {
                    String::new()
                };
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
                let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await?;
                stream.shutdown().await
            });
        }
    });
    Ok(port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_the_log_are_selected_by_operator_and_object() -> Result<()> {
    let scenario = Scenario::on_its_own("logs").await?;
    scenario.install(&waters::crds()?).await?;
    waters::pond(&scenario, "north", &json!({})).await?;
    let port = kubelet(scenario.text(LOG)).await?;
    let nodes = Objects::at(&scenario.client, "/api/v1/nodes");
    nodes
        .create(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node" } }))
        .await?;
    let status = json!({ "status": { "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": port } } } });
    nodes.patch("node/status", &status).await?;
    let spec = json!({ "nodeName": "node", "containers": [{ "name": "orkestra", "image": "registry.example/ork:1" }] });
    controller_pod(&scenario, "orkestra-0", &spec, "10.0.0.1").await?;

    let admin = scenario.cluster.admin();
    let logs = |more: &[&str]| -> Result<Vec<String>> {
        let mut command = scenario.command_as(&admin);
        command.args(["logs", "--system-namespace", &scenario.namespace]);
        command
            .args(["--namespace", &scenario.namespace])
            .args(more);
        let output = command.output()?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{more:?}: {errors}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().map(str::to_owned).collect())
    };
    let all = logs(&[])?;
    ensure!(all.len() == 4, "{all:?}");
    let of_pond = logs(&["--operator", "pond"])?;
    ensure!(of_pond.len() == 3, "{of_pond:?}");
    let of_katalog = logs(&["katalog/ponds"])?;
    ensure!(of_katalog == all[..1], "{of_katalog:?}");
    let north = format!("pond.{}/north", scenario.group);
    let of_north = logs(&[&north])?;
    ensure!(of_north == all[1..3], "{of_north:?}");
    let both = logs(&[&north, "--operator", "lake"])?;
    ensure!(both == all[2..3], "{both:?}");

    // Another namespace has no controller.
    let mut command = scenario.command_as(&admin);
    let absent = command
        .args(["logs", "--system-namespace", "default"])
        .output()?;
    let why = String::from_utf8_lossy(&absent.stderr);
    ensure!(
        absent.status.code() == Some(1) && why.contains("--system-namespace"),
        "{why}"
    );
    Ok(())
}
