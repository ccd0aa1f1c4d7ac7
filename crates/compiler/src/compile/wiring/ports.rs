//! Checks container ports and their references: Services, Ingresses, probes.

use super::{Workload, literal, names, uses::items};
use crate::{compile::children::DeclaredBlock, scope::At};
use orkestra_language::{
    api::{
        children::{ListEntry, Service, ServicePort},
        scalar::{Scalar, Text},
    },
    diagnostics::{Code, did_you_mean},
};
use orkestra_object::value::Node;

/// Suffixes that the name of a Service may add to that of its workload.
const ENDINGS: [&str; 4] = ["", "-svc", "-lb", "-headless"];
/// Clients use ports below this one; containers without privileges listen on higher ones.
const PRIVILEGED: u16 = 1024;

/// The ports of a pod, as far as the entry declares them.
struct Listening<'a> {
    numbers: Vec<u16>,
    names: Vec<&'a str>,
    /// True if there may be more: a port is a template, or the patch has ports.
    is_open: bool,
}

impl<'a> Listening<'a> {
    fn of(workload: &Workload<'a>) -> Self {
        let mut listening = Self {
            numbers: Vec::new(),
            names: Vec::new(),
            is_open: workload.patches("ports")
                || workload.pod.containers.template().is_some()
                || workload.pod.init_containers.template().is_some(),
        };
        if let Some(port) = workload.serving.and_then(|serving| serving.port.as_ref()) {
            listening.add(number(port));
        }
        // Kubernetes includes the ports of init containers that keep running.
        for container in workload
            .pod
            .containers
            .iter()
            .chain(workload.pod.init_containers.iter())
        {
            for (_, port) in items(container, "ports") {
                let declared = port
                    .get("containerPort")
                    .map(|node| node.to_text().into_owned());
                listening.add(declared.and_then(|text| text.trim().parse().ok()));
                match port.get("name").and_then(Node::as_str) {
                    Some(name) if name.contains("{{") => listening.is_open = true,
                    Some(name) => listening.names.push(name),
                    None => {}
                }
            }
        }
        listening
    }

    fn add(&mut self, number: Option<u16>) {
        match number {
            Some(number) => self.numbers.push(number),
            None => self.is_open = true,
        }
    }
}

/// Reports Services whose ports match no port of the pods that they select by default.
pub(crate) fn check_services(block: &DeclaredBlock<'_>, workloads: &[Workload<'_>]) {
    let reachable: Vec<&Workload<'_>> = workloads
        .iter()
        .filter(|workload| workload.import == block.import && workload.serving.is_some())
        .collect();
    for (index, service) in block.lifecycle.services.iter().enumerate() {
        if service.selector.is_some() || !service.common.patch.is_empty() {
            continue;
        }
        let at = block.at.field(service.row().list).index(index);
        let name = names::normalised(service.name().unwrap_or_default());
        let selected = selected(&name, &reachable);
        let listening: Vec<Listening<'_>> = selected
            .iter()
            .map(|workload| Listening::of(workload))
            .collect();
        if listening.is_empty() || listening.iter().any(|one| one.is_open) {
            continue;
        }
        if service.ports.is_absent() {
            let port = service.port.as_ref().map(|port| (at.field("port"), port));
            let target = service
                .target_port
                .as_ref()
                .map(|port| (at.field("targetPort"), port));
            check_target(port, target, &listening);
        }
        for (index, port) in service.ports.iter().enumerate() {
            let at = at.field("ports").index(index);
            let ServicePort {
                port, target_port, ..
            } = port;
            let target = target_port
                .as_ref()
                .map(|port| (at.field("targetPort"), port));
            // With several ports, a Service may target container ports that are not declared.
            let port = (service.ports.len() == 1).then(|| (at.field("port"), port));
            check_target(port, target, &listening);
        }
    }
}

/// Returns the workloads with the name of the Service, else the only one.
fn selected<'w, 'a>(name: &str, reachable: &[&'w Workload<'a>]) -> Vec<&'w Workload<'a>> {
    let is_named = |workload: &&&Workload<'_>| {
        let on_delete = name.strip_prefix(&*workload.name);
        on_delete.is_some_and(|on_delete| ENDINGS.contains(&on_delete))
    };
    let named: Vec<&Workload<'_>> = reachable.iter().filter(is_named).copied().collect();
    let Some(first) = reachable.first().filter(|_| named.is_empty()) else {
        return named;
    };
    let is_only = reachable.iter().all(|workload| workload.name == first.name);
    if is_only {
        reachable.to_vec()
    } else {
        Vec::new()
    }
}

