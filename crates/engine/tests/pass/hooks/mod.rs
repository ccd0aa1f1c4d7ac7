//! Hooks and constructors: what they are asked with, what of an answer is used, and what a pass does without one.

mod children;
mod metacontroller;

use orkestra_engine::reconcile::{emit::emitted, reason::Reason, step::Cycle, verdict::Executed};
use serde_json::{Value, json};

use crate::pass::{
    calls::{bad, decide, good},
    operator::{NAME, NAMESPACE, open_crd_status, operator, pond},
    world::{World, key, rendered, words},
};

pub(crate) const CONSTRUCTOR: &str = r#"
default: false
reconciler:
  constructor:
    http: { url: "http://hooks.shop/sync" }
    managedResources: [{ kind: ConfigMap }, { kind: Deployment }]
    args: { tier: "{{ .spec.tier }}", many: [1, "{{ .spec.replicas }}"] }
status:
  fields: [{ path: endpoint, value: "{{ .hook.constructor.endpoint }}" }]
"#;

pub(crate) fn shop() -> World {
    let spec = json!({ "tier": "gold", "replicas": 3 });
    World::new(&operator(CONSTRUCTOR), pond(&spec, &json!({})))
}

pub(crate) fn config(name: &str, text: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "text": text } })
}

/// Runs a pass in which every hook gives this answer. Returns the bodies of the requests, too.
pub(crate) fn answered(world: &World, answer: &Value) -> (Cycle, Vec<Value>) {
    let (cycle, asked) = decide(world, |_| good(200, &answer.to_string()));
    let bodies = asked
        .iter()
        .map(|request| serde_json::from_str(&request.body).unwrap());
    (cycle, bodies.collect())
}

pub(crate) fn status_of(world: &World, cycle: &mut Cycle) -> Value {
    let observed = world.observe();
    let mut executed = Executed {
        failures: std::mem::take(&mut cycle.failures),
        ..Executed::default()
    };
    let plan = &world.plan;
    let patch = orkestra_engine::reconcile::status::status(
        plan,
        &open_crd_status(),
        &observed,
        &cycle.sources,
        &mut executed,
        world.now,
    );
    patch.unwrap().body.to_json()["status"].clone()
}

#[test]
fn a_constructor_sees_the_resource_its_children_and_arguments_and_owns_what_it_returns() {
    let mut world = shop();
    let answer = json!({ "children": [config("first", "a"), config("second", "b")], "data": { "endpoint": "a:1" } });
    let (mut cycle, asked) = answered(&world, &answer);
    assert_eq!(
        words(&cycle),
        ["apply ConfigMap east/first", "apply ConfigMap east/second"]
    );
    let object = rendered(&cycle, &key("ConfigMap", "first"))
        .object
        .to_json();
    assert_eq!(object["data"], json!({ "text": "a" }));
    assert_eq!(object["metadata"]["namespace"], NAMESPACE);
    assert_eq!(object["metadata"]["ownerReferences"][0]["name"], NAME);
    assert_eq!(asked.len(), 1);
    let request = &asked[0];
    assert_eq!(
        (
            &request["apiVersion"],
            &request["hook"],
            &request["operation"]
        ),
        (
            &"hooks.orkestra.orkspace.io/v1".into(),
            &"constructor".into(),
            &"sync".into()
        )
    );
    assert_eq!(request["args"], json!({ "tier": "gold", "many": [1, 3] }));
    assert_eq!(request["object"]["spec"]["replicas"], 3);
    assert_eq!(request["object"]["kind"], "Pond");
    assert_eq!(request["object"]["metadata"].get("resourceVersion"), None);
    assert_eq!(
        request["children"],
        json!({ "ConfigMap.v1": {}, "Deployment.apps/v1": {} })
    );
    assert_eq!(status_of(&world, &mut cycle)["endpoint"], "a:1");

    world.execute(cycle, usize::MAX);
    let (cycle, asked) = answered(&world, &answer);
    let seen = &asked[0]["children"]["ConfigMap.v1"]["first"];
    assert_eq!(
        (&seen["data"]["text"], &seen["kind"]),
        (&"a".into(), &"ConfigMap".into())
    );
    assert!(
        world.execute(cycle, usize::MAX).written.is_empty(),
        "a steady state is written"
    );

    // What it no longer returns is pruned, and what it returns is repaired.
    let (cycle, _) = answered(&world, &json!({ "children": [config("second", "c")] }));
    assert_eq!(
        words(&cycle),
        ["apply ConfigMap east/second", "delete ConfigMap east/first"]
    );
}

