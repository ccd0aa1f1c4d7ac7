//! The children that hooks return: where they are, what is taken of them, and how they can be written.

use orkestra_plan::rbac;
use serde_json::json;

use super::{CONSTRUCTOR, answered, config, shop};
use crate::pass::{
    operator::{cluster_operator, pond},
    server::{Operation, Stored},
    world::{World, key, rendered, words},
};

#[test]
fn children_of_a_cluster_scoped_resource_name_their_namespace() {
    let plan = cluster_operator(CONSTRUCTOR);
    let mut cr = pond(&json!({}), &json!({}));
    cr["metadata"].as_object_mut().unwrap().remove("namespace");
    let world = World::new(&plan, cr);
    let (cycle, _) = answered(&world, &json!({ "children": [config("a", "b")] }));
    assert!(
        cycle.failures[0]
            .message
            .contains("has no `metadata.namespace`"),
        "{:?}",
        cycle.failures
    );
    let mut elsewhere = config("a", "b");
    elsewhere["metadata"]["namespace"] = json!("west");
    let (cycle, _) = answered(&world, &json!({ "children": [elsewhere] }));
    assert_eq!(words(&cycle), ["apply ConfigMap west/a"]);
}

#[test]
fn marks_and_metadata_of_the_runtime_are_not_taken_from_an_answer() {
    let world = shop();
    let mut child = config("first", "a");
    child["metadata"]["uid"] = json!("x");
    child["metadata"]["ownerReferences"] = json!([{ "kind": "Other" }]);
    child["metadata"]["annotations"] = json!({ "orkestra.orkspace.io/applied": "x", "a": "b" });
    child["status"] = json!({ "phase": "x" });
    let (cycle, _) = answered(&world, &json!({ "children": [child] }));
    let object = rendered(&cycle, &key("ConfigMap", "first"))
        .object
        .to_json();
    assert_eq!(
        object["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        (object["metadata"].get("uid"), object.get("status")),
        (None, None)
    );
    assert_eq!(object["metadata"]["annotations"]["a"], "b");
    assert_ne!(
        object["metadata"]["annotations"]["orkestra.orkspace.io/applied"],
        "x"
    );
}

#[test]
fn permissions_follow_from_the_managed_kinds() {
    let permissions = rbac::of_operator(&shop().plan);
    let text = format!("{permissions:?}");
    assert!(
        text.contains("configmaps") && text.contains("deployments"),
        "{text}"
    );
}

/// An object of another owner is not shown to a hook, and not taken over.
#[test]
fn a_hook_sees_only_the_children_of_its_resource() {
    let mut world = shop();
    let other = config("other", "x");
    let stored = Stored::made(&other, "other", "kubectl", Operation::Update);
    world.objects.insert(key("ConfigMap", "other"), stored);
    let (_, asked) = answered(&world, &json!({}));
    assert_eq!(asked[0]["children"]["ConfigMap.v1"], json!({}));
}

/// The fifth level of the project's first documents: code of one's own, with the resources of the language.
#[test]
fn a_hook_returns_entries_of_the_language() {
    let mut world = shop();
    let answer = json!({ "children": {
        "deployments": [{ "name": "web", "image": "web:1", "replicas": 2, "port": 80, "env": { "MARK": "{{ .spec.tier }}" } }],
        "configMaps": [{ "data": { "a": 1 } }],
    } });
    let (cycle, _) = answered(&world, &answer);
    assert_eq!(cycle.failures, []);
    assert_eq!(
        words(&cycle),
        [
            "apply ConfigMap east/pond-config",
            "apply Deployment.apps east/web"
        ]
    );
    let web = rendered(&cycle, &key("Deployment.apps", "web"))
        .object
        .to_json();
    let container = &web["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &web["spec"]["replicas"]),
        (&"web:1".into(), &2.into())
    );
    assert_eq!(
        container["env"][0]["value"], "{{ .spec.tier }}",
        "an answer is no template"
    );
    world.execute(cycle, usize::MAX);
    let (cycle, _) = answered(&world, &answer);
    assert!(world.execute(cycle, usize::MAX).written.is_empty());
}
