//! The pod of every kind with pods: its containers, volumes, and the rest of its spec.

use std::collections::BTreeMap;

use super::{env, is_given, literals, probes, security};
use crate::scope::{At, Fields, resolve_profile};
use orkestra_language::{
    api::{
        children::{NameRef, PodParts, Resources, Serving},
        or_template::OrTemplate,
        scalar::{Text, Texts},
    },
    diagnostics::Code,
};
use orkestra_object::value::Node;
use orkestra_plan::{Coerce, Leaf, ObjectTree, Whole};

/// The parts of a pod.
pub(crate) struct Parts<'a> {
    pub(crate) pod: &'a PodParts,
    /// Set for kinds whose pods keep running.
    pub(crate) serving: Option<&'a Serving>,
    /// The default tag of the image.
    pub(crate) tag: Option<&'a Text>,
    /// Mounts of volumes that the kind itself creates.
    pub(crate) mounts: Vec<ObjectTree>,
}

impl<'a> Parts<'a> {
    /// Returns the parts of a kind whose pods keep running.
    pub(crate) fn serving(pod: &'a PodParts, serving: &'a Serving) -> Self {
        Self {
            serving: Some(serving),
            ..Self::ending(pod)
        }
    }

    /// Returns the parts of a kind whose pods complete.
    pub(crate) fn ending(pod: &'a PodParts) -> Self {
        Self {
            pod,
            serving: None,
            tag: None,
            mounts: Vec::new(),
        }
    }

    /// Returns the pod's `spec`, whose first container has the workload's name.
    pub(crate) fn spec(self, at: &At<'_>, name: &Leaf) -> Fields {
        let PodParts {
            image_pull_secrets,
            pod_security,
            volumes,
            node_selector,
            tolerations,
            affinity,
            topology_spread_constraints,
            service_account_name,
            containers,
            init_containers,
            ..
        } = self.pod;
        let mut fields = Fields::default();
        let secrets = at.field("imagePullSecrets");
        fields.put(
            "imagePullSecrets",
            secrets.whole(image_pull_secrets, Whole::References, |at, list| {
                references(at, list)
            }),
        );
        fields.put(
            "nodeSelector",
            at.field("nodeSelector")
                .map_of_texts(node_selector, Coerce::Text),
        );
        for (name, list) in [
            ("tolerations", tolerations),
            ("topologySpreadConstraints", topology_spread_constraints),
            ("volumes", volumes),
        ] {
            fields.put(name, at.field(name).manifest_list(list));
        }
        fields.put(
            "affinity",
            at.field("affinity").whole(affinity, Whole::Map, map),
        );
        fields.put(
            "serviceAccountName",
            at.text_field("serviceAccountName", service_account_name.as_ref()),
        );
        if let Some(declared) = pod_security {
            let at = at.field("podSecurity");
            fields.put(
                "securityContext",
                at.whole(declared, Whole::Map, security::pod_security),
            );
        }
        let inits = at.field("initContainers").manifest_list(init_containers);
        fields.put("initContainers", inits);
        let others = at.field("containers").manifest_list(containers);
        let first = ObjectTree::list(vec![self.container(at, name)]);
        fields.put("containers", chained(Some(first), others));
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
        if let Some(declared) = env {
            let at = at.field("env");
            fields.put("env", at.whole(declared, Whole::Variables, env::env));
        }
        if let Some(declared) = env_from {
            let at = at.field("envFrom");
            fields.put("envFrom", at.whole(declared, Whole::Sources, env::env_from));
        }
        if let Some(declared) = resources {
            let at = at.field("resources");
            fields.put("resources", at.whole(declared, Whole::Map, self::resources));
        }
        if let Some(serving) = self.serving {
            put_serving(&mut fields, at, serving);
        }
        if let Some(context) = security_context {
            let at = at.field("securityContext");
            fields.put(
                "securityContext",
                at.whole(context, Whole::Map, security::security_context),
            );
        }
        let mounts = at.field("volumeMounts").manifest_list(volume_mounts);
        let mounts_of_kind = self.mounts;
        let own = (!mounts_of_kind.is_empty()).then(|| ObjectTree::list(mounts_of_kind));
        fields.put("volumeMounts", chained(mounts, own));
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
pub(crate) const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

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

fn references(at: &At<'_>, secrets: &[NameRef]) -> Option<ObjectTree> {
    let secrets = secrets.iter().enumerate();
    let references: Vec<ObjectTree> = secrets
        .map(|(index, secret)| env::name_ref(&at.index(index), secret))
        .collect();
    (!references.is_empty()).then(|| ObjectTree::list(references))
}

fn map(at: &At<'_>, declared: &BTreeMap<String, Node>) -> Option<ObjectTree> {
    let mut fields = Fields::default();
    for (key, node) in declared {
        at.key(key).literal_key(key);
        fields.put(key, at.field(key).manifest(node));
    }
    fields.into_optional()
}

/// Returns the lists after one another, as one list as far as they are written out.
fn chained(first: Option<ObjectTree>, second: Option<ObjectTree>) -> Option<ObjectTree> {
    let (Some(first), Some(second)) = (&first, &second) else {
        return first.or(second);
    };
    let joined = || ObjectTree::Joined([first.clone(), second.clone()].into());
    let both = items(first).zip(items(second));
    let both = both.map(|(first, second)| ObjectTree::list([first, second].concat()));
    Some(both.unwrap_or_else(joined))
}

fn items(tree: &ObjectTree) -> Option<Vec<ObjectTree>> {
    match tree {
        ObjectTree::Fixed(Node::List(items)) => {
            Some(items.iter().cloned().map(ObjectTree::Fixed).collect())
        }
        ObjectTree::List(items) => Some(items.to_vec()),
        _ => None,
    }
}

fn resources(at: &At<'_>, declared: &Resources) -> Option<ObjectTree> {
    let Resources {
        profile,
        requests,
        limits,
    } = declared;
    let set = [
        ("requests", !requests.is_absent()),
        ("limits", !limits.is_absent()),
    ];
    let resolved = resolve_profile(at, profile.as_deref(), &set, declared, |profiles| {
        &profiles.resources
    })?;
    resolved.tree(quantities)
}

/// Returns requests and limits, without the profile.
pub(crate) fn quantities(at: &At<'_>, resources: &Resources) -> Option<ObjectTree> {
    let quantities = |name: &str, declared: &OrTemplate<BTreeMap<String, Text>>| {
        at.field(name).whole(declared, Whole::Texts, |at, texts| {
            let mut amounts = Fields::default();
            for (resource, text) in texts {
                at.key(resource).literal_key(resource);
                amounts.put(
                    resource,
                    literals::amount(&at.field(resource), resource, text),
                );
            }
            amounts.into_optional()
        })
    };
    let mut fields = Fields::default();
    fields.put("requests", quantities("requests", &resources.requests));
    fields.put("limits", quantities("limits", &resources.limits));
    fields.into_optional()
}
