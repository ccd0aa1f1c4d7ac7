//! Fields of other tools: Kubernetes' own manifests, Compose, kro, Crossplane.
//!
//! One file: one table of fields and their replacements.

use crate::api::shape::ObjectShape;

/// Fields that are unknown in their position, and the replacement.
struct Row {
    /// The names, compared without case.
    names: &'static [&'static str],
    /// One of our fields that only the relevant maps have.
    beside: &'static str,
    instead: Instead,
}

enum Instead {
    /// A literal hint.
    Hint(&'static str),
    /// The field in the spec of the Pod.
    PodPatch,
    /// The field in the container.
    ContainerPatch,
    /// The field in the spec of the object.
    SpecPatch,
    /// The field at the root of the object.
    RootPatch,
}

use Instead::{ContainerPatch, Hint, PodPatch, RootPatch, SpecPatch};

const fn row(names: &'static [&'static str], beside: &'static str, instead: Instead) -> Row {
    Row {
        names,
        beside,
        instead,
    }
}

/// The first matching row is used.
static TABLE: &[Row] = &[
    // Conditions, in the words of other languages.
    row(
        &["startsWith", "beginsWith", "starts_with"],
        "notEquals",
        Hint("write `prefix`"),
    ),
    row(
        &["endsWith", "ends_with"],
        "notEquals",
        Hint("write `suffix`"),
    ),
    row(
        &["greater", "moreThan", "above", "over"],
        "notEquals",
        Hint("write `greaterThan`"),
    ),
    row(
        &["less", "fewerThan", "below", "under", "lower"],
        "notEquals",
        Hint("write `lessThan`"),
    ),
    row(
        &["atLeast", "min", "minimum"],
        "notEquals",
        Hint("write `greaterThanOrEqual`"),
    ),
    row(
        &["atMost", "max", "maximum"],
        "notEquals",
        Hint("write `lessThanOrEqual`"),
    ),
    row(&["is", "eq"], "notEquals", Hint("write `equals`")),
    row(
        &["isNot", "not", "ne", "neq"],
        "notEquals",
        Hint("write `notEquals`"),
    ),
    row(
        &["match", "like", "pattern"],
        "notEquals",
        Hint("write `regex`"),
    ),
    // Pods.
    row(
        &[
            "priorityClassName",
            "hostNetwork",
            "hostPID",
            "hostIPC",
            "hostAliases",
            "hostname",
            "subdomain",
            "dnsPolicy",
            "dnsConfig",
            "schedulerName",
            "runtimeClassName",
            "terminationGracePeriodSeconds",
            "automountServiceAccountToken",
            "shareProcessNamespace",
            "enableServiceLinks",
            "nodeName",
            "readinessGates",
            "preemptionPolicy",
            "restartPolicy",
        ],
        "imagePullSecrets",
        PodPatch,
    ),
    row(
        &[
            "imagePullPolicy",
            "lifecycle",
            "stdin",
            "tty",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "volumeDevices",
            "resizePolicy",
        ],
        "imagePullSecrets",
        ContainerPatch,
    ),
    row(
        &[
            "minReadySeconds",
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
            "podManagementPolicy",
            "persistentVolumeClaimRetentionPolicy",
            "parallelism",
            "completions",
            "completionMode",
            "activeDeadlineSeconds",
            "ttlSecondsAfterFinished",
            "timeZone",
        ],
        "imagePullSecrets",
        SpecPatch,
    ),
    row(
        &["strategy", "updateStrategy", "rollingUpdateStrategy"],
        "rollingUpdate",
        Hint(
            "write `rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }`; another type goes under `patch`",
        ),
    ),
    row(
        &["ports", "containerPort", "containerPorts", "expose"],
        "probes",
        Hint(
            "write `port: 8080`, the container's port; declare the port that clients use in `services`",
        ),
    ),
    row(
        &["serviceAccount"],
        "serviceAccountName",
        Hint("write `serviceAccountName`"),
    ),
    row(
        &["workingDir"],
        "workingDirectory",
        Hint("write `workingDirectory`"),
    ),
    row(
        &["podSecurityContext"],
        "podSecurity",
        Hint("write `podSecurity`"),
    ),
    row(
        &["environment", "environmentVariables", "envVars"],
        "env",
        Hint("write `env`"),
    ),
    row(
        &["cpu", "memory"],
        "imagePullSecrets",
        Hint("write `resources: { requests: { cpu: 100m, memory: 64Mi } }`"),
    ),
    row(
        &["cpu", "memory", "ephemeral-storage"],
        "limits",
        Hint("write it under `requests` (what is reserved) or `limits` (what is never exceeded)"),
    ),
    row(
        &["selector"],
        "imagePullSecrets",
        Hint("remove it: the operator selects the pods by a label of its own"),
    ),
    row(
        &["template", "podTemplate"],
        "imagePullSecrets",
        Hint("write the fields of the pod and of its container here: `image`, `env`, `volumes`"),
    ),
    row(&["entrypoint"], "imagePullSecrets", Hint("write `command`")),
    row(&["cmd"], "imagePullSecrets", Hint("write `args`")),
    row(
        &["replicaCount", "instances", "scale"],
        "replicas",
        Hint("write `replicas`"),
    ),
    row(
        &["storage", "persistence", "volumeClaimTemplate"],
        "volumeClaimTemplates",
        Hint("write `volumeClaimTemplates: [{ storageSize: 1Gi, mountPath: /data }]`"),
    ),
    row(
        &["livenessProbe"],
        "probes",
        Hint("write `probes.liveness`"),
    ),
    row(
        &["readinessProbe"],
        "probes",
        Hint("write `probes.readiness`"),
    ),
    row(&["startupProbe"], "probes", Hint("write `probes.startup`")),
    row(
        &["httpGet"],
        "periodSeconds",
        Hint("write its `path` and `port` here"),
    ),
    row(
        &["tcpSocket"],
        "periodSeconds",
        Hint("write `type: tcp`, and its `port` here"),
    ),
    row(
        &["exec", "grpc"],
        "periodSeconds",
        Hint("probes here are `http` or `tcp`; another one goes under `patch` of the entry"),
    ),
    row(
        &["valueFrom"],
        "secretKeyRef",
        Hint("write its fields here, without it"),
    ),
    row(
        &["fieldRef", "resourceFieldRef"],
        "secretKeyRef",
        Hint("write `env` as a list, as in a Pod: `- name: …` with `valueFrom`"),
    ),
    // Services and Ingresses.
    row(
        &["clusterIP"],
        "headless",
        Hint("`clusterIP: None` is `headless: true`; an address goes under `patch`"),
    ),
    row(
        &["nodePort"],
        "headless",
        Hint("write it in an item of `ports`: `ports: [{ port: 80, nodePort: 30080 }]`"),
    ),
    row(
        &[
            "loadBalancerIP",
            "loadBalancerClass",
            "loadBalancerSourceRanges",
            "externalTrafficPolicy",
            "internalTrafficPolicy",
            "sessionAffinity",
            "externalIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "publishNotReadyAddresses",
        ],
        "headless",
        SpecPatch,
    ),
    row(
        &["ingressClassName", "ingressClass"],
        "serviceName",
        Hint("write `className`"),
    ),
    row(
        &["hosts"],
        "servicePort",
        Hint("write `host`; an Ingress here has one rule, and `forEach` creates several"),
    ),
    row(
        &["rules", "paths"],
        "servicePort",
        Hint("write `host`, `path`, `serviceName` and `servicePort` here"),
    ),
    row(
        &["backend", "service"],
        "servicePort",
        Hint("write `serviceName` and `servicePort`"),
    ),
    // ConfigMaps and Secrets.
    row(
        &["stringData"],
        "data",
        Hint("write `data`: values are encoded when the Secret is written"),
    ),
    row(&["immutable", "binaryData"], "data", RootPatch),
    // Conditions.
    row(
        &["path", "key", "jsonPath"],
        "notEquals",
        Hint("write `field`"),
    ),
    row(
        &["expression", "expr", "cel", "jq"],
        "notEquals",
        Hint("write `field` and an operator: `{ field: spec.tier, equals: gold }`"),
    ),
    row(&["is", "equal"], "notEquals", Hint("write `equals`")),
    row(
        &["not", "isNot", "notEqual"],
        "notEquals",
        Hint("write `notEquals`"),
    ),
    // Every child.
    row(
        &["metadata"],
        "adopt",
        Hint("write `name`, `namespace`, `labels` and `annotations` here"),
    ),
    row(
        &["spec"],
        "adopt",
        Hint("write its fields here; an object as in a manifest goes under `custom`"),
    ),
    row(
        &["apiVersion", "kind"],
        "adopt",
        Hint(
            "remove it, because the list determines the kind; an object as in a manifest goes under `custom`",
        ),
    ),
    row(
        &["if", "condition", "conditions", "includeWhen", "enabled"],
        "adopt",
        Hint("write `when`: a list such as `- { field: spec.backup, equals: true }`"),
    ),
    row(
        &[
            "for_each",
            "count",
            "loop",
            "with_items",
            "withItems",
            "range",
        ],
        "adopt",
        Hint("write `forEach: { field: spec.items }`"),
    ),
    row(
        &["readyWhen", "readinessChecks"],
        "adopt",
        Hint("write `readyWhen` under `status` of the operatorBox"),
    ),
    row(
        &["patches", "base", "connectionDetails"],
        "adopt",
        Hint(
            "write the object's fields here, with a template where the custom resource decides: `{{ .spec.size }}`",
        ),
    ),
    row(
        &["dependsOn", "depends_on"],
        "adopt",
        Hint(
            "children are created in an order of kinds; wait for another one with `when`: `- { field: children.job.status.succeeded, equals: 1 }`",
        ),
    ),
    // The operatorBox and the entry.
    row(
        &["resources", "children", "childResources", "templates"],
        "onReconcile",
        Hint(
            "declare children by kind under `onReconcile`: `deployments`, `services`, or `custom` for any kind",
        ),
    ),
    row(
        &["onUpdate", "onChange", "reconcileOn"],
        "onReconcile",
        Hint("write `onReconcile`, which runs for every change"),
    ),
    row(
        &["crd", "crds", "definition"],
        "apiTypes",
        Hint("write `crdFile: crd.yaml`"),
    ),
    row(
        &["openAPIV3Schema"],
        "apiTypes",
        Hint("write `schema: {openAPIV3Schema: …}`"),
    ),
];

