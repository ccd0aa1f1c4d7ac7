//! The charts that `setup.helm` of a fetched document may name: those of servers, since it has no folder of its own on disk.

use super::authority::refused_address;
use orkestra_language::diagnostics::{Code, Diagnostic, FieldPath};
use orkestra_language::tree::{Tree, TreeValue};

/// Returns the problems of the charts of an entry at `at`. `fetched` returns the fetched document that a field comes from.
pub(crate) fn refused_charts<'f>(
    entry: &Tree,
    at: &FieldPath,
    fetched: impl Fn(&FieldPath) -> Option<&'f str>,
) -> Vec<Diagnostic> {
    let at = at.field("setup").field("helm");
    let charts = match entry.below(&["setup", "helm"]).map(|charts| &charts.value) {
        Some(TreeValue::List(charts)) => charts.as_slice(),
        _ => &[],
    };
    let text = |chart: &Tree, field: &str| {
        let text = chart.get(field).and_then(Tree::as_str);
        text.map(str::to_owned)
    };
    let mut problems = Vec::new();
    for (index, chart) in charts.iter().enumerate() {
        let at = at.index(index);
        let (repo, name) = (text(chart, "repo"), text(chart, "chart"));
        let (at, address) = match (repo, name) {
            (Some(repo), _) => (at.field("repo"), repo),
            (None, Some(name)) => (at.field("chart"), name),
            (None, None) => continue,
        };
        let Some(from) = fetched(&at) else {
            continue;
        };
        let message = if address.contains("://") {
            refused_address(from, &address)
        } else {
            Some(format!(
                "a fetched document cannot name a chart on disk: `{address}`"
            ))
        };
        problems.extend(message.map(|message| {
            Diagnostic::error(Code::Unreadable, at, message).hint(
                "name a chart of a repository or a registry, or declare it in your own document",
            )
        }));
    }
    problems
}
