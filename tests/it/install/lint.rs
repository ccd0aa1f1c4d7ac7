//! Lint rules: with several values, the installed manifests follow the rules of linters such as kube-linter and kube-score.

use std::{collections::BTreeSet, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::scenario::printed;

/// Values that lead to different Pods.
const VALUES: [&str; 5] = [
    "{}",
    "{replicas: 1, namespaces: [a], leaderElection: {enabled: false}}",
    "{replicas: 3, webhooks: {enabled: true}, priorityClassName: system-cluster-critical}",
    "{http: {tlsSecret: web}, webhooks: {enabled: true, port: 9443, certificates: {source: secret}}}",
    "{fullnameOverride: ops, image: {digest: 'sha256:0000000000000000000000000000000000000000000000000000000000000000'}, commonLabels: {team: ops}}",
];

fn installed(values: &str) -> Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values)?;
    let mut ork = Command::new(env!("CARGO_BIN_EXE_ork"));
    ork.args(["install", "--dry-run=client", "-f"]).arg(&file);
    ork.env("ORK_IMAGE", super::site::IMAGE);
    let text = printed(&ork.output()?, "ork")?;
    Ok(serde_saphyr::from_multiple::<Value>(&text)?)
}

fn of_kind<'o>(objects: &'o [Value], kind: &'o str) -> impl Iterator<Item = &'o Value> {
    objects.iter().filter(move |object| object["kind"] == kind)
}

/// Returns true if the labels match the selector.
fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector.as_object();
    wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| &labels[key] == value))
}

fn ensure_container_is_confined(container: &Value) -> Result<()> {
    let security = &container["securityContext"];
    for (field, wanted) in [
        ("allowPrivilegeEscalation", json!(false)),
        ("readOnlyRootFilesystem", json!(true)),
        ("capabilities", json!({ "drop": ["ALL"] })),
        ("privileged", Value::Null),
    ] {
        ensure!(security[field] == wanted, "{field}: {security}");
    }
    let resources = &container["resources"];
    for path in ["/requests/cpu", "/requests/memory", "/limits/memory"] {
        ensure!(resources.pointer(path).is_some(), "{path}: {resources}");
    }
    let image = container["image"].as_str().context("no image")?;
    let is_pinned = image.contains("@sha256:")
        || image
            .rsplit_once(':')
            .is_some_and(|(_, tag)| tag != "latest" && !tag.contains('/'));
    ensure!(is_pinned, "{image} has no tag, or the tag `latest`");
    let ports: BTreeSet<&str> = container["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|port| port["name"].as_str())
        .collect();
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let port = container[probe]["httpGet"]["port"].as_str();
        ensure!(port.is_some_and(|port| ports.contains(port)), "{probe}");
    }
    let env = container["env"].as_array().into_iter().flatten();
    let names: Vec<&Value> = env.map(|variable| &variable["name"]).collect();
    let unique: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
    ensure!(names.len() == unique.len(), "duplicates: {names:?}");
    Ok(())
}

fn ensure_pod_is_confined(pod: &Value) -> Result<()> {
    let security = &pod["securityContext"];
    ensure!(security["runAsNonRoot"] == true, "{security}");
    ensure!(
        security["seccompProfile"]["type"] == "RuntimeDefault",
        "{security}"
    );
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        ensure!(pod[field].is_null(), "{field}");
    }
    let volumes = pod["volumes"].as_array().into_iter().flatten();
    let mounted = pod["containers"][0]["volumeMounts"].as_array();
    let mounted: BTreeSet<&str> = mounted
        .into_iter()
        .flatten()
        .filter_map(|mount| mount["name"].as_str())
        .collect();
    let mut declared = BTreeSet::new();
    for volume in volumes {
        ensure!(volume["hostPath"].is_null(), "{volume}");
        declared.extend(volume["name"].as_str());
    }
    ensure!(mounted == declared, "{mounted:?} and {declared:?}");
    let containers = pod["containers"].as_array().context("no containers")?;
    containers.iter().try_for_each(ensure_container_is_confined)
}

