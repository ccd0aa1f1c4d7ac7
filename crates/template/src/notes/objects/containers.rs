//! The containers of Pods and of workloads.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use super::{Object, joined, name_of, number, text_of};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

/// The paths of containers in a `Deployment`, a `CronJob` and a `Pod`.
const CONTAINERS: &[&str] = &[
    "spec.template.spec.containers",
    "spec.jobTemplate.spec.template.spec.containers",
    "spec.containers",
];

/// A note on the containers of an object.
const CONTAINER: BuiltInNote = BuiltInNote {
    params: &[NoteType::Any, NoteType::Int],
    reads: CONTAINERS,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "containerCount",
        doc: "The number of containers of a workload.",
        example: ("{{ containerCount .children.deployment }}", "1"),
        params: &[NoteType::Any],
        result: NoteType::Int,
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            Ok(number(containers(&object).len()).into())
        }),
        ..CONTAINER
    },
    BuiltInNote {
        name: "containerImage",
        doc: "The image of a workload's container, by position from 0; the first by default.",
        example: (
            "{{ containerImage .children.deployment }} {{ containerImage .children.deployment 1 }}",
            "registry.example/pump:2.4 ",
        ),
        max_args: Some(2),
        result: NoteType::Text,
        run: NoteBody::Eager(image),
        ..CONTAINER
    },
    BuiltInNote {
        name: "containerEnv",
        doc: "The value of a variable of a workload's container, by position and name; empty if it comes from another source.",
        example: (
            r#"{{ containerEnv .children.deployment 0 "MODE" }}"#,
            "quiet",
        ),
        min_args: 3,
        max_args: Some(3),
        params: &[NoteType::Any, NoteType::Int, NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(env),
        ..CONTAINER
    },
    BuiltInNote {
        name: "containerPort",
        doc: "The first port of a workload's container, by position from 0; if a port is given, true if the container has it.",
        example: (
            "{{ containerPort .children.deployment }} {{ containerPort .children.deployment 0 8080 }}",
            "8080 true",
        ),
        max_args: Some(3),
        params: &[NoteType::Any, NoteType::Int, NoteType::Number],
        run: NoteBody::Eager(port),
        ..CONTAINER
    },
    BuiltInNote {
        name: "hasContainerPort",
        doc: "True if a workload's container, by position from 0, has the port.",
        example: ("{{ hasContainerPort .children.deployment 0 81 }}", "false"),
        min_args: 3,
        max_args: Some(3),
        params: &[NoteType::Any, NoteType::Int, NoteType::Number],
        result: NoteType::Bool,
        run: NoteBody::Eager(has_port),
        ..CONTAINER
    },
    BuiltInNote {
        name: "containerPorts",
        doc: "The ports of a workload's container, by position from 0; of all containers by default.",
        example: ("{{ containerPorts .children.deployment }}", "8080"),
        max_args: Some(2),
        result: NoteType::Text,
        run: NoteBody::Eager(ports),
        ..CONTAINER
    },
    BuiltInNote {
        name: "containerPortByName",
        doc: "A port of a workload's container, by position and name; 0 if there is none.",
        example: (
            r#"{{ containerPortByName .children.deployment 0 "http" }}"#,
            "8080",
        ),
        min_args: 3,
        max_args: Some(3),
        params: &[NoteType::Any, NoteType::Int, NoteType::Text],
        result: NoteType::Int,
        run: NoteBody::Eager(port_by_name),
        ..CONTAINER
    },
];

fn containers<'o>(object: &'o Object<'_, '_>) -> &'o [Node] {
    let mut lists = CONTAINERS.iter().map(|path| object.at(path));
    lists.find_map(Node::as_list).unwrap_or_default()
}

/// Returns the container at the position in the second argument; the first if it is omitted.
fn container<'o>(object: &'o Object<'_, '_>, position: &Node) -> Option<&'o Node> {
    let position = match position {
        Node::Null => 0,
        node => usize::try_from(node.as_i64()?).ok()?,
    };
    containers(object).get(position)
}

/// Returns the items of a list in a container.
fn items<'o>(container: Option<&'o Node>, key: &str) -> &'o [Node] {
    let items = container.and_then(|container| container.get(key)?.as_list());
    items.unwrap_or_default()
}

fn image<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (object, position) = (call.object()?, call.take(1));
    let image = container(&object, position.node()).map(|c| text_of(c, "image"));
    joined(image, call.budget)
}

fn env<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (object, position, name) = (call.object()?, call.take(1), call.take(2));
    let variables = items(container(&object, position.node()), "env");
    call.budget.step(variables.len() as u64)?;
    let name = name.node().as_str().unwrap_or_default();
    let found = variables.iter().find(|variable| name_of(variable) == name);
    joined(
        found.map(|variable| text_of(variable, "value")),
        call.budget,
    )
}

fn port<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    if call.len() > 2 {
        return has_port(call);
    }
    let (object, position) = (call.object()?, call.take(1));
    let ports = items(container(&object, position.node()), "ports");
    Ok(ports.first().map_or(0, port_number).into())
}

fn has_port<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (object, position, wanted) = (call.object()?, call.take(1), call.take(2));
    let wanted = match wanted.node() {
        Node::Str(text) => text.trim().parse().ok(),
        node => node.as_i64(),
    };
    let ports = items(container(&object, position.node()), "ports");
    call.budget.step(ports.len() as u64)?;
    let found = ports.iter().any(|port| Some(port_number(port)) == wanted);
    Ok(found.into())
}

fn ports<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (object, position) = (call.object()?, call.take(1));
    let chosen = match position.node() {
        Node::Null => containers(&object),
        position => container(&object, position)
            .map(std::slice::from_ref)
            .unwrap_or_default(),
    };
    let ports = chosen
        .iter()
        .flat_map(|container| items(Some(container), "ports"));
    joined(ports.map(|port| port_number(port).to_string()), call.budget)
}

fn port_by_name<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let (object, position, name) = (call.object()?, call.take(1), call.take(2));
    let ports = items(container(&object, position.node()), "ports");
    call.budget.step(ports.len() as u64)?;
    let name = name.node().as_str().unwrap_or_default();
    let found = ports.iter().find(|port| name_of(port) == name);
    Ok(found.map_or(0, port_number).into())
}

fn port_number(port: &Node) -> i64 {
    let number = port.get("containerPort").and_then(Node::as_i64);
    number.unwrap_or_default()
}
