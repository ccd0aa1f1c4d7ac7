//! The parts of a pod template: its container, security, volumes.

use std::collections::BTreeMap;

use super::{env, is_given, probes, scope::At};
use crate::{
    api::{
        children::{Capabilities, Deployment, PodSecurity, Resources, SecurityContext},
        scalar::{Text, Texts},
    },
    diagnostics::Code,
    plan::{Coerce, Fields, Leaf, Tree, resolve_profile},
    value::Node,
};

/// The pod's `spec`, with one container that has the workload's name.
pub(super) fn spec(at: &At<'_>, entry: &Deployment, name: &Leaf) -> Tree {
    let mut fields = Fields::default();
    fields.put("containers", Tree::list(vec![container(at, entry, name)]));
    let secrets = &entry.image_pull_secrets;
    if !secrets.is_empty() {
        let at = at.field("imagePullSecrets");
        let references = secrets
            .iter()
            .enumerate()
            .map(|(index, secret)| env::name_ref(&at.index(index), secret));
        fields.put("imagePullSecrets", Tree::list(references.collect()));
    }
    fields.put(
        "nodeSelector",
        at.field("nodeSelector")
            .texts(&entry.node_selector, Coerce::Text)
            .into_optional(),
    );
    fields.put(
        "serviceAccountName",
        at.text_field("serviceAccountName", entry.service_account_name.as_ref()),
    );
    if let Some(security) = &entry.pod_security {
        fields.put(
            "securityContext",
            pod_security(&at.field("podSecurity"), security),
        );
    }
    fields.put("volumes", manifests(&at.field("volumes"), &entry.volumes));
    fields.into_tree()
}

fn container(at: &At<'_>, entry: &Deployment, name: &Leaf) -> Tree {
    let mut fields = Fields::default();
    fields.put("name", Tree::ContainerName(name.clone()));
    fields.put("image", at.required("image", &entry.image));
    fields.put(
        "command",
        entry
            .command
            .as_ref()
            .and_then(|texts| words(&at.field("command"), texts)),
    );
    fields.put(
        "args",
        entry
            .args
            .as_ref()
            .and_then(|texts| words(&at.field("args"), texts)),
    );
    fields.put(
        "workingDir",
        at.text_field("workingDirectory", entry.working_directory.as_ref()),
    );
    let port = at.scalar_field("port", entry.port.as_ref(), Coerce::Port);
    if let Some(port) = &port {
        let mut only = Fields::default();
        only.put("containerPort", port.clone());
        only.put(
            "protocol",
            at.word_field("protocol", entry.protocol.as_ref(), &PROTOCOLS),
        );
        fields.put("ports", Tree::list(vec![only.into_part()]));
    }
    fields.put(
        "env",
        entry
            .env
            .as_ref()
            .map(|declared| env::env(&at.field("env"), declared)),
    );
    fields.put(
        "envFrom",
        entry
            .env_from
            .as_ref()
            .map(|declared| env::env_from(&at.field("envFrom"), declared)),
    );
    fields.put(
        "resources",
        entry
            .resources
            .as_ref()
            .and_then(|declared| resources(&at.field("resources"), declared)),
    );
    if let Some(declared) = &entry.probes {
        let asked = probes::Asked {
            is_given: is_given(entry.port.as_ref()),
            port: port.as_ref(),
        };
        probes::put(&mut fields, &at.field("probes"), declared, asked);
    }
    if let Some(context) = &entry.security_context {
        fields.put(
            "securityContext",
            security_context(&at.field("securityContext"), context),
        );
    }
    fields.put(
        "volumeMounts",
        manifests(&at.field("volumeMounts"), &entry.volume_mounts),
    );
    fields.into_tree()
}

/// Protocols of a port.
pub(super) const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// `command` and `args`: each item may be a template, or one template gives the list.
fn words(at: &At<'_>, texts: &Texts) -> Option<Tree> {
    match texts {
        Texts::List(list) => Some(word_list(at, list)),
        Texts::Template(text) if text.contains("{{") => at.value(text, Coerce::Native),
        Texts::Template(text) => {
            at.error_hint(
                Code::Words,
                "this is a list of words",
                format!(
                    "write `{}`, or `[sh, -c, …]` for a shell's line",
                    as_list(text)
                ),
            );
            None
        }
    }
}

