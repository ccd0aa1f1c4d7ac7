//! `ingresses`.

use super::{Child, Metadata, Shorthand};
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{
        children::{Ingress, IngressTls},
        scalar::{Scalar, Text},
    },
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree, Whole};

const PATH_TYPES: [&str; 3] = ["Prefix", "Exact", "ImplementationSpecific"];

impl Shorthand for Ingress {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let Ingress {
            common: _,
            host,
            service_name,
            service_port,
            path,
            path_type,
            class_name,
            tls,
        } = self;
        let at = &child.at;
        let mut service = Fields::default();
        service.put("name", at.required("serviceName", service_name));
        service.put("port", port(at, service_port));
        let backend = service.into_root("service");

        let mut route = Fields::default();
        match path {
            Some(path) => route.put("path", at.text_field("path", Some(path))),
            None => route.put_text("path", "/"),
        }
        match path_type {
            Some(word) => {
                let word = at.word_field("pathType", Some(word), &PATH_TYPES);
                route.put("pathType", word);
            }
            None => route.put_text("pathType", "Prefix"),
        }
        route.put("backend", backend.into_tree());

        let routes = ObjectTree::list(vec![route.into_tree()]);
        let mut http = Fields::default();
        http.put("paths", routes);
        let mut rule = Fields::default();
        rule.put("host", at.text_field("host", host.as_ref()));
        rule.put("http", http.into_tree());

        let mut spec = Fields::default();
        spec.put(
            "ingressClassName",
            at.text_field("className", class_name.as_ref()),
        );
        spec.put("rules", ObjectTree::list(vec![rule.into_tree()]));
        if let Some(tls) = tls {
            let tls = at.field("tls").whole(tls, Whole::List, |_, tls| {
                Some(ObjectTree::list(vec![encryption(
                    child,
                    tls,
                    host.as_ref(),
                )]))
            });
            spec.put("tls", tls);
        }
        spec.into_root("spec")
    }
}

/// Returns a port by its number, or by its name if it is a literal word.
fn port(at: &At<'_>, port: &Scalar) -> Option<ObjectTree> {
    let is_name = port
        .as_str()
        .is_some_and(|text| !text.contains("{{") && text.trim().parse::<u64>().is_err());
    let at = at.field("servicePort");
    let mut fields = Fields::default();
    if is_name {
        fields.put("name", at.required_here(&Text::from(&*port.to_string())));
    } else {
        if !super::is_given(Some(port)) {
            at.error(Code::Empty, "the value is empty");
        }
        fields.put("number", at.scalar(port, Coerce::Port));
    }
    fields.into_optional()
}

/// Returns the name of the certificate Secret, as declared, for an Ingress with this name.
pub(crate) fn secret_name(tls: &IngressTls, ingress: &str) -> String {
    match &tls.secret_name {
        Some(name) => name.to_string(),
        None => format!("{}-tls", ingress.trim_end()),
    }
}

/// Returns the TLS hosts, each with its place, in an entry at `at`.
pub(crate) fn hosts<'a, 'h>(
    at: &At<'a>,
    tls: &'h IngressTls,
    host: Option<&'h Text>,
) -> Vec<(At<'a>, &'h Text)> {
    if tls.hosts.is_absent() {
        return host
            .map(|host| (at.field("host"), host))
            .into_iter()
            .collect();
    }
    let at = at.field("tls").field("hosts");
    if let Some(all) = tls.hosts.template() {
        return vec![(at, all)];
    }
    let hosts = tls.hosts.iter().enumerate();
    hosts.map(|(index, host)| (at.index(index), host)).collect()
}

fn encryption(child: &Child<'_>, tls: &IngressTls, host: Option<&Text>) -> ObjectTree {
    let IngressTls {
        secret_name,
        hosts: _,
        create,
    } = tls;
    let at = &child.at;
    let place = at.field("tls");
    let hosts = place
        .field("hosts")
        .whole(&tls.hosts, Whole::Words, |_, _| {
            let hosts = hosts(at, tls, host).into_iter();
            let hosts: Vec<ObjectTree> = hosts
                .filter_map(|(at, host)| at.value(host, Coerce::OptionalText))
                .collect();
            (!hosts.is_empty()).then(|| ObjectTree::list(hosts))
        });
    let mut fields = Fields::default();
    fields.put("hosts", hosts);
    let secret = match (secret_name, create) {
        (None, Some(true)) => {
            let name = Text::from(self::secret_name(tls, child.name_text));
            place.value(&name, Coerce::OptionalText)
        }
        _ => place.text_field("secretName", secret_name.as_ref()),
    };
    fields.put("secretName", secret);
    fields.into_tree()
}
