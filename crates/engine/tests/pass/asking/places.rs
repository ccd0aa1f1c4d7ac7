//! Calls in every place where they can be declared.

use orkestra_engine::reconcile::{
    reason::Reason,
    sources::{Answer, Read},
};
use orkestra_object::value::Node;
use serde_json::{Value, json};

use super::world;
use crate::pass::{
    calls::{bad, decide, good},
    world::{World, key},
};

#[test]
fn every_field_of_a_call_counts_in_every_place() {
    let call = "external: [{ name: c, url: 'https://c.example', method: PUT, body: '{{ .spec.on }}', timeout: 7s, cacheFor: 1m, \
                token: 't-{{ .spec.on }}', headers: { X-On: '{{ .spec.on }}' }, retryBackoff: { initial: 1s, maxAttempts: 4 }, \
                when: [{ field: spec.on, equals: 1 }], or: [{ field: spec.or, notEquals: 2 }] }]";
    for entry in [
        format!("mutation: {{ {call} }}"),
        format!("validation: {{ {call} }}"),
        format!("operatorBox: {{ preReconcile: {{ {call} }} }}"),
        format!("operatorBox: {{ preReconcile: {{ enqueueGate: {{ {call} }} }} }}"),
        format!("operatorBox: {{ preReconcile: {{ reconcileGate: {{ {call} }} }} }}"),
        format!("operatorBox: {{ {call} }}"),
        format!("operatorBox: {{ onCreate: {{ {call} }} }}"),
        format!("operatorBox: {{ onReconcile: {{ {call} }} }}"),
    ] {
        let made = |spec: Value| decide(&world(&entry, &spec), |_| good(200, "")).1;
        let asked = made(json!({ "on": 1 }));
        let [one] = &asked[..] else {
            panic!("{entry}: {asked:?}")
        };
        assert_eq!((one.method, &*one.body), ("PUT", "1"));
        assert_eq!(&*one.headers, [("X-On".into(), "1".into())]);
        assert_eq!((one.timeout.as_secs(), one.token.len()), (7, 1));
        assert_eq!((one.retry.attempts, one.retry.initial.as_secs()), (4, 1));
        assert_eq!(one.cache_for.map(|time| time.as_secs()), Some(60));
        assert!(made(json!({ "on": 2 })).is_empty(), "{entry}: `when`");
        assert!(
            made(json!({ "on": 1, "or": 2 })).is_empty(),
            "{entry}: `or`"
        );
    }
}

#[test]
fn a_token_of_a_secret_is_masked_in_every_place() {
    let call = "external: [{ name: c, url: 'https://c.example', auth: { secretRef: { name: shop, key: token } } }]";
    for entry in [
        format!("mutation: {{ {call} }}"),
        format!("validation: {{ {call} }}"),
        format!("operatorBox: {{ preReconcile: {{ enqueueGate: {{ {call} }} }} }}"),
    ] {
        let mut world = world(&entry, &json!({}));
        let (cycle, asked) = decide(&world, |_| good(200, ""));
        assert_eq!(asked.len(), 0);
        assert!(
            cycle.failures[0]
                .message
                .ends_with("Secret east/shop does not exist")
        );
        let secret = Node::from(&json!({ "data": { "token": "cGxhbnRlZAo=" } }));
        let read = Read::Object(key("Secret", "shop"));
        world.outside.insert(read, Answer::Ready(secret.into()));
        let (cycle, asked) = decide(&world, |_| bad(Some(403), "it answers with 403", false));
        assert_eq!(asked.len(), 1);
        let reported = format!("{:?} {asked:?}", cycle.failures);
        assert!(!reported.contains("planted"), "{reported}");
    }
}

#[test]
fn what_conditions_say_beside_their_answers_is_kept_wherever_they_stand() {
    let gate = "when: [{ time: { after: '02:00' } }, { field: spec.size, greaterThan: 1 }]";
    let call = format!("external: [{{ name: c, url: 'https://c.example', {gate} }}]");
    let fails = "external: [{ name: f, url: 'https://f.example' }]";
    for entry in [
        format!("mutation: {{ {call} }}"),
        format!("validation: {{ {call} }}"),
        format!("mutation: {{ rules: [{{ field: spec.a, default: 1, {gate} }}] }}"),
        format!("operatorBox: {{ {call} }}"),
        format!("operatorBox: {{ onReconcile: {{ {call} }} }}"),
        format!("operatorBox: {{ preReconcile: {{ {call} }} }}"),
        // The same holds for a pass that is held back or fails later.
        format!(
            "mutation: {{ rules: [{{ field: spec.a, default: 1, {gate} }}] }}\noperatorBox: {{ preReconcile: {{ reconcileGate: {{ when: [{{ field: spec.b, exists: true }}] }} }} }}"
        ),
        format!("validation: {{ {call} }}\noperatorBox: {{ {fails} }}"),
    ] {
        let mut world = world(&entry, &json!({ "size": "many" }));
        let doubts = |world: &World| {
            let (cycle, _) = decide(world, |_| bad(None, "it is down", false));
            let reasons: Vec<Reason> = cycle.doubts.iter().map(|doubt| doubt.reason).collect();
            (cycle.wake, reasons)
        };
        world.now = "2026-03-02T01:00:00Z".parse().unwrap();
        let turn = Some("2026-03-02T02:00:00Z".parse().unwrap());
        assert_eq!(doubts(&world), (turn, vec![]), "{entry}");
        world.now = "2026-03-02T03:00:00Z".parse().unwrap();
        let turn = Some("2026-03-03T00:00:00Z".parse().unwrap());
        assert_eq!(doubts(&world), (turn, vec![Reason::NotCompared]), "{entry}");
    }
}
