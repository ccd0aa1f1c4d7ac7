mod kubectl;

use jiff::Timestamp;

use super::{CallOutput, calls, check_resource, commands, gates, is_open, judge, read_e2e};
use orkestra_language::api::E2eSpec;
use orkestra_language::diagnostics::FieldPath;
use orkestra_language::document::{E2eDocument, parse_stream};
use orkestra_object::value::Node;

const HEAD: &str = "apiVersion: orkestra.orkspace.io/v1\nkind: E2E\nmetadata: { name: test }\n";

fn read(spec: &str) -> Result<E2eDocument, String> {
    let stream = parse_stream("e2e.yaml", &format!("{HEAD}{spec}"));
    assert!(stream.problems.is_empty(), "{}", stream.problems);
    match read_e2e(&stream.sources[0]) {
        Ok((document, warnings)) if warnings.is_empty() => Ok(document),
        Ok((_, warnings)) => Err(warnings
            .iter()
            .flat_map(|one| [one.to_string(), "\n".to_owned()])
            .collect()),
        Err(problems) => Err(problems.to_string()),
    }
}

/// Returns a spec with one expectation that has `body`.
fn expecting(body: &str) -> E2eSpec {
    let body = body.replace('\n', "\n      ");
    let spec =
        format!("spec:\n  katalog: k.yaml\n  cr: cr.yaml\n  expect:\n    - name: it\n      {body}");
    read(&spec).unwrap_or_else(|why| panic!("{why}")).spec
}

fn answer(output: &str) -> CallOutput {
    CallOutput {
        output: output.to_owned(),
        ..CallOutput::default()
    }
}

/// Returns the failures of a command with `assertions` for the output `answer`.
fn said(assertions: &str, answer: &CallOutput) -> Vec<String> {
    let spec = expecting(&format!("commands:\n  - run: x\n    {assertions}"));
    judge(
        &commands(&spec.expect[0].commands, &FieldPath::root())[0],
        answer,
    )
}

#[test]
fn each_assertion_holds_of_some_outputs_and_of_others_not() {
    for (assertion, holds, fails) in [
        ("equals: 3", "3\n", "4"),
        ("equals: two words", " two words ", "two"),
        ("notEquals: a", "b", "a"),
        ("oneOf: a, b", "b", "c"),
        ("oneOf: [a, 'b,c']", "b,c", "b"),
        ("notOneOf: a,b", "c", "b"),
        ("outputContains: 'a, b'", "x a, b", "x a b"),
        ("outputContains: [a, b]", "b a", "a"),
        ("outputNotContains: [a, b]", "c", "b"),
        ("regex: '^v[0-9]+$'", "v12", "v1x"),
        ("greaterThan: 2", "2.5", "2"),
        ("gt: 2", "3", "many"),
        ("greaterThanOrEqual: 2", "2", "1"),
        ("lessThan: 2", "-1", "2"),
        ("lessThanOrEqual: 2", "2", "2.01"),
        ("between: 1,5", "5", "6"),
        ("between: [1, 5]", "1", ""),
        ("notBetween: 1,5", "6", "3"),
        ("exists: true", "x", " \n"),
        ("exists: false", "", "x"),
        ("notExists: true", "", "x"),
        ("notExists: false", "x", ""),
    ] {
        let assertion = assertion.replace("gt:", "greaterThan:");
        assert_eq!(said(&assertion, &answer(holds)), [""; 0], "{assertion}");
        assert!(!said(&assertion, &answer(fails)).is_empty(), "{assertion}");
    }
}

#[test]
fn a_failure_shows_what_is_expected_and_what_was_seen() {
    assert_eq!(said("equals: a", &answer("b\nc\n")), ["- a", "+ b", "+ c"]);
    assert_eq!(
        said("greaterThan: 2", &answer("")),
        ["- a number > 2", "+ no output"]
    );
    let long = said("equals: a", &answer(&"\u{e4}".repeat(3000)));
    assert_eq!(long.last().unwrap(), "  and 4000 bytes more");
    let failed = CallOutput {
        exit_code: 2,
        error: "no such file".to_owned(),
        ..CallOutput::default()
    };
    let diff = said("equals: a", &failed);
    assert_eq!(diff, ["- exit code 0", "+ exit code 2", "+ no such file"]);
    assert_eq!(
        said("exitCode: 2\n    outputContains: no such", &failed),
        [""; 0]
    );
}

