//! `Service` and its endpoints.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use super::{CHECK, COUNT, INT, TEXT, joined, name_of, text_of};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

const ENDPOINTS: &str = "_endpoints";
const PODS: &str = "_backingPods";
const SLICE: &str = "endpoints";
const SUBSETS: &str = "subsets";

/// Texts from the endpoints.
const OF_ENDPOINTS: BuiltInNote = BuiltInNote {
    reads: &[ENDPOINTS],
    result: NoteType::Text,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "serviceClusterIP",
        doc: "The cluster IP of a Service.",
        example: ("{{ serviceClusterIP .children.service }}", "10.96.7.20"),
        reads: &["spec.clusterIP"],
        ..TEXT
    },
    BuiltInNote {
        name: "serviceNodePort",
        doc: "The node port of a Service's first port; 0 if it has none.",
        example: ("{{ serviceNodePort .children.service }}", "30080"),
        reads: &["spec.ports.0.nodePort"],
        ..INT
    },
    BuiltInNote {
        name: "serviceLoadBalancerIP",
        doc: "The address of a Service's load balancer.",
        example: (
            "{{ serviceLoadBalancerIP .children.service }}",
            "198.51.100.7",
        ),
        reads: &["status.loadBalancer.ingress.0.ip"],
        ..TEXT
    },
    BuiltInNote {
        name: "serviceLoadBalancerHost",
        doc: "The host name of a Service's load balancer.",
        example: ("{{ serviceLoadBalancerHost .children.service }}", ""),
        reads: &["status.loadBalancer.ingress.0.hostname"],
        ..TEXT
    },
    BuiltInNote {
        name: "endpointsReady",
        doc: "True if an EndpointSlice, or a Service that is enriched with `endpoints`, has a ready address.",
        example: (
            "{{ endpointsReady .children.service }} {{ endpointsReady .children.endpointSlice }}",
            "true true",
        ),
        reads: &[ENDPOINTS, SLICE, SUBSETS],
        run: NoteBody::Eager(ready),
        ..CHECK
    },
    BuiltInNote {
        name: "hasEndpoints",
        doc: "True if a Service has endpoints, if it is enriched with `endpoints`.",
        example: ("{{ hasEndpoints .children.service }}", "true"),
        reads: &[ENDPOINTS],
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            Ok((!object.list(ENDPOINTS, call.budget)?.is_empty()).into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "serviceEndpointCount",
        doc: "The number of endpoints of a Service, if it is enriched with `endpoints`.",
        example: ("{{ serviceEndpointCount .children.service }}", "2"),
        reads: &[ENDPOINTS],
        ..COUNT
    },
    BuiltInNote {
        name: "serviceEndpoints",
        doc: "The addresses and ports of a Service's endpoints, if it is enriched with `endpoints`.",
        example: (
            "{{ serviceEndpoints .children.service }}",
            "10.0.0.1:8080, 10.0.0.2:8080",
        ),
        run: NoteBody::Eager(|call| endpoints(call, usize::MAX)),
        ..OF_ENDPOINTS
    },
    BuiltInNote {
        name: "serviceFirstEndpoint",
        doc: "The address and port of a Service's first endpoint, if it is enriched with `endpoints`.",
        example: (
            "{{ serviceFirstEndpoint .children.service }}",
            "10.0.0.1:8080",
        ),
        run: NoteBody::Eager(|call| endpoints(call, 1)),
        ..OF_ENDPOINTS
    },
    BuiltInNote {
        name: "backingPodCount",
        doc: "The number of Pods behind a Service, if it is enriched with `backingpods`.",
        example: ("{{ backingPodCount .children.service }}", "2"),
        reads: &[PODS],
        ..COUNT
    },
    BuiltInNote {
        name: "backingPodNames",
        doc: "The names of the Pods behind a Service, if it is enriched with `backingpods`.",
        example: (
            "{{ backingPodNames .children.service }}",
            "koi-tank-0, koi-tank-1",
        ),
        reads: &[PODS],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            joined(
                object.list(PODS, call.budget)?.iter().map(name_of),
                call.budget,
            )
        }),
        ..PLAIN
    },
];

/// An address in an `EndpointSlice` counts as ready if the condition is missing; in `Endpoints`, everything in `addresses`
/// is ready.
///
/// Source: discovery.k8s.io/v1 `EndpointConditions`, v1 `EndpointSubset`.
fn ready<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let enriched = object.list(ENDPOINTS, call.budget)?.iter();
    let slice = object.list(SLICE, call.budget)?.iter();
    let subsets = object.list(SUBSETS, call.budget)?.iter();
    let has_address = |node: &Node| {
        let addresses = node.get("addresses").and_then(Node::as_list);
        addresses.is_some_and(|addresses| !addresses.is_empty())
    };
    let is_ready = |node: &Node| node.get("ready").and_then(Node::as_bool);
    let in_slice = |node: &Node| {
        let ready = node.get("conditions").and_then(is_ready);
        has_address(node) && ready.unwrap_or(true)
    };
    let found = enriched.clone().any(|node| is_ready(node) == Some(true))
        || slice.clone().any(in_slice)
        || subsets.clone().any(has_address);
    Ok(found.into())
}

fn endpoints<'d>(call: &mut NoteCall<'_, 'd>, most: usize) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let endpoints = object.list(ENDPOINTS, call.budget)?.iter().take(most);
    let texts = endpoints.map(|endpoint| {
        let ip = text_of(endpoint, "ip");
        let port = endpoint.get("port").and_then(Node::as_i64);
        match port {
            _ if ip.is_empty() => String::new(),
            Some(port) if ip.contains(':') => format!("[{ip}]:{port}"),
            Some(port) => format!("{ip}:{port}"),
            None => ip.to_owned(),
        }
    });
    joined(texts, call.budget)
}
