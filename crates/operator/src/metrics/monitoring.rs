//! `config/monitoring`: every metric and label that the dashboard and the alerts name exists, and every alert is explained.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{MetricKind, OPERATORS, PROCESS, dashboard::dashboard};
use orkestra_testkit::assert_document;

/// Labels that a scrape adds.
const OF_SCRAPE: [&str; 4] = ["namespace", "pod", "job", "instance"];

/// Each series with its labels: histograms have three.
fn series() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut series = BTreeMap::new();
    for metric in OPERATORS.iter().chain(PROCESS) {
        let mut labels: BTreeSet<&str> = metric.label_names().into_iter().collect();
        labels.extend(OF_SCRAPE);
        if metric.kind == MetricKind::Histogram {
            for suffix in ["_sum", "_count"] {
                series.insert(format!("{}{suffix}", metric.name), labels.clone());
            }
            labels.insert("le");
            series.insert(format!("{}_bucket", metric.name), labels);
        } else {
            series.insert(metric.name.to_owned(), labels);
        }
    }
    series
}

/// The names that an expression uses: of series, and of labels in selectors and after `by`, `without` and `on`. Values in quotes
/// are left out.
fn names(expression: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut plain = String::new();
    for (index, part) in expression.split('"').enumerate() {
        plain.push_str(if index % 2 == 0 { part } else { "" });
    }
    let is_word = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let (mut metrics, mut labels) = (BTreeSet::new(), BTreeSet::new());
    for word in plain.split(|one: char| !is_word(one)) {
        if word.starts_with("orkestra_") {
            metrics.insert(word.to_owned());
        }
    }
    for (open, close) in [('{', '}'), ('(', ')')] {
        for (at, _) in plain.match_indices(open) {
            let before = plain[..at].trim_end();
            let is_list = ["by", "without", "on"]
                .iter()
                .any(|word| before.ends_with(word));
            let end = plain[at..].find(close).map_or(plain.len(), |end| at + end);
            let inner = &plain[at + 1..end];
            for part in inner.split(',').filter(|_| open == '{' || is_list) {
                let name: String = part
                    .trim()
                    .chars()
                    .take_while(|one| is_word(*one))
                    .collect();
                if !name.is_empty() {
                    labels.insert(name);
                }
            }
        }
    }
    (metrics, labels)
}

fn ensure_exist(expression: &str) {
    let known = series();
    let (metrics, labels) = names(expression);
    let mut allowed: BTreeSet<&str> = BTreeSet::new();
    for metric in &metrics {
        let of_metric = known.get(metric);
        allowed.extend(
            of_metric
                .unwrap_or_else(|| panic!("{metric} in {expression}"))
                .iter()
                .copied(),
        );
    }
    for label in &labels {
        assert!(allowed.contains(&**label), "{label} in {expression}");
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(orkestra_testkit::root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rules that alert: name and rule.
fn alerts() -> Vec<(String, Value)> {
    let rules: Value = serde_saphyr::from_str(&read("config/monitoring/alerts.yaml")).unwrap();
    let groups = rules["groups"].as_array().unwrap();
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap());
    rules
        .map(|rule| (rule["alert"].as_str().unwrap().to_owned(), rule.clone()))
        .collect()
}

#[test]
fn the_committed_dashboard_is_current() {
    let text = serde_json::to_string_pretty(&dashboard()).unwrap();
    assert_document("config/monitoring/dashboard.json", &(text + "\n"));
}

#[test]
fn the_dashboard_plots_every_metric_and_names_only_those_that_exist() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut plotted = BTreeSet::new();
    for panel in panels {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            ensure_exist(expression);
            plotted.insert(panel["title"].as_str().unwrap());
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        ensure_exist(variable["query"].as_str().unwrap());
    }
    let all = OPERATORS.iter().chain(PROCESS).map(|metric| metric.name);
    let missing: Vec<&str> = all.filter(|name| !plotted.contains(name)).collect();
    assert_eq!(missing, ["orkestra_build_info"]);
}

#[test]
fn alerts_name_metrics_and_labels_that_exist_and_each_is_explained() {
    let page = read("docs/operate/operations.md");
    let tests = read("config/monitoring/alerts_test.yaml");
    let alerts = alerts();
    assert!(alerts.len() > 10);
    for (name, rule) in &alerts {
        let expression = rule["expr"].as_str().unwrap();
        ensure_exist(expression);
        for annotation in ["summary", "description"] {
            let text = rule["annotations"][annotation].as_str().unwrap();
            let (_, labels) = names(expression);
            for part in text.split("$labels.").skip(1) {
                let label: String = part.chars().take_while(char::is_ascii_lowercase).collect();
                assert!(
                    labels.contains(&label),
                    "{name}: {label} is aggregated away"
                );
            }
        }
        // The documentation that the installed program carries: no address is needed to read it.
        let runbook = rule["annotations"]["runbook"].as_str().unwrap();
        assert_eq!(runbook, format!("ork explain {name}"));
        assert!(
            page.contains(&format!("\n### {name}\n")),
            "docs/operate/operations.md lacks {name}"
        );
        assert!(
            ["critical", "warning", "info"].contains(&rule["labels"]["severity"].as_str().unwrap()),
            "{name}"
        );
        assert!(
            tests.contains(&format!("alertname: {name}\n")),
            "{name} has no unit test"
        );
    }
    let explained = page
        .lines()
        .filter_map(|line| line.strip_prefix("### Orkestra"));
    assert_eq!(explained.count(), alerts.len());
}

#[test]
fn what_does_not_exist_is_noticed() {
    let (metrics, labels) =
        names(r#"sum by (crd, no) (rate(orkestra_no_total{katalog=~"x,y=",kind="k"}[5m])) > 0"#);
    assert_eq!(metrics, BTreeSet::from(["orkestra_no_total".to_owned()]));
    let expected = ["crd", "katalog", "kind", "no"].map(str::to_owned);
    assert_eq!(labels, BTreeSet::from(expected));
}