/// Checks that Services, `NetworkPolicies` and `PodDisruptionBudgets` refer to Pods and ports that exist.
fn ensure_nothing_dangles(objects: &[Value], deployment: &Value) -> Result<()> {
    let template = &deployment["spec"]["template"];
    let labels = &template["metadata"]["labels"];
    ensure!(selects(
        &deployment["spec"]["selector"]["matchLabels"],
        labels
    ));
    let ports = template["spec"]["containers"][0]["ports"].as_array();
    let ports: Vec<(&str, u64)> = ports
        .into_iter()
        .flatten()
        .filter_map(|port| Some((port["name"].as_str()?, port["containerPort"].as_u64()?)))
        .collect();
    for service in of_kind(objects, "Service") {
        ensure!(selects(&service["spec"]["selector"], labels), "{service}");
        for port in service["spec"]["ports"].as_array().into_iter().flatten() {
            let target = port["targetPort"].as_str();
            ensure!(
                target.is_some_and(|target| ports.iter().any(|(name, _)| *name == target)),
                "{port}"
            );
        }
    }
    for policy in of_kind(objects, "NetworkPolicy") {
        let selector = &policy["spec"]["podSelector"]["matchLabels"];
        ensure!(selects(selector, labels), "{policy}");
        let rules = policy["spec"]["ingress"].as_array().into_iter().flatten();
        let allowed: BTreeSet<u64> = rules
            .flat_map(|rule| rule["ports"].as_array().into_iter().flatten())
            .filter_map(|port| port["port"].as_u64())
            .collect();
        let open: BTreeSet<u64> = ports.iter().map(|(_, port)| *port).collect();
        ensure!(allowed == open, "{allowed:?} and {open:?}");
    }
    let is_replicated = deployment["spec"]["replicas"].as_u64() > Some(1);
    let budgets: Vec<&Value> = of_kind(objects, "PodDisruptionBudget").collect();
    ensure!(budgets.len() == usize::from(is_replicated), "{budgets:?}");
    for budget in budgets {
        ensure!(selects(&budget["spec"]["selector"]["matchLabels"], labels));
        ensure!(budget["spec"]["maxUnavailable"] == 1, "{budget}");
    }
    if is_replicated {
        let affinity = &template["spec"]["affinity"]["podAntiAffinity"];
        ensure!(affinity.is_object(), "replicas may share a node");
    }
    Ok(())
}

/// Checks that the service account exists and is not `default`, and that its roles grant no access to Secrets and Pods and have
/// no wildcards.
fn ensure_permissions_are_few(objects: &[Value], deployment: &Value) -> Result<()> {
    let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
    let accounts: Vec<&Value> = of_kind(objects, "ServiceAccount")
        .map(|one| &one["metadata"]["name"])
        .collect();
    ensure!(*account != "default" && accounts == [account], "{account}");
    let roles = objects
        .iter()
        .filter(|object| object["kind"] == "ClusterRole" || object["kind"] == "Role");
    for role in roles {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let rule = rule.to_string();
            for word in [
                "\"*\"",
                "\"secrets\"",
                "\"pods\"",
                "\"escalate\"",
                "\"bind\"",
                "\"impersonate\"",
            ] {
                let is_own_secret = word == "\"secrets\"" && rule.contains("resourceNames");
                // `create` cannot be limited by `resourceNames`: the name is not known when the request is authorized.
                let creates = word == "\"secrets\""
                    && rule.contains("[\"create\"]")
                    && role["kind"] == "Role";
                ensure!(
                    !rule.contains(word) || is_own_secret || creates,
                    "{}: {rule}",
                    role["metadata"]["name"]
                );
            }
        }
    }
    for binding in of_kind(objects, "ClusterRoleBinding") {
        ensure!(binding["roleRef"]["name"] != "cluster-admin", "{binding}");
    }
    Ok(())
}

#[test]
fn manifests_follow_the_rules_of_linters_with_any_values() -> Result<()> {
    for values in VALUES {
        let objects = installed(values)?;
        for object in &objects {
            let namespace = &object["metadata"]["namespace"];
            ensure!(*namespace != "default", "{values}: {object}");
            let kind = object["kind"].as_str().unwrap_or_default();
            let is_generated = kind == "CustomResourceDefinition";
            let label = &object["metadata"]["labels"]["app.kubernetes.io/part-of"];
            ensure!(is_generated || *label == "orkestra", "{values}: {object}");
        }
        let deployments: Vec<&Value> = of_kind(&objects, "Deployment").collect();
        ensure!(deployments.len() == 1);
        let about = || format!("with the values {values}");
        let pod = &deployments[0]["spec"]["template"]["spec"];
        ensure_pod_is_confined(pod).with_context(about)?;
        ensure_nothing_dangles(&objects, deployments[0]).with_context(about)?;
        ensure_permissions_are_few(&objects, deployments[0]).with_context(about)?;
    }
    Ok(())
}
