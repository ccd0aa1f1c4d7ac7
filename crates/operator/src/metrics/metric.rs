//! The description of a metric, and the page that lists all of them.

use std::fmt::{self, Write as _};

use super::{OPERATOR_LABELS, OPERATORS, PROCESS};

/// One metric, for the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The metric's name.
    pub name: &'static str,
    /// The metric's type.
    pub kind: MetricKind,
    /// Whether it has [`OPERATOR_LABELS`], before its own labels.
    pub per_operator: bool,
    /// Its own labels, with their possible values.
    pub labels: &'static [(&'static str, &'static [&'static str])],
    /// The help text.
    pub help: &'static str,
}

/// The type of a metric in Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Counts by size, and their sum.
    Histogram,
}

impl fmt::Display for MetricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

impl Metric {
    pub(crate) fn label_names(&self) -> Vec<&'static str> {
        let base: &[&'static str] = if self.per_operator {
            &OPERATOR_LABELS
        } else {
            &[]
        };
        base.iter()
            .copied()
            .chain(self.labels.iter().map(|(name, _)| *name))
            .collect()
    }

    /// Every combination of the values of its own labels.
    pub(crate) fn combinations(&self) -> Vec<Vec<&'static str>> {
        self.labels
            .iter()
            .fold(vec![Vec::new()], |rows, (_, values)| {
                rows.iter()
                    .flat_map(|row| {
                        values
                            .iter()
                            .map(move |value| [row.as_slice(), &[*value]].concat())
                    })
                    .collect()
            })
    }
}

/// Renders `docs/reference/metrics.md` from [`OPERATORS`] and [`PROCESS`].
pub fn markdown() -> String {
    let mut text = String::from(INTRODUCTION);
    for metric in OPERATORS.iter().chain(PROCESS) {
        let mut labels: Vec<String> = if metric.per_operator {
            vec!["*operator*".to_owned()]
        } else {
            Vec::new()
        };
        labels.extend(metric.labels.iter().map(|(name, values)| match *name {
            "version" => format!("`{name}`"),
            _ => format!("`{name}`: {}", values.join(", ")),
        }));
        let labels = if labels.is_empty() {
            "none".to_owned()
        } else {
            labels.join("; ")
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {labels} | {} |",
            metric.name, metric.kind, metric.help
        );
    }
    text
}

const INTRODUCTION: &str = "\
<!-- Generated from crates/operator/src/metrics/mod.rs: UPDATE=1 cargo test -p orkestra-operator --lib metrics -->
# Metrics

`GET /metrics` responds in Prometheus' text format. *operator* stands for the labels of every series of an operator:
`katalog` (`namespace/name`), `crd` (the entry in `spec.crds`), `group`, `version`, `kind`. The series of an operator
start at 0 when it starts, and are removed when it stops. On Linux, Prometheus' usual `process_*` metrics are exported too.

| name | type | labels | meaning |
| --- | --- | --- | --- |
";
