//! `services`.

use super::{
    deployment::workload_label,
    is_given,
    pod::PROTOCOLS,
    scope::{At, Problems},
};
use crate::{
    api::{
        children::{ForEach, Service},
        scalar::Scalar,
    },
    diagnostics::Code,
    plan::{Coerce, Fields, GroupKind, Leaf, Tree},
    template::Template,
};

/// What a Service's name may add to that of the workload it belongs to.
const SUFFIXES: [&str; 4] = ["", "-svc", "-lb", "-headless"];
/// Types of Services that select pods.
const TYPES: [&str; 3] = ["ClusterIP", "NodePort", "LoadBalancer"];

/// A workload of the box that a Service can select.
#[derive(Clone)]
pub(crate) struct Workload<'a> {
    /// Its kind.
    pub(crate) kind: GroupKind,
    /// Its name, as the Katalog has it.
    pub(crate) name: String,
    /// What it is made for each of.
    pub(crate) each: Option<&'a ForEach>,
    /// Its port, as the Katalog has it, and where.
    pub(crate) port: Option<(At<'a>, &'a Scalar)>,
}

/// The root fields of a Service that is called `name` among `workloads`.
pub(crate) fn expand(
    at: &At<'_>,
    entry: &Service,
    name: &str,
    workloads: &[Workload<'_>],
) -> Fields {
    let mut spec = Fields::default();
    let headless = entry.headless == Some(true);
    let type_ = at.word_field("type", entry.type_.as_ref(), &TYPES);
    if headless
        && entry
            .type_
            .as_deref()
            .is_some_and(|declared| !declared.eq_ignore_ascii_case("ClusterIP"))
    {
        at.field("headless").error(
            Code::Exclusive,
            "a headless Service has no address: leave `type` out",
        );
    }
    spec.put("type", type_);
    if headless {
        spec.put_text("clusterIP", "None");
    }
    let workload = match &entry.selector {
        Some(labels) => {
            spec.put(
                "selector",
                at.field("selector").labels(labels).into_optional(),
            );
            matching(name, workloads)
        }
        None => selected(at, name, workloads)
            .inspect(|workload| spec.put("selector", pods_of(at, workload))),
    };
    spec.put("ports", ports(at, entry, workload));
    let mut root = Fields::default();
    root.put("spec", spec.into_tree());
    root
}

/// The workload that a Service without a selector selects; none is an error, which is reported.
fn selected<'a, 'b>(
    at: &At<'_>,
    name: &str,
    workloads: &'a [Workload<'b>],
) -> Option<&'a Workload<'b>> {
    let found = matching(name, workloads);
    if found.is_none() {
        let hint = "declare `selector` with the labels of the pods";
        if workloads.is_empty() {
            at.error_hint(
                Code::ServiceSelector,
                "the Service has no workload to select: this operatorBox declares none",
                hint,
            );
        } else {
            let names: Vec<String> = workloads
                .iter()
                .map(|workload| format!("`{}`", workload.name))
                .collect();
            let message = format!(
                "it is not clear which of {} the Service selects",
                names.join(", ")
            );
            at.error_hint(
                Code::ServiceSelector,
                message,
                format!("{hint}, or name the Service after one of them"),
            );
        }
    }
    found
}

/// The workload that the Service is named after, else the only one. Workloads of one name are one: they exclude each
/// other by their conditions.
fn matching<'a, 'b>(name: &str, workloads: &'a [Workload<'b>]) -> Option<&'a Workload<'b>> {
    let named = |workload: &&Workload<'_>| {
        name.strip_prefix(&*workload.name)
            .is_some_and(|suffix| SUFFIXES.contains(&suffix))
    };
    let alternatives = |found: &'a Workload<'b>| {
        // Of workloads that exclude each other, any that has a port says what the port is.
        workloads
            .iter()
            .find(|other| other.name == found.name && other.port.is_some())
            .unwrap_or(found)
    };
    let only = || {
        workloads
            .first()
            .filter(|first| workloads.iter().all(|other| other.name == first.name))
    };
    workloads.iter().find(named).or_else(only).map(alternatives)
}

fn pods_of(at: &At<'_>, workload: &Workload<'_>) -> Option<Tree> {
    // The workload itself reports what is wrong with its name.
    let template = Template::parse(&workload.name).ok()?;
    let name = Leaf {
        template,
        coerce: Coerce::OptionalText,
        path: at.text(),
    };
    Some(workload_label(&workload.kind, &name).into_tree())
}

/// The one port; a headless Service may have none.
fn ports(at: &At<'_>, entry: &Service, workload: Option<&Workload<'_>>) -> Option<Tree> {
    let inherited = || workload.and_then(|workload| workload.port.as_ref());
    let declared = match &entry.port {
        Some(port) => Some((at.field("port"), port)),
        None => inherited().map(|(at, port)| (at.clone(), *port)),
    };
    let none = !is_given(declared.as_ref().map(|(_, port)| *port));
    // A Service that selects nothing has another problem.
    if none && entry.headless != Some(true) && (workload.is_some() || entry.selector.is_some()) {
        let hint = "declare `port` here or on the Deployment that the Service selects";
        at.error_hint(Code::NoPort, "the Service has no port", hint);
    }
    // What is wrong with the workload's port is told there.
    let quiet = Problems::default();
    let port = declared.and_then(|(at, port)| match entry.port {
        Some(_) => at.scalar(port, Coerce::Port),
        None => at.quietly(&quiet).scalar(port, Coerce::Port),
    });
    let target = at.scalar_field("targetPort", entry.target_port.as_ref(), Coerce::IntOrText);
    let protocol = at.word_field("protocol", entry.protocol.as_ref(), &PROTOCOLS);
    let mut only = Fields::default();
    only.put("port", port.clone()?);
    only.put("targetPort", target.or(port));
    only.put("protocol", protocol);
    Some(Tree::list(vec![only.into_part()]))
}
