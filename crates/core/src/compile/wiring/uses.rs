//! The references of children to other objects by name.

use crate::{
    api::children::{
        Env, EnvFrom, EnvFromObject, EnvFromSource, EnvValue, KeyRef, NameRef, PodParts,
    },
    compile::children::DeclaredBlock,
    scope::At,
    value::Node,
};

/// A reference to an object, and optionally to a key of its data.
pub(super) struct Use<'a> {
    /// The path of the name.
    pub(super) at: At<'a>,
    pub(super) kind: &'a str,
    /// The name, as declared.
    pub(super) name: &'a str,
    /// The key and its path.
    pub(super) key: Option<(At<'a>, &'a str)>,
    /// True if the object or the key may be missing.
    pub(super) optional: bool,
}

type Visit<'v, 'a> = &'v mut dyn FnMut(Use<'a>);

const SECRET: &str = "Secret";
const CONFIG_MAP: &str = "ConfigMap";
const SERVICE_ACCOUNT: &str = "ServiceAccount";

impl<'a> Use<'a> {
    fn of(at: At<'a>, kind: &'a str, name: &'a str) -> Self {
        Self {
            at,
            kind,
            name,
            key: None,
            optional: false,
        }
    }
}

/// Visits the references of a block's children without pods.
pub(super) fn visit<'a>(block: &DeclaredBlock<'a>, visit: Visit<'_, 'a>) {
    let lifecycle = block.lifecycle;
    for (index, ingress) in lifecycle.ingresses.iter().enumerate() {
        let at = block.at.field("ingresses").index(index);
        visit(Use::of(
            at.field("serviceName"),
            "Service",
            &ingress.service_name,
        ));
        if let Some(tls) = &ingress.tls
            && let Some(name) = tls
                .secret_name
                .as_ref()
                .filter(|_| tls.create != Some(true))
        {
            visit(Use::of(at.field("tls").field("secretName"), SECRET, name));
        }
    }
    for (index, scaler) in lifecycle.hpa.iter().enumerate() {
        if let Some(target) = &scaler.scale_target_ref {
            let kind = target.kind.as_deref().unwrap_or("Deployment");
            let at = block.at.field("hpa").index(index);
            visit(Use::of(
                at.field("scaleTargetRef").field("name"),
                kind,
                &target.name,
            ));
        }
    }
    for (index, binding) in lifecycle.role_bindings.iter().enumerate() {
        let at = block.at.field("roleBindings").index(index);
        let kind = binding.role_ref.kind.as_deref().unwrap_or("Role");
        visit(Use::of(
            at.field("roleRef").field("name"),
            kind,
            &binding.role_ref.name,
        ));
        for (index, subject) in binding.subjects.iter().enumerate() {
            let kind = subject.kind.as_deref().unwrap_or(SERVICE_ACCOUNT);
            if kind == SERVICE_ACCOUNT && subject.namespace.is_none() {
                let at = at.field("subjects").index(index).field("name");
                visit(Use::of(at, SERVICE_ACCOUNT, &subject.name));
            }
        }
    }
}

/// Visits the references of a pod.
pub(super) fn visit_pod<'a>(at: &At<'a>, pod: &'a PodParts, visit: Visit<'_, 'a>) {
    if let Some(env) = &pod.env {
        self::env(&at.field("env"), env, visit);
    }
    if let Some(from) = &pod.env_from {
        env_from(&at.field("envFrom"), from, visit);
    }
    for (index, secret) in pod.image_pull_secrets.iter().enumerate() {
        name_ref(
            &at.field("imagePullSecrets").index(index),
            SECRET,
            secret,
            visit,
        );
    }
    if let Some(account) = &pod.service_account_name {
        visit(Use::of(
            at.field("serviceAccountName"),
            SERVICE_ACCOUNT,
            account,
        ));
    }
    for (index, node) in pod.volumes.iter().enumerate() {
        volume(&at.field("volumes").index(index), node, visit);
    }
    for (field, list) in [
        ("containers", &pod.containers),
        ("initContainers", &pod.init_containers),
    ] {
        for (index, node) in list.iter().enumerate() {
            container(&at.field(field).index(index), node, visit);
        }
    }
}

fn env<'a>(at: &At<'a>, env: &'a Env, visit: Visit<'_, 'a>) {
    match env {
        Env::Map(variables) => {
            for (name, value) in variables {
                let EnvValue::Source(source) = value else {
                    continue;
                };
                let at = at.field(name);
                if let Some(reference) = &source.secret_key_ref {
                    key_ref(&at.field("secretKeyRef"), SECRET, reference, visit);
                }
                if let Some(reference) = &source.config_map_key_ref {
                    key_ref(&at.field("configMapKeyRef"), CONFIG_MAP, reference, visit);
                }
            }
        }
        Env::List(variables) => {
            for (index, variable) in variables.iter().enumerate() {
                if let Some(from) = &variable.value_from {
                    value_from(&at.index(index).field("valueFrom"), from, visit);
                }
            }
        }
    }
}

