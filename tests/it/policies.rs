//! The shipped `NetworkPolicy`, evaluated against the shipped objects: the test cluster has no network plugin that enforces it.
//!
//! Source: Kubernetes API reference, `NetworkPolicy v1`: a pod that no policy selects allows all traffic, a selected pod only the
//! traffic that a rule allows.

// Test helpers may unwrap as tests do; clippy exempts only the test functions themselves.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, net::IpAddr, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The other end of a connection with a pod.
#[derive(Debug)]
enum Other {
    /// A pod: the labels of its namespace, and its own labels.
    Pod(Value, Value),
    /// An address that belongs to no pod, such as the address of a node.
    Address(IpAddr),
}

fn pod(namespace: Value, labels: Value) -> Other {
    Other::Pod(namespace, labels)
}

fn address(text: &str) -> Other {
    Other::Address(text.parse().unwrap())
}

fn manifests(file: &str) -> Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("config/base")
        .join(file);
    Ok(serde_saphyr::from_multiple::<Value>(
        &std::fs::read_to_string(path)?,
    )?)
}

fn one(file: &str, kind: &str) -> Result<Value> {
    let found = manifests(file)?.into_iter().find(|one| one["kind"] == kind);
    found.with_context(|| format!("no {kind} in {file}"))
}

/// Reports whether a selector matches labels. Only `matchLabels` is supported.
fn selects(selector: &Value, labels: &Value) -> bool {
    let selector = selector.as_object().unwrap();
    assert!(
        selector.keys().all(|key| key == "matchLabels"),
        "{selector:?}"
    );
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    wanted.is_none_or(|wanted| wanted.iter().all(|(key, value)| &labels[key] == value))
}

/// Reports whether a network such as `10.0.0.0/8` contains an address.
fn holds(network: &str, address: IpAddr) -> bool {
    let (base, bits) = network.split_once('/').unwrap();
    let bits: u32 = bits.parse().unwrap();
    let cut = |value: u128, width: u32| value.checked_shr(width - bits).unwrap_or(0);
    match (base.parse().unwrap(), address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            cut(u128::from(u32::from(base)), 32) == cut(u128::from(u32::from(address)), 32)
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => {
            cut(u128::from(base), 128) == cut(u128::from(address), 128)
        }
        _ => false,
    }
}

fn is_peer(peer: &Value, own_namespace: &Value, other: &Other) -> bool {
    match other {
        Other::Address(address) => {
            let block = &peer["ipBlock"];
            let except = block["except"].as_array().into_iter().flatten();
            block["cidr"]
                .as_str()
                .is_some_and(|cidr| holds(cidr, *address))
                && !except
                    .map(|one| one.as_str().unwrap())
                    .any(|one| holds(one, *address))
        }
        Other::Pod(namespace, labels) => {
            if peer.get("ipBlock").is_some() {
                return false;
            }
            let in_namespace = match peer.get("namespaceSelector") {
                Some(selector) => selects(selector, namespace),
                None => namespace == own_namespace,
            };
            let pods = peer.get("podSelector");
            in_namespace && pods.is_none_or(|selector| selects(selector, labels))
        }
    }
}

/// Reports whether the policy allows a connection.
fn allows(
    policy: &Value,
    own_namespace: &Value,
    way: &str,
    other: &Other,
    port: (&str, u64),
) -> bool {
    let (rules, peers) = match way {
        "in" => (&policy["spec"]["ingress"], "from"),
        _ => (&policy["spec"]["egress"], "to"),
    };
    rules.as_array().unwrap().iter().any(|rule| {
        let ports = rule["ports"].as_array().unwrap();
        let is_port = ports
            .iter()
            .any(|one| one["protocol"] == port.0 && one["port"] == port.1);
        let peers = rule.get(peers).and_then(Value::as_array);
        is_port
            && peers
                .is_none_or(|peers| peers.iter().any(|peer| is_peer(peer, own_namespace, other)))
    })
}

