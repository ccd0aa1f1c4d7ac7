//! The fields of pods by which they leave their sandbox: those that the Pod Security profile `baseline` restricts, and the values
//! that it permits.
//!
//! Source: Kubernetes 1.34, "Pod Security Standards", profile Baseline. A test compares them with its table.

use crate::tree::DeclaredValue;
use orkestra_object::value::Node;

/// Volumes of directories of a node.
pub const HOST_PATH: &str = "hostPath";

/// A restriction on pods.
pub(crate) struct PodControl {
    /// The name under which other values are permitted.
    pub(crate) name: &'static str,
    /// Whether the fields are beside the pod's spec: in its metadata.
    pub(crate) in_template: bool,
    /// The fields, below the spec of the pod; `*` is any item or key.
    pub(crate) fields: &'static [&'static [&'static str]],
    /// The values that all users may use.
    pub(crate) permitted: Permitted,
}

/// The values of a field that are not sensitive. A field that is absent or null is not.
#[derive(Clone, Copy)]
pub(crate) enum Permitted {
    /// `false`, zero and empty text.
    Unset,
    /// These texts, and empty text.
    Only(&'static [&'static str]),
    /// Texts with these prefixes, and empty text.
    Prefixed(&'static [&'static str]),
    /// All but these texts.
    AllBut(&'static [&'static str]),
}

impl Permitted {
    /// True if the value is permitted. What a template renders is not: the author of a custom resource chooses it.
    pub(crate) fn has(self, value: DeclaredValue<'_>) -> bool {
        let text = match value {
            DeclaredValue::Text(text) => text,
            DeclaredValue::Fixed(Node::Str(text)) => &**text,
            DeclaredValue::Fixed(Node::Bool(false)) => "",
            DeclaredValue::Fixed(other) if other.as_i64() == Some(0) => "",
            DeclaredValue::Template(_) | DeclaredValue::Fixed(_) => return false,
        };
        match self {
            Self::Unset => matches!(text, "" | "false" | "0"),
            Self::Only(texts) => text.is_empty() || texts.contains(&text),
            Self::Prefixed(texts) => {
                text.is_empty() || texts.iter().any(|prefix| text.starts_with(prefix))
            }
            Self::AllBut(texts) => !texts.contains(&text),
        }
    }
}

/// Returns the paths of a field of containers, of every list of containers.
macro_rules! containers {
    ($($step:literal),+) => {
        &[
            &["containers", "*", $($step),+],
            &["initContainers", "*", $($step),+],
            &["ephemeralContainers", "*", $($step),+],
        ]
    };
}

/// Returns the paths of a field of the pod's security context, and of every container's.
macro_rules! security {
    ($($step:literal),+) => {
        &[
            &["securityContext", $($step),+],
            &["containers", "*", "securityContext", $($step),+],
            &["initContainers", "*", "securityContext", $($step),+],
            &["ephemeralContainers", "*", "securityContext", $($step),+],
        ]
    };
}

/// Returns a restriction on fields of the pod's spec.
const fn control(
    name: &'static str,
    fields: &'static [&'static [&'static str]],
    permitted: Permitted,
) -> PodControl {
    PodControl {
        name,
        in_template: false,
        fields,
        permitted,
    }
}

const HOST_PROBES: &str = "hostProbes";
const APP_ARMOR: &str = "appArmor";
const SE_LINUX: &str = "seLinux";
/// The capabilities of a container without any setting.
const CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// The kernel parameters that are isolated from other pods.
const SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
];

/// Every restriction; those of one name are neighbours.
pub(crate) const CONTROLS: &[PodControl] = &[
    control(HOST_PATH, &[&["volumes", "*", HOST_PATH]], Permitted::Unset),
    control(
        "hostNamespaces",
        &[&["hostNetwork"], &["hostPID"], &["hostIPC"]],
        Permitted::Unset,
    ),
    control(
        "privileged",
        containers!["securityContext", "privileged"],
        Permitted::Unset,
    ),
    control(
        "hostProcess",
        security!["windowsOptions", "hostProcess"],
        Permitted::Unset,
    ),
    control(
        "capabilities",
        containers!["securityContext", "capabilities", "add", "*"],
        Permitted::Only(CAPABILITIES),
    ),
    control(
        "hostPorts",
        containers!["ports", "*", "hostPort"],
        Permitted::Unset,
    ),
    control(
        HOST_PROBES,
        containers!["livenessProbe", "*", "host"],
        Permitted::Unset,
    ),
    control(
        HOST_PROBES,
        containers!["readinessProbe", "*", "host"],
        Permitted::Unset,
    ),
    control(
        HOST_PROBES,
        containers!["startupProbe", "*", "host"],
        Permitted::Unset,
    ),
    control(
        HOST_PROBES,
        containers!["lifecycle", "*", "*", "host"],
        Permitted::Unset,
    ),
    control(
        APP_ARMOR,
        security!["appArmorProfile", "type"],
        Permitted::Only(&["RuntimeDefault", "Localhost"]),
    ),
    PodControl {
        name: APP_ARMOR,
        in_template: true,
        fields: &[&[
            "metadata",
            "annotations",
            "container.apparmor.security.beta.kubernetes.io/*",
        ]],
        permitted: Permitted::Prefixed(&["runtime/default", "localhost/"]),
    },
    control(
        SE_LINUX,
        security!["seLinuxOptions", "type"],
        Permitted::Only(&[
            "container_t",
            "container_init_t",
            "container_kvm_t",
            "container_engine_t",
        ]),
    ),
    control(
        SE_LINUX,
        security!["seLinuxOptions", "user"],
        Permitted::Unset,
    ),
    control(
        SE_LINUX,
        security!["seLinuxOptions", "role"],
        Permitted::Unset,
    ),
    control(
        "procMount",
        containers!["securityContext", "procMount"],
        Permitted::Only(&["Default"]),
    ),
    control(
        "seccomp",
        security!["seccompProfile", "type"],
        Permitted::Only(&["RuntimeDefault", "Localhost"]),
    ),
    control(
        "sysctls",
        &[&["securityContext", "sysctls", "*", "name"]],
        Permitted::Only(SYSCTLS),
    ),
];