/// A line as the list of its words; one with quotes is not taken apart.
fn as_list(line: &str) -> String {
    if line.contains(['"', '\'', ',', '[', ']', '{', '}', '#', ':']) {
        return "[…]".to_owned();
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    format!("[{}]", words.join(", "))
}

fn word_list(at: &At<'_>, list: &[Text]) -> Tree {
    Tree::list(
        list.iter()
            .enumerate()
            .filter_map(|(index, text)| at.index(index).value(text, Coerce::Text))
            .collect(),
    )
}

fn resources(at: &At<'_>, declared: &Resources) -> Option<Tree> {
    let Resources {
        profile,
        requests,
        limits,
    } = declared;
    let set = [
        ("requests", !requests.is_empty()),
        ("limits", !limits.is_empty()),
    ];
    let (at, declared) = resolve_profile(at, profile.as_deref(), &set, declared, |profiles| {
        &profiles.resources
    })?;
    quantities(&at, declared)
}

/// What is asked for and allowed, but for the profile.
pub(crate) fn quantities(at: &At<'_>, resources: &Resources) -> Option<Tree> {
    let quantities = |name: &str, texts: &BTreeMap<String, Text>| {
        at.field(name)
            .texts(texts, Coerce::OptionalText)
            .into_optional()
    };
    let mut fields = Fields::default();
    fields.put("requests", quantities("requests", &resources.requests));
    fields.put("limits", quantities("limits", &resources.limits));
    fields.into_optional()
}

fn security_context(at: &At<'_>, declared: &SecurityContext) -> Option<Tree> {
    let SecurityContext {
        profile,
        run_as_non_root,
        read_only_root_filesystem,
        allow_privilege_escalation,
        capabilities,
    } = declared;
    let set = [
        ("runAsNonRoot", run_as_non_root.is_some()),
        (
            "readOnlyRootFilesystem",
            read_only_root_filesystem.is_some(),
        ),
        (
            "allowPrivilegeEscalation",
            allow_privilege_escalation.is_some(),
        ),
        ("capabilities", capabilities.is_some()),
    ];
    let (at, declared) = resolve_profile(at, profile.as_deref(), &set, declared, |profiles| {
        &profiles.container_security
    })?;
    context(&at, declared)
}

/// The container's security context, but for the profile.
pub(crate) fn context(at: &At<'_>, context: &SecurityContext) -> Option<Tree> {
    let SecurityContext {
        profile: _,
        run_as_non_root,
        read_only_root_filesystem,
        allow_privilege_escalation,
        capabilities,
    } = context;
    let mut fields = Fields::default();
    fields.put(
        "runAsNonRoot",
        at.scalar_field("runAsNonRoot", run_as_non_root.as_ref(), Coerce::Bool),
    );
    fields.put(
        "readOnlyRootFilesystem",
        at.scalar_field(
            "readOnlyRootFilesystem",
            read_only_root_filesystem.as_ref(),
            Coerce::Bool,
        ),
    );
    fields.put(
        "allowPrivilegeEscalation",
        at.scalar_field(
            "allowPrivilegeEscalation",
            allow_privilege_escalation.as_ref(),
            Coerce::Bool,
        ),
    );
    fields.put(
        "capabilities",
        capabilities
            .as_ref()
            .and_then(|declared| caps(&at.field("capabilities"), declared)),
    );
    fields.into_optional()
}

fn caps(at: &At<'_>, capabilities: &Capabilities) -> Option<Tree> {
    let mut fields = Fields::default();
    for (name, list) in [("add", &capabilities.add), ("drop", &capabilities.drop)] {
        for (index, text) in list.iter().enumerate() {
            check_capability(&at.field(name).index(index), text);
        }
        fields.put(
            name,
            (!list.is_empty()).then(|| word_list(&at.field(name), list)),
        );
    }
    fields.into_optional()
}

/// Names only look like this; which of them exist is the kernel's matter.
fn check_capability(at: &At<'_>, text: &str) {
    if text.contains("{{") {
        return;
    }
    let upper = text.to_ascii_uppercase();
    let short = upper.strip_prefix("CAP_").unwrap_or(&upper);
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    if short != text && is_name(short) {
        at.error_hint(
            Code::Capability,
            format!("`{text}` is no capability's name here"),
            format!("write `{short}`"),
        );
    } else if !is_name(text) {
        at.error(Code::Capability, format!("`{text}` is no capability's name: capital letters and `_`, such as `NET_BIND_SERVICE`, or `ALL`"));
    }
}

fn pod_security(at: &At<'_>, declared: &PodSecurity) -> Option<Tree> {
    let PodSecurity {
        profile,
        run_as_non_root,
        run_as_user,
        run_as_group,
        fs_group,
    } = declared;
    let set = [
        ("runAsNonRoot", run_as_non_root.is_some()),
        ("runAsUser", run_as_user.is_some()),
        ("runAsGroup", run_as_group.is_some()),
        ("fsGroup", fs_group.is_some()),
    ];
    let (at, declared) = resolve_profile(at, profile.as_deref(), &set, declared, |profiles| {
        &profiles.pod_security
    })?;
    pod_context(&at, declared)
}

/// The pod's security context, but for the profile.
pub(crate) fn pod_context(at: &At<'_>, security: &PodSecurity) -> Option<Tree> {
    let PodSecurity {
        profile: _,
        run_as_non_root,
        run_as_user,
        run_as_group,
        fs_group,
    } = security;
    let mut fields = Fields::default();
    fields.put(
        "runAsNonRoot",
        at.scalar_field("runAsNonRoot", run_as_non_root.as_ref(), Coerce::Bool),
    );
    fields.put(
        "runAsUser",
        at.scalar_field("runAsUser", run_as_user.as_ref(), Coerce::Int),
    );
    fields.put(
        "runAsGroup",
        at.scalar_field("runAsGroup", run_as_group.as_ref(), Coerce::Int),
    );
    fields.put(
        "fsGroup",
        at.scalar_field("fsGroup", fs_group.as_ref(), Coerce::Int),
    );
    fields.into_optional()
}

fn manifests(at: &At<'_>, nodes: &[Node]) -> Option<Tree> {
    let items = nodes
        .iter()
        .enumerate()
        .filter_map(|(index, node)| at.index(index).manifest(node));
    (!nodes.is_empty()).then(|| Tree::list(items.collect()))
}