#[test]
fn values_of_secrets_are_not_shown() {
    for kind in ["Secret", "secrets", "secret/x", "SECRETS"] {
        let spec = expecting(&format!(
            "kubectl:\n  get:\n    - {{ kind: {kind}, field: data.a, equals: b }}"
        ));
        let block = spec.expect[0].kubectl.as_ref().unwrap();
        let diff = judge(&calls(block, &FieldPath::root())[0], &answer("hidden"));
        assert_eq!(diff, ["- b", "+ ***"], "{kind}");
    }
    let expected = "resources:\n  - kind: Secret\n    fields: { data.a: x }";
    let spec = expecting(expected);
    let secret = serde_json::json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "data": { "a": "hidden" } });
    let diff = check_resource(&spec.expect[0].resources[0], &[Node::from(&secret)]).join("\n");
    assert!(diff.contains("***") && !diff.contains("hidden"), "{diff}");
}

#[test]
fn objects_are_counted_and_compared() {
    let object = |name: &str, replicas: i64, ready: i64| {
        Node::from(&serde_json::json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": name, "namespace": "shop", "generation": 1 },
            "spec": { "replicas": replicas },
            "status": {
                "observedGeneration": 1, "replicas": ready, "updatedReplicas": ready, "readyReplicas": ready,
                "availableReplicas": ready, "conditions": [{ "type": "Available", "status": "True" }],
            },
        }))
    };
    let check = |body: &str, found: &[Node]| {
        let spec = expecting(&format!("resources:\n  - {{ kind: Deployment, {body} }}"));
        check_resource(&spec.expect[0].resources[0], found)
    };
    let (two, late) = (object("web", 2, 2), object("late", 2, 1));
    assert_eq!(
        check("name: web, ready: true", std::slice::from_ref(&two)),
        [""; 0]
    );
    assert_eq!(check("count: 0", &[]), [""; 0]);
    assert_eq!(
        check("name: web", &[]),
        ["- Deployment web: at least 1", "+ Deployment web: 0"]
    );
    assert_eq!(
        check("count: 0", std::slice::from_ref(&two)),
        [
            "- Deployment: 0",
            "+ Deployment: 1",
            "  Deployment shop/web"
        ]
    );
    assert_eq!(
        check("fields: { spec.replicas: 3 }", std::slice::from_ref(&two)),
        [
            "  Deployment shop/web",
            "- spec.replicas: 3",
            "+ spec.replicas: 2"
        ]
    );
    let diff = check("ready: true, count: 2", &[two, late]);
    assert_eq!(diff[..2], ["  Deployment shop/late", "- ready"]);
    assert!(diff[2].starts_with("+ not ready: "), "{diff:?}");
}

#[test]
fn conditions_read_the_custom_resource_and_the_notes_of_the_document() {
    let resource = Node::from(&serde_json::json!({ "spec": { "size": "small", "n": 3 } }));
    let now = Timestamp::UNIX_EPOCH;
    for (when, expected) in [
        ("when: [{ field: spec.size, equals: small }]", Ok(true)),
        ("when: [{ field: spec.size, equals: large }]", Ok(false)),
        (
            "or: [{ field: spec.size, equals: large }, { field: spec.n, greaterThan: 2 }]",
            Ok(true),
        ),
        ("when: [{ field: '{{ loud }}', equals: SMALL }]", Ok(true)),
        ("when: [{ field: status.ready, exists: true }]", Ok(false)),
        ("when: [{ time: { after: '01:00' } }]", Ok(false)),
        ("when: [{ field: spec.size, greaterThan: 2 }]", Err(())),
    ] {
        let spec = format!(
            "spec:\n  katalog: k.yaml\n  notes:\n    functions:\n      - {{ name: loud, expression: '{{{{ upper .spec.size }}}}' }}\n  expect:\n    - name: it\n      \
             {when}\n      commands: [{{ run: x }}]"
        );
        let spec = read(&spec).unwrap_or_else(|why| panic!("{why}")).spec;
        let (gates, problems) = gates(&spec);
        assert!(problems.is_empty(), "{problems}");
        assert_eq!(
            is_open(&gates[0], &resource, now).map_err(|_| ()),
            expected,
            "{when}"
        );
    }
}