/// The words of `operator` for fields of conditions that have a longer name.
const SHORT: [(&str, &str); 4] = [
    ("`greaterThanOrEqual`", "`gte`"),
    ("`lessThanOrEqual`", "`lte`"),
    ("`greaterThan`", "`gt`"),
    ("`lessThan`", "`lt`"),
];

/// Returns a hint for a word of other languages among the operators of conditions.
pub(crate) fn word(text: &str, known: &[String]) -> Option<String> {
    let is_operator = |word: &str| known.iter().any(|known| known == word);
    if !(is_operator("notEquals") && is_operator("gte")) {
        return None;
    }
    let field = SHORT
        .iter()
        .find(|(field, _)| field.trim_matches('`').eq_ignore_ascii_case(text));
    if let Some((_, short)) = field {
        return Some(format!("write {short}"));
    }
    let mut rows = TABLE.iter().filter(|row| row.beside == "notEquals");
    let row = rows.find(|row| row.names.iter().any(|name| name.eq_ignore_ascii_case(text)))?;
    let Hint(hint) = row.instead else {
        return None;
    };
    let short = SHORT.iter().find(|(field, _)| hint.contains(field));
    Some(short.map_or_else(
        || hint.to_owned(),
        |(field, short)| hint.replace(field, short),
    ))
}

