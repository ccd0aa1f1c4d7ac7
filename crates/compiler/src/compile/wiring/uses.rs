//! The references of children to other objects by name.

use crate::{
    compile::children::{DeclaredBlock, entries},
    scope::At,
};
use orkestra_language::api::children::{
    Env, EnvFrom, EnvFromObject, EnvFromSource, EnvValue, KeyRef, NameRef, PodParts, Subject,
};
use orkestra_object::value::Node;
use orkestra_plan::kinds;

/// A reference to an object, and optionally to a key of its data.
pub(crate) struct Use<'a> {
    /// The path of the name.
    pub(crate) at: At<'a>,
    pub(crate) kind: &'a str,
    /// The name, as declared.
    pub(crate) name: &'a str,
    /// The key and its path.
    pub(crate) key: Option<(At<'a>, &'a str)>,
    /// True if the object or the key may be missing.
    pub(crate) optional: bool,
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

/// Visits the references of a block's children, except for those in the fields of pods.
pub(crate) fn visit<'a>(block: &DeclaredBlock<'a>, visit: Visit<'_, 'a>) {
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
        let place = at.field("roleRef").field("name");
        visit(Use::of(place, kind, &binding.role_ref.name));
        subjects(&at, &binding.subjects, visit);
    }
    for (index, binding) in lifecycle.cluster_role_bindings.iter().enumerate() {
        let at = block.at.field("clusterRoleBindings").index(index);
        let place = at.field("roleRef").field("name");
        visit(Use::of(place, "ClusterRole", &binding.role_ref.name));
        subjects(&at, &binding.subjects, visit);
    }
    for (index, set) in lifecycle.stateful_sets.iter().enumerate() {
        if let Some(service) = &set.service_name {
            let at = block.at.field("statefulSets").index(index);
            visit(Use::of(at.field("serviceName"), "Service", service));
        }
    }
    visit_written(block, visit);
}

/// Visits the references in patches and in objects that are written out.
fn visit_written<'a>(block: &DeclaredBlock<'a>, visit: Visit<'_, 'a>) {
    let lifecycle = block.lifecycle;
    for (index, entry) in entries(lifecycle) {
        let at = block.at.field(entry.row().list).index(index);
        for (key, node) in &entry.common().patch {
            manifest(&at.field("patch").field(key), node, visit);
        }
    }
    for (index, entry) in lifecycle.custom.iter().enumerate() {
        // In kinds from elsewhere such a field may name an object that their controller creates.
        let group = entry.api_version.trim().split_once('/');
        if !kinds::is_built_in_group(group.map_or("", |(group, _)| group)) {
            continue;
        }
        let at = block.at.field("custom").index(index);
        for (key, node) in &entry.body {
            field(&at.field(key), key, node, visit);
        }
    }
}

/// Visits the service accounts of a binding.
fn subjects<'a>(at: &At<'a>, subjects: &'a [Subject], visit: Visit<'_, 'a>) {
    for (index, subject) in subjects.iter().enumerate() {
        let kind = subject.kind.as_deref().unwrap_or(SERVICE_ACCOUNT);
        if kind == SERVICE_ACCOUNT && subject.namespace.is_none() {
            let at = at.field("subjects").index(index).field("name");
            visit(Use::of(at, SERVICE_ACCOUNT, &subject.name));
        }
    }
}

/// Visits the references of a pod.
pub(crate) fn visit_pod<'a>(at: &At<'a>, pod: &'a PodParts, visit: Visit<'_, 'a>) {
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
    for (field, list) in [
        ("volumes", &pod.volumes),
        ("containers", &pod.containers),
        ("initContainers", &pod.init_containers),
    ] {
        for (index, node) in list.iter().enumerate() {
            manifest(&at.field(field).index(index), node, visit);
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
                    manifest(&at.index(index).field("valueFrom"), from, visit);
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

/// Visits the references in a part of a manifest of a built-in kind, by the names of their fields.
fn manifest<'a>(at: &At<'a>, node: &'a Node, visit: Visit<'_, 'a>) {
    match node {
        Node::Map(fields) => {
            for (key, below) in fields.iter() {
                field(&at.field(key), key, below, visit);
            }
        }
        Node::List(items) => {
            for (index, item) in items.iter().enumerate() {
                manifest(&at.index(index), item, visit);
            }
        }
        _ => {}
    }
}

/// Visits the references in the field `key`, whose value is at `at`.
fn field<'a>(at: &At<'a>, key: &str, node: &'a Node, visit: Visit<'_, 'a>) {
    let mut text = |kind| {
        if let Some(name) = node.as_str() {
            visit(Use::of(at.clone(), kind, name));
        }
    };
    let items = || node.as_list().unwrap_or_default().iter().enumerate();
    match key {
        "secretName" => text(SECRET),
        "serviceAccountName" => text(SERVICE_ACCOUNT),
        "serviceName" => text("Service"),
        "configMapRef" | "configMapKeyRef" | "configMap" => {
            object(at, node, "name", CONFIG_MAP, visit);
        }
        "secretRef" | "secretKeyRef" | "nodePublishSecretRef" => {
            object(at, node, "name", SECRET, visit);
        }
        "secret" => {
            object(at, node, "secretName", SECRET, visit);
            object(at, node, "name", SECRET, visit);
        }
        "persistentVolumeClaim" => {
            object(at, node, "claimName", "PersistentVolumeClaim", visit);
        }
        "service" => object(at, node, "name", "Service", visit),
        "imagePullSecrets" => {
            for (index, item) in items() {
                named(&at.index(index), item, SECRET, visit);
            }
        }
        "scaleTargetRef" | "roleRef" => {
            if let Some(kind) = node.get("kind").and_then(Node::as_str) {
                named(at, node, kind, visit);
            }
        }
        "subjects" => {
            for (index, subject) in items() {
                let kind = subject.get("kind").and_then(Node::as_str);
                if kind == Some(SERVICE_ACCOUNT) && subject.get("namespace").is_none() {
                    named(&at.index(index), subject, SERVICE_ACCOUNT, visit);
                }
            }
        }
        _ => manifest(at, node, visit),
    }
}

/// Visits the object that a map names under `name`.
fn named<'a>(at: &At<'a>, node: &'a Node, kind: &'a str, visit: Visit<'_, 'a>) {
    if let Some(name) = node.get("name").and_then(Node::as_str) {
        visit(Use::of(at.field("name"), kind, name));
    }
}

/// Visits the object that the map `reference` names under `name`, with its `key` or the keys of its `items`.
fn object<'a>(at: &At<'a>, reference: &'a Node, name: &str, kind: &'a str, visit: Visit<'_, 'a>) {
    let Some(text) = reference.get(name).and_then(Node::as_str) else {
        return;
    };
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
pub(crate) fn items<'a>(
    node: &'a Node,
    field: &str,
) -> impl Iterator<Item = (usize, &'a Node)> + use<'a> {
    let list = node.get(field).and_then(Node::as_list).unwrap_or_default();
    list.iter().enumerate()
}
