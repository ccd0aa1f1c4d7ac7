//! Security contexts of containers and pods.

use crate::scope::{At, Fields, resolve_profile};
use orkestra_language::{
    api::children::{Capabilities, PodSecurity, SecurityContext},
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree, Whole};

pub(crate) fn security_context(at: &At<'_>, declared: &SecurityContext) -> Option<ObjectTree> {
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
    let resolved = resolve_profile(at, profile.as_deref(), &set, declared, |profiles| {
        &profiles.container_security
    })?;
    resolved.tree(context)
}

/// Returns the container's security context, without the profile.
pub(crate) fn context(at: &At<'_>, context: &SecurityContext) -> Option<ObjectTree> {
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
            .and_then(|declared| at.field("capabilities").whole(declared, Whole::Map, caps)),
    );
    fields.into_optional()
}

fn caps(at: &At<'_>, capabilities: &Capabilities) -> Option<ObjectTree> {
    let mut fields = Fields::default();
    for (name, list) in [("add", &capabilities.add), ("drop", &capabilities.drop)] {
        for (index, text) in list.iter().enumerate() {
            check_capability(&at.field(name).index(index), text);
        }
        fields.put(name, at.field(name).words(list));
    }
    fields.into_optional()
}

/// Checks only the format of a name; the kernel determines which capabilities exist.
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

pub(crate) fn pod_security(at: &At<'_>, declared: &PodSecurity) -> Option<ObjectTree> {
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
    let resolved = resolve_profile(at, profile.as_deref(), &set, declared, |profiles| {
        &profiles.pod_security
    })?;
    resolved.tree(pod_context)
}

/// Returns the pod's security context, without the profile.
pub(crate) fn pod_context(at: &At<'_>, security: &PodSecurity) -> Option<ObjectTree> {
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
