//! Calls to external services: they are made in order, later expressions read the responses, and a failure changes no child.

use orkestra_engine::reconcile::{
    calls::{CallAnswer, CallFailure, CallRequest},
    external::answered,
    reason::Reason,
    sources::{self, Read},
    step::{Cycle, StepResult, step},
    verdict::Executed,
};
use orkestra_object::value::Node;
use orkestra_plan::{KatalogRef, Plan, definitions::Schemas, rbac};
use orkestra_template::Entropy;
use serde_json::{Value, json};

use super::{
    operator::{of_document, open_crd_status, operator, pond},
    world::{World, key, rendered, words},
};

/// Runs a pass with a response for each call. Returns the calls, too.
pub(crate) fn decide(
    world: &World,
    answer: impl Fn(&CallRequest) -> sources::Answer,
) -> (Cycle, Vec<CallRequest>) {
    let (mut observed, mut asked) = (world.observe(), Vec::new());
    let entropy = Entropy::seeded([7; 32]);
    loop {
        let reads = match step(&world.plan, &world.scopes, &observed, world.now, &entropy) {
            StepResult::Done(cycle) => return (*cycle, asked),
            StepResult::Need(reads) => reads,
        };
        for read in reads {
            let reported = match &read {
                Read::Call(request) => {
                    asked.push(CallRequest::clone(request));
                    answer(request)
                }
                _ => world
                    .outside
                    .get(&read)
                    .cloned()
                    .unwrap_or(sources::Answer::Absent),
            };
            assert_eq!(observed.answers.insert(read, reported), None, "read twice");
        }
    }
}

pub(crate) fn good(status: u16, body: &str) -> sources::Answer {
    answered(&CallAnswer {
        status: Some(status),
        body: body.into(),
        error: None,
    })
}

pub(crate) fn bad(status: Option<u16>, message: &str, permanent: bool) -> sources::Answer {
    let message = message.into();
    answered(&CallAnswer {
        status,
        body: "body".into(),
        error: Some(CallFailure {
            message,
            permanent,
            retry_after: None,
        }),
    })
}

/// The example from the project's first documents.
const GATED: &str = r#"
onCreate:
  external:
    - name: healthCheck
      url: "{{ .spec.serviceUrl }}/health"
      method: GET
      expectedStatus: 200
      continueOnError: false
      timeout: 5s
    - name: featureFlags
      url: "{{ .spec.serviceUrl }}/flags/{{ .metadata.name }}"
      method: GET
      continueOnError: true
      timeout: 3s
  deployments:
    - name: "{{ .metadata.name }}"
      image: "{{ .spec.image }}"
      when:
        - field: external.healthCheck.status
          equals: "200"
      reconcile: true
  configMaps:
    - name: "{{ .metadata.name }}-flags"
      data:
        flags: "{{ .external.featureFlags.body }}"
      when:
        - field: external.featureFlags.called
          equals: "true"
        - field: external.featureFlags.error
          operator: notExists
      reconcile: true
"#;

fn gated() -> World {
    let spec = json!({ "serviceUrl": "https://shop.example", "image": "web:1" });
    World::new(&operator(GATED), pond(&spec, &json!({})))
}

#[test]
fn calls_are_made_in_order_and_children_see_their_answers() {
    let (cycle, asked) = decide(&gated(), |_| good(200, "[1]"));
    let urls: Vec<&str> = asked.iter().map(|request| &*request.url).collect();
    assert_eq!(
        urls,
        [
            "https://shop.example/health",
            "https://shop.example/flags/pond"
        ]
    );
    assert_eq!(
        (asked[0].timeout.as_secs(), asked[0].expected_status),
        (5, Some(200))
    );
    assert_eq!(
        (asked[1].timeout.as_secs(), asked[1].expected_status),
        (3, None)
    );
    assert_eq!(cycle.failures, []);
    assert_eq!(
        words(&cycle),
        [
            "apply ConfigMap east/pond-flags",
            "apply Deployment.apps east/pond"
        ]
    );
    let flags = &rendered(&cycle, &key("ConfigMap", "pond-flags")).object;
    assert_eq!(flags.to_json()["data"]["flags"], "[1]");
}

