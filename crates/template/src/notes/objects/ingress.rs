//! `Ingress`.

use super::super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use super::{CHECK, Object, TEXT, joined, number, text_of, unique};
use crate::budget::EvalBudget;
use crate::error::EvalFailure;
use orkestra_object::value::Node;

const LOAD_BALANCERS: &str = "status.loadBalancer.ingress";
const ENRICHED_IPS: &str = "_loadBalancerIPs";
const RULES: &str = "spec.rules";
const TLS: &str = "spec.tls";
const ENRICHED_SECRETS: &str = "_tlsSecrets";

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "ingressReady",
        doc: "True if an Ingress has a load balancer.",
        example: ("{{ ingressReady .children.ingress }}", "true"),
        reads: &[LOAD_BALANCERS],
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            Ok((!object.list(LOAD_BALANCERS, call.budget)?.is_empty()).into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "ingressIP",
        doc: "The address of an Ingress's first load balancer.",
        example: ("{{ ingressIP .children.ingress }}", ""),
        reads: &["status.loadBalancer.ingress.0.ip"],
        ..TEXT
    },
    BuiltInNote {
        name: "ingressHost",
        doc: "The host name of an Ingress's first load balancer.",
        example: ("{{ ingressHost .children.ingress }}", "lb.garden.example"),
        reads: &["status.loadBalancer.ingress.0.hostname"],
        ..TEXT
    },
    BuiltInNote {
        name: "ingressClassName",
        doc: "The class of an Ingress.",
        example: ("{{ ingressClassName .children.ingress }}", "front"),
        reads: &["spec.ingressClassName"],
        ..TEXT
    },
    BuiltInNote {
        name: "ingressRules",
        doc: "The hosts of an Ingress's rules.",
        example: (
            "{{ ingressRules .children.ingress }}",
            "koi.example, pond.example",
        ),
        reads: &[RULES],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| {
            let object = call.object()?;
            let rules = object.list(RULES, call.budget)?.iter();
            joined(rules.map(|rule| text_of(rule, "host")), call.budget)
        }),
        ..PLAIN
    },
    BuiltInNote {
        name: "ingressTLSHosts",
        doc: "The hosts in the TLS section of an Ingress.",
        example: ("{{ ingressTLSHosts .children.ingress }}", "koi.example"),
        reads: &[TLS],
        result: NoteType::Text,
        run: NoteBody::Eager(tls_hosts),
        ..PLAIN
    },
    BuiltInNote {
        name: "ingressLoadBalancerIPs",
        doc: "The addresses or host names of an Ingress's load balancers.",
        example: (
            "{{ ingressLoadBalancerIPs .children.ingress }}",
            "lb.garden.example, 198.51.100.9",
        ),
        reads: &[ENRICHED_IPS, LOAD_BALANCERS],
        result: NoteType::Text,
        run: NoteBody::Eager(load_balancer_ips),
        ..PLAIN
    },
    BuiltInNote {
        name: "ingressTLSSecretCount",
        doc: "The number of TLS Secrets of an Ingress.",
        example: ("{{ ingressTLSSecretCount .children.ingress }}", "1"),
        reads: &[ENRICHED_SECRETS, TLS],
        result: NoteType::Int,
        run: NoteBody::Eager(|call| Ok(tls_secrets(&call.object()?, call.budget)?.into())),
        ..PLAIN
    },
];

fn tls_hosts<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    let entries = object.list(TLS, call.budget)?.iter();
    let hosts = entries.filter_map(|entry| entry.get("hosts")?.as_list());
    joined(hosts.flatten().filter_map(Node::as_str), call.budget)
}

fn load_balancer_ips<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let object = call.object()?;
    if let Some(text) = object.at(ENRICHED_IPS).as_str() {
        return joined([text], call.budget);
    }
    let path = match object.at(ENRICHED_IPS) {
        Node::Null => LOAD_BALANCERS,
        _ => ENRICHED_IPS,
    };
    let entries = object.list(path, call.budget)?.iter();
    let address = |entry: &'_ Node| match entry.as_str() {
        Some(text) => text.to_owned(),
        None => match text_of(entry, "ip") {
            "" => text_of(entry, "hostname").to_owned(),
            ip => ip.to_owned(),
        },
    };
    joined(entries.map(address), call.budget)
}

fn tls_secrets(object: &Object<'_, '_>, budget: &mut EvalBudget) -> Result<i64, EvalFailure> {
    if let Some(secrets) = object.at(ENRICHED_SECRETS).as_list() {
        return Ok(number(secrets.len()));
    }
    let entries = object.list(TLS, budget)?.iter();
    let names = entries.map(|entry| text_of(entry, "secretName"));
    Ok(number(unique(names.filter(|name| !name.is_empty())).len()))
}