#[test]
fn a_request_is_the_same_as_long_as_nothing_changes_that_the_hook_sees() {
    let mut world = shop();
    let answer = json!({ "children": [config("first", "a")] });
    let body = |world: &World| answered(world, &answer).1;
    let before = body(&world);
    world.cr["metadata"]["resourceVersion"] = json!("71");
    assert_eq!(body(&world), before);
    world.cr["spec"]["tier"] = json!("lead");
    assert_ne!(body(&world), before);
    let (_, asked) = decide(&world, |_| good(200, "{}"));
    assert!(asked[0].cache_for.is_some(), "the answer is not kept");
}

// Over 60 lines: a table.
#[test]
fn nothing_of_an_answer_is_used_before_all_of_it_is_valid() {
    let of = |children: Value| json!({ "children": children, "status": { "on": true } });
    let namespace = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "west" } });
    let cases = [
        (json!([]), "the answer is a list, not a JSON object"),
        (json!({ "childern": [] }), "unknown field `childern`"),
        (of(json!("none")), "`children` is text, not a list"),
        (
            of(json!({ "deploymentz": [] })),
            "`children`: deploymentz: unknown field",
        ),
        (
            of(json!({ "deployments": [{ "image": "web:1", "replicas": "many" }] })),
            "`children`: deployments[0].replicas: ",
        ),
        (
            of(json!({ "secrets": [{ "name": "a", "data": { "a": "b" } }] })),
            "`children[0]` is of kind `Secret.v1`",
        ),
        (
            of(
                json!([config("a", "b"), { "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } }]),
            ),
            "`children[1]` is of kind `Secret.v1`",
        ),
        (
            of(json!([{ "apiVersion": "v1", "kind": "ConfigMap" }])),
            "has no `metadata.name`",
        ),
        (of(json!([namespace])), "in another namespace"),
        (json!({ "status": [] }), "`status` is a list, not a map"),
        (
            json!({ "conditions": [{ "type": "Stalled", "status": "True" }] }),
            "`Stalled` is written by Orkestra itself",
        ),
        (
            json!({ "conditions": [{ "type": "On", "status": "Yes" }] }),
            "`conditions[0]` needs",
        ),
        (
            json!({ "events": [{ "reason": "two words", "message": "x" }] }),
            "`events[0]` needs",
        ),
        (json!({ "requeueAfter": "soon" }), "`requeueAfter`"),
        (
            json!({ "error": { "message": "no quota", "permanent": true } }),
            "failed: no quota",
        ),
    ];
    let mut world = shop();
    let (cycle, _) = answered(&world, &json!({ "children": [config("kept", "a")] }));
    world.execute(cycle, usize::MAX);
    for (answer, message) in cases {
        let (cycle, _) = answered(&world, &answer);
        assert!(cycle.intents.is_empty(), "{answer}: {:?}", words(&cycle));
        let [failure] = &cycle.failures[..] else {
            panic!("{answer}: {:?}", cycle.failures)
        };
        assert_eq!(failure.reason, Reason::HookRefused, "{answer}");
        assert!(
            failure.message.contains(message),
            "{answer}: {}",
            failure.message
        );
    }
}

#[test]
fn a_hook_that_fails_for_a_time_is_tried_again_and_keeps_everything() {
    let mut world = shop();
    let (cycle, _) = answered(&world, &json!({ "children": [config("kept", "a")] }));
    world.execute(cycle, usize::MAX);
    let refusals = [
        (bad(None, "unreachable", false), Reason::HookFailed),
        (bad(None, "not permitted", true), Reason::HookRefused),
        (good(200, "no JSON"), Reason::HookRefused),
        (good(200, r#"{"error": "later"}"#), Reason::HookFailed),
    ];
    for (answer, reason) in refusals {
        let (cycle, _) = decide(&world, |_| answer.clone());
        assert_eq!(
            (cycle.failures.len(), cycle.failures[0].reason),
            (1, reason)
        );
        assert!(cycle.intents.is_empty());
    }
    // Children that cannot be seen must not be taken for absent.
    world.unseen.insert(key("ConfigMap", "kept").kind);
    let (cycle, asked) = answered(&world, &json!({ "children": [] }));
    assert!(asked.is_empty() && cycle.intents.is_empty());
    assert_eq!(cycle.failures[0].reason, Reason::Unavailable);
}

const HYBRID: &str = r#"
onReconcile:
  configMaps: [{ name: own, data: { quota: "{{ .hook.quota.limit }}" } }]
hooks:
- name: quota
  http: { url: "http://hooks.shop/quota", headers: { x-tier: "{{ .spec.tier }}" } }
  when: [{ field: spec.tier, equals: gold }]
- name: audit
  at: after
  http: { url: "http://hooks.shop/audit" }
  managedResources: [{ kind: Secret }]
  args: { own: "{{ .children.configMap }}", limit: "{{ .hook.quota.limit }}" }
"#;

#[test]
fn hooks_before_give_data_to_templates_and_hooks_after_see_what_templates_made() {
    let mut world = World::new(
        &operator(HYBRID),
        pond(&json!({ "tier": "gold" }), &json!({})),
    );
    let answer = |name: &str| match name {
        "quota" => good(200, r#"{"data": {"limit": 7}}"#),
        _ => good(
            200,
            r#"{"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mark"}}]}"#,
        ),
    };
    let (cycle, asked) = decide(&world, |request| answer(&request.name));
    assert_eq!(
        asked.len(),
        1,
        "the hook after is called before the ConfigMap exists"
    );
    assert_eq!(asked[0].headers[..], [("x-tier".into(), "gold".into())]);
    assert_eq!(words(&cycle), ["apply ConfigMap east/own"]);
    assert_eq!(cycle.failures, []);
    world.execute(cycle, usize::MAX);
    let (cycle, asked) = decide(&world, |request| answer(&request.name));
    assert_eq!(asked.len(), 2);
    let body: Value = serde_json::from_str(&asked[1].body).unwrap();
    assert_eq!(body["args"]["limit"], 7);
    assert_eq!(body["args"]["own"]["data"]["quota"], "7");
    assert_eq!(
        words(&cycle),
        ["apply Secret east/mark", "apply ConfigMap east/own"]
    );
    world.execute(cycle, usize::MAX);

    // A child of the templates is gone: what the hook made stays until it is asked again.
    world.objects.remove(&key("ConfigMap", "own"));
    let (cycle, asked) = decide(&world, |request| answer(&request.name));
    assert_eq!(
        (asked.len(), words(&cycle)),
        (1, vec!["apply ConfigMap east/own".to_owned()])
    );
    world.execute(cycle, usize::MAX);

    // A closed gate: it is not called, and its data is missing.
    world.cr["spec"]["tier"] = json!("lead");
    let (cycle, asked) = decide(&world, |request| answer(&request.name));
    assert_eq!(
        asked.iter().map(|one| &*one.name).collect::<Vec<_>>(),
        ["audit"]
    );
    let own = rendered(&cycle, &key("ConfigMap", "own")).object.to_json();
    assert_eq!(own["data"]["quota"], "");
}

#[test]
fn an_answer_sets_status_conditions_events_and_the_next_pass() {
    let world = shop();
    let answer = json!({
        "status": { "phase": "Up", "size": { "now": 2 } },
        "conditions": [
            { "type": "Synced", "status": "True" },
            { "type": "Ready", "status": "False", "message": "no backend yet" },
        ],
        "events": [{ "type": "Warning", "reason": "Slow", "message": "the backend is slow" }],
        "requeueAfter": "90s",
    });
    let (mut cycle, _) = answered(&world, &answer);
    assert_eq!(cycle.requeue.unwrap().as_secs(), 90);
    let (observed, mut executed) = (world.observe(), Executed::default());
    let sources = cycle.sources.clone();
    let (sent, before) = emitted(
        &world.plan,
        (&observed, &sources),
        &mut executed,
        &<_>::default(),
        world.now,
    );
    assert_eq!(
        (sent.len(), sent[0].warns, &*sent[0].reason),
        (1, true, "Slow")
    );
    let (sent, _) = emitted(
        &world.plan,
        (&observed, &sources),
        &mut executed,
        &before,
        world.now,
    );
    assert!(sent.is_empty(), "an unchanged Event is sent again");
    let status = status_of(&world, &mut cycle);
    assert_eq!(
        (&status["phase"], &status["size"]["now"]),
        (&"Up".into(), &2.into())
    );
    let of = |name: &str| {
        let conditions = status["conditions"].as_array().unwrap();
        conditions
            .iter()
            .find(|one| one["type"] == name)
            .cloned()
            .unwrap()
    };
    assert_eq!(of("Synced")["status"], "True");
    assert_eq!(
        (&of("Ready")["status"], &of("Ready")["reason"]),
        (&"False".into(), &"ConditionsNotMet".into())
    );
    assert!(
        of("Ready")["message"]
            .as_str()
            .unwrap()
            .contains("no backend yet")
    );
}