#[test]
fn the_shipped_network_policy_allows_what_is_needed_and_nothing_else() -> Result<()> {
    let policy = one("networkpolicy.yaml", "NetworkPolicy")?;
    let deployment = one("deployment.yaml", "Deployment")?;
    let template = &deployment["spec"]["template"];
    ensure!(policy["metadata"]["namespace"] == deployment["metadata"]["namespace"]);
    ensure!(selects(
        &policy["spec"]["podSelector"],
        &template["metadata"]["labels"]
    ));
    ensure!(policy["spec"]["policyTypes"] == json!(["Ingress", "Egress"]));

    let own = json!({ "kubernetes.io/metadata.name": "orkestra-system" });
    for (expected, way, other, port) in table(&own) {
        let allowed = allows(&policy, &own, way, &other, port);
        ensure!(
            allowed == expected,
            "{way} {other:?} {port:?}: allowed is {allowed}"
        );
    }
    Ok(())
}

/// Returns the objects that `ork install` would apply with `--set VALUE`.
fn installed(value: &str) -> Result<Vec<Value>> {
    let mut ork = std::process::Command::new(env!("CARGO_BIN_EXE_ork"));
    ork.args(["install", "--dry-run=client", "--set", value]);
    ork.env("ORK_IMAGE", "registry.invalid/orkestra");
    let text = crate::scenario::printed(&ork.output()?, "ork")?;
    Ok(serde_saphyr::from_multiple::<Value>(&text)?)
}

#[test]
fn with_webhooks_the_network_policy_lets_the_api_server_in_at_their_port_only() -> Result<()> {
    let own = json!({ "kubernetes.io/metadata.name": "orkestra-system" });
    for (value, port, other_port) in [
        ("webhooks.enabled=true", 8443, 9443),
        ("webhooks={enabled: true, port: 9443}", 9443, 8443),
    ] {
        let objects = installed(value)?;
        let policy = objects.iter().find(|one| one["kind"] == "NetworkPolicy");
        let policy = policy.context("`ork install` prints no NetworkPolicy")?;
        // The API server may connect from a node, or through a pod of konnectivity.
        let pod = pod(
            json!({ "kubernetes.io/metadata.name": "kube-system" }),
            json!({}),
        );
        for api_server in [address("10.0.0.4"), pod] {
            ensure!(allows(policy, &own, "in", &api_server, ("TCP", port)));
            ensure!(!allows(
                policy,
                &own,
                "in",
                &api_server,
                ("TCP", other_port)
            ));
            ensure!(!allows(policy, &own, "in", &api_server, ("UDP", port)));
        }
        // All other rules are the same as without webhooks.
        for (expected, way, other, at) in table(&own) {
            if way == "in" && at.1 == port {
                continue;
            }
            let allowed = allows(policy, &own, way, &other, at);
            ensure!(allowed == expected, "{value}: {way} {other:?} {at:?}");
        }
    }
    Ok(())
}

/// Whether a connection is allowed, its direction, its other end, and its protocol and port.
type Row = (bool, &'static str, Other, (&'static str, u64));

