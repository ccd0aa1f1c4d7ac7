//! `ingresses`.

use super::{Child, Metadata, Row, Shorthand, scope::At};
use crate::{
    api::{
        children::{Common, Ingress, IngressTls},
        scalar::{Scalar, Text},
    },
    diagnostics::Code,
    plan::{Coerce, Fields, Tree},
};

const PATH_TYPES: [&str; 3] = ["Prefix", "Exact", "ImplementationSpecific"];

impl Shorthand for Ingress {
    fn row(&self) -> &'static Row {
        &Row {
            list: "ingresses",
            group: "networking.k8s.io",
            version: "v1",
            kind: "Ingress",
            name: Some("{{ .metadata.name }}-ingress"),
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

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

        let routes = Tree::list(vec![route.into_tree()]);
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
        spec.put("rules", Tree::list(vec![rule.into_tree()]));
        if let Some(tls) = tls {
            let tls = encryption(at, tls, host.as_ref());
            spec.put("tls", Tree::list(vec![tls]));
        }
        spec.into_root("spec")
    }
}

/// A port by its number, or by its name where a word is written out.
fn port(at: &At<'_>, port: &Scalar) -> Option<Tree> {
    let is_name = port
        .as_str()
        .is_some_and(|text| !text.contains("{{") && text.trim().parse::<u64>().is_err());
    let at = at.field("servicePort");
    let mut fields = Fields::default();
    if is_name {
        fields.put("name", at.required_here(&Text::from(&*port.to_string())));
    } else {
        if !super::is_given(Some(port)) {
            at.error(Code::Empty, "this is empty");
        }
        fields.put("number", at.scalar(port, Coerce::Port));
    }
    fields.into_optional()
}

fn encryption(at: &At<'_>, tls: &IngressTls, host: Option<&Text>) -> Tree {
    let IngressTls {
        secret_name,
        hosts,
        later: _,
    } = tls;
    let place = at.field("tls");
    let hosts: Vec<Tree> = if hosts.is_empty() {
        at.text_field("host", host).into_iter().collect()
    } else {
        let at = place.field("hosts");
        let hosts = hosts.iter().enumerate();
        hosts
            .filter_map(|(index, host)| at.index(index).value(host, Coerce::OptionalText))
            .collect()
    };
    let mut fields = Fields::default();
    fields.put("hosts", (!hosts.is_empty()).then(|| Tree::list(hosts)));
    fields.put(
        "secretName",
        place.text_field("secretName", secret_name.as_ref()),
    );
    fields.into_tree()
}
