//! Children that grant wide access to a cluster, and the policy of an installation that permits or refuses them.
//!
//! The author of a Katalog can create any object that the controller may create. The permissions of the controller are the first
//! limit; the policy is a second one. It also covers what RBAC cannot distinguish: a privileged Pod from any other.

use std::collections::BTreeSet;

use super::{ChildPlan, OperatorPlan, Plan, PlanPlace};

/// The sensitive children that an installation permits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChildPolicy {
    /// All of them.
    #[default]
    All,
    /// Those of these names.
    Only(BTreeSet<&'static str>),
}

/// A name that is not in the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a sensitive child: expected one of {names}", names = ChildPolicy::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownName(pub String);

/// A child that is not permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of its entry.
    pub path: PlanPlace,
    /// The name under which it would be permitted.
    pub name: &'static str,
}

/// Formats `spec.crds.web.operatorBox.onCreate.roles[0]: Role`.
impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.name)
    }
}

/// Sensitive kinds, by group. Source: Kubernetes, "Role Based Access Control Good Practices", privilege escalation risks.
const KINDS: [(&str, &str); 16] = [
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
    (ADMISSION, "MutatingWebhookConfiguration"),
    (ADMISSION, "ValidatingAdmissionPolicy"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    (ADMISSION, "MutatingAdmissionPolicy"),
    (ADMISSION, "MutatingAdmissionPolicyBinding"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    (crate::api::names::GROUP, "Katalog"),
    (crate::api::names::GROUP, "Komposer"),
    (crate::api::names::GROUP, "Motif"),
];
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Sensitive fields of pods: the name, and the path below the pod's spec; `*` is any item.
const FIELDS: [(&str, &[&str]); 8] = [
    (HOST_PATH, &["volumes", "*", "hostPath"]),
    (HOST_NAMESPACES, &["hostNetwork"]),
    (HOST_NAMESPACES, &["hostPID"]),
    (HOST_NAMESPACES, &["hostIPC"]),
    (
        PRIVILEGED,
        &["containers", "*", "securityContext", "privileged"],
    ),
    (
        PRIVILEGED,
        &["initContainers", "*", "securityContext", "privileged"],
    ),
    (
        PRIVILEGED,
        &["ephemeralContainers", "*", "securityContext", "privileged"],
    ),
    (
        TOKENS,
        &[
            "volumes",
            "*",
            "projected",
            "sources",
            "*",
            "serviceAccountToken",
        ],
    ),
];
const HOST_PATH: &str = "hostPath";
const HOST_NAMESPACES: &str = "hostNamespaces";
const PRIVILEGED: &str = "privileged";
const TOKENS: &str = "serviceAccountToken";

/// The paths of pod specs in objects, by group and kind: all that the schemas of Kubernetes have, as a test checks.
const PODS: [(&str, &str, &[&str]); 9] = [
    ("", "Pod", &["spec"]),
    ("", "PodTemplate", &["template", "spec"]),
    ("", "ReplicationController", TEMPLATE),
    ("apps", "Deployment", TEMPLATE),
    ("apps", "StatefulSet", TEMPLATE),
    ("apps", "DaemonSet", TEMPLATE),
    ("apps", "ReplicaSet", TEMPLATE),
    ("batch", "Job", TEMPLATE),
    (
        "batch",
        "CronJob",
        &["spec", "jobTemplate", "spec", "template", "spec"],
    ),
];
const TEMPLATE: &[&str] = &["spec", "template", "spec"];

impl ChildPolicy {
    /// Returns the names that a policy may permit.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let kinds = KINDS.iter().map(|(_, kind)| *kind);
        kinds.chain([HOST_PATH, HOST_NAMESPACES, PRIVILEGED, TOKENS])
    }

    /// Parses `all`, `none`, or names with commas between them.
    ///
    /// # Errors
    /// A name is unknown.
    pub fn parse(text: &str) -> Result<Self, UnknownName> {
        match text.trim() {
            "all" => return Ok(Self::All),
            "none" => return Ok(Self::Only(BTreeSet::new())),
            _ => {}
        }
        let known = |name: &str| {
            let name = name.trim();
            let found = Self::names().find(|known| known.eq_ignore_ascii_case(name));
            found.ok_or_else(|| UnknownName(name.to_owned()))
        };
        text.split(',')
            .map(known)
            .collect::<Result<_, _>>()
            .map(Self::Only)
    }

    /// Returns the children of a plan that are not permitted, in the order of their declaration.
    pub fn violations(&self, plan: &Plan) -> Vec<Violation> {
        let Self::Only(permitted) = self else {
            return Vec::new();
        };
        let mut violations = Vec::new();
        for child in plan
            .operators
            .iter()
            .flat_map(|operator| children(operator))
        {
            for name in sensitive(child) {
                if !permitted.contains(name) {
                    violations.push(Violation {
                        path: child.path.clone(),
                        name,
                    });
                }
            }
        }
        violations
    }
}

/// Returns all children of an operator, with those of `onDelete`.
fn children(operator: &OperatorPlan) -> impl Iterator<Item = &ChildPlan> {
    let steps = operator
        .on_delete
        .iter()
        .flat_map(|on_delete| &on_delete.steps);
    operator
        .children
        .iter()
        .chain(steps.flat_map(|step| &step.made))
}

/// Returns the names of everything sensitive in a child.
fn sensitive(child: &ChildPlan) -> BTreeSet<&'static str> {
    let kind = child.kind.group_kind();
    let is_kind = |group: &str, name: &str| *kind.group == *group && *kind.kind == *name;
    let named = KINDS.iter().filter(|(group, name)| is_kind(group, name));
    let mut found: BTreeSet<&'static str> = named.map(|(_, name)| *name).collect();
    let pods = PODS.iter().filter(|(group, name, _)| is_kind(group, name));
    for (_, _, spec) in pods {
        for (name, field) in FIELDS {
            let path: Vec<&str> = spec.iter().chain(field).copied().collect();
            if child.body.may_have(&path) {
                found.insert(name);
            }
        }
    }
    if is_kind("", "PersistentVolume") && child.body.may_have(&["spec", "hostPath"]) {
        found.insert(HOST_PATH);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compile,
        definitions::Schemas,
        document::read_stream,
        plan::KatalogRef,
        schema::{BuiltIn, NestedSchema, Schema},
        scope::Library,
    };

    fn plan(children: &str) -> Plan {
        let text = format!(
            "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{name: k}}\nspec: {{crds: {{pond: {{\
             apiTypes: {{group: g.example, version: v1, kind: Pond, plural: ponds}}, operatorBox: {{onReconcile: {children}}}}}}}}}\n"
        );
        let (documents, _) = read_stream("k.yaml", &text).unwrap();
        let reference = KatalogRef::new("n".to_owned(), "k".to_owned());
        let (schemas, library) = (Schemas::default(), Library::default());
        compile::katalog(&reference, &documents.katalogs[0].spec, &schemas, &library)
            .unwrap()
            .0
    }

    /// Returns the names of the violations of the policy `none`.
    fn refused(children: &str) -> Vec<&'static str> {
        let none = ChildPolicy::parse("none").unwrap();
        let violations = none.violations(&plan(children));
        violations
            .into_iter()
            .map(|violation| violation.name)
            .collect()
    }

    const ROLE: &str =
        "roles: [{name: a, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}]";
    const BINDING: &str = "roleBindings: [{name: b, roleRef: {name: a}, subjects: [{kind: ServiceAccount, name: c}]}]";

    #[test]
    fn kinds_that_grant_power_are_sensitive_and_others_are_not() {
        assert_eq!(refused(&format!("{{{ROLE}}}")), ["Role"]);
        let custom = |group: &str, kind: &str| {
            format!("{{custom: [{{apiVersion: {group}/v1, kind: {kind}, metadata: {{name: a}}}}]}}")
        };
        assert_eq!(refused(&format!("{{{BINDING}}}")), ["RoleBinding"]);
        assert_eq!(
            refused(&custom("g.example", "Role")),
            <[&str; 0]>::default()
        );
        assert_eq!(
            refused(
                "{configMaps: [{name: a, data: {hostPath: x, privileged: 'true'}}], secrets: [{name: b, data: {k: v}}]}"
            ),
            <[&str; 0]>::default()
        );
    }

    #[test]
    fn fields_of_pods_are_sensitive_whatever_form_they_have() {
        let deployment =
            |more: &str| format!("{{deployments: [{{name: a, image: 'a:1', {more}}}]}}");
        let patched =
            |pod: &str| deployment(&format!("patch: {{spec: {{template: {{spec: {pod}}}}}}}"));
        let privileged = |value: &str| {
            patched(&format!(
                "{{containers: [{{name: a, securityContext: {{privileged: {value}}}}}]}}"
            ))
        };
        assert_eq!(refused(&deployment("replicas: 2")), <[&str; 0]>::default());
        assert_eq!(
            refused(&deployment("volumes: [{name: v, hostPath: {path: /etc}}]")),
            [HOST_PATH]
        );
        assert_eq!(refused(&privileged("true")), [PRIVILEGED]);
        assert_eq!(refused(&privileged("false")), <[&str; 0]>::default());
        // The author of a custom resource chooses the value, so it may be `true`.
        assert_eq!(refused(&privileged("'{{ .spec.p }}'")), [PRIVILEGED]);
        assert_eq!(refused(&patched("{hostNetwork: true}")), [HOST_NAMESPACES]);
        assert_eq!(
            refused(&patched("{volumes: '{{ .spec.volumes }}'}")),
            [HOST_PATH, TOKENS]
        );
    }

    #[test]
    fn a_replication_controller_has_pods_as_a_deployment_has() {
        let controller = "{apiVersion: v1, kind: ReplicationController, metadata: {name: a}, spec: {selector: {app: a}, template: \
                          {metadata: {labels: {app: a}}, spec: {hostPID: true, containers: [{name: a, image: 'a:1'}]}}}}";
        assert_eq!(
            refused(&format!("{{custom: [{controller}]}}")),
            [HOST_NAMESPACES]
        );
    }

    /// Adds to `found` the paths below `at` where a schema has a Pod spec.
    fn pod_specs<'s>(schema: Schema<'s>, at: &[&'s str], found: &mut BTreeSet<Vec<&'s str>>) {
        let fields: Vec<&str> = schema.fields().collect();
        if ["containers", "hostNetwork"]
            .iter()
            .all(|field| fields.contains(field))
        {
            found.insert(at.to_vec());
            return;
        }
        // The longest path is that of a CronJob. The depth is limited, since the schemas of definitions are recursive.
        if at.len() == 5 {
            return;
        }
        for field in fields {
            let NestedSchema::Schema(below) = schema.field(field) else {
                continue;
            };
            let at = [at, &[field]].concat();
            pod_specs(below, &at, found);
            if let NestedSchema::Schema(item) = below.item() {
                pod_specs(item, &[&at[..], &["*"]].concat(), found);
            }
        }
    }

    #[test]
    fn every_built_in_kind_with_the_spec_of_pods_is_covered() {
        let built_in = BuiltIn::new();
        let mut found = BTreeSet::new();
        for known in built_in.kinds() {
            let (group, kind) = (&*known.group, &*known.kind);
            let schema = built_in.kind(group, &known.version, kind).unwrap();
            let mut specs = BTreeSet::new();
            pod_specs(schema, &[], &mut specs);
            found.extend(specs.into_iter().map(|spec| (group, kind, spec)));
        }
        let covered = PODS.map(|(group, kind, spec)| (group, kind, spec.to_vec()));
        assert_eq!(found, BTreeSet::from(covered));
    }

    #[test]
    fn a_policy_names_what_it_permits() {
        let policy = ChildPolicy::parse("role, hostPath").unwrap();
        assert_eq!(policy, ChildPolicy::Only([HOST_PATH, "Role"].into()));
        let plan = plan(&format!("{{{ROLE}, {BINDING}}}"));
        let violations = policy.violations(&plan);
        let reported: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(
            reported,
            ["spec.crds.pond.operatorBox.onReconcile.roleBindings[0]: RoleBinding"]
        );
        assert_eq!(ChildPolicy::All.violations(&plan), []);
        assert_eq!(ChildPolicy::parse("all"), Ok(ChildPolicy::All));
        let error = ChildPolicy::parse("Rolle").unwrap_err().to_string();
        assert!(
            error
                .starts_with("`Rolle` is not the name of a sensitive child: expected one of Role,"),
            "{error}"
        );
    }
}
