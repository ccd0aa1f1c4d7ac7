//! Names of objects and references to them. Children are named after their custom resource.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{literal, text};
use orkestra_language::api::names::check_dns1123_subdomain;
use orkestra_plan::kinds;

/// The name of the custom resource, as a template.
const OWN: &str = "{{ .metadata.name }}";
/// Characters that may precede a host in a text.
const BEFORE: [char; 5] = ['/', '@', ',', '=', '"'];
/// Characters that may follow a host in a text.
const BEHIND: [char; 6] = [':', '/', '.', ',', '?', '"'];
/// Words in the names of variables that contain hosts.
const HOST_WORDS: [&str; 8] = [
    "HOST", "URL", "URI", "ADDR", "SERVER", "SERVICE", "ENDPOINT", "UPSTREAM",
];

/// The maximum length of a text that is searched for hosts.
const MAX_TEXT: usize = 16 << 10;
/// The maximum number of hosts replaced in a text.
const MAX_HOSTS: usize = 32;
/// The maximum number of Services searched for.
const MAX_SERVICES: usize = 50;

/// The names of all objects.
#[derive(Debug, Default)]
pub(crate) struct ObjectNames {
    /// The name of the custom resource, so that its children keep their names.
    pub(crate) base: String,
    by_kind: BTreeMap<String, BTreeSet<String>>,
}

impl ObjectNames {
    /// Collects the names of these objects; `base` is the name, or the prefix of the names, of most of them.
    pub(crate) fn of(objects: &[Value]) -> Self {
        let mut names = Self::default();
        let mut beginnings: BTreeMap<&str, usize> = BTreeMap::new();
        for object in objects {
            let name = text(object, &["metadata", "name"]).unwrap_or_default();
            let kind = object["kind"].as_str().unwrap_or_default();
            let known = names.by_kind.entry(kind.to_owned()).or_default();
            known.insert(name.to_owned());
            let dashes = name.match_indices('-').map(|(at, _)| &name[..at]);
            let is_name = |one: &&str| !one.contains('.') && check_dns1123_subdomain(one).is_ok();
            for beginning in dashes.chain([name]).filter(is_name) {
                *beginnings.entry(beginning).or_default() += 1;
            }
        }
        let best = beginnings
            .into_iter()
            .max_by_key(|(beginning, count)| (*count, beginning.len()));
        best.map_or("example", |(beginning, _)| beginning)
            .clone_into(&mut names.base);
        names
    }

    /// Returns the name of a child as a template.
    pub(crate) fn template(&self, name: &str) -> String {
        match self.rest(name) {
            Some("") => OWN.to_owned(),
            Some(rest) => format!("{OWN}-{}", literal(rest)),
            None => format!("{OWN}-{}", literal(name)),
        }
    }

    /// Returns the name of an object as a template. An object of a cluster-scoped kind keeps its name, because fields and
    /// arguments of any object of the cluster may refer to it; roles are the exception, since only bindings name them.
    pub(crate) fn of_object(&self, object: &Value) -> String {
        let name = text(object, &["metadata", "name"]).unwrap_or_default();
        if keeps_name(object) {
            literal(name)
        } else {
            self.template(name)
        }
    }

