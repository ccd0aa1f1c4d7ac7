//! `enrich`: data of related objects, added to children.

use std::sync::Arc;

use orkestra_engine::reconcile::{
    enrich::related_read,
    reason::Reason,
    related::{Related, RelatedBy, RelatedRead},
    sources::{Answer, Read},
};
use orkestra_language::enrich::{Addition, Relation};
use orkestra_object::value::Node;
use orkestra_plan::{ChildKey, GroupKind, ObjectKey, OperatorPlan, definitions::Schemas};
use serde_json::{Value, json};

use super::{
    operator::{of_document, pond},
    world::{World, key, rendered, words},
};

const KATALOG: &str = r#"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      namespaced: true
      enrich: ENRICH
      operatorBox:
        onReconcile:
          deployments: [{ name: web, image: "nginx:1" }]
          configMaps:
            - name: a
              data:
                ready: "{{ readyPodCount .children.deployment }}"
                names: '{{ range .children.deployment._pods }}{{ .name }} {{ end }}'
            - name: b
              onFalse: delete
              when: [{ field: '{{ hasCrashingPod .children.deployments.web }}', equals: true }]
"#;

fn operator(enrich: &str) -> Arc<OperatorPlan> {
    of_document(&KATALOG.replace("ENRICH", enrich), &Schemas::default())
}

/// Returns the read that a pass makes because `key` of this child is used.
fn read_for(world: &World, child: &ChildKey, key: &str) -> Option<Read> {
    let owner = (&GroupKind::parse("Pond.water.example"), &world.cr().id.key);
    let addition = Addition::find(key, &child.kind).unwrap();
    let observed = world.observe();
    let child = observed.children.iter().find(|one| one.key == *child)?;
    related_read(addition, owner, child).map(Read::Related)
}

fn pods(world: &World) -> Read {
    read_for(world, &key("Deployment.apps", "web"), "_pods").unwrap()
}

fn ready(list: &Value) -> Answer {
    Answer::Ready(Arc::new(Node::from(list)))
}

fn count(world: &World) -> Value {
    let cycle = world.decide();
    let object = &rendered(&cycle, &key("ConfigMap", "a")).object;
    let data = &object.to_json()["data"];
    let names = data["names"].as_str().unwrap_or_default();
    assert!(
        names.is_empty() || names == "x y " || names == "x ",
        "{names}"
    );
    data["ready"].clone()
}

#[test]
fn the_pods_of_a_workload_are_there_once_it_is() {
    let mut world = World::new(&operator("[pods]"), pond(&json!({}), &json!({})));
    assert_eq!(count(&world), "0");
    world.settle();
    let list =
        json!([{ "name": "x", "ready": true, "restartCount": 9 }, { "name": "y", "ready": false }]);
    let read = pods(&world);
    world.outside.insert(read, ready(&list));
    assert_eq!(count(&world), "1");
    assert!(words(&world.decide()).contains(&"apply ConfigMap east/b".to_owned()));
}

#[test]
fn nothing_is_added_that_is_not_declared_or_whose_gate_is_closed() {
    let gated = "[{ pods: { when: [{ field: spec.watched, equals: true }] } }]";
    for (enrich, watched, expected) in [("[]", true, "0"), (gated, false, "0"), (gated, true, "1")]
    {
        let spec = json!({ "watched": watched });
        let mut world = World::new(&operator(enrich), pond(&spec, &json!({})));
        world.settle();
        let read = pods(&world);
        world
            .outside
            .insert(read, ready(&json!([{ "name": "x", "ready": true }])));
        assert_eq!(count(&world), expected, "{enrich} {watched}");
    }
}

#[test]
fn pods_that_cannot_be_read_leave_their_readers_as_they_are() {
    let mut world = World::new(&operator("[pods]"), pond(&json!({}), &json!({})));
    world.settle();
    let read = pods(&world);
    let why = Answer::Unavailable("no right to list pods".into());
    world.outside.insert(read, why);
    let cycle = world.decide();
    assert_eq!(
        words(&cycle),
        [
            "keep ConfigMap east/a",
            "keep ConfigMap east/b",
            "apply Deployment.apps east/web",
        ]
    );
    assert!(
        cycle
            .failures
            .iter()
            .all(|failure| failure.reason == Reason::Unavailable)
    );
}

#[test]
fn only_what_templates_read_is_asked_for() {
    for enrich in ["[pods, replicasets, endpoints, events]", "[pod, ev]"] {
        let plan = operator(enrich);
        let read: Vec<_> = plan.relations().into_iter().collect();
        assert_eq!(read, [Relation::Pods], "{enrich}");
    }
}

/// Children with related objects, found by the children's fields and by their identity.
const STORE: &str = r#"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      namespaced: true
      ENRICH
      operatorBox:
        onReconcile:
          pods: [{ name: one, image: "nginx:1" }]
          persistentVolumeClaims: [{ name: data, storage: 1Gi }]
          hpa: [{ name: scale, scaleTargetRef: { name: web }, maxReplicas: 3 }]
          configMaps:
            - name: a
              data:
                zone: "{{ podNodeZone .children.pod }}"
                made: "{{ pvcProvisioner .children.persistentVolumeClaim }}"
                target: "{{ .children.horizontalPodAutoscaler._scaleTarget.name }}"
                warned: "{{ warningCount .children.pod }}"
