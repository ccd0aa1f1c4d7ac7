//! Observed objects: the fields that are kept, the changes, the custom resource that a change leads to, and Events in templates.

use std::sync::Arc;

use orkestra_engine::reconcile::{
    observe::{Lead, ObservedRecord, happened, lead},
    reason::Reason,
    sources::{Answer, Read},
};
use orkestra_object::value::Node;
use orkestra_plan::{
    GroupKind, ObjectKey, OperatorPlan,
    observe::{Changes, event_kind},
};
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{World, key, rendered, words},
};

fn seen(object: &Value, plan: &OperatorPlan) -> ObservedRecord {
    let mut whole = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "namespace": "east", "uid": "u", "resourceVersion": "1" },
    });
    merge(&mut whole, object);
    let paths = match &*plan.observe.watches {
        [watch, ..] => watch.kept_paths(),
        [] => plan.observe.events[0].kept_paths(),
    };
    ObservedRecord::read(&Node::from(&whole), &paths).unwrap()
}

fn merge(into: &mut Value, from: &Value) {
    match from {
        Value::Object(fields) if into.is_object() => {
            for (key, value) in fields {
                merge(&mut into[key], value);
            }
        }
        other => *into = other.clone(),
    }
}

/// Returns the custom resource to which an object leads that is watched with this `keyFrom`.
fn leads(key_from: &str, object: &Value, namespaced: bool) -> Option<Lead> {
    let plan = operator(&format!(
        "observe: {{ watch: [{{ apiVersion: v1, kind: ConfigMap{key_from} }}] }}"
    ));
    let watch = &plan.observe.watches[0];
    let seen = seen(object, &plan);
    let now = jiff::Timestamp::UNIX_EPOCH;
    lead(&watch.key, &watch.kind, &seen, namespaced, now).unwrap()
}

fn named(namespace: Option<&str>, name: &str) -> Lead {
    Lead::Name(namespace.map(Into::into), name.into())
}

#[test]
fn without_more_an_object_leads_to_its_controller_or_to_whom_our_label_names() {
    let uid = |uid: &str| Some(Lead::Uid(uid.into()));
    let owners = json!([{ "uid": "x" }, { "uid": "c", "controller": true }]);
    let label = json!({ "orkestra.orkspace.io/owner-uid": "l" });
    let of = |metadata: Value| leads("", &json!({ "metadata": metadata }), true);
    assert_eq!(of(json!({})), None);
    assert_eq!(of(json!({ "ownerReferences": [{ "uid": "x" }] })), None);
    assert_eq!(of(json!({ "labels": label })), uid("l"));
    let both = json!({ "ownerReferences": owners, "labels": label });
    assert_eq!(of(both), uid("c"));
}

#[test]
fn a_label_names_a_custom_resource_beside_the_object() {
    let by = ", keyFrom: { label: example.org/pond }";
    let object = json!({ "metadata": { "labels": { "example.org/pond": "north" } } });
    assert_eq!(leads(by, &object, true), Some(named(Some("east"), "north")));
    assert_eq!(leads(by, &object, false), Some(named(None, "north")));
    assert_eq!(leads(by, &json!({}), true), None);
    // A cluster-scoped object leads to every custom resource with that name.
    let cluster = json!({ "metadata": { "namespace": "", "labels": { "example.org/pond": "n" } } });
    assert_eq!(leads(by, &cluster, true), Some(named(None, "n")));
}

#[test]
fn a_template_names_a_custom_resource_and_its_namespace() {
    let object = json!({ "data": { "pond": " north ", "where": "west" } });
    let by = r#", keyFrom: { name: "{{ .data.pond }}" }"#;
    assert_eq!(leads(by, &object, true), Some(named(Some("east"), "north")));
    assert_eq!(leads(by, &json!({}), true), None);
    let by = r#", keyFrom: { name: "{{ .data.pond }}", namespace: "{{ .data.where }}" }"#;
    assert_eq!(leads(by, &object, true), Some(named(Some("west"), "north")));
    assert_eq!(leads(by, &object, false), Some(named(None, "north")));
    // Fields that list responses omit are known.
    let by = r#", keyFrom: { name: "{{ .kind | lower }}-{{ .apiVersion }}", namespace: fixed }"#;
    assert_eq!(
        leads(by, &object, true),
        Some(named(Some("fixed"), "configmap-v1"))
    );
}

#[test]
fn a_template_that_fails_leads_nowhere_and_says_where_it_stands() {
    let plan = operator(
        r#"observe: { watch: [{ apiVersion: v1, kind: ConfigMap, keyFrom: { name: "{{ repeat .data.pond 999999999 }}" } }] }"#,
    );
    let watch = &plan.observe.watches[0];
    let seen = seen(&json!({ "data": { "pond": "north" } }), &plan);
    let found = lead(
        &watch.key,
        &watch.kind,
        &seen,
        true,
        jiff::Timestamp::UNIX_EPOCH,
    );
    let message = found.unwrap_err().to_string();
    let place = "spec.crds.pond.operatorBox.observe.watch[0].keyFrom.name: ";
    assert!(message.starts_with(place), "{message}");
}