fn table(own: &Value) -> Vec<Row> {
    let named = |name: &str| json!({ "kubernetes.io/metadata.name": name });
    let (shop, system) = (named("shop"), named("kube-system"));
    let mut monitoring = named("monitoring");
    monitoring["orkestra.orkspace.io/http-access"] = json!("true");
    let mut refused = named("monitoring");
    refused["orkestra.orkspace.io/http-access"] = json!("false");
    let dns = json!({ "k8s-app": "kube-dns" });
    let any = json!({ "app": "any" });
    vec![
        // Probes are allowed from everywhere: the kubelet's address is the node's.
        (true, "in", address("10.0.0.4"), ("TCP", 8081)),
        (true, "in", pod(shop.clone(), any.clone()), ("TCP", 8081)),
        // Metrics and pages.
        (true, "in", pod(own.clone(), any.clone()), ("TCP", 8080)),
        (
            true,
            "in",
            pod(monitoring.clone(), any.clone()),
            ("TCP", 8080),
        ),
        (false, "in", pod(refused, any.clone()), ("TCP", 8080)),
        (false, "in", pod(shop.clone(), any.clone()), ("TCP", 8080)),
        (false, "in", address("10.0.0.4"), ("TCP", 8080)),
        (false, "in", address("203.0.113.9"), ("TCP", 8080)),
        // No other ingress is allowed.
        (false, "in", pod(monitoring, any.clone()), ("TCP", 22)),
        (false, "in", pod(own.clone(), any.clone()), ("UDP", 8080)),
        (false, "in", address("10.0.0.4"), ("TCP", 8443)),
        // DNS.
        (true, "out", pod(system.clone(), dns.clone()), ("UDP", 53)),
        (true, "out", pod(system.clone(), dns.clone()), ("TCP", 53)),
        (true, "out", address("169.254.20.10"), ("UDP", 53)),
        (false, "out", pod(shop.clone(), dns.clone()), ("UDP", 53)),
        (false, "out", pod(system.clone(), any.clone()), ("UDP", 53)),
        (false, "out", address("8.8.8.8"), ("UDP", 53)),
        // The API server.
        (true, "out", address("10.96.0.1"), ("TCP", 443)),
        (true, "out", address("203.0.113.7"), ("TCP", 6443)),
        (true, "out", address("2001:db8::7"), ("TCP", 443)),
        // The metadata services of cloud providers, pods and other ports are not reachable.
        (false, "out", address("169.254.169.254"), ("TCP", 443)),
        (false, "out", address("169.254.169.254"), ("TCP", 80)),
        (false, "out", address("fd00:ec2::254"), ("TCP", 443)),
        (false, "out", pod(shop, any.clone()), ("TCP", 443)),
        (false, "out", pod(own.clone(), any), ("TCP", 8080)),
        (false, "out", address("203.0.113.7"), ("TCP", 80)),
        (false, "out", address("203.0.113.7"), ("TCP", 25)),
    ]
}

#[test]
fn the_shipped_deployment_is_reached_where_its_policy_and_its_service_say() -> Result<()> {
    let deployment = one("deployment.yaml", "Deployment")?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let ports = container["ports"].as_array().context("no ports")?;
    let ports: BTreeMap<&str, u64> = ports
        .iter()
        .filter_map(|port| Some((port["name"].as_str()?, port["containerPort"].as_u64()?)))
        .collect();
    ensure!(ports == BTreeMap::from([("http", 8080), ("probes", 8081)]));
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        ensure!(container[probe]["httpGet"]["port"] == "probes", "{probe}");
    }
    // The ports are the defaults of `ork controller`.
    let arguments = container["args"].to_string();
    ensure!(!arguments.contains("listen"), "{arguments}");
    let service = one("service.yaml", "Service")?;
    ensure!(
        service["spec"]["ports"] == json!([{ "name": "http", "port": 8080, "targetPort": "http" }])
    );
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let selector = service["spec"]["selector"]
        .as_object()
        .context("the Service has no selector")?;
    ensure!(selector.iter().all(|(key, value)| &labels[key] == value));
    Ok(())
}

#[test]
fn the_shipped_roles_of_readers_grant_paths_and_nothing_else() -> Result<()> {
    let mut roles = manifests("rbac.yaml")?;
    roles.retain(|role| role["rules"][0].get("nonResourceURLs").is_some());
    let paths: BTreeMap<&str, &Value> = roles
        .iter()
        .filter_map(|role| Some((role["metadata"]["name"].as_str()?, &role["rules"])))
        .collect();
    let rule = |paths: &[&str]| json!([{ "nonResourceURLs": paths, "verbs": ["get"] }]);
    ensure!(paths.len() == 2);
    ensure!(*paths["orkestra-metrics-reader"] == rule(&["/metrics"]));
    let pages = rule(&["/katalog", "/katalog/*", "/openapi/v3"]);
    ensure!(*paths["orkestra-katalog-reader"] == pages);
    Ok(())
}