#[test]
fn a_failed_call_touches_no_child_and_makes_no_further_call() {
    let mut world = gated();
    for (permanent, reason) in [
        (false, Reason::ExternalCallFailed),
        (true, Reason::ExternalCallRefused),
    ] {
        let (cycle, asked) = decide(&world, |_| bad(Some(503), "it is down", permanent));
        assert_eq!(asked.len(), 1, "the second call must not be made");
        assert_eq!(
            (words(&cycle), &cycle.inventory),
            (vec![], &*world.cr().inventory)
        );
        let [failure] = &cycle.failures[..] else {
            panic!("{:?}", cycle.failures)
        };
        assert_eq!(failure.reason, reason);
        assert_eq!(failure.message, "the call `healthCheck` failed: it is down");
        assert!(
            failure.at.ends_with("operatorBox.onCreate.external[0]"),
            "{}",
            failure.at
        );
        world.remember("Deployment.apps,ConfigMap");
    }
}

#[test]
fn a_call_that_may_fail_shows_why_and_the_pass_continues() {
    let reported = |request: &CallRequest| match &*request.name {
        "healthCheck" => good(200, ""),
        _ => bad(None, "it is down", false),
    };
    let (cycle, _) = decide(&gated(), reported);
    assert_eq!(cycle.failures, []);
    assert_eq!(
        words(&cycle),
        [
            "keep ConfigMap east/pond-flags",
            "apply Deployment.apps east/pond"
        ]
    );
    let declared = "
onReconcile:
  external: [{ name: flags, url: 'https://shop.example', continueOnError: true }]
  configMaps: [{ name: a, data: { why: '{{ .external.flags.error }}', status: '{{ .external.flags.status }}' } }]";
    let world = World::new(&operator(declared), pond(&json!({}), &json!({})));
    let (cycle, _) = decide(&world, |_| bad(Some(503), "it is down", false));
    let data = rendered(&cycle, &key("ConfigMap", "a")).object.to_json()["data"].clone();
    assert_eq!(data, json!({ "why": "it is down", "status": "503" }));
}