    /// Returns the part of a name after the base; `None` if it starts with something else.
    pub(crate) fn rest<'a>(&self, name: &'a str) -> Option<&'a str> {
        let rest = name.strip_prefix(&self.base)?;
        if rest.is_empty() {
            return Some("");
        }
        rest.strip_prefix('-')
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        self.by_kind
            .get(kind)
            .is_some_and(|names| names.contains(name))
    }

    /// Replaces references in a part of a manifest with templates and keeps all other text. `parent` is the key above it.
    pub(crate) fn rewritten(&self, node: &Value, parent: &str) -> Value {
        match node {
            Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| {
                    let below = match value.as_str() {
                        Some(name) => json!(self.reference(parent, key, map, name)),
                        None => self.rewritten(value, key),
                    };
                    (key.clone(), below)
                });
                Value::Object(entries.collect())
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.rewritten(item, parent));
                Value::Array(items.collect())
            }
            Value::String(text) => json!(self.with_hosts(text, "")),
            other => other.clone(),
        }
    }

    /// Converts the text at `key` of `map`: a name that refers to one of the objects, a text with hosts, or other text.
    fn reference(&self, parent: &str, key: &str, map: &Map<String, Value>, text: &str) -> String {
        let kind = match (parent, key) {
            // The issuer of certificates creates this one for each custom resource.
            ("tls", "secretName") if self.rest(text).is_some() => return self.template(text),
            ("configMapKeyRef" | "configMapRef" | "configMap", "name") => "ConfigMap",
            ("secretKeyRef" | "secretRef" | "secret" | "imagePullSecrets" | "secrets", "name")
            | (_, "secretName") => "Secret",
            (_, "serviceAccountName" | "serviceAccount") => "ServiceAccount",
            ("persistentVolumeClaim", "claimName") => "PersistentVolumeClaim",
            (_, "serviceName") | ("service", "name") => "Service",
            // Objects of the cluster, which keep their names.
            (
                _,
                "ingressClassName" | "storageClassName" | "priorityClassName" | "runtimeClassName",
            ) => {
                return literal(text);
            }
            ("scaleTargetRef" | "roleRef" | "subjects", "name") => {
                let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
                // Only an object with another name than before is referred to by a template.
                if is_kept(kind) { "" } else { kind }
            }
            // The name of a variable indicates if it is a host.
            (_, "value") => {
                let name = map.get("name").and_then(Value::as_str);
                return self.with_hosts(text, name.unwrap_or_default());
            }
            _ => return self.with_hosts(text, key),
        };
        if self.has(kind, text) {
            self.template(text)
        } else {
            literal(text)
        }
    }

    /// Replaces the hosts in a text that are Services of the input with templates, and the names of its `ConfigMaps` and the
    /// like behind a namespace, as in `$(POD_NAMESPACE)/web-config`.
    pub(crate) fn with_hosts(&self, text: &str, about: &str) -> String {
        if let Some(renamed) = self.qualified(text) {
            return renamed;
        }
        let services = self.by_kind.get("Service");
        let Some(services) = services.filter(|_| text.len() <= MAX_TEXT) else {
            return literal(text);
        };
        let about = about.to_ascii_uppercase();
        let is_host = text.contains('-') || HOST_WORDS.iter().any(|word| about.contains(word));
        if services.contains(text) {
            return if is_host {
                self.template(text)
            } else {
                literal(text)
            };
        }
        let mut made = String::new();
        let mut rest = text;
        let mut before = None;
        for _ in 0..MAX_HOSTS {
            let Some((at, service)) = next_host(rest, before, services) else {
                break;
            };
            made.push_str(&literal(&rest[..at]));
            made.push_str(&self.template(service));
            rest = &rest[at + service.len()..];
            before = service.chars().next_back();
        }
        made.push_str(&literal(rest));
        made
    }
}

impl ObjectNames {
    /// Replaces the name of an object at the end of an argument, behind `--flag=NAMESPACE/`.
    fn qualified(&self, text: &str) -> Option<String> {
        let (before, name) = text.rsplit_once('/')?;
        let is_argument = before.starts_with('-') && before.contains('=');
        let is_named = ["ConfigMap", "Secret", "Service", "ServiceAccount"]
            .iter()
            .any(|kind| self.has(kind, name));
        (is_argument && is_named && !before.contains("//"))
            .then(|| format!("{}/{}", literal(before), self.template(name)))
    }
}

/// True if objects of a kind keep their names.
fn keeps_name(object: &Value) -> bool {
    is_kept(object["kind"].as_str().unwrap_or_default())
}

/// True for cluster-scoped kinds except for roles and their bindings.
fn is_kept(kind: &str) -> bool {
    let is_role = ["ClusterRole", "ClusterRoleBinding"].contains(&kind);
    let built_in = kinds::named(kind).filter(|found| *found.kind == *kind);
    !is_role && built_in.is_some_and(|found| found.namespaced == Some(false))
}

