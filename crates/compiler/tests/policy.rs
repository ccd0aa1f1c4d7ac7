//! What is sensitive, compared with the Pod Security profile `baseline`.
//!
//! One file: the table of the profile, and the objects that are made from its rows.

#![allow(clippy::unwrap_used, reason = "a failed expectation ends a test")]

use std::collections::BTreeSet;

use orkestra_compiler::{compile, scope::Library};
use orkestra_language::{
    document::read_stream,
    schema::{BuiltIn, NestedSchema, Schema},
};
use orkestra_plan::{
    KatalogRef, Plan,
    definitions::Schemas,
    policy::{ACCOUNT, ChildPolicy, HOST_PATH, POD_SECURITY, PODS, TOKENS},
};
use serde_json::{Value, json};

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
const BINDING: &str =
    "roleBindings: [{name: b, roleRef: {name: a}, subjects: [{kind: ServiceAccount, name: c}]}]";

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
    let deployment = |more: &str| format!("{{deployments: [{{name: a, image: 'a:1', {more}}}]}}");
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
    assert_eq!(refused(&privileged("true")), ["privileged"]);
    assert_eq!(refused(&privileged("false")), <[&str; 0]>::default());
    // The author of a custom resource chooses the value, so it may be `true`.
    assert_eq!(refused(&privileged("'{{ .spec.p }}'")), ["privileged"]);
    assert_eq!(refused(&patched("{hostNetwork: true}")), ["hostNamespaces"]);
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
        ["hostNamespaces"]
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
        error.starts_with("`Rolle` is not the name of a sensitive child: expected one of Role,"),
        "{error}"
    );
}

/// One control of the profile: its fields as the documentation writes them, with `containers` for each list of containers, the
/// permitted values beside absence, and some others.
type BaselineRow = (&'static str, &'static [&'static str], Value, Value);

/// The controls of the Pod Security profile `baseline`.
///
/// Source: Kubernetes 1.34, "Pod Security Standards", Baseline.
#[expect(
    clippy::too_many_lines,
    reason = "a table with one row for each control"
)]
// Over 60 lines: a table with one row for each control.
fn baseline() -> Vec<BaselineRow> {
    let unset = || json!([false]);
    vec![
        (
            "hostProcess",
            &[
                "spec.securityContext.windowsOptions.hostProcess",
                "spec.containers[*].securityContext.windowsOptions.hostProcess",
            ],
            unset(),
            json!([true]),
        ),
        (
            "hostNamespaces",
            &["spec.hostNetwork", "spec.hostPID", "spec.hostIPC"],
            unset(),
            json!([true]),
        ),
        (
            "privileged",
            &["spec.containers[*].securityContext.privileged"],
            unset(),
            json!([true]),
        ),
        (
            "capabilities",
            &["spec.containers[*].securityContext.capabilities.add[*]"],
            json!([
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
                "SYS_CHROOT"
            ]),
            json!(["SYS_ADMIN", "NET_ADMIN", "NET_RAW", "ALL"]),
        ),
        (
            "hostPath",
            &["spec.volumes[*].hostPath"],
            json!([]),
            json!([{ "path": "/" }]),
        ),
        (
            "hostPorts",
            &["spec.containers[*].ports[*].hostPort"],
            json!([0]),
            json!([80]),
        ),
        (
            "hostProbes",
            &[
                "spec.containers[*].livenessProbe.httpGet.host",
                "spec.containers[*].readinessProbe.httpGet.host",
                "spec.containers[*].startupProbe.httpGet.host",
                "spec.containers[*].livenessProbe.tcpSocket.host",
                "spec.containers[*].readinessProbe.tcpSocket.host",
                "spec.containers[*].startupProbe.tcpSocket.host",
                "spec.containers[*].lifecycle.postStart.tcpSocket.host",
                "spec.containers[*].lifecycle.preStop.tcpSocket.host",
                "spec.containers[*].lifecycle.postStart.httpGet.host",
                "spec.containers[*].lifecycle.preStop.httpGet.host",
            ],
            json!([""]),
            json!(["10.0.0.1"]),
        ),
        (
            "appArmor",
            &[
                "spec.securityContext.appArmorProfile.type",
                "spec.containers[*].securityContext.appArmorProfile.type",
            ],
            json!(["RuntimeDefault", "Localhost"]),
            json!(["Unconfined"]),
        ),
        (
            "appArmor",
            &["metadata.annotations.container=apparmor=security=beta=kubernetes=io/web"],
            json!(["runtime/default", "localhost/web"]),
            json!(["unconfined"]),
        ),
        (
            "seLinux",
            &[
                "spec.securityContext.seLinuxOptions.type",
                "spec.containers[*].securityContext.seLinuxOptions.type",
            ],
            json!([
                "",
                "container_t",
                "container_init_t",
                "container_kvm_t",
                "container_engine_t"
            ]),
            json!(["spc_t"]),
        ),
        (
            "seLinux",
            &[
                "spec.securityContext.seLinuxOptions.user",
                "spec.containers[*].securityContext.seLinuxOptions.user",
                "spec.securityContext.seLinuxOptions.role",
                "spec.containers[*].securityContext.seLinuxOptions.role",
            ],
            json!([""]),
            json!(["sysadm_u"]),
        ),
        (
            "procMount",
            &["spec.containers[*].securityContext.procMount"],
            json!(["Default"]),
            json!(["Unmasked"]),
        ),
        (
            "seccomp",
            &[
                "spec.securityContext.seccompProfile.type",
                "spec.containers[*].securityContext.seccompProfile.type",
            ],
            json!(["RuntimeDefault", "Localhost"]),
            json!(["Unconfined"]),
        ),
        (
            "sysctls",
            &["spec.securityContext.sysctls[*].name"],
            json!([
                "kernel.shm_rmid_forced",
                "net.ipv4.ip_local_port_range",
                "net.ipv4.ip_unprivileged_port_start",
                "net.ipv4.tcp_syncookies",
                "net.ipv4.ping_group_range",
                "net.ipv4.ip_local_reserved_ports",
                "net.ipv4.tcp_keepalive_time",
                "net.ipv4.tcp_fin_timeout",
                "net.ipv4.tcp_keepalive_intvl",
                "net.ipv4.tcp_keepalive_probes"
            ]),
            json!(["kernel.msgmax", "net.core.somaxconn"]),
        ),
    ]
}

