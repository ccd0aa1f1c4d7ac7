//! The features in the language's founding documents. Each has a fixture here.

use std::fs;

use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics};
use orkestra_language::document::read_stream;

use super::{cases, inputs};

/// The samples of the seeds are refused only for features that are not supported yet, except for samples that are not valid YAML.
#[test]
fn samples_of_the_seeds_are_correct_as_printed() {
    let broken = ["seed-cross", "seed-lost-indentation", "seed-status"];
    for path in cases() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        if !name.starts_with("seed-") || broken.contains(&name) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let problems = match read_stream(name, &text) {
            Ok((_, warnings)) => Diagnostics(warnings),
            Err(problems) => problems,
        };
        let others = problems.iter().filter(|problem| {
            let is_later = problem.message.ends_with("is not supported yet");
            !(is_later && matches!(problem.code, Code::NotSupportedYet | Code::DocumentKind))
        });
        assert_eq!(others.count(), 0, "{problems}");
    }
}

/// The features in the language's founding documents, row by row: the file that uses the feature, and text of that file.
const ROWS: &[(u8, &str, &[&str])] = &[
    (1, "seed-website", &["kind: Katalog", "crds:"]),
    (
        2,
        "seed-files",
        &["crdFile:", "crFiles:", "setup:", "workers:"],
    ),
    (2, "seed-lost-indentation", &["crdFile:"]),
    (
        3,
        "seed-website",
        &["group:", "version:", "kind:", "plural:"],
    ),
    (3, "seed-files", &["crdFile:"]),
    (4, "seed-blockchain", &["workers:", "resync:"]),
    (4, "seed-files", &["workers: 3"]),
    (
        5,
        "seed-website",
        &["deployments:", "services:", "reconcile: true"],
    ),
    (
        6,
        "seed-conditional",
        &["onReconcile:", "equals", "notEquals"],
    ),
    (7, "seed-conditional", &["default: true"]),
    (8, "seed-status", &["status:", "path:", "value:"]),
    (9, "row-09-automatic", &["apiTypes:"]),
    (10, "seed-autoscale", &["cooldown:", "queueDepth"]),
    (11, "seed-rules", &["prefix:", "message:", "deny"]),
    (12, "seed-rules", &["mutateFirst", "default:"]),
    (13, "seed-conversion", &["storageVersion", "paths:"]),
    (14, "seed-normalize", &["normalize:", "cronFromAny"]),
    (15, "seed-cross", &["cross:", "selector:", "as:"]),
    (
        16,
        "seed-state-machine",
        &["notExists", "hasSuffix", "reconcile: false"],
    ),
    (
        17,
        "seed-environment",
        &["rotateAfter: 30d", "randomAlphanumeric", "configMaps:"],
    ),
    (
        18,
        "seed-environment",
        &["secretKeyRef", "configMapKeyRef", "envFrom"],
    ),
    (
        19,
        "seed-external",
        &["external:", "expectedStatus", "continueOnError", "timeout"],
    ),
    (
        20,
        "seed-komposer",
        &["registry:", "@v14", "files:", "workers: 8"],
    ),
    (20, "row-20-sources", &["redis:v7", "helm:", "git:"]),
    (21, "seed-providers", &["providers:", "s3", "mongodb"]),
    (
        22,
        "seed-security",
        &["deletionProtection", "namespaceProtection", "failurePolicy"],
    ),
    (
        23,
        "row-23-dependencies",
        &[
            "dependsOn: [database]",
            "dependsOn: {database: healthy}",
            "version: v2",
        ],
    ),
    (24, "row-24-command-line", &["crdFile:", "crFiles:"]),
    (25, "row-25-pages", &["endpoints:"]),
];

#[test]
fn every_row_of_the_founding_documents_has_a_file_here() {
    let rows: std::collections::BTreeSet<u8> = ROWS.iter().map(|(row, ..)| *row).collect();
    assert_eq!(rows, (1..=25).collect());
    for (row, name, words) in ROWS {
        let text = fs::read_to_string(inputs().join(format!("{name}.yaml")));
        let text = text.unwrap_or_else(|error| panic!("row {row}: {name}: {error}"));
        for word in *words {
            assert!(text.contains(word), "row {row}: {name} has no `{word}`");
        }
        if !name.starts_with("row-") {
            continue;
        }
        let problems = match read_stream(name, &text) {
            Ok((_, warnings)) => Diagnostics(warnings),
            Err(problems) => problems,
        };
        let is_later = |problem: &Diagnostic| problem.code == Code::DocumentKind;
        let wrong: Vec<_> = problems.iter().filter(|one| !is_later(one)).collect();
        assert!(wrong.is_empty(), "row {row}: {wrong:?}");
    }
}
