//! Shapes from other generations of the language. Each has a fixture that shows how it is read.

use std::fs;

use super::{inputs, outcome};

/// The result of reading a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// The document loads.
    Loads,
    /// The document loads. A warning names the current spelling, or the reason why the field has no effect.
    Warns,
    /// The document is refused, with a message about the field.
    Refused,
}
use Read::{Loads, Refused, Warns};

/// The shapes: the result, the fixture in `inputs/document`, text of the fixture, and text of its expected result.
const SHAPES: &[(Read, &str, &str, &str)] = &[
    // The grouped layout.
    (
        Warns,
        "grouped-layout",
        "observe:",
        "`observe.cross` is another spelling of `cross`",
    ),
    (
        Warns,
        "grouped-layout",
        "gate:",
        "`gate` is another spelling of `reconcileGate`",
    ),
    (
        Warns,
        "grouped-layout",
        "autoscale: {}",
        "`runtime.autoscale`",
    ),
    (
        Warns,
        "grouped-layout",
        "finalizers: []",
        "`runtime.finalizers`",
    ),
    (
        Warns,
        "grouped-layout",
        "allowedNamespaces: [east]",
        "runtime.allowedNamespaces",
    ),
    (
        Warns,
        "grouped-layout",
        "ignoreObservedGeneration: true",
        "`ignoreObservedGeneration` has no effect here",
    ),
    (Warns, "grouped-layout", "workers: 3", "`reconcile.workers`"),
    (
        Warns,
        "grouped-layout",
        "forceConflict: true",
        "reconcile.forceConflict",
    ),
    (
        Warns,
        "grouped-layout",
        "normalize:",
        "`reconcile.normalize`",
    ),
    (Warns, "grouped-layout", "onCreate:", "`reconcile.onCreate`"),
    (
        Warns,
        "grouped-layout",
        "admission:",
        "admission.validation",
    ),
    (
        Warns,
        "grouped-layout",
        "emit:",
        "`emit.status` is another spelling of `status`",
    ),
    (Loads, "grouped-events", "events:", "\"reason\": \"Done\""),
    (
        Loads,
        "grouped-events",
        "cleanup:",
        "\"deleteAfter\": \"24h\"",
    ),
    (
        Refused,
        "grouped-remote",
        "remote:",
        "`remote` is not supported",
    ),
    (
        Warns,
        "other-generations",
        "rollBackOnError: true",
        "`rollBackOnError` has no effect here",
    ),
    (
        Warns,
        "other-generations",
        "rollback:",
        "`rollback` has no effect here",
    ),
    (
        Warns,
        "other-generations",
        "sentinels:",
        "`sentinels` has no effect here",
    ),
    (
        Warns,
        "other-generations",
        "eventAware: true",
        "`eventAware` has no effect here",
    ),
    (
        Warns,
        "other-generations",
        "failPolicy: closed",
        "`failPolicy` has no effect here",
    ),
    (
        Warns,
        "other-generations",
        "policy:",
        "`policy` has no effect here",
    ),
    (
        Warns,
        "other-generations",
        "publish:",
        "`publish` has no effect here",
    ),
    (
        Warns,
        "other-generations",
        "crossAccess: true",
        "`crossAccess` has no effect here",
    ),
    (
        Loads,
        "other-generations",
        "crossAccess: false",
        "\"crossAccess\": false",
    ),
    (
        Loads,
        "other-generations",
        "endpoints: {health: true}",
        "\"health\": true",
    ),
    (Loads, "other-generations", "requeue:", "\"after\": \"5m\""),
    (Loads, "lifecycle", "lifecycle:", "use the other one"),
    (
        Warns,
        "other-generations",
        "deprecation:",
        "another spelling of `spec.lifecycle.deprecation`",
    ),
    // The earliest shapes.
    (
        Warns,
        "earliest-shapes",
        "orkestra.konductor.io/v1Alpha",
        "orkestra.konductor.io/v1Alpha",
    ),
    (
        Warns,
        "earliest-shapes",
        "- name: pond",
        "a list of operators is an old spelling",
    ),
    (
        Warns,
        "earliest-shapes",
        "reconciler:",
        "`reconciler.onCreate`",
    ),
    (Warns, "earliest-shapes", "crdFiles:", "crdFiles"),
    (
        Loads,
        "earliest-shapes",
        "setup: [namespace.yaml]",
        "namespace.yaml",
    ),
    (Loads, "earliest-shapes", "dependsOn: [lake]", "lake"),
    (
        Warns,
        "earliest-shapes",
        "labels: [{key: a, value: b}]",
        "write a map: `key: value`",
    ),
    (
        Warns,
        "earliest-shapes",
        "namespaced: false",
        "metadata.namespaced",
    ),
    (Loads, "earliest-shapes", "apiTypes: {kind: hpa}", "\"hpa\""),
    (
        Loads,
        "other-generations",
        "gracePeriodSeconds: 0",
        "\"gracePeriodSeconds\": 0",
    ),
    (
        Warns,
        "other-generations",
        "hasStatus: false",
        "`hasStatus` has no effect here",
    ),
    (
        Warns,
        "other-generations",
        "maxAttempts: 3",
        "`maxAttempts` has no effect here",
    ),
    (
        Warns,
        "operators-as-a-list",
        "- name:",
        "a list of operators is an old spelling",
    ),
    // Shapes that were decided later.
    (Loads, "new-shapes", "audit: true", "\"audit\": true"),
    (
        Loads,
        "new-shapes",
        "types: {depth: integer}",
        "\"integer\"",
    ),
    (
        Loads,
        "new-shapes",
        "expression:",
        "{{ .metadata.name }}.example",
    ),
    (
        Loads,
        "new-shapes",
        "apply: [namespace.yaml]",
        "namespace.yaml",
    ),
    (
        Loads,
        "grouped-layout",
        "operator: exists",
        "\"operator\": \"exists\"",
    ),
    (
        Warns,
        "other-generations",
        "sleep: 5s",
        "`sleep` has no effect here",
    ),
    (
        Warns,
        "other-generations",
        "removeFinalizers: true",
        "`removeFinalizers` has no effect here",
    ),
];

#[test]
fn every_shape_of_other_generations_is_read_as_its_fixture_says() {
    let mut wrong = Vec::new();
    for (read, fixture, shape, reported) in SHAPES {
        let text = fs::read_to_string(inputs().join(format!("{fixture}.yaml"))).unwrap();
        let got = outcome(fixture, &text);
        let is_refused = got.contains("error[");
        let mut check = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{fixture}: {shape}: {what}"));
            }
        };
        check(text.contains(shape), "the fixture lacks it");
        check(is_refused == (*read == Refused), "wrong kind of result");
        check(
            got.contains(reported),
            &format!("the outcome has no {reported:?}"),
        );
        check(
            *read != Warns || got.contains("warning["),
            "there is no warning",
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