/// Returns a value at a path: `a[*].b` is a list with one item.
fn at_path(path: &str, value: &Value) -> Value {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let below = if rest.is_empty() {
        value.clone()
    } else {
        at_path(rest, value)
    };
    match step.strip_suffix("[*]") {
        Some(list) => json!({ list: [below] }),
        None => json!({ step.replace('=', "."): below }),
    }
}

/// Returns the items of the list at a pointer; empty without one.
fn items<'v>(value: &'v mut Value, pointer: &str) -> impl Iterator<Item = &'v mut Value> {
    let list = value.pointer_mut(pointer).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

/// Adds the required fields to the template of a pod.
fn complete(template: &mut Value) {
    template["metadata"]["labels"] = json!({ "app": "a" });
    let spec = &mut template["spec"];
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{}]);
    }
    for volume in items(spec, "/volumes") {
        volume["name"] = json!("v");
    }
    for sysctl in items(spec, "/securityContext/sysctls") {
        sysctl["value"] = json!("1");
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items(spec, &format!("/{list}")) {
            container["name"] = json!(list.to_lowercase());
            container["image"] = json!("a:1");
            for port in items(container, "/ports") {
                port["containerPort"] = json!(80);
            }
            for probe in [
                "livenessProbe",
                "readinessProbe",
                "startupProbe",
                "lifecycle/postStart",
                "lifecycle/preStop",
            ] {
                for action in ["httpGet", "tcpSocket"] {
                    if let Some(action) = container.pointer_mut(&format!("/{probe}/{action}")) {
                        action["port"] = json!(80);
                    }
                }
            }
        }
    }
}

/// Returns the violations of a Deployment whose pods have the value.
fn with_field(path: &str, value: &Value) -> Vec<&'static str> {
    let mut template = at_path(path, value);
    complete(&mut template);
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" },
        "spec": { "selector": { "matchLabels": { "app": "a" } }, "template": template } });
    refused(&json!({ "custom": [deployment] }).to_string())
}

#[test]
fn every_control_of_the_profile_baseline_is_covered() {
    for (name, fields, permitted, others) in baseline() {
        for field in fields {
            for containers in ["containers", "initContainers", "ephemeralContainers"] {
                let field = field.replace("containers[*]", &format!("{containers}[*]"));
                for value in others.as_array().unwrap() {
                    assert_eq!(with_field(&field, value), [name], "{field}: {value}");
                }
                for value in permitted.as_array().unwrap() {
                    assert!(with_field(&field, value).is_empty(), "{field}: {value}");
                }
                let chosen = json!("{{ .spec.value }}");
                assert_eq!(with_field(&field, &chosen), [name], "{field} by a template");
            }
        }
        assert!(ChildPolicy::parse(name).is_ok(), "{name}");
    }
    assert!(with_field("spec.securityContext.runAsNonRoot", &json!(true)).is_empty());
}

#[test]
fn tokens_accounts_of_others_and_lowered_namespaces_are_sensitive() {
    let none = <[&str; 0]>::default();
    let secret = |kind: &str| format!("{{secrets: [{{name: a, type: {kind}, data: {{k: v}}}}]}}");
    assert_eq!(refused(&secret("Opaque")), none);
    for kind in [
        "kubernetes.io/service-account-token",
        "bootstrap.kubernetes.io/token",
        "'{{ .spec.type }}'",
    ] {
        assert_eq!(refused(&secret(kind)), [TOKENS], "{kind}");
    }
    let pods = |account: &str, more: &str| {
        format!("{{deployments: [{{name: a, image: 'a:1', serviceAccountName: {account}}}]{more}}}")
    };
    assert_eq!(refused(&pods("default", "")), none);
    assert_eq!(refused(&pods("admin", "")), [ACCOUNT]);
    assert_eq!(refused(&pods("'{{ .spec.account }}'", "")), [ACCOUNT]);
    let own = "'{{ .metadata.name }}-a'";
    let account = |more: &str| format!(", serviceAccounts: [{{name: {own}{more}}}]");
    assert_eq!(refused(&pods(own, &account(""))), none);
    assert_eq!(refused(&pods(own, &account(", namespace: far"))), [ACCOUNT]);
    let namespace = |labels: &str| format!("{{namespaces: [{{name: a, labels: {labels}}}]}}");
    let enforced =
        |level: &str| namespace(&format!("{{pod-security.kubernetes.io/enforce: {level}}}"));
    assert_eq!(refused(&namespace("{team: a}")), none);
    assert_eq!(refused(&enforced("restricted")), none);
    for level in ["privileged", "baseline", "'{{ .spec.level }}'"] {
        assert_eq!(refused(&enforced(level)), [POD_SECURITY], "{level}");
    }
    let volume = |source: &str| {
        let volume = format!(
            "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: a}}, spec: {{{source}}}}}"
        );
        refused(&format!("{{custom: [{volume}]}}"))
    };
    assert_eq!(volume("local: {path: /}"), [HOST_PATH]);
    assert_eq!(volume("nfs: {path: /, server: a}"), none);
}
