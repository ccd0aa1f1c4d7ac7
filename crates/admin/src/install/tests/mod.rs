//! The chart, its documents and the manifests in `config/`, compared with each other.

use std::{collections::BTreeMap, fs, path::Path};

use orkestra_charts::{Capabilities, read_values};
use orkestra_object::value::Node;
use serde_json::Value;

use super::{
    Inventory, MANAGER, ManifestObject, Manifests, ManifestsRequest, chart, image_values, render,
};
use crate::published;
use orkestra_testkit::assert_document;

mod config;
mod image;
mod reference;

const CHART: &str = "charts/orkestra";

fn request(values: &str) -> ManifestsRequest {
    ManifestsRequest {
        namespace: "orkestra-system".to_owned(),
        values: vec![
            image_values(published::NO_IMAGE).unwrap(),
            read_values(values).unwrap(),
        ],
        capabilities: Capabilities::default(),
    }
}

fn rendered(values: &str) -> Manifests {
    render(&request(values)).unwrap()
}

fn find<'m>(manifests: &'m Manifests, kind: &str, name: &str) -> &'m ManifestObject {
    let is = |object: &&ManifestObject| &*object.kind == kind && &*object.key.name == name;
    let found = manifests.objects.iter().find(is);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn json(object: &ManifestObject) -> Value {
    object.body.to_json()
}

