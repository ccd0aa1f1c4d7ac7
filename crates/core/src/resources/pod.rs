//! The pod of every kind with pods: its containers, volumes, and the rest of its spec.

use std::collections::BTreeMap;

use super::{env, is_given, literals, probes, security};
use crate::{
    api::{
        children::{PodParts, Resources, Serving},
        scalar::{Text, Texts},
    },
    diagnostics::Code,
    plan::{Coerce, Leaf, ObjectTree},
    scope::{At, Fields, resolve_profile},
    value::Node,
};

/// The parts of a pod.
pub(super) struct Parts<'a> {
    pub(super) pod: &'a PodParts,
    /// Set for kinds whose pods keep running.
    pub(super) serving: Option<&'a Serving>,
    /// The default tag of the image.
    pub(super) tag: Option<&'a Text>,
    /// Mounts of volumes that the kind itself creates.
    pub(super) mounts: Vec<ObjectTree>,
}

impl<'a> Parts<'a> {
    /// Returns the parts of a kind whose pods keep running.
    pub(super) fn serving(pod: &'a PodParts, serving: &'a Serving) -> Self {
        Self {
            serving: Some(serving),
            ..Self::ending(pod)
        }
    }

    /// Returns the parts of a kind whose pods complete.
    pub(super) fn ending(pod: &'a PodParts) -> Self {
        Self {
            pod,
            serving: None,
            tag: None,
            mounts: Vec::new(),
        }
    }

    /// Returns the pod's `spec`, whose first container has the workload's name.
    pub(super) fn spec(self, at: &At<'_>, name: &Leaf) -> Fields {
        let PodParts {
            image_pull_secrets,
            pod_security,
            volumes,
            node_selector,
            service_account_name,
            containers,
            init_containers,
            ..
        } = self.pod;
        let mut fields = Fields::default();
        if !image_pull_secrets.is_empty() {
            let at = at.field("imagePullSecrets");
            let references = image_pull_secrets
                .iter()
                .enumerate()
                .map(|(index, secret)| env::name_ref(&at.index(index), secret));
            fields.put("imagePullSecrets", ObjectTree::list(references.collect()));
        }
        fields.put(
            "nodeSelector",
            at.field("nodeSelector")
                .texts(node_selector, Coerce::Text)
                .into_optional(),
        );
        fields.put(
            "serviceAccountName",
            at.text_field("serviceAccountName", service_account_name.as_ref()),
        );
        if let Some(declared) = pod_security {
            fields.put(
                "securityContext",
                security::pod_security(&at.field("podSecurity"), declared),
            );
        }
        fields.put("volumes", manifest_list(&at.field("volumes"), volumes));
        let others = manifests(&at.field("containers"), containers);
        let inits = manifest_list(&at.field("initContainers"), init_containers);
        fields.put("initContainers", inits);
        let all = [self.container(at, name)].into_iter().chain(others);
        fields.put("containers", ObjectTree::list(all.collect()));
        fields
    }

    fn container(self, at: &At<'_>, name: &Leaf) -> ObjectTree {
        let PodParts {
            command,
            args,
            env,
            env_from,
            resources,
            security_context,
            volume_mounts,
            working_directory,
            ..
        } = self.pod;
        let mut fields = Fields::default();
        fields.put("name", ObjectTree::ContainerName(name.clone()));
        fields.put("image", self.image(at));
        for (name, texts) in [("command", command), ("args", args)] {
            let list = |texts| words(&at.field(name), texts);
            fields.put(name, texts.as_ref().and_then(list));
        }
        fields.put(
            "workingDir",
            at.text_field("workingDirectory", working_directory.as_ref()),
        );
        fields.put(
            "env",
            env.as_ref()
                .map(|declared| env::env(&at.field("env"), declared)),
        );
        fields.put(
            "envFrom",
            env_from
                .as_ref()
                .map(|declared| env::env_from(&at.field("envFrom"), declared)),
        );
        fields.put(
            "resources",
            resources
                .as_ref()
                .and_then(|declared| self::resources(&at.field("resources"), declared)),
        );
        if let Some(serving) = self.serving {
            put_serving(&mut fields, at, serving);
        }
        if let Some(context) = security_context {
            fields.put(
                "securityContext",
                security::security_context(&at.field("securityContext"), context),
            );
        }
        let mounts = manifests(&at.field("volumeMounts"), volume_mounts);
        let mounts: Vec<ObjectTree> = mounts.into_iter().chain(self.mounts).collect();
        fields.put(
            "volumeMounts",
            (!mounts.is_empty()).then(|| ObjectTree::list(mounts)),
        );
        fields.into_tree()
    }