/// Finds the first host in a text and its position; of several at the same position, the longest.
fn next_host<'a>(
    text: &str,
    before: Option<char>,
    services: &'a BTreeSet<String>,
) -> Option<(usize, &'a str)> {
    let found = services.iter().take(MAX_SERVICES);
    let found = found.filter(|service| !service.is_empty());
    let found = found.filter_map(|service| {
        let place = text.match_indices(service.as_str()).find(|(at, _)| {
            let left = text[..*at].chars().next_back().or(before);
            let right = text[at + service.len()..].chars().next();
            let begins = left.is_none_or(|c| BEFORE.contains(&c));
            let ends = match right {
                Some(c) => BEHIND.contains(&c),
                None => left.is_some(),
            };
            begins && ends
        });
        place.map(|(at, _)| (at, service.as_str()))
    });
    found.min_by_key(|(at, service)| (*at, usize::MAX - service.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(objects: &[(&str, &str)]) -> ObjectNames {
        let object =
            |(kind, name): &(&str, &str)| json!({ "kind": kind, "metadata": { "name": name } });
        ObjectNames::of(&objects.iter().map(object).collect::<Vec<_>>())
    }

    #[test]
    fn the_base_is_what_most_names_begin_with() {
        for (all, base) in [
            (&["web", "web-config", "web-svc"][..], "web"),
            (&["shop-web", "shop-db", "shop-db-data"], "shop"),
            (&["one"], "one"),
            (&["a-b-c", "a-b-d"], "a-b"),
            (&["", "x"], "x"),
            (&["system:a", "A"], "example"),
        ] {
            let all: Vec<_> = all.iter().map(|name| ("Service", *name)).collect();
            assert_eq!(names(&all).base, base, "{all:?}");
        }
    }

    #[test]
    fn cluster_scoped_objects_keep_their_names_and_references_stay_consistent() {
        let names = names(&[
            ("IngressClass", "nginx"),
            ("Service", "web-nginx"),
            ("ConfigMap", "web-config"),
            ("ClusterRole", "web"),
        ]);
        let of = |kind: &str, name: &str| {
            names.of_object(&json!({ "kind": kind, "metadata": { "name": name } }))
        };
        assert_eq!(of("IngressClass", "nginx"), "nginx");
        assert_eq!(of("ClusterRole", "web"), "{{ .metadata.name }}");
        let container = json!({ "args": [
            "--ingress-class=nginx", "--configmap=$(POD_NAMESPACE)/web-config", "--url=http://x/web-config",
        ]});
        let wanted = json!({ "args": [
            "--ingress-class=nginx", "--configmap=$(POD_NAMESPACE)/{{ .metadata.name }}-config", "--url=http://x/web-config",
        ]});
        assert_eq!(names.rewritten(&container, "containers"), wanted);
        let ingress = json!({ "ingressClassName": "web-nginx" });
        assert_eq!(names.rewritten(&ingress, "spec"), ingress);
    }

    #[test]
    fn references_and_hosts_follow_and_other_texts_stay() {
        let names = names(&[
            ("Service", "shop-db"),
            ("Secret", "shop-login"),
            ("Service", "shop"),
        ]);
        for (text, about, wanted) in [
            (
                "postgres://u@shop-db:5432/x",
                "",
                "postgres://u@{{ .metadata.name }}-db:5432/x",
            ),
            ("shop-db.prod.svc", "", "{{ .metadata.name }}-db.prod.svc"),
            ("shop", "DB_HOST", "{{ .metadata.name }}"),
            ("shop", "MODE", "shop"),
            ("workshop: shop-dbx", "", "workshop: shop-dbx"),
            ("a {{ b }}", "", "a {{ \"{{\" }} b }}"),
        ] {
            assert_eq!(names.with_hosts(text, about), wanted, "{text}");
        }
        let node = json!({ "secretKeyRef": { "name": "shop-login", "key": "shop" } });
        let wanted =
            json!({ "secretKeyRef": { "name": "{{ .metadata.name }}-login", "key": "shop" } });
        assert_eq!(names.rewritten(&node, "valueFrom"), wanted);
    }
}