#[test]
fn what_happened_is_reported_by_uid_and_content() {
    let plan = operator("observe: { watch: [{ apiVersion: v1, kind: ConfigMap }] }");
    let of = |object: Value| seen(&object, &plan);
    let none = Changes::default();
    let create = Changes {
        create: true,
        ..none
    };
    let update = Changes {
        update: true,
        ..none
    };
    let delete = Changes {
        delete: true,
        ..none
    };
    let first = of(json!({ "data": { "a": "1" } }));
    assert_eq!(happened(None, Some(&first)), create);
    assert_eq!(happened(Some(&first), None), delete);
    // The content has not changed.
    let again = of(json!({
        "data": { "a": "1" },
        "metadata": { "resourceVersion": "2", "managedFields": [{ "manager": "kubectl" }] },
    }));
    assert_eq!(happened(Some(&first), Some(&again)), none);
    let other = of(json!({ "data": { "a": "2" }, "metadata": { "resourceVersion": "3" } }));
    assert_eq!(happened(Some(&first), Some(&other)), update);
    let another = of(json!({ "data": { "a": "1" }, "metadata": { "uid": "v" } }));
    let both = Changes {
        create: true,
        delete: true,
        ..none
    };
    assert_eq!(happened(Some(&first), Some(&another)), both);
    for on in [create, delete] {
        assert!(on.meet(both) && !on.meet(update) && !on.meet(none));
    }
}

const EVENTS: &str = r#"
observe:
  events:
    trouble:
      type: Warning
      reason: "a=b,c"
      action: Binding
      namespace: west
      regarding: { kind: Pod, apiVersion: v1 }
      related: { kind: Node }
"#;

#[test]
fn a_filter_asks_for_all_of_it_and_the_api_server_for_what_it_can() {
    let plan = operator(EVENTS);
    let events = &plan.observe.events[0];
    let event = json!({
        "type": "Warning", "reason": "a=b,c", "action": "Binding",
        "regarding": { "kind": "Pod", "apiVersion": "v1" }, "related": { "kind": "Node" },
        "metadata": { "namespace": "west" },
    });
    assert!(events.admits(&seen(&event, &plan).view));
    for (field, other) in [
        ("type", json!("Normal")),
        ("action", json!("")),
        ("related", json!({ "kind": "Pod" })),
        ("metadata", json!({ "namespace": "east" })),
    ] {
        let mut event = event.clone();
        merge(&mut event[field], &other);
        assert!(!events.admits(&seen(&event, &plan).view), "{field}");
    }
    // Events that passes emit lead to no custom resource.
    let mut own = event.clone();
    own["reportingController"] = json!("orkestra");
    assert!(!events.admits(&seen(&own, &plan).view));
    let named = operator("observe: { events: { own: { reportingController: orkestra } } }");
    assert!(named.observe.events[0].admits(&seen(&own, &named).view));
    assert_eq!(events.namespace(), Some("west"));
    assert_eq!(
        events.field_selector().as_deref(),
        Some(r"reason=a\=b\,c,type=Warning,regarding.apiVersion=v1,regarding.kind=Pod")
    );
}

#[test]
fn an_event_leads_to_what_it_is_about() {
    let plan = operator(EVENTS);
    let events = &plan.observe.events[0];
    let event = json!({ "regarding": {
        "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "west", "name": "web",
    } });
    let seen = seen(&event, &plan);
    let found = lead(&events.key, &event_kind(), &seen, true, plan_time()).unwrap();
    let key = ObjectKey {
        namespace: Some("west".into()),
        name: "web".into(),
    };
    let about = Lead::About(GroupKind::parse("Deployment.apps"), key);
    assert_eq!(found, Some(about));
}

fn plan_time() -> jiff::Timestamp {
    jiff::Timestamp::UNIX_EPOCH
}

const READ: &str = r#"
observe:
  events:
    trouble: { type: Warning }
    unread: { reason: Other }
onReconcile:
  configMaps:
    - name: a
      data: { note: "{{ .events.trouble.note }}", kind: "{{ .events.trouble.kind }}" }
    - name: b
      onFalse: delete
      when: [{ field: events.trouble.reason, equals: Flood }]
"#;

fn trouble() -> Read {
    Read::Event("trouble".into())
}

#[test]
fn templates_and_conditions_see_the_latest_event_or_nothing() {
    let mut world = World::new(&operator(READ), pond(&json!({}), &json!({})));
    let data = |world: &World| {
        let cycle = world.decide();
        let object = &rendered(&cycle, &key("ConfigMap", "a")).object;
        object.get("data").map_or(Value::Null, Node::to_json)
    };
    assert_eq!(data(&world), json!({ "note": "", "kind": "" }));
    assert_eq!(words(&world.decide()), ["apply ConfigMap east/a"]);
    let event = json!({ "note": "wet", "reason": "Flood", "type": "Warning" });
    let event = Answer::Ready(Arc::new(Node::from(&event)));
    world.outside.insert(trouble(), event);
    assert_eq!(data(&world), json!({ "note": "wet", "kind": "Event" }));
    assert_eq!(
        words(&world.decide()),
        ["apply ConfigMap east/a", "apply ConfigMap east/b"]
    );
    // Events that no template reads are not read and not kept.
    let reads: Vec<String> = world.plan.observe.events[0]
        .reads
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(reads, ["kind", "note", "reason"]);
    assert!(world.plan.observe.events[1].reads.is_empty());
    let sources = world.decide().sources;
    assert!(sources.roots["events"].get("unread").is_none());
}