"#;

fn data(world: &World) -> Value {
    let cycle = world.decide();
    rendered(&cycle, &key("ConfigMap", "a")).object.to_json()["data"].clone()
}

#[test]
fn an_object_that_a_field_of_a_child_names_is_asked_for_once_it_is_named() {
    let document = STORE.replace("ENRICH", "enrich: [node, pvc, hpa, warnings]");
    let plan = of_document(&document, &Schemas::default());
    let mut world = World::new(&plan, pond(&json!({}), &json!({})));
    world.settle();
    let (pod, claim) = (key("Pod", "one"), key("PersistentVolumeClaim", "data"));
    assert_eq!(read_for(&world, &pod, "_node"), None);
    let empty = json!({ "zone": "", "made": "", "target": "web", "warned": "0" });
    assert_eq!(data(&world), empty);

    let bind = |world: &mut World, child: &ChildKey, field: &str, name: &str| {
        let stored = world.objects.get_mut(child).unwrap();
        stored.update("kube", |leaves| {
            leaves.extend(super::leaves::leaves(&json!({ "spec": { field: name } })));
        });
    };
    bind(&mut world, &pod, "nodeName", "n1");
    bind(&mut world, &claim, "volumeName", "vol");
    let node = read_for(&world, &pod, "_node").unwrap();
    let cluster_wide = |name: &str| ObjectKey {
        namespace: None,
        name: name.into(),
    };
    let expected = RelatedRead {
        relation: Relation::Nodes,
        by: RelatedBy::Key(cluster_wide("n1")),
    };
    assert_eq!(node, Read::Related(expected));
    world
        .outside
        .insert(node, ready(&json!([{ "zone": "north-a" }])));
    let volume = read_for(&world, &claim, "_pv").unwrap();
    world
        .outside
        .insert(volume, ready(&json!([{ "provisioner": "maker" }])));
    let warnings = read_for(&world, &pod, "_warnings").unwrap();
    world
        .outside
        .insert(warnings, ready(&json!([{ "reason": "FailedMount" }])));
    let full = json!({ "zone": "north-a", "made": "maker", "target": "web", "warned": "1" });
    assert_eq!(data(&world), full);
}

#[test]
fn everything_is_added_but_what_is_excepted() {
    let all = of_document(
        &STORE.replace("ENRICH", "enrichAll: true"),
        &Schemas::default(),
    );
    let relations = [Relation::Warnings, Relation::Volumes, Relation::Nodes];
    assert_eq!(all.relations().into_iter().collect::<Vec<_>>(), relations);
    let document = STORE.replace("ENRICH", "enrichAll: { except: [node, warnings] }");
    let some = of_document(&document, &Schemas::default());
    let left = [Relation::Volumes];
    assert_eq!(some.relations().into_iter().collect::<Vec<_>>(), left);
}

/// An object of a relation, as a watch reports it, leads to the child that it is about.
#[test]
fn a_change_wakes_the_readers_of_that_child_and_of_no_other() {
    let document = STORE.replace("ENRICH", "enrichAll: true");
    let plan = of_document(&document, &Schemas::default());
    let mut world = World::new(&plan, pond(&json!({}), &json!({})));
    world.settle();
    let child = key("Pod", "one");
    let about = |uid: &str| {
        let object = json!({
            "metadata": { "name": "one.1", "namespace": "east", "uid": "e", "resourceVersion": "7" },
            "involvedObject": { "uid": uid }, "reason": "BackOff", "type": "Warning",
        });
        let kind = Relation::Warnings.objects().kind;
        let record = Related::read(&kind, &Node::from(&object)).unwrap();
        record.found_by(Relation::Warnings).map(Read::Related)
    };
    let uid = world.record_of(&child).id.uid;
    assert_eq!(
        about(&uid.to_string()),
        read_for(&world, &child, "_warnings")
    );
    assert_ne!(about("other"), read_for(&world, &child, "_warnings"));

    world.stored("Pod", "one").update("kube", |leaves| {
        leaves.extend(super::leaves::leaves(
            &json!({ "spec": { "nodeName": "n1" } }),
        ));
    });
    let node = |name: &str, beats: &str| {
        let object = json!({
            "metadata": { "name": name, "uid": name, "resourceVersion": beats, "labels": { "kubernetes.io/os": "linux" } },
            "status": { "conditions": [{ "type": "Ready", "lastHeartbeatTime": beats }] },
        });
        Related::read(&Relation::Nodes.objects().kind, &Node::from(&object)).unwrap()
    };
    let found = node("n1", "1").found_by(Relation::Nodes);
    assert_eq!(found.map(Read::Related), read_for(&world, &child, "_node"));
    // A change that no template can read is no change.
    assert!(!node("n1", "2").differs(&node("n1", "1")));
    assert!(node("n2", "1").differs(&node("n1", "1")));
}

#[test]
fn a_gate_that_asks_for_the_time_is_looked_at_again() {
    let plan = operator("[pods: { when: [{ time: { after: '02:00' } }] }]");
    let mut world = World::new(&plan, pond(&json!({}), &json!({})));
    world.settle();
    world.now = "2026-03-02T01:00:00Z".parse().unwrap();
    let wake = world.decide().wake;
    assert_eq!(wake, Some("2026-03-02T02:00:00Z".parse().unwrap()));
}