    fn image(&self, at: &At<'_>) -> Option<ObjectTree> {
        let image = &self.pod.image;
        literals::check_image(&at.field("image"), image);
        let Some(tag) = self.tag.filter(|_| !image.trim().is_empty()) else {
            return at.required("image", image);
        };
        let leaf = |name: &str, text: &str| at.field(name).leaf(text, Coerce::OptionalText);
        let (image, tag) = (leaf("image", image), leaf("tag", tag));
        Some(ObjectTree::Image(Box::new((image?, tag?))))
    }
}

/// Adds port and probes to a container.
fn put_serving(container: &mut Fields, at: &At<'_>, serving: &Serving) {
    let Serving {
        port: declared,
        protocol,
        probes,
    } = serving;
    let port = at.scalar_field("port", declared.as_ref(), Coerce::Port);
    if let Some(port) = &port {
        let mut only = Fields::default();
        only.put("containerPort", port.clone());
        only.put(
            "protocol",
            at.word_field("protocol", protocol.as_ref(), &PROTOCOLS),
        );
        container.put("ports", ObjectTree::list(vec![only.into_part()]));
    }
    if let Some(probes) = probes {
        let asked = probes::ContainerPort {
            is_given: is_given(declared.as_ref()),
            port: port.as_ref(),
        };
        probes::put(container, &at.field("probes"), probes, asked);
    }
}

/// Protocols of a port.
pub(super) const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// Compiles `command` and `args`: each item may be a template, or one template returns the list.
fn words(at: &At<'_>, texts: &Texts) -> Option<ObjectTree> {
    match texts {
        Texts::List(list) => Some(at.text_list(list)),
        Texts::Template(text) if text.contains("{{") => at.value(text, Coerce::Native),
        Texts::Template(text) => {
            at.error_hint(
                Code::Words,
                "expected a list of words",
                format!(
                    "write `{}`, or `[sh, -c, …]` for a shell command line",
                    as_list(text)
                ),
            );
            None
        }
    }
}

/// Formats a line as the list of its words; a line with quotes is not split.
fn as_list(line: &str) -> String {
    if line.contains(['"', '\'', ',', '[', ']', '{', '}', '#', ':']) {
        return "[…]".to_owned();
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    format!("[{}]", words.join(", "))
}

fn resources(at: &At<'_>, declared: &Resources) -> Option<ObjectTree> {
    let Resources {
        profile,
        requests,
        limits,
    } = declared;
    let set = [
        ("requests", !requests.is_empty()),
        ("limits", !limits.is_empty()),
    ];
    let resolved = resolve_profile(at, profile.as_deref(), &set, declared, |profiles| {
        &profiles.resources
    })?;
    resolved.tree(quantities)
}

/// Returns requests and limits, without the profile.
pub(crate) fn quantities(at: &At<'_>, resources: &Resources) -> Option<ObjectTree> {
    let quantities = |name: &str, texts: &BTreeMap<String, Text>| {
        let at = at.field(name);
        let mut amounts = Fields::default();
        for (resource, text) in texts {
            at.key(resource).literal_key(resource);
            amounts.put(
                resource,
                literals::amount(&at.field(resource), resource, text),
            );
        }
        amounts.into_optional()
    };
    let mut fields = Fields::default();
    fields.put("requests", quantities("requests", &resources.requests));
    fields.put("limits", quantities("limits", &resources.limits));
    fields.into_optional()
}

/// Compiles parts in Pod format.
fn manifests(at: &At<'_>, nodes: &[Node]) -> Vec<ObjectTree> {
    let nodes = nodes.iter().enumerate();
    let trees = nodes.filter_map(|(index, node)| at.index(index).manifest(node));
    trees.collect()
}

fn manifest_list(at: &At<'_>, nodes: &[Node]) -> Option<ObjectTree> {
    (!nodes.is_empty()).then(|| ObjectTree::list(manifests(at, nodes)))
}