#[test]
fn events_that_cannot_be_read_leave_their_readers_as_they_are() {
    let mut world = World::new(&operator(READ), pond(&json!({}), &json!({})));
    let event = json!({ "note": "wet", "reason": "Flood" });
    let event = Answer::Ready(Arc::new(Node::from(&event)));
    world.outside.insert(trouble(), event);
    world.settle();
    let gone = Answer::Unavailable("no right to list events".into());
    world.outside.insert(trouble(), gone);
    let cycle = world.decide();
    assert_eq!(
        words(&cycle),
        ["keep ConfigMap east/a", "keep ConfigMap east/b"]
    );
    for failure in &cycle.failures {
        assert_eq!(failure.reason, Reason::Unavailable);
        assert!(failure.message.contains("no right to list events"));
    }
}

const WATCHED: &str = r#"
observe:
  watch:
    - { apiVersion: v1, kind: Pod, keyFrom: { label: example.org/pond } }
onReconcile:
  services:
    - { name: web, port: 80, selector: { app: web } }
  configMaps:
    - name: a
      data:
        first: "{{ .children.pod.metadata.name }} {{ .children.pod.status.phase }}"
        number: "{{ len .children.pods }}"
        family: "{{ .children.endpointslice.addressType }}"
"#;

#[test]
fn objects_that_are_only_observed_are_read_below_children() {
    let mut world = World::new(&operator(WATCHED), pond(&json!({}), &json!({})));
    let kinds: Vec<String> = (world.plan.observe.watches.iter())
        .map(|watch| watch.kind.group_kind().to_string())
        .collect();
    assert_eq!(kinds, ["Pod", "EndpointSlice.discovery.k8s.io"]);
    let data = |world: &World| {
        let cycle = world.decide();
        let object = &rendered(&cycle, &key("ConfigMap", "a")).object;
        object.get("data").map_or(Value::Null, Node::to_json)
    };
    let nothing = json!({ "first": " ", "number": "0", "family": "" });
    assert_eq!(data(&world), nothing);
    let pod = |phase: &str| json!({ "metadata": { "name": phase }, "status": { "phase": phase } });
    let pods = json!({ "a": pod("Running"), "b": pod("Pending") });
    let ready = |objects: &Value| Answer::Ready(Arc::new(Node::from(objects)));
    let read = |kind: &str| Read::Watched(GroupKind::parse(kind));
    world.outside.insert(read("Pod"), ready(&pods));
    let slices = json!({ "web-1": { "addressType": "IPv4" } });
    let slice = read("EndpointSlice.discovery.k8s.io");
    world.outside.insert(slice, ready(&slices));
    let all = json!({ "first": "Running Running", "number": "2", "family": "IPv4" });
    assert_eq!(data(&world), all);
    let gone = Answer::Unavailable("no permission to list pods".into());
    world.outside.insert(read("Pod"), gone);
    assert!(words(&world.decide()).contains(&"keep ConfigMap east/a".to_owned()));
}

#[test]
fn an_endpoint_slice_leads_to_the_owner_of_its_service() {
    let plan = operator(WATCHED);
    let slices = &plan.observe.watches[1];
    let object = json!({
        "metadata": { "name": "web-1", "namespace": "west", "uid": "u", "resourceVersion": "1",
            "labels": { "kubernetes.io/service-name": "web" } },
    });
    let seen = ObservedRecord::read(&Node::from(&object), &slices.kept_paths()).unwrap();
    let found = lead(&slices.key, &slices.kind, &seen, true, plan_time()).unwrap();
    let service = ObjectKey {
        namespace: Some("west".into()),
        name: "web".into(),
    };
    let about = Lead::About(GroupKind::parse("Service"), service);
    assert_eq!(found, Some(about));
}

#[test]
fn another_declaration_is_another_plan() {
    let hash = |text: &str| operator(text).hash.clone();
    let watch = |more: &str| {
        hash(&format!(
            "observe: {{ watch: [{{ apiVersion: v1, kind: ConfigMap{more} }}] }}"
        ))
    };
    let all = [
        hash("{}"),
        watch(""),
        watch(", on: [create]"),
        watch(", name: a"),
        watch(", keyFrom: { label: a }"),
        watch(", keyFrom: { name: a }"),
        hash(EVENTS),
    ];
    let different: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(different.len(), all.len());
    assert_eq!(
        watch(""),
        watch(", on: [delete, update, create], index: []")
    );
    // kubectl reads YAML 1.1 and sends `on` as `true`.
    assert_eq!(watch(", on: [create]"), watch(", \"true\": [create]"));
}
