//! The `kubectl` block: the calls that it makes, and the assertions on their output.

use super::{answer, expecting};
use crate::{Argument, CallAction, CallOutput, Filter, ProgramCall, calls, judge};
use orkestra_language::diagnostics::FieldPath;

/// Returns the calls of a `kubectl` block as command lines.
fn lines(block: &str) -> Vec<String> {
    let spec = expecting(&format!("kubectl:\n  {}", block.replace('\n', "\n  ")));
    let block = spec.expect[0].kubectl.as_ref().unwrap();
    let line = |call: &ProgramCall<'_>| {
        let words = match &call.action {
            CallAction::Kubectl(words, input) => {
                let input = input
                    .as_ref()
                    .map(|text| Argument::Text(format!("< {text}")));
                words.iter().cloned().chain(input).collect()
            }
            CallAction::Copy(words) => words.clone(),
            other => panic!("{other:?}"),
        };
        let words = words.iter().map(|word| match word {
            Argument::Text(text) => text.clone(),
            Argument::File(file) => format!("FILE({file})"),
            Argument::Pod(before, after) => format!("{before}POD{after}"),
            Argument::Scratch => "SCRATCH".to_owned(),
        });
        let once = if call.is_once { "once: " } else { "" };
        format!("{once}{}", words.collect::<Vec<_>>().join(" "))
    };
    calls(block, &FieldPath::root()).iter().map(line).collect()
}

#[test]
fn reads_are_command_lines_of_kubectl() {
    for (block, line) in [
        (
            "get:\n  - { kind: Website, name: a, field: .status.x }",
            "get Website a -o jsonpath={.status.x} --ignore-not-found",
        ),
        (
            "get:\n  - { kind: pods, labelSelector: app=a, namespace: b }",
            "get pods -l app=a -o json -n b",
        ),
        (
            "get:\n  - { kind: pods, field: '{.items[*].metadata.name}' }",
            "get pods -o jsonpath={.items[*].metadata.name}",
        ),
        (
            "get:\n  - { kind: pod, name: a, format: wide }",
            "get pod a -o wide --ignore-not-found",
        ),
        (
            "get:\n  - { kind: pod, name: a, yq: .kind }",
            "get pod a -o yaml --ignore-not-found",
        ),
        (
            "logs:\n  - { name: a, container: b, since: 5m }",
            "logs POD -c b --since 300s",
        ),
        (
            "logs:\n  - { labelSelector: app=a }",
            "logs -l app=a --tail=-1",
        ),
        (
            "describe:\n  - { kind: pod, name: a, namespace: b }",
            "describe pod -n b a",
        ),
        (
            "exec:\n  - { labelSelector: app=a, command: [cat, /x] }",
            "exec POD -- cat /x",
        ),
        (
            "events:\n  - { kind: Website, name: a }",
            "events --for Website/a",
        ),
        (
            "auth:\n  - { verb: get, resource: pods, as: bob }",
            "auth can-i get pods --as bob",
        ),
        (
            "cp:\n  - { name: a, src: /x, namespace: b }",
            "cp -n b POD:/x SCRATCH",
        ),
        ("top:\n  - { kind: node }", "top node"),
        (
            "top:\n  - { labelSelector: app=a, containers: true }",
            "top pod -l app=a --containers",
        ),
    ] {
        assert_eq!(lines(block), [line]);
    }
}

#[test]
fn writes_run_once_and_in_the_documented_order() {
    let block = "get:\n  - { kind: pods }\ndelete:\n  - { kind: Pod, name: a }\n  - { file: x.yaml, ignoreNotFound: true }\n  - leaderElection: { lease: l }\n\
                 scale:\n  - { name: web, replicas: 3 }\n  - { kind: ReplicaSet, name: rs, replicas: 0 }\n\
                 restart:\n  - { name: web, ready: false }\npatch:\n  - { kind: Website, name: a, patch: { spec: { x: 1 } } }\n\
                 apply:\n  - inline: { a: 1 }\n  - file: y.yaml\n";
    assert_eq!(
        lines(block),
        [
            "once: apply -f - < {\"a\":1}",
            "once: apply -f FILE(y.yaml)",
            "once: patch Website a --type merge -p {\"spec\":{\"x\":1}}",
            "once: rollout restart deployment/web",
            "once: scale deployment/web --replicas=3",
            "once: rollout status deployment/web --timeout=5s",
            "once: scale replicaset/rs --replicas=0",
            "once: wait replicaset/rs --for=jsonpath={.status.replicas}=0 --timeout=5s",
            "once: delete Pod a --wait=false",
            "once: delete -f FILE(x.yaml) --ignore-not-found --wait=false",
            "once: delete Pod POD --wait=false",
            "get pods -o json",
        ]
    );
}

#[test]
fn a_request_through_a_port_is_judged_by_its_status_and_its_body() {
    let spec = expecting(
        "kubectl:\n  portForward:\n    - { service: web, port: 80, path: /x, jq: .a, statusCode: 404 }\n    - { pod: p, port: 1 }",
    );
    let block = spec.expect[0].kubectl.as_ref().unwrap();
    let calls = calls(block, &FieldPath::root());
    assert_eq!(calls[0].title, "GET /x on port 80 of web");
    assert_eq!(calls[0].filter, Some(Filter::Json(".a".to_owned())));
    let with = |status| CallOutput {
        status: Some(status),
        ..answer("gone")
    };
    assert_eq!(judge(&calls[0], &with(404)), [""; 0]);
    assert_eq!(
        judge(&calls[0], &with(200))[..2],
        ["- HTTP status 404", "+ HTTP status 200"]
    );
    assert_eq!(judge(&calls[1], &with(302)), [""; 0]);
    let diff = judge(&calls[1], &with(500));
    assert_eq!(
        diff,
        ["- HTTP status below 400", "+ HTTP status 500", "+ gone"]
    );
}

#[test]
fn a_permission_that_is_missing_is_an_answer() {
    let spec = expecting("kubectl:\n  auth:\n    - { verb: get, resource: pods, equals: \"no\" }");
    let calls = calls(spec.expect[0].kubectl.as_ref().unwrap(), &FieldPath::root());
    let no = CallOutput {
        exit_code: 1,
        ..answer("no\n")
    };
    assert_eq!(judge(&calls[0], &no), [""; 0]);
    let broken = CallOutput {
        exit_code: 1,
        error: "no connection".to_owned(),
        ..CallOutput::default()
    };
    assert!(!judge(&calls[0], &broken).is_empty());
}