#[test]
fn mistakes_are_found_with_their_places() {
    let one = |body: &str| format!("spec:\n  katalog: k\n  expect:\n    - name: a\n      {body}");
    for (spec, message) in [
        ("spec: { katalog: k }".to_owned(), "`expect` is missing"),
        ("spec: { expect: [{ name: a, commands: [{ run: x }] }] }".to_owned(), "`katalog` is missing"),
        ("spec: { katalog: k, custom: { target: kubernetes }, expect: [{ name: a, commands: [{ run: x }] }] }".to_owned(), "are mutually exclusive"),
        ("spec: { katalog: k, init: { pack: x }, expect: [{ name: a, commands: [{ run: x }] }] }".to_owned(), "packs are not supported"),
        ("spec: { katalog: k, expect: [{ commands: [{ run: x }] }] }".to_owned(), "`name` is missing"),
        ("spec: { katalog: k, expect: [{ include: x, name: a }] }".to_owned(), "`include` excludes all other fields"),
        ("spec: { katalog: k, setup: { wait: [{ kind: Pond, name: a }] }, expect: [{ include: x }] }".to_owned(), "its `apiVersion` is missing"),
        (one("after: never\n      commands: [{ run: x }]"), "`never`"),
        (one("after: cr-applied\n      commands: [{ run: x }]"), "no custom resource is applied"),
        (one("timeout: 5"), "has no unit"),
        (one("comands: [{ run: x }]"), "did you mean `commands`"),
        (one("commands: []"), "nothing is expected"),
        (one("commands: [{ run: '' }]"), "the value is empty"),
        (one("commands: [{ run: x, regex: '(' }]"), "not a regular expression"),
        (one("commands: [{ run: x, greaterThan: much }]"), "`much` is not a number"),
        (one("commands: [{ run: x, between: '5,1' }]"), "before it begins"),
        (one("commands: [{ run: x, between: 5 }]"), "expected two numbers"),
        (one("resources: [{ kind: Pod, count: 0, ready: true }]"), "nothing else can be expected"),
        (one("resources: [{ name: a }]"), "`kind` is missing"),
        (one("kubectl: { get: [{ name: a }] }"), "`kind` is missing"),
        (one("kubectl: { get: [{ kind: a, field: b, format: json }] }"), "are mutually exclusive"),
        (one("kubectl: { get: [{ kind: a, jq: b, yq: c }] }"), "`jq` and `yq` are mutually exclusive"),
        (one("kubectl: { logs: [{ name: a, labelSelector: b }] }"), "are mutually exclusive"),
        (one("kubectl: { exec: [{ name: a, command: [] }] }"), "the value is empty"),
        (one("kubectl: { apply: [{}] }"), "one of `file`, `inline` is missing"),
        (one("kubectl: { delete: [{ name: a }] }"), "`kind` is missing"),
        (one("kubectl: { portForward: [{ port: 80 }] }"), "is missing"),
        (one("kubectl: { portForward: [{ pod: a, port: 80, path: x }] }"), "begins with `/`"),
        (one("when: [{ equals: a }]\n      commands: [{ run: x }]"), "a condition needs a `field`"),
    ] {
        let problems = read(&spec).expect_err(&spec);
        assert!(problems.contains(message), "{spec}\n{message}\n{problems}");
        assert!(problems.contains("e2e.yaml:"), "{problems}");
    }
}

#[test]
fn old_spellings_load_with_a_warning() {
    for (spec, message) in [
        (
            "spec: { customOperator: true, expect: [{ name: a, commands: [{ run: x }] }] }",
            "custom: { target: kubernetes }",
        ),
        (
            "spec: { katalog: k, expect: [{ name: a, kubectl: { port-forward: [{ pod: a, port: 1 }] } }] }",
            "another spelling of `portForward`",
        ),
        (
            "spec: { katalog: k, expect: [{ name: a, anyOf: [{ field: spec.a, exists: true }], commands: [{ run: x }] }] }",
            "`anyOf`",
        ),
    ] {
        let warnings = read(spec).expect_err(spec);
        assert!(
            warnings.contains(message) && warnings.contains("warning"),
            "{warnings}"
        );
        let text = format!("{HEAD}{spec}\n");
        let converted = orkestra_language::document::convert("e2e.yaml", &text).unwrap();
        let today = converted.text.strip_prefix(HEAD).unwrap_or(&converted.text);
        read(today).unwrap_or_else(|why| panic!("{today}\n{why}"));
        assert_eq!(
            orkestra_language::document::convert("e2e.yaml", &converted.text)
                .unwrap()
                .text,
            converted.text
        );
    }
}

#[test]
fn a_suite_of_imports_needs_no_spec() {
    let document =
        read("imports: [a.yaml, { path: b.yaml, freshCluster: true, wait: 2s }]").unwrap();
    let imports = &document.spec.imports;
    assert_eq!(
        (imports[0].path(), imports[0].is_fresh()),
        ("a.yaml", false)
    );
    assert_eq!((imports[1].path(), imports[1].is_fresh()), ("b.yaml", true));
    assert_eq!(imports[1].wait().as_secs(), 2);
}