/// Returns the replacement for the field `name` in the map `object`.
pub(crate) fn instead(name: &str, object: &ObjectShape) -> Option<String> {
    let is_named = |row: &&Row| {
        row.names
            .iter()
            .any(|theirs| theirs.eq_ignore_ascii_case(name))
    };
    let mut fitting = TABLE.iter().filter(is_named);
    let row = fitting.find(|row| object.fields.contains_key(row.beside))?;
    let field = row
        .names
        .iter()
        .find(|theirs| theirs.eq_ignore_ascii_case(name))?;
    let kind = object.name.as_str();
    Some(match row.instead {
        Hint(hint) => hint.to_owned(),
        RootPatch => patch(&[], &format!("{field}: …")),
        SpecPatch => patch(&["spec"], &format!("{field}: …")),
        PodPatch => patch(pod_spec(kind), &format!("{field}: …")),
        ContainerPatch => {
            let inside = format!("containers: [{{ name: …, {field}: … }}]");
            format!(
                "{}; the container has the name of the entry",
                patch(pod_spec(kind), &inside)
            )
        }
    })
}

/// Returns the path of the Pod spec in an object of a kind.
fn pod_spec(kind: &str) -> &'static [&'static str] {
    match kind {
        "Pod" => &["spec"],
        "CronJob" => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => &["spec", "template", "spec"],
    }
}

fn patch(path: &[&str], inside: &str) -> String {
    let within = |inside: String, step: &&str| format!("{{ {step}: {inside} }}");
    let whole = path.iter().rev().fold(format!("{{ {inside} }}"), within);
    format!("write it under `patch`: `patch: {whole}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_languages_become_operators() {
        let known = ["equals", "notEquals", "suffix", "gt", "gte", "lt", "lte"];
        let known: Vec<String> = known.map(str::to_owned).into();
        for (text, hint) in [
            ("endsWith", Some("write `suffix`")),
            ("greater", Some("write `gt`")),
            ("greaterThan", Some("write `gt`")),
            ("atLeast", Some("write `gte`")),
            ("moon", None),
        ] {
            assert_eq!(word(text, &known).as_deref(), hint, "{text}");
        }
        // Words of another field.
        assert_eq!(word("greater", &["Warning".to_owned()]), None);
    }
}