/// A declared port and its path.
type Port<'p, 'a> = Option<(At<'a>, &'p Scalar)>;

fn check_target(port: Port<'_, '_>, target: Port<'_, '_>, listening: &[Listening<'_>]) {
    let numbers: Vec<u16> = listening
        .iter()
        .flat_map(|one| one.numbers.iter().copied())
        .collect();
    let names: Vec<&str> = listening
        .iter()
        .flat_map(|one| one.names.iter().copied())
        .collect();
    if let Some((at, target)) = target {
        let text = target.to_string();
        let text = text.trim();
        if text.contains("{{") || text.is_empty() {
            return;
        }
        match text.parse::<u16>() {
            Ok(target) => check_slip(&at, target, &numbers),
            Err(_) if !names.contains(&text) => no_name(&at, text, &names, &numbers),
            Err(_) => {}
        }
        return;
    }
    let Some((at, port)) = port else { return };
    let Some(port) = number(port) else { return };
    if let [only] = *numbers
        && port < PRIVILEGED
        && only >= PRIVILEGED
    {
        let message =
            format!("the Service forwards to port {port}, and the container listens on {only}");
        at.warn_hint(
            Code::PortMismatch,
            message,
            format!("add `targetPort: {only}`"),
        );
        return;
    }
    check_slip(&at, port, &numbers);
}

fn no_name(at: &At<'_>, text: &str, names: &[&str], numbers: &[u16]) {
    let message = format!("no container has a port of the name `{text}`");
    let hint = did_you_mean(text, names.iter().copied()).or_else(|| match *numbers {
        [only] => Some(format!("write the number: `{only}`")),
        _ => None,
    });
    let hint = hint.unwrap_or_else(|| {
        "write the port's number; only `ports` of `containers` have names".to_owned()
    });
    at.warn_hint(Code::PortMismatch, message, hint);
}

/// Reports a port that is a misspelling of a declared one: two digits swapped, one too many or one too few.
fn check_slip(at: &At<'_>, port: u16, declared: &[u16]) {
    if declared.contains(&port) {
        return;
    }
    if let Some(meant) = declared.iter().find(|other| is_slip(port, **other)) {
        let message = format!("no container listens on port {port}");
        at.warn_hint(
            Code::PortMismatch,
            message,
            format!("did you mean `{meant}`?"),
        );
    }
}

/// True if the digits of one are those of the other with two neighbours swapped, or with one more.
fn is_slip(one: u16, other: u16) -> bool {
    let (one, other) = (one.to_string(), other.to_string());
    let (long, short) = if one.len() >= other.len() {
        (&one, &other)
    } else {
        (&other, &one)
    };
    if short.len() < 3 {
        return false;
    }
    if long.len() == short.len() {
        let differing: Vec<usize> = (0..long.len())
            .filter(|at| long.as_bytes()[*at] != short.as_bytes()[*at])
            .collect();
        return matches!(*differing, [a, b] if b == a + 1
            && long.as_bytes()[a] == short.as_bytes()[b]
            && long.as_bytes()[b] == short.as_bytes()[a]);
    }
    // An extra leading digit makes another port of the same family: 443 and 8443, 8080 and 18080.
    let without = |at: usize| format!("{}{}", &long[..at], &long[at + 1..]);
    long.len() == short.len() + 1 && (1..long.len()).any(|at| without(at) == *short)
}

fn number(port: &Scalar) -> Option<u16> {
    port.to_string().trim().parse().ok()
}

/// Reports probes of ports that no container of the pod has.
pub(crate) fn check_probes(workload: &Workload<'_>) {
    let listening = Listening::of(workload);
    if listening.is_open {
        return;
    }
    let probes = workload.serving.and_then(|serving| serving.probes.as_ref());
    if let Some(probes) = probes {
        let at = workload.at.field("probes");
        for (field, probe) in [
            ("startup", &probes.startup),
            ("liveness", &probes.liveness),
            ("readiness", &probes.readiness),
        ] {
            let port = probe.as_ref().and_then(|probe| probe.port.as_ref());
            if let Some(port) = port.and_then(number) {
                check_slip(&at.field(field).field("port"), port, &listening.numbers);
            }
        }
    }
    for (index, container) in workload.pod.containers.iter().enumerate() {
        let at = workload.at.field("containers").index(index);
        let names: Vec<&str> = items(container, "ports")
            .filter_map(|(_, port)| port.get("name")?.as_str())
            .collect();
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            for handler in ["httpGet", "tcpSocket"] {
                let port = container
                    .get(probe)
                    .and_then(|node| node.get(handler)?.get("port")?.as_str());
                let Some(port) =
                    port.filter(|port| !port.contains("{{") && port.parse::<u16>().is_err())
                else {
                    continue;
                };
                if !names.contains(&port) {
                    let at = at.field(probe).field(handler).field("port");
                    let message = format!("the container has no port of the name `{port}`");
                    let hint = did_you_mean(port, names.iter().copied())
                        .unwrap_or_else(|| format!("declare it: `ports: [{{ name: {port}, containerPort: … }}]`, or write the number"));
                    at.warn_hint(Code::PortMismatch, message, hint);
                }
            }
        }
    }
}