fn key_ref<'a>(at: &At<'a>, kind: &'a str, reference: &'a KeyRef, visit: Visit<'_, 'a>) {
    visit(Use {
        key: Some((at.field("key"), reference.key.trim())),
        optional: reference.optional == Some(true),
        ..Use::of(at.field("name"), kind, &reference.name)
    });
}

fn env_from<'a>(at: &At<'a>, from: &'a EnvFrom, visit: Visit<'_, 'a>) {
    match from {
        EnvFrom::List(sources) => {
            for (index, source) in sources.iter().enumerate() {
                let EnvFromSource {
                    config_map_ref,
                    secret_ref,
                    prefix: _,
                } = source;
                let at = at.index(index);
                for (field, kind, reference) in [
                    ("configMapRef", CONFIG_MAP, config_map_ref),
                    ("secretRef", SECRET, secret_ref),
                ] {
                    if let Some(reference) = reference {
                        name_ref(&at.field(field), kind, reference, visit);
                    }
                }
            }
        }
        EnvFrom::Object(EnvFromObject {
            config_map_ref,
            secret_ref,
        }) => {
            for (field, kind, list) in [
                ("configMapRef", CONFIG_MAP, config_map_ref),
                ("secretRef", SECRET, secret_ref),
            ] {
                for (index, reference) in list.iter().enumerate() {
                    name_ref(&at.field(field).index(index), kind, reference, visit);
                }
            }
        }
    }
}

fn name_ref<'a>(at: &At<'a>, kind: &'a str, reference: &'a NameRef, visit: Visit<'_, 'a>) {
    let place = match reference {
        NameRef::Object(_) => at.field("name"),
        NameRef::Name(_) => at.clone(),
    };
    visit(Use {
        optional: reference.optional() == Some(true),
        ..Use::of(place, kind, reference.name())
    });
}

/// Visits the references of a container in Pod format.
fn container<'a>(at: &At<'a>, node: &'a Node, visit: Visit<'_, 'a>) {
    for (index, variable) in items(node, "env") {
        if let Some(from) = variable.get("valueFrom") {
            value_from(
                &at.field("env").index(index).field("valueFrom"),
                from,
                visit,
            );
        }
    }
    for (index, source) in items(node, "envFrom") {
        let at = at.field("envFrom").index(index);
        object(&at, source, ("configMapRef", "name"), CONFIG_MAP, visit);
        object(&at, source, ("secretRef", "name"), SECRET, visit);
    }
}

fn value_from<'a>(at: &At<'a>, node: &'a Node, visit: Visit<'_, 'a>) {
    object(at, node, ("secretKeyRef", "name"), SECRET, visit);
    object(at, node, ("configMapKeyRef", "name"), CONFIG_MAP, visit);
}

fn volume<'a>(at: &At<'a>, node: &'a Node, visit: Visit<'_, 'a>) {
    object(at, node, ("configMap", "name"), CONFIG_MAP, visit);
    object(at, node, ("secret", "secretName"), SECRET, visit);
    let claim = ("persistentVolumeClaim", "claimName");
    object(at, node, claim, "PersistentVolumeClaim", visit);
    let Some(projected) = node.get("projected") else {
        return;
    };
    for (index, source) in items(projected, "sources") {
        let at = at.field("projected").field("sources").index(index);
        object(&at, source, ("configMap", "name"), CONFIG_MAP, visit);
        object(&at, source, ("secret", "name"), SECRET, visit);
    }
}

/// Visits the object that the map `field` of `node` names under `name`, with its `key` or the keys of its `items`.
fn object<'a>(
    at: &At<'a>,
    node: &'a Node,
    (field, name): (&str, &str),
    kind: &'a str,
    visit: Visit<'_, 'a>,
) {
    let Some(reference) = node.get(field) else {
        return;
    };
    let Some(text) = reference.get(name).and_then(Node::as_str) else {
        return;
    };
    let at = at.field(field);
    let optional = reference.get("optional").and_then(Node::as_bool) == Some(true);
    let used = |key| Use {
        key,
        optional,
        ..Use::of(at.field(name), kind, text)
    };
    let own = reference.get("key").and_then(Node::as_str);
    let own = own.map(|key| (at.field("key"), key));
    let is_whole = own.is_none() && items(reference, "items").next().is_none();
    if own.is_some() || is_whole {
        visit(used(own));
    }
    for (index, item) in items(reference, "items") {
        if let Some(key) = item.get("key").and_then(Node::as_str) {
            visit(used(Some((
                at.field("items").index(index).field("key"),
                key,
            ))));
        }
    }
}

/// Returns the items of a list in a map, each with its index; empty without a list.
pub(super) fn items<'a>(
    node: &'a Node,
    field: &str,
) -> impl Iterator<Item = (usize, &'a Node)> + use<'a> {
    let list = node.get(field).and_then(Node::as_list).unwrap_or_default();
    list.iter().enumerate()
}
