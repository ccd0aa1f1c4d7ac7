use std::collections::BTreeSet;

use super::*;

#[test]
fn the_committed_table_of_metrics_is_current() {
    orkestra_testkit::assert_document("docs/reference/metrics.md", &markdown());
}

#[test]
fn every_metric_starts_with_our_prefix_and_has_help() {
    let mut names = BTreeSet::new();
    for metric in OPERATORS.iter().chain(PROCESS) {
        assert!(names.insert(metric.name), "{}", metric.name);
        assert!(metric.name.starts_with("orkestra_"), "{}", metric.name);
        // The names are stricter than those of Prometheus. The library checks only the names of the process's metrics.
        let is_plain = |word: &&str| {
            word.bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_lowercase())
        };
        let labels = metric.label_names();
        assert!(
            labels.iter().chain([&metric.name]).all(is_plain),
            "{}",
            metric.name
        );
        assert!(metric.help.ends_with('.'), "{}", metric.name);
        assert_eq!(
            metric.kind == MetricKind::Counter,
            metric.name.ends_with("_total"),
            "{}",
            metric.name
        );
    }
}