/// Reports Ingresses with a port that the declared Service does not have.
pub(crate) fn check_ingresses(block: &DeclaredBlock<'_>, blocks: &[DeclaredBlock<'_>]) {
    for (index, ingress) in block.lifecycle.ingresses.iter().enumerate() {
        let name = names::normalised(&ingress.service_name);
        let named = |service: &&Service| {
            let own = service.name();
            own.is_some_and(|own| names::normalised(own) == name)
        };
        let all = blocks.iter().flat_map(|block| &block.lifecycle.services);
        let services: Vec<&Service> = all.filter(named).collect();
        let [service] = *services else { continue };
        let at = block
            .at
            .field("ingresses")
            .index(index)
            .field("servicePort");
        check_service_port(&at, &ingress.service_port.to_string(), service);
    }
}

fn check_service_port(at: &At<'_>, text: &str, service: &Service) {
    let text = text.trim();
    if text.contains("{{")
        || text.is_empty()
        || !service.common.patch.is_empty()
        || service.ports.template().is_some()
    {
        return;
    }
    let declared = service
        .port
        .iter()
        .chain(service.ports.iter().map(|port| &port.port));
    let numbers: Option<Vec<u16>> = declared.map(number).collect();
    let names: Option<Vec<&str>> = service
        .ports
        .iter()
        .filter_map(|port| port.name.as_ref())
        .map(|name: &Text| literal(name))
        .collect();
    let (Some(numbers), Some(names)) = (numbers, names) else {
        return;
    };
    let listed = || {
        let numbers = numbers.iter().map(ToString::to_string);
        let all: Vec<String> = numbers
            .chain(names.iter().map(|name| (*name).to_owned()))
            .collect();
        format!("it has `{}`", all.join("`, `"))
    };
    match text.parse::<u16>() {
        // The port may be inherited from the workload.
        Ok(_) if numbers.is_empty() => {}
        Ok(port) if !numbers.contains(&port) => {
            let message = format!("the Service has no port {port}");
            at.warn_hint(Code::PortMismatch, message, listed());
        }
        Err(_) if !names.contains(&text) => {
            let message = format!("the Service has no port of the name `{text}`");
            let near = did_you_mean(text, names.iter().copied());
            let hint = near.unwrap_or_else(|| {
                if numbers.is_empty() {
                    "write the port's number".to_owned()
                } else {
                    listed()
                }
            });
            at.warn_hint(Code::PortMismatch, message, hint);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_with_a_slip_is_recognised_and_another_port_is_not() {
        for (one, other) in [
            (8080, 8008),
            (8080, 808),
            (3000, 30000),
            (9090, 9009),
            (443, 4433),
        ] {
            assert!(is_slip(one, other) && is_slip(other, one), "{one} {other}");
        }
        for (one, other) in [
            (8080, 8081),
            (8080, 80),
            (8080, 9090),
            (80, 8),
            (443, 8443),
            (8080, 18080),
        ] {
            assert!(!is_slip(one, other), "{one} {other}");
        }
    }
}
