//! Computes the value under a key, from views or from the child itself.

use super::view::{ACTIVE, COMPLETE, at, controller_reference, items, map, text, text_at};
use orkestra_object::value::Node;

/// All objects that were found.
#[expect(clippy::unnecessary_wraps, reason = "one of several in a table")]
pub(crate) fn list(found: &[Node]) -> Option<Node> {
    Some(Node::from(found.to_vec()))
}

/// The only object.
pub(crate) fn one(found: &[Node]) -> Option<Node> {
    found.first().cloned()
}

/// All objects, latest first.
pub(crate) fn latest_first(found: &[Node]) -> Option<Node> {
    let mut all = found.to_vec();
    // Both forms of timestamps, with fractions and without, sort as text.
    all.sort_by(|a, b| text(b, &["lastTimestamp"]).cmp(&text(a, &["lastTimestamp"])));
    list(&all)
}

pub(crate) fn owner(child: &[Node]) -> Option<Node> {
    let owner = controller_reference(child.first()?)?;
    Some(fields(owner, ["name", "kind", "uid"]))
}

/// Some fields of an object; missing ones are empty.
fn fields<const N: usize>(object: &Node, names: [&'static str; N]) -> Node {
    map(names.map(|name| (name, text_at(object, &[name]))))
}

/// One item for each address and port of the slices.
pub(crate) fn endpoints(slices: &[Node]) -> Option<Node> {
    let mut all = Vec::new();
    for slice in slices {
        let ports = items(slice, &["ports"]);
        for endpoint in items(slice, &["endpoints"]) {
            let ready = endpoint.get("ready").cloned().unwrap_or_default();
            for address in items(endpoint, &["addresses"]) {
                let of_port = |port: Option<&Node>| {
                    let port = port.filter(|port| **port != Node::Null).cloned();
                    let fields = [("ip", address.clone()), ("ready", ready.clone())];
                    map(fields.into_iter().chain(port.map(|port| ("port", port))))
                };
                if ports.is_empty() {
                    all.push(of_port(None));
                }
                all.extend(ports.iter().map(|port| of_port(Some(port))));
            }
        }
    }
    list(&all)
}

/// The Pods in slices, without duplicates: slices of two address families contain the same ones.
pub(crate) fn backing_pods(slices: &[Node]) -> Option<Node> {
    let mut pods: Vec<Node> = Vec::new();
    for endpoint in slices.iter().flat_map(|slice| items(slice, &["endpoints"])) {
        let Some(name) = text(endpoint, &["pod"]) else {
            continue;
        };
        if pods.iter().any(|pod| text(pod, &["name"]) == Some(name)) {
            continue;
        }
        let address = items(endpoint, &["addresses"]).first().cloned();
        pods.push(map([
            ("name", Node::from(name)),
            ("ip", address.unwrap_or_default()),
            ("ready", endpoint.get("ready").cloned().unwrap_or_default()),
            ("node", text_at(endpoint, &["node"])),
        ]));
    }
    list(&pods)
}

/// The current metrics of an autoscaler, flattened for all types of metrics.
///
/// Source: Kubernetes API reference, `MetricStatus v2 autoscaling`.
pub(crate) fn current_metrics(child: &[Node]) -> Option<Node> {
    let metrics = items(child.first()?, &["status", "currentMetrics"]).iter();
    list(&metrics.map(metric).collect::<Vec<_>>())
}

fn metric(metric: &Node) -> Node {
    const PARTS: [&str; 5] = [
        "resource",
        "containerResource",
        "pods",
        "object",
        "external",
    ];
    let part = PARTS.iter().find_map(|part| metric.get(part));
    let part = part.unwrap_or(&Node::Null);
    let name = text(part, &["name"]).or_else(|| text(part, &["metric", "name"]));
    let values = ["averageUtilization", "averageValue", "value"];
    let values = values
        .into_iter()
        .filter_map(|key| Some((key, at(part, &["current", key])?.clone())));
    let known = [
        ("type", text_at(metric, &["type"])),
        ("name", Node::from(name.unwrap_or_default())),
    ];
    map(known.into_iter().chain(values))
}

pub(crate) fn scale_target(child: &[Node]) -> Option<Node> {
    let target = at(child.first()?, &["spec", "scaleTargetRef"])?;
    Some(fields(target, ["apiVersion", "kind", "name"]))
}

fn is_in(job: &Node, phase: &str) -> bool {
    text(job, &["phase"]) == Some(phase)
}

pub(crate) fn active_jobs(jobs: &[Node]) -> Option<Node> {
    let active = jobs.iter().filter(|job| is_in(job, ACTIVE));
    list(&active.cloned().collect::<Vec<_>>())
}

/// The most recently created one.
fn last<'a>(jobs: impl Iterator<Item = &'a Node>) -> Option<Node> {
    let age = |job: &&Node| {
        let part = |field| text(job, &[field]).unwrap_or_default().to_owned();
        (part("createdAt"), part("name"))
    };
    jobs.max_by_key(age).cloned()
}

pub(crate) fn last_job(jobs: &[Node]) -> Option<Node> {
    last(jobs.iter())
}

pub(crate) fn last_successful_job(jobs: &[Node]) -> Option<Node> {
    last(jobs.iter().filter(|job| is_in(job, COMPLETE)))
}

pub(crate) fn load_balancers(child: &[Node]) -> Option<Node> {
    let all = items(child.first()?, &["status", "loadBalancer", "ingress"]).iter();
    let addresses = all.filter_map(|one| {
        let reported = [text(one, &["ip"]), text(one, &["hostname"])];
        let address = reported.into_iter().flatten().find(|text| !text.is_empty());
        address.map(Node::from)
    });
    list(&addresses.collect::<Vec<_>>())
}

/// Names only: the contents of Secrets must not be visible here.
pub(crate) fn tls_secrets(child: &[Node]) -> Option<Node> {
    let entries = items(child.first()?, &["spec", "tls"]).iter();
    let mut names: Vec<Node> = Vec::new();
    for name in entries.filter_map(|entry| text(entry, &["secretName"])) {
        let name = Node::from(name);
        if !name.is_empty_value() && !names.contains(&name) {
            names.push(name);
        }
    }
    list(&names)
}