#[test]
fn each_call_sees_the_answers_before_it_and_is_left_out_when_its_gate_is_closed() {
    let declared = r#"
external:
  - { name: first, url: "https://shop.example/first" }
onReconcile:
  external:
    - name: second
      url: 'https://shop.example/{{ .external.first.tier }}/{{ index .external.first.json "of" 1 }}'
      method: POST
      body: '{"was": "{{ .external.first.status }}"}'
      headers: { X-Tier: "{{ .external.first.tier }}" }
      token: "t-{{ .spec.token }}"
    - name: third
      url: "https://shop.example"
      when: [{ field: external.second.status, equals: "201" }]
  configMaps:
    - name: a
      data: { called: "{{ .external.second.called }} {{ .external.third.called }}", status: "<{{ .external.third.status }}>" }
"#;
    let spec = json!({ "token": "planted" });
    let world = World::new(&operator(declared), pond(&spec, &json!({})));
    let (cycle, asked) = decide(&world, |_| good(200, r#"{"tier": "gold", "of": [3, 4]}"#));
    assert_eq!(asked.len(), 2);
    let second = &asked[1];
    assert_eq!(
        (&*second.url, second.method),
        ("https://shop.example/gold/4", "POST")
    );
    assert_eq!(&*second.body, r#"{"was": "200"}"#);
    assert_eq!(&*second.headers, [("X-Tier".into(), "gold".into())]);
    assert_eq!(cycle.failures, []);
    let data = rendered(&cycle, &key("ConfigMap", "a")).object.to_json()["data"].clone();
    assert_eq!(data, json!({ "called": "true false", "status": "<>" }));
}

#[test]
fn a_token_comes_from_a_secret_that_the_katalog_names() {
    let declared = "
onReconcile:
  external:
    - { name: a, url: 'https://shop.example', auth: { secretRef: { name: shop, key: token } } }
  configMaps: [{ name: a }]";
    let plan = operator(declared);
    let mut world = World::new(&plan, pond(&json!({}), &json!({})));
    let (cycle, asked) = decide(&world, |_| good(200, ""));
    assert_eq!(
        (asked.len(), cycle.failures[0].reason),
        (0, Reason::ExternalCallFailed)
    );
    assert!(
        cycle.failures[0]
            .message
            .contains("Secret east/shop does not exist")
    );
    let mut secret = |data: Value| {
        let found = Node::from(&json!({ "data": data }));
        let read = Read::Object(key("Secret", "shop"));
        world
            .outside
            .insert(read, sources::Answer::Ready(found.into()));
        decide(&world, |_| good(200, ""))
    };
    let (cycle, _) = secret(json!({ "other": "eA==" }));
    assert!(
        cycle.failures[0]
            .message
            .ends_with("Secret east/shop has no text under `token`")
    );
    let (cycle, asked) = secret(json!({ "token": "cGxhbnRlZAo=" }));
    assert_eq!((cycle.failures, asked[0].token.len()), (vec![], 1));
    let rights = rbac::rules(&Plan {
        katalog: KatalogRef::new("default".into(), "waters".into()),
        operators: vec![plan],
        stopped: Vec::new(),
        deletion_policy: orkestra_language::api::DeletionPolicy::default(),
        security: orkestra_plan::SecurityPlan::default(),
        conversions: Box::default(),
        definitions: Box::default(),
    });
    let secrets = rights
        .iter()
        .find(|rule| rule.resources == ["secrets"])
        .unwrap();
    assert_eq!(secrets.verbs, ["get", "list", "watch"]);
}

#[test]
fn a_motif_has_calls_of_its_own_with_its_inputs() {
    let text = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      imports:
        - { motif: probe, with: { host: north, was: '{{ .external.check.status }}' } }
        - { motif: probe, with: { host: south } }
      operatorBox:
        external: [{ name: check, url: 'https://own.example' }]
        onReconcile: { configMaps: [{ name: own, data: { saw: '{{ .external.check.body }}' } }] }
---
apiVersion: orkestra.orkspace.io/v1
kind: Motif
metadata: { name: probe }
inputs: [{ name: host }, { name: was, default: none }]
resources:
  external: [{ name: check, url: 'https://{{ .inputs.host }}.example/{{ .inputs.was }}' }]
  configMaps: [{ name: '{{ .inputs.host }}', data: { saw: '{{ .external.check.body }}' } }]
";
    let plan = of_document(text, &Schemas::default());
    let world = World::new(&plan, pond(&json!({}), &json!({})));
    let (cycle, asked) = decide(&world, |request| good(200, &request.url));
    assert_eq!((cycle.failures.len(), asked.len()), (0, 3));
    for (name, saw) in [
        ("own", "https://own.example"),
        ("north", "https://north.example/200"),
        ("south", "https://south.example/none"),
    ] {
        let object = rendered(&cycle, &key("ConfigMap", name)).object.to_json();
        assert_eq!(object["data"]["saw"], saw);
    }
}

#[test]
fn the_status_shows_what_was_answered_also_after_a_pass_that_failed() {
    let declared = "
onReconcile:
  external: [{ name: health, url: 'https://shop.example' }]
status:
  fields:
    - { path: health, value: '{{ .external.health.status }}', when: [{ field: external.health.called, equals: 'true' }] }";
    let world = World::new(&operator(declared), pond(&json!({}), &json!({})));
    let (cycle, _) = decide(&world, |_| bad(Some(503), "it is down", false));
    let mut executed = Executed {
        failures: cycle.failures,
        ..Executed::default()
    };
    let observed = world.observe();
    let crd_status = open_crd_status();
    let patch = orkestra_engine::reconcile::status::status(
        &world.plan,
        &crd_status,
        &observed,
        &cycle.sources,
        &mut executed,
        world.now,
    );
    let status = patch.unwrap().body.to_json()["status"].clone();
    assert_eq!(status["health"], "503");
    assert_eq!(status["conditions"][0]["reason"], "ExternalCallFailed");
}
