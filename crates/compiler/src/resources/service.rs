//! `services`.

use std::collections::BTreeSet;

use super::{Child, Metadata, Shorthand, Workload, is_given, pod::PROTOCOLS, workload::Search};
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{
        Text,
        children::{Service, ServicePort},
    },
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree, Whole};

/// The pod label that earlier generations set to the name of the custom resource.
const OWNER: &str = "orkestra-owner";

/// Types of Services that select pods.
const TYPES: [&str; 3] = ["ClusterIP", "NodePort", "LoadBalancer"];

impl Shorthand for Service {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let at = &child.at;
        let mut spec = Fields::default();
        let headless = self.headless == Some(true);
        let type_ = at.word_field("type", self.type_.as_ref(), &TYPES);
        if headless
            && self
                .type_
                .as_deref()
                .is_some_and(|declared| !declared.eq_ignore_ascii_case("ClusterIP"))
        {
            at.field("headless").error(
                Code::Exclusive,
                "a headless Service has no address: remove `type`",
            );
        }
        spec.put("type", type_);
        if headless {
            spec.put_text("clusterIP", "None");
        }
        let search = Search {
            kind: "Service",
            endings: &["", "-svc", "-lb", "-headless"],
            instead: "declare `selector` with the labels of the pods",
            wanted: |_| true,
            child,
        };
        let workload = match &self.selector {
            Some(labels) => {
                spec.put("selector", at.field("selector").selected_labels(labels));
                search.found()
            }
            None if child.workloads.is_empty() => {
                spec.put("selector", pods_of_owner(at));
                None
            }
            None => search
                .needed()
                .inspect(|workload| spec.put("selector", workload.pods(at))),
        };
        let ports = if self.ports.is_absent() {
            only_port(self, at, workload, child.workloads.is_empty())
        } else {
            several_ports(self, at)
        };
        spec.put("ports", ports);
        spec.into_root("spec")
    }
}

/// Returns the selector of a Service without a declared workload: pods from elsewhere with the custom resource's name as a
/// label.
///
/// Source: language reference, conflicts with the seeds, "Service without workload".
fn pods_of_owner(at: &At<'_>) -> ObjectTree {
    let message = format!(
        "this operatorBox declares no workload: the Service selects pods with the label `{OWNER}: <name of the custom resource>`"
    );
    let hint = "declare `selector` with the labels of the pods";
    at.warn_hint(Code::ServiceSelector, message, hint);
    let mut labels = Fields::default();
    let name = Text::from("{{ .metadata.name }}".to_owned());
    labels.put(OWNER, at.value(&name, Coerce::Text));
    labels.into_tree()
}

/// Returns the only port of a Service; a headless one may have none.
fn only_port(
    service: &Service,
    at: &At<'_>,
    workload: Option<&Workload<'_>>,
    is_alone: bool,
) -> Option<ObjectTree> {
    let inherited = || Some(workload?.port.as_ref()?.1);
    let none = !is_given(service.port.as_ref().or_else(inherited));
    // If the selected pods are ambiguous, only that is reported.
    let is_clear = workload.is_some() || service.selector.is_some() || is_alone;
    if none && service.headless != Some(true) && is_clear {
        let hint = "declare `port` here or on the workload that the Service selects";
        at.error_hint(Code::NoPort, "the Service has no port", hint);
    }
    let port = match &service.port {
        Some(port) => at.field("port").scalar(port, Coerce::Port),
        None => workload.and_then(Workload::port_tree),
    };
    let target = at.scalar_field(
        "targetPort",
        service.target_port.as_ref(),
        Coerce::IntOrText,
    );
    let protocol = at.word_field("protocol", service.protocol.as_ref(), &PROTOCOLS);
    let mut only = Fields::default();
    only.put("port", port.clone()?);
    only.put("targetPort", target.or(port));
    only.put("protocol", protocol);
    Some(ObjectTree::list(vec![only.into_part()]))
}

/// Returns the ports of a Service with several.
fn several_ports(service: &Service, at: &At<'_>) -> Option<ObjectTree> {
    let set = [
        ("port", service.port.is_some()),
        ("targetPort", service.target_port.is_some()),
        ("protocol", service.protocol.is_some()),
    ];
    for (name, _) in set.iter().filter(|(_, is_set)| *is_set) {
        let message = format!("`{name}` and `ports` are mutually exclusive");
        let hint = "declare all of them in `ports`";
        at.field(name).error_hint(Code::Exclusive, message, hint);
    }
    let at = at.field("ports");
    at.whole(&service.ports, Whole::List, |at, list| {
        written_ports(at, list)
    })
}

#[expect(clippy::unnecessary_wraps, reason = "the form that `At::whole` takes")]
fn written_ports(at: &At<'_>, declared: &[ServicePort]) -> Option<ObjectTree> {
    let mut names = BTreeSet::new();
    let mut ports = Vec::with_capacity(declared.len());
    for (index, port) in declared.iter().enumerate() {
        let at = at.index(index);
        let name = port.name.as_deref().map(str::trim).unwrap_or_default();
        if name.is_empty() && declared.len() > 1 {
            at.error(Code::Missing, "each of several ports needs `name`");
        } else if !name.is_empty() && !names.insert(name) {
            let message = format!("`{name}` is declared twice");
            at.field("name").error(Code::SetTwice, message);
        }
        ports.extend(service_port(&at, port));
    }
    Some(ObjectTree::list(ports))
}

fn service_port(at: &At<'_>, declared: &ServicePort) -> Option<ObjectTree> {
    let ServicePort {
        name,
        port,
        target_port,
        node_port,
        protocol,
    } = declared;
    if !is_given(Some(port)) {
        at.field("port").error(Code::Empty, "the value is empty");
    }
    let port = at.field("port").scalar(port, Coerce::Port)?;
    let target = at.scalar_field("targetPort", target_port.as_ref(), Coerce::IntOrText);
    let mut fields = Fields::default();
    fields.put("port", port.clone());
    fields.put("name", at.text_field("name", name.as_ref()));
    fields.put("targetPort", target.or(Some(port)));
    fields.put(
        "nodePort",
        at.scalar_field("nodePort", node_port.as_ref(), Coerce::Port),
    );
    fields.put(
        "protocol",
        at.word_field("protocol", protocol.as_ref(), &PROTOCOLS),
    );
    Some(fields.into_part())
}