#[test]
fn the_binary_contains_the_files_of_the_chart() {
    fn walk(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
            if path.is_dir() {
                walk(&path, &format!("{name}/"), files);
            } else {
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    for (name, text) in chart::generated().unwrap() {
        assert_document(&format!("{CHART}/{name}"), &text);
    }
    let mut found = BTreeMap::new();
    walk(&orkestra_testkit::root().join(CHART), "", &mut found);
    // Files that are not rendered: a page, a test hook, and the list of CRDs for kustomize.
    for beside in [
        "README.md",
        "templates/tests/version.yaml",
        "files/crds/Kustomization",
    ] {
        assert!(found.remove(beside).is_some(), "{beside}");
    }
    let mut held: BTreeMap<String, String> = chart::generated().unwrap().into_iter().collect();
    held.extend(chart::FILES.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        held.keys().collect::<Vec<_>>()
    );
    for (name, text) in found {
        assert!(held[&name] == text, "{name} differs");
    }
}

#[test]
fn the_version_of_the_chart_is_that_of_the_binary() {
    let text = fs::read_to_string(orkestra_testkit::root().join(CHART).join("Chart.yaml")).unwrap();
    let chart: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(chart["version"], orkestra_ground::VERSION);
    assert_eq!(chart["appVersion"], orkestra_ground::VERSION);
}

#[test]
fn every_value_has_a_comment_and_a_schema_and_the_page_lists_them() {
    let values =
        fs::read_to_string(orkestra_testkit::root().join(CHART).join("values.yaml")).unwrap();
    let schema = fs::read_to_string(
        orkestra_testkit::root()
            .join(CHART)
            .join("values.schema.json"),
    )
    .unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let rows = reference::rows(&values);
    for row in &rows {
        assert!(!row.description.is_empty(), "{} has no comment", row.path);
        assert!(
            reference::is_in(&schema, &row.path),
            "{} is not in the schema",
            row.path
        );
    }
    let mut listed: Vec<String> = rows.iter().map(|row| row.path.clone()).collect();
    listed.push("global".to_owned());
    for path in reference::paths(&schema) {
        let is_listed = listed
            .iter()
            .any(|one| *one == path || path.starts_with(&format!("{one}.")));
        assert!(is_listed, "{path} has no default");
    }
    assert_document(&format!("{CHART}/README.md"), &reference::page(&rows));
}

#[test]
fn values_that_the_chart_does_not_have_are_refused() {
    for (values, word) in [
        ("replica: 3", "replica"),
        ("replicas: many", "replicas"),
        ("image: {digest: latest}", "digest"),
        ("webhooks: {certificates: {source: magic}}", "source"),
        ("katalogs: [{name: a}]", "namespace"),
    ] {
        let error = render(&request(values)).unwrap_err();
        let text = format!("{error}");
        assert!(text.contains(word), "{values}: {text}");
    }
    let old = Capabilities {
        kube_version: "v1.29.4".to_owned(),
        ..Capabilities::default()
    };
    let error = render(&ManifestsRequest {
        capabilities: old,
        ..request("")
    })
    .unwrap_err();
    assert!(error.to_string().contains("1.30"), "{error}");
}

#[test]
fn arguments_of_set_are_paths_with_yaml_values() {
    let mut request = request("");
    for argument in [
        "replicas=3",
        "image.tag=1.2.0-rc.1",
        "podLabels.example\\.org/team=a",
        "namespaces=[a, b]",
        "log.filter=",
    ] {
        request.set(argument).unwrap();
    }
    let manifests = render(&request).unwrap();
    let deployment = json(find(&manifests, "Deployment", "orkestra"));
    let pod = &deployment["spec"]["template"];
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(pod["metadata"]["labels"]["example.org/team"], "a");
    let container = &pod["spec"]["containers"][0];
    assert!(
        container["image"]
            .as_str()
            .unwrap()
            .ends_with(":1.2.0-rc.1")
    );
    let arguments = container["args"].to_string();
    assert!(
        arguments.contains(r#""--namespace","a","--namespace","b""#),
        "{arguments}"
    );
    for argument in ["replicas", "=3", "a..b=1", "a=[1"] {
        assert!(request.set(argument).is_err(), "{argument}");
    }
}

#[test]
fn the_namespace_comes_first_then_the_inventory_of_everything_else() {
    let manifests = rendered("");
    let kinds: Vec<&str> = manifests
        .objects
        .iter()
        .map(|object| &*object.kind)
        .collect();
    assert_eq!(kinds[..3], ["Namespace", "Namespace", "ConfigMap"]);
    let at = |kind| kinds.iter().position(|one| *one == kind).unwrap();
    assert!(
        at("CustomResourceDefinition") < at("ClusterRole") && at("ClusterRole") < at("Deployment")
    );
    let inventory = Inventory::read(&manifests.objects[2].body).unwrap();
    let listed: Vec<String> = inventory
        .objects()
        .iter()
        .map(ToString::to_string)
        .collect();
    let others = manifests
        .objects
        .iter()
        .filter(|object| object.key.name.as_str() != super::INVENTORY);
    assert_eq!(listed, others.map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(MANAGER, "ork-install");
}

#[test]
fn inventories_are_joined_and_compared_without_regard_to_versions() {
    let read = |api_version: &str, name: &str| {
        let body = Node::object([
            ("apiVersion", api_version.into()),
            ("kind", "Pond".into()),
            ("metadata", Node::object([("name", name.into())])),
        ]);
        ManifestObject::read("pond.yaml", body).unwrap()
    };
    let before = Inventory::of(&[
        read("water.example/v1", "north"),
        read("water.example/v1", "south"),
    ]);
    let now = Inventory::of(&[read("water.example/v2", "north")]);
    assert_eq!(
        before.without(&now),
        Inventory::of(&[read("water.example/v1", "south")])
    );
    assert_eq!(now.with(&before).objects().len(), 2);
    assert_eq!(Inventory::read(&now.object("marsh").body), Some(now));
    let nameless = Node::object([("apiVersion", "v1".into()), ("kind", "Pond".into())]);
    assert!(ManifestObject::read("pond.yaml", nameless).is_err());
}

/// Returns the rules of the roles with this kind and name, in any namespace.
fn rules(objects: &[Value], kind: &str, name: &str) -> Vec<Value> {
    let is = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects
        .iter()
        .filter(is)
        .map(|object| object["rules"].clone())
        .collect()
}

#[test]
fn the_chart_grants_what_ork_generate_rbac_prints() {
    use orkestra_plan::rbac;

    for (values, namespaces) in [
        ("webhooks: {enabled: true}", vec![]),
        (
            "{namespaces: [a, b], webhooks: {enabled: true}}",
            vec!["a".into(), "b".into()],
        ),
    ] {
        let objects: Vec<Value> = rendered(values).objects.iter().map(json).collect();
        let mut printed = rbac::manifests(&[], &namespaces.into_iter().collect());
        printed.extend(rbac::roles_for_people());
        for manifest in &printed {
            let (kind, name) = (
                manifest["kind"].as_str().unwrap(),
                manifest["metadata"]["name"].as_str().unwrap(),
            );
            let same = |object: &&Value| {
                object["kind"] == kind
                    && object["metadata"]["name"] == name
                    && object["metadata"]["namespace"] == manifest["metadata"]["namespace"]
            };
            let found: Vec<&Value> = objects.iter().filter(same).collect();
            assert_eq!(found.len(), 1, "{kind} {name}");
            for field in ["rules", "subjects", "roleRef"] {
                assert_eq!(found[0][field], manifest[field], "{kind} {name}: {field}");
            }
        }
        assert_eq!(
            rules(&objects, "ClusterRole", "orkestra-metrics-reader").len(),
            1
        );
    }
}

/// Checklist S1: the permissions of the chart have no wildcard and no escalation.
#[test]
fn no_role_has_a_wildcard_or_can_escalate() {
    for object in rendered("namespaces: [a]")
        .objects
        .iter()
        .chain(&rendered("").objects)
        .map(json)
    {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let words = |field: &str| rule[field].as_array().cloned().unwrap_or_default();
            let name = &object["metadata"]["name"];
            for field in ["apiGroups", "resources", "verbs"] {
                assert!(
                    words(field).iter().all(|word| word != "*"),
                    "{name}: {rule}"
                );
            }
            for verb in ["escalate", "bind", "impersonate"] {
                assert!(
                    words("verbs").iter().all(|word| word != verb),
                    "{name}: {rule}"
                );
            }
            let is_definitions = words("resources")
                .iter()
                .any(|one| one == "customresourcedefinitions");
            assert!(
                !is_definitions || words("verbs").iter().all(|verb| verb != "delete"),
                "{name}: {rule}"
            );
        }
    }
}

#[test]
fn values_reach_the_objects() {
    let manifests = rendered(
        "replicas: 1\nimage: {digest: 'sha256:0000000000000000000000000000000000000000000000000000000000000000'}\n\
         http: {tlsSecret: web}\nexternal: {allow: [api.example.org], env: [TOKEN]}\nwebhooks: {enabled: true}\n\
         topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]\npriorityClassName: high\n\
         serviceMonitor: {enabled: true}\npodMonitor: {enabled: true}\nprometheus: {serviceAccount: {namespace: m, name: p}}\n\
         dashboards: {enabled: true}\nkatalogs: [{namespace: shop, name: web, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}], namespaceRules: \
         {shop: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}}]\n\
         extraObjects: ['{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}-extra, namespace: {{ .Release.Namespace }}}}']\n",
    );
    values_reach_the_deployment(&manifests);
    let service = json(find(&manifests, "Service", "orkestra"));
    assert_eq!(service["spec"]["ports"][1]["targetPort"], "webhooks");
    let policy = json(find(&manifests, "NetworkPolicy", "orkestra"));
    assert_eq!(policy["spec"]["ingress"][2]["ports"][0]["port"], 8443);
    for kind in ["ServiceMonitor", "PodMonitor"] {
        let endpoint = json(find(&manifests, kind, "orkestra"))["spec"].to_string();
        assert!(
            endpoint.contains("serverName") && endpoint.contains("https"),
            "{endpoint}"
        );
    }
    find(&manifests, "ClusterRoleBinding", "orkestra-metrics-reader");
    find(&manifests, "ClusterRole", "orkestra:shop:web");
    assert_eq!(
        find(&manifests, "Role", "orkestra:shop:web")
            .key
            .namespace
            .as_deref(),
        Some("shop")
    );
    find(&manifests, "ConfigMap", "orkestra-extra");
    let dashboards = json(find(&manifests, "ConfigMap", "orkestra-dashboards"));
    assert_eq!(dashboards["metadata"]["labels"]["grafana_dashboard"], "1");
    let dashboard = dashboards["data"]["orkestra.json"].as_str().unwrap();
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 10);
    definitions_can_be_unprotected_or_left_out();
}

/// Checks the Deployment of `values_reach_the_objects`, which has no disruption budget.
fn values_reach_the_deployment(manifests: &Manifests) {
    let deployment = json(find(manifests, "Deployment", "orkestra"));
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert!(container["image"].as_str().unwrap().contains("@sha256:"));
    for words in [
        "--tls-cert-file",
        "--external-allow\",\"api.example.org",
        "--external-env\",\"TOKEN",
    ] {
        assert!(container["args"].to_string().contains(words), "{words}");
    }
    assert_eq!(pod["priorityClassName"], "high");
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "web");
    let constraint = &pod["topologySpreadConstraints"][0];
    assert_eq!(constraint["labelSelector"], deployment["spec"]["selector"]);
    assert!(
        !manifests
            .objects
            .iter()
            .any(|object| &*object.kind == "PodDisruptionBudget"),
        "a budget for one replica"
    );
}

/// Checks that the values can let `helm` delete the CRDs, and can leave them out.
fn definitions_can_be_unprotected_or_left_out() {
    let definition = find(
        &rendered("crds: {keep: false}"),
        "CustomResourceDefinition",
        "katalogs.orkestra.orkspace.io",
    )
    .clone();
    assert_eq!(definition.annotation("helm.sh/resource-policy"), None);
    let without = rendered("crds: {install: false}");
    assert!(!without.objects.iter().any(ManifestObject::is_definition));
}
