//! Renders `config/monitoring/dashboard.json`, a Grafana dashboard with a panel for each metric of the tables.

use serde_json::{Value, json};

use super::{Metric, MetricKind, OPERATORS, PROCESS};

/// Width of the grid, of a panel, and height of a panel, in Grafana's units.
const GRID: usize = 24;
const WIDTH: usize = 12;
const HEIGHT: usize = 8;

/// The filter of an operator's series, by variables of the dashboard.
const OPERATOR: &str = r#"{namespace=~"$namespace",katalog=~"$katalog",crd=~"$crd"}"#;
/// The filter of a process' series.
const OF_PROCESS: &str = r#"{namespace=~"$namespace"}"#;

/// Returns the dashboard.
pub fn dashboard() -> Value {
    let mut panels = Vec::new();
    let mut y = 0;
    for (title, metrics) in [("Operators", OPERATORS), ("Processes", PROCESS)] {
        panels.push(json!({
            "type": "row", "title": title, "collapsed": false,
            "gridPos": { "h": 1, "w": GRID, "x": 0, "y": y },
        }));
        y += 1;
        // Build information has no course to plot.
        let plotted = metrics
            .iter()
            .filter(|metric| metric.name != "orkestra_build_info");
        for (index, metric) in plotted.clone().enumerate() {
            let per_row = GRID / WIDTH;
            let (x, row) = (index % per_row * WIDTH, index / per_row * HEIGHT);
            panels.push(panel(metric, x, y + row));
        }
        y += plotted.count().div_ceil(GRID / WIDTH) * HEIGHT;
    }
    for (id, panel) in panels.iter_mut().enumerate() {
        panel["id"] = (id + 1).into();
    }
    json!({
        "title": "Orkestra",
        "uid": "orkestra",
        "description": "Generated from the metrics of docs/reference/metrics.md.",
        "tags": ["kubernetes", "orkestra"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": { "from": "now-1h", "to": "now" },
        "templating": { "list": variables() },
        "panels": panels,
    })
}

fn variables() -> Value {
    let source = json!({
        "name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source",
    });
    let label = |name: &str, filter: &str| {
        json!({
            "name": name,
            "type": "query",
            "datasource": { "type": "prometheus", "uid": "${datasource}" },
            "query": format!("label_values({filter}, {name})"),
            "refresh": 2, "includeAll": true, "allValue": ".*", "multi": true, "sort": 1,
            "current": { "text": "All", "value": "$__all" },
        })
    };
    json!([
        source,
        label("namespace", "orkestra_build_info"),
        label("katalog", "orkestra_resource_count"),
        label("crd", r#"orkestra_resource_count{katalog=~"$katalog"}"#),
    ])
}

fn panel(metric: &Metric, x: usize, y: usize) -> Value {
    let (expression, legend) = query(metric);
    json!({
        "type": "timeseries",
        "title": metric.name,
        "description": metric.help,
        "gridPos": { "h": HEIGHT, "w": WIDTH, "x": x, "y": y },
        "datasource": { "type": "prometheus", "uid": "${datasource}" },
        "fieldConfig": { "defaults": { "unit": unit(metric), "min": 0 }, "overrides": [] },
        "targets": [{ "refId": "A", "expr": expression, "legendFormat": legend }],
    })
}

/// Returns the query of a metric, and the legend: counters as rates, histograms as their 99th percentile, by operator or by pod and
/// by the metric's own labels.
fn query(metric: &Metric) -> (String, String) {
    let (filter, base) = if metric.per_operator {
        (OPERATOR, ["katalog", "crd"].as_slice())
    } else {
        (OF_PROCESS, ["pod"].as_slice())
    };
    let own = metric.labels.iter().map(|(name, _)| *name);
    let labels: Vec<&str> = base.iter().copied().chain(own).collect();
    let (by, name) = (labels.join(", "), metric.name);
    let expression = match metric.kind {
        MetricKind::Counter => format!("sum by ({by}) (rate({name}{filter}[$__rate_interval]))"),
        MetricKind::Gauge => format!("sum by ({by}) ({name}{filter})"),
        MetricKind::Histogram => format!(
            "histogram_quantile(0.99, sum by (le, {by}) (rate({name}_bucket{filter}[$__rate_interval])))"
        ),
    };
    let legend = labels.iter().map(|label| format!("{{{{{label}}}}}"));
    (expression, legend.collect::<Vec<_>>().join(" "))
}

fn unit(metric: &Metric) -> &'static str {
    match metric.kind {
        MetricKind::Counter => "ops",
        _ if metric.name.ends_with("_seconds") => "s",
        _ if metric.name.ends_with("_bytes") => "bytes",
        _ => "short",
    }
}
