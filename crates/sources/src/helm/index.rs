//! The index of a chart repository.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::version;

/// The most versions of one chart that are read.
const MOST_VERSIONS: usize = 20_000;

/// A version of a chart.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ChartVersion {
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) urls: Vec<String>,
    /// The SHA-256 digest of the packed chart, in hexadecimal digits.
    #[serde(default)]
    pub(crate) digest: Option<String>,
    #[serde(default)]
    removed: bool,
}

/// The charts of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RepositoryIndex(BTreeMap<String, Vec<ChartVersion>>);

#[derive(Deserialize)]
struct IndexFile {
    #[serde(default)]
    entries: Option<BTreeMap<String, Option<Vec<ChartVersion>>>>,
}

impl RepositoryIndex {
    /// Parses `index.yaml`.
    ///
    /// Source: helm's documentation, "The Chart Repository Guide".
    ///
    /// # Errors
    /// A sentence with the reason.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        let file: IndexFile = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| error.to_string())?
        } else {
            let options = serde_saphyr::options! {
                with_snippet: false,
                duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
                budget: serde_saphyr::budget! {
                    max_depth: 32,
                    max_events: 6_000_000,
                    max_nodes: 3_000_000,
                    max_total_scalar_bytes: 64 << 20,
                    max_reader_input_bytes: Some(64 << 20),
                    enforce_alias_anchor_ratio: false,
                },
                alias_limits: serde_saphyr::alias_limits! {
                    max_total_replayed_events: 100_000,
                    max_replay_stack_depth: 16,
                },
            };
            serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?
        };
        let entries = file.entries.ok_or_else(|| {
            "it has no `entries`: it is not the index of a chart repository".to_owned()
        })?;
        let mut charts = BTreeMap::new();
        for (name, versions) in entries {
            let mut versions = versions.unwrap_or_default();
            if versions.len() > MOST_VERSIONS {
                return Err(format!(
                    "the chart {name} has more than {MOST_VERSIONS} versions"
                ));
            }
            versions.retain(|listed| !listed.removed && !listed.urls.is_empty());
            charts.insert(name, versions);
        }
        Ok(Self(charts))
    }

    /// Returns the version of a chart that a range selects.
    ///
    /// # Errors
    /// A sentence with the reason.
    pub(crate) fn select(&self, chart: &str, wanted: &str) -> Result<&ChartVersion, String> {
        let versions = self
            .0
            .get(chart)
            .ok_or_else(|| format!("the repository has no chart `{chart}`"))?;
        let place = version::select(wanted, versions.iter().map(|listed| &*listed.version));
        let place = place.map_err(|why| format!("the chart `{chart}`: {why}"))?;
        versions
            .get(place)
            .ok_or_else(|| format!("the chart `{chart}` has no version"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_of_helm_is_read_and_other_documents_are_refused() {
        let index = "apiVersion: v1\nentries:\n  pond:\n  - version: 1.0.0\n    name: pond\n    urls: [pond-1.0.0.tgz]\n    digest: 00\n    created: 2026-01-01T00:00:00Z\n  - version: 1.1.0\n    urls: [pond-1.1.0.tgz]\n    removed: true\n  empty:\n";
        let index = RepositoryIndex::parse(index.as_bytes()).unwrap();
        assert_eq!(index.select("pond", "^1").unwrap().urls, ["pond-1.0.0.tgz"]);
        for (chart, why) in [("lake", "no chart"), ("empty", "no versions")] {
            assert!(index.select(chart, "").unwrap_err().contains(why));
        }
        let json = br#"{"entries": {"pond": [{"version": "1.0.0", "urls": ["x"]}]}}"#;
        assert!(RepositoryIndex::parse(json).is_ok());
        for broken in [&b"<html></html>"[..], b"{}", b"entries: 1", b"\xff", b""] {
            assert!(RepositoryIndex::parse(broken).is_err());
        }
    }
}
